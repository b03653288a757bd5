"""Conversion between messages and arrays; selection of a robot's joints from joint states in any order."""

import struct
from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Inertia, Point, Quaternion, Twist, Vector3, Wrench, WrenchStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from inertid_ros.config.structuring import flow
from inertid_ros.core.arrays import Array, Indices
from inertid_ros.core.errors import InertidError, RecordingError, one_line
from inertid_ros.core.inertial_parameters import URDF_INERTIA
from inertid_ros.core.samples import JointSample
from inertid_ros.data.long_recording import Batch, Block
from inertid_ros.data.messages import WIDTHS
from inertid_ros.data.recording import COMMAND_CHANNELS, WRENCH_PREFIX
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.msg import SampleBatch
from inertid_ros.robot.recorded_joints import RecordedJoints, proposed_names

try:
    import tf_transformations
except ImportError:  # then transforms3d, which tf_transformations wraps with ROS conventions, is used directly
    tf_transformations = None

NANOSECONDS = 1_000_000_000
_CDR_ENCAPSULATION_BYTES = 4  # the second byte holds the byte order


def to_nanoseconds(stamp: Time | Duration) -> int:
    """Convert a stamp or duration to nanoseconds."""
    return int(stamp.sec) * NANOSECONDS + int(stamp.nanosec)


def stamp_of_serialized(data: bytes) -> int:
    """Return the header stamp [ns] of a serialised message (CDR) that begins with a header; 0 if data is cut off."""
    if len(data) < _CDR_ENCAPSULATION_BYTES + 8:
        return 0
    seconds, rest = struct.unpack_from("<iI" if data[1] & 1 else ">iI", data, _CDR_ENCAPSULATION_BYTES)
    return int(seconds) * NANOSECONDS + int(rest)


def to_time(nanoseconds: int) -> Time:
    """Convert nanoseconds to a stamp."""
    seconds, rest = divmod(int(nanoseconds), NANOSECONDS)
    return Time(sec=seconds, nanosec=rest)


def to_joint_state(
        joint_names: Sequence[str], stamp: Time, position: Array, velocity: Array, effort: Array) -> JointState:
    """Make a JointState from arrays ``(n,)``."""
    return JointState(
        header=Header(stamp=stamp), name=list(joint_names), position=position.tolist(), velocity=velocity.tolist(),
        effort=effort.tolist())


def to_odometry(pose: Array, twist: Array, child_frame: str, stamp: Time) -> Odometry:
    """Make an Odometry from a base's pose ``(7,)`` in the world and its twist ``(6,)`` in the axes of the base."""
    message = Odometry(header=Header(stamp=stamp, frame_id="world"), child_frame_id=child_frame)
    message.pose.pose.position = Point(**by_axis(pose[:3]))
    message.pose.pose.orientation = Quaternion(**by_axis(pose[3:]))
    message.twist.twist = Twist(linear=Vector3(**by_axis(twist[:3])), angular=Vector3(**by_axis(twist[3:])))
    return message


def to_imu(specific_force: Array, rate: Array, frame: str, stamp: Time) -> Imu:
    """Make an Imu message without orientation."""
    message = Imu(
        header=Header(stamp=stamp, frame_id=frame), linear_acceleration=Vector3(**by_axis(specific_force)),
        angular_velocity=Vector3(**by_axis(rate)))
    message.orientation_covariance[0] = -1.0
    return message


def to_wrench(wrench: Array, frame: str, stamp: Time) -> WrenchStamped:
    """Make a WrenchStamped from force and torque ``(6,)`` in a frame."""
    force, torque = (Vector3(**by_axis(part)) for part in (wrench[:3], wrench[3:]))
    return WrenchStamped(header=Header(stamp=stamp, frame_id=frame), wrench=Wrench(force=force, torque=torque))


def to_inertia(numbers: Sequence[float] | Array) -> Inertia:
    """Make an Inertia from ``(10,)``: mass, centre of mass, and xx, xy, xz, yy, yz, zz about the centre of mass."""
    mass, *elements = map(float, numbers)
    return Inertia(m=mass, com=Vector3(**by_axis(elements[:3])), **dict(zip(URDF_INERTIA, elements[3:], strict=True)))


def from_inertia(message: Inertia) -> Array:
    """Return the ``(10,)`` numbers of :func:`to_inertia`."""
    elements = (getattr(message, field) for field in URDF_INERTIA)
    return np.array([message.m, message.com.x, message.com.y, message.com.z, *elements])


def by_axis(values: Sequence[float] | Array) -> dict[str, float]:
    """Return the fields x, y, z and, if there are four values, w of a message."""
    return dict(zip("xyzw", map(float, values), strict=False))


def to_joint_trajectory(
        joint_names: Sequence[str], curve: PiecewiseQuintic, stamp: Time | None = None) -> JointTrajectory:
    """Make a JointTrajectory from the knots of a curve; without a stamp the controller starts it on receipt."""
    message = JointTrajectory(header=Header(stamp=stamp or Time()), joint_names=list(joint_names))
    for time, *states in zip(curve.time, curve.position, curve.velocity, curve.acceleration, strict=True):
        seconds, rest = divmod(round(time * NANOSECONDS), NANOSECONDS)
        point = to_point(*states)
        point.time_from_start = Duration(sec=seconds, nanosec=rest)
        message.points.append(point)
    return message


def to_point(*states: Array) -> JointTrajectoryPoint:
    """Make a point without time from positions and, if given, velocities and accelerations, ``(n,)`` each."""
    names = ("positions", "velocities", "accelerations")
    return JointTrajectoryPoint(**{name: values.tolist() for name, values in zip(names, states, strict=False)})


def from_joint_trajectory(message: JointTrajectory, joint_names: Sequence[str]) -> PiecewiseQuintic:
    """Return a JointTrajectory in the order of ``joint_names``; missing velocities and accelerations become zero.

    Raises InertidError for other joints, no points, wrong lengths, values that are not finite, or time that does not
    increase.
    """
    joints = tuple(joint_names)
    if sorted(message.joint_names) != sorted(joints):
        raise InertidError(f"joint trajectory: holds joints {list(message.joint_names)}, expected {list(joints)}")
    order = [list(message.joint_names).index(joint) for joint in joints]
    count = len(message.points)
    if count == 0:
        raise InertidError("joint trajectory: holds no points; send at least one")
    time = np.array([to_nanoseconds(point.time_from_start) for point in message.points]) / NANOSECONDS
    arrays = np.zeros((3, count, len(joints)))
    for array, key in zip(arrays, ("positions", "velocities", "accelerations"), strict=True):
        rows = [list(getattr(point, key)) for point in message.points]
        if key != "positions" and not any(rows):
            continue
        if any(len(row) != len(joints) for row in rows):
            raise InertidError(f"joint trajectory: {key} do not have {len(joints)} values in every point")
        array[:] = np.array(rows, dtype=float)[:, order]
    if not np.isfinite(arrays).all():
        raise InertidError("joint trajectory: holds values that are not finite")
    if (np.diff(time) <= 0).any() or time[0] < 0:
        raise InertidError("joint trajectory: time_from_start does not increase from zero")
    return PiecewiseQuintic(time, *arrays)


def to_batch(batch: Batch) -> SampleBatch:
    """Make a message from a batch."""
    block = batch.block
    wrenches = {key: values for key, values in block.channels.items() if key.startswith(WRENCH_PREFIX)}
    wrench = np.stack(list(wrenches.values()), axis=1) if wrenches else np.zeros(0)
    message = SampleBatch(
        recording=batch.recording, sequence=batch.sequence, last=batch.last, joint_names=list(block.joint_names),
        stamps=[to_time(stamp) for stamp in block.stamps_ns],
        wrench_frames=[key.removeprefix(WRENCH_PREFIX) for key in wrenches], wrench=wrench.ravel().tolist(),
        flags=np.where(batch.gaps, SampleBatch.AFTER_GAP, SampleBatch.OK).astype(np.uint8).tolist(),
        **{key: values.ravel().tolist() for key, values in block.channels.items() if key not in wrenches})
    if message.stamps:
        message.header.stamp = message.stamps[0]
    return message


def from_batch(message: SampleBatch) -> Block:
    """Return the samples of a batch; raise RecordingError if array lengths do not fit."""
    n, count, frames = len(message.joint_names), len(message.stamps), len(message.wrench_frames)
    where = f"{message.recording}: batch {message.sequence}"

    def table(key: str, width: int) -> Array:
        values = np.asarray(getattr(message, key), dtype=float)
        if values.size != count * width:
            raise RecordingError(f"{where}: {key} has {values.size} values, expected {count * width}")
        return values.reshape(count, width)

    wrench = table("wrench", 6 * frames).reshape(count, frames, 6)
    channels = {"position": table("position", n), "effort": table("effort", n)}
    if len(message.velocity) or not count:
        channels["velocity"] = table("velocity", n)
    channels |= {f"{WRENCH_PREFIX}{frame}": wrench[:, index] for index, frame in enumerate(message.wrench_frames)}
    widths = {**WIDTHS, **dict.fromkeys(COMMAND_CHANNELS, n)}
    channels |= {key: table(key, width) for key, width in widths.items() if len(getattr(message, key))}
    stamps = np.array([to_nanoseconds(stamp) for stamp in message.stamps], dtype=np.int64)
    return Block(tuple(message.joint_names), stamps, channels)


class JointOrder:
    """Select a fixed set of joints from JointState messages, which may list joints in any order and other joints, too.

    ``effort_scale`` ``(n,)`` are factors from reported efforts to N m or N; ``recorded`` translates names in messages
    to names in the URDF. ``held_joints``, such as gripper joints, may have their own messages.
    """

    def __init__(
            self, joint_names: Sequence[str], effort_scale: Array | float = 1.0, recorded: RecordedJoints | None = None,
            held_joints: Sequence[str] = ()) -> None:
        self.joint_names, self._held_joints = tuple(joint_names), tuple(held_joints)
        self._recorded, self._effort_scale = recorded or RecordedJoints(), effort_scale
        self._skipped: tuple[str, ...] = ()
        self._held = np.full(len(self._held_joints), np.nan)
        self._columns: dict[tuple[str, ...], Indices | None] = {}  # by the names of a message
        self._held_columns: dict[tuple[str, ...], dict[int, int]] = {}  # held joint to column

    def sample(self, message: JointState) -> JointSample | None:
        """Return the sample of the joints, NaN for missing values; None if the message has none of the joints.

        Raises RecordingError if some of the joints are missing, a joint is listed twice, or lengths do not fit.
        """
        names = tuple(message.name)
        if names not in self._columns:
            self._columns[names] = self._find_columns(names)
        if self._held_columns[names] and len(message.position) == len(names):
            self._held = self._held.copy()
            for joint, column in self._held_columns[names].items():
                self._held[joint] = message.position[column]
        columns = self._columns[names]
        if columns is None:
            self._skipped = names
            return None
        position, velocity, effort = (
            self._pick(message, key, len(names), columns) for key in ("position", "velocity", "effort"))
        stamp_ns = to_nanoseconds(message.header.stamp)
        return JointSample(stamp_ns, position, velocity, self._effort_scale * effort, self._held)

    @property
    def others(self) -> str:
        """Line on the last message without any of the joints; empty if every message had at least one joint."""
        if not self._skipped:
            return ""
        names = proposed_names(self._skipped, self.joint_names)
        remedy = f"set robot.joint_names: {flow(names)} if the joints match" if names else "give the robot's URDF"
        if set(self._skipped) & set(self.joint_names):
            remedy = "leave out robot.joint_names, which assigns the robot's names to other joints"
        published, expected = ", ".join(self._skipped), ", ".join(self.joint_names)
        return one_line(f"joint_states holds {published}, but the joints of the robot are {expected}; {remedy}")

    def _find_columns(self, names: tuple[str, ...]) -> Indices | None:
        if len(set(names)) != len(names):
            raise RecordingError(f"joint_states: a joint is listed twice in {list(names)}; fix the publisher")
        recorded, names = names, self._recorded.urdf_names(names, "joint_states")
        self._held_columns[recorded] = {
            index: names.index(joint) for index, joint in enumerate(self._held_joints) if joint in names}
        missing = [joint for joint in self.joint_names if joint not in names]
        if len(missing) == len(self.joint_names):
            return None
        if missing:
            raise RecordingError(f"joint_states: joints {missing} are missing; the message has {list(names)}")
        commanded = dict(zip(self.joint_names, self._recorded.recorded(self.joint_names), strict=True))
        for joint, name in zip(names, recorded, strict=True):
            if commanded.get(joint, name) != name:
                raise RecordingError(
                    f"joint_states: {name} is {joint}, but commands name this joint {commanded[joint]}; add it"
                    f" to robot.joint_names: {{{name}: {joint}}}")
        return np.array([names.index(joint) for joint in self.joint_names], dtype=np.intp)

    @staticmethod
    def _pick(message: JointState, key: str, count: int, columns: Indices) -> Array:
        values = np.asarray(getattr(message, key), dtype=float)
        if len(values) == 0 and key != "position":
            return np.full(len(columns), np.nan)
        if len(values) != count:
            raise RecordingError(f"joint_states: {key} has {len(values)} values for {count} joints; fix the publisher")
        return values[columns]


def matrix_to_quaternion(rotation: Array) -> Quaternion:
    """Convert a ``(3, 3)`` rotation matrix to a unit quaternion."""
    if tf_transformations is not None:
        homogeneous = np.eye(4)
        homogeneous[:3, :3] = rotation
        return Quaternion(**by_axis(tf_transformations.quaternion_from_matrix(homogeneous)))
    import transforms3d

    return Quaternion(**by_axis(np.roll(transforms3d.quaternions.mat2quat(rotation), -1)))
