"""The excitation node commands by a stream of positions: it follows, stops, and never jumps."""

import signal
from collections.abc import Iterator

import numpy as np
import pytest
from support.nodes.armed_excitation import PARAMETERS, Setup
from support.nodes.fake_robot import FakeRobot
from support.nodes.ros_client import bench_in

from inertid_ros.action import Excite


@pytest.fixture(scope="module")
def by_stream(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    folder = tmp_path_factory.mktemp("by_stream")
    with FakeRobot() as robot, bench_in(folder) as bench:
        node = bench.start("excitation", {**PARAMETERS, "command_interface": "position_stream"})
        yield Setup(bench, robot, node, folder / "plan.yaml")


@pytest.fixture
def stream(by_stream: Setup) -> Setup:
    return by_stream.ready()


def test_streamed_positions_follow_the_plan_to_its_end(stream: Setup) -> None:
    stream.expect(stream.excite(), Excite.Result.SUCCEEDED, "done")
    assert np.abs(stream.robot.history.position).max() > 0.3
    np.testing.assert_allclose(stream.robot.history.position[-1], 0.0, atol=1e-9)
    assert not stream.robot.commands
    expect_no_jump(stream)


def test_states_that_stop_stop_the_stream(stream: Setup) -> None:
    goal = stream.moving_fast()
    stream.robot.silent = True
    stream.expect(goal, Excite.Result.STOPPED, "no joint state")
    stream.bench.until(lambda: stream.robot.at_rest, "rest", 5.0)
    expect_no_jump(stream)


@pytest.mark.parametrize("pause_s", [0.12, 1.5])
def test_paused_sender_does_not_jump_to_where_it_would_be(stream: Setup, pause_s: float) -> None:
    goal = stream.moving_fast()
    stream.node.signal(signal.SIGSTOP)
    stream.bench.spin(pause_s)
    stream.node.signal(signal.SIGCONT)
    stream.expect(goal, Excite.Result.STOPPED, "paused")
    stream.bench.until(lambda: stream.robot.at_rest, "rest", 5.0)
    expect_no_jump(stream)


def expect_no_jump(setup: Setup) -> None:
    """Neighbouring positions of the stream are no farther apart than the velocity limit allows, whatever the pause."""
    assert not setup.robot.problems, setup.robot.problems[0]
    positions = np.array([position for _, position in setup.robot.streamed])
    step = np.abs(np.diff(positions, axis=0)).max(axis=0)
    assert (step <= 0.055 * setup.robot.limits.velocity).all(), step
