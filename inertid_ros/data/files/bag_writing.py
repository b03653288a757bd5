"""Write recordings as rosbag2 bags, with the messages that a robot would have published."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import OutputError
from inertid_ros.core.outputs import check_directory, move_directory, scratch_beside
from inertid_ros.data import messages as msg
from inertid_ros.data.recording import Recording

from .bag_backends import BagMessage, Storage, bag_backend

_OUTPUT_KIND = "recording"
_WORLD_FRAME, _BASE_FRAME, _IMU_FRAME = "world", "base", "imu"  # frame names in the messages


def write_bag(recording: Recording, path: str | Path, storage: Storage = "mcap", start_ns: int = 10**18,
        overwrite: bool = False) -> Path:
    """Write a recording as a rosbag2 directory ``path``; the directory appears when it is complete.

    Topics are ``/joint_states``, ``/wrench/<frame>`` for every wrench, and for a free base ``/odometry`` (or ``/pose``
    without a twist, ``/twist`` without a pose) and ``/imu``. Measured accelerations are not written, because these
    messages have no field for them. Header stamps are ``start_ns`` plus the time from the first sample; ``overwrite``
    replaces a bag that this function wrote.

    Raises OutputError: ``path`` cannot be written, or has other content.
    Raises RecordingError: a library for bags is missing.
    """
    path, backend = Path(path), bag_backend()
    check_bag(path, overwrite or None)
    with scratch_beside(path) as scratch:
        # The file inside is named after its directory.
        try:
            with backend.create(scratch / path.name, storage, recorded_topics(recording)) as write:
                for message in recorded_messages(recording, start_ns):
                    write(message)
        except (OSError, RuntimeError) as error:  # rosbag2 only raises RuntimeError
            reason = (getattr(error, "strerror", None) or str(error) or error.__class__.__name__).splitlines()[0]
            raise OutputError(f"{path}: cannot be written ({reason}); choose another path") from None
        move_directory(scratch / path.name, path, _OUTPUT_KIND, overwrite or None)
    return path


def check_bag(path: str | Path, force: bool | None = None, inputs: Iterable[str | Path] = ()) -> None:
    """Check in advance that a bag can be written; see :func:`.outputs.check_directory`."""
    check_directory(path, _OUTPUT_KIND, force, inputs, file=f"{Path(path).name}_0.mcap")


class _Stream(NamedTuple):
    """One topic of a recording: values ``(N, k)`` by channel, frame of the header, names of joints or child frame."""

    topic: str
    type: str
    channels: dict[str, Array]
    frame: str = ""
    names: tuple[str, ...] = ()


def recorded_topics(recording: Recording) -> dict[str, str]:
    """Message type by topic, for a recording that is written as a bag."""
    return {stream.topic: stream.type for stream in _streams(recording)}


def recorded_messages(recording: Recording, start_ns: int) -> Iterator[BagMessage]:
    """Yield all samples as messages; the stamp of the first sample is ``start_ns``."""
    streams = _streams(recording)
    for row, nanoseconds in enumerate(np.rint((recording.time - recording.time[0]) * 1e9).astype(np.int64)):
        stamp = start_ns + int(nanoseconds)
        for stream in streams:
            values = {channel: rows[row] for channel, rows in stream.channels.items()}
            yield BagMessage(stream.topic, stamp, msg.encode(stream.type, stamp, values, stream.frame, stream.names))


def _streams(recording: Recording) -> list[_Stream]:
    velocity = np.zeros((len(recording), 0)) if recording.velocity is None else recording.velocity
    joints = {"position": recording.position, "velocity": velocity, "effort": recording.effort}
    streams = [_Stream("/joint_states", msg.JOINT_STATE, joints, "", recording.joint_names)]
    for frame, wrench in recording.wrenches.items():
        streams.append(_Stream(f"/wrench/{frame}", msg.WRENCH_STAMPED, {"wrench": wrench}, frame))
    pose, twist = recording.base_pose, recording.base_twist
    if pose is not None and twist is not None:
        base = {"base_pose": pose, "base_twist": twist}
        streams.append(_Stream("/odometry", msg.ODOMETRY, base, _WORLD_FRAME, (_BASE_FRAME,)))
    elif pose is not None:
        streams.append(_Stream("/pose", msg.POSE_STAMPED, {"base_pose": pose}, _WORLD_FRAME))
    elif twist is not None:
        streams.append(_Stream("/twist", msg.TWIST_STAMPED, {"base_twist": twist}, _BASE_FRAME))
    if recording.imu is not None:
        streams.append(_Stream("/imu", msg.IMU, {"imu": recording.imu}, _IMU_FRAME))
    return streams
