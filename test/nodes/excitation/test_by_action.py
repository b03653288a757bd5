"""The excitation node commands by FollowJointTrajectory goals: a controller that takes, rejects, gives up or dies."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from std_srvs.srv import SetBool
from support.nodes.armed_excitation import DEACTIVATE, PARAMETERS, SLACK_S, Setup
from support.nodes.control_messages import control_messages_environment
from support.nodes.fake_robot import FakeRobot
from support.nodes.ros_client import bench_in, hurry
from support.paths import SUPPORT

from inertid_ros.action import Excite

CONTROLLER = SUPPORT / "nodes" / "fake_controller.py"


class Controller:
    """The process of the fake controller."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        with (folder / "controller.log").open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(CONTROLLER)], stdout=output, stderr=subprocess.STDOUT, env=environment
            )
        hurry(self.process.pid)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def by_action(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[tuple[Setup, Controller]]:
    extra = control_messages_environment(messages_folder(pytestconfig))
    folder = tmp_path_factory.mktemp("by_action")
    controller = Controller({**os.environ, **extra}, folder)
    # A controller in Python takes its time for a goal.
    parameters = {**PARAMETERS, "command_interface": "follow_joint_trajectory", "execution.grid_s": 0.05}
    with FakeRobot() as robot, bench_in(folder) as bench:
        node = bench.start("excitation", parameters, environment=extra)
        try:
            yield Setup(bench, robot, node, folder / "plan.yaml"), controller
        finally:
            controller.kill()


def messages_folder(config: pytest.Config) -> Path:
    """Where a stand-in of control_msgs is kept between runs."""
    return Path(config.rootpath) / ".pytest_cache" / "control_msgs"


@pytest.fixture
def action(by_action: tuple[Setup, Controller]) -> tuple[Setup, Controller]:
    setup, controller = by_action
    assert setup.bench.call(SetBool, "controller/reject", SetBool.Request(data=False)).success
    return setup.ready(), controller


def test_cancel_brakes_by_a_goal(action: tuple[Setup, Controller]) -> None:
    setup, _ = action
    goal = setup.moving_fast()
    moment = time.monotonic()
    goal.cancel_goal_async()
    setup.expect(goal, Excite.Result.CANCELED, "canceled")
    setup.expect_rest(moment)
    assert setup.robot.stop_after(moment) - moment < 0.1 + SLACK_S
    assert all(message.points for _, message in setup.robot.commands), "the controller's own abrupt cancel was used"


def test_rejected_goals_move_nothing_and_accepted_ones_follow_the_plan(action: tuple[Setup, Controller]) -> None:
    setup, _ = action
    setup.bench.call(SetBool, "controller/reject", SetBool.Request(data=True))
    setup.expect(setup.excite(), Excite.Result.STOPPED, "rejects goals")
    assert setup.robot.at_rest and not setup.robot.commands
    setup.bench.call(SetBool, "controller/reject", SetBool.Request(data=False))
    setup.change_state(DEACTIVATE)
    setup.arm()
    result = setup.expect(setup.excite(), Excite.Result.SUCCEEDED, "done")
    assert result.max_tracking_error < 0.1
    setup.expect_rest(time.monotonic())
    assert np.abs(setup.robot.history.position).max() > 0.3
    np.testing.assert_allclose(setup.robot.history.position[-1], 0.0, atol=1e-9)
    for _, message in setup.robot.commands:
        assert max(map(abs, message.points[-1].velocities)) < 1e-9


def test_controller_that_begins_to_reject_leaves_the_robot_at_rest(action: tuple[Setup, Controller]) -> None:
    setup, _ = action
    goal = setup.moving_fast()
    setup.bench.call(SetBool, "controller/reject", SetBool.Request(data=True))
    moment = time.monotonic()
    setup.expect(goal, Excite.Result.STOPPED, "")
    setup.expect_rest(moment)


def test_controller_that_gives_up_stops_the_motion(action: tuple[Setup, Controller]) -> None:
    setup, _ = action
    goal = setup.moving_fast()
    assert setup.bench.trigger("controller/abort").success
    setup.expect(goal, Excite.Result.STOPPED, "")
    setup.bench.until(lambda: setup.robot.at_rest, "rest", 5.0)


def test_controller_that_dies_leaves_the_robot_at_rest(action: tuple[Setup, Controller]) -> None:
    """The last of these tests: the middleware takes a dead server for a living one for many seconds."""
    setup, controller = action
    goal = setup.moving_fast()
    controller.kill()
    moment = time.monotonic()
    setup.expect(goal, Excite.Result.STOPPED, "")
    setup.expect_rest(moment)
    # Nobody answers any more, though the middleware may not know yet.
    setup.change_state(DEACTIVATE)
    setup.arm()
    outcome = setup.bench.result(setup.excite()).result
    assert outcome.error_code in (Excite.Result.REFUSED, Excite.Result.STOPPED)
    assert "has not answered" in outcome.message or "no controller serves" in outcome.message
