"""Supervisor: one execution of a motion under watch. At every tick it decides what is sent, without ROS."""

import math
from typing import Protocol

import numpy as np

from inertid_ros.core.arrays import Array

from .controller_progress import ControllerProgress
from .execution_progress import ExecutionProgress, ExecutionStage
from .horizons import Horizon, HorizonTable, hold
from .monitor import Lease, StateMonitor
from .motion_execution import MotionExecution, MotionState
from .plan_check import is_full_speed
from .standstill import Standstill

_LONGEST_PAUSE_S = 0.05  # between streamed positions
_EARLY_S = 1e-3  # before it is due, at which a horizon is sent already
_ZERO_SCALING = 0.01  # a told scaling below keeps the robot where it stands
_ELSEWHERE = 0.02  # rad or m; a robot that stands farther from the end of its brake may still go on


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

    A horizon is sent on a state that shows that the robot has kept up with the last one. Where the controller's speed
    is scaled, nothing more is sent: a further horizon would make the robot jump, and the last one ends at rest by
    itself. A brake is sent once: if it is lost, the robot comes to rest by its last horizon, and a brake that arrives
    later would make it jump.

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
    halt : str
        Why the controller has stopped the robot by itself and holds it; to be told by the owner, empty otherwise.
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
        self.fault = self.halt = ""
        self.canceled = False
        self.max_tracking_error = self._error_before = 0.0  # the latter until the stop
        self._commands = commands
        self._approach = approach_s
        self._period = table.options.period_s
        # For a state that shows progress; without one the horizon is extended before it ends.
        self._patience = 0.5 * (table.options.horizon_s - table.options.latency_s - self._period)
        self._progress = ControllerProgress(len(table.plan.joint_names), monitor.options.progress_tolerance)
        self._scaling = 1.0
        self._silent = False  # whether the robot is left to the last horizon
        self._frozen = False  # whether states told nothing when the scaling was told
        self._informed = False  # whether a state has been accepted since the last tick
        self._standstill, self._held = Standstill(), False
        self._started = self._sent = -math.inf
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

        One with a stamp begins ``latency_s`` later: a resting robot that receives it after it began would jump.

        Parameters
        ----------
        now : float
        clock_offset : float
            Robot's clock minus steady clock [s]; NaN where it is not known.
        """
        self.execution.clock_offset = self._offset = clock_offset
        self._started = self._sent = now
        latency = self.execution.table.options.latency_s if math.isfinite(clock_offset) else 0.0
        self._send(self.execution.start(now + latency))

    def commanded(self, now: float) -> Array:
        """Return the position ``(n,)`` that is commanded at ``now``."""
        return self._motion(now)[0]

    def update(self, stamp: float, clock: float, now: float, position: Array, effort: Array) -> None:
        """Take a joint state, on which the next tick acts.

        See :meth:`.RobotClock.take` and :meth:`.StateMonitor.update`.
        """
        # What was commanded when the state was measured: its latency is no tracking error.
        time = self.monitor.clock.take(stamp, clock, now)
        commanded, velocity, acceleration = self._motion(time)
        rejection = self.monitor.update(time, now, position, effort, commanded)
        if math.isfinite(self._offset) and math.isfinite(self.monitor.clock.offset):
            self.execution.clock_offset = self.monitor.clock.offset
        if rejection:
            return
        self._commanded, self._error = commanded, commanded - position
        self.max_tracking_error = max(self.max_tracking_error, float(np.abs(self._error).max()))
        self._standstill.update(now, position)
        if not self._commands.streams:
            self._progress.update(time, self._error, velocity, acceleration)
        self._informed = True

    def scale(self, now: float, factor: float) -> None:
        """Take the controller's speed scaling, 1 where it is not scaled; a motion ends where it is."""
        self._scaling = factor
        if self._is_scaled and not self._silent and not self.at_rest(now):
            self._silent, self._frozen = True, self.monitor.is_frozen(self._commanded)
            if self.moving:
                self.stop(now, f"the controller's speed scaling is {100 * factor:.0f} %; set it to 100 %")

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
        if cancel and not self.at_rest(now) and self.moving:
            self.canceled = True
            self._brake(now, "canceled")
        self._watch(now)
        if self._commands.streams:
            self._commands.stream(self.commanded(now))
        return self._has_ended(now)

    def may_send(self, now: float) -> bool:
        """Return whether the next horizon may be sent on a state that comes now."""
        return self.moving and now >= self._sent + self._period - _EARLY_S

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

    def stage(self, now: float) -> ExecutionStage:
        """Return what the robot does; once it stops, that stays so."""
        self._account_for_pause(now)
        if self.fault or self.canceled or self.execution.is_stopping(now):
            return ExecutionStage.STOPPING
        return ExecutionStage.APPROACHING if self.execution.phase(now) < self._approach else ExecutionStage.MOVING

    def progress(self, now: float) -> ExecutionProgress:
        """Return how far the execution has come."""
        self._account_for_pause(now)
        phase, duration = self.execution.phase(now), self.execution.table.plan.duration
        stage = self.stage(now)
        if stage is ExecutionStage.STOPPING:
            return ExecutionProgress(stage, phase / duration, self._error)
        if stage is ExecutionStage.APPROACHING:
            return ExecutionProgress(stage, phase / self._approach, self._error)
        done = (phase - self._approach) / max(duration - self._approach, 1e-9)
        return ExecutionProgress(stage, done, self._error)

    def _motion(self, now: float) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration ``(n,)`` that are commanded at ``now``."""
        self._account_for_pause(now)
        return self.execution.commanded(min(now, self._ticked) if self._commands.streams else now)

    @property
    def _is_scaled(self) -> bool:
        return not is_full_speed(self._scaling)

    def _watch(self, now: float) -> None:
        self._account_for_pause(now)
        was_held_up = now - self._ticked > self._patience
        self._ticked = now
        if self.moving and self._paused:
            self.stop(now, f"the sender paused for {self._paused:.3f} s; the robot stood still abruptly")
        if not self.at_rest(now) and self.moving:  # unless this tick is so late that the robot brakes by itself
            fault = self.monitor.check(now, self._commanded) or self.lease.check(now)
            if fault:
                self.stop(now, fault)
        self._extend(now)
        self._informed = False
        self._note_late_sender(was_held_up)

    def _extend(self, now: float) -> None:
        """Send the next horizon where it is due and the robot has kept up with the last one.

        It is due on the first state after a period, and where none comes, before the last one ends.
        """
        due = self._sent + self._period + (0.0 if self._informed else self._patience)
        if not self.moving or now < due - _EARLY_S:
            return
        frozen = self.monitor.is_frozen(self._commanded)
        if not (frozen or self.monitor.clock.is_lost or self._progress.disagrees):
            self._sent = now
            self._send(self.execution.step(now))

    def _note_late_sender(self, was_held_up: bool) -> None:
        """A horizon was not extended in time: the robot brakes by itself.

        Where this process was held up, that is why; states that waited meanwhile tell nothing.
        """
        if self.moving or self.canceled or self.fault or not self.execution.reason:
            return
        self.fault, self._silent = self.execution.reason, True
        if was_held_up:
            return
        if self._progress.disagrees:
            self.fault = self._progress.explanation
        elif self.monitor.clock.is_lost:
            self.fault = self.monitor.clock.explanation

    def _has_ended(self, now: float) -> bool:
        """Whether the robot is at rest; where its controller's speed is scaled, that is later than commanded."""
        if not self._standstill.has_settled(now, self.at_rest(now)):
            return False
        distance = self._standstill.distance(now, self.commanded(now))
        elsewhere = _ELSEWHERE if self._silent else max(_ELSEWHERE, 1.5 * self._error_before)
        if distance <= elsewhere or self._commands.streams or self._held or not self.execution.is_stopping(now):
            return True
        if self.halt:
            if self.halt not in self.fault:
                self.fault = f"{self.fault or 'the robot was stopped'}; {self.halt}"
            return True
        self._held = True
        if not np.isfinite(distance) or self._frozen or self._scaling > _ZERO_SCALING:
            where = f"it stands {distance:.2g} from the end of its brake"
            where = where if np.isfinite(distance) else "no joint state tells where it stands"
            self.fault = f"{self.fault or 'the robot was stopped'}; {where} and may go on; deactivate the controller"
            return True
        # What the controller still holds must not move the robot once the scaling is raised.
        self._standstill.command(now)
        clock = now + self.execution.clock_offset
        self._send(hold(self.execution.table.plan.joint_names, self._standstill.position, clock))
        return False

    def _account_for_pause(self, now: float) -> None:
        """After a pause the robot stands at the last streamed position; the motion continues, and brakes, there."""
        pause = now - self._ticked
        if self._commands.streams and pause > _LONGEST_PAUSE_S:
            self.execution.delay(pause)
            self._ticked, self._paused = now, max(self._paused, pause)

    def _brake(self, now: float, reason: str) -> None:
        self._account_for_pause(now)
        self._sent = now
        if self.moving:
            self._error_before = self.max_tracking_error
        # To a robot that stands, a brake would be a jump.
        self._silent |= self._is_scaled or self._progress.disagrees or bool(self.halt)
        if self._silent:
            self.execution.run_out(now, reason)
        else:
            if self.monitor.clock.is_lost:  # a brake by the wrong clock would be a jump
                self.execution.clock_offset = math.nan
            self._send(self.execution.stop(now, reason))

    def _send(self, horizon: Horizon) -> None:
        if len(horizon):
            self._commands.send(horizon)
            self._progress.sent(self._sent)
