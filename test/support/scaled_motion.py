"""A motion under a controller whose speed is scaled, observed from outside at every cycle of the controller.

The controller is a JointTrajectoryController's: a new trajectory sets its time to the clock, each cycle advances it by
the scaled period, and the trajectory is sampled from its stamp. Drives follow it, sensors measure them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np
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
Scaling = Callable[[float], float]  # of the time since the begin of the motion


def table(seed: int) -> HorizonTable:
    """A random motion that touches its limits."""
    return HorizonTable(quick_plan(LIMITS, np.zeros(2), seed), LIMITS)


class ScaledController:
    """Follows horizons, each from when it has arrived; its time advances at the pace that is given each cycle."""

    streams = False

    def __init__(self, start: np.ndarray) -> None:
        self._follower, self._time = Follower(start), BEGIN
        self._arriving: list[tuple[float, Horizon]] = []
        self.now = BEGIN
        self.sent: list[float] = []

    def begin(self) -> None:
        """Nothing to forget."""

    def send(self, horizon: Horizon) -> None:
        self.sent.append(self.now)
        self._arriving.append((self.now + COMMAND_DELAY_S, horizon))

    def stream(self, position: np.ndarray) -> None:
        """Nothing: horizons are sent."""

    def update(self, now: float, scaling: float) -> np.ndarray:
        """One cycle; the position that the drives follow."""
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
        return self._follower.desired(self._time)[0]


@dataclass(frozen=True)
class Drives:
    """How joints follow the controller.

    Attributes
    ----------
    lag : float
        Time constant [s]; of each of two filters in a row where ``order`` is 2.
    order : int
    delay : float
        Pure delay [s].
    play : float
        A joint does not move before its command is this far away [rad].
    sag : float
        Deviation by weight where a link is horizontal [rad].
    """

    lag: float = 0.0
    order: int = 1
    delay: float = 0.0
    play: float = 0.0
    sag: float = 0.0


@dataclass(frozen=True)
class Sensors:
    """How joints are measured.

    Attributes
    ----------
    period : float
        Of joint states [s].
    noise, resolution : float
        Of positions [rad].
    late : iterator
        How late each state is stamped [s].
    """

    period: float = CYCLE_S
    noise: float = 1e-6
    resolution: float = 0.0
    late: Iterator[float] = field(default_factory=lambda: repeat(0.0))


class Arm:
    """The joints behind a controller."""

    def __init__(self, drives: Drives, start: np.ndarray) -> None:
        self._drives = drives
        self._past = [start] * (round(drives.delay / CYCLE_S) + 1)
        self._stages = [start.copy() for _ in range(drives.order if drives.lag else 0)]
        self._stuck = start.copy()

    def update(self, reference: np.ndarray) -> np.ndarray:
        """One cycle; the joints' position."""
        self._past = [*self._past[1:], reference]
        position = self._past[0]
        for stage in self._stages:
            stage += (position - stage) * -np.expm1(-CYCLE_S / self._drives.lag)
            position = stage
        self._stuck = np.clip(self._stuck, position - self._drives.play, position + self._drives.play)
        return self._stuck - self._drives.sag * np.cos(self._stuck)


@dataclass
class Observed:
    """A motion as seen from outside: times since the begin, speed of the controller's reference by cycle, speed of the
    joints, and acceleration of these by fits of 30 ms."""

    node: Supervisor
    controller: ScaledController
    ended: float
    reference: np.ndarray
    position: np.ndarray

    @property
    def time(self) -> np.ndarray:
        return CYCLE_S * np.arange(1, len(self.reference) + 1)

    @property
    def speed(self) -> np.ndarray:
        return np.abs(np.diff(self.reference, axis=0)) / CYCLE_S

    @property
    def joint_speed(self) -> np.ndarray:
        return np.abs(np.diff(self.position, axis=0)) / CYCLE_S

    @property
    def acceleration(self) -> np.ndarray:
        window = np.vander(CYCLE_S * np.arange(-HALF, HALF + 1), 4, increasing=True)
        weights = 2 * np.linalg.pinv(window)[2]
        return np.abs([np.convolve(column, weights[::-1], mode="valid") for column in self.position.T]).T

    def check(self, *own: float) -> None:
        """Limits were kept, but for the acceleration with which the controller itself changes speed at ``own`` [s]."""
        assert (self.speed <= LIMITS.velocity).all()
        acceleration = self.acceleration
        for at in own:
            acceleration[np.abs(self.time[HALF : HALF + len(acceleration)] - at) < (HALF + 0.5) * CYCLE_S] = 0.0
        assert (acceleration <= LIMITS.acceleration).all()


def move(
    horizons: HorizonTable,
    scaling: Scaling,
    drives: Drives | None = None,
    sensors: Sensors | None = None,
    told_every: float = 0.0,
    seed: int = 0,
) -> Observed:
    """A motion under a scaling, which the node is told every ``told_every`` seconds where that is not 0."""
    sensors, rng = sensors or Sensors(), np.random.default_rng(seed)
    controller, arm = ScaledController(horizons.plan.start), Arm(drives or Drives(), horizons.plan.start)
    monitor = StateMonitor(
        LIMITS.joint_names, LIMITS.lower, LIMITS.upper, LIMITS.velocity, LIMITS.effort,
        MonitorOptions(tracking_tolerance=1.0).timed(sensors.period), BEGIN,
    )  # fmt: skip
    node = Supervisor(horizons, monitor, Lease(1.0, BEGIN, wanted=False), controller)
    node.start(BEGIN, EPOCH)
    references, positions, ended = [], [], np.nan
    for cycle in range(1, round((horizons.plan.duration + 4.0) / CYCLE_S) + 1):
        now = BEGIN + cycle * CYCLE_S
        references.append(controller.update(now, scaling(now - BEGIN)))
        positions.append(arm.update(references[-1]))
        received = controller.now = now + STATE_DELAY_S
        if cycle % round(sensors.period / CYCLE_S) == 0:
            measured = positions[-1] + sensors.noise * rng.normal(size=2)
            if sensors.resolution:
                measured = np.round(measured / sensors.resolution) * sensors.resolution
            node.update(now + next(sensors.late) + EPOCH, received + EPOCH, received, measured, np.zeros(2))
        if told_every and cycle % round(told_every / CYCLE_S) == 0:
            node.scale(received, scaling(now - BEGIN))
        if cycle % round(TICK_S / CYCLE_S) == 0 and np.isnan(ended) and node.tick(received):
            ended = received - BEGIN
        if now - BEGIN > ended + 1.0:
            break
    return Observed(node, controller, ended, np.array(references), np.array(positions))


def late_stamps(rng: np.random.Generator) -> Iterator[float]:
    """How late states are stamped [s]: some in a row now and then, by milliseconds, as by a driver that is held up."""
    while True:
        yield from [0.0] * rng.geometric(0.01)
        yield from [min(rng.exponential(0.004), 0.015)] * rng.integers(2, 10)


def ramps(*points: tuple[float, float]) -> Scaling:
    """Scaling that goes linearly from point to point ``(time, factor)``."""
    return lambda time: float(np.interp(time, *zip(*points, strict=True)))
