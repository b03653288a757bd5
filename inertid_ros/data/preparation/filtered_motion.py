"""Motion of joints and of a free base, every channel through the same low-pass."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.recordings import BASE_MOTION_SOURCES, BaseMotionOptions, PrepareOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.rotations import body_rate, checked_quaternions, rotate_back
from inertid_ros.data.recording import WRENCH_PREFIX, Recording
from inertid_ros.robot.model import RobotModel

from .filtering import Segment, derivatives, hardly_interpolated, low_pass, usable_samples

_SAMPLE_FIELDS = ("time", "q", "v", "a", "effort", "effort_measured", "usable")
_MAX_TWIST_ERROR_SHARE = 0.25  # squared error of a twist over the squared velocity
_NOISE_SPEED = 0.01  # m/s or rad/s; slower differences are noise
_SOURCE_CHANNELS = {
    "pose": (), "twist": ("base_twist",), "imu": ("imu",), "acceleration": ("base_twist", "base_acceleration"),
}  # fmt: skip


@dataclass(frozen=True)
class FilteredMotion:
    """Filtered, evenly spaced motion and forces.

    Attributes
    ----------
    time : (N,), [s].
    q, v, a : (N, nq), (N, nv), (N, nv), position, velocity and acceleration in the model's order.
    effort : (N, n), joint torque or force [N m or N].
    effort_measured : bool (N, n), False if the filter mixes in interpolated effort.
    usable : bool (N,), False at an edge, where the filter settles, and if it mixes in interpolated motion.
    wrenches : contact to force [N] and torque [N m], (N, 6).
    """

    time: Array
    q: Array
    v: Array
    a: Array
    effort: Array
    effort_measured: NDArray[np.bool_]
    usable: NDArray[np.bool_]
    wrenches: Mapping[str, Array]

    def select(self, rows: slice | NDArray[np.bool_]) -> "FilteredMotion":
        return replace(
            self,
            **{key: getattr(self, key)[rows] for key in _SAMPLE_FIELDS},
            wrenches={name: wrench[rows] for name, wrench in self.wrenches.items()},
        )

    @classmethod
    def concatenate(cls, pieces: Sequence["FilteredMotion"]) -> "FilteredMotion":
        return cls(
            **{key: np.concatenate([getattr(piece, key) for piece in pieces]) for key in _SAMPLE_FIELDS},
            wrenches={name: np.concatenate([piece.wrenches[name] for piece in pieces]) for name in pieces[0].wrenches},
        )


def filter_motion(
    name: str, segment: Segment, cutoff: float, model: RobotModel, options: PrepareOptions
) -> FilteredMotion:
    """Low-pass motion and forces of one piece at a cutoff [Hz], without phase.

    Raises
    ------
    RecordingError
        The robot lacks the frame of the inertial measurement unit, or the base's channels contradict each other.
    """
    smooth = {
        channel: low_pass(values, segment.period, cutoff, options.filter_order)
        for channel, values in segment.channels.items()
    }
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
    wrenches = {contact.name: smooth[WRENCH_PREFIX + contact.name] for contact in model.contacts}
    measured = hardly_interpolated(segment.replaced["effort"], segment.period, cutoff, options.filter_order)
    usable = usable_samples(segment, cutoff, options)
    return FilteredMotion(segment.time, q, v, a, smooth["effort"], measured, usable, wrenches)


def _imu_placement(model: RobotModel, frame: str, name: str) -> tuple[Array, Array]:
    """Axes ``(3, 3)`` and origin ``(3,)`` [m] of the inertial measurement unit in the base's frame.

    An empty ``frame`` is that of the base. Raises RecordingError if the robot lacks it, or it is not fixed to the base;
    ``name`` is that of the recording.
    """
    if not frame:
        return np.eye(3), np.zeros(3)
    kinematics = model.pinocchio
    if not kinematics.existFrame(frame):
        raise RecordingError(f"{name}: prepare.base.imu_frame '{frame}' is no frame of the robot; name one of its URDF")
    sensor = kinematics.frames[kinematics.getFrameId(frame)]
    if sensor.parentJoint != 1:
        raise RecordingError(
            f"{name}: prepare.base.imu_frame '{frame}' is carried by joint '{kinematics.names[sensor.parentJoint]}';"
            " only a sensor that is fixed to the root link measures how the base moves"
        )
    return np.array(sensor.placement.rotation), np.array(sensor.placement.translation)


def base_channels(recording: Recording, options: BaseMotionOptions) -> tuple[dict[str, Array], NDArray[np.bool_]]:
    """Raw channels of the base that are to be filtered, and flags ``(N,)`` of samples with an invalid pose.

    The quaternions of the pose ``(N, 7)`` are units whose signs do not jump.

    Raises
    ------
    RecordingError
        The pose or the chosen channel was not recorded, or the pose has no unit quaternions.
    """
    if recording.base_pose is None:
        raise RecordingError(
            f"{recording.name}: base_pose was not recorded, which a free base needs; name its topic in"
            " topics.odometry or topics.pose"
        )
    orientation, invalid = checked_quaternions(recording.base_pose[:, 3:], recording.name)
    channels = {"base_pose": np.hstack([recording.base_pose[:, :3], orientation])}
    recorded = {key for keys in _SOURCE_CHANNELS.values() for key in keys if getattr(recording, key) is not None}
    for key in _SOURCE_CHANNELS[options.motion_from]:
        if key not in recorded:
            possible = [source for source in BASE_MOTION_SOURCES if recorded.issuperset(_SOURCE_CHANNELS[source])]
            raise RecordingError(
                f"{recording.name}: {key} was not recorded; name its topic in topics, or set prepare.base.motion_from"
                f" to {' or '.join(possible)}"
            )
        channels[key] = getattr(recording, key)
    return channels, invalid


def noisiest_channel(options: BaseMotionOptions) -> str:
    """Channel that is differentiated for the acceleration of the base, whose noise that has."""
    return (*_SOURCE_CHANNELS[options.motion_from], "base_pose")[0]


def _base_motion(
    name: str, smooth: Mapping[str, Array], period: float, model: RobotModel, options: BaseMotionOptions
) -> tuple[Array, Array, Array]:
    """Configuration ``(N, 7)``, twist and derivative of the twist ``(N, 6)`` of the base in its frame, as in Pinocchio.

    ``smooth`` are filtered channels, ``period`` [s] apart. Raises RecordingError if the measured twist is not that of
    the measured pose.
    """
    rotation, lever_arm = _imu_placement(model, options.imu_frame, name)
    position, raw = smooth["base_pose"][:, :3], smooth["base_pose"][:, 3:]
    quaternion = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    q = np.hstack([position, quaternion])
    if "base_twist" in _SOURCE_CHANNELS[options.motion_from]:
        twist = smooth["base_twist"]
        _check_twist(name, twist, q, period)
        if options.motion_from == "acceleration":
            return q, twist, smooth["base_acceleration"]
        return q, twist, derivatives(twist, period, (1,))[0]
    first, second = derivatives(q, period, (1, 2))
    velocity = rotate_back(quaternion, first[:, :3])
    if options.motion_from == "imu":
        rate = smooth["imu"][:, 3:] @ rotation.T
        (turning,) = derivatives(rate, period, (1,))
        along = rotate_back(quaternion, np.broadcast_to(np.array(model.options.gravity), position.shape))
        acceleration = base_acceleration(smooth["imu"][:, :3] @ rotation.T, rate, turning, velocity, lever_arm)
        return q, np.hstack([velocity, rate]), acceleration + np.hstack([along, np.zeros_like(along)])
    rate, turning = body_rate(quaternion, first[:, 3:]), body_rate(quaternion, second[:, 3:])
    # What Pinocchio calls acceleration is the derivative of the components of the twist, not that of a point.
    acceleration = rotate_back(quaternion, second[:, :3]) - np.cross(rate, velocity)
    return q, np.hstack([velocity, rate]), np.hstack([acceleration, turning])


def base_acceleration(
    specific_force: Array, rate: Array, rate_derivative: Array, velocity: Array, lever_arm: Array
) -> Array:
    """Acceleration ``(N, 6)`` of a base (derivative of the twist in its frame) less gravity, from an inertial unit.

    The specific force is moved to the origin of the base by the lever arm, and the turning of the frame is subtracted:
    ``f - alpha x r - w x (w x r) - w x v``. Add gravity in the base frame to get the acceleration itself. All vectors
    ``(N, 3)`` are in the axes of the base: specific force [m/s^2], which points up at rest, rate and its derivative,
    velocity of the origin; the lever arm ``(3,)`` leads to the unit [m].
    """
    centripetal = np.cross(rate, np.cross(rate, lever_arm))
    linear = specific_force - np.cross(rate_derivative, lever_arm) - centripetal - np.cross(rate, velocity)
    return np.hstack([linear, rate_derivative])


def _check_twist(name: str, twist: Array, q: Array, period: float) -> None:
    """Refuse a twist that is empty or in the axes of the world, as many publishers send it."""
    (first,) = derivatives(q, period, (1,))
    speed = np.hstack([rotate_back(q[:, 3:], first[:, :3]), body_rate(q[:, 3:], first[:, 3:])])
    for part, what in ((slice(0, 3), "linear"), (slice(3, 6), "angular")):
        moved, off = np.sum(speed[:, part] ** 2), np.sum((twist[:, part] - speed[:, part]) ** 2)
        if off > _MAX_TWIST_ERROR_SHARE * moved and off > len(q) * _NOISE_SPEED**2:
            raise RecordingError(
                f"{name}: the {what} part of base_twist is not the velocity of base_pose in the base's own axes (off by"
                f" {np.sqrt(off / len(q)):.3g} of {np.sqrt(moved / len(q)):.3g} RMS); correct the publisher, or set"
                " prepare.base.motion_from to pose"
            )
