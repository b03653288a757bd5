"""A motion under a controller whose speed may be scaled, observed from outside at every cycle of the controller.

The controller is a JointTrajectoryController, whose command is what it samples one cycle ahead. Drives follow it,
sensors measure the joints, and a publisher with gaps reports them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np
from support.robots.quick_plans import quick_plan, simple_limits

from inertid_ros.config.excitation import ExcitationOptions, MonitorOptions
from inertid_ros.config.simulation import FaultOptions
from inertid_ros.core.samples import StateSample
from inertid_ros.excitation.execution.horizons import Horizon, HorizonTable
from inertid_ros.excitation.execution.monitor import Lease, StateMonitor
from inertid_ros.excitation.execution.supervisor import Supervisor
from inertid_ros.excitation.motions import LinearTrajectory
from inertid_ros.excitation.plan import plan_of
from inertid_ros.excitation.planning.planning_problem import make_basis, scale_to_limits
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.simulation.controller import Cascade, Follower
from inertid_ros.simulation.sensors import FaultyChannel

CYCLE_S, WINDOW_S = 0.002, 0.03
STEP_S, TICK_S, STATE_DELAY_S, COMMAND_DELAY_S = 0.001, 0.004, 0.001, 0.001
CONTROLLER_STATE_S = 0.02
# as measured of a joint_state_broadcaster on two cores
IDLE = FaultOptions(gap_rate_hz=0.3, gap_s=(0.01, 0.017, 0.03))
BUSY = FaultOptions(gap_rate_hz=1.0, gap_s=(0.024, 0.068, 0.39))
EPOCH, BEGIN = 1.8e9, 50.0
LIMITS = simple_limits(2)
Scaling = Callable[[float], float]  # of the time since the begin of the motion


def table(seed: int, joints: int = 2, duration_s: float = 10.0) -> HorizonTable:
    """A random motion that touches its limits."""
    limits, options = simple_limits(joints), ExcitationOptions(duration_s=duration_s, base_frequency_hz=1 / duration_s)
    return HorizonTable(quick_plan(limits, np.zeros(joints), seed, options), limits)


def swift() -> HorizonTable:
    """A motion of two joints a quarter of a period apart: between its first and last second one of them is fast."""
    limits, options, time = simple_limits(2), ExcitationOptions(duration_s=10.0, harmonics=8), np.linspace(0, 10, 500)
    basis, ramp = make_basis(options), np.clip(np.minimum(time, time[::-1]), 0.0, 1.0)
    wave = [np.sin(0.6 * np.pi * time), np.cos(0.6 * np.pi * time)] * ramp**3 * (10 - 15 * ramp + 6 * ramp**2)
    motion = LinearTrajectory(basis, np.zeros(2), np.linalg.lstsq(basis.evaluate(time)[0], wave.T, rcond=None)[0])
    inner = limits.scaled(options.limit_use, options.limit_use)
    motion = scale_to_limits(motion, inner, options.knot_step_s)
    return HorizonTable(plan_of(motion, limits, motion_type=options.kind, model_hash=""), limits)


class ScaledController:
    """Follows horizons, each from when it has arrived; its time advances at the pace that is given each cycle."""

    streams = False
    is_behind = False

    def __init__(self, start: np.ndarray, cycle: float, lost: Callable[[float], bool]) -> None:
        self._follower, self._cycle, self._lost = Follower(start), cycle, lost
        self._arriving: list[tuple[float, Horizon]] = []
        self.now = self.cycled = BEGIN  # the latter of its last cycle
        self.sent: list[float] = []

    def begin(self) -> None:
        """Nothing to forget."""

    def send(self, horizon: Horizon) -> None:
        self.sent.append(self.now)
        if not self._lost(self.now - BEGIN):
            self._arriving.append((self.now + COMMAND_DELAY_S, horizon))

    def lateness(self) -> str:
        return ""

    def stream(self, position: np.ndarray) -> None:
        """Nothing: horizons are sent."""

    def update(self, now: float, scaling: float, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One cycle at a measured position; the reference, and where the drives go until the next cycle."""
        self._follower.scale(scaling, now - self._cycle)
        self.cycled = now
        while self._arriving and self._arriving[0][0] <= now:
            _, horizon = self._arriving.pop(0)
            points = PiecewiseQuintic(
                horizon.time_from_start, horizon.position, horizon.velocity, horizon.acceleration
            )
            if len(horizon) == 1:
                self._follower.hold(position)  # a point in the future is approached from where the robot stands
            self._follower.follow(points, now, horizon.stamp - EPOCH)
        return self._follower.desired(now)[0], self._follower.desired(now, self._cycle)[0]


@dataclass(frozen=True)
class Drives:
    """How joints follow the controller; one value for all joints, or one each.

    Attributes
    ----------
    lag : float or ndarray, shape (n,)
        Of the joints behind their command at a constant velocity [s]; 0 follows exactly.
    bandwidth : float or ndarray, shape (n,)
        Of the cascade [rad/s]; lowered where the lag is longer than without any feed-forward.
    friction : float or ndarray, shape (n,)
        Coulomb friction by the inertia of the joint [rad/s^2].
    delay : float
        Pure delay of the command [s].
    play : float
        Between drive and joint, to either side [rad].
    sag : float
        Deviation by weight where a link is horizontal [rad].
    cycle : float
        Of the controller [s].
    """

    lag: float | np.ndarray = 0.0
    bandwidth: float | np.ndarray = 75.0
    friction: float | np.ndarray = 0.0
    delay: float = 0.0
    play: float = 0.0
    sag: float = 0.0
    cycle: float = CYCLE_S


@dataclass(frozen=True)
class Sensors:
    """How joints are measured and reported.

    Attributes
    ----------
    period : float
        Of joint states [s].
    noise, resolution : float
        Of positions [rad].
    late : iterator
        How late each state is stamped [s].
    channel : FaultOptions
        What becomes of the states on their way.
    """

    period: float = CYCLE_S
    noise: float = 1e-6
    resolution: float = 0.0
    late: Iterator[float] = field(default_factory=lambda: repeat(0.0))
    channel: FaultOptions = FaultOptions(gap_rate_hz=0.0)


def random_drives(rng: np.random.Generator, joints: int) -> tuple[Drives, Sensors]:
    """An ordinary robot: lag of 1 to 40 ms, friction, play, noise, 125 to 1000 Hz, on a machine idle or busy."""
    lag = np.clip(np.exp(rng.uniform(*np.log([1e-3, 40e-3]))) * rng.uniform(0.7, 1.3, joints), 1e-3, 40e-3)
    bandwidth = np.exp(rng.uniform(np.log(50.0), np.log(np.minimum(200.0, 2 / lag))))
    friction = np.exp(rng.uniform(*np.log([0.3, 10.0]), joints))
    cycle = 1.0 / rng.choice([125.0, 250.0, 500.0, 1000.0])
    drives = Drives(lag, bandwidth, friction, play=rng.uniform(0.0, 1e-3), cycle=cycle)
    noise = np.exp(rng.uniform(*np.log([1e-5, 3e-4])))
    return drives, Sensors(cycle, noise, channel=IDLE if rng.random() < 0.5 else BUSY)


class Arm:
    """The joints behind a controller, at rest where they start."""

    def __init__(self, drives: Drives, start: np.ndarray) -> None:
        lag, ones = np.broadcast_to(drives.lag, start.shape), np.ones(len(start))
        self._drives, self._exact = drives, not lag.any()
        bandwidth = np.minimum(drives.bandwidth, 2 / np.maximum(lag, 1e-6))
        self._cascade = Cascade(ones, bandwidth, 1 - 0.5 * lag * bandwidth)
        self._cascade.hold(start, 0.0 * start)
        self._past = [start] * (round(drives.delay / drives.cycle) + 1)
        self._position, self._velocity, self._stuck = start.copy(), 0.0 * start, start.copy()
        self._steps = int(np.ceil(drives.cycle / STEP_S - 1e-9))

    def update(self, command: np.ndarray) -> np.ndarray:
        """One cycle, at whose end the command is due; the joints' position then."""
        self._past = [*self._past[1:], command]
        if self._exact:
            self._position = self._past[0]
        else:
            self._follow(self._past[0])
        drives = self._drives
        self._stuck = np.minimum(np.maximum(self._stuck, self._position - drives.play), self._position + drives.play)
        return self._stuck - drives.sag * np.cos(self._stuck) if drives.sag else self._stuck

    def _follow(self, command: np.ndarray) -> None:
        """One cycle of the drives, in steps that friction may end at rest."""
        seconds = self._drives.cycle / self._steps
        friction, position, velocity = self._drives.friction * seconds, self._position, self._velocity
        self._cascade.go_to(command, self._drives.cycle)
        for step in range(self._steps):
            velocity = velocity + seconds * self._cascade.effort(step * seconds, position, velocity, seconds)
            velocity = velocity - np.minimum(np.maximum(velocity, -friction), friction)
            position = position + seconds * velocity
        self._position, self._velocity = position, velocity


@dataclass
class Observed:
    """A motion as seen from outside: times since the begin, speed of the controller's reference by cycle, speed of the
    joints, and acceleration of these by fits of 30 ms."""

    node: Supervisor
    controller: ScaledController
    ended: float
    reference: np.ndarray
    position: np.ndarray
    cycle: float = CYCLE_S

    @property
    def time(self) -> np.ndarray:
        return self.cycle * np.arange(1, len(self.reference) + 1)

    @property
    def speed(self) -> np.ndarray:
        return np.abs(np.diff(self.reference, axis=0)) / self.cycle

    @property
    def joint_speed(self) -> np.ndarray:
        return np.abs(np.diff(self.position, axis=0)) / self.cycle

    @property
    def half(self) -> int:
        """Cycles of the window to either side of its middle."""
        return max(int(0.5 * WINDOW_S / self.cycle), 2)

    @property
    def acceleration(self) -> np.ndarray:
        window = np.vander(self.cycle * np.arange(-self.half, self.half + 1), 4, increasing=True)
        weights = 2 * np.linalg.pinv(window)[2]
        return np.abs([np.convolve(column, weights[::-1], mode="valid") for column in self.position.T]).T

    def check(self, *own: float) -> None:
        """Limits were kept, but for the acceleration with which the controller itself changes speed at ``own`` [s]."""
        limits, half = self.node.execution.table.limits, self.half
        assert (self.speed <= limits.velocity).all()
        acceleration = self.acceleration
        for at in own:
            near = np.abs(self.time[half : half + len(acceleration)] - at) < (half + 0.5) * self.cycle
            acceleration[near] = 0.0
        assert (acceleration <= limits.acceleration).all()


def move(
    horizons: HorizonTable,
    scaling: Scaling,
    drives: Drives | None = None,
    sensors: Sensors | None = None,
    told_every: float = 0.0,
    seed: int = 0,
    controller_state: bool = False,
    tracking_tolerance: float = 1.0,
    lost: Callable[[float], bool] = lambda time: False,
    silent: Callable[[float], bool] = lambda time: False,
    stalled: Callable[[float], bool] = lambda time: False,
    held: Callable[[float], bool] = lambda time: False,
) -> Observed:
    """A motion under a scaling, which the node is told every ``told_every`` seconds where that is not 0.

    ``controller_state`` hands the controller's reference to the node, as its states do. Horizons that are sent at times
    when ``lost`` do not arrive; no states come when ``silent``, nor does the controller run when ``stalled``; the robot
    is held when ``held``.
    """
    drives, sensors, rng = drives or Drives(), sensors or Sensors(), np.random.default_rng(seed)
    start, limits = horizons.plan.start, horizons.limits
    controller, arm = ScaledController(start, drives.cycle, lost), Arm(drives, start)
    monitor = StateMonitor(
        limits.joint_names, limits,
        MonitorOptions(tracking_tolerance=tracking_tolerance, progress_tolerance=0.01), BEGIN,
    )  # fmt: skip
    node = Supervisor(horizons, monitor, Lease(1.0, BEGIN, wanted=False), controller)
    node.start(BEGIN, EPOCH)
    channel = FaultyChannel(np.random.default_rng((seed, 1)), sensors.channel)
    cycle, state, tick, told, tells = (
        round(seconds / STEP_S)
        for seconds in (drives.cycle, sensors.period, TICK_S, told_every, CONTROLLER_STATE_S * controller_state)
    )
    references, positions, still, ended = [], [], np.zeros(len(start)), np.nan
    command = start
    for step in range(cycle, round((3 * horizons.plan.duration + 4.0) / STEP_S) + 1):
        now = BEGIN + step * STEP_S
        received = controller.now = now + STATE_DELAY_S
        if step % cycle == 0:
            reached = arm.update(command)  # what was commanded a cycle ago
            positions.append(positions[-1] if held(now - BEGIN) else reached)
            if not stalled(now - BEGIN):
                reference, command = controller.update(now, scaling(now - BEGIN), positions[-1])
            references.append(reference)
        if step % state == 0 and not (silent(now - BEGIN) or stalled(now - BEGIN)):
            measured = positions[-1] + sensors.noise * rng.normal(size=len(start))
            if sensors.resolution:
                measured = np.round(measured / sensors.resolution) * sensors.resolution
            for sample in channel.pass_on(StateSample(now, measured, still, still)):
                stamp = sample.time + next(sensors.late) + EPOCH
                node.update(stamp, received + EPOCH, received, sample.position, sample.effort)
        if told and step % told == 0:
            node.scale(received, scaling(now - BEGIN))
        if tells and references and (step % tells == 0 or node.may_send(received)):
            node.update_reference(controller.cycled + EPOCH, references[-1])
        if step % tick == 0 and np.isnan(ended) and node.tick(received):
            ended = received - BEGIN
        if now - BEGIN > ended + 1.0:
            break
    return Observed(node, controller, ended, np.array(references), np.array(positions), drives.cycle)


def late_stamps(rng: np.random.Generator) -> Iterator[float]:
    """How late states are stamped [s]: some in a row now and then, by milliseconds, as by a driver that is held up."""
    while True:
        yield from [0.0] * rng.geometric(0.01)
        yield from [min(rng.exponential(0.004), 0.015)] * rng.integers(2, 10)


def ramps(*points: tuple[float, float]) -> Scaling:
    """Scaling that goes linearly from point to point ``(time, factor)``."""
    return lambda time: float(np.interp(time, *zip(*points, strict=True)))
