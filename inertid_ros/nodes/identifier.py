"""Identifier node: identifies a robot from recordings and publishes accepted parameters for controllers, latched."""

import itertools
import os
from pathlib import Path

from rclpy.impl.rcutils_logger import RcutilsLogger
from std_msgs.msg import String

from inertid_ros.action import Identify
from inertid_ros.calibration.calibrate import IdentificationJob, identify_job
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import RoundsOptions
from inertid_ros.config.nodes import IdentifierOptions
from inertid_ros.core.errors import InertidError, ModelError, RecordingError
from inertid_ros.core.outputs import check_directory
from inertid_ros.core.worker import Worker, WorkerProcess
from inertid_ros.data.long_recording import ReceivedRecordings
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.gate import Verdict
from inertid_ros.monitoring.live_coverage import RecordingCoverage, still_needed
from inertid_ros.msg import IdentifierStatus, InertialParameters, SampleBatch
from inertid_ros.report.results import RESULT
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.ros.conversions import from_batch
from inertid_ros.ros.diagnostics import ERROR, OK, STALE, WARN, DiagnosticsPublisher, Status, judged
from inertid_ros.ros.goal_node import GoalNode
from inertid_ros.ros.node_parameters import declare
from inertid_ros.ros.parameter_messages import to_inertial_parameters, to_report
from inertid_ros.ros.received_parameters import from_inertial_parameters
from inertid_ros.ros.result_publication import KeptResult, Publication
from inertid_ros.ros.topics import BATCH, LATCHED, STEADY

from .spin import run_node

_RELATIVE_ERRORS = ("train_relative_error", "validation_relative_error", "prior_relative_error")
_ANSWER_OF_REPORT = ("message", "validation_status", "result_directory", "verdict", "reasons", *_RELATIVE_ERRORS)
_UNKNOWN = dict.fromkeys((*_RELATIVE_ERRORS, "torque_deviation", "gain"), float("nan"))
_STATE_NAMES = {
    IdentifierStatus.WAITING: "waiting", IdentifierStatus.READY: "ready", IdentifierStatus.SOLVING: "solving",
    IdentifierStatus.FAILED: "failed"}
_VERDICT_NAMES = {InertialParameters.USE: "use", InertialParameters.USE_WITH_CARE: "use with care"}


class Identifier(GoalNode):
    """Action, subscriptions and publishers. Solving runs in a separate process."""

    def __init__(self) -> None:
        super().__init__("identifier")
        self.configuration = declare(self, Configuration)
        self.options = declare(self, IdentifierOptions)
        if self.options.output_directory:  # fail before the robot moves
            check_directory(next_output(self.options.output_directory), RESULT)
        self.model: RobotModel | None = None
        self.carrying: dict[str, str] = {}  # hash of the described robot: of the identified one
        self.recordings = ReceivedRecordings(self.options.keep_recordings)
        self.coverage = RecordingCoverage()
        self.sequence = 0
        self.no_model = "no robot description has been received; publish robot_description or set urdf"
        self.state, self.message, self.last_fault = IdentifierStatus.WAITING, self.no_model, ""
        self.publication = Publication(self, self.options.state_directory)
        self.status_publisher = self.create_publisher(IdentifierStatus, "~/status", LATCHED)
        self.create_subscription(SampleBatch, "recorder/batch", self._receive_batch, BATCH)
        if self.options.urdf:
            self._take_description(self.options.urdf)
        else:
            self.create_subscription(String, "robot_description", lambda m: self._receive_description(m.data), LATCHED)
        self.serve_goals(Identify, "~/identify", "another identification is running")
        self.create_timer(1.0, self._update_coverage, clock=STEADY)
        self.diagnostics = DiagnosticsPublisher(
            self, lambda: [self._identification_status(), self._result_status()],
            lambda: self.model.name if self.model is not None else "")
        self._publish_status()

    # Input

    def _receive_description(self, text: str) -> None:
        try:
            self._take_description(text)
        except InertidError as error:
            self.no_model = f"robot_description: {error}"
            self._set_state(IdentifierStatus.WAITING, self.no_model)
            self.get_logger().error(self.no_model)

    def _take_description(self, source: str) -> None:
        self.model = load_model(source, self.configuration.robot, shapes=False)
        if self.state == IdentifierStatus.WAITING:
            self._set_state(IdentifierStatus.READY, f"ready for '{self.model.name}' with {self.model.joints} joints")
        if self.options.live_coverage:
            self.coverage.prepare(self.model)
        self.publication.describe(self.model)
        if self.publication.accepted is not None:  # possibly from before the restart
            self.sequence = max(self.sequence, int(self.publication.accepted.sequence))

    def _receive_batch(self, message: SampleBatch) -> None:
        if not message.recording:
            self.recordings.clear()
        else:
            try:
                block = from_batch(message)
                self.recordings.add(message.recording, message.sequence, message.last, block)
                if self.options.live_coverage:
                    self.coverage.add(self.model, message.recording, message.sequence, block)
            except RecordingError as error:
                self.get_logger().error(str(error))
        if message.last:
            self._update_coverage()
            if self.options.automatic and message.recording in self.recordings.complete:
                self.executor.create_task(self._identify_automatically, message.recording)

    # Action

    async def _identify_automatically(self, name: str) -> None:
        if self.is_serving or self.model is None:
            reason = self.no_model if self.model is None else "another identification is running"
            self.get_logger().warning(f"{name}: is not identified automatically; {reason}. Send a goal to identify it")
        else:
            await self.serve(Identify.Goal(train=[name]))

    def begin(self, request: Identify.Goal) -> Worker:
        self._set_state(IdentifierStatus.SOLVING, "identifying")
        if self.model is None:
            raise ModelError(self.no_model)
        options = self.options
        job = identification_job(request, self.model, self.configuration, self.recordings, options.output_directory)
        process = WorkerProcess(memory_mb=options.memory_mb)
        return Worker("identification", identify_job, (job,), options.timeout_s, process)

    def failed(self, reason: str) -> Identify.Result:
        self._set_state(IdentifierStatus.FAILED, reason)
        return Identify.Result(message=reason, **_UNKNOWN)

    def feedback(self, work: Worker) -> Identify.Feedback | None:
        progress = work.progress
        return progress and Identify.Feedback(stage=progress.stage, fraction=float(progress.fraction))

    def conclude(self, work: Worker) -> Identify.Result:
        """Publish the report and, if it may be used, the result; otherwise the last result stays published."""
        result = work.result()
        self.sequence += 1
        estimate, stamp = result.estimate, self.get_clock().now().to_msg()
        message = to_inertial_parameters(estimate, result.validation, result.gate, self.sequence, stamp)
        report = to_report(result.report, message, str(result.output or ""))
        self.publication.report(report)
        rejected = result.gate.verdict is Verdict.REJECT
        problem = report.message if rejected else from_inertial_parameters(message).objection(estimate.model)
        if problem:
            self.get_logger().error(f"not published: {problem}")
            self._set_state(IdentifierStatus.FAILED, problem)
        else:
            if self.model is not None:
                self.carrying = {self.model.hash: estimate.model.hash}  # they differ if mimic joints are carried
            self.publication.accept(KeptResult(message, report, result.urdf), estimate.model, estimate.bodies)
            log_accepted(self.get_logger(), result.gate.verdict, report.message)
            self._set_state(IdentifierStatus.READY, report.message)
        values = {**_UNKNOWN, **{field: getattr(report, field) for field in _ANSWER_OF_REPORT}}
        if problem:
            values |= {"verdict": InertialParameters.DO_NOT_USE, "message": problem}
        if result.decision is not None:
            values |= {"torque_deviation": result.history[-1].deviation, "gain": result.decision.gain}
            values["stop_reason"] = result.decision.reason
        return Identify.Result(success=True, **values)

    # Output

    def _set_state(self, state: int, message: str) -> None:
        self.state, self.message = state, message
        if state == IdentifierStatus.FAILED:
            self.last_fault = message
        self._publish_status()

    def _update_coverage(self) -> None:
        self.coverage.update()
        self._publish_status()

    def _publish_status(self) -> None:
        status = IdentifierStatus(state=self.state, message=self.message, samples=self.recordings.samples)
        status.header.stamp = self.get_clock().now().to_msg()
        status.recordings = list(self.recordings.complete)
        self.coverage.fill(status)
        self.status_publisher.publish(status)

    def _identification_status(self) -> Status:
        level = {IdentifierStatus.FAILED: ERROR, IdentifierStatus.WAITING: STALE}.get(self.state, OK)
        progress = self.work.progress if self.work is not None else None
        deviations = [coverage.torque_deviation for coverage in self.coverage.joints]
        values = {
            "State": _STATE_NAMES[self.state],
            "Stage": progress.stage if progress is not None else None,
            "Done (%)": 100.0 * float(progress.fraction) if progress is not None else None,
            "Recordings": len(self.recordings.complete),
            "Samples": self.recordings.samples,
            "Last fault": self.last_fault,
            "Torque uncertainty (%)": 100.0 * max(deviations) if deviations else None,
            "Still needed": still_needed(self.coverage.joints)}
        return Status("identification", level, self.message, values)

    def _result_status(self) -> Status:
        published, problem = self.publication.accepted, self.publication.problem
        if published is None:
            keys = ("Sequence", "Verdict", "Age (s)", "Validation error (%)")
            return judged("result", dict.fromkeys(keys), (WARN, problem), otherwise="no result yet")
        robot = "" if self.model is None else self.model.hash
        foreign = bool(robot) and published.model_hash not in (robot, self.carrying.get(robot))
        care = "; ".join(published.reasons) if published.verdict == InertialParameters.USE_WITH_CARE else ""
        values = {
            "Sequence": published.sequence,
            "Verdict": _VERDICT_NAMES.get(published.verdict, "none"),
            "Age (s)": self.publication.age,
            "Validation error (%)": 100.0 * published.validation_relative_error}
        return judged(
            "result", values,
            (ERROR, "the result does not belong to the described robot; run the identification again" * foreign),
            (WARN, problem),
            (WARN, care and f"use with care: {care}"),
            otherwise=f"result {published.sequence} is in use")


def identification_job(
        request: Identify.Goal, model: RobotModel, configuration: Configuration, recordings: ReceivedRecordings,
        default_output: str) -> IdentificationJob:
    """Return the job for a goal of the identifier.

    The request lists recordings by path, or by name if the node received them; an empty ``train`` means all complete
    recordings. ``default_output`` is the directory of numbered results for requests without a directory; if neither is
    given, the result is not written. Raises InertidError if there is no recording, a recording is unknown, or the
    output directory cannot be used.
    """
    train = tuple(request.train) or recordings.complete
    if not train:
        raise RecordingError("identify: there is no recording yet; record a motion or name a bag")
    output = Path(os.path.expanduser(request.output_directory)).absolute() if request.output_directory else None
    if output is None and default_output:
        output = next_output(default_output)
    if output is not None:
        check_directory(output, RESULT)
    return IdentificationJob(
        urdf=model.urdf, configuration=configuration, train=tuple(_source(name, recordings) for name in train),
        held_out=tuple(_source(name, recordings) for name in request.validation), output=output,
        rounds=RoundsOptions(request.rounds or 1, request.wanted_deviation, request.least_gain),
        previous=request.previous, folder=model.folder)


def _source(name: str, recordings: ReceivedRecordings) -> Recording | str:
    path = Path(os.path.expanduser(name))
    if name in recordings or not (os.path.exists(path) or len(path.parts) > 1 or path.suffix):
        return recordings.recording(name)
    if not os.path.exists(path):
        raise RecordingError(f"{path.absolute()}: there is no such recording; correct the path")
    return str(path.absolute())


def next_output(directory: str) -> Path:
    """Return the first numbered result directory that does not exist yet."""
    base = Path(os.path.expanduser(directory)).absolute()
    numbered = (base / f"identification_{number:03d}" for number in itertools.count(1))
    return next(path for path in numbered if not os.path.lexists(path))


def log_accepted(logger: RcutilsLogger, verdict: Verdict, message: str) -> None:
    """Log an accepted result, with one line of code per severity: rclpy raises if a line uses several severities."""
    if verdict is Verdict.CARE:
        logger.warning(message)
    else:
        logger.info(message)


def main() -> int:
    return run_node(Identifier)
