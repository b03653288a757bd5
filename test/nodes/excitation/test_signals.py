"""The end of the excitation node, asked for or not, leaves the robot at rest."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.latencies import Latencies
from support.nodes.armed_excitation import ArmedExcitation, excitation_in

from inertid_ros.action import Excite

pytestmark = pytest.mark.realtime


@pytest.fixture
def excitation(tmp_path: Path, latencies: Latencies) -> Iterator[ArmedExcitation]:
    with excitation_in(tmp_path, latencies) as excitation:
        yield excitation.ready()


def test_killed_node_leaves_the_robot_at_rest(excitation: ArmedExcitation) -> None:
    excitation.moving_fast()
    moment = time.monotonic()
    excitation.node.signal(signal.SIGKILL)
    excitation.latencies.add("rest after a kill", excitation.expect_rest().rested_at - moment)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_bring_the_robot_to_rest_and_end_well(excitation: ArmedExcitation, number: int) -> None:
    goal = excitation.moving_fast()
    result = goal.get_result_async()
    moment = time.monotonic()
    excitation.node.signal(number)
    assert excitation.node.process.wait(30) == 0, excitation.node.log()
    assert excitation.robot.at_rest
    excitation.latencies.add("rest after a signal", excitation.expect_rest().rested_at - moment)
    excitation.ros.until(result.done, "result before the end")
    assert result.result().result.error_code == Excite.Result.STOPPED
