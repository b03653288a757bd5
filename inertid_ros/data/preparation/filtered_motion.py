"""Filtered motion of joints and of a free base, with one low-pass for all channels; sliding drives; transients."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from inertid_ros.config.recordings import BaseMotionOptions, PrepareOptions
from inertid_ros.core.arrays import Array, Mask, body_rate, rotate_back
from inertid_ros.core.errors import RecordingError
from inertid_ros.data.recording import WRENCH_PREFIX
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

from .filtering import Segment, derivatives, hardly_interpolated, low_pass, usable_samples

_MAX_TWIST_ERROR_SHARE = 0.25  # squared error of a twist over the squared velocity
_NOISE_SPEED = 0.01  # m/s or rad/s; slower differences are noise
RESTING_SPEED = 1e-3  # rad/s or m/s; a slower drive may rest
_NOISE_DEVIATIONS = 3.0  # standard deviations of a velocity's noise, above which its sign is certain
_MAX_SLOW_WEIGHT = 0.5  # weight of slow samples in a filtered sample; with more, friction is mostly stiction
_CENTRE_SHARES = (0.2, 0.8)  # start and end over the recording's duration
_TRANSIENT_RATIO = 3.0  # acceleration of a transient over the largest acceleration in the centre
_MOVING_ACCELERATION_SHARE = 0.02  # share of a joint's largest acceleration; with less it rests in the centre


class FilteredMotion(NamedTuple):
    """Filtered, evenly spaced motion and forces.

    Attributes
    ----------
    time : (N,), [s].
    q, v, a : (N, nq), (N, nv), (N, nv), position, velocity and acceleration in the model's order.
    effort : (N, n), joint torque or force [N m or N].
    effort_measured : bool (N, n), False if the filter mixes in interpolated effort.
    usable : bool (N,), False near the ends, while the filter settles, and if the filter mixes in interpolated motion.
    wrenches : (N, k, 6), force [N] and torque [N m] of the model's ``k`` contacts.
    """

    time: Array
    q: Array
    v: Array
    a: Array
    effort: Array
    effort_measured: Mask
    usable: Mask
    wrenches: Array

    def select(self, rows: slice | Mask) -> "FilteredMotion":
        return FilteredMotion._make(values[rows] for values in self)

    def by_contact(self, model: RobotModel) -> dict[str, Array]:
        """Wrenches ``(N, 6)`` by contact."""
        return {contact.name: self.wrenches[:, k] for k, contact in enumerate(model.contacts)}


def filter_motion(
        name: str, segment: Segment, cutoff: float, model: RobotModel, options: PrepareOptions) -> FilteredMotion:
    """Low-pass motion and forces of one piece at a cutoff [Hz], with zero phase.

    Raises RecordingError: the robot lacks the frame of the inertial measurement unit, or the base's channels contradict
    each other.
    """
    smooth = {
        channel: low_pass(values, segment.period, cutoff, options.filter_order)
        for channel, values in segment.channels.items()}
    q = smooth["position"]
    if options.motion_from == "position":
        v, a = derivatives(q, segment.period, (1, 2))
    elif options.motion_from == "velocity":
        v = smooth["velocity"]
        (a,) = derivatives(v, segment.period, (1,))
    else:
        v, a = smooth["velocity"], smooth["acceleration"]
    if model.free:
        base = _base_motion(name, smooth, segment.period, model, options.base)
        q, v, a = (np.hstack(pair) for pair in zip(base, (q, v, a), strict=True))
    by_contact = [smooth[WRENCH_PREFIX + contact.name] for contact in model.contacts]
    wrenches = np.reshape(by_contact, (-1, len(q), 6)).swapaxes(0, 1)
    measured = hardly_interpolated(segment.replaced["effort"], segment.period, cutoff, options.filter_order)
    usable = usable_samples(segment, cutoff, options)
    return FilteredMotion(segment.time, q, v, a, smooth["effort"], measured, usable, wrenches)


def _imu_placement(model: RobotModel, frame: str, name: str) -> tuple[Array, Array]:
    """Axes ``(3, 3)`` and origin ``(3,)`` [m] of the inertial measurement unit in the base's frame.

    An empty ``frame`` means the base frame. Raises RecordingError if the robot lacks the frame, or the frame is not
    fixed to the base; ``name`` is the recording's name.
    """
    if not frame:
        return np.eye(3), np.zeros(3)
    kinematics = model.pinocchio
    if not kinematics.existFrame(frame):
        raise RecordingError(f"{name}: prepare.base.imu_frame '{frame}' is not in the URDF; give a frame of the URDF")
    sensor = kinematics.frames[kinematics.getFrameId(frame)]
    if sensor.parentJoint != 1:
        raise RecordingError(
            f"{name}: prepare.base.imu_frame '{frame}' is carried by joint '{kinematics.names[sensor.parentJoint]}';"
            " only a sensor that is fixed to the root link measures the motion of the base")
    return np.array(sensor.placement.rotation), np.array(sensor.placement.translation)


def _base_motion(name: str, smooth: Mapping[str, Array], period: float, model: RobotModel,
        options: BaseMotionOptions) -> tuple[Array, Array, Array]:
    """Configuration ``(N, 7)``, twist and derivative of the twist ``(N, 6)`` of the base in its frame, as in Pinocchio.

    ``smooth`` are filtered channels, ``period`` [s] apart. Raises RecordingError if the measured twist contradicts the
    measured pose.
    """
    rotation, lever_arm = _imu_placement(model, options.imu_frame, name)
    q, twist, acceleration = pose_motion(smooth["base_pose"], period)
    if options.motion_from == "pose":
        return q, twist, acceleration
    if options.motion_from == "imu":
        velocity, rate = twist[:, :3], smooth["imu"][:, 3:] @ rotation.T
        (turning,) = derivatives(rate, period, (1,))
        along = rotate_back(q[:, 3:], np.broadcast_to(np.array(model.options.gravity), velocity.shape))
        acceleration = base_acceleration(smooth["imu"][:, :3] @ rotation.T, rate, turning, velocity, lever_arm)
        return q, np.hstack([velocity, rate]), acceleration + np.hstack([along, np.zeros_like(along)])
    measured = smooth["base_twist"]
    _check_twist(name, measured, twist)
    if options.motion_from == "acceleration":
        return q, measured, smooth["base_acceleration"]
    return q, measured, derivatives(measured, period, (1,))[0]


def pose_motion(pose: Array, period: float) -> tuple[Array, Array, Array]:
    """Configuration ``(N, 7)``, twist and its derivative ``(N, 6)`` of a body in its frame, from filtered poses."""
    quaternion = pose[:, 3:] / np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
    q = np.hstack([pose[:, :3], quaternion])
    first, second = derivatives(q, period, (1, 2))
    velocity = rotate_back(quaternion, first[:, :3])
    rate, turning = body_rate(quaternion, first[:, 3:]), body_rate(quaternion, second[:, 3:])
    # Pinocchio's acceleration is the derivative of the twist's components, not the acceleration of a point.
    acceleration = rotate_back(quaternion, second[:, :3]) - np.cross(rate, velocity)
    return q, np.hstack([velocity, rate]), np.hstack([acceleration, turning])


def base_acceleration(
        specific_force: Array, rate: Array, rate_derivative: Array, velocity: Array, lever_arm: Array) -> Array:
    """Derivative ``(N, 6)`` of a base's twist in the base frame, minus gravity, from an inertial measurement unit.

    The linear part is ``f - alpha x r - w x (w x r) - w x v``, the angular part ``alpha``; add gravity in the base
    frame for the full derivative. All vectors ``(N, 3)`` are in the axes of the base: specific force ``f`` [m/s^2],
    which points up at rest; angular velocity ``w`` and its derivative ``alpha``; velocity ``v`` of the base's origin.
    The lever arm ``r (3,)`` points from the origin to the unit [m].
    """
    centripetal = np.cross(rate, np.cross(rate, lever_arm))
    linear = specific_force - np.cross(rate_derivative, lever_arm) - centripetal - np.cross(rate, velocity)
    return np.hstack([linear, rate_derivative])


def _check_twist(name: str, measured: Array, of_pose: Array) -> None:
    """Refuse a twist ``(N, 6)`` that is zero or in the axes of the world; many publishers send such a twist."""
    for part, what in ((slice(0, 3), "linear"), (slice(3, 6), "angular")):
        moved, off = (float(np.mean(np.sum(x[:, part] ** 2, axis=1))) for x in (of_pose, measured - of_pose))
        if off > max(_MAX_TWIST_ERROR_SHARE * moved, _NOISE_SPEED**2):
            raise RecordingError(
                f"{name}: the {what} part of base_twist is not the velocity of base_pose in the base's own axes (off by"
                f" {np.sqrt(off):.3g} of {np.sqrt(moved):.3g} RMS); correct the publisher, or set"
                " prepare.base.motion_from to pose")


def fast_speeds(velocities: Sequence[Array], layout: ParameterLayout) -> Array:
    """Speed ``(n + couplings,)`` that each drive hardly exceeds (99th percentile), from joint velocities of pieces."""
    return np.asarray(np.percentile(np.abs(np.concatenate(velocities) @ layout.drive_ratios.T), 99, axis=0))


def sliding_speeds(fast: Array, noise_deviation: Array, low_speed_fraction: float, layout: ParameterLayout) -> Array:
    """Speeds ``(n + couplings,)`` above which the friction of a drive has a direction [rad/s or m/s].

    Each speed is a share of the drive's ``fast`` speed, because slower drives rest or preslide, but at least
    ``RESTING_SPEED`` and three standard deviations of the noise of the drive's velocity. ``noise_deviation (n,)`` is
    the standard deviation of the noise of each joint's velocity.
    """
    noise = np.sqrt(layout.drive_ratios**2 @ noise_deviation**2)
    return np.maximum(np.maximum(low_speed_fraction * fast, _NOISE_DEVIATIONS * noise), RESTING_SPEED)


def slides(layout: ParameterLayout, threshold: Array, velocity: Array, low_pass: Callable[[Array], Array]) -> Mask:
    """Flag ``(N, n)`` the samples in which all drives with friction on a joint slide; true if friction is not modelled.

    ``velocity (N, n)`` of a piece has the rate of the recording; ``low_pass`` is the filter of the torque. The filter
    mixes neighbouring samples; a drive slides if slow samples have at most half of the weight, as in a swift reversal.
    """
    drives = layout.drive_ratios
    with_friction = np.ones(len(drives), dtype=bool)
    with_friction[: len(layout.joints)] = "coulomb" in layout.drive_terms
    slow = np.abs(velocity @ drives.T) < threshold
    resting = (low_pass(slow.astype(float)) > _MAX_SLOW_WEIGHT) & with_friction
    return resting.astype(int) @ (drives != 0) == 0


def without_transients(time: Array, acceleration: Array) -> Mask:
    """Flag ``(N,)`` the samples between the start-up and the stopping jerk, by filtered accelerations ``(N, n)``.

    A controller that is switched onto a running motion jerks the robot into it. A rigid-body model does not describe
    the response of flexible joints and saturated drives to the jerk. An end with accelerations several times above the
    maximum of the central three fifths is cut up to the innermost of these accelerations. The centre is never cut, and
    a recording that starts and ends at rest stays complete.
    """
    share = (time - time[0]) / (time[-1] - time[0])
    size = np.abs(acceleration)
    centre = size[(share >= _CENTRE_SHARES[0]) & (share <= _CENTRE_SHARES[1])]
    usable = np.ones(len(time), dtype=bool)
    if len(centre) == 0:
        return usable
    typical = centre.max(axis=0)
    moves = typical > _MOVING_ACCELERATION_SHARE * size.max(axis=0)
    unlike = ((size > _TRANSIENT_RATIO * typical) & moves).any(axis=1)
    start = np.flatnonzero(unlike & (share < _CENTRE_SHARES[0]))
    end = np.flatnonzero(unlike & (share > _CENTRE_SHARES[1]))
    if len(start):
        usable[: start[-1] + 1] = False
    if len(end):
        usable[end[0] :] = False
    return usable
