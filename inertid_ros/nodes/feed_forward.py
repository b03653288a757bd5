"""Feed-forward node: fill the efforts of trajectories, and send the trajectories on to the trajectory controller.

The efforts are computed with the newest accepted parameters, or with a result directory, which the node then publishes.
If anything is wrong, the node refuses the trajectory in one line and does not send it.
"""

import time
from typing import Any

import numpy as np
from action_msgs.msg import GoalStatus
from rcl_interfaces.srv import GetParameters
from rclpy.action import ActionClient, ActionServer, CancelResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.task import Future
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.calibration.prediction import check_efforts
from inertid_ros.config.nodes import FeedForwardOptions
from inertid_ros.core.errors import ConfigurationError, InertidError
from inertid_ros.excitation.plan import MAX_KNOTS
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.msg import InertialParameters
from inertid_ros.report.results import Result
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.ros.controller import CommandTopic, ControllerManager, Question, follow_joint_trajectory
from inertid_ros.ros.conversions import NANOSECONDS, from_joint_trajectory, to_joint_trajectory
from inertid_ros.ros.diagnostics import STALE, WARN, DiagnosticsPublisher, Status, judged
from inertid_ros.ros.node_parameters import declare
from inertid_ros.ros.parameter_messages import stored_parameters
from inertid_ros.ros.received_parameters import ParameterSubscriber
from inertid_ros.ros.topics import COMMAND, LATCHED, STEADY, resolved

from .spin import run_node

_ANSWER_POLL_S = 0.1
_SILENCE_S = 5.0  # a controller answers twice a second; a killed one counts as ready for many seconds
_NO_CONTROLLER = "the parameter controller is empty; set it to the name of the robot's trajectory controller"


class FeedForward(Node):
    """Subscription, action and checks around :meth:`filled`."""

    def __init__(self) -> None:
        super().__init__("feed_forward")
        self.options = options = declare(self, FeedForwardOptions)
        self.robot: RobotModel | None = None
        self.no_robot = "no robot description has been received; publish robot_description or set urdf"
        self.parameters: ParameterSubscriber | None = None
        self.topic = resolved(self, "~/parameters" if options.result else options.parameters)
        self.interfaces: tuple[str, ...] | None = None  # of the controller; None if it does not answer
        self.heard_s = time.monotonic()  # last answer
        self.awaited: set[Future] = set()  # answers of the controller to goals
        self.sent, self.refused, self.refusal = 0, 0, ""
        self.manager = ControllerManager(self, options.controller)
        self.question: Question | None = None
        self.commands: CommandTopic | None = None  # none without a controller, so that no other node sees a commander
        if options.controller:
            self.question = Question(self, GetParameters, f"{options.controller}/get_parameters")
        if options.result:
            self.publisher = self.create_publisher(InertialParameters, self.topic, LATCHED)
            stamp = self.get_clock().now().to_msg()
            self.publisher.publish(stored_parameters(Result.load(options.result), stamp))
        if options.urdf:
            self._take_description(options.urdf)
        else:
            self.create_subscription(String, "robot_description", self.receive_description, LATCHED)
        if options.command_interface == "follow_joint_trajectory":
            self._serve_goals()
        else:
            self.create_subscription(JointTrajectory, "~/joint_trajectory", self._take_trajectory, COMMAND)
            if options.controller:
                self.commands = CommandTopic(self, JointTrajectory, f"{options.controller}/joint_trajectory")
        self.create_timer(_ANSWER_POLL_S, self._poll, clock=STEADY)
        self.diagnostics = DiagnosticsPublisher(self, self._statuses, lambda: self.robot.name if self.robot else "")

    # Robot and controller

    def receive_description(self, message: String) -> None:
        try:
            self._take_description(message.data)
        except InertidError as error:
            self.no_robot = f"robot_description: {error}"
            self.get_logger().error(self.no_robot)

    def _take_description(self, source: str) -> None:
        robot = load_model(source, self.options.robot, shapes=False)
        if robot.free:
            raise ConfigurationError("efforts are computed for robots on a fixed base only; set robot.base: fixed")
        if self.robot is not None and robot.hash != self.robot.hash:
            raise ConfigurationError("describes another robot than before; restart feed_forward to change the robot")
        if self.parameters is None:
            self.parameters = ParameterSubscriber(self, robot, self.topic, only_use=self.options.only_use)
        self.robot, self.no_robot = robot, ""
        self.manager.joints = robot.recorded_joints.recorded(robot.joint_names)

    def _poll(self) -> None:
        now = time.monotonic()
        self.manager.poll(now)
        if self.question is None:
            return
        if (answer := self.question.poll(now, names=["command_interfaces"])) is not None:
            lists = (value.string_array_value for value in answer.values)  # empty for another type
            self.heard_s, self.interfaces = now, tuple(name for names in lists for name in names)
        elif now - self.heard_s > _SILENCE_S:
            self.interfaces = None
            for awaited in self.awaited:
                awaited.cancel()

    def problem(self) -> str:
        """Return why trajectories cannot be filled now, in one line; empty if they can."""
        if self.parameters is None or self.no_robot:
            return self.no_robot
        self.parameters.update()
        return self._parameter_problem(self.parameters) or self.manager.problem() or self._interface_problem()

    def _parameter_problem(self, parameters: ParameterSubscriber) -> str:
        options, stamp = self.options, parameters.stamp_ns
        if stamp is None:
            return parameters.refusal or (
                f"no parameters on {self.topic}; start the identifier with an accepted result, or set the parameter"
                " result or parameters")
        age_s = (self.get_clock().now().nanoseconds - stamp) / NANOSECONDS
        old = f"the parameters on {self.topic} are {age_s:.3g} s old, more than max_age_s {options.max_age_s:g}"
        return f"{old}; restart their node" if 0 < options.max_age_s < age_s else ""

    def _interface_problem(self) -> str:
        if not (name := self.options.controller):
            return _NO_CONTROLLER
        if self.interfaces is None:
            why = "does not answer a request for its command interfaces"
            return f"{name} {why}; start it, or correct the parameter controller"
        if "effort" not in self.interfaces:
            return (
                f"{name} has no effort command interface, but {', '.join(self.interfaces) or 'no command_interfaces'};"
                " set its parameter command_interfaces: [effort]")
        return ""

    # Trajectories

    def filled(self, message: JointTrajectory) -> JointTrajectory:
        """Return a trajectory with efforts, and with further points, so that points are at most ``step_s`` apart.

        All points are on the quintic spline of the controller, which interpolates efforts linearly. A trajectory
        without points, which stops the robot, is returned as it is. Raises InertidError with the reason if the
        trajectory cannot be filled.
        """
        if not message.points:
            return message
        if problem := self.problem():
            raise InertidError(problem)
        assert self.robot is not None and self.parameters is not None
        curve, step_s = self._curve(message), self.options.step_s
        counts = np.maximum(np.ceil(np.diff(curve.time) / step_s - 1e-9), 1.0)
        if counts.sum() >= MAX_KNOTS:
            raise InertidError(
                f"joint trajectory: needs {counts.sum():.0f} points, at most {MAX_KNOTS} fit; send it in parts")
        ends = zip(curve.time[:-1], curve.time[1:], counts.astype(int), strict=True)
        time = np.concatenate([*(np.linspace(*piece, endpoint=False) for piece in ends), curve.time[-1:]])
        motion = curve.sample(time)
        effort = self.parameters.inverse_dynamics(*motion)
        check_efforts(effort, self.robot.limits.effort, self.manager.joints, time, "joint trajectory")
        if not self.options.gravity:
            effort -= self.parameters.gravity(motion[0])
        trajectory = to_joint_trajectory(self.manager.joints, PiecewiseQuintic(time, *motion))
        trajectory.header = message.header
        for point, values in zip(trajectory.points, effort.tolist(), strict=True):
            point.effort = values
        return trajectory

    def _curve(self, message: JointTrajectory) -> PiecewiseQuintic:
        for channel in ("velocities", "accelerations"):
            if missing := [row for row, point in enumerate(message.points) if not getattr(point, channel)]:
                raise InertidError(
                    f"joint trajectory: point {missing[0]} lacks {channel}, on which the effort depends; let the"
                    " planner add them (MoveIt: AddTimeOptimalParameterization)")
        if any(point.effort for point in message.points):
            raise InertidError("joint trajectory: has efforts already; send it to the controller itself")
        curve = from_joint_trajectory(message, self.manager.joints)
        if len(curve.time) < 2 or curve.time[0] > self.options.step_s:
            raise InertidError(
                "joint trajectory: begins with a motion to its first point, whose effort is unknown; let it begin with"
                " the robot's present position at time_from_start 0, followed by more points")
        return curve

    def _take_trajectory(self, message: JointTrajectory) -> None:
        try:
            if self.commands is None or not self.commands.has_controller:
                raise InertidError(_NO_CONTROLLER if self.commands is None else self.commands.problem())
            self.commands.publish(self.filled(message))
            self.sent, self.refusal = self.sent + 1, ""
        except InertidError as error:
            self._refuse(str(error))

    def _refuse(self, reason: str) -> None:
        self.refused, self.refusal = self.refused + 1, reason
        self.get_logger().error(f"refused: {reason}")

    # Action

    def _serve_goals(self) -> None:
        self.action = follow_joint_trajectory()
        self.goals: dict[bytes, Any] = {}  # goals at the controller, by the id of the goal here
        group = ReentrantCallbackGroup()
        name = f"{self.options.controller}/follow_joint_trajectory".lstrip("/")
        self.client = ActionClient(self, self.action, name, callback_group=group)
        self.server = ActionServer(
            self, self.action, "~/follow_joint_trajectory", self._execute, cancel_callback=self._cancel,
            callback_group=group)

    async def _execute(self, goal: ServerGoalHandle) -> Any:
        """Send a goal on, and return the controller's result."""
        key, request = bytes(goal.goal_id.uuid), goal.request
        try:
            if not self.client.server_is_ready():
                raise InertidError(f"{self.options.controller} has no follow_joint_trajectory; start and activate it")
            request.trajectory = self.filled(request.trajectory)
            sent = await self._answer(
                self.client.send_goal_async(request, lambda message: goal.publish_feedback(message.feedback)))
            if not sent.accepted:
                raise InertidError(f"{self.options.controller} rejects the filled trajectory; see its log")
            self.sent, self.refusal, self.goals[key] = self.sent + 1, "", sent
            if goal.is_cancel_requested:
                sent.cancel_goal_async()
            answer = await self._answer(sent.get_result_async())
        except InertidError as error:
            self._refuse(str(error))
            goal.abort()
            return self.action.Result(error_code=self.action.Result.INVALID_GOAL, error_string=str(error))
        finally:
            self.goals.pop(key, None)
        if answer.status == GoalStatus.STATUS_SUCCEEDED:
            goal.succeed()
        elif answer.status == GoalStatus.STATUS_CANCELED and goal.is_cancel_requested:
            goal.canceled()
        else:
            goal.abort()
        return answer.result

    async def _answer(self, future: Future) -> Any:
        """Wait for the controller's answer; InertidError if it falls silent."""
        self.awaited.add(future)
        answer = await future
        self.awaited.remove(future)
        if answer is None:
            raise InertidError(
                f"{self.options.controller} has not answered for {_SILENCE_S:g} s, so its goal ends here; make sure"
                " that the robot rests, and restart the controller")
        return answer

    def _cancel(self, goal: ServerGoalHandle) -> CancelResponse:
        if sent := self.goals.get(bytes(goal.goal_id.uuid)):
            sent.cancel_goal_async()
        return CancelResponse.ACCEPT

    def _statuses(self) -> list[Status]:
        parameters, controller = self.parameters, self.options.controller
        values = {
            "Controller": controller, "Parameters": parameters.sequence if parameters is not None else None,
            "Filled": self.sent, "Refused": self.refused}
        return [judged(
            "trajectories", values,
            (STALE, self.no_robot),
            (WARN, self.problem()), (WARN, self.refusal), (WARN, "" if parameters is None else parameters.refusal),
            otherwise="ready")]


def main() -> int:
    return run_node(FeedForward)
