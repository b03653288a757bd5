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
        if recording.base_pose is not None:
            yield self._base(row, stamp, recording.base_pose, recording.base_twist)
        elif recording.base_twist is not None:
            twist = self._twist(recording.base_twist[row])
            yield "/twist", self._make(TWIST_STAMPED, header=self._header(stamp, _BASE_FRAME), twist=twist)
        if recording.imu is not None:
            yield "/imu", self._imu(row, stamp, recording.imu)

    def _base(self, row: int, stamp: int, poses: Array, twists: Array | None) -> tuple[str, Any]:
        header = self._header(stamp, _WORLD_FRAME)
        pose = self._make(
            "geometry_msgs/msg/Pose",
            position=self._make("geometry_msgs/msg/Point", **dict(zip("xyz", map(float, poses[row, :3]), strict=True))),
            orientation=self._quaternion(poses[row, 3:]),
        )
        if twists is None:
            return "/pose", self._make(POSE_STAMPED, header=header, pose=pose)
        twist = self._twist(twists[row])
        covariance = np.zeros(36)  # unknown
        return "/odometry", self._make(
            ODOMETRY,
            header=header,
            child_frame_id=_BASE_FRAME,
            pose=self._make("geometry_msgs/msg/PoseWithCovariance", pose=pose, covariance=covariance),
            twist=self._make("geometry_msgs/msg/TwistWithCovariance", twist=twist, covariance=covariance),
        )

    def _twist(self, twist: Array) -> Any:
        return self._make("geometry_msgs/msg/Twist", linear=self._vector(twist[:3]), angular=self._vector(twist[3:]))

    def _imu(self, row: int, stamp: int, imu: Array) -> Any:
        no_orientation = np.zeros(9)
        no_orientation[0] = -1.0  # by the definition of the message
        return self._make(
            IMU,
            header=self._header(stamp, _IMU_FRAME),
            orientation=self._quaternion(np.array([0.0, 0.0, 0.0, 1.0])),
            orientation_covariance=no_orientation,
            angular_velocity=self._vector(imu[row, 3:]),
            angular_velocity_covariance=np.zeros(9),
            linear_acceleration=self._vector(imu[row, :3]),
            linear_acceleration_covariance=np.zeros(9),
        )

    def _vector(self, values: Array) -> Any:
        return self._make("geometry_msgs/msg/Vector3", **dict(zip("xyz", map(float, values), strict=True)))

    def _quaternion(self, values: Array) -> Any:
        return self._make("geometry_msgs/msg/Quaternion", **dict(zip("xyzw", map(float, values), strict=True)))

    def _header(self, stamp: int, frame: str) -> Any:
        time = self._make("builtin_interfaces/msg/Time", sec=stamp // 1_000_000_000, nanosec=stamp % 1_000_000_000)
        return self._make("std_msgs/msg/Header", stamp=time, frame_id=frame)
