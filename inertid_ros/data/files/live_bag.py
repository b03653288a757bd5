"""A rosbag2 directory that is complete at every moment, even if its writer is killed.

MCAP records are appended without chunks. Each commit writes the new records and a new end of the file (data end,
footer, magic) in one positional write that overwrites the previous end. So the file is a valid MCAP file after every
commit, and a killed process loses only uncommitted messages. ``metadata.yaml`` exists from the start and contains
``inertid_finalised: 'false'`` until the bag is closed.
"""

import contextlib
import math
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from inertid_ros.config.recordings import BagWritingOptions
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.outputs import check_directory

from . import mcap_format as mcap
from .bag_opening import FINALISED_KEY, INFORMATION_KEY, METADATA

_MIB = 2**20
_CHECK_PERIOD_S = 1.0
_REMEDY = "free space or choose another directory"


@dataclass
class _Statistics:
    counts: list[int]  # by topic
    start_ns: int = 0
    end_ns: int = 0

    def add(self, topic: int, stamp_ns: int) -> None:
        self.start_ns = min(self.start_ns, stamp_ns) if self.total else stamp_ns
        self.end_ns = max(self.end_ns, stamp_ns)
        self.counts[topic] += 1

    @property
    def total(self) -> int:
        return sum(self.counts)


class LiveBag:
    """Bag that is written while the robot moves. Use :meth:`write`, call :meth:`commit` often, then :meth:`close`.

    ``messages`` counts the committed messages.

    Raises OutputError: the path is in use or cannot be written.
    Raises RecordingError: the disk is nearly full or fails.
    """

    def __init__(self, path: str | Path, topics: list[mcap.Topic], options: BagWritingOptions | None = None) -> None:
        self.path = Path(path)
        self.options = options or BagWritingOptions()
        self._topics = topics
        self._records = bytearray()
        self._taken, self.messages = _Statistics([0] * len(topics)), 0
        self._committed_at = self._checked_at = math.nan  # on the steady clock of the caller [s]
        self._descriptor = -1
        self._create()
        self._end = 0
        self._records += mcap.header() + mcap.schemas_and_channels(topics)
        self.commit()

    @property
    def file(self) -> Path:
        """The MCAP file in the directory."""
        return self.path / f"{self.path.name}_0.mcap"

    def write(self, topic: int, stamp_ns: int, data: bytes) -> None:
        """Add one serialised message of the topic with index ``topic``; the next commit makes the message safe.

        Raises RecordingError if the message is larger than ``max_message_mb``.
        """
        if len(data) > self.options.max_message_mb * _MIB:
            raise RecordingError(
                f"{self._topics[topic].name}: message of {len(data)} bytes is above {self.options.max_message_mb} MiB;"
                " record it with another tool or raise max_message_mb")
        self._records += mcap.message(topic, self._taken.counts[topic], stamp_ns, data)
        self._taken.add(topic, stamp_ns)

    def commit(self) -> None:
        """Hand all messages so far to the operating system; the file is valid before and after.

        Raises RecordingError: the disk is full or fails; the file then ends with the last commit and stays readable.
        """
        if not self._records:
            return
        self._put(bytes(self._records) + mcap.end(self._end))
        self._end += len(self._records)
        self._records.clear()
        self.messages = self._taken.total

    def keep_up(self, now: float, period_s: float) -> None:
        """Commit every ``period_s``, check free space and save metadata every second; ``now`` is a steady clock [s]."""
        if math.isnan(self._committed_at):
            self._committed_at = self._checked_at = now
        if now - self._committed_at >= period_s:
            self.commit()
            self._committed_at = now
        if now - self._checked_at >= _CHECK_PERIOD_S:
            self._checked_at = now
            _check_space(self.path, self.options.min_free_mb)
            self.commit()
            self._save_metadata()

    def _save_metadata(self, finalised: bool = False) -> None:
        """Write the counts of committed messages into ``metadata.yaml``, marked as finalised or not."""
        scratch = self.path / f".{METADATA}"
        text = _metadata(self.file.name, self._topics, self._taken, finalised)
        try:
            with scratch.open("w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                if finalised:
                    os.fsync(stream.fileno())
            scratch.replace(self.path / METADATA)
        except OSError as error:
            raise self._failure(error) from None

    def close(self) -> None:
        """Commit, write summary and final ``metadata.yaml``, and synchronise all files to the disk.

        Raises RecordingError: the disk is full or fails; committed messages stay readable, and the bag is marked not
        finalised.
        """
        if self._descriptor < 0:
            return
        try:
            self.commit()
            statistics = mcap.statistics(self._taken.counts, self._taken.start_ns, self._taken.end_ns)
            self._put(mcap.end(self._end, mcap.schemas_and_channels(self._topics) + statistics))
            os.fsync(self._descriptor)
            self._save_metadata(finalised=True)
        except OSError as error:
            raise self._failure(error) from None
        finally:
            os.close(self._descriptor)
            self._descriptor = -1

    def remove(self) -> None:
        """Delete a closed bag without messages; raise RecordingError if that is not possible."""
        try:
            for file in (self.file, self.path / METADATA):
                file.unlink(missing_ok=True)
            self.path.rmdir()
        except OSError as error:
            raise self._failure(error) from None

    def _create(self) -> None:
        check_directory(self.path, "recording", file=self.file.name)
        if self.path.exists():
            raise RecordingError(f"{self.path}: exists already; choose another name or remove it")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _check_space(self.path.parent, self.options.min_free_mb)
            self.path.mkdir()
            self._descriptor = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise self._failure(error) from None
        self._save_metadata()

    def _put(self, content: bytes) -> None:
        """Write ``content`` over the end; after a failure restore the old end, in blocks that the file already has."""
        try:
            written = os.pwrite(self._descriptor, content, self._end)
            while written < len(content):  # a signal or a full disk; the next call fails on a full disk
                written += os.pwrite(self._descriptor, content[written:], self._end + written)
        except OSError as error:
            tail = mcap.end(self._end)
            with contextlib.suppress(OSError):  # readers of cut files find every committed record without this end
                os.pwrite(self._descriptor, tail, self._end)
                os.ftruncate(self._descriptor, self._end + len(tail))
            raise self._failure(error) from None

    def _failure(self, error: OSError) -> RecordingError:
        return RecordingError(f"{self.path}: cannot be written ({error.strerror}); {_REMEDY}")


def free_space_mb(directory: str | Path) -> float:
    """Free space [MiB] on the disk of a directory that exists or would be created; NaN if unknown."""
    path = Path(os.path.expanduser(directory)).absolute()
    try:
        while not path.exists():
            path = path.parent
        return shutil.disk_usage(path).free / _MIB
    except OSError:
        return math.nan


def _check_space(path: Path, min_free_mb: int) -> None:
    free = free_space_mb(path)
    if free < min_free_mb:
        raise RecordingError(f"{path}: only {int(free)} MiB free, {min_free_mb} MiB are required; {_REMEDY}")


def _metadata(file: str, topics: Sequence[mcap.Topic], statistics: _Statistics, finalised: bool) -> str:
    """Content of ``metadata.yaml`` for a bag of one MCAP file."""

    def extent() -> dict[str, object]:  # new objects each time: YAML would write a second use as a reference
        return {"starting_time": {"nanoseconds_since_epoch": statistics.start_ns},
            "duration": {"nanoseconds": statistics.end_ns - statistics.start_ns}, "message_count": statistics.total}

    topic_counts = []
    for topic, count in zip(topics, statistics.counts, strict=True):
        described = {"name": topic.name, "type": topic.type, "serialization_format": "cdr", "offered_qos_profiles": [],
            "type_description_hash": ""}
        topic_counts.append({"topic_metadata": described, "message_count": count})
    content = {"version": 9, "storage_identifier": "mcap", "relative_file_paths": [file], **extent(),
        "topics_with_message_count": topic_counts, "compression_format": "", "compression_mode": "",
        "files": [{"path": file, **extent()}], "custom_data": {FINALISED_KEY: str(finalised).lower()},
        "ros_distro": os.environ.get("ROS_DISTRO", "unknown")}
    return yaml.safe_dump({INFORMATION_KEY: content}, sort_keys=False)
