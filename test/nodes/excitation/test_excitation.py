"""The excitation node against the judge: what moves, what stops, how fast, and what is refused."""

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
from support.nodes.armed_excitation import ACTIVATE, DEACTIVATE, PARAMETERS, SLACK_S, TIMEOUT_S, Setup
from support.nodes.fake_robot import FakeRobot
from support.nodes.ros_client import bench_in
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.action import Excite
from inertid_ros.msg import ExcitationStatus
from inertid_ros.ros.qos import COMMAND


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    """One node and one judge for all tests that leave them alive."""
    folder = tmp_path_factory.mktemp("excitation")
    with FakeRobot() as robot, bench_in(folder) as bench:
        yield Setup(bench, robot, bench.start("excitation", PARAMETERS), folder / "plan.yaml")


@pytest.fixture
def setup(shared: Setup) -> Setup:
    """Armed, at rest, without faults."""
    return shared.ready()


def test_motion_runs_within_limits_and_ends_at_rest(setup: Setup) -> None:
    goal = setup.excite()
    setup.expect(goal, Excite.Result.SUCCEEDED, "done")
    setup.expect_rest(time.monotonic())
    measured = setup.robot.history.position
    assert np.abs(measured).max() > 0.3
    np.testing.assert_allclose(measured[-1], 0.0, atol=1e-9)
    assert setup.status[-1].state == ExcitationStatus.READY
    # A second goal begins where the first ended.
    setup.expect(setup.excite(speed_scale=0.8), Excite.Result.SUCCEEDED, "done")
    setup.robot.check_limits()


def test_every_command_ends_at_rest(setup: Setup) -> None:
    setup.expect(setup.excite(), Excite.Result.SUCCEEDED, "done")
    for _, message in setup.robot.commands:
        last = message.points[-1]
        assert max(map(abs, last.velocities)) < 1e-9 and max(map(abs, last.accelerations)) < 1e-9


def test_not_armed_is_refused(setup: Setup) -> None:
    assert setup.change_state(DEACTIVATE)
    setup.expect_refusal("not armed")


def test_plan_only_publishes_the_plan_and_moves_nothing(setup: Setup) -> None:
    plans = setup.bench.listen(JointTrajectory, "excitation/plan")
    setup.expect(setup.excite(plan_only=True), Excite.Result.SUCCEEDED, "nothing moved")
    setup.bench.until(lambda: plans, "plan")
    assert list(plans[0].joint_names) == ["shoulder", "elbow"] and len(plans[0].points) > 100
    assert not setup.robot.commands


def test_second_goal_is_rejected_while_one_is_active(setup: Setup) -> None:
    goal = setup.moving_fast()
    assert not setup.excite().accepted
    setup.expect(goal, Excite.Result.SUCCEEDED, "done")
    setup.robot.check_limits()


def test_parameters_cannot_change_in_motion(setup: Setup) -> None:
    goal = setup.moving_fast()
    value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=0.1)
    request = SetParameters.Request(parameters=[Parameter(name="monitor.tracking_tolerance", value=value)])
    refused = setup.bench.call(SetParameters, "excitation/set_parameters", request).results[0]
    assert not refused.successful and "active" in refused.reason
    setup.expect(goal, Excite.Result.SUCCEEDED, "done")
    assert setup.bench.call(SetParameters, "excitation/set_parameters", request).results[0].successful


def test_stale_states_are_refused(setup: Setup) -> None:
    setup.robot.silent = True
    setup.bench.spin(0.5)
    setup.expect_refusal("no fresh joint states")


def test_old_stamps_are_refused(setup: Setup) -> None:
    setup.robot.stamp_offset_s = -1.0
    setup.bench.spin(0.5)
    setup.expect_refusal("stamped")


def test_recorder_that_does_not_confirm_is_a_refusal(setup: Setup) -> None:
    def require(wanted: bool) -> None:
        value = ParameterValue(type=ParameterType.PARAMETER_BOOL, bool_value=wanted)
        request = SetParameters.Request(parameters=[Parameter(name="require_recorder", value=value)])
        assert setup.bench.call(SetParameters, "excitation/set_parameters", request).results[0].successful

    require(True)
    setup.expect_refusal("the recorder does not confirm")
    require(False)


def test_plan_for_another_robot_is_refused(setup: Setup) -> None:
    text = setup.plan.read_text()
    setup.plan.write_text(text.replace("model_hash: ", "model_hash: 0000"))
    setup.expect_refusal("kinematics")


@pytest.mark.parametrize("damage", ["nan", "jump", "missing joint", "no file"])
def test_damaged_plans_are_refused(setup: Setup, damage: str) -> None:
    lines = setup.plan.read_text().splitlines()
    row = next(index for index, line in enumerate(lines) if line.startswith("  - [1.")) if damage != "no file" else 0
    if damage == "nan":
        lines[row] = lines[row].replace(lines[row].split(", ")[1], ".nan", 1)
    elif damage == "jump":
        lines[row] = lines[row].replace(lines[row].split(", ")[1], "1.5", 1)
    elif damage == "missing joint":
        lines = [line.replace("[shoulder, elbow]", "[shoulder]") for line in lines]
    setup.plan.write_text("\n".join(lines))
    if damage == "no file":
        setup.plan.unlink()
    setup.expect_refusal("plan")


def test_states_that_stop_stop_the_robot(setup: Setup) -> None:
    goal = setup.moving_fast()
    setup.robot.silent = True
    setup.expect(goal, Excite.Result.STOPPED, "no joint state")
    latency = setup.robot.stop_after(setup.robot.last_state_at) - setup.robot.last_state_at
    assert latency < TIMEOUT_S + 0.01 + SLACK_S
    setup.expect_rest(setup.robot.last_state_at)
    # Latched: states are back, but nothing moves until armed again.
    setup.robot.silent = False
    setup.bench.spin(0.4)
    before = len(setup.robot.commands)
    setup.expect(setup.excite(), Excite.Result.REFUSED, "stopped")
    assert len(setup.robot.commands) == before
    assert setup.change_state(DEACTIVATE) and setup.change_state(ACTIVATE)
    setup.expect(setup.excite(), Excite.Result.SUCCEEDED, "done")


@pytest.mark.parametrize(
    ("fault", "message"),
    [("frozen", "stuck"), ("not_finite", "rejected"), ("deaf", "commanded")],
)
def test_wrong_states_stop_the_robot(setup: Setup, fault: str, message: str) -> None:
    goal = setup.moving_fast()
    moment = time.monotonic()
    setattr(setup.robot, fault, True)
    setup.expect(goal, Excite.Result.STOPPED, message)
    if fault != "deaf":
        setup.expect_rest(moment)


def test_late_states_stop_the_robot(setup: Setup) -> None:
    goal = setup.moving_fast()
    setup.robot.stamp_offset_s = -0.5
    setup.expect(goal, Excite.Result.STOPPED, "too old")
    setup.expect_rest(time.monotonic())


def test_tracking_error_stops_the_robot(setup: Setup) -> None:
    goal = setup.moving_fast()
    for share in np.linspace(0, 1, 30):  # as a collision would build up, without a jump
        setup.robot.disturbance = np.array([0.15 * share, 0.0])
        setup.bench.spin(0.005)
    setup.expect(goal, Excite.Result.STOPPED, "commanded position")
    setup.expect_rest(time.monotonic())


def test_cancel_at_speed_brakes_within_limits_and_stays_armed(setup: Setup) -> None:
    goal = setup.moving_fast()
    moment = time.monotonic()
    goal.cancel_goal_async()
    outcome = setup.bench.result(goal)
    assert outcome.status == GoalStatus.STATUS_CANCELED
    assert outcome.result.error_code == Excite.Result.CANCELED
    setup.expect_rest(moment)
    assert setup.robot.stop_after(moment) - moment < 0.1 + SLACK_S
    setup.expect(setup.excite(), Excite.Result.SUCCEEDED, "done")


def test_lost_lease_stops_the_robot(setup: Setup) -> None:
    """The client renews the lease from a thread, then is gone."""
    lease = setup.bench.node.create_publisher(Empty, "excitation/lease", COMMAND)
    alive = threading.Event()

    def renew() -> None:
        while not alive.wait(0.05):
            lease.publish(Empty())

    thread = threading.Thread(target=renew)
    thread.start()
    try:
        goal = setup.moving_fast(lease=True)
        setup.bench.spin(0.6)
        assert goal.status in (GoalStatus.STATUS_ACCEPTED, GoalStatus.STATUS_EXECUTING)
    finally:
        alive.set()
        thread.join()
    moment = time.monotonic()
    setup.expect(goal, Excite.Result.STOPPED, "lease")
    setup.expect_rest(moment)
    assert setup.robot.stop_after(moment) - moment < 0.5 + SLACK_S


def test_paused_node_leaves_the_robot_at_rest_and_does_not_catch_up(setup: Setup) -> None:
    goal = setup.moving_fast()
    setup.node.signal(signal.SIGSTOP)
    moment = time.monotonic()
    setup.expect_rest(moment)
    position = np.array(setup.robot.history.position[-1])
    setup.node.signal(signal.SIGCONT)
    setup.expect(goal, Excite.Result.STOPPED, "")
    setup.bench.spin(0.5)
    np.testing.assert_allclose(setup.robot.history.position[-1], position, atol=1e-6)


def test_deactivation_in_motion_brakes(setup: Setup) -> None:
    goal = setup.moving_fast()
    moment = time.monotonic()
    assert setup.change_state(DEACTIVATE)
    setup.expect(goal, Excite.Result.STOPPED, "deactivated")
    setup.expect_rest(moment)
    setup.expect(setup.excite(), Excite.Result.REFUSED, "not armed")


def test_stop_service_latches(setup: Setup) -> None:
    goal = setup.moving_fast()
    moment = time.monotonic()
    assert setup.bench.trigger("excitation/stop").success
    setup.expect(goal, Excite.Result.STOPPED, "request")
    setup.expect_rest(moment)
    setup.expect(setup.excite(), Excite.Result.REFUSED, "stopped on request")


def test_another_commander_stops_the_robot(setup: Setup) -> None:
    goal = setup.moving_fast()
    moment = time.monotonic()
    rogue = setup.bench.node.create_publisher(JointTrajectory, "joint_trajectory", COMMAND)
    setup.expect(goal, Excite.Result.STOPPED, "bench commands the robot")
    setup.expect_rest(moment)
    setup.bench.node.destroy_publisher(rogue)
