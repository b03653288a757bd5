"""Supervision of a streamed motion, where the robot stands while its sender pauses."""

import numpy as np
import pytest
from support.robots.quick_plans import quick_plan, simple_limits

from inertid_ros.config.execution import MonitorOptions
from inertid_ros.excitation.execution.horizons import Horizon, HorizonTable
from inertid_ros.excitation.execution.monitor import Lease, StateMonitor
from inertid_ros.excitation.execution.supervisor import Supervisor

TICK = 0.005


class StreamedRobot:
    """Keeps the positions that it is commanded, one each tick."""

    streams = True

    def __init__(self) -> None:
        self.positions: list[np.ndarray] = []

    def begin(self) -> None:
        """Nothing to forget."""

    def send(self, horizon: Horizon) -> None:
        """Nothing: positions are streamed."""

    def stream(self, position: np.ndarray) -> None:
        self.positions.append(position)


@pytest.fixture(scope="module")
def table() -> HorizonTable:
    limits = simple_limits(2)
    return HorizonTable(quick_plan(limits, np.zeros(2), 1), limits)


def stream(table: HorizonTable, pauses: dict[float, float], look_first: bool = False) -> tuple[Supervisor, np.ndarray]:
    """A run, and the positions ``(N, n)`` that were streamed, one each tick but for pauses ``{when: length}`` [s]."""
    limits, now = table.limits, 100.0
    options = MonitorOptions(state_timeout_s=2.0, max_age_s=10.0, min_rate_hz=1.0, rate_window_s=10.0)
    monitor = StateMonitor(limits.joint_names, limits.lower, limits.upper, limits.velocity, limits.effort, options, now)
    robot = StreamedRobot()
    run = Supervisor(table, monitor, Lease(1.0, now, wanted=False), robot)
    run.start(now)
    begin = now
    while not run.at_rest(now) and now < begin + 40:
        pause = next((length for at, length in pauses.items() if now - begin <= at < now - begin + TICK), TICK)
        run.update(now, now, now, run.commanded(now), np.zeros(2))
        now += pause
        if look_first:
            run.progress(now)
        run.tick(now)
    return run, np.array([table.plan.start, *robot.positions])


def test_an_undisturbed_stream_is_the_plan(table: HorizonTable) -> None:
    run, positions = stream(table, {})
    assert not run.fault
    wanted = table.plan.sample(TICK * np.arange(len(positions)))[0]
    np.testing.assert_allclose(positions, wanted, atol=1e-6)


def test_a_short_pause_does_no_harm(table: HorizonTable) -> None:
    assert not stream(table, {3.0: 0.03})[0].fault


@pytest.mark.parametrize("look_first", [False, True])
@pytest.mark.parametrize("pause", [0.08, 0.3, 20.0])
def test_after_a_pause_the_robot_goes_on_where_it_stood_and_brakes(table, pause, look_first) -> None:
    run, positions = stream(table, {3.0: pause}, look_first)
    assert "paused" in run.fault
    limits = table.limits
    assert (np.abs(np.diff(positions, axis=0)) <= 1.01 * TICK * limits.velocity).all()
    # On the path of the plan, and at rest soon after.
    path = table.plan.sample(np.linspace(0, table.plan.duration, 5000))[0]
    distance = np.abs(positions[:, None] - path[None]).max(axis=2).min(axis=1)
    assert distance.max() < 2e-3
    assert len(positions) * TICK < 3.0 + table.options.horizon_s + table.brakes.longest + 0.2
