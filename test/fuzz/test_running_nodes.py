"""Running nodes answer whatever is sent to them; ``make bench`` sends much more."""

from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from support.fuzzing.running_nodes import fuzzed_nodes  # noqa: E402
from support.nodes.ros_client import FLOWS  # noqa: E402

pytestmark = FLOWS
INPUTS = 600


def test_random_messages_requests_and_goals_end_no_node_and_are_answered(tmp_path: Path) -> None:
    with fuzzed_nodes(tmp_path, 0) as fuzzer:
        fuzzer.run(INPUTS)
        fuzzer.check_end()
    assert fuzzer.counts["messages"] > INPUTS / 2 and fuzzer.counts["requests"] > INPUTS / 10
    assert fuzzer.filled
