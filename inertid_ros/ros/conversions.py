"""Messages to arrays and back. Nothing else in the package converts."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import InertidError, RecordingError
from inertid_ros.data.blocks import Block
from inertid_ros.data.live.batches import Batch
from inertid_ros.data.messages import WIDTHS
from inertid_ros.msg import SampleBatch

NANOSECONDS = 1_000_000_000
_CDR_START = 4  # bytes, of which the second tells the order of bytes


def to_nanoseconds(stamp: Time | Duration) -> int:
    """Stamp or duration to nanoseconds."""
    return int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)


def stamp_of_serialized(data: bytes) -> int:
    """Header stamp of a serialised message (CDR) whose first field is its header [ns]; 0 where it is cut off."""
    if len(data) < _CDR_START + 8:
        return 0
    seconds, rest = struct.unpack_from("<iI" if data[1] & 1 else ">iI", data, _CDR_START)
    return int(seconds) * NANOSECONDS + int(rest)


def to_time(nanoseconds: int) -> Time:
    """Nanoseconds to a stamp."""
    seconds, rest = divmod(int(nanoseconds), NANOSECONDS)
    return Time(sec=seconds, nanosec=rest)


def to_duration(seconds: float) -> Duration:
    """Seconds to a duration."""
    whole, rest = divmod(round(seconds * NANOSECONDS), NANOSECONDS)
    return Duration(sec=int(whole), nanosec=int(rest))


def to_joint_state(
    joint_names: Sequence[str], stamp: Time, position: Array, velocity: Array, effort: Array
) -> JointState:
    """Arrays ``(n,)`` to a JointState."""
    return JointState(
        header=Header(stamp=stamp),
        name=list(joint_names),
        position=position.tolist(),
        velocity=velocity.tolist(),
        effort=effort.tolist(),
    )


def from_wrench(message: WrenchStamped) -> Array:
    """``(6,)`` force [N], torque [N m]."""
    force, torque = message.wrench.force, message.wrench.torque
    return np.array([force.x, force.y, force.z, torque.x, torque.y, torque.z])


def to_odometry(pose: Array, twist: Array, child_frame: str, stamp: Time) -> Odometry:
    """Pose ``(7,)`` of a base in the world and its twist ``(6,)`` in its own axes."""
    message = Odometry(header=Header(stamp=stamp, frame_id="world"), child_frame_id=child_frame)
    place, turn = message.pose.pose.position, message.pose.pose.orientation
    place.x, place.y, place.z, turn.x, turn.y, turn.z, turn.w = map(float, pose)
    linear, angular = message.twist.twist.linear, message.twist.twist.angular
    linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = map(float, twist)
    return message


def to_imu(specific_force: Array, rate: Array, frame: str, stamp: Time) -> Imu:
    """Return the message of an inertial measurement unit that estimates no orientation."""
    message = Imu(header=Header(stamp=stamp, frame_id=frame))
    message.orientation_covariance[0] = -1.0
    for part, values in ((message.linear_acceleration, specific_force), (message.angular_velocity, rate)):
        part.x, part.y, part.z = map(float, values)
    return message


def to_wrench(wrench: Array, frame: str, stamp: Time) -> WrenchStamped:
    """Force and torque ``(6,)`` in a frame."""
    message = WrenchStamped(header=Header(stamp=stamp, frame_id=frame))
    for part, values in ((message.wrench.force, wrench[:3]), (message.wrench.torque, wrench[3:])):
        part.x, part.y, part.z = map(float, values)
    return message


@dataclass(frozen=True)
class TrajectoryArrays:
    """A joint trajectory: ``time`` (N,) s from its start, ``position``, ``velocity``, ``acceleration`` (N, n)."""

    joint_names: tuple[str, ...]
    time: Array
    position: Array
    velocity: Array
    acceleration: Array


def to_joint_trajectory(trajectory: TrajectoryArrays, stamp: Time | None = None) -> JointTrajectory:
    """Arrays to a JointTrajectory; without a stamp the controller starts it on receipt."""
    message = JointTrajectory(joint_names=list(trajectory.joint_names))
    message.header.stamp = stamp or Time()
    rows = zip(trajectory.time, trajectory.position, trajectory.velocity, trajectory.acceleration, strict=True)
    message.points = [
        JointTrajectoryPoint(
            positions=q.tolist(), velocities=v.tolist(), accelerations=a.tolist(), time_from_start=to_duration(t)
        )
        for t, q, v, a in rows
    ]
    return message


def from_joint_trajectory(message: JointTrajectory, joint_names: Sequence[str]) -> TrajectoryArrays:
    """A JointTrajectory in a chosen joint order; missing velocities and accelerations become zero.

    Raises
    ------
    InertidError
        Other joints, lengths that do not fit, not finite, or time that does not increase.
    """
    wanted = tuple(joint_names)
    if sorted(message.joint_names) != sorted(wanted):
        raise InertidError(f"joint trajectory: holds joints {list(message.joint_names)}, expected {list(wanted)}")
    order = [list(message.joint_names).index(joint) for joint in wanted]
    count = len(message.points)
    if count == 0:
        raise InertidError("joint trajectory: holds no points; send at least one")
    time = np.array([to_nanoseconds(point.time_from_start) for point in message.points]) / NANOSECONDS
    arrays = []
    for key in ("positions", "velocities", "accelerations"):
        rows = [list(getattr(point, key)) for point in message.points]
        if key != "positions" and not any(rows):
            arrays.append(np.zeros((count, len(wanted))))
            continue
        if any(len(row) != len(wanted) for row in rows):
            raise InertidError(f"joint trajectory: {key} do not have {len(wanted)} values in every point")
        arrays.append(np.array(rows, dtype=float)[:, order])
    if not all(np.isfinite(array).all() for array in arrays):
        raise InertidError("joint trajectory: holds values that are not finite")
    if (np.diff(time) <= 0).any() or time[0] < 0:
        raise InertidError("joint trajectory: time_from_start does not increase from zero")
    return TrajectoryArrays(wanted, time, *arrays)


def to_batch(batch: Batch) -> SampleBatch:
    """Return a batch as a message."""
    block = batch.block
    frames = list(block.wrenches)
    wrench = np.stack([block.wrenches[frame] for frame in frames], axis=1) if frames else np.zeros(0)
    message = SampleBatch(
        recording=batch.recording,
        sequence=batch.sequence,
        last=batch.last,
        joint_names=list(block.joint_names),
        stamps=[to_time(stamp) for stamp in block.stamps_ns],
        position=block.position.ravel().tolist(),
        velocity=[] if block.velocity is None else block.velocity.ravel().tolist(),
        effort=block.effort.ravel().tolist(),
        wrench_frames=frames,
        wrench=wrench.ravel().tolist(),
        flags=np.where(batch.gaps, SampleBatch.AFTER_GAP, SampleBatch.OK).astype(np.uint8).tolist(),
        **{channel: values.ravel().tolist() for channel, values in block.base.items()},
    )
    if message.stamps:
        message.header.stamp = message.stamps[0]
    return message


def from_batch(message: SampleBatch) -> Block:
    """Inverse of :func:`to_batch`.

    Raises
    ------
    RecordingError
        Array lengths do not fit.
    """
    n, count, frames = len(message.joint_names), len(message.stamps), len(message.wrench_frames)
    where = f"{message.recording}: batch {message.sequence}"

    def table(key: str, width: int) -> Array:
        values = np.asarray(getattr(message, key), dtype=float)
        if values.size != count * width:
            raise RecordingError(f"{where}: {key} has {values.size} values, expected {count * width}")
        return values.reshape(count, width)

    wrench = table("wrench", 6 * frames).reshape(count, frames, 6)
    return Block(
        joint_names=tuple(message.joint_names),
        stamps_ns=np.array([to_nanoseconds(stamp) for stamp in message.stamps], dtype=np.int64),
        position=table("position", n),
        velocity=table("velocity", n) if len(message.velocity) or not count else None,
        effort=table("effort", n),
        wrenches={frame: wrench[:, index] for index, frame in enumerate(message.wrench_frames)},
        base={channel: table(channel, width) for channel, width in WIDTHS.items() if len(getattr(message, channel))},
    )
