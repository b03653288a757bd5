"""One goal of the excitation node under a fake clock, without ROS: what is waited for, refused, sent and stopped."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.robots.quick_plans import quick_plan

from inertid_ros.calibration.planning import ExcitationJob, PreparationProgress, PreparedMotion
from inertid_ros.config.excitation import MonitorOptions
from inertid_ros.config.nodes import MotionOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import ExcitationError
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.core.worker import WorkerError
from inertid_ros.excitation.execution.horizons import ExecutionProgress, ExecutionStage, Horizon, HorizonTable
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.nodes.excitation.goal import Ending, ExcitationGoal, GoalState
from inertid_ros.robot.model import RobotModel, load_model

TICK_S = 0.005
EPOCH_S = 1.8e9
REQUEST = {
    "plan_file": "", "prior": "", "motion": "", "duration": 0.0, "seed": 0, "speed_scale": 0.0, "lease": False,
    "plan_only": False, "held_out": False, "confirm": False,
}  # fmt: skip
URDF = """<robot name="pendulum">
  <link name="base"/>
  <link name="arm"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
    <inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="2" effort="60"/></joint>
</robot>"""


class Robot:
    """The robot as a goal sees it, and its own commander, on a clock that the test moves."""

    streams, is_behind, node_name = False, False, "/excitation"

    def __init__(self, model: RobotModel) -> None:
        self.model, self.now = model, 50.0
        self.has_states = self.recorder_writes = self.has_driver = True
        self.has_controller = self.has_controller_state = True
        self.refusal = self.recorder_problem = self.disturber = self.drivers = ""
        self.offset = 0.0  # of the measured position
        self.speed_scaling = 1.0
        self.commands: list[tuple[float, Horizon]] = []
        self.begun = 0

    @property
    def commander(self) -> "Robot":
        return self

    def begin(self) -> None:
        self.begun += 1

    def send(self, horizon: Horizon) -> None:
        self.commands.append((self.now, horizon))

    def lateness(self) -> str:
        return ""

    def stream(self, position: np.ndarray) -> None:
        """Nothing: horizons are sent."""

    def steady(self) -> float:
        return self.now

    def clock(self) -> float:
        return self.now + EPOCH_S

    def clock_ahead(self) -> float:
        return self.clock() - self.now

    def position(self) -> np.ndarray:
        return np.zeros(1) + self.offset

    def check_states(self, options: MonitorOptions) -> None:
        if self.refusal:
            raise ExcitationError(self.refusal)

    def check_recorder(self) -> None:
        if self.recorder_problem:
            raise ExcitationError(self.recorder_problem)

    def several_publishers(self) -> str:
        return self.drivers

    def interference(self) -> str:
        return self.disturber


class Planner:
    """In place of the other process; ready when the test says so."""

    def __init__(self, prepared: PreparedMotion) -> None:
        self.prepared, self.ready, self.canceled = prepared, False, False
        self.error: Exception | None = None
        self.progress: PreparationProgress | None = None
        self.jobs: list[ExcitationJob] = []

    def __call__(self, job: ExcitationJob) -> "Planner":
        self.jobs.append(job)
        return self

    def poll(self) -> bool:
        return self.ready

    def result(self) -> PreparedMotion:
        if self.error is not None:
            raise self.error
        return self.prepared

    def cancel(self) -> None:
        self.canceled = True


class Run:
    """A goal with everything around it."""

    def __init__(self, prepared: PreparedMotion, model: RobotModel, **request: object) -> None:
        self.robot, self.planner = Robot(model), Planner(prepared)
        self.request = SimpleNamespace(**{**REQUEST, **request})
        self.cancel = self.silent = False
        self.goal: ExcitationGoal | None = None

    def begin(self) -> ExcitationGoal:
        self.goal = ExcitationGoal(self.request, MotionOptions(), RobotOptions(), self.robot, self.planner)
        return self.goal

    def run(self, seconds: float) -> GoalState:
        """Tick until the time is over or the goal has ended; a joint state follows the command at every tick."""
        end = self.robot.now + seconds
        state = self.goal.state
        while self.robot.now < end and state is not GoalState.ENDED:
            self.robot.now += TICK_S
            supervisor = self.goal.supervisor
            if supervisor is not None and not self.silent:
                position, now = supervisor.commanded(self.robot.now), self.robot.now
                supervisor.update(now + EPOCH_S, now + EPOCH_S, now, position, np.zeros(1))
            state = self.goal.tick(self.cancel)
        return state

    def executing(self) -> ExcitationGoal:
        """A goal that moves for half a second already."""
        goal = self.begin()
        self.planner.ready = True
        self.run(0.5)
        assert goal.state is GoalState.EXECUTING
        return goal


@pytest.fixture(scope="module")
def model() -> RobotModel:
    return load_model(URDF)


@pytest.fixture(scope="module")
def prepared(model: RobotModel) -> PreparedMotion:
    limits = motion_limits(model)
    plan = replace(quick_plan(limits, np.zeros(1), 3), condition_number=12.5)
    return PreparedMotion(plan, 0.0, HorizonTable(plan, limits))


@pytest.fixture
def run(prepared: PreparedMotion, model: RobotModel) -> Run:
    return Run(prepared, model)


def test_a_goal_plans_moves_and_ends_at_rest(run: Run) -> None:
    goal = run.begin()
    assert goal.state is GoalState.COLLECTING and goal.progress is None
    run.run(0.01)
    assert goal.state is GoalState.PLANNING
    run.planner.progress = PreparationProgress(0.5, 20.0)
    assert goal.progress == PreparationProgress(0.5, 20.0)
    run.planner.ready = True
    run.run(0.1)
    assert goal.state is GoalState.EXECUTING and goal.supervisor.moving
    assert isinstance(goal.progress, ExecutionProgress) and goal.progress.stage is ExecutionStage.MOVING
    run.run(60.0)
    assert goal.state is GoalState.ENDED
    assert goal.outcome.ending is Ending.SUCCEEDED and goal.outcome.fault == ""
    assert goal.outcome.condition_number == 12.5
    assert goal.outcome.duration == pytest.approx(run.planner.prepared.plan.duration + 0.3, abs=0.05)
    assert goal.outcome.max_tracking_error < 1e-6  # stamps are rounded to 0.2 us
    for _, horizon in run.robot.commands:
        assert np.abs(horizon.velocity[-1]).max() < 1e-9


def test_plan_only_moves_nothing(prepared: PreparedMotion, model: RobotModel) -> None:
    run = Run(prepared, model, plan_only=True)
    run.robot.recorder_writes = False
    goal = run.begin()
    run.planner.ready = True
    run.run(1.0)
    assert goal.outcome.ending is Ending.SUCCEEDED and "did not move" in goal.outcome.message
    assert goal.prepared is prepared and not run.robot.commands


def test_a_controller_is_waited_for_until_it_is_discovered(run: Run) -> None:
    run.robot.has_controller = False
    goal = run.begin()
    run.run(2.7)
    assert goal.state is GoalState.COLLECTING
    run.robot.has_controller = True
    run.run(0.02)
    assert goal.state is GoalState.PLANNING


def test_a_driver_that_was_started_again_is_waited_for(run: Run) -> None:
    run.robot.drivers = "/driver, /driver"
    goal = run.begin()
    run.run(2.1)
    assert goal.state is GoalState.COLLECTING
    run.robot.drivers = ""
    run.run(0.02)
    assert goal.state is GoalState.PLANNING


def test_a_controller_that_does_not_come_is_told(run: Run) -> None:
    run.robot.has_controller, run.robot.disturber = False, "nobody subscribes"
    goal = run.begin()
    run.run(9.9)
    assert goal.state is GoalState.COLLECTING
    run.run(0.2)
    assert goal.outcome.ending is Ending.REFUSED and "nobody subscribes" in goal.outcome.message


def test_a_controller_that_slows_down_is_refused(run: Run) -> None:
    run.robot.speed_scaling = 0.5
    goal = run.begin()
    run.run(1.0)
    assert goal.outcome.ending is Ending.REFUSED and "speed scaling is 50 %" in goal.outcome.message
    assert not run.robot.commands


def test_what_a_motion_does_not_excite_is_told_with_the_result(prepared: PreparedMotion, model: RobotModel) -> None:
    finding = Finding("not_excited", Severity.CARE, "condition number 900: mostly of arm.mcx", "plan longer")
    run = Run(replace(prepared, findings=(finding,)), model, plan_only=True)
    goal = run.begin()
    run.planner.ready = True
    run.run(1.0)
    assert goal.outcome.message.endswith(f"the robot did not move; warning: {finding}")


def test_request_and_parameters_make_the_job(prepared: PreparedMotion, model: RobotModel) -> None:
    model = replace(model, folder=Path("robots"))
    run = Run(prepared, model, motion="bspline", duration=12.0, seed=7, speed_scale=0.5, prior="results")
    run.begin()
    run.run(0.01)
    job = run.planner.jobs[0]
    assert (job.excitation.kind, job.excitation.duration_s, job.excitation.seed) == ("bspline", 12.0, 7)
    assert (job.speed_scale, job.prior, job.urdf, job.folder) == (0.5, "results", model.urdf, Path("robots"))


def test_several_drivers_are_named_before_what_their_states_look_like(run: Run) -> None:
    goal = run.begin()
    run.robot.drivers, run.robot.refusal = "/driver and /bench publish joint_states", "moves at 0.332 rad/s already"
    run.run(60.0)
    assert goal.outcome.ending is Ending.REFUSED
    assert goal.outcome.message == "/driver and /bench publish joint_states (the robot did not move)"


@pytest.mark.parametrize(
    ("attribute", "message"),
    [("refusal", "no fresh joint states"), ("disturber", "bench commands the robot"),
     ("recorder_problem", "the recorder does not confirm")],
)  # fmt: skip
@pytest.mark.parametrize("when", ["before planning", "before moving"])
def test_what_must_not_move_is_refused(run: Run, attribute: str, message: str, when: str) -> None:
    goal = run.begin()
    if when == "before moving":
        run.run(0.01)
        run.planner.ready = True
    setattr(run.robot, attribute, message)
    run.run(10.2)
    assert goal.outcome.ending is Ending.REFUSED
    assert goal.outcome.message == f"{message} (the robot did not move)"
    assert not run.robot.commands
    assert len(run.planner.jobs) == (when == "before moving")


@pytest.mark.parametrize(("field", "value"), [("speed_scale", 1.5), ("speed_scale", -1.0), ("duration", np.inf)])
def test_impossible_requests_are_refused(prepared: PreparedMotion, model: RobotModel, field: str, value: float) -> None:
    run = Run(prepared, model, **{field: value})
    goal = run.begin()
    run.run(0.1)
    assert goal.outcome.ending is Ending.REFUSED and field in goal.outcome.message


def test_a_robot_that_moved_meanwhile_is_refused(run: Run) -> None:
    goal = run.begin()
    run.run(0.01)
    run.robot.offset, run.planner.ready = 0.02, True
    run.run(0.1)
    assert goal.outcome.ending is Ending.REFUSED and "bring it closer" in goal.outcome.message


def test_missing_states_are_waited_for_ten_seconds_and_then_checked(run: Run) -> None:
    run.begin()
    run.robot.has_states = False
    assert run.run(9.9) is GoalState.COLLECTING
    assert run.run(0.2) is GoalState.PLANNING


def test_the_time_of_a_stalled_thread_is_no_wait(run: Run) -> None:
    run.begin()
    run.robot.has_states = False
    run.run(0.5)
    run.robot.now += 8.0
    assert run.run(9.3) is GoalState.COLLECTING
    assert run.run(0.2) is GoalState.PLANNING


def test_an_undiscovered_recorder_is_waited_for_ten_seconds(run: Run) -> None:
    goal = run.begin()
    run.robot.recorder_writes = False
    run.robot.recorder_problem = "the recorder does not confirm"
    assert run.run(9.9) is GoalState.COLLECTING
    run.run(0.2)
    assert goal.outcome.ending is Ending.REFUSED


def test_a_recorder_that_has_just_begun_may_say_so_later_here(run: Run) -> None:
    """Its client knows it by a service; the topic of this node may still hold the word of a former recorder."""
    run.begin()
    run.robot.recorder_writes = False
    assert run.run(9.5) is GoalState.COLLECTING
    run.robot.recorder_writes = True
    assert run.run(0.1) is GoalState.PLANNING


@pytest.mark.parametrize("how", ["cancel", "stop", "failure"])
def test_planning_ends_without_motion(run: Run, how: str) -> None:
    goal = run.begin()
    run.run(0.01)
    if how == "cancel":
        run.cancel = True
    elif how == "stop":
        goal.stop("deactivated")
    else:
        run.planner.error, run.planner.ready = WorkerError("planning: out of memory"), True
    run.run(0.1)
    message = {"cancel": "canceled; the robot did not move", "stop": "deactivated (the robot did not move)",
               "failure": "planning: out of memory (the robot did not move)"}[how]  # fmt: skip
    assert goal.outcome.message == message
    assert goal.outcome.ending is (Ending.CANCELED if how == "cancel" else Ending.REFUSED)
    assert run.planner.canceled == (how != "failure")
    assert not run.robot.commands


def test_cancel_brakes_and_does_not_fault(run: Run) -> None:
    goal = run.executing()
    run.cancel = True
    begin = run.robot.now
    run.run(5.0)
    assert goal.outcome.ending is Ending.CANCELED and goal.outcome.fault == ""
    assert run.robot.now - begin < run.planner.prepared.table.longest + 0.35


def test_silence_is_left_to_the_last_horizon_and_ends_the_goal_after_a_wait(run: Run) -> None:
    goal = run.executing()
    run.silent = True
    begin = run.robot.now
    run.run(8.0)
    assert goal.outcome.ending is Ending.STOPPED and "no joint state" in goal.outcome.fault
    assert all(at <= begin for at, _ in run.robot.commands)


def test_stop_brakes_at_once(run: Run) -> None:
    goal = run.executing()
    count = len(run.robot.commands)
    goal.stop("stopped on request")
    assert len(run.robot.commands) == count + 1
    run.run(5.0)
    assert goal.outcome.ending is Ending.STOPPED and goal.outcome.fault == "stopped on request"
    assert "arm again" in goal.outcome.message


def test_nothing_moves_for_a_client_that_was_killed_while_the_motion_was_planned(
    prepared: PreparedMotion, model: RobotModel
) -> None:
    run = Run(prepared, model, lease=True)
    goal = run.begin()
    for _ in range(10):
        run.run(0.1)
        goal.lease.renew(run.robot.now)
    run.run(10.0)
    run.planner.ready = True
    run.run(5.0)
    assert goal.outcome.ending is Ending.REFUSED and not run.robot.commands
    assert "the lease was not renewed for 10.4" in goal.outcome.message and "did not move" in goal.outcome.message


def test_renewals_that_wait_behind_a_large_plan_still_count(prepared: PreparedMotion, model: RobotModel) -> None:
    run = Run(prepared, model, lease=True)
    goal = run.begin()
    run.run(1.0)
    run.planner.ready = True
    run.robot.now += 1.0  # nothing else ran
    run.run(0.1)
    assert goal.state is GoalState.CHECKING and not run.robot.commands
    goal.lease.renew(run.robot.now)
    run.run(0.1)
    assert goal.state is GoalState.EXECUTING


def test_lost_lease_stops_the_motion(prepared: PreparedMotion, model: RobotModel) -> None:
    run = Run(prepared, model, lease=True)
    goal = run.begin()
    run.planner.ready = True
    run.run(5.0)
    assert goal.outcome.ending is Ending.STOPPED and "lease" in goal.outcome.fault


def test_a_late_tick_is_not_made_up_for(run: Run) -> None:
    goal = run.executing()
    run.robot.now += 1.0
    count = len(run.robot.commands)
    run.run(0.3)
    assert len(run.robot.commands) <= count and goal.supervisor.interruption
    run.run(1.0)
    assert not goal.supervisor.interruption and len(run.robot.commands) > count  # it goes on from where it rests
