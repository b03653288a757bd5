"""MotionRun: a prepared motion on its way to the robot, from the first horizon to rest, in the node's own thread."""

import time
from dataclasses import dataclass

from inertid_ros.app.excitation_job import PreparedMotion
from inertid_ros.config.excitation import MonitorOptions
from inertid_ros.excitation.execution.horizons import Horizon
from inertid_ros.excitation.execution.monitor import Lease, StateMonitor
from inertid_ros.excitation.execution.supervisor import ExecutionProgress, Supervisor
from inertid_ros.ros.conversions import JointSample

from .robot_side import RobotSide

_REST_S = 0.3  # after the last command; the controller's own lag


@dataclass(frozen=True)
class Ending:
    """How a motion ended: the fault that stopped it, or whether it was asked to stop; empty and false at its end."""

    fault: str
    canceled: bool
    max_tracking_error: float
    seconds: float


class MotionRun:
    """Sends horizons, or streams positions, and watches; made when the robot may move.

    Parameters
    ----------
    leased: whether the client must renew a lease.
    """

    def __init__(self, robot: RobotSide, prepared: PreparedMotion, monitor: MonitorOptions, leased: bool) -> None:
        self._robot, now = robot, time.monotonic()
        names, limits = robot.model.joint_names, robot.model.limits
        watch = StateMonitor(names, limits.lower, limits.upper, limits.velocity, limits.effort, monitor, now)
        self.lease = Lease(monitor.lease_timeout_s, now, leased)
        streams = robot.commander.streams
        self._supervisor = Supervisor(prepared.table, watch, self.lease, prepared.approach_s, streams)
        self._began = self._rested_at = now
        self._send(self._supervisor.start(now, robot.clock() - now))

    @property
    def moving(self) -> bool:
        """Whether the plan is being followed; false once a brake has begun."""
        return self._supervisor.moving

    @property
    def fault(self) -> str:
        """Why the motion was stopped by a fault; empty otherwise."""
        return self._supervisor.fault

    @property
    def ending(self) -> Ending:
        """To be asked for at the end."""
        run = self._supervisor
        return Ending(run.fault, run.canceled, run.max_tracking_error, time.monotonic() - self._began)

    def progress(self) -> ExecutionProgress:
        """Where the motion is."""
        return self._supervisor.progress(time.monotonic())

    def update(self, sample: JointSample, now: float) -> None:
        """Take a joint state that was received at ``now`` [s, steady]."""
        stamp = sample.stamp_ns * 1e-9
        self._supervisor.update(stamp, self._robot.clock(), now, sample.position, sample.effort)

    def stop(self, reason: str) -> None:
        """Brake because of a fault."""
        self._send(self._supervisor.stop(time.monotonic(), reason))

    def tick(self, canceled: bool) -> bool:
        """Watch and send; true once the robot has come to rest."""
        now, run = time.monotonic(), self._supervisor
        if run.moving and canceled:
            self._send(run.cancel(now))
        self._send(run.tick(now))
        self._robot.commander.stream(run.commanded(now))
        if not run.at_rest(now):
            self._rested_at = now
        return now - self._rested_at >= _REST_S

    def brake_without_executor(self, reason: str, tick_s: float) -> None:
        """Nothing spins any more: bring the robot to rest, then return."""
        self.stop(reason)
        while not self._supervisor.at_rest(time.monotonic()):
            self.tick(False)
            time.sleep(tick_s)

    def _send(self, horizon: Horizon | None) -> None:
        if horizon is not None:
            self._robot.commander.send(horizon)
