"""Online node: parameters, changes and payloads of a calibrated robot from its live joint states."""

import json
import time

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import InertiaStamped, Vector3
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from inertid_ros.action import IdentifyPayload
from inertid_ros.config.nodes import OnlineNodeOptions
from inertid_ros.core.errors import IdentificationError, InertidError, RecordingError
from inertid_ros.core.samples import JointSample
from inertid_ros.data.screening.live_watch import StreamWatch
from inertid_ros.monitoring.change_detector import Cause, Change
from inertid_ros.monitoring.followed_robot import Followed, FollowedRobot, PayloadGoal, PayloadProgress, followed_robot
from inertid_ros.monitoring.online_identification import OnlineEstimate
from inertid_ros.msg import IdentificationReport, InertialParameters, RobotChange
from inertid_ros.payload.offline import PayloadOutcome
from inertid_ros.report.results import Result
from inertid_ros.robot.model import RobotModel
from inertid_ros.ros import diagnostics
from inertid_ros.ros.conversions import JointOrder, by_axis, to_inertia, to_nanoseconds, to_time
from inertid_ros.ros.goal_node import GoalNode
from inertid_ros.ros.node_parameters import declare
from inertid_ros.ros.parameter_messages import value_fields
from inertid_ros.ros.topics import LATCHED, STEADY, PolledSubscription, recording_profile

from .spin import run_node

_STATES_PERIOD_S, _FEEDBACK_PERIOD_S, _FAULT_LOG_PERIOD_S = 0.02, 0.5, 2.0
_RATE_SAMPLES = 60  # for measuring the rate
_MIN_RATE_HZ, _MAX_RATE_HZ = 10.0, 1e4
_NO_ROBOT = "no calibrated robot; set the parameter result, or calibrate a robot"
_NO_STATES = "no joint states of the robot; start its driver, or remap joint_states"


class Following:
    """Follow a calibrated robot by its joint states, as soon as their rate is known.

    ``directory`` is the result of the calibration. Raises InertidError if the result cannot be used.

    Attributes
    ----------
    robot : None until the rate of the joint states is known.
    problem : reason why the last message was rejected; empty if it was used.
    foreign : True if the last message contained none of the robot's joints.
    rejected : number of rejected messages.
    last_fault : last fault of the joint states, whether or not the message was rejected.
    """

    def __init__(self, directory: str, options: OnlineNodeOptions) -> None:
        self.result, self._options = Result.load(directory), options
        model = self.result.model
        held = tuple(model.options.locked_joints)
        self.order = JointOrder(model.joint_names, recorded=model.recorded_joints, held_joints=held)
        self.robot: FollowedRobot | None = None
        self.problem, self.last_fault, self.rejected, self.foreign = "", "", 0, False
        self._stamps: list[int] | None = []  # None if the robot cannot be followed
        if options.rate_hz:
            self._begin(options.rate_hz)

    def take(self, message: JointState) -> tuple[JointSample, Followed] | None:
        """Process a message; return its sample and the result, or None if the sample is invalid or the rate unknown."""
        self.foreign = False
        try:
            sample = self.order.sample(message)
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
        rate = 1e9 / max(float(np.median(np.diff(self._stamps))), 1.0)
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


class Online(GoalNode):
    """Subscription, publishers and action around a :class:`Following`."""

    def __init__(self) -> None:
        super().__init__("online")
        self.options = declare(self, OnlineNodeOptions)
        self.watch = StreamWatch()
        self.following: Following | None = None
        self.estimate: OnlineEstimate | None = None
        self.sequence, self.solved_ns, self.problem = 0, 0, ""
        self.payload_state, self.payload_failure, self.payload_mass, self.fed_back = "not requested", "", np.nan, 0.0
        self.parameters_publisher = self.create_publisher(InertialParameters, "~/parameters", LATCHED)
        self.change_publisher = self.create_publisher(RobotChange, "~/change", LATCHED)
        self.payload_publisher = self.create_publisher(InertiaStamped, "~/payload", LATCHED)
        if self.options.result:
            self._follow(self.options.result)
        else:
            self.create_subscription(IdentificationReport, "identifier/report", self._receive_report, LATCHED)
        # Messages are taken in batches: waking an executor for each message costs more than processing the message.
        self.states = PolledSubscription(self, JointState, "joint_states", recording_profile("best_effort"))
        self.create_timer(_STATES_PERIOD_S, self._take_states, clock=STEADY)
        self.serve_goals(IdentifyPayload, "~/identify_payload", "another payload is being identified")
        self.diagnostics = diagnostics.DiagnosticsPublisher(
            self, self._statuses, lambda: self.following.result.model.name if self.following is not None else "")

    # The robot

    def _receive_report(self, report: IdentificationReport) -> None:
        if report.verdict == InertialParameters.DO_NOT_USE or not report.result_directory:
            return
        try:
            self._follow(report.result_directory)
        except InertidError as error:
            self.problem = str(error)
            self.get_logger().error(self.problem)

    def _follow(self, directory: str) -> None:
        self.following = Following(directory, self.options)
        if self.work is not None:
            self.work.cancel("the node now follows another calibration; measure again")
        self.estimate, self.problem = None, ""
        self.get_logger().info(f"following '{self.following.result.model.name}' of {directory}")

    def _take_states(self) -> None:
        ahead = self.get_clock().now().nanoseconds * 1e-9 - time.monotonic()  # clock of the stamps minus steady clock
        for message, received in self.states.take():
            self._receive(message, received, received + ahead - to_nanoseconds(message.header.stamp) * 1e-9)

    def _receive(self, message: JointState, now: float, delay: float) -> None:
        if self.following is None:
            self.watch.add(now, delay)
            return
        fault = self.following.last_fault
        try:
            taken = self.following.take(message)
        except IdentificationError as error:
            self.problem = str(error)
            return
        if not self.following.foreign:
            self.watch.add(now, delay)
        if self.following.last_fault != fault:
            self.get_logger().warning(self.following.last_fault, throttle_duration_sec=_FAULT_LOG_PERIOD_S)
        if taken is None or self.following.robot is None:
            return
        state, followed = taken
        self._publish(self.following.robot, followed)
        if self.work is not None:
            self.work.take(state, followed, now)

    def _publish(self, robot: FollowedRobot, followed: Followed) -> None:
        model = robot.robot.equations.model
        if followed.news:
            times = robot.changes.time, robot.changes.since
            stamp, since = (to_time(robot.checks.stamp_ns(time)) for time in times)
            change = to_robot_change(model, robot.changes.current, stamp, since, self.options.false_alarms_per_hour)
            self.change_publisher.publish(change)
            self.get_logger().info(change.message)
        if followed.estimate is not None:
            self.estimate, self.problem = followed.estimate, ""
            self.sequence, self.solved_ns = self.sequence + 1, self.get_clock().now().nanoseconds
            stamp = to_time(robot.checks.stamp_ns(self.estimate.time))
            self.parameters_publisher.publish(followed_parameters(model, self.estimate, self.sequence, stamp))

    # Payload

    def begin(self, request: IdentifyPayload.Goal) -> PayloadGoal:
        following = self.following
        if following is None:
            raise RecordingError(f"payload: {_NO_ROBOT}")
        if following.robot is None:
            raise RecordingError(f"payload: {following.problem or following.order.others or _NO_STATES}")
        work = PayloadGoal(request, following.result, following.robot, self.options)
        self.payload_state = "measuring"
        return work

    def poll_goal(self) -> None:
        """Process waiting joint states first, so that a delay of this process does not look like a silent robot."""
        self._take_states()
        super().poll_goal()

    def feedback(self, work: PayloadGoal) -> IdentifyPayload.Feedback | None:
        if (now := time.monotonic()) - self.fed_back <= _FEEDBACK_PERIOD_S:
            return None
        self.fed_back = now
        return to_payload_feedback(*work.stage, work.progress)

    def conclude(self, work: PayloadGoal) -> IdentifyPayload.Result:
        answer = to_payload_result(work.result(), self.get_clock().now().to_msg())
        self.payload_publisher.publish(answer.payload)
        self.payload_state, self.payload_failure = answer.message, ""
        self.payload_mass = answer.payload.inertia.m
        self.get_logger().info(answer.message)
        return answer

    def failed(self, reason: str) -> IdentifyPayload.Result:
        self.payload_state, self.payload_failure = "failed", reason
        return IdentifyPayload.Result(message=reason)

    # Status

    def _statuses(self) -> list[diagnostics.Status]:
        return [self._joint_states_status(), self._parameters_status(), self._robot_status(), self._payload_status()]

    def _joint_states_status(self) -> diagnostics.Status:
        report, following = self.watch.report(time.monotonic()), self.following
        names, problem, silent = tuple[str, ...](), "", _NO_STATES
        keys = ("Rejected messages", "Filter restarts", "Filter delay (s)", "Last fault", "Fault counts")
        counts = dict[str, object].fromkeys(keys)
        if following is not None:
            names, problem = following.result.model.joint_names, following.problem
            silent = following.order.others or silent
            counts |= {"Rejected messages": following.rejected, "Last fault": following.last_fault}
            if (robot := following.robot) is not None:
                faults = ", ".join(f"{fault.value} {count}" for fault, count in robot.faults.most_common())
                filters = {"Filter restarts": robot.filter.restarts, "Filter delay (s)": robot.filter.delay}
                counts |= {**filters, "Fault counts": faults}
        return diagnostics.judged(
            "joint states", {**diagnostics.stream_values(report, names), **counts},
            (diagnostics.STALE, silent if report.silent else ""),
            (diagnostics.ERROR, problem),
            (diagnostics.WARN, diagnostics.wrong_clock(report)),
            (diagnostics.WARN, diagnostics.gaps_between("joint states", report)),
            otherwise=f"{report.rate_hz:.0f} Hz")

    def _parameters_status(self) -> diagnostics.Status:
        estimate = self.estimate
        age_s = (self.get_clock().now().nanoseconds - self.solved_ns) * 1e-9
        values = {
            "Result": str(self.following.result.directory) if self.following is not None else None,
            "Age (s)": age_s if self.solved_ns else None,
            "Newton steps": estimate.steps if estimate is not None else None,
            "Solution (ms)": 1e3 * estimate.seconds if estimate is not None else None}
        return diagnostics.judged(
            "parameters", values,
            (diagnostics.ERROR, self.problem),
            (diagnostics.STALE, _NO_ROBOT if self.following is None else ""),
            (diagnostics.STALE, "waiting for joint states" if estimate is None else ""),
            otherwise="published")

    def _robot_status(self) -> diagnostics.Status:
        robot = self.following.robot if self.following is not None else None
        values = dict.fromkeys(("Cause", "Link or joint", "Amount (kg, N m or N)", "Standard deviation", "Settled"))
        if robot is None:
            return diagnostics.Status("robot", diagnostics.STALE, "no robot is followed", values)
        message = describe_change(robot.changes.current)
        if (change := robot.changes.current) is None:
            return diagnostics.Status("robot", diagnostics.OK, message, values)
        content = (change.cause.value, change.subject, change.amount, change.deviation, change.settled)
        return diagnostics.Status("robot", diagnostics.WARN, message, dict(zip(values, content, strict=True)))

    def _payload_status(self) -> diagnostics.Status:
        state, failure = self.payload_state, self.payload_failure
        values = {"State": state, "Mass (kg)": self.payload_mass, "Last fault": failure}
        return diagnostics.judged("payload", values, (diagnostics.WARN, failure), otherwise=state)


def followed_parameters(model: RobotModel, estimate: OnlineEstimate, sequence: int, stamp: Time) -> InertialParameters:
    """Make a message from an online estimate: not validated on held-out data, with the verdict "use with care"."""
    return InertialParameters(
        header=Header(stamp=stamp), sequence=sequence, model_hash=model.hash,
        validation_status=InertialParameters.NOT_VALIDATED, verdict=InertialParameters.USE_WITH_CARE,
        reasons=["estimated while the robot moves: not validated on held-out data"],
        validation_relative_error=float("nan"), **value_fields(model, estimate.parameters, estimate.covariance))


def to_robot_change(
        model: RobotModel, change: Change | None, stamp: Time, since: Time,
        false_alarms_per_hour: float) -> RobotChange:
    """Make a message from the last change; None means that the robot is as calibrated."""
    message = RobotChange(header=Header(stamp=stamp), model_hash=model.hash)
    message.false_alarms_per_hour, message.message = false_alarms_per_hour, describe_change(change)
    if change is None:
        return message
    message.since, message.cause, message.subject = since, getattr(RobotChange, change.cause.name), change.subject
    message.amount, message.standard_deviation = change.amount, change.deviation
    message.ratio, message.threshold, message.settled = change.ratio, change.threshold, change.settled
    return message


def describe_change(change: Change | None) -> str:
    """Return one line on a change; None means that the robot is as calibrated."""
    if change is None:
        return "as calibrated"
    if not change.settled:
        return f"changed; best explanation so far: {change.cause.value} at {change.subject}"
    unit = "kg" if change.cause in (Cause.PAYLOAD, Cause.LOST_PART) else "N m or N"
    return f"{change.cause.value} at {change.subject}: about {change.amount:+.2g} {unit}"


def to_payload_result(result: PayloadOutcome, stamp: Time) -> IdentifyPayload.Result:
    """Make the result of the action; the inertia is about the payload's centre of mass, in the frame of its link."""
    payload, commands = result.payload, result.content["as_robots_take_it"]
    quantities = (payload.mass, *payload.com, *payload.inertia)
    low, high = payload.mass.interval
    inertia = to_inertia([quantity.value for quantity in quantities])
    return IdentifyPayload.Result(
        success=True, message=f"{payload.mass.value:.3f} kg ({low:.3f} to {high:.3f}) on {payload.tool.name}",
        payload=InertiaStamped(header=Header(stamp=stamp, frame_id=payload.tool.name), inertia=inertia),
        standard_deviation=[quantity.deviation for quantity in quantities],
        lower=[quantity.interval[0] for quantity in quantities],
        upper=[quantity.interval[1] for quantity in quantities], notices=list(result.content["notices"]),
        set_target_payload=commands["set_target_payload"]["script"], set_load=commands["setLoad"]["call"],
        payload_json=json.dumps(result.content, allow_nan=False))


def to_payload_feedback(stage: str, fraction: float, progress: PayloadProgress) -> IdentifyPayload.Feedback:
    """Make the feedback of the payload action."""
    return IdentifyPayload.Feedback(
        stage=stage, fraction=fraction, mass=progress.mass, mass_standard_deviation=progress.mass_deviation,
        com=Vector3(**by_axis(progress.com)), com_standard_deviation=Vector3(**by_axis(progress.com_deviation)),
        uncertain=progress.uncertain)


def main() -> int:
    return run_node(Online)
