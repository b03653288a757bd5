"""Motion of a free base from what was measured of it: pose, twist, an inertial measurement unit, or acceleration."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.options import option
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.rotations import body_rate, checked, rotate_back
from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import RobotModel

from .filters import derivatives
from .imu import base_acceleration

SOURCES = ("pose", "twist", "imu", "acceleration")
_CONTRADICTION = 0.25  # share of the squared velocity that a twist may be off
_TINY = 0.01  # m/s or rad/s; slower differences are noise
_NEEDS = {"pose": (), "twist": ("base_twist",), "imu": ("imu",), "acceleration": ("base_twist", "base_acceleration")}


@dataclass(frozen=True)
class BaseMotionOptions:
    """Where velocity and acceleration of a free base come from. Its pose is always the measured one."""

    motion_from: str = option(
        "pose",
        "measured channel that velocity and acceleration of a free base come from: pose differentiates twice, twist"
        " once; imu takes both from the inertial measurement unit, and angular acceleration by differentiation;"
        " acceleration takes twist and acceleration as measured",
        choices=SOURCES,
    )
    imu_frame: str = option(
        "", "frame of the robot in which the inertial measurement unit sits, fixed to the base; empty is the root link"
    )


@dataclass(frozen=True)
class ImuPlacement:
    """``rotation (3, 3)`` and ``lever (3,)`` of the inertial measurement unit in the base's frame."""

    rotation: Array
    lever: Array


def imu_placement(model: RobotModel, frame: str, name: str) -> ImuPlacement:
    """Where the inertial measurement unit sits.

    Raises
    ------
    RecordingError: the robot has no such frame, or it is not fixed to the base.
    """
    if not frame:
        return ImuPlacement(np.eye(3), np.zeros(3))
    kinematics = model.pinocchio
    if not kinematics.existFrame(frame):
        raise RecordingError(f"{name}: prepare.base.imu_frame '{frame}' is no frame of the robot; name one of its URDF")
    found = kinematics.frames[kinematics.getFrameId(frame)]
    if found.parentJoint != 1:
        raise RecordingError(
            f"{name}: prepare.base.imu_frame '{frame}' is carried by joint '{kinematics.names[found.parentJoint]}';"
            " only a sensor that is fixed to the root link tells how the base moves"
        )
    return ImuPlacement(np.array(found.placement.rotation), np.array(found.placement.translation))


def base_channels(recording: Recording, options: BaseMotionOptions) -> tuple[dict[str, Array], NDArray[np.bool_]]:
    """Raw channels to filter, the pose with unit quaternions whose signs do not jump, and where it is bad ``(N,)``.

    Raises
    ------
    RecordingError: the pose or the chosen channel was not recorded, or the pose holds no unit quaternions.
    """
    if recording.base_pose is None:
        raise RecordingError(
            f"{recording.name}: base_pose was not recorded, which a free base needs; name its topic in"
            " topics.odometry or topics.pose"
        )
    orientation, bad = checked(recording.base_pose[:, 3:], recording.name)
    channels = {"base_pose": np.hstack([recording.base_pose[:, :3], orientation])}
    for key in _NEEDS[options.motion_from]:
        values = getattr(recording, key)
        if values is None:
            raise RecordingError(
                f"{recording.name}: {key} was not recorded; name its topic in topics, or set prepare.base.motion_from"
                f" to {' or '.join(_possible(recording))}"
            )
        channels[key] = values
    return channels, bad


def differentiated(options: BaseMotionOptions) -> str:
    """The channel whose noise the acceleration of the base has."""
    return (*_NEEDS[options.motion_from], "base_pose")[0]


def base_motion(
    name: str, smooth: Mapping[str, Array], period: float, source: str, imu: ImuPlacement, gravity: Array
) -> tuple[Array, Array, Array]:
    """Configuration ``(N, 7)``, twist and its derivative in the base's frame ``(N, 6)``, as Pinocchio has them.

    Parameters
    ----------
    smooth: filtered channels, evenly spaced.
    source: one of ``SOURCES``.
    gravity: ``(3,)`` in the world [m/s^2].
    name: of the recording, for messages.

    Raises
    ------
    RecordingError: the measured twist is not that of the measured pose.
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
        acceleration = base_acceleration(smooth["imu"][:, :3] @ imu.rotation.T, rate, turning, velocity, imu.lever)
        return q, np.hstack([velocity, rate]), acceleration + np.hstack([along, np.zeros_like(along)])
    rate, turning = body_rate(quaternion, first[:, 3:]), body_rate(quaternion, second[:, 3:])
    # What Pinocchio calls acceleration is the derivative of the components of the twist, not that of a point.
    acceleration = rotate_back(quaternion, second[:, :3]) - np.cross(rate, velocity)
    return q, np.hstack([velocity, rate]), np.hstack([acceleration, turning])


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
    return [source for source in SOURCES if all(getattr(recording, key) is not None for key in _NEEDS[source])]
