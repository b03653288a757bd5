"""Motion of a free base from what was measured of it: pose, twist, an inertial measurement unit, or acceleration."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.preparation import BASE_MOTION_SOURCES, BaseMotionOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.rotations import body_rate, checked_quaternions, rotate_back
from inertid_ros.data.filtering.filters import derivatives
from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import RobotModel

_CONTRADICTION = 0.25  # share of the squared velocity that a twist may be off
_TINY = 0.01  # m/s or rad/s; slower differences are noise
_NEEDS = {"pose": (), "twist": ("base_twist",), "imu": ("imu",), "acceleration": ("base_twist", "base_acceleration")}


@dataclass(frozen=True)
class ImuPlacement:
    """Where an inertial measurement unit sits on the base.

    Attributes
    ----------
    rotation : ndarray, shape (3, 3)
        Axes of the unit in the base's frame.
    lever_arm : ndarray, shape (3,)
        Origin of the unit in the base's frame [m].
    """

    rotation: Array
    lever_arm: Array


def imu_placement(model: RobotModel, frame: str, name: str) -> ImuPlacement:
    """Placement of the inertial measurement unit.

    Parameters
    ----------
    model : RobotModel
        The robot.
    frame : str
        Frame of the unit; empty is the frame of the base.
    name : str
        Name of the recording, for messages.

    Raises
    ------
    RecordingError
        The robot has no such frame, or it is not fixed to the base.
    """
    if not frame:
        return ImuPlacement(np.eye(3), np.zeros(3))
    kinematics = model.pinocchio
    if not kinematics.existFrame(frame):
        raise RecordingError(f"{name}: prepare.base.imu_frame '{frame}' is no frame of the robot; name one of its URDF")
    sensor = kinematics.frames[kinematics.getFrameId(frame)]
    if sensor.parentJoint != 1:
        raise RecordingError(
            f"{name}: prepare.base.imu_frame '{frame}' is carried by joint '{kinematics.names[sensor.parentJoint]}';"
            " only a sensor that is fixed to the root link measures how the base moves"
        )
    return ImuPlacement(np.array(sensor.placement.rotation), np.array(sensor.placement.translation))


def base_channels(recording: Recording, options: BaseMotionOptions) -> tuple[dict[str, Array], NDArray[np.bool_]]:
    """Raw channels of the base that are to be filtered.

    Parameters
    ----------
    recording : Recording
        Raw channels.
    options : BaseMotionOptions
        Source of velocity and acceleration.

    Returns
    -------
    channels : dict of str to ndarray
        By name; the pose ``(N, 7)`` with unit quaternions whose signs do not jump.
    invalid : ndarray of bool, shape (N,)
        Where the pose cannot be used.

    Raises
    ------
    RecordingError
        The pose or the chosen channel was not recorded, or the pose holds no unit quaternions.
    """
    if recording.base_pose is None:
        raise RecordingError(
            f"{recording.name}: base_pose was not recorded, which a free base needs; name its topic in"
            " topics.odometry or topics.pose"
        )
    orientation, invalid = checked_quaternions(recording.base_pose[:, 3:], recording.name)
    channels = {"base_pose": np.hstack([recording.base_pose[:, :3], orientation])}
    for key in _NEEDS[options.motion_from]:
        values = getattr(recording, key)
        if values is None:
            raise RecordingError(
                f"{recording.name}: {key} was not recorded; name its topic in topics, or set prepare.base.motion_from"
                f" to {' or '.join(_possible(recording))}"
            )
        channels[key] = values
    return channels, invalid


def noisiest_channel(options: BaseMotionOptions) -> str:
    """Name of the channel whose noise the acceleration of the base has: the one that is differentiated."""
    return (*_NEEDS[options.motion_from], "base_pose")[0]


def base_motion(
    name: str, smooth: Mapping[str, Array], period: float, source: str, imu: ImuPlacement, gravity: Array
) -> tuple[Array, Array, Array]:
    """Configuration, twist and derivative of the twist of the base, as Pinocchio has them.

    Parameters
    ----------
    name : str
        Name of the recording, for messages.
    smooth : mapping of str to ndarray
        Filtered channels, evenly spaced.
    period : float
        Sample period [s].
    source : str
        Where velocity and acceleration come from, one of ``BASE_MOTION_SOURCES``.
    imu : ImuPlacement
        Placement of the inertial measurement unit.
    gravity : ndarray, shape (3,)
        In the world [m/s^2].

    Returns
    -------
    q : ndarray, shape (N, 7)
        Position [m] and unit quaternion xyzw.
    v, a : ndarray, shape (N, 6)
        Twist and its derivative in the base's frame, linear then angular.

    Raises
    ------
    RecordingError
        The measured twist is not that of the measured pose.
    """
    position, raw = smooth["base_pose"][:, :3], smooth["base_pose"][:, 3:]
    quaternion = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    q = np.hstack([position, quaternion])
    if source in ("acceleration", "twist"):
        _check_twist(name, smooth["base_twist"], q, period)
    if source == "acceleration":
        return q, smooth["base_twist"], smooth["base_acceleration"]
    if source == "twist":
        (acceleration,) = derivatives(smooth["base_twist"], period, (1,))
        return q, smooth["base_twist"], acceleration
    first, second = derivatives(q, period, (1, 2))
    velocity = rotate_back(quaternion, first[:, :3])
    if source == "imu":
        rate = smooth["imu"][:, 3:] @ imu.rotation.T
        (turning,) = derivatives(rate, period, (1,))
        along = rotate_back(quaternion, np.broadcast_to(gravity, position.shape))
        acceleration = base_acceleration(smooth["imu"][:, :3] @ imu.rotation.T, rate, turning, velocity, imu.lever_arm)
        return q, np.hstack([velocity, rate]), acceleration + np.hstack([along, np.zeros_like(along)])
    rate, turning = body_rate(quaternion, first[:, 3:]), body_rate(quaternion, second[:, 3:])
    # What Pinocchio calls acceleration is the derivative of the components of the twist, not that of a point.
    acceleration = rotate_back(quaternion, second[:, :3]) - np.cross(rate, velocity)
    return q, np.hstack([velocity, rate]), np.hstack([acceleration, turning])


def base_acceleration(
    specific_force: Array, rate: Array, rate_derivative: Array, velocity: Array, lever_arm: Array
) -> Array:
    """Acceleration of a base less gravity, from an inertial measurement unit: derivative of the twist in its own frame.

    The specific force of the unit is moved to the origin of the base by its lever arm, and the turning of the frame is
    subtracted: ``f - alpha x r - w x (w x r) - w x v``. Gravity is already off; to have the acceleration itself, add
    gravity in the base frame.

    Parameters
    ----------
    specific_force : ndarray, shape (N, 3)
        In the axes of the base; at rest it points up [m/s^2].
    rate, rate_derivative : ndarray, shape (N, 3)
        Angular velocity and acceleration, in the axes of the base [rad/s, rad/s^2].
    velocity : ndarray, shape (N, 3)
        Linear velocity of the origin of the base, in its axes [m/s].
    lever_arm : ndarray, shape (3,)
        Origin of the unit in the base frame [m].

    Returns
    -------
    ndarray, shape (N, 6)
        Linear then angular.
    """
    centripetal = np.cross(rate, np.cross(rate, lever_arm))
    linear = specific_force - np.cross(rate_derivative, lever_arm) - centripetal - np.cross(rate, velocity)
    return np.hstack([linear, rate_derivative])


def _check_twist(name: str, twist: Array, q: Array, period: float) -> None:
    """Many publishers leave the twist of an odometry message empty, or in the axes of the world."""
    (first,) = derivatives(q, period, (1,))
    speed = np.hstack([rotate_back(q[:, 3:], first[:, :3]), body_rate(q[:, 3:], first[:, 3:])])
    for part, what in ((slice(0, 3), "linear"), (slice(3, 6), "angular")):
        moved, off = np.sum(speed[:, part] ** 2), np.sum((twist[:, part] - speed[:, part]) ** 2)
        if off > _CONTRADICTION * moved and off > len(q) * _TINY**2:
            raise RecordingError(
                f"{name}: the {what} part of base_twist is not the velocity of base_pose in the base's own axes (off by"
                f" {np.sqrt(off / len(q)):.3g} of {np.sqrt(moved / len(q)):.3g} RMS); correct the publisher, or set"
                " prepare.base.motion_from to pose"
            )


def _possible(recording: Recording) -> list[str]:
    return [
        source
        for source in BASE_MOTION_SOURCES
        if all(getattr(recording, channel) is not None for channel in _NEEDS[source])
    ]
