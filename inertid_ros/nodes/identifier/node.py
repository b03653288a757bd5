"""Identifier node: recordings in, validated parameters out, latched for controllers."""

import sys
import traceback

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.impl.rcutils_logger import RcutilsLogger
from rclpy.node import Node
from rclpy.task import Future
from std_msgs.msg import String

from inertid_ros.action import Identify
from inertid_ros.calibration.identification_job import IdentificationResult, identify_job
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.nodes import IdentifierOptions
from inertid_ros.core.errors import InertidError, ModelError, RecordingError, one_line
from inertid_ros.core.outputs import check_directory
from inertid_ros.core.worker import Worker, WorkerProcess
from inertid_ros.data.blocks import ReceivedRecordings
from inertid_ros.identification.assessment.gate import Verdict
from inertid_ros.identification.identify import IdentificationProgress
from inertid_ros.monitoring.live_coverage import still_needed
from inertid_ros.msg import IdentifierStatus, InertialParameters, SampleBatch
from inertid_ros.nodes.spin import run_node
from inertid_ros.report.results import RESULT
from inertid_ros.robot.model import RobotModel, load_model, model_options
from inertid_ros.robot.urdf.parsing import read_description
from inertid_ros.ros.conversions import from_batch
from inertid_ros.ros.diagnostics import ERROR, OK, STALE, WARN, DiagnosticsPublisher, Status, gravest
from inertid_ros.ros.parameter_messages import to_inertial_parameters, to_report
from inertid_ros.ros.parameters import declare
from inertid_ros.ros.topics import BATCH, LATCHED

from .publication import KeptResult, Publication
from .recordings import RecordingCoverage, identification_job, next_output

_RELATIVE_ERRORS = ("train_relative_error", "validation_relative_error", "prior_relative_error")
_ANSWER_OF_REPORT = ("message", "validation_status", "result_directory", "verdict", "reasons", *_RELATIVE_ERRORS)

_STATE_NAMES = {
    IdentifierStatus.WAITING: "waiting",
    IdentifierStatus.READY: "ready",
    IdentifierStatus.SOLVING: "solving",
    IdentifierStatus.FAILED: "failed",
}
_VERDICT_NAMES = {InertialParameters.USE: "use", InertialParameters.USE_WITH_CARE: "use with care"}


class Identifier(Node):
    """Action, subscriptions and publishers. Solving runs in a process of its own."""

    def __init__(self) -> None:
        super().__init__("identifier")
        self.configuration = declare(self, Configuration)
        self.options = declare(self, IdentifierOptions)
        if self.options.output_directory:  # not after the robot has moved
            check_directory(next_output(self.options.output_directory), RESULT)
        self.model: RobotModel | None = None
        self.recordings = ReceivedRecordings(self.options.keep_recordings)
        self.coverage = RecordingCoverage()
        self.sequence = 0
        self.worker: Worker[IdentificationProgress, IdentificationResult] | None = None
        self.outcome: Future | None = None
        self.goal: ServerGoalHandle | None = None
        self.no_model = "no robot description has been received; publish robot_description or set urdf"
        self.state, self.message, self.last_fault = IdentifierStatus.WAITING, self.no_model, ""
        self.publication = Publication(self, self.options.state_directory)
        self.status_publisher = self.create_publisher(IdentifierStatus, "~/status", LATCHED)
        self.create_subscription(SampleBatch, "recorder/batch", self._receive_batch, BATCH)
        if self.options.urdf:
            self._take_description(read_description(self.options.urdf))
        else:
            self.create_subscription(String, "robot_description", lambda m: self._receive_description(m.data), LATCHED)
        self.server = ActionServer(
            self,
            Identify,
            "~/identify",
            self._execute,
            goal_callback=self._accept,
            cancel_callback=lambda _goal: CancelResponse.ACCEPT,
            callback_group=ReentrantCallbackGroup(),
        )
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.poll = self.create_timer(0.05, self._poll, clock=steady)
        self.poll.cancel()  # while nothing is being solved
        self.create_timer(1.0, self._update_coverage, clock=steady)
        self.diagnostics = DiagnosticsPublisher(
            self,
            lambda: [self._identification_status(), self._result_status()],
            lambda: self.model.name if self.model is not None else "",
        )
        self._publish_status()

    # Input

    def _receive_description(self, text: str) -> None:
        try:
            self._take_description(text)
        except InertidError as error:
            self.no_model = f"robot_description: {error}"
            self._set_state(IdentifierStatus.WAITING, self.no_model)
            self.get_logger().error(self.no_model)

    def _take_description(self, text: str) -> None:
        self.model = load_model(text, model_options(self.configuration.robot), shapes=False)
        if self.state == IdentifierStatus.WAITING:
            self._set_state(IdentifierStatus.READY, f"ready for '{self.model.name}' with {self.model.joints} joints")
        if self.options.live_coverage:
            self.coverage.prepare(self.model)
        self.publication.describe(self.model)
        if self.publication.accepted is not None:  # also one of before the restart
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

    def _accept(self, _goal: Identify.Goal) -> GoalResponse:
        if self.outcome is not None:
            self.get_logger().error("goal refused: another identification is running")
            return GoalResponse.REJECT
        self.outcome = Future()
        return GoalResponse.ACCEPT

    async def _execute(self, goal: ServerGoalHandle) -> Identify.Result:
        self.goal = goal
        answer = await self._identify(goal.request)
        if answer.success:
            goal.succeed()
        elif goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        return answer

    async def _identify_automatically(self, name: str) -> None:
        if self.outcome is None and self.model is not None:
            self.outcome = Future()
            await self._identify(Identify.Goal(train=[name]))

    async def _identify(self, request: Identify.Goal) -> Identify.Result:
        self._set_state(IdentifierStatus.SOLVING, "identifying")
        answer = Identify.Result(**dict.fromkeys((*_RELATIVE_ERRORS, "torque_deviation", "gain"), float("nan")))
        outcome = self.outcome = self.outcome or Future()
        try:
            options = self.options
            if self.model is None:
                raise ModelError(self.no_model)
            job = identification_job(request, self.model, self.configuration, self.recordings, options.output_directory)
            process = WorkerProcess(memory_mb=options.memory_mb)
            self.worker = Worker("identification", identify_job, (job,), options.timeout_s, process)
            self.poll.reset()
            self._publish_result(await outcome, answer)
        except InertidError as error:
            self._fail(answer, str(error))
        except Exception as error:  # rclpy's action server would answer without a reason
            traceback.print_exc()
            self._fail(answer, one_line(f"internal error: {type(error).__name__}: {error}"))
        finally:
            self.poll.cancel()
            self.worker = self.outcome = self.goal = None
        return answer

    def _fail(self, answer: Identify.Result, reason: str) -> None:
        answer.success, answer.message = False, reason
        self._set_state(IdentifierStatus.FAILED, reason)
        self.get_logger().error(reason)

    def _poll(self) -> None:
        if self.worker is None or self.outcome is None or self.outcome.done():
            return
        if self.goal is not None and self.goal.is_cancel_requested:
            self.worker.cancel()
        if self.worker.poll():
            try:
                self.outcome.set_result(self.worker.result())
            except InertidError as error:
                self.outcome.set_exception(error)
        elif self.goal is not None and self.worker.progress is not None:
            progress = self.worker.progress
            self.goal.publish_feedback(Identify.Feedback(stage=progress.stage, fraction=float(progress.fraction)))

    # Output

    def _publish_result(self, result: IdentificationResult, answer: Identify.Result) -> None:
        """Publish the report, and the result for controllers unless it must not be used; then the last one stays."""
        self.sequence += 1
        estimate, stamp = result.estimate, self.get_clock().now().to_msg()
        message = to_inertial_parameters(estimate, result.validation, result.gate, self.sequence, stamp)
        report = to_report(result.report, message, str(result.output or ""))
        self.publication.report(report)
        accepted = result.gate.verdict is not Verdict.REJECT
        if accepted:
            self.publication.accept(KeptResult(message, report, result.urdf), estimate.model, estimate.bodies)
            log_accepted(self.get_logger(), result.gate.verdict, report.message)
        else:
            self.get_logger().error(f"not published: {report.message}")
        self._set_state(IdentifierStatus.READY if accepted else IdentifierStatus.FAILED, report.message)
        answer.success = True
        for field in _ANSWER_OF_REPORT:
            setattr(answer, field, getattr(report, field))
        if result.decision is not None:
            answer.torque_deviation, answer.gain = result.history[-1].deviation, result.decision.gain
            answer.stop_reason = result.decision.reason

    def _set_state(self, state: int, message: str) -> None:
        self.state, self.message = state, message
        if state == IdentifierStatus.FAILED:
            self.last_fault = message
        self._publish_status()

    def _update_coverage(self) -> None:
        self.coverage.work_out()
        self._publish_status()

    def _publish_status(self) -> None:
        status = IdentifierStatus(state=self.state, message=self.message, samples=self.recordings.samples)
        status.header.stamp = self.get_clock().now().to_msg()
        status.recordings = list(self.recordings.complete)
        self.coverage.fill(status)
        self.status_publisher.publish(status)

    def _identification_status(self) -> Status:
        level = {IdentifierStatus.FAILED: ERROR, IdentifierStatus.WAITING: STALE}.get(self.state, OK)
        progress = self.worker.progress if self.worker is not None else None
        deviations = [coverage.torque_deviation for coverage in self.coverage.joints]
        values = {
            "State": _STATE_NAMES[self.state],
            "Stage": progress.stage if progress is not None else None,
            "Done (%)": 100.0 * float(progress.fraction) if progress is not None else None,
            "Recordings": len(self.recordings.complete),
            "Samples": self.recordings.samples,
            "Last fault": self.last_fault,
            "Torque known to (%)": 100.0 * max(deviations) if deviations else None,
            "Still needed": still_needed(self.coverage.joints),
        }
        return Status("identification", level, self.message, values)

    def _result_status(self) -> Status:
        published, problem = self.publication.accepted, self.publication.problem
        if published is None:
            keys = ("Sequence", "Verdict", "Age (s)", "Validation error (%)")
            return Status("result", *gravest((WARN, problem), otherwise="no result yet"), dict.fromkeys(keys))
        foreign = self.model is not None and published.model_hash != self.model.hash
        care = "; ".join(published.reasons) if published.verdict == InertialParameters.USE_WITH_CARE else ""
        level_and_message = gravest(
            (ERROR, "the result is of another robot than described now; run the identification again" * foreign),
            (WARN, problem),
            (WARN, care and f"use with care: {care}"),
            otherwise=f"result {published.sequence} is in use",
        )
        values = {
            "Sequence": published.sequence,
            "Verdict": _VERDICT_NAMES.get(published.verdict, "none"),
            "Age (s)": self.publication.age,
            "Validation error (%)": 100.0 * published.validation_relative_error,
        }
        return Status("result", *level_and_message, values)

    def begin_shutdown(self) -> None:
        """Give up the identification after a signal, or after a callback raised."""
        if self.worker is not None:
            self.worker.cancel()


def log_accepted(logger: RcutilsLogger, verdict: Verdict, message: str) -> None:
    """Log a result; rclpy raises if one line of code logs with different severities."""
    if verdict is Verdict.CARE:
        logger.warning(message)
    else:
        logger.info(message)


def main() -> int:
    """Entry point of the executable."""
    return run_node(Identifier)


if __name__ == "__main__":
    sys.exit(main())
