"""The robot that is followed, from messages of its joint states, and the payload that a goal asks for."""

import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from sensor_msgs.msg import JointState as JointStateMessage

from inertid_ros.config.nodes import OnlineNodeOptions
from inertid_ros.core.errors import InertidError, RecordingError
from inertid_ros.core.samples import JointSample
from inertid_ros.core.worker import Worker, WorkerProcess
from inertid_ros.monitoring.followed_robot import Followed, FollowedRobot, followed_robot
from inertid_ros.monitoring.payload_measurement import PayloadMeasurement, PayloadProgress
from inertid_ros.payload.equations import FrictionDrift, ToolFrame
from inertid_ros.payload.offline import PayloadOptions, PayloadOutcome, payload_job
from inertid_ros.report.results import Result
from inertid_ros.ros.conversions import JointOrder

if TYPE_CHECKING:
    from inertid_ros.action import IdentifyPayload

_RATE_SAMPLES = 60  # from which the rate is measured
_MIN_RATE_HZ, _MAX_RATE_HZ = 10.0, 1e4
_MAX_STATE_SILENCE_S = 5.0  # then a payload goal ends; busy machines hold joint states up for longer than a second
_MAX_MEASUREMENT_S = 600.0


class Following:
    """Follows the robot of a result directory by messages of its joint states, once their rate is known.

    Attributes
    ----------
    robot : FollowedRobot or None
        None until the rate of the joint states is known.
    problem : str
        Why the last message was not used; empty if it was used.
    foreign : bool
        Whether the last message had none of the robot's joints.
    rejected : int
        Number of messages that were not used.
    last_fault : str
        Why the last one of them was not used.

    Raises
    ------
    InertidError
        The result cannot be used.
    """

    def __init__(self, directory: str, options: OnlineNodeOptions) -> None:
        self.result: Result = Result.load(directory)
        self._options = options
        model = self.result.model
        held = tuple(model.options.locked_joints)
        self._order = JointOrder(model.joint_names, recorded=model.recorded_joints, held_joints=held)
        self.robot: FollowedRobot | None = None
        self.problem, self.last_fault, self.rejected, self.foreign = "", "", 0, False
        self._stamps: list[int] | None = []  # None if the robot cannot be followed
        if options.rate_hz:
            self._begin(options.rate_hz)

    @property
    def others(self) -> str:
        """A line on the joints of messages that had none of the robot's; empty without such messages."""
        return self._order.others

    def take(self, message: JointStateMessage) -> tuple[JointSample, Followed] | None:
        """Take a message; return its state and the result, None if it was not used or the robot is not followed yet."""
        self.foreign = False
        try:
            sample = self._order.sample(message)
        except RecordingError as error:
            self._reject(str(error))
            return None
        self.foreign = sample is None
        if sample is None:
            return None
        if self.robot is None:
            self._measure_rate(sample.stamp_ns)
            return None
        followed = self.robot.take(sample)
        self.problem = ""
        if followed.state.message:
            self.last_fault = followed.state.message
        if not followed.state.usable:
            self._reject(followed.state.message)
        return sample, followed

    def _reject(self, reason: str) -> None:
        self.rejected += 1
        if reason:
            self.problem = self.last_fault = reason

    def _measure_rate(self, stamp_ns: int) -> None:
        if self._stamps is None:
            return
        self._stamps.append(stamp_ns)
        if len(self._stamps) <= _RATE_SAMPLES:
            return
        rate = 1e9 / max(median(np.diff(self._stamps).tolist()), 1.0)
        self._stamps.clear()
        if not _MIN_RATE_HZ <= rate <= _MAX_RATE_HZ:
            self._reject(f"joint_states are stamped at {rate:.3g} Hz; correct the driver's stamps")
            return
        try:
            self._begin(rate)
        except InertidError as error:
            self._stamps = None
            self._reject(str(error))

    def _begin(self, rate_hz: float) -> None:
        self.robot = followed_robot(self.result, rate_hz, self._options.recordings, self._options)
        self.problem = ""


class PayloadGoal:
    """One goal of the payload action: joint states while the robot moves, then the solution in another process.

    Empty fields of the request take the node's options. ``progress`` is the estimate so far.

    Raises
    ------
    InertidError
        No robot is followed, or the request is impossible.
    """

    def __init__(
        self, request: "IdentifyPayload.Goal", following: Following | None, options: OnlineNodeOptions
    ) -> None:
        if following is None:
            raise RecordingError("payload: no calibrated robot is known; set the parameter result, or identify one")
        if following.robot is None:
            silent = "no joint states of the robot; start its driver, or remap joint_states"
            raise RecordingError(f"payload: {following.problem or following.others or silent}")
        duration = request.duration or options.payload.duration_s
        if not 0 < duration <= _MAX_MEASUREMENT_S:
            raise RecordingError(f"payload: duration {duration:g} s is not between 0 and {_MAX_MEASUREMENT_S:g} s")
        frame = request.frame or options.payload.frame
        tool = ToolFrame.from_link(following.result.model, frame)
        largest = options.payload.largest_mass or np.inf
        drift = FrictionDrift(options.drift, options.payload.reference_drift)
        self._options = PayloadOptions(frame, drift, largest)
        self._directory = str(following.result.directory)
        self._reference = tuple(request.reference) or options.payload.reference
        for path in self._reference:
            if not Path(path).exists():
                raise RecordingError(f"{path}: there is no such recording; correct the reference")
        self._timeout_s, self._received = options.payload.timeout_s, time.monotonic()
        self._measurement = PayloadMeasurement(following.robot, tool, duration, drift)
        self._process = WorkerProcess(payload_job.__module__)  # imports while the joint states come
        self._worker: Worker[tuple[str, float], PayloadOutcome] | None = None
        self._failure: InertidError | None = None
        self.progress: PayloadProgress = self._measurement.progress()

    @property
    def stage(self) -> tuple[str, float]:
        """Present stage, and the fraction of it that is done."""
        if self._worker is None:
            return "measuring", self._measurement.fraction
        return self._worker.progress or ("preparing", 0.0)

    def take(self, state: JointSample, followed: Followed, now: float) -> None:
        """Take a joint state that was received at ``now`` of the steady clock [s]."""
        if self._worker is not None or self._failure is not None:
            return
        self._received = now
        try:
            self._measurement.add(state, followed.state, followed.block)
        except InertidError as error:
            self._fail(error)
            return
        if followed.block is not None:
            self.progress = self._measurement.progress()
        if self._measurement.done:
            job = (self._directory, self._measurement.recording(), self._reference, self._options)
            self._worker = Worker("payload", payload_job, job, self._timeout_s, self._process)

    def poll(self) -> bool:
        """Return whether it is over, successful or not."""
        silent = time.monotonic() - self._received
        if self._failure is None and self._worker is None and silent > _MAX_STATE_SILENCE_S:
            self._fail(RecordingError(f"payload: no joint states for {silent:.1f} s; measure again once they come"))
        return self._failure is not None or (self._worker is not None and self._worker.poll())

    def result(self) -> PayloadOutcome:
        """Return the payload; raise InertidError if there is none."""
        if self._failure is not None:
            raise self._failure
        if self._worker is None:
            raise RecordingError("payload: is not over yet")
        return self._worker.result()

    def cancel(self, reason: str = "canceled") -> None:
        if self._failure is None:
            self._fail(RecordingError(f"payload: {reason}"))

    def _fail(self, error: InertidError) -> None:
        self._failure = error
        if self._worker is not None:
            self._worker.cancel()
        else:
            self._process.connection.close()  # which ends the process
