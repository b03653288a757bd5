"""A motion whose positions are streamed, one each tick, by a sender that may pause, and what is seen of the robot."""

from dataclasses import dataclass

import numpy as np
from support.excitation.observed_controller import STEP_S, Observed, observed_trace

from inertid_ros.config.excitation import MonitorOptions
from inertid_ros.excitation.execution.horizons import Horizon, HorizonTable
from inertid_ros.excitation.execution.monitor import Lease, StateMonitor
from inertid_ros.excitation.execution.supervisor import Supervisor

TICK = 0.005
BEGIN = 100.0


class StreamedRobot:
    """Keeps the positions that it is commanded, one each tick."""

    streams = True
    is_behind = False

    def __init__(self) -> None:
        self.positions: list[np.ndarray] = []

    def begin(self) -> None:
        """Nothing to forget."""

    def send(self, horizon: Horizon) -> None:
        """Nothing: positions are streamed."""

    def lateness(self) -> str:
        return ""

    def stream(self, position: np.ndarray) -> None:
        self.positions.append(position)


@dataclass(frozen=True)
class Streamed:
    """What was streamed.

    Attributes
    ----------
    run : Supervisor
        Of the motion.
    times : ndarray, shape (N,)
        When each position was commanded [s].
    positions : ndarray, shape (N, n)
        Beginning with where the robot stood.
    """

    run: Supervisor
    times: np.ndarray
    positions: np.ndarray

    def observed(self, jerk: np.ndarray) -> Observed:
        """Figures at 1 kHz of drives that take a tick to each position, without the instants of a pause."""
        reached = self.times + TICK
        knots = np.sort(np.concatenate([self.times[1:], reached]))
        at = np.searchsorted(reached, knots, side="right") - 1
        time = np.arange(knots[0], knots[-1] + 0.1, STEP_S)
        q = np.stack([np.interp(time, knots, column[np.maximum(at, 0)]) for column in self.positions.T], axis=1)
        paused = np.flatnonzero(np.diff(self.times) > 1.5 * TICK)
        own = [(reached[k], reached[k]) for k in paused] + [(self.times[k + 1], reached[k + 1]) for k in paused]
        return observed_trace(time, q, self.run.execution.table.limits, jerk, own)


def stream(table: HorizonTable, pauses: dict[float, float], look_first: bool = False) -> Streamed:
    """A run, with pauses of its sender ``{when: length}`` [s]."""
    limits, now = table.limits, BEGIN
    options = MonitorOptions(state_timeout_s=2.0, max_age_s=10.0, min_rate_hz=1.0, rate_window_s=10.0)
    monitor = StateMonitor(limits.joint_names, limits, options, now)
    robot, times = StreamedRobot(), [now]
    run = Supervisor(table, monitor, Lease(1.0, now, wanted=False), robot)
    run.start(now)
    while not run.at_rest(now) and now < BEGIN + 40:
        times += [now] * (len(robot.positions) + 1 - len(times))
        pause = next((length for at, length in pauses.items() if now - BEGIN <= at < now - BEGIN + TICK), TICK)
        run.update(now, now, now, run.commanded(now), np.zeros(2))
        now += pause
        if look_first:
            run.progress(now)
        run.tick(now)
    times += [now] * (len(robot.positions) + 1 - len(times))
    return Streamed(run, np.array(times), np.array([table.plan.start, *robot.positions]))
