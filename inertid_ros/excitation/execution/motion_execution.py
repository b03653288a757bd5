"""MotionExecution: the state of one execution of a plan. Times are of a steady clock [s], given by the caller."""

import math
from enum import Enum

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError

from .horizons import Horizon, HorizonTable

_TINY = 1e-9


class MotionState(Enum):
    """Where an execution is."""

    READY = "ready"
    MOVING = "moving"
    STOPPING = "stopping"  # a brake has been sent; the robot is still moving
    STOPPED = "stopped"  # at rest after a brake
    DONE = "done"  # at rest at the end of the plan


class MotionExecution:
    """One execution of a plan: start, a step every command period, and a stop at any time.

    A step that comes so late that the robot has begun the brake of the last horizon is not made up for: the motion
    is over, nothing more is sent, and :attr:`reason` is set.

    Attributes
    ----------
    clock_offset : float
        Robot's clock minus steady clock [s], to stamp horizons with; NaN leaves them without a stamp.
    """

    def __init__(self, table: HorizonTable) -> None:
        self.table = table
        self.state = MotionState.READY
        self.reason = ""
        self.clock_offset = float("nan")
        self._started = 0.0
        self._brake = 0

    def start(self, begin: float) -> Horizon:
        """Begin the plan at ``begin`` [s, steady clock], now or soon; return the first horizon.

        Raises
        ------
        ExcitationError
            Started before.
        """
        if self.state is not MotionState.READY:
            raise ExcitationError("execution: already started; make a new one for every run")
        self.state, self._started = MotionState.MOVING, begin
        return self.step(begin)

    def delay(self, seconds: float) -> None:
        """Shift the motion by a time [s] in which a robot that only follows streamed positions stood still."""
        self._started += seconds

    def step(self, now: float) -> Horizon:
        """Return what to send now; empty when stopping, at rest, late, or where the last one holds the plan's end.

        That one sent again may arrive after the end, and controllers reject what is over.
        """
        phase = self._advance(now)
        if self.state is not MotionState.MOVING or self._brake and self._ends_by_itself:
            return self._empty_horizon()
        self._brake = max(self._brake, self.table.brake_index(phase, self.table.options.horizon_s))
        return self.table.horizon(phase, self._brake, now + self.clock_offset)

    def stop(self, now: float, reason: str) -> Horizon:
        """Brake from the phase commanded now; return the horizon that does it, empty when that makes no difference."""
        phase = self._advance(now)
        if self.state is not MotionState.MOVING:
            return self._empty_horizon()
        brake = min(self.table.brake_index(phase, self.table.options.latency_s), self._brake)
        self.state, self.reason, self._brake = MotionState.STOPPING, reason, brake
        return self.table.horizon(phase, brake, now + self.clock_offset)

    def run_out(self, now: float, reason: str) -> None:
        """Stop by sending nothing more: the robot comes to rest with the brake of the last horizon."""
        self._advance(now)
        if self.state is MotionState.MOVING:
            self.state, self.reason = MotionState.STOPPING, reason

    def commanded(self, now: float) -> tuple[Array, Array, Array]:
        """Return the position, velocity and acceleration ``(n,)`` that are commanded at ``now``."""
        return self.table.commanded(max(now - self._started, 0.0) if self._is_started else 0.0, self._brake)

    def phase(self, now: float) -> float:
        """Return the seconds of the plan that are done, 0 to its duration; where it brakes, no more than there."""
        if not self._is_started:
            return self.table.begin
        end = self._brake * self.table.options.grid_s if self.state is not MotionState.MOVING else math.inf
        return max(min(now - self._started, self.table.duration, end) + self.table.ahead, self.table.begin)

    @property
    def rest_phase(self) -> float:
        """Seconds of the plan [s] after which the last horizon rests."""
        duration = self.table.plan.duration
        return duration if self._ends_by_itself else min(self.table.brakes.rest_phase(self._brake), duration)

    def resting_phase(self, position: Array, tolerance: float, lost_s: float) -> float:
        """Return the seconds of the plan at which a robot rests.

        That is where the last horizon ends, or where an earlier one does if the last ones were lost.

        Parameters
        ----------
        position : ndarray, shape (n,)
            Where it rests.
        tolerance : float
            Distance from the path [rad or m].
        lost_s : float
            For how long horizons may have been lost [s].

        Returns
        -------
        float
            NaN if it rests elsewhere.
        """
        end, begin = self.rest_phase, self.table.begin
        phases = np.arange(end, max(end - lost_s, begin) - _TINY, -self.table.options.step_s)
        distances = np.abs(self.table.plan.sample(phases)[0] - position).max(axis=1)
        nearest = 0 if distances[0] <= tolerance else int(np.argmin(distances))
        return float(phases[nearest]) if distances[nearest] <= tolerance else math.nan

    def at_rest(self, now: float) -> bool:
        """Return whether everything that was sent has come to rest by ``now``."""
        self._advance(now)
        return self.state not in (MotionState.MOVING, MotionState.STOPPING)

    def is_stopping(self, now: float) -> bool:
        """Return whether the motion brakes, or has, before the end of the plan."""
        self._advance(now)
        return self.state in (MotionState.STOPPING, MotionState.STOPPED)

    @property
    def _ends_by_itself(self) -> bool:
        """Whether the last horizon follows the plan to its end, without a brake."""
        return self._brake * self.table.options.grid_s >= self.table.duration - _TINY

    @property
    def _is_started(self) -> bool:
        return self.state is not MotionState.READY

    def _advance(self, now: float) -> float:
        phase, table = now - self._started, self.table  # below zero until the plan begins
        if self.state is MotionState.MOVING and self._brake:
            begin = self._brake * table.options.grid_s
            if not self._ends_by_itself and phase > begin - table.options.latency_s:
                self.state = MotionState.STOPPING
                self.reason = f"no horizon was sent before {begin + table.ahead:.2f} s of the plan"
            elif phase >= table.duration:
                self.state = MotionState.DONE
        if self.state is MotionState.STOPPING and phase >= table.rest_time(self._brake):
            self.state = MotionState.STOPPED
        return phase

    def _empty_horizon(self) -> Horizon:
        empty = np.zeros((0, len(self.table.plan.joint_names)))
        return Horizon(self.table.plan.joint_names, np.zeros(0), empty, empty, empty)
