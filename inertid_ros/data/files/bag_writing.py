"""Recordings to rosbag2 bags: the messages that a robot would have published."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import OutputError
from inertid_ros.core.outputs import check_directory, move_directory, scratch_beside
from inertid_ros.data.messages import IMU, JOINT_STATE, ODOMETRY, POSE_STAMPED, TWIST_STAMPED, WRENCH_STAMPED
from inertid_ros.data.recording import Recording

from .bag_backends import BagBackend, BagMessage, Storage, bag_backend

_OUTPUT_KIND = "recording"
_WORLD_FRAME, _BASE_FRAME, _IMU_FRAME = "world", "base", "imu"  # frame names in the messages


def write_bag(
    recording: Recording,
    path: str | Path,
    storage: Storage = "mcap",
    start_ns: int = 10**18,
    overwrite: bool = False,
) -> Path:
    """Write a recording as a rosbag2 directory ``path``, which appears when it is complete.

    Topics are ``/joint_states``, ``/wrench/<frame>`` for every wrench, and for a free base ``/odometry`` (or ``/pose``
    without a twist, ``/twist`` without a pose) and ``/imu``. These messages cannot hold a measured acceleration; it is
    not written. Header stamps are ``start_ns`` plus the time from the first sample; ``overwrite`` replaces a bag that
    this function wrote.

    Raises
    ------
    OutputError
        ``path`` cannot be written, or holds something else.
    RecordingError
        No library for bags is installed.
    """
    path, backend = Path(path), bag_backend()
    check_bag(path, overwrite or None)
    with scratch_beside(path) as scratch:
        # The file inside is named after its directory.
        try:
            with backend.create(scratch / path.name, storage, recorded_topics(recording)) as write:
                for message in recorded_messages(recording, backend, start_ns):
                    write(message)
        except (OSError, RuntimeError) as error:  # rosbag2 raises RuntimeError alone
            reason = (getattr(error, "strerror", None) or str(error) or error.__class__.__name__).splitlines()[0]
            raise OutputError(f"{path}: cannot be written ({reason}); choose another path") from None
        move_directory(scratch / path.name, path, _OUTPUT_KIND, overwrite or None)
    return path


def check_bag(path: str | Path, force: bool | None = None, inputs: Iterable[str | Path] = ()) -> None:
    """Check before the work that a bag can be written; see :func:`.outputs.check_directory`."""
    check_directory(path, _OUTPUT_KIND, force, inputs, file=f"{Path(path).name}_0.mcap")


def recorded_topics(recording: Recording) -> dict[str, str]:
    """Topic to type of the messages of a recording."""
    topics = {"/joint_states": JOINT_STATE, **{f"/wrench/{frame}": WRENCH_STAMPED for frame in recording.wrenches}}
    if recording.base_pose is not None:
        topics |= {"/pose": POSE_STAMPED} if recording.base_twist is None else {"/odometry": ODOMETRY}
    elif recording.base_twist is not None:
        topics["/twist"] = TWIST_STAMPED
    if recording.imu is not None:
        topics["/imu"] = IMU
    return topics


def recorded_messages(recording: Recording, backend: BagBackend, start_ns: int) -> Iterator[BagMessage]:
    """Yield all samples as messages, stamped from ``start_ns`` on."""
    types, messages = recorded_topics(recording), _SampleMessages(backend, recording)
    for row, nanoseconds in enumerate(np.rint((recording.time - recording.time[0]) * 1e9).astype(np.int64)):
        stamp = start_ns + int(nanoseconds)
        for topic, message in messages.of_sample(row, stamp):
            yield BagMessage(topic, stamp, backend.serialize(message, types[topic]))


class _SampleMessages:
    def __init__(self, backend: BagBackend, recording: Recording) -> None:
        self._make, self._recording = backend.message, recording
        self._names = list(recording.joint_names)

    def of_sample(self, row: int, stamp: int) -> Iterator[tuple[str, Any]]:
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
        pose = twist = None
        if recording.base_pose is not None:
            pose = self._pose(recording.base_pose[row])
        if recording.base_twist is not None:
            linear, angular = self._vector(recording.base_twist[row, :3]), self._vector(recording.base_twist[row, 3:])
            twist = self._make("geometry_msgs/msg/Twist", linear=linear, angular=angular)
        if pose is not None and twist is not None:
            yield "/odometry", self._odometry(stamp, pose, twist)
        elif pose is not None:
            yield "/pose", self._make(POSE_STAMPED, header=self._header(stamp, _WORLD_FRAME), pose=pose)
        elif twist is not None:
            yield "/twist", self._make(TWIST_STAMPED, header=self._header(stamp, _BASE_FRAME), twist=twist)
        if recording.imu is not None:
            yield "/imu", self._imu(stamp, recording.imu[row])

    def _odometry(self, stamp: int, pose: Any, twist: Any) -> Any:
        covariance = np.zeros(36)  # unknown
        return self._make(
            ODOMETRY,
            header=self._header(stamp, _WORLD_FRAME),
            child_frame_id=_BASE_FRAME,
            pose=self._make("geometry_msgs/msg/PoseWithCovariance", pose=pose, covariance=covariance),
            twist=self._make("geometry_msgs/msg/TwistWithCovariance", twist=twist, covariance=covariance),
        )

    def _imu(self, stamp: int, values: Array) -> Any:
        no_orientation = np.zeros(9)
        no_orientation[0] = -1.0  # by the definition of the message
        return self._make(
            IMU,
            header=self._header(stamp, _IMU_FRAME),
            orientation=self._axes("geometry_msgs/msg/Quaternion", "xyzw", (0.0, 0.0, 0.0, 1.0)),
            orientation_covariance=no_orientation,
            angular_velocity=self._vector(values[3:]),
            angular_velocity_covariance=np.zeros(9),
            linear_acceleration=self._vector(values[:3]),
            linear_acceleration_covariance=np.zeros(9),
        )

    def _pose(self, pose: Array) -> Any:
        position = self._axes("geometry_msgs/msg/Point", "xyz", pose[:3])
        orientation = self._axes("geometry_msgs/msg/Quaternion", "xyzw", pose[3:])
        return self._make("geometry_msgs/msg/Pose", position=position, orientation=orientation)

    def _vector(self, values: Array) -> Any:
        return self._axes("geometry_msgs/msg/Vector3", "xyz", values)

    def _axes(self, message_type: str, axes: str, values: Iterable[float]) -> Any:
        return self._make(message_type, **dict(zip(axes, map(float, values), strict=True)))

    def _header(self, stamp: int, frame: str) -> Any:
        time = self._make("builtin_interfaces/msg/Time", sec=stamp // 1_000_000_000, nanosec=stamp % 1_000_000_000)
        return self._make("std_msgs/msg/Header", stamp=time, frame_id=frame)
