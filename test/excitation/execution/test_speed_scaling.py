"""A controller whose speed is scaled in motion: the robot is observed from outside, at every cycle of its controller.

The controller is a JointTrajectoryController's: a new trajectory sets its time to the clock, each cycle advances it by
the scaled period, and the trajectory is sampled from its stamp.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import pytest
from support.robots.quick_plans import quick_plan, simple_limits

from inertid_ros.config.execution import MonitorOptions
from inertid_ros.excitation.execution.horizons import Horizon, HorizonTable
from inertid_ros.excitation.execution.monitor import Lease, StateMonitor
from inertid_ros.excitation.execution.supervisor import Supervisor
from inertid_ros.simulation.commands import CommandedTrajectory, Follower

CYCLE_S, HALF = 0.002, 7
TICK_S, STATE_DELAY_S, COMMAND_DELAY_S = 0.004, 0.001, 0.001
EPOCH, BEGIN = 1.8e9, 50.0
LIMITS = simple_limits(2)
TABLE = HorizonTable(quick_plan(LIMITS, np.zeros(2), 1), LIMITS)
Scaling = Callable[[float], float]  # of the time since the begin of the motion


class ScaledController:
    """Follows horizons, each from when it has arrived; ``scaling`` multiplies the pace of its time."""

    streams = False

    def __init__(self) -> None:
        self._follower, self._time = Follower(TABLE.plan.start), BEGIN
        self._arriving: list[tuple[float, Horizon]] = []
        self.now = BEGIN
        self.sent: list[float] = []
        self.positions: list[np.ndarray] = []

    def begin(self) -> None:
        """Nothing to forget."""

    def send(self, horizon: Horizon) -> None:
        self.sent.append(self.now)
        self._arriving.append((self.now + COMMAND_DELAY_S, horizon))

    def stream(self, position: np.ndarray) -> None:
        """Nothing: horizons are sent."""

    def update(self, now: float, scaling: float) -> np.ndarray:
        """One cycle; the position of the robot."""
        self._time += CYCLE_S * scaling
        while self._arriving and self._arriving[0][0] <= now:
            _, horizon = self._arriving.pop(0)
            here = self._follower.desired(self._time)[0]
            points = CommandedTrajectory(
                horizon.time_from_start, horizon.position, horizon.velocity, horizon.acceleration
            )
            if len(points.time_from_start) == 1:
                self._follower.hold(here)  # a point in the future is approached from where the robot stands
            self._follower.follow(points, now, horizon.stamp - EPOCH)
            self._time = now
        self.positions.append(self._follower.desired(self._time)[0])
        return self.positions[-1]


@dataclass
class Observed:
    """A motion as seen from outside: times since the begin, speed by cycle, acceleration by fits of 30 ms."""

    node: Supervisor
    controller: ScaledController
    ended: float
    time: np.ndarray
    speed: np.ndarray
    acceleration: np.ndarray

    def check(self, *own: float) -> None:
        """Limits were kept; but for the acceleration with which the controller itself changes speed at ``own`` [s]."""
        assert (self.speed <= LIMITS.velocity).all()
        acceleration = self.acceleration.copy()
        for at in own:
            acceleration[np.abs(self.time[HALF : HALF + len(acceleration)] - at) < (HALF + 0.5) * CYCLE_S] = 0.0
        assert (acceleration <= LIMITS.acceleration).all()


def late_stamps(rng: np.random.Generator) -> Iterator[float]:
    """How late states are stamped [s]: some in a row now and then, by milliseconds, as by a driver that is held up."""
    while True:
        yield from [0.0] * rng.geometric(0.01)
        yield from [min(rng.exponential(0.004), 0.015)] * rng.integers(2, 10)


def run(
    scaling: Scaling,
    told_every: float = 0.0,
    states_every: float = CYCLE_S,
    noise: float = 1e-6,
    lag: float = 0.0,
    late: Iterator[float] | None = None,
) -> Observed:
    """A motion under a scaling, which the node is told every ``told_every`` seconds where that is not 0.

    Drives have a first-order lag [s]; positions are measured with noise [rad] and stamped ``late`` [s].
    """
    controller, rng, late = ScaledController(), np.random.default_rng(0), late or repeat(0.0)
    monitor = StateMonitor(
        LIMITS.joint_names, LIMITS.lower, LIMITS.upper, LIMITS.velocity, LIMITS.effort, MonitorOptions(), BEGIN
    )
    node = Supervisor(TABLE, monitor, Lease(1.0, BEGIN, wanted=False), controller)
    node.start(BEGIN, EPOCH)
    drives, ended = TABLE.plan.start, np.nan
    for cycle in range(1, round((TABLE.plan.duration + 4.0) / CYCLE_S) + 1):
        now = BEGIN + cycle * CYCLE_S
        position = controller.update(now, scaling(now - BEGIN))
        drives = position if not lag else drives + (position - drives) * CYCLE_S / lag
        received = controller.now = now + STATE_DELAY_S
        if cycle % round(states_every / CYCLE_S) == 0:
            measured = drives + noise * rng.normal(size=2)
            node.update(now + next(late) + EPOCH, received + EPOCH, received, measured, np.zeros(2))
        if told_every and cycle % round(told_every / CYCLE_S) == 0:
            node.scale(received, scaling(now - BEGIN))
        if cycle % round(TICK_S / CYCLE_S) == 0 and np.isnan(ended) and node.tick(received):
            ended = received - BEGIN
        if now - BEGIN > ended + 1.0:
            break
    positions = np.array(controller.positions)
    window = np.vander(CYCLE_S * np.arange(-HALF, HALF + 1), 4, increasing=True)
    weights = 2 * np.linalg.pinv(window)[2]
    acceleration = np.array([np.convolve(column, weights[::-1], mode="valid") for column in positions.T]).T
    speed = np.abs(np.diff(positions, axis=0)) / CYCLE_S
    return Observed(node, controller, ended, CYCLE_S * np.arange(1, len(positions) + 1), speed, np.abs(acceleration))


def ramps(*points: tuple[float, float]) -> Scaling:
    """Scaling that goes linearly from point to point ``(time, factor)``."""
    return lambda time: float(np.interp(time, *zip(*points, strict=True)))


@pytest.mark.parametrize("told_every", [0.0, 0.01], ids=["found", "told"])
@pytest.mark.parametrize(("states_every", "lag"), [(0.002, 0.0), (0.008, 0.02)])
def test_a_slider_that_is_moved_ends_the_motion_without_a_jump(told_every, states_every, lag):
    """From full speed to half, to nothing and back."""
    slider = ramps((3.0, 1.0), (3.2, 0.5), (3.8, 0.5), (4.0, 0.0), (4.6, 0.0), (4.8, 1.0))
    observed = run(slider, told_every, states_every, lag=lag)
    assert "speed scaling" in observed.node.fault
    observed.check()
    assert max(observed.controller.sent) - BEGIN < 3.0 + 0.1


@pytest.mark.parametrize(("factor", "at"), [(0.0, 3.02), (0.5, 3.0), (0.5, 3.05), (0.97, 3.044), (1.2, 3.02)])
def test_a_scaling_that_nobody_tells_is_found_before_the_next_horizon(factor, at):
    """Horizons are sent at 3.001 s and 3.051 s."""
    observed = run(lambda time: 1.0 if time < at else factor)
    assert "of the commanded speed" in observed.node.fault
    observed.check(at)


def test_a_change_shortly_before_a_horizon_is_found_by_two_states():
    """A driver at 125 Hz shows no more of it until then."""
    observed = run(lambda time: 1.0 if time < 3.018 else 0.5, states_every=0.008, noise=1e-4)
    assert "of the commanded speed" in observed.node.fault
    observed.check(3.018)


@pytest.mark.parametrize("told_every", [0.0, 0.01], ids=["found", "told"])
def test_a_stopped_controller_holds_no_motion_once_the_goal_has_ended(told_every):
    """With the scaling known, what the controller still holds is replaced; otherwise the fault warns of it."""
    observed = run(lambda time: 1.0 if time < 3.0 else 0.0 if time < 4.5 else 1.0, told_every)
    assert observed.ended < 4.5
    moved = observed.time[1:][observed.speed.max(axis=1) > 1e-4]
    if told_every:
        assert moved[-1] < 4.0
    else:
        assert "may go on; deactivate the controller" in observed.node.fault and moved[-1] > 4.5
    observed.check(3.0, 4.5)


@pytest.mark.parametrize(("states_every", "lag", "noise"), [(0.002, 0.02, 1e-4), (0.008, 0.01, 3e-4)])
def test_drives_that_lag_and_sensors_that_err_are_no_scaling(states_every, lag, noise):
    observed = run(lambda time: 1.0, states_every=states_every, lag=lag, noise=noise)
    assert not observed.node.fault
    assert np.diff(observed.controller.sent).max() < 0.08


@pytest.mark.parametrize("states_every", [0.002, 0.008])
def test_states_that_are_stamped_late_are_no_scaling(states_every):
    observed = run(lambda time: 1.0, states_every=states_every, lag=0.005, late=late_stamps(np.random.default_rng(1)))
    assert not observed.node.fault


@pytest.mark.parametrize("factor", [0.5, 0.97])
def test_a_scaling_is_found_among_states_that_are_stamped_late(factor):
    observed = run(lambda time: 1.0 if time < 3.0 else factor, late=late_stamps(np.random.default_rng(1)))
    assert "of the commanded speed" in observed.node.fault
    assert (observed.speed <= LIMITS.velocity).all()
