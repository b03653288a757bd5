"""Supervisor and robot in a loop under a given time, with the product's own parameters: every fault stops the robot.

The robot follows what it is sent as a JointTrajectoryController does, and reports its state at 200 Hz. States and
commands are each a millisecond on their way.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from support.robots.quick_plans import quick_plan, simple_limits

from inertid_ros.config.excitation import MonitorOptions
from inertid_ros.excitation.execution.horizons import Horizon, HorizonTable
from inertid_ros.excitation.execution.monitor import Lease, StateMonitor
from inertid_ros.excitation.execution.supervisor import Supervisor
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.simulation.controller import Follower

PERIOD_S, TICK_S, DELAY_S = 0.005, 0.005, 0.001
EPOCH = 1.8e9  # ROS time minus steady time
BEGIN, FAULT_AT = 50.0, 53.0
LIMITS = simple_limits(2)
TABLE = HorizonTable(quick_plan(LIMITS, np.zeros(2), 1), LIMITS)


@dataclass
class Robot:
    """What is wrong with it, and what it did."""

    silent: bool = False
    frozen: bool = False
    deaf: bool = False
    late: str = ""  # what the commander says of commands that were not taken
    not_finite: bool = False
    effort: float = 0.0
    stamp_offset: float = 0.0
    clock_offset: float = 0.0  # the robot's clock has stepped, so the stamps of states and of commands
    node_clock_offset: float = 0.0
    drift: float = 0.0  # of the reported position since the fault [rad/s]
    period: float = PERIOD_S
    paused_until: float = 0.0  # the node does not run
    renews: bool = True  # the client renews its lease
    trace: list[tuple] = field(default_factory=list)


def fault(**values: object) -> Callable[[Robot], None]:
    return lambda robot: robot.__dict__.update(values)


class Commands:
    """Hands horizons on with the time at which they are sent."""

    streams = False

    def __init__(self, send: Callable[[Horizon, float], None]) -> None:
        self.now, self._send, self.late = BEGIN, send, ""

    @property
    def is_behind(self) -> bool:
        return bool(self.late)

    def begin(self) -> None:
        """Nothing to forget."""

    def send(self, horizon: Horizon) -> None:
        self._send(horizon, self.now)

    def lateness(self) -> str:
        return self.late

    def stream(self, position: np.ndarray) -> None:
        """Nothing: horizons are sent."""


def run(
    change: Callable[[Robot], None],
    action: Callable[[Supervisor, float], object] | None = None,
    later: tuple[float, Callable[[Robot], None]] | None = None,
):
    """A motion with a change of the robot, or an action of the supervisor, at FAULT_AT; supervisor, robot, stop.

    What changes ``later`` does so that many seconds after it.

    The stop is when the first command after FAULT_AT reached the robot that ends before those of before did.
    """
    robot, follower, options = Robot(), Follower(TABLE.plan.start), MonitorOptions()
    limits = TABLE.limits
    watch = StateMonitor(limits.joint_names, limits, options, BEGIN)
    lease = Lease(options.lease_timeout_s, BEGIN)
    ends, stop, frozen, due = [np.inf], np.nan, TABLE.plan.start, BEGIN
    changed, rng = False, np.random.default_rng(0)

    def send(horizon: Horizon, now: float) -> None:
        nonlocal stop
        start = horizon.stamp - EPOCH - robot.clock_offset
        start = now + DELAY_S if np.isnan(start) else start
        points = PiecewiseQuintic(horizon.time_from_start, horizon.position, horizon.velocity, horizon.acceleration)
        if not robot.deaf:
            follower.follow(points, now + DELAY_S, start)
        end = start + horizon.time_from_start[-1]
        if now >= FAULT_AT and np.isnan(stop) and end < ends[-1] - 0.02:
            stop = now + DELAY_S
        ends.append(end)

    commands = Commands(send)
    node = Supervisor(TABLE, watch, lease, commands)
    node.start(BEGIN, EPOCH)
    for now in np.arange(BEGIN + TICK_S, BEGIN + TABLE.plan.duration + 6.0, TICK_S):
        if now >= FAULT_AT and not changed:
            changed = True
            change(robot)
            if action is not None:
                commands.now = now
                action(node, now)
        if later is not None and now >= FAULT_AT + later[0]:
            later[1](robot)
        q, v, a = follower.desired(now)
        robot.trace.append((now, q, v, a))
        if now < robot.paused_until:
            continue
        if robot.renews:
            lease.renew(now)
        if not robot.silent and now >= due - 1e-9:
            due = now + robot.period
            frozen = frozen if robot.frozen else q
            noise = 0.0 if robot.frozen else 1e-6 * rng.normal(size=2)
            position = frozen + robot.drift * max(now - FAULT_AT, 0.0) + noise
            if robot.not_finite:
                position = np.full(2, np.nan)
            commands.now = now + DELAY_S
            stamp = now + EPOCH + robot.clock_offset + robot.stamp_offset
            node.update(
                stamp, now + EPOCH + robot.node_clock_offset, now + DELAY_S, position, robot.effort * np.ones(2)
            )
        commands.now, commands.late = now + DELAY_S, robot.late
        node.tick(now + DELAY_S)
        if (node.fault or node.canceled) and now > FAULT_AT + 5.0:
            break
    return node, robot, stop


def check(robot: Robot) -> np.ndarray:
    """Limits were kept all the way; the times at which the robot moved."""
    time, _, v, a = (np.array(column) for column in zip(*robot.trace, strict=True))
    assert (np.abs(v) <= 1.02 * LIMITS.velocity).all() and (np.abs(a) <= 1.05 * LIMITS.acceleration).all()
    return time[np.abs(v).max(axis=1) > 1e-6]


def test_an_undisturbed_motion_runs_to_its_end():
    node, robot, _ = run(lambda robot: None)
    assert not node.fault and node.max_tracking_error < 1e-3
    assert check(robot)[-1] == pytest.approx(BEGIN + TABLE.plan.duration, abs=0.1)


def test_a_motion_begins_when_its_first_horizon_has_arrived():
    limits, sent = TABLE.limits, []
    options = MonitorOptions()
    watch = StateMonitor(limits.joint_names, limits, options, BEGIN)
    commands = Commands(lambda horizon, _: sent.append(horizon))
    node = Supervisor(TABLE, watch, Lease(options.lease_timeout_s, BEGIN), commands)
    node.start(BEGIN, EPOCH)
    latency = TABLE.options.latency_s
    assert sent[0].stamp == pytest.approx(BEGIN + EPOCH + latency, abs=1e-6)
    assert node.commanded(BEGIN + latency) == pytest.approx(TABLE.plan.start)
    assert node.commanded(BEGIN + latency + 0.1) == pytest.approx(TABLE.plan.sample(np.array([0.1]))[0][0], abs=1e-6)


@pytest.mark.parametrize(
    ("change", "reason", "within_s"),
    [
        (fault(effort=101.0), "needs more than its limit", 0.07),
        (fault(period=0.025), "below monitor.min_rate_hz", 2.0),
        (fault(renews=False), "the lease was not renewed", 0.415),
    ],
)
def test_every_fault_stops_the_robot_in_time_and_within_limits(change, reason, within_s):
    node, robot, stop = run(change)
    assert reason in node.fault
    assert FAULT_AT < stop <= FAULT_AT + within_s
    assert check(robot)[-1] < stop + TABLE.options.latency_s + TABLE.options.grid_s + TABLE.brakes.longest + 0.01


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (fault(silent=True), "no joint state"),
        (fault(not_finite=True), "position is not finite"),
        (fault(stamp_offset=-0.2), "stamp is too old"),
        (fault(stamp_offset=0.2), "stamp is in the future"),
    ],
)
@pytest.mark.parametrize("passes", [True, False])
def test_missing_states_leave_the_robot_to_its_last_horizon_until_they_come_again(change, reason, passes):
    def good(robot: Robot) -> None:
        robot.silent, robot.not_finite, robot.stamp_offset = False, False, 0.0

    node, robot, stop = run(change, later=(1.5, good) if passes else None)
    assert np.isnan(stop) or stop > FAULT_AT + 1.5  # no brake is sent: the horizon ends by itself
    moving = check(robot)
    stood = moving[moving < FAULT_AT + TABLE.longest + TICK_S][-1]
    assert not ((moving > stood) & (moving < FAULT_AT + 1.5)).any()
    if passes:
        assert not node.fault and node.interruptions == 1
        assert moving[-1] < BEGIN + TABLE.plan.duration + 3.0
        np.testing.assert_allclose(robot.trace[-1][1], TABLE.plan.position[-1], atol=1e-6)
    else:
        assert reason in node.fault and "waited for 3 s at rest" in node.fault
        assert moving[-1] == stood


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (fault(frozen=True), "its state is stuck"),
        (fault(drift=1.0), "from its commanded position"),
        (fault(deaf=True), "check for a collision"),  # behind its command, or too far from it: the motion decides
    ],
)
def test_a_robot_that_does_not_keep_up_is_left_to_the_brake_that_it_has(change, reason):
    """A further horizon would make it jump if its controller only runs slower."""
    node, robot, stop = run(change)
    assert reason in node.fault
    assert np.isnan(stop)
    assert check(robot)[-1] < FAULT_AT + TABLE.longest + TICK_S


def test_no_horizon_is_sent_while_the_controller_has_not_taken_the_last():
    node, robot, stop = run(fault(late="a goal waited"), later=(1.0, fault(late="")))
    assert not node.fault and node.interruptions == 1 and stop > FAULT_AT + 1.0
    moving = check(robot)
    assert not ((moving > FAULT_AT + TABLE.longest + TICK_S) & (moving < FAULT_AT + 1.0)).any()
    np.testing.assert_allclose(robot.trace[-1][1], TABLE.plan.position[-1], atol=1e-6)


def test_a_high_effort_is_told_with_the_late_command_that_may_have_caused_it():
    node, robot, _ = run(fault(late="a goal waited", effort=101.0))
    assert node.fault.startswith("a goal waited; joint '") and "needs more than its limit" in node.fault
    check(robot)


@pytest.mark.parametrize(
    "action",
    [lambda node, now: node.tick(now, cancel=True), lambda node, now: node.stop(now, "asked to")],
    ids=["cancel", "stop"],
)
def test_who_asks_for_a_stop_gets_it_at_once(action):
    node, robot, stop = run(lambda robot: None, action)
    assert node.canceled or node.fault == "asked to"
    assert stop == pytest.approx(FAULT_AT + DELAY_S, abs=1.5 * TICK_S)
    assert check(robot)[-1] < stop + TABLE.options.latency_s + TABLE.options.grid_s + TABLE.brakes.longest + 0.01


@pytest.mark.parametrize("pause_s", [0.3, 2.0])
def test_a_paused_node_does_not_catch_up_but_goes_on_from_where_the_robot_rests(pause_s):
    node, robot, _ = run(fault(paused_until=FAULT_AT + pause_s))
    moving = check(robot)
    assert not node.fault and node.interruptions == 1
    stood = FAULT_AT + TABLE.longest + 0.01
    assert not ((moving > stood) & (moving < stood + 0.3)).any()
    np.testing.assert_allclose(robot.trace[-1][1], TABLE.plan.position[-1], atol=1e-6)


@pytest.mark.parametrize("step", [-5.0, 5.0])
def test_a_step_of_the_nodes_clock_changes_nothing(step):
    node, robot, _ = run(fault(node_clock_offset=step))
    assert not node.fault
    assert check(robot)[-1] == pytest.approx(BEGIN + TABLE.plan.duration, abs=0.1)


@pytest.mark.parametrize("step", [-5.0, -0.02, 0.02, 5.0])
def test_a_step_of_both_clocks_is_followed(step):
    node, robot, _ = run(fault(node_clock_offset=step, clock_offset=step))
    assert not node.fault and node.max_tracking_error < 1e-3
    assert check(robot)[-1] == pytest.approx(BEGIN + TABLE.plan.duration, abs=0.1)


@pytest.mark.parametrize("step", [-0.09, -0.03, 0.01, 0.09])
def test_a_small_step_of_the_robots_clock_is_no_jump(step):
    node, robot, _ = run(fault(clock_offset=step))
    assert node.fault or node.interruptions
    moving = check(robot)
    assert not ((moving > FAULT_AT + TABLE.longest + 0.05) & (moving < FAULT_AT + TABLE.longest + 0.25)).any()
