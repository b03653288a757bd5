"""Supervisor: one execution of a motion under watch. At every tick it decides what is sent, without ROS."""

import math
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import numpy as np

from inertid_ros.core.arrays import Array

from .horizons import Horizon, HorizonTable
from .monitor import Lease, StateMonitor
from .motion_execution import MotionExecution, MotionState

_ARRIVAL_S = 0.05  # what ends sooner has no effect
_LONGEST_PAUSE_S = 0.05  # between streamed positions
_LAG_S = 0.3  # of the controller behind the last command, until the robot is at rest


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


class CommandInterface(Protocol):
    """Where commands go.

    Attributes
    ----------
    streams : bool
        Whether the robot follows the position of each tick and nothing else, so that it stands while ticks are missing.
    """

    streams: bool

    def begin(self) -> None:
        """Forget what went wrong in the last motion."""

    def send(self, horizon: Horizon) -> None:
        """Replace what the robot follows."""

    def stream(self, position: Array) -> None:
        """Position ``(n,)`` commanded at this tick; only robots that are streamed to use it."""


class Supervisor:
    """Execution, state monitor and lease of one motion. All times are of the steady clock [s].

    Where positions are streamed, a long pause stops the motion from where the robot stood: it never jumps to where it
    would be by now.

    Parameters
    ----------
    table : HorizonTable
        Of the approach and the motion.
    monitor : StateMonitor
    lease : Lease
    commands : CommandInterface
    approach_s : float
        Duration of the approach [s].

    Attributes
    ----------
    fault : str
        Why the motion was stopped by a fault; empty otherwise. A fault stays until the robot is armed again.
    canceled : bool
        Whether the motion was stopped on request.
    max_tracking_error : float
        Over all joints so far [rad or m].
    """

    def __init__(
        self,
        table: HorizonTable,
        monitor: StateMonitor,
        lease: Lease,
        commands: CommandInterface,
        approach_s: float = 0.0,
    ) -> None:
        self.execution = MotionExecution(table)
        self.monitor, self.lease = monitor, lease
        self.fault = ""
        self.canceled = False
        self.max_tracking_error = 0.0
        self._commands = commands
        self._approach = approach_s
        self._grid = table.options.grid_s
        self._started = self._moved = self._sent = -math.inf
        self._ticked = self._offset = math.nan
        self._paused = 0.0
        self._error = np.zeros(len(table.plan.joint_names))
        self._commanded: Array | None = None  # at the last accepted state

    @property
    def moving(self) -> bool:
        """Whether the motion is followed; false once a brake has begun."""
        return self.execution.state is MotionState.MOVING

    def start(self, now: float, clock_offset: float = float("nan")) -> None:
        """Send the first horizon.

        Parameters
        ----------
        now : float
        clock_offset : float
            Robot's clock minus steady clock [s]; NaN where it is not known.
        """
        self.execution.clock_offset = self._offset = clock_offset
        self._started = self._moved = self._sent = now
        self._send(self.execution.start(now))

    def commanded(self, now: float) -> Array:
        """Return the position ``(n,)`` that is commanded at ``now``."""
        self._account_for_pause(now)
        latest = min(now, self._ticked) if self._commands.streams else now
        return self.execution.commanded(latest)[0]

    def update(self, stamp: float, clock: float, now: float, position: Array, effort: Array) -> None:
        """Take a joint state; see :meth:`StateMonitor.update`."""
        offset = self.execution.clock_offset
        # What was commanded when the state was measured: its latency is no tracking error.
        commanded = self.commanded(stamp - offset if np.isfinite(offset) and np.isfinite(stamp) else now)
        if not self.monitor.update(stamp, clock, now, position, effort, commanded):
            if np.isfinite(self._offset):
                self.execution.clock_offset = self.monitor.clock.offset
            self._commanded, self._error = commanded, commanded - position
            self.max_tracking_error = max(self.max_tracking_error, float(np.abs(self._error).max()))

    def tick(self, now: float, cancel: bool = False) -> bool:
        """Watch and send.

        Parameters
        ----------
        now : float
        cancel : bool
            Whether the motion is to be stopped on request.

        Returns
        -------
        bool
            Whether the robot has come to rest.
        """
        if self.moving and cancel:
            self.canceled = True
            self._brake(now, "canceled")
        self._watch_and_send(now)
        self._commands.stream(self.commanded(now))
        if not self.at_rest(now):
            self._moved = now
        return now - self._moved >= _LAG_S

    def stop(self, now: float, reason: str) -> None:
        """Brake because of a fault."""
        if not self.fault:
            self.fault = reason
        self._brake(now, reason)

    def at_rest(self, now: float) -> bool:
        """Return whether all commands have come to rest."""
        self._account_for_pause(now)
        return self.execution.at_rest(now)

    def duration(self, now: float) -> float:
        """Return the time since the start [s]."""
        return now - self._started

    def progress(self, now: float) -> ExecutionProgress:
        """Return how far the execution has come."""
        self._account_for_pause(now)
        phase, duration = self.execution.phase(now), self.execution.table.plan.duration
        if not self.moving and not self.at_rest(now):
            return ExecutionProgress(ExecutionStage.STOPPING, phase / duration, self._error)
        if phase < self._approach:
            return ExecutionProgress(ExecutionStage.APPROACHING, phase / self._approach, self._error)
        done = (phase - self._approach) / max(duration - self._approach, 1e-9)
        return ExecutionProgress(ExecutionStage.MOVING, done, self._error)

    def _watch_and_send(self, now: float) -> None:
        self._account_for_pause(now)
        self._ticked = now
        if self.moving and self._paused:
            self.stop(now, f"the sender paused for {self._paused:.3f} s; the robot stood still abruptly")
            return
        if self.moving:
            fault = self.monitor.check(now, self._commanded) or self.lease.check(now)
            if fault:
                self.stop(now, fault)
                return
        if now - self._sent < self._grid - 1e-3:
            return
        self._sent = now
        horizon = self.execution.step(now) if self.moving else self.execution.remaining(now)
        if not self.moving and self.execution.reason and not self.canceled and not self.fault:
            self.fault = self.execution.reason  # a tick came too late; the robot brakes by itself
        # A horizon that ends before it can arrive changes nothing, and controllers report it as an error.
        if len(horizon) and horizon.time_from_start[-1] > _ARRIVAL_S:
            self._send(horizon)

    def _account_for_pause(self, now: float) -> None:
        """After a pause the robot stands at the last streamed position; the motion continues, and brakes, there."""
        pause = now - self._ticked
        if self._commands.streams and pause > _LONGEST_PAUSE_S:
            self.execution.delay(pause)
            self._ticked, self._paused = now, max(self._paused, pause)

    def _brake(self, now: float, reason: str) -> None:
        self._account_for_pause(now)
        self._sent = now
        self._send(self.execution.stop(now, reason))

    def _send(self, horizon: Horizon) -> None:
        if len(horizon):
            self._commands.send(horizon)
