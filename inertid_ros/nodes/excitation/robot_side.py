"""RobotSide: what the excitation node hears of the robot, and whether it may begin to move it."""

import time
from collections.abc import Callable

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from inertid_ros.config.excitation import MonitorOptions
from inertid_ros.core.errors import ExcitationError, InertidError, RecordingError
from inertid_ros.msg import RecorderStatus
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.urdf.parsing import read_description
from inertid_ros.ros.conversions import JointOrder, JointSample
from inertid_ros.ros.qos import LATCHED, STATE

from .commander import Commander, make_commander
from .joint_state_watch import StateWatch
from .parameters import ExcitationNodeOptions

_RECORDER_TIMEOUT_S = 3.0


class RobotSide:
    """Robot description, joint states, recorder and command interface of one robot.

    Parameters
    ----------
    on_state: called with every joint state that could be read and its receipt on the steady clock [s].
    on_other_robot: called where the description changes to other kinematics.
    """

    def __init__(
        self,
        node: Node,
        options: ExcitationNodeOptions,
        on_state: Callable[[JointSample, float], None],
        on_other_robot: Callable[[], None],
    ) -> None:
        self._node, self._options = node, options
        self._on_state, self._on_other_robot = on_state, on_other_robot
        self._model: RobotModel | None = None
        self._watch: StateWatch | None = None
        self._commander: Commander | None = None
        self._recorder: tuple[float, RecorderStatus] | None = None
        node.create_subscription(JointState, "joint_states", self._take_state, STATE)
        node.create_subscription(RecorderStatus, "recorder/status", self._take_recorder, LATCHED)
        if not options.urdf:
            node.create_subscription(String, "robot_description", self._describe, LATCHED)

    def configure(self) -> None:
        """Read the robot and prepare the command interface.

        Raises
        ------
        InertidError: no usable robot description, or the command interface is not available.
        """
        if self._options.urdf:
            self._take_description(read_description(self._options.urdf))
        if self._model is None:
            raise ExcitationError("no robot description has been received; publish robot_description or set urdf")
        if self._commander is None:
            self._commander = make_commander(self._node, self._options.command_interface, self._model.joint_names)

    @property
    def model(self) -> RobotModel:
        if self._model is None:
            raise ExcitationError("no robot description has been received; configure the excitation node first")
        return self._model

    @property
    def commander(self) -> Commander:
        if self._commander is None:
            raise ExcitationError("no command interface; configure the excitation node first")
        return self._commander

    @property
    def heard(self) -> bool:
        """Whether joint states have come for long enough to judge them."""
        return self._watch is not None and self._watch.filled(time.monotonic())

    @property
    def recorder_heard(self) -> bool:
        """Whether the recorder has told of late what it does."""
        return self._recorder is not None and time.monotonic() - self._recorder[0] <= _RECORDER_TIMEOUT_S

    def position(self) -> np.ndarray:
        """``(n,)`` where the robot stands."""
        return self._states().position()

    def clock(self) -> float:
        """ROS time [s], the clock of the stamps."""
        return float(self._node.get_clock().now().nanoseconds * 1e-9)

    def check_states(self, options: MonitorOptions) -> None:
        """Raise ExcitationError unless fresh joint states tell of a robot at rest."""
        self._states().check(time.monotonic(), self.clock(), options)

    def check_recorder(self) -> None:
        """Raise ExcitationError unless the recorder says that samples are being written."""
        status = self._recorder[1] if self._recorder is not None else None
        if status is None or not self.recorder_heard or not status.recording:
            why = status.message if status is not None else "it was not heard"
            raise ExcitationError(f"the recorder does not confirm that it writes ({why}); start it first")

    def intruder(self) -> str:
        """Why commands do not arrive or are not ours alone, or states come from several; empty when all is well."""
        problem = self.commander.problem()
        topic = self._node.resolve_topic_name("joint_states")
        offers = self._node.get_publishers_info_by_topic(topic)
        if problem or len(offers) <= 1:
            return problem
        names = ", ".join(f"{offer.node_namespace.rstrip('/')}/{offer.node_name}" for offer in offers)
        return f"several nodes publish {topic}: {names}; stop all but the robot's"

    def _states(self) -> StateWatch:
        if self._watch is None:
            raise ExcitationError("no robot description has been received; configure the excitation node first")
        return self._watch

    def _describe(self, message: String) -> None:
        try:
            self._take_description(message.data)
        except InertidError as error:
            self._node.get_logger().error(f"robot_description: {error}")

    def _take_description(self, text: str) -> None:
        model = load_model(text, self._options.robot.model_options())
        if self._model is not None and model.hash != self._model.hash:
            self._on_other_robot()
        if self._watch is None or self._watch.joint_names != model.joint_names:
            self._watch = StateWatch(JointOrder(model.joint_names))
        self._model = model

    def _take_recorder(self, status: RecorderStatus) -> None:
        self._recorder = (time.monotonic(), status)

    def _take_state(self, message: JointState) -> None:
        if self._watch is None:
            return
        now = time.monotonic()
        try:
            sample = self._watch.take(message, now)
        except RecordingError as error:
            self._node.get_logger().warning(str(error), throttle_duration_sec=1.0)
            return
        if sample is not None:
            self._on_state(sample, now)
