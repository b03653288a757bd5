"""The excitation node moves the fake robot by trajectories: what moves it, and what stops it."""

import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from action_msgs.msg import GoalStatus
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from std_msgs.msg import Empty
from support.latencies import Latencies
from support.nodes.armed_excitation import (
    DEACTIVATE,
    HORIZON_S,
    LONGEST_BRAKE_S,
    PARAMETERS,
    ArmedExcitation,
    excitation_in,
)
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.action import Excite
from inertid_ros.msg import ExcitationStatus
from inertid_ros.ros.topics import COMMAND

pytestmark = pytest.mark.realtime


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, all_latencies: Latencies) -> Iterator[ArmedExcitation]:
    """One node and one robot for all tests that leave them alive."""
    with excitation_in(tmp_path_factory.mktemp("excitation"), all_latencies) as excitation:
        yield excitation


@pytest.fixture
def excitation(shared: ArmedExcitation, latencies: Latencies) -> ArmedExcitation:
    """Armed, at rest, without faults."""
    return shared.ready()


def test_motion_runs_within_limits_and_ends_at_rest(excitation: ArmedExcitation) -> None:
    excitation.expect(excitation.excite(), Excite.Result.SUCCEEDED, "done")
    record = excitation.expect_rest()
    assert np.abs(record.position).max() > 0.3
    np.testing.assert_allclose(record.position[-1], 0.0, atol=1e-9)
    assert excitation.status[-1].state == ExcitationStatus.READY
    excitation.latencies.add("command period", *np.diff([command.received for command in record.commands]))


def test_in_motion_other_goals_are_rejected_and_parameters_cannot_change(excitation: ArmedExcitation) -> None:
    goal = excitation.moving_fast()
    assert not excitation.excite().accepted
    value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=5.0)
    request = SetParameters.Request(parameters=[Parameter(name="monitor.lease_timeout_s", value=value)])
    refused = excitation.ros.call(SetParameters, "excitation/set_parameters", request).results[0]
    assert not refused.successful and "active" in refused.reason
    excitation.expect(goal, Excite.Result.SUCCEEDED, "done")
    excitation.expect_rest()
    assert excitation.change_state(DEACTIVATE)
    assert excitation.ros.call(SetParameters, "excitation/set_parameters", request).results[0].successful
    value.double_value = PARAMETERS["monitor.lease_timeout_s"]
    assert excitation.ros.call(SetParameters, "excitation/set_parameters", request).results[0].successful


def test_states_that_stop_stop_the_robot_until_it_is_armed_again(excitation: ArmedExcitation) -> None:
    goal = excitation.moving_fast()
    excitation.robot.set_faults(silent=True)
    excitation.expect(goal, Excite.Result.STOPPED, "no joint state")
    record = excitation.expect_rest()
    assert record.rested_at < record.last_state_at + HORIZON_S + LONGEST_BRAKE_S
    excitation.robot.set_faults()
    excitation.ros.spin(0.4)
    before = len(excitation.robot.record().commands)
    excitation.expect(excitation.excite(), Excite.Result.REFUSED, "stopped")
    assert len(excitation.robot.record().commands) == before
    excitation.arm()
    excitation.expect(excitation.excite(plan_only=True), Excite.Result.SUCCEEDED, "did not move")


def test_states_that_are_no_numbers_stop_the_robot(excitation: ArmedExcitation) -> None:
    goal = excitation.moving_fast()
    moment = time.monotonic()
    excitation.robot.set_faults(not_finite=True)
    excitation.expect(goal, Excite.Result.STOPPED, "rejected")
    assert excitation.expect_rest().rested_at < moment + HORIZON_S + LONGEST_BRAKE_S


def test_tracking_error_stops_the_robot(excitation: ArmedExcitation) -> None:
    """Nothing more is sent: the robot might as well be behind because its controller's speed is scaled."""
    goal = excitation.moving_fast()
    for share in np.linspace(0, 1, 30):  # as a collision would build up, without a jump
        excitation.robot.set_faults(disturbance=np.array([0.15 * share, 0.0]))
    excitation.expect(goal, Excite.Result.STOPPED, "commanded position")
    excitation.expect_rest()


def test_cancel_at_speed_brakes_within_limits_and_stays_armed(excitation: ArmedExcitation) -> None:
    goal = excitation.moving_fast()
    moment = time.monotonic()
    goal.cancel_goal_async()
    outcome = excitation.ros.result(goal)
    assert outcome.status == GoalStatus.STATUS_CANCELED
    assert outcome.result.error_code == Excite.Result.CANCELED
    stop = excitation.expect_rest().stop_after(moment) - moment
    excitation.latencies.add("stop after a cancel", stop)
    assert stop < HORIZON_S
    # A second goal begins where the first ended.
    excitation.expect(excitation.excite(speed_scale=0.8), Excite.Result.SUCCEEDED, "done")
    excitation.expect_rest()


def test_lost_lease_stops_the_robot(excitation: ArmedExcitation) -> None:
    """The client renews the lease from a thread, then is gone."""
    lease = excitation.ros.node.create_publisher(Empty, "excitation/lease", COMMAND)
    gone = threading.Event()

    def renew() -> None:
        while not gone.wait(0.05):
            lease.publish(Empty())

    thread = threading.Thread(target=renew)
    thread.start()
    try:
        goal = excitation.moving_fast(lease=True)
    finally:
        gone.set()
        thread.join()
    excitation.expect_stop(goal, "lease", "the last lease", time.monotonic())


def test_paused_node_leaves_the_robot_at_rest_and_goes_on_from_there(excitation: ArmedExcitation) -> None:
    goal = excitation.moving_fast()
    excitation.node.signal(signal.SIGSTOP)
    try:
        excitation.expect_rest()
    finally:
        excitation.node.signal(signal.SIGCONT)
    excitation.expect(goal, Excite.Result.SUCCEEDED, "waited 1 times at rest")
    excitation.expect_rest()


def test_deactivation_in_motion_brakes(excitation: ArmedExcitation) -> None:
    goal = excitation.moving_fast()
    moment = time.monotonic()
    assert excitation.change_state(DEACTIVATE)
    excitation.expect_stop(goal, "deactivated", "deactivation", moment)
    excitation.expect(excitation.excite(), Excite.Result.REFUSED, "not armed")


def test_stop_service_latches(excitation: ArmedExcitation) -> None:
    goal = excitation.moving_fast()
    moment = time.monotonic()
    assert excitation.ros.trigger("excitation/stop").success
    excitation.expect_stop(goal, "request", "a call of the stop service", moment)
    excitation.expect(excitation.excite(), Excite.Result.REFUSED, "stopped on request")


def test_another_commander_stops_the_robot(excitation: ArmedExcitation) -> None:
    goal = excitation.moving_fast()
    moment = time.monotonic()
    rogue = excitation.ros.node.create_publisher(JointTrajectory, "joint_trajectory", COMMAND)
    excitation.expect_stop(goal, "test_client also commands the robot", "another commander", moment)
    excitation.ros.node.destroy_publisher(rogue)
