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
from support.latencies import Latencies
from support.nodes.armed_excitation import HORIZON_S, PARAMETERS, ArmedExcitation, excitation_in
from support.nodes.control_messages import control_messages_environment
from support.nodes.processes import raise_priority
from support.paths import SUPPORT

from inertid_ros.action import Excite

pytestmark = pytest.mark.realtime
CONTROLLER = SUPPORT / "nodes" / "fake_controller.py"


class Controller:
    """The process of the fake controller."""

    def __init__(self, environment: dict[str, str], folder: Path) -> None:
        with (folder / "controller.log").open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, str(CONTROLLER)], stdout=output, stderr=subprocess.STDOUT, env=environment
            )
        raise_priority(self.process.pid)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config, all_latencies: Latencies
) -> Iterator[tuple[ArmedExcitation, Controller]]:
    # A stand-in of control_msgs is kept between runs.
    extra = control_messages_environment(Path(pytestconfig.rootpath) / ".pytest_cache" / "control_msgs")
    folder = tmp_path_factory.mktemp("by_action")
    controller = Controller({**os.environ, **extra}, folder)
    parameters = {
        **PARAMETERS,
        "command_interface": "follow_joint_trajectory",
        # A controller in Python takes its time for a goal.
        "execution.period_s": 0.1,
        "execution.latency_s": 0.1,
        # What the controller answers is what stops these motions, not where the robot is when it gives one up.
        "monitor.tracking_tolerance": 2.0,
        "monitor.stuck_distance": 2.0,
    }
    try:
        with excitation_in(folder, all_latencies, parameters, environment=extra) as excitation:
            yield excitation, controller
    finally:
        controller.kill()


@pytest.fixture
def excitation(shared: tuple[ArmedExcitation, Controller], latencies: Latencies) -> ArmedExcitation:
    excitation, _ = shared
    reject(excitation, False)
    return excitation.ready()


def reject(excitation: ArmedExcitation, wanted: bool) -> None:
    """Have the controller reject goals from now on, or accept them."""
    assert excitation.ros.call(SetBool, "controller/reject", SetBool.Request(data=wanted)).success


def test_cancel_brakes_by_a_goal(excitation: ArmedExcitation) -> None:
    goal = excitation.moving_fast()
    moment = time.monotonic()
    goal.cancel_goal_async()
    excitation.expect(goal, Excite.Result.CANCELED, "canceled")
    record = excitation.expect_rest()
    stop = record.stop_after(moment) - moment
    excitation.latencies.add("stop by an action goal after a cancel", stop)
    assert stop < HORIZON_S
    assert not record.holds, "the controller's own abrupt cancel was used"


def test_accepted_goals_follow_the_plan(excitation: ArmedExcitation) -> None:
    result = excitation.expect(excitation.excite(), Excite.Result.SUCCEEDED, "done")
    assert result.max_tracking_error < 0.1
    record = excitation.expect_rest()
    assert np.abs(record.position).max() > 0.3
    np.testing.assert_allclose(record.position[-1], 0.0, atol=1e-9)


def test_rejected_goals_move_nothing(excitation: ArmedExcitation) -> None:
    reject(excitation, True)
    excitation.expect(excitation.excite(), Excite.Result.STOPPED, "rejects goals")
    assert excitation.robot.at_rest and not excitation.robot.record().commands


def test_controller_that_begins_to_reject_leaves_the_robot_at_rest(excitation: ArmedExcitation) -> None:
    goal = excitation.moving_fast()
    reject(excitation, True)
    excitation.expect(goal, Excite.Result.STOPPED, "rejects goals")
    excitation.expect_rest()


def test_controller_that_gives_up_stops_the_motion(excitation: ArmedExcitation) -> None:
    goal = excitation.moving_fast()
    assert excitation.ros.trigger("controller/abort").success
    excitation.expect(goal, Excite.Result.STOPPED, "aborted the motion")
    excitation.ros.until(lambda: excitation.robot.at_rest, "rest")


def test_controller_that_dies_leaves_the_robot_at_rest(
    shared: tuple[ArmedExcitation, Controller], excitation: ArmedExcitation
) -> None:
    """The last of these tests, as it ends the controller."""
    goal = excitation.moving_fast()
    shared[1].kill()
    excitation.expect(goal, Excite.Result.STOPPED, "controller")
    excitation.expect_rest()
