"""The robot that is followed, from messages of its joint states, and the payload that a goal asks for."""

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from sensor_msgs.msg import JointState as JointStateMessage

from inertid_ros.app.followed_result import followed_robot
from inertid_ros.app.payload_job import PayloadJob, PayloadResult, payload_job
from inertid_ros.app.payload_measurement import PayloadMeasurement, PayloadProgress
from inertid_ros.app.payload_offline import PayloadOptions
from inertid_ros.config.nodes import OnlineNodeOptions
from inertid_ros.core.errors import InertidError, RecordingError
from inertid_ros.core.worker import Worker, WorkerProcess
from inertid_ros.monitoring.followed_robot import Followed, FollowedRobot
from inertid_ros.monitoring.stream_checks import JointState
from inertid_ros.payload.equations import ToolFrame
from inertid_ros.report.results import StoredResult, read_result
from inertid_ros.ros.conversions import HeldJoints, JointOrder

_RATE_SAMPLES = 60  # from which the rate follows
_MIN_RATE_HZ, _MAX_RATE_HZ = 10.0, 1e4


class Following:
    """Takes messages of joint states.

    Parameters
    ----------
    directory : str
        Result directory of the robot.
    options : OnlineNodeOptions
        Of the node.

    Attributes
    ----------
    result : StoredResult
        The calibration.
    robot : FollowedRobot or None
        None until the rate of the joint states is known.
    problem : str
        Why the last message was not used; empty where it was.
    foreign : bool
        Whether the last message had none of the robot's joints.
    rejected : int
        Messages that were not used.
    last_fault : str
        Why the last one of them was not.

    Raises
    ------
    InertidError
        The result cannot be used.
    """

    def __init__(self, directory: str, options: OnlineNodeOptions) -> None:
        self.result: StoredResult = read_result(directory)
        self._options, self._following = options, options.following()
        model = self.result.model
        self._order = JointOrder(model.joint_names, recorded=model.recorded_joints)
        self._held = HeldJoints(tuple(model.options.locked_joints), model.recorded_joints)
        self.robot: FollowedRobot | None = None
        self.problem, self.last_fault, self.rejected, self.foreign = "", "", 0, False
        self._stamps: list[int] = []
        self._impossible = False
        if options.rate_hz:
            self._begin(options.rate_hz)

    @property
    def others(self) -> str:
        """A line on the joints of messages that had none of the robot's; empty where there were none."""
        return self._order.others

    def take(self, message: JointStateMessage) -> tuple[JointState, Followed] | None:
        """Take a message; what it brought, once the robot is followed and where it holds its joints."""
        self.foreign = False
        try:
            held = self._held.update(message)
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
        state = JointState(sample.stamp_ns, sample.position, sample.velocity, sample.effort, held)
        followed = self.robot.take(state)
        self.problem = ""
        if followed.state.message:
            self.last_fault = followed.state.message
        if not followed.state.usable:
            self._reject(followed.state.message)
        return state, followed

    def _reject(self, reason: str) -> None:
        self.rejected += 1
        if reason:
            self.problem = self.last_fault = reason

    def _measure_rate(self, stamp_ns: int) -> None:
        if self._impossible:
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
            self._impossible = True
            self._reject(str(error))

    def _begin(self, rate_hz: float) -> None:
        self.robot = followed_robot(self.result, rate_hz, self._options.recordings, self._following)
        self.problem = ""


if TYPE_CHECKING:
    from inertid_ros.action import IdentifyPayload  # of ROS, which this does not need

_NO_STATES = "no joint states of the robot; start its driver, or remap joint_states"
_MAX_STATE_SILENCE_S = 5.0  # without joint states, after which a goal ends; busy machines hold them up for longer than a second
_MAX_MEASUREMENT_S = 600.0


class PayloadGoal:
    """What a goal asks for, from its first joint state to its answer.

    Parameters
    ----------
    request : IdentifyPayload.Goal
        Frame, duration and reference; what it leaves open is the node's.
    following : Following or None
        The robot, where one is known.
    options : OnlineNodeOptions
        Of the node.
    now : float
        Steady clock [s].

    Attributes
    ----------
    progress : PayloadProgress
        What is known so far.

    Raises
    ------
    InertidError
        No robot is followed, or what is asked for cannot be done.
    """

    def __init__(
        self, request: "IdentifyPayload.Goal", following: Following | None, options: OnlineNodeOptions, now: float
    ) -> None:
        if following is None:
            raise RecordingError("payload: no calibrated robot is known; set the parameter result, or identify one")
        if following.robot is None:
            raise RecordingError(f"payload: {following.problem or following.others or _NO_STATES}")
        duration = request.duration or options.payload.duration_s
        if not 0 < duration <= _MAX_MEASUREMENT_S:
            raise RecordingError(f"payload: duration {duration:g} s is not between 0 and {_MAX_MEASUREMENT_S:g} s")
        frame = request.frame or options.payload.frame
        tool = ToolFrame.from_link(following.result.model, frame)
        largest = options.payload.largest_mass or np.inf
        self._options = PayloadOptions(frame, options.friction_drift, largest)
        self._directory = str(following.result.directory)
        self._reference = tuple(request.reference) or options.payload.reference
        for path in self._reference:
            if not Path(path).exists():
                raise RecordingError(f"{path}: there is no such recording; correct the reference")
        self._timeout_s, self._received = options.payload.timeout_s, now
        self._measurement = PayloadMeasurement(following.robot, tool, duration, options.friction_drift)
        self._process = WorkerProcess(payload_job.__module__)  # imports while the joint states come
        self._worker: Worker[tuple[str, float], PayloadResult] | None = None
        self._failure: InertidError | None = None
        self.progress: PayloadProgress = self._measurement.progress()

    @property
    def stage(self) -> tuple[str, float]:
        """What is being done, and the share of it that is."""
        if self._worker is None:
            return "measuring", self._measurement.fraction
        return self._worker.progress or ("preparing", 0.0)

    def take(self, state: JointState, followed: Followed, now: float) -> None:
        """Take a joint state and what it brought."""
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
            job = PayloadJob(self._directory, self._measurement.recording(), self._reference, self._options)
            self._worker = Worker("payload", payload_job, (job,), self._timeout_s, self._process)

    def over(self, now: float) -> bool:
        """Whether there is an answer."""
        if self._failure is None and self._worker is None and now - self._received > _MAX_STATE_SILENCE_S:
            silent = now - self._received
            self._fail(RecordingError(f"payload: no joint states for {silent:.1f} s; measure again once they come"))
        return self._failure is not None or (self._worker is not None and self._worker.poll())

    def answer(self) -> PayloadResult:
        """Return the payload.

        Raises
        ------
        InertidError
            Why there is none.
        """
        if self._failure is not None:
            raise self._failure
        if self._worker is None:
            raise RecordingError("payload: is not over yet")
        return self._worker.result()

    def cancel(self, reason: str = "canceled") -> None:
        """Give up."""
        if self._failure is None:
            self._fail(RecordingError(f"payload: {reason}"))

    def _fail(self, error: InertidError) -> None:
        self._failure = error
        if self._worker is not None:
            self._worker.cancel()
        else:
            self._process.connection.close()  # which ends it
