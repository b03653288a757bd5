"""Horizons (the next points of a plan, then a brake) that the controller receives, and the execution of a plan.

The controller always has a motion that ends at rest on the checked path. After any failure, the robot is at rest after
at most ``horizon + grid + brake`` seconds. The caller gives times of a steady clock [s].
"""

from copy import copy
from dataclasses import dataclass
from enum import Enum

import numpy as np

from inertid_ros.config.excitation import ExecutionOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.execution.brake import BrakeTable, along_path, brake_table, restarted
from inertid_ros.excitation.motion_limits import MotionLimits, check_curve
from inertid_ros.excitation.plan import Plan
from inertid_ros.excitation.quintic import PiecewiseQuintic

_PHASE_TOLERANCE_S = 1e-9  # for rounding
_LEAD_S = 0.06  # to the first point of a horizon without a stamp; 3 ms of latency jitter then cost at most 10 %
_PAST_S = 0.05  # duration of points before now in a stamped horizon; the tolerated difference of clocks
_HOLD_S = 0.1  # time to reach the held position


@dataclass(frozen=True)
class Horizon:
    """Trajectory points for the controller, ending at rest; empty if there is no command to send.

    Attributes
    ----------
    time_from_start : ndarray, shape (P,)
        Increasing [s].
    position, velocity, acceleration : ndarray, shape (P, n)
        The last point is at rest.
    stamp : float
        Time on the robot's clock [s] from which ``time_from_start`` counts. The first points then lie in the past, so
        that the controller continues on the path at any latency. NaN if the robot's clock is unknown; the controller
        then counts from receipt.
    """

    joint_names: tuple[str, ...]
    time_from_start: Array
    position: Array
    velocity: Array
    acceleration: Array
    stamp: float = float("nan")

    def __len__(self) -> int:
        return len(self.time_from_start)


def hold(joint_names: tuple[str, ...], position: Array, clock: float) -> Horizon:
    """Horizon that keeps a robot at a position ``(n,)``; ``clock`` is the time on the robot's clock [s]."""
    here, rest = np.array([position], dtype=float), np.zeros((1, len(joint_names)))
    return Horizon(joint_names, np.array([_HOLD_S]), here, rest, rest, clock)


class HorizonTable:
    """Horizons for every time of a motion, all computed and verified before the robot moves.

    Attributes
    ----------
    begin : float
        Phase of the plan at which the motion begins from rest [s]: zero, or the resting phase of a resumed motion.
    ahead : float
        Phase of the plan minus time of the motion [s], after the motion has reached its full rate.

    Raises
    ------
    ExcitationError
        The plan, as sampled for the controller, or a brake from one of its phases exceeds a limit.
    """

    def __init__(self, plan: Plan, limits: MotionLimits, options: ExecutionOptions | None = None) -> None:
        self.plan, self.limits, self.options = plan, limits, options or ExecutionOptions()
        if limits.joint_names != plan.joint_names:
            raise ExcitationError("execution: joints of the limits differ from the plan's joints; use the same order")
        step = self.options.step_s
        # The last segment has half a step to one and a half steps, so all segments are long enough for a quintic.
        count = max(int(np.floor(plan.duration / step + 0.5)), 1)
        times = np.append(np.arange(count) * step, plan.duration)
        q, v, a = plan.sample(times)
        self.points = PiecewiseQuintic(times, q, v, a)
        check_curve(self.points, limits)
        self.brakes: BrakeTable = brake_table(plan, limits, self.options.grid_s, step, self.options.brake)
        self._all_points, self._all_brakes = self.points, self.brakes  # of the whole plan, also if it is resumed
        self.begin = self.ahead = 0.0
        self._followed = -1, self.points  # index and curve of the last requested brake

    @property
    def longest(self) -> float:
        """Longest time from a failure of the sender to rest [s]."""
        return self.options.horizon_s + self.options.grid_s + self.brakes.longest

    @property
    def duration(self) -> float:
        return self.points.duration

    def resumed(self, phase: float) -> "HorizonTable":
        """Table of the rest of the plan, for a robot at rest on its path at ``phase`` [s].

        Raises
        ------
        ExcitationError
            A restart within the limits does not exist.
        """
        out, options = copy(self), self.options
        profile, out.brakes, index = restarted(self._all_brakes, self.limits, phase, options.brake)
        seconds = (profile.shape[1] - 1) * options.step_s
        out.begin, out.ahead = phase, index * options.grid_s - seconds
        rows = self._all_points.time > index * options.grid_s + _PHASE_TOLERANCE_S
        rising, later = along_path(self.plan, *profile), self._all_points.knots(rows)
        times = np.append(options.step_s * np.arange(profile.shape[1]), self._all_points.time[rows] - out.ahead)
        out.points = PiecewiseQuintic(times, *np.concatenate([rising, later], axis=1))
        out._followed = -1, out.points
        return out

    def brake_index(self, phase: float, ahead: float) -> int:
        """Index of the first grid phase at least ``ahead`` [s] after ``phase``, at most the last index."""
        index = int(np.ceil((phase + ahead) / self.options.grid_s - _PHASE_TOLERANCE_S))
        return max(min(index, len(self.brakes.points) - 1), 0)

    def horizon(self, phase: float, brake: int, clock: float = float("nan")) -> Horizon:
        """Horizon from ``phase`` [s] that follows the plan to the grid phase of index ``brake`` and brakes there.

        ``clock`` is the time on the robot's clock at this phase [s]; NaN if unknown.
        """
        knots, begin = self.points.time, brake * self.options.grid_s
        # Without a stamp the controller is off by the latency, and needs time to return to the points smoothly.
        after = phase + _LEAD_S if np.isnan(clock) else phase - _PAST_S
        if begin >= self.duration - _PHASE_TOLERANCE_S:
            rows = knots > after
            rows[-1] = True
            times, states = knots[rows], self.points.knots(rows)
        else:
            rows = (knots > after) & (knots < begin - _PHASE_TOLERANCE_S)
            times, *braking = self.brakes.brake(brake)
            keep = times + begin > after
            keep[-1] = True
            times = np.concatenate([knots[rows], times[keep] + begin])
            states = np.concatenate([self.points.knots(rows), np.array(braking)[:, keep]], axis=1)
        q, v, a = states
        if np.isnan(clock):
            return Horizon(self.plan.joint_names, np.maximum(times - phase, 0.0), q, v, a)
        return Horizon(self.plan.joint_names, times - times[0], q, v, a, clock + (times[0] - phase))

    def rest_time(self, brake: int) -> float:
        """Time since the start of the motion [s] at which it is at rest after the brake of index ``brake``."""
        begin = brake * self.options.grid_s
        if begin >= self.duration - _PHASE_TOLERANCE_S:
            return self.duration
        return begin + float(self.brakes.points[brake]) * self.options.step_s

    def commanded(self, phase: float, brake: int) -> tuple[Array, Array, Array]:
        """Position, velocity, acceleration ``(n,)`` commanded at ``phase`` [s] with a brake at grid index ``brake``."""
        begin, curve = brake * self.options.grid_s, self.points
        if begin < min(phase, self.duration - _PHASE_TOLERANCE_S):
            if self._followed[0] != brake:
                times, q, v, a = self.brakes.brake(brake)
                if len(times) == 1:
                    return q[0], v[0], a[0]
                self._followed = brake, PiecewiseQuintic(times, q, v, a)
            curve, phase = self._followed[1], phase - begin
        return curve.at(phase)


class MotionState(Enum):
    """State of an execution."""

    READY = "ready"
    MOVING = "moving"
    STOPPING = "stopping"  # a brake has been sent; the robot is still moving
    STOPPED = "stopped"  # at rest after a brake
    DONE = "done"  # at rest at the end of the plan


class MotionExecution:
    """One execution of a plan: start, a step every command period, and a stop at any time.

    If a step comes too late to replace the last horizon (``latency_s`` before its brake), sending ends and
    :attr:`reason` is set. ``clock_offset`` is the robot's clock minus the steady clock [s]; with NaN, horizons have no
    stamp.
    """

    def __init__(self, table: HorizonTable) -> None:
        self.table = table
        self.state = MotionState.READY
        self.reason = ""
        self.clock_offset = float("nan")
        self._started = 0.0
        self._brake = 0

    def start(self, begin: float) -> Horizon:
        """Start the plan at ``begin`` [s, steady clock], now or soon; return the first horizon."""
        if self.state is not MotionState.READY:
            raise ExcitationError("execution: already started; make a new one for every run")
        self.state, self._started = MotionState.MOVING, begin
        return self.step(begin)

    def delay(self, seconds: float) -> None:
        """Shift the motion by a pause [s] in which a robot with streamed positions stood still."""
        self._started += seconds

    def step(self, now: float) -> Horizon:
        """Horizon to send now; empty when stopping, at rest, late, or if the last horizon contains the plan's end.

        A repeated last horizon might arrive after the end, and controllers reject trajectories in the past.
        """
        phase = self._advance(now)
        if self.state is not MotionState.MOVING or self._brake and self._ends_by_itself:
            return self._empty_horizon()
        self._brake = max(self._brake, self.table.brake_index(phase, self.table.options.horizon_s))
        return self.table.horizon(phase, self._brake, now + self.clock_offset)

    def stop(self, now: float, reason: str) -> Horizon:
        """Brake at the first grid phase after ``latency_s``; return its horizon, empty if the motion already stops."""
        phase = self._advance(now)
        if self.state is not MotionState.MOVING:
            return self._empty_horizon()
        brake = min(self.table.brake_index(phase, self.table.options.latency_s), self._brake)
        self.state, self.reason, self._brake = MotionState.STOPPING, reason, brake
        return self.table.horizon(phase, brake, now + self.clock_offset)

    def run_out(self, now: float, reason: str) -> None:
        """Stop without a command: the robot comes to rest with the brake of the last horizon."""
        self._advance(now)
        if self.state is MotionState.MOVING:
            self.state, self.reason = MotionState.STOPPING, reason

    def commanded(self, now: float) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration ``(n,)`` commanded at ``now``."""
        return self.table.commanded(max(now - self._started, 0.0) if self._is_started else 0.0, self._brake)

    def phase(self, now: float) -> float:
        """Completed seconds of the plan, at most to the start of the brake."""
        if not self._is_started:
            return self.table.begin
        end = self._brake * self.table.options.grid_s if self.state is not MotionState.MOVING else np.inf
        return max(min(now - self._started, self.table.duration, end) + self.table.ahead, self.table.begin)

    @property
    def rest_phase(self) -> float:
        """Phase of the plan [s] at which the last horizon comes to rest."""
        duration = self.table.plan.duration
        return duration if self._ends_by_itself else min(self.table.brakes.rest_phase(self._brake), duration)

    def resting_phase(self, position: Array, tolerance: float, lost_s: float) -> float:
        """Phase of the plan [s] of a robot at rest at ``position`` ``(n,)``; NaN if the position is away from the path.

        The robot rests at the end of the last horizon or, if later horizons were lost, up to ``lost_s`` seconds before.
        ``tolerance`` is the largest distance from the path [rad or m].
        """
        end, begin = self.rest_phase, self.table.begin
        phases = np.arange(end, max(end - lost_s, begin) - _PHASE_TOLERANCE_S, -self.table.options.step_s)
        distances = np.abs(self.table.plan.sample(phases)[0] - position).max(axis=1)
        nearest = 0 if distances[0] <= tolerance else int(np.argmin(distances))
        return float(phases[nearest]) if distances[nearest] <= tolerance else np.nan

    def at_rest(self, now: float) -> bool:
        """True if the commanded motion has come to rest by ``now``."""
        self._advance(now)
        return self.state not in (MotionState.MOVING, MotionState.STOPPING)

    def is_stopping(self, now: float) -> bool:
        """True if the motion brakes or has braked before the end of the plan."""
        self._advance(now)
        return self.state in (MotionState.STOPPING, MotionState.STOPPED)

    @property
    def _ends_by_itself(self) -> bool:
        """True if the last horizon follows the plan to its end, without a brake."""
        return self._brake * self.table.options.grid_s >= self.table.duration - _PHASE_TOLERANCE_S

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


class ExecutionStage(Enum):
    """Stage of the execution of a motion."""

    APPROACHING = "approaching"
    MOVING = "moving"
    STOPPING = "stopping"
    WAITING = "waiting"  # at rest on the path; continues by itself


@dataclass(frozen=True)
class ExecutionProgress:
    """Completed fraction of a stage, and commanded minus measured position ``(n,)`` [rad or m]."""

    stage: ExecutionStage
    fraction: float
    tracking_error: Array
