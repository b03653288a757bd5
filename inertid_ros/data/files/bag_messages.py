"""A recording as the messages that a robot would have published."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.data.base_messages import IMU, ODOMETRY, POSE_STAMPED, TWIST_STAMPED
from inertid_ros.data.recording import Recording

if TYPE_CHECKING:
    from rosbags.rosbag2 import Writer
    from rosbags.typesys.store import Typestore

JOINT_STATE = "sensor_msgs/msg/JointState"
WRENCH_STAMPED = "geometry_msgs/msg/WrenchStamped"
WORLD, BASE, SENSOR = "world", "base", "imu"  # frame names in the messages


def write_messages(writer: "Writer", store: "Typestore", recording: Recording, start_ns: int) -> None:
    """All samples, stamped from ``start_ns`` on."""
    topics = topics_of(recording)
    connections = {topic: writer.add_connection(topic, kind, typestore=store) for topic, kind in topics.items()}
    maker = _Maker(store, recording)
    for row, nanoseconds in enumerate(np.rint((recording.time - recording.time[0]) * 1e9).astype(np.int64)):
        stamp = start_ns + int(nanoseconds)
        for topic, message in maker.messages(row, stamp):
            writer.write(connections[topic], stamp, store.serialize_cdr(message, topics[topic]))


def topics_of(recording: Recording) -> dict[str, str]:
    """Topic to type."""
    topics = {"/joint_states": JOINT_STATE, **{f"/wrench/{frame}": WRENCH_STAMPED for frame in recording.wrenches}}
    if recording.base_pose is not None:
        topics |= {"/pose": POSE_STAMPED} if recording.base_twist is None else {"/odometry": ODOMETRY}
    elif recording.base_twist is not None:
        topics["/twist"] = TWIST_STAMPED
    if recording.imu is not None:
        topics["/imu"] = IMU
    return topics


class _Maker:
    """Messages of one sample."""

    def __init__(self, store: "Typestore", recording: Recording) -> None:
        self._types, self._recording = store.types, recording
        self._names = list(recording.joint_names)

    def messages(self, row: int, stamp: int) -> Iterator[tuple[str, Any]]:
        recording = self._recording
        yield "/joint_states", self._make(
            JOINT_STATE,
            header=self._header(stamp, ""),
            name=self._names,
            position=recording.position[row],
            velocity=np.zeros(0) if recording.velocity is None else recording.velocity[row],
            effort=recording.effort[row],
        )
        for frame, values in recording.wrenches.items():
            force, torque = self._vector(values[row, :3]), self._vector(values[row, 3:])
            wrench = self._make("geometry_msgs/msg/Wrench", force=force, torque=torque)
            yield f"/wrench/{frame}", self._make(WRENCH_STAMPED, header=self._header(stamp, frame), wrench=wrench)
        if recording.base_pose is not None:
            yield self._base(row, stamp, recording.base_pose, recording.base_twist)
        elif recording.base_twist is not None:
            twist = self._twist(recording.base_twist[row])
            yield "/twist", self._make(TWIST_STAMPED, header=self._header(stamp, BASE), twist=twist)
        if recording.imu is not None:
            yield "/imu", self._imu(row, stamp, recording.imu)

    def _base(self, row: int, stamp: int, poses: Array, twists: Array | None) -> tuple[str, Any]:
        header = self._header(stamp, WORLD)
        pose = self._make(
            "geometry_msgs/msg/Pose",
            position=self._make("geometry_msgs/msg/Point", **dict(zip("xyz", map(float, poses[row, :3]), strict=True))),
            orientation=self._quaternion(poses[row, 3:]),
        )
        if twists is None:
            return "/pose", self._make(POSE_STAMPED, header=header, pose=pose)
        twist = self._twist(twists[row])
        unknown = np.zeros(36)
        return "/odometry", self._make(
            ODOMETRY,
            header=header,
            child_frame_id=BASE,
            pose=self._make("geometry_msgs/msg/PoseWithCovariance", pose=pose, covariance=unknown),
            twist=self._make("geometry_msgs/msg/TwistWithCovariance", twist=twist, covariance=unknown),
        )

    def _twist(self, twist: Array) -> Any:
        return self._make("geometry_msgs/msg/Twist", linear=self._vector(twist[:3]), angular=self._vector(twist[3:]))

    def _imu(self, row: int, stamp: int, imu: Array) -> Any:
        none = np.zeros(9)
        none[0] = -1.0  # as the definition of the message says: there is no orientation
        return self._make(
            IMU,
            header=self._header(stamp, SENSOR),
            orientation=self._quaternion(np.array([0.0, 0.0, 0.0, 1.0])),
            orientation_covariance=none,
            angular_velocity=self._vector(imu[row, 3:]),
            angular_velocity_covariance=np.zeros(9),
            linear_acceleration=self._vector(imu[row, :3]),
            linear_acceleration_covariance=np.zeros(9),
        )

    def _make(self, kind: str, **fields: Any) -> Any:
        return self._types[kind](**fields)

    def _vector(self, values: Array) -> Any:
        return self._types["geometry_msgs/msg/Vector3"](*map(float, values))

    def _quaternion(self, values: Array) -> Any:
        return self._types["geometry_msgs/msg/Quaternion"](*map(float, values))

    def _header(self, stamp: int, frame: str) -> Any:
        time = self._make("builtin_interfaces/msg/Time", sec=stamp // 1_000_000_000, nanosec=stamp % 1_000_000_000)
        return self._make("std_msgs/msg/Header", stamp=time, frame_id=frame)
