"""Supervisor: one run of a motion under watch. It decides at every tick what is sent, without ROS."""

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from inertid_ros.core.arrays import Array

from .horizons import Horizon, HorizonTable, MotionExecution, MotionState
from .monitor import Lease, StateMonitor

_ARRIVAL_S = 0.05  # s
_LONGEST_PAUSE_S = 0.05  # between streamed positions


class ExecutionStage(Enum):
    """What the robot does while a motion is executed."""

    APPROACHING = "approaching"
    MOVING = "moving"
    STOPPING = "stopping"


@dataclass(frozen=True)
class ExecutionProgress:
    """How far the execution of a motion has come.

    Attributes
    ----------
    stage : ExecutionStage
    fraction : float
        Of the stage, 0 to 1.
    tracking_error : ndarray, shape (n,)
        Commanded minus measured position [rad or m].
    """

    stage: ExecutionStage
    fraction: float
    tracking_error: Array


class Supervisor:
    """Execution, state monitor and lease of one motion. All times are the steady clock [s].

    Parameters
    ----------
    streams: whether the robot follows the positions of each tick and nothing else, so that it stands while ticks are
        missing. A long pause stops the motion, from where the robot stood: it never jumps to where it would be by now.

    Attributes
    ----------
    fault: why the motion was stopped by a fault; empty otherwise. A fault stays until the robot is armed again.
    canceled: whether the motion was stopped because it was asked to.
    """

    def __init__(
        self,
        table: HorizonTable,
        monitor: StateMonitor,
        lease: Lease,
        approach_s: float = 0.0,
        streams: bool = False,
    ) -> None:
        self.execution = MotionExecution(table)
        self.monitor, self.lease = monitor, lease
        self.fault = ""
        self.canceled = False
        self.max_tracking_error = 0.0
        self._approach = approach_s
        self._grid = table.options.grid_s
        self._streams = streams
        self._ticked = math.nan
        self._paused = 0.0
        self._sent = -np.inf
        self._offset = float("nan")
        self._error = np.zeros(len(table.plan.joint_names))
        self._commanded: Array | None = None  # at the last accepted state

    @property
    def moving(self) -> bool:
        return self.execution.state is MotionState.MOVING

    def start(self, now: float, clock_offset: float = float("nan")) -> Horizon:
        """The first horizon; ``clock_offset`` is the robot's clock minus the steady clock [s], where it is known."""
        self.execution.clock_offset = self._offset = clock_offset
        self._sent = now
        return self.execution.start(now)

    def commanded(self, now: float) -> Array:
        """``(n,)`` position that the robot has been told to have."""
        self._notice_pause(now)
        told = min(now, self._ticked) if self._streams else now
        return self.execution.commanded(told)[0]

    def update(self, stamp: float, clock: float, now: float, position: Array, effort: Array) -> None:
        """Take a joint state; see :meth:`StateMonitor.update`."""
        offset = self.execution.clock_offset
        # What was commanded when the state was measured: its way here is no tracking error.
        commanded = self.commanded(stamp - offset if np.isfinite(offset) and np.isfinite(stamp) else now)
        if not self.monitor.update(stamp, clock, now, position, effort, commanded):
            if np.isfinite(self._offset):
                self.execution.clock_offset = self.monitor.clock.offset
            self._commanded, self._error = commanded, commanded - position
            self.max_tracking_error = max(self.max_tracking_error, float(np.abs(self._error).max()))

    def tick(self, now: float) -> Horizon | None:
        """What to send now; None for nothing."""
        self._notice_pause(now)
        self._ticked = now
        if self.moving and self._paused:
            return self.stop(now, f"the sender paused for {self._paused:.3f} s; the robot stood still abruptly")
        if self.moving:
            fault = self.monitor.check(now, self._commanded) or self.lease.check(now)
            if fault is not None:
                return self.stop(now, fault.message)
        if now - self._sent < self._grid - 1e-3:
            return None
        self._sent = now
        horizon = self.execution.step(now) if self.moving else self.execution.remaining(now)
        if not self.moving and self.execution.reason and not self.canceled and not self.fault:
            self.fault = self.execution.reason  # a tick came too late; the robot brakes by itself
        # What ends before it can arrive changes nothing, and controllers complain of it.
        return horizon if len(horizon) and horizon.time_from_start[-1] > _ARRIVAL_S else None

    def stop(self, now: float, reason: str) -> Horizon | None:
        """Brake because of a fault."""
        if not self.fault:
            self.fault = reason
        return self._brake(now, reason)

    def cancel(self, now: float) -> Horizon | None:
        """Brake because it was asked for."""
        self.canceled = True
        return self._brake(now, "canceled")

    def at_rest(self, now: float) -> bool:
        """Whether everything that was sent has come to rest."""
        self._notice_pause(now)
        return self.execution.at_rest(now)

    def progress(self, now: float) -> ExecutionProgress:
        """Where the run is."""
        self._notice_pause(now)
        phase, duration = self.execution.phase(now), self.execution.table.plan.duration
        if not self.moving and not self.at_rest(now):
            return ExecutionProgress(ExecutionStage.STOPPING, phase / duration, self._error)
        if phase < self._approach:
            return ExecutionProgress(ExecutionStage.APPROACHING, phase / self._approach, self._error)
        done = (phase - self._approach) / max(duration - self._approach, 1e-9)
        return ExecutionProgress(ExecutionStage.MOVING, done, self._error)

    def _notice_pause(self, now: float) -> None:
        """The robot stood where the last streamed position was; from there it goes on, and brakes."""
        pause = now - self._ticked
        if self._streams and pause > _LONGEST_PAUSE_S:
            self.execution.slip(pause)
            self._ticked, self._paused = now, max(self._paused, pause)

    def _brake(self, now: float, reason: str) -> Horizon | None:
        self._notice_pause(now)
        self._sent = now
        horizon = self.execution.stop(now, reason)
        return horizon if len(horizon) else None
