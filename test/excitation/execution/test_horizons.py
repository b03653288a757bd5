"""Execution: every horizon at every phase keeps the limits, ends at rest, and continues what was sent before."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.robots.quick_plans import PANDA_START, panda, panda_limits, quick_plan, simple_limits

from inertid_ros.config.excitation import BrakeOptions, ExcitationOptions, ExecutionOptions
from inertid_ros.core.errors import ConfigurationError, ExcitationError
from inertid_ros.excitation.execution.brake import brake_table
from inertid_ros.excitation.execution.horizons import Horizon, HorizonTable, MotionExecution, MotionState
from inertid_ros.excitation.execution.plan_check import with_approach
from inertid_ros.excitation.motion_limits import check_curve
from inertid_ros.excitation.motions import QuinticRamp
from inertid_ros.excitation.plan import plan_of, slower
from inertid_ros.excitation.quintic import PiecewiseQuintic

LIMITS = simple_limits(3)
FOURIER = quick_plan(LIMITS, np.array([0.1, -0.3, 0.5]), 5, ExcitationOptions(duration_s=6.0, base_frequency_hz=1 / 6))
CYCLOIDAL = quick_plan(LIMITS, np.zeros(3), 2, ExcitationOptions(kind="cycloidal", duration_s=6.0, intervals=7))
TABLES = [HorizonTable(FOURIER, LIMITS), HorizonTable(CYCLOIDAL, LIMITS)]


def curve_of(horizon: Horizon, first: tuple | None = None) -> PiecewiseQuintic:
    """What a controller makes of a horizon, from a state at time zero where it has no point there."""
    points = (horizon.position, horizon.velocity, horizon.acceleration)
    if first is None:
        return PiecewiseQuintic(horizon.time_from_start, *points)
    stacked = (np.vstack([state, row]) for state, row in zip(first, points, strict=True))
    return PiecewiseQuintic(np.append(0.0, horizon.time_from_start), *stacked)


@pytest.mark.parametrize("table", TABLES, ids=["fourier", "cycloidal"])
def test_every_brake_keeps_the_limits_and_stays_on_the_path(table):
    dense = table.plan.sample(np.linspace(0, table.plan.duration, 3001))[0]
    for index in range(0, len(table.brakes.points), 8):
        times, q, v, a = table.brakes.brake(index)
        begin = table.plan.sample(np.array([index * table.options.grid_s]))
        for found, wanted in zip((q, v, a), begin, strict=True):
            assert found[0] == pytest.approx(wanted[0], abs=1e-9)
        assert np.abs(v[-1]).max() == 0
        assert np.abs(a[-1]).max() < 1e-9
        if len(times) == 1:
            continue
        curve = PiecewiseQuintic(times, q, v, a)
        check_curve(curve, LIMITS.scaled(1 + 2e-6, 1 + 2e-6))
        for pose in curve.sample(np.linspace(0, times[-1], 7))[0]:
            assert np.abs(dense - pose).max(axis=1).min() < 3e-3


@pytest.mark.parametrize("table", TABLES, ids=["fourier", "cycloidal"])
def test_brakes_are_fast(table):
    # Full deceleration of the fastest joint takes v / a = 0.19 s; the smooth beginning adds the rest.
    assert table.brakes.longest < 0.6
    assert table.longest == pytest.approx(0.25 + 0.02 + table.brakes.longest)


@given(st.sampled_from(TABLES), st.floats(0, 6.2), st.booleans())
@settings(max_examples=60, deadline=None)
def test_horizon_continues_the_motion_and_ends_at_rest_in_time(table, phase, stamped):
    brake = table.brake_index(phase, table.options.horizon_s)
    horizon = table.horizon(phase, brake, 100.0 if stamped else float("nan"))
    assert len(horizon) >= 1
    assert (np.diff(horizon.time_from_start) > 1e-6).all()
    assert horizon.time_from_start[0] >= 0
    assert np.abs(horizon.velocity[-1]).max() < 1e-6
    assert np.abs(horizon.acceleration[-1]).max() < 1e-6
    offset = horizon.stamp - 100.0 if stamped else 0.0
    last = horizon.time_from_start[-1] + offset
    assert last <= table.longest + 1e-9
    if stamped and phase < table.plan.duration:
        assert -0.05 - 0.015 <= offset <= 0.0
    if len(horizon) > 1 and stamped:
        times = np.linspace(0, 0.15, 20)
        q, v, a = curve_of(horizon).sample(times - offset)
        wanted = table.plan.sample(np.minimum(phase + times, table.plan.duration))
        before = phase + times <= brake * table.options.grid_s
        for found, exact, tolerance in zip((q, v, a), wanted, (1e-6, 1e-4, 0.05), strict=True):
            assert found[before] == pytest.approx(exact[before], abs=tolerance)
        check_curve(curve_of(horizon), replace(LIMITS, acceleration=LIMITS.acceleration * 1.001))


@given(st.sampled_from(TABLES), st.floats(0.2, 5.9))
@settings(max_examples=30, deadline=None)
def test_horizon_without_stamp_keeps_the_limits_from_where_the_robot_is(table, phase):
    brake = table.brake_index(phase, table.options.horizon_s)
    horizon = table.horizon(phase, brake)
    here = list(table.commanded(phase, brake))
    check_curve(curve_of(horizon, here), replace(LIMITS, acceleration=LIMITS.acceleration * 1.02))


class FakeController:
    """Follows the newest horizon exactly, and refuses one that makes it jump."""

    def __init__(self, position: np.ndarray) -> None:
        self.pieces = [(0.0, None)]
        self.position = position

    def take(self, horizon: Horizon, now: float) -> None:
        if not len(horizon):
            return
        if len(horizon) == 1:
            self.pieces.append((now, None))
            self.position = horizon.position[0]
            return
        curve = curve_of(horizon)
        q = self.at(now)
        self.pieces.append((now, (horizon.stamp, curve)))
        jump = np.abs(self.at(now)[0] - q[0]).max()
        assert jump < 1e-5, f"the command jumps by {jump} rad at {now} s"
        speed = np.abs(self.at(now)[1] - q[1]).max()
        assert speed < 1e-3, f"the commanded velocity jumps by {speed} at {now} s"

    def at(self, now: float):
        piece = self.pieces[-1][1]
        if piece is None:
            return self.position, np.zeros(3), np.zeros(3)
        return [x[0] for x in piece[1].sample(np.array([now - piece[0]]))]


def run(table, events, until=12.0, tick=0.02):
    """Tick an execution; ``events`` maps a time to what happens: a stop reason, or a pause of the sender [s]."""
    execution, controller = MotionExecution(table), FakeController(table.plan.start)
    execution.clock_offset = 0.0
    controller.take(execution.start(0.0), 0.0)
    trace, now, waiting = [], 0.0, dict(events)
    rng = np.random.default_rng(0)
    paused = 0.0
    while now < until:
        for _ in range(3):
            now += tick / 3
            trace.append([now, *controller.at(now)])
        for at in [at for at in waiting if at <= now]:
            action = waiting.pop(at)
            if isinstance(action, str):
                controller.take(execution.stop(now, action), now)
            else:
                paused = now + action
        if now >= paused:
            controller.take(execution.step(now + rng.uniform(0, 0.002)), now)
    times, q, v, a = (np.array(column) for column in zip(*trace, strict=True))
    return execution, times, q, v, a


@pytest.mark.parametrize("table", TABLES, ids=["fourier", "cycloidal"])
def test_undisturbed_run_is_the_plan(table):
    execution, times, q, v, a = run(table, {})
    wanted = table.plan.sample(times)
    assert q == pytest.approx(wanted[0], abs=1e-5)
    assert v == pytest.approx(wanted[1], abs=1e-3)
    assert execution.state is MotionState.DONE
    assert execution.at_rest(12.0)
    assert execution.reason == ""
    assert execution.phase(12.0) == execution.table.plan.duration


@pytest.mark.parametrize("table", TABLES, ids=["fourier", "cycloidal"])
def test_nothing_more_is_sent_where_the_controller_holds_the_end(table):
    """A horizon that ends in the past when it arrives is rejected by controllers."""
    execution = MotionExecution(table)
    execution.start(0.0)
    sent = [now for now in np.arange(0.01, table.plan.duration + 0.1, 0.01) if len(execution.step(now))]
    assert sent[-1] == pytest.approx(table.plan.duration - table.options.horizon_s, abs=0.03)
    assert execution.at_rest(table.plan.duration + 0.1) and not execution.reason


@given(st.sampled_from(TABLES), st.floats(0.1, 6.5))
@settings(max_examples=12, deadline=None)
def test_stop_brakes_within_limits_from_any_phase(table, at):
    execution, times, q, v, a = run(table, {at: "asked to"}, until=at + 1.5)
    assert (np.abs(v) <= LIMITS.velocity * (1 + 1e-5)).all()
    assert (np.abs(a) <= LIMITS.acceleration * (1 + 1e-3)).all()
    resting = times > at + 0.05 + table.brakes.longest
    assert np.abs(v[resting]).max() < 1e-9
    assert execution.at_rest(times[-1])
    if at < table.plan.duration - 0.1:
        assert execution.state is MotionState.STOPPED
        assert execution.reason == "asked to"
        assert q[-1] == pytest.approx(execution.commanded(times[-1])[0], abs=1e-9)
    assert len(execution.step(times[-1])) == 0


@given(st.sampled_from(TABLES), st.floats(0.1, 5.5), st.floats(0.3, 3.0))
@settings(max_examples=8, deadline=None)
def test_a_paused_sender_leaves_the_robot_at_rest_and_sends_nothing_old(table, at, pause):
    execution, times, q, v, a = run(table, {at: pause}, until=at + pause + 1.0)
    assert execution.state is MotionState.STOPPED
    assert "no horizon was sent" in execution.reason
    assert (np.abs(a) <= LIMITS.acceleration * (1 + 1e-3)).all()
    resting = times > at + 0.02 + table.longest
    assert np.abs(v[resting]).max() < 1e-9


def test_a_short_pause_does_no_harm():
    execution, times, q, v, a = run(TABLES[0], {2.0: 0.09})
    assert execution.state is MotionState.DONE
    assert q == pytest.approx(FOURIER.sample(times)[0], abs=1e-5)


def test_commanded_is_what_was_sent():
    table = TABLES[1]
    execution = MotionExecution(table)
    assert execution.commanded(5.0)[0] == pytest.approx(table.plan.start)
    assert execution.phase(3.0) == 0.0
    execution.start(10.0)
    for k in range(1, 50):
        execution.step(10.0 + 0.02 * k)
    assert execution.commanded(10.6)[0] == pytest.approx(table.plan.sample(np.array([0.6]))[0][0], abs=1e-6)
    horizon = execution.stop(11.0, "stop")
    rest = execution.commanded(20.0)
    assert rest[0] == pytest.approx(horizon.position[-1])
    assert np.abs(rest[1]).max() < 1e-12
    with pytest.raises(ExcitationError, match="already started"):
        execution.start(11.0)


def test_a_plan_that_begins_soon_is_stamped_so_and_a_stop_before_brakes_at_once():
    table = TABLES[0]
    execution = MotionExecution(table)
    execution.clock_offset = 1000.0
    first = execution.start(10.02)
    assert first.stamp == pytest.approx(1010.02) and not np.abs(first.velocity[0]).any()
    early = execution.step(10.01)  # the same motion: a step before it begins does not move it
    assert early.stamp == pytest.approx(1010.02)
    assert execution.commanded(10.01)[0] == pytest.approx(table.plan.start) and execution.phase(10.01) == 0.0
    brake = execution.stop(10.0, "asked to")
    assert brake.stamp == pytest.approx(1010.02) and brake.position[0] == pytest.approx(table.plan.start)
    rest = execution.commanded(12.0)[0]
    assert rest == pytest.approx(brake.position[-1]) and np.abs(rest - table.plan.start).max() < 0.01
    assert execution.at_rest(10.02 + table.brakes.longest)


def test_approach_and_motion_run_as_one(robots):
    model = panda(robots)
    limits = panda_limits(model)
    plan = slower(quick_plan(limits, PANDA_START, 4, model_hash=model.hash), 0.8)
    whole, duration = with_approach(plan, model, PANDA_START + 0.2)
    table = HorizonTable(whole, whole.limits)
    assert table.plan.duration == pytest.approx(duration + plan.duration)
    assert table.brakes.longest < 1.0


def test_a_plan_at_its_very_limits_still_has_brakes():
    tight = quick_plan(LIMITS, np.zeros(3), 7, ExcitationOptions(duration_s=10.0, limit_use=1.0))
    table = brake_table(tight, LIMITS, 0.02, 0.01)
    assert table.longest < 1.5


def test_plans_without_brakes_are_refused():
    ramp = plan_of(QuinticRamp.within(np.zeros(3), np.ones(3), LIMITS.velocity, LIMITS.acceleration), LIMITS)
    with pytest.raises(ExcitationError, match=r"braking from 0\.\d+ s takes longer than 0.1 s"):
        brake_table(ramp, LIMITS, 0.02, 0.01, BrakeOptions(longest_s=0.1))
    with pytest.raises(ExcitationError, match="joint 'joint0': velocity"):
        HorizonTable(ramp, LIMITS.scaled(velocity=0.5))
    with pytest.raises(ExcitationError, match="joints of the limits differ"):
        HorizonTable(ramp, replace(LIMITS, joint_names=("a", "b", "c")))


def test_impossible_options_are_refused():
    for wrong in ({"grid_s": 0.02, "step_s": 0.015}, {"step_s": 0.0}, {"latency_s": 0.2}, {"latency_s": -0.1}):
        with pytest.raises(ConfigurationError, match=next(iter(wrong))):
            ExecutionOptions(**wrong)
