"""The end of the excitation node, asked for or not, leaves the robot at rest."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.nodes.armed_excitation import HORIZON_S, SLACK_S, Setup, armed_in

from inertid_ros.action import Excite


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Setup]:
    with armed_in(tmp_path) as setup:
        yield setup


def test_killed_node_leaves_the_robot_at_rest(own: Setup) -> None:
    own.moving_fast()
    own.node.signal(signal.SIGKILL)
    moment = time.monotonic()
    own.expect_rest(moment)
    longest = HORIZON_S + 0.02 + 1.2  # braking from full speed along this plan
    assert own.robot.rest_after(moment) - moment < longest + SLACK_S


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_bring_the_robot_to_rest_and_end_well(own: Setup, number: int) -> None:
    goal = own.moving_fast()
    result = goal.get_result_async()
    moment = time.monotonic()
    own.node.signal(number)
    assert own.node.process.wait(10) == 0, own.node.log()
    assert own.robot.at_rest
    own.expect_rest(moment)
    own.bench.until(result.done, "result before the end", 2.0)
    assert result.result().result.error_code == Excite.Result.STOPPED
