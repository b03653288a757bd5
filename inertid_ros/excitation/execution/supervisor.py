"""Supervision of the execution of a motion: decide at every tick which command to send."""

import math
from collections import deque
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.execution import horizons
from inertid_ros.excitation.execution.monitor import Lease, StateMonitor
from inertid_ros.excitation.execution.plan_check import is_full_speed
from inertid_ros.excitation.execution.tracking import PathProgress, Standstill

_MAX_STREAM_PAUSE_S = 0.05  # between streamed positions
_MAX_EARLY_S = 1e-3  # a horizon may be sent this long before it is due
_MAX_ZERO_SCALING = 0.01  # with a lower speed scaling the robot stands still
_END_TOLERANCE = 0.02  # rad or m; a robot that stands farther from the end of its brake may still move on
RESTART_S = 0.25  # time for the controller to move a robot at rest up to 20 mrad back onto its path
_MAX_LOST_PLAN_S = 0.5  # longest part of the plan in lost horizons
_MAX_LAST_HORIZON_S = 1.0  # longest part of the plan in a horizon and its brake
_MAX_LATE_MESSAGES, _LATE_MESSAGES_WINDOW_S = 3, 10.0  # this many messages within this time are not chance
_PROGRESS_TOLERANCE_SHARE = 0.1  # of the tracking tolerance; largest forward jump that a horizon may cause


class CommandInterface(Protocol):
    """Receiver of commands.

    If it ``streams``, the robot follows only the position of each tick, and stands still while ticks are missing. The
    methods here are written for a topic, which does not report when or whether commands are taken.
    """

    streams: bool = False

    def begin(self) -> None:
        """Clear failures of the last motion."""

    def send(self, horizon: horizons.Horizon) -> None:
        """Replace the trajectory that the robot follows."""

    @property
    def is_behind(self) -> bool:
        """True if the robot has not taken a command for so long that further commands would make it jump."""
        return False

    def lateness(self) -> str:
        """Return a message if the robot took a command too late, or has not taken it yet; else an empty string."""
        return ""

    def stream(self, position: Array) -> None:
        """Command a position ``(n,)`` at this tick; only if ``streams``."""


@dataclass(frozen=True)
class _Objection:
    """Reason not to send a further horizon.

    ``passes`` is whether the reason may end while the robot rests. ``late_messages`` is the number of messages that
    count as late at the controller. If the driver ``stood_still``, it published no states, so a scaled speed is not the
    reason.
    """

    why: str
    passes: bool = True
    late_messages: int = 0
    stood_still: bool = False

    @property
    def controller_is_behind(self) -> bool:
        return self.late_messages > 0


class Supervisor:
    """Execution, state monitor and lease of one motion. All times are of the steady clock [s].

    A horizon is sent only after a state has proved that the robot kept up with the last horizon. If a horizon cannot be
    sent in time (states are late, or this process was held up), the last horizon ends at rest by itself. The robot
    waits there, on its checked path, and continues after states return. If the controller's speed is scaled, sending
    ends, as a further horizon would make the robot jump. A brake is sent once, as a later brake would be a jump; if the
    brake is lost, the last horizon ends at rest. If positions are streamed, a long pause stops the motion at the last
    position.

    ``table`` contains the horizons of the approach, which takes ``approach_s`` seconds, and of the motion.

    Attributes
    ----------
    fault : str
        Reason for a stop by a fault, or empty. A fault stays until the robot is armed again.
    canceled : bool
        True if the motion was stopped on request.
    interruption : str
        Reason why the robot pauses at rest and will continue, or empty.
    halt : str
        Reason why the controller itself stopped the robot and holds it, or empty; set by the owner.
    max_tracking_error : float
        Largest tracking error over all joints so far [rad or m; for wheels see :class:`.StateMonitor`].
    """

    def __init__(
            self, table: horizons.HorizonTable, monitor: StateMonitor, lease: Lease, commands: CommandInterface,
            approach_s: float = 0.0) -> None:
        self.execution = horizons.MotionExecution(table)
        self.monitor, self.lease = monitor, lease
        self.fault = self.halt = self.interruption = ""
        self.interruptions = 0
        self.canceled = False
        self.max_tracking_error = self._error_before = 0.0  # error before: its value at the stop
        self._commands = commands
        self._approach = approach_s
        self._options = table.options
        self._held_up_s = 0.5 * (table.options.horizon_s - table.options.latency_s - table.options.period_s)
        options, joints = monitor.options, len(table.plan.joint_names)
        tolerance = options.progress_tolerance or _PROGRESS_TOLERANCE_SHARE * options.tracking_tolerance
        self._progress = PathProgress(joints, tolerance)
        self._scaling = 1.0
        self._silent = False  # whether sending has ended and the last horizon runs out
        self._frozen = False  # whether states were frozen when the motion was stopped
        self._objection: _Objection | None = None  # to a further horizon, from the newest states
        self._informed = False  # whether a state was accepted after the next horizon became due
        self._standstill, self._held = Standstill(), False
        self._started = self._sent = -math.inf
        self._ticked = self._offset = math.nan
        self._paused = self._longest_tick = 0.0  # longest tick since the last horizon
        # Times at which the controller had not kept up (False), and at which its driver had stood still (True).
        self._late = {stood: deque[float](maxlen=_MAX_LATE_MESSAGES) for stood in (False, True)}
        self._waiting_since = math.nan  # start of the rest of a robot that will continue
        self._error = np.zeros(joints)
        self._commanded: Array | None = None  # position commanded at the last accepted state

    @property
    def moving(self) -> bool:
        """True if the robot follows the motion without braking."""
        return self.execution.state is horizons.MotionState.MOVING

    @property
    def waiting(self) -> bool:
        """True if the robot rests, and will continue by itself."""
        return not math.isnan(self._waiting_since)

    def start(self, now: float, clock_offset: float = float("nan")) -> None:
        """Send the first horizon.

        A horizon with a stamp begins ``latency_s`` later, as a robot at rest would jump if the horizon arrived after
        its start. ``clock_offset`` is the robot's clock minus the steady clock [s]; NaN if unknown.
        """
        self.execution.clock_offset = self._offset = clock_offset
        self._started = now
        latency = self._options.latency_s if math.isfinite(clock_offset) else 0.0
        self._send(now, self.execution.start(now + latency))

    def commanded(self, now: float) -> Array:
        return self._motion(now)[0]

    def update(self, stamp: float, clock: float, now: float, position: Array, effort: Array) -> None:
        """Take a joint state for the next tick; see :meth:`.RobotClock.take`."""
        # Compare with the command at the time of measurement, so that latency does not count as tracking error.
        time = self.monitor.clock.take(stamp, clock, now)
        commanded, velocity, acceleration = self._motion(time)
        rejection = self.monitor.update(time, now, position, effort, commanded)
        if math.isfinite(self._offset) and math.isfinite(self.monitor.clock.offset):
            self.execution.clock_offset = self.monitor.clock.offset
        if rejection:
            return
        units = self.monitor.units
        self._commanded, self._error = commanded, (commanded - position) / units
        if not self.interruption:  # during an interruption the robot may rest at the end of an earlier horizon
            self.max_tracking_error = max(self.max_tracking_error, float(np.abs(self._error).max()))
        self._standstill.update(now, position)
        if not self._commands.streams:
            self._progress.update(time, self._error, velocity / units, acceleration / units)
        self._informed = self.may_send(now) and (self._commands.streams or self._progress.is_known(now))

    def update_reference(self, stamp: float, position: Array) -> None:
        """Take the controller's reference position ``(n,)``, with the stamp of its state [s, robot's clock]."""
        time = stamp - self.monitor.clock.offset  # NaN before the first joint state
        if math.isfinite(time) and self.moving:
            units, (commanded, velocity, _) = self.monitor.units, self._motion(time)
            self._progress.update_reference(time, (commanded - position) / units, velocity / units)

    def scale(self, now: float, factor: float) -> None:
        """Take the controller's speed scaling (1 is full speed); end a scaled motion."""
        self._scaling = factor
        if not self._is_scaled or self._silent:
            return
        if self.waiting or not self.at_rest(now):
            self._silent = True
            if self.moving or self.interruption:
                self.stop(now, f"the controller's speed scaling is {100 * factor:.0f} %; set it to 100 %")

    def tick(self, now: float, cancel: bool = False) -> bool:
        """Monitor and send; ``cancel`` stops the motion on request. Return whether the robot is at rest for good."""
        if cancel and (self.moving and not self.at_rest(now) or self.interruption):
            self.canceled = True
            self._brake(now, "canceled")
        self._watch(now)
        if self._commands.streams:
            self._commands.stream(self.commanded(now))
        return self._has_ended(now)

    def may_send(self, now: float) -> bool:
        """True if a state that arrives now may trigger the next horizon."""
        return self.moving and now >= self._sent + self._options.period_s - _MAX_EARLY_S

    def stop(self, now: float, reason: str) -> None:
        if not self.fault:
            self.fault = reason
            self._frozen = self.monitor.is_frozen(self._commanded)
        self._brake(now, reason)

    def at_rest(self, now: float) -> bool:
        """True if the commanded motion has come to rest."""
        self._account_for_pause(now)
        return self.execution.at_rest(now)

    def duration(self, now: float) -> float:
        return now - self._started

    def stage(self, now: float) -> horizons.ExecutionStage:
        self._account_for_pause(now)
        if self.waiting:
            return horizons.ExecutionStage.WAITING
        if self.fault or self.canceled or self.execution.is_stopping(now):
            return horizons.ExecutionStage.STOPPING
        approaching = self.execution.phase(now) < self._approach
        return horizons.ExecutionStage.APPROACHING if approaching else horizons.ExecutionStage.MOVING

    def progress(self, now: float) -> horizons.ExecutionProgress:
        stage = self.stage(now)
        phase, duration = self.execution.phase(now), self.execution.table.plan.duration
        begin = self._approach if stage is horizons.ExecutionStage.MOVING else 0.0
        end = self._approach if stage is horizons.ExecutionStage.APPROACHING else duration
        return horizons.ExecutionProgress(stage, (phase - begin) / max(end - begin, 1e-9), self._error)

    def _motion(self, now: float) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration ``(n,)`` commanded at ``now``."""
        self._account_for_pause(now)
        return self.execution.commanded(min(now, self._ticked) if self._commands.streams else now)

    @property
    def _is_scaled(self) -> bool:
        return not is_full_speed(self._scaling)

    def _watch(self, now: float) -> None:
        self._account_for_pause(now)
        since_tick = now - self._ticked if math.isfinite(self._ticked) else 0.0
        self._longest_tick, self._ticked = max(self._longest_tick, since_tick), now
        if since_tick > self._held_up_s:
            self.lease.excuse(now)
        if self.moving and self._paused:
            self.stop(now, f"the sender paused for {self._paused:.3f} s; the robot stood still abruptly")
        if self.moving and not self.at_rest(now):  # not if this tick is so late that the robot already brakes by itself
            fault, lapse = self._problem(now)
            if fault:
                self.stop(now, fault)
            elif lapse:
                self._interrupt(lapse)
                self._brake(now, lapse)
        self._extend(now)
        self._note_interruption(now)

    def _problem(self, now: float) -> tuple[str, str]:
        """Reason to stop the motion for good, and reason to interrupt the motion for a while; each may be empty."""
        monitor, lapse = self.monitor, self.lease.check(now) or self.monitor.low_rate(now)
        # If the controller itself is behind, the distance from the command is not a tracking error of the robot.
        behind = bool(self._objection and self._objection.controller_is_behind) and self._progress.has_reference
        commanded = monitor.position if behind else self._commanded
        if blindness := monitor.blindness(now, commanded):
            return blindness, lapse
        error = monitor.tracking_error(commanded)
        stall = monitor.stall(now) or self._commands.lateness()
        if not error:
            effort = monitor.excessive_effort(now)
            return f"{stall}; {effort}" if stall and effort else effort, lapse
        # A controller that stood still continues at the current point of the plan; a blocked robot does not follow.
        objection = _Objection(stall, late_messages=1, stood_still=True)
        if not stall:
            return error, lapse
        if self._is_late_too_often(now, objection):
            remedy = "give the driver real-time priority, or take other work off its computer"
            return f"{stall}, {_MAX_LATE_MESSAGES} times within {_LATE_MESSAGES_WINDOW_S:g} s; {remedy}", lapse
        self._objection = objection
        return "", stall

    def _extend(self, now: float) -> None:
        """Send the next horizon if it is due and a state proves that the robot kept up with the last horizon."""
        if not (self._informed and self.may_send(now)):
            return
        self._objection = self._new_objection(now)
        if self._objection is None:
            horizon = self.execution.step(now)
            if self.moving:
                self._send(now, horizon)

    def _new_objection(self, now: float) -> _Objection | None:
        if self._commands.is_behind:
            return _Objection(self._commands.lateness())
        if self.monitor.is_frozen(self._commanded):
            why = "joint states keep every digit while the robot is commanded on; check the driver"
            return _Objection(why, passes=False)
        if self.monitor.clock.is_lost:  # the clock is learned again at rest
            return _Objection(self.monitor.clock.explanation)
        if self._progress.disagrees(now):
            # A controller whose next horizon was late rests at the end of its last horizon. A repeated lag means a
            # scaled speed or an overloaded computer; it counts twice, so that another lag soon after ends the motion.
            return _Objection(self._progress.explanation, late_messages=2 if self._progress.is_repeated else 1)
        return None

    def _note_interruption(self, now: float) -> None:
        """If the robot brakes by itself, record why the next horizon could not be sent in time."""
        if self.moving or self.canceled or self.fault or self.interruption or not self.execution.reason:
            return
        if self._objection:
            if self._objection.passes and not self._is_late_too_often(now, self._objection):
                self._interrupt(self._objection.why)
            else:
                self.fault, self._silent = self._objection.why, True
                self._frozen = self.monitor.is_frozen(self._commanded)
        elif self._longest_tick > self._held_up_s:
            held_up = f"this process was held up for {self._longest_tick:.2f} s"
            self._interrupt(f"{held_up}; take other work off this machine")
        else:
            self._interrupt(self.monitor.silence(now))

    def _is_late_too_often(self, now: float, objection: _Objection) -> bool:
        """Record that the controller is behind now; return whether this has happened too often to be chance."""
        late = self._late[objection.stood_still]
        late.extend([now] * objection.late_messages)
        often = len(late) == _MAX_LATE_MESSAGES and now <= late[0] + _LATE_MESSAGES_WINDOW_S
        return often and objection.controller_is_behind

    def _interrupt(self, why: str) -> None:
        """Record a reason for rest that may pass; without ``max_wait_s`` it is a fault."""
        if self.monitor.options.max_wait_s:
            self.interruption, self.interruptions = why, self.interruptions + 1
        else:
            self.fault = why

    def _has_ended(self, now: float) -> bool:
        """True if the robot is at rest for good; with a scaled controller, the robot rests later than commanded."""
        if self.waiting:
            return self._wait(now)
        pace = self._scaling if _MAX_ZERO_SCALING < self._scaling < 1.0 else 1.0
        if not self._standstill.has_settled(now, self.execution.at_rest(now), pace):
            return False
        if self.interruption and not (self.fault or self.canceled):
            self._waiting_since = now
            self.monitor.restart(now)
            return False
        distance = math.inf if self._frozen else self._standstill.distance(now, self.commanded(now))
        elsewhere = _END_TOLERANCE if self._silent else max(_END_TOLERANCE, 1.5 * self._error_before)
        if distance <= elsewhere or self._commands.streams or self._held or not self.execution.is_stopping(now):
            return True
        if self.halt:
            if self.halt not in self.fault:
                self.fault = f"{self.fault or 'the robot was stopped'}; {self.halt}"
            return True
        self._held = True
        if not np.isfinite(distance) or self._scaling > _MAX_ZERO_SCALING or not self._stands_on_path:
            where = f"it stands {distance:.2g} from the end of its brake"
            where = where if np.isfinite(distance) else "it stands at an unknown position (no joint states)"
            self.fault = f"{self.fault or 'the robot was stopped'}; {where} and may go on; deactivate the controller"
            return True
        # The controller's remaining trajectory must not move the robot after the scaling is raised.
        self._standstill.command(now)
        clock = now + self.execution.clock_offset
        self._send(now, horizons.hold(self.execution.table.plan.joint_names, self._standstill.position, clock))
        return False

    @property
    def _stands_on_path(self) -> bool:
        """True if a robot that was stopped in its last horizon may stand at its reported position."""
        tolerance = self.monitor.options.tracking_tolerance
        return math.isfinite(self.execution.resting_phase(self._standstill.position, tolerance, _MAX_LAST_HORIZON_S))

    def _wait(self, now: float) -> bool:
        """Wait at rest for states and lease renewals, then resume the motion; return True if the motion has ended."""
        limit_s = self.monitor.options.max_wait_s
        if now - self._waiting_since > limit_s and not self.fault:
            self.fault = f"{self.interruption} (the robot waited for {limit_s:g} s at rest)"
        if self.fault or self.canceled:
            self._waiting_since = math.nan
            return self._has_ended(now)
        if self.monitor.clock.is_lost:
            self.monitor.restart(now)
        stands = now > self._standstill.since + RESTART_S
        if stands and self.monitor.has_returned(now) and not self.lease.check(now):
            # After a lag, a robot that stands before the end of its horizon may have its speed scaled to zero.
            lost_s = 0.0 if self._objection else _MAX_LOST_PLAN_S
            phase = self.execution.resting_phase(self._standstill.position, _END_TOLERANCE, lost_s)
            return math.isfinite(phase) and self._resume(now, phase)
        return False

    def _resume(self, now: float, phase: float) -> bool:
        """Continue along the path from a phase of the plan [s]; return whether the plan is already complete."""
        before, self.interruption, self._waiting_since = self.execution, "", math.nan
        if before.table.plan.duration - phase <= self._options.grid_s:
            return True
        try:
            self.execution = horizons.MotionExecution(before.table.resumed(phase))
        except ExcitationError as error:
            self.fault = f"{self.monitor.counts.longest_gap or before.reason}; {error}"
            return True
        if math.isfinite(self._offset):
            self.execution.clock_offset = self.monitor.clock.offset
        self._silent = False
        self._commanded = None  # the last comparison of states was with the position of rest
        self._progress.forget()
        self.monitor.restart(now)
        self._send(now, self.execution.start(now + RESTART_S))
        return False

    def _account_for_pause(self, now: float) -> None:
        """Delay a streamed motion by a pause, so that it continues and brakes from the last streamed position."""
        pause = now - self._ticked
        if self._commands.streams and pause > _MAX_STREAM_PAUSE_S:
            self.execution.delay(pause)
            self._ticked, self._paused = now, max(self._paused, pause)

    def _brake(self, now: float, reason: str) -> None:
        self._account_for_pause(now)
        if self.moving:
            self._error_before = self.max_tracking_error
        # A brake would be a jump for a robot that has fallen behind or stands still.
        self._silent |= self._is_scaled or self._progress.disagrees(now) or bool(self.halt)
        if self._silent:
            self.execution.run_out(now, reason)
        else:
            if self.monitor.clock.is_lost:  # a brake with a wrong clock would be a jump
                self.execution.clock_offset = math.nan
            self._send(now, self.execution.stop(now, reason))

    def _send(self, now: float, horizon: horizons.Horizon) -> None:
        if len(horizon):
            self._sent, self._informed, self._objection, self._longest_tick = now, False, None, 0.0
            self._commands.send(horizon)
            self._progress.sent(now)
