"""What the recorder's statuses say about topics and the disk, without a running node."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from inertid_ros.config.nodes import RecorderOptions  # noqa: E402
from inertid_ros.data.messages import JOINT_STATE, WRENCH_STAMPED  # noqa: E402
from inertid_ros.data.screening.live_watch import StreamReport  # noqa: E402
from inertid_ros.nodes.recorder import TopicState, disk_status, topic_status  # noqa: E402
from inertid_ros.nodes.recording_session import Source  # noqa: E402
from inertid_ros.ros.conversions import stamp_of_serialized  # noqa: E402
from inertid_ros.ros.diagnostics import ERROR, OK, STALE, WARN  # noqa: E402

GOOD = StreamReport(1000, False, 1000.0, 0, 0.0012, 0.0003, 0.0005, ())
ONE, NONE = TopicState(1, ""), TopicState(0, "/hand has no publisher")


@pytest.mark.parametrize(
    ("state", "report", "level", "message"),
    [
        (ONE, GOOD, OK, "1000 Hz"),
        (NONE, replace(GOOD, silent=True), STALE, "has no publisher"),
        (ONE, replace(GOOD, silent=True), STALE, "no message arrives"),
        (TopicState(1, "/x publishes /hand as Y"), GOOD, ERROR, "as Y"),
        (TopicState(2, ""), GOOD, WARN, "2 publishers"),
        (ONE, replace(GOOD, delay_s=-0.5), WARN, "check the clocks"),
        (ONE, replace(GOOD, gaps=1), WARN, "gaps"),
        (ONE, replace(GOOD, saturated=(2,)), WARN, "force z at the largest value"),
    ],
)
def test_topics(state: TopicState, report: StreamReport, level: bytes, message: str) -> None:
    status = topic_status(Source("/hand", WRENCH_STAMPED), state, report, ())
    assert status.aspect == "topic /hand" and status.level == level and message in status.message


def test_saturated_efforts_are_told_by_joint() -> None:
    status = topic_status(Source("/joint_states", JOINT_STATE), ONE, replace(GOOD, saturated=(1,)), ["a", "b"])
    assert status.values["Saturated"] == "b"


def test_disk(tmp_path: Path) -> None:
    assert disk_status(RecorderOptions(directory=str(tmp_path / "a" / "b"), min_free_mb=1)).level == OK
    status = disk_status(RecorderOptions(directory=str(tmp_path), min_free_mb=10**7))
    assert status.level == ERROR and "below min_free_mb" in status.message
    assert disk_status(RecorderOptions(write_bag=False, min_free_mb=10**7)).level == OK


def test_stamps_are_read_from_either_order_of_bytes_and_cut_messages_have_none() -> None:
    little = bytes([0, 1, 0, 0]) + (3).to_bytes(4, "little") + (500).to_bytes(4, "little")
    big = bytes([0, 0, 0, 0]) + (3).to_bytes(4, "big") + (500).to_bytes(4, "big")
    assert stamp_of_serialized(little) == stamp_of_serialized(big) == 3_000_000_500
    assert stamp_of_serialized(little[:11]) == 0
