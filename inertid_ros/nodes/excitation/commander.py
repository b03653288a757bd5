"""Commanders send horizons to the robot on a trajectory topic, as FollowJointTrajectory goals, or as positions."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.task import Future
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.core.arrays import Array
from inertid_ros.excitation.execution.horizons import Horizon
from inertid_ros.excitation.execution.supervisor import CommandInterface
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.robot.recorded_joints import RecordedJoints
from inertid_ros.ros.controller import CommandTopic, follow_joint_trajectory, of_controller
from inertid_ros.ros.conversions import to_joint_trajectory, to_time
from inertid_ros.ros.topics import PacedGroup

_GOAL_ANSWER_TIMEOUT_S = 1.0  # a busy machine takes about 0.1 s; meanwhile the last horizon brings the robot to rest
_LATE_ANSWER_S = 0.1  # two horizons
_LATENESS_S = 0.5  # time after a late answer until the robot is back on its path
_ANSWERS_PERIOD_S, _ANSWERS_INTERVAL_S = 0.02, 0.003  # answers are taken every 20 ms, for 3 ms


class Commander(CommandInterface, Protocol):
    """A command interface that detects that commands do not arrive; ``name`` names its topic or action."""

    name: str

    @property
    def has_controller(self) -> bool: ...

    def problem(self) -> str:
        """Return why commands do not arrive, or which other node commands the robot; else empty."""
        ...

    def halt(self) -> str:
        """Return why the controller itself stopped the robot and holds it; empty if no such stop was reported."""
        return ""


class TrajectoryCommander(CommandTopic, Commander):
    """Send horizons as ``trajectory_msgs/JointTrajectory`` on ``joint_trajectory``."""

    def __init__(self, node: Node, joints: RecordedJoints, controller: str = "") -> None:
        super().__init__(node, JointTrajectory, of_controller(controller, "joint_trajectory"))
        self._joints = joints

    def send(self, horizon: Horizon) -> None:
        self._publisher.publish(_message(horizon, self._joints))


class StreamCommander(CommandTopic, Commander):
    """Send a position each tick as ``std_msgs/Float64MultiArray`` on ``position_commands``, in the model's joint order.

    If the sender fails, the robot holds the last position: it stops abruptly, and may exceed its limits. Prefer
    trajectories if the robot accepts them.
    """

    streams = True

    def __init__(self, node: Node, joints: RecordedJoints, controller: str = "") -> None:
        super().__init__(node, Float64MultiArray, of_controller(controller, "position_commands"))

    def stream(self, position: Array) -> None:
        self._publisher.publish(Float64MultiArray(data=np.asarray(position).tolist()))


class AnswersOnly(ActionClient):
    """Action client that reads answers and results of goals, and leaves states and feedback unread.

    Whenever a goal changes its state, a server publishes the states of all its goals of the last seconds, which may be
    hundreds. On a busy machine, a node that reads these messages receives answers a second late. Use this class only in
    nodes that poll for callbacks (:class:`.TickedSpin`): unread messages would wake any other executor at once.
    """

    def is_ready(self, wait_set: Any) -> bool:
        """Return True if an answer or a result waits."""
        super().is_ready(wait_set)
        self._is_feedback_ready = self._is_status_ready = False
        return bool(self._is_goal_response_ready or self._is_cancel_response_ready or self._is_result_response_ready)


class OpenGoals:
    """Goals that a controller has not answered yet; times are on the steady clock [s]."""

    def __init__(self) -> None:
        self._sent: dict[object, float] = {}
        self._late_s, self._late_until = 0.0, -np.inf  # the delay of the last late answer

    def send(self, goal: object, now: float) -> None:
        self._sent[goal] = now

    def answer(self, goal: object, now: float) -> None:
        """Close an answered goal and all earlier goals, whose answers may have been lost."""
        if goal in self._sent:
            sent = self._sent[goal]
            if now - sent > _LATE_ANSWER_S:
                self._late_s, self._late_until = now - sent, now + _LATENESS_S
            self._sent = {other: at for other, at in self._sent.items() if at > sent}

    def silence(self, now: float) -> float:
        """Return the time since the oldest open goal was sent [s]; 0 without open goals."""
        return now - next(iter(self._sent.values())) if self._sent else 0.0

    def is_late(self, now: float) -> bool:
        """Return True if the oldest open goal should have been answered."""
        return self.silence(now) > _LATE_ANSWER_S

    def lateness(self, now: float) -> float:
        """Return the delay of an answer that is late, or was late just before [s]; 0 without one."""
        if self.is_late(now):
            return self.silence(now)
        return self._late_s if now < self._late_until else 0.0


class ActionCommander(Commander):
    """Send each horizon as a ``control_msgs/action/FollowJointTrajectory`` goal on ``follow_joint_trajectory``.

    Each goal replaces the last goal, whose end is then normal. A brake is also a goal: goals are never cancelled,
    because a controller stops abruptly on a cancellation. It is a problem if the controller rejects a goal, or aborts
    a goal for a violated tolerance.
    """

    def __init__(self, node: Node, joints: RecordedJoints, controller: str = "") -> None:
        self._action = action = follow_joint_trajectory()
        self._violations = (action.Result.PATH_TOLERANCE_VIOLATED, action.Result.GOAL_TOLERANCE_VIOLATED)
        name = of_controller(controller, "follow_joint_trajectory")
        client = ActionClient if node.get_clock().ros_time_is_active else AnswersOnly
        group = PacedGroup(_ANSWERS_PERIOD_S, _ANSWERS_INTERVAL_S)
        self._client = client(node, action, name, callback_group=group)
        self.name = str(node.resolve_topic_name(name))
        self._joints = joints
        self._problem = self._given_up = ""
        self._goals = OpenGoals()

    @property
    def has_controller(self) -> bool:
        return bool(self._client.server_is_ready())

    def begin(self) -> None:
        """Forget rejections and missing answers of the last motion."""
        self._problem = self._given_up = ""
        self._goals = OpenGoals()

    def problem(self) -> str:
        """Return why commands do not arrive, in one line; empty if they arrive."""
        if not self.has_controller:
            return (
                f"{self.name} has no server; start and activate the controller, or set the parameter controller")
        # A server that was killed counts as ready until its middleware has been silent for many seconds.
        if self._goals.silence(time.monotonic()) > _GOAL_ANSWER_TIMEOUT_S:
            return f"the controller has not answered a goal of {self.name} for {_GOAL_ANSWER_TIMEOUT_S:g} s; restart it"
        return self._problem

    def halt(self) -> str:
        """Return why the controller aborted a goal and holds the robot; empty without an aborted goal."""
        return self._given_up

    @property
    def is_behind(self) -> bool:
        """True if a goal is open for so long that the controller would jump to the newest of several goals."""
        return self._goals.is_late(time.monotonic())

    def lateness(self) -> str:
        """Return a message if the controller answers goals too late, else an empty string."""
        late = self._goals.lateness(time.monotonic())
        fault = f"a goal of {self.name} waited {late:.2f} s for its answer, so that the controller's command jumps"
        return f"{fault}; give the controller real-time priority, or take other work off its computer" if late else ""

    def send(self, horizon: Horizon) -> None:
        if self.has_controller:  # without a server, a goal would wait forever for its answer
            future = self._client.send_goal_async(self._action.Goal(trajectory=_message(horizon, self._joints)))
            self._goals.send(future, time.monotonic())
            future.add_done_callback(self._answered)

    def _answered(self, future: Future) -> None:
        self._goals.answer(future, time.monotonic())
        handle = future.result()
        if handle is None or not handle.accepted:
            self._problem = f"the controller rejects goals of {self.name}; activate it, and check its log"
            return
        handle.get_result_async().add_done_callback(self._ended)

    def _ended(self, future: Future) -> None:
        answer = future.result()
        if answer is not None and answer.result.error_code in self._violations:
            why = answer.result.error_string or f"error code {answer.result.error_code}"
            self._given_up = f"the controller aborted the motion ({why}); check for a collision and the tolerances"
            self._problem = self._given_up


def _message(horizon: Horizon, joints: RecordedJoints) -> JointTrajectory:
    """Make a trajectory with the horizon's stamp, so latency does not shift it; unstamped, it starts on receipt."""
    names = joints.recorded(horizon.joint_names)
    points = PiecewiseQuintic(horizon.time_from_start, horizon.position, horizon.velocity, horizon.acceleration)
    return to_joint_trajectory(names, points, None if np.isnan(horizon.stamp) else to_time(round(horizon.stamp * 1e9)))


COMMANDERS: Mapping[str, Callable[[Node, RecordedJoints, str], Commander]] = {
    "joint_trajectory": TrajectoryCommander,
    "follow_joint_trajectory": ActionCommander,
    "position_stream": StreamCommander}
"""Map from command interface to commander; a commander raises ConfigurationError if its messages are not installed."""
