"""RobotStates: description and joint states of one robot, for a node that moves it."""

import time
from collections.abc import Callable

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from inertid_ros.config.execution import StateMonitorOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import ExcitationError, InertidError, RecordingError
from inertid_ros.data.live.clock_difference import ahead_of_steady
from inertid_ros.data.live.stream_watch import StreamReport, StreamWatch
from inertid_ros.robot.configured_model import model_options
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.urdf.parsing import read_description
from inertid_ros.ros.conversions import NANOSECONDS, to_nanoseconds
from inertid_ros.ros.joint_order import JointOrder, JointSample
from inertid_ros.ros.polling import PolledSubscription
from inertid_ros.ros.qos import LATCHED, STATE

from .joint_state_window import JointStateWindow
from .publishers import UNNAMED, Publishers
from .simulated_time import SimulatedTime

_NUMBERED_S = 2.0  # for so long the sequence numbers of joint states increase before they count as one publisher's


class RobotStates:
    """Robot description and joint states of one robot.

    Parameters
    ----------
    node : Node
    urdf : str
        File of the description; empty takes the topic ``robot_description``.
    robot : RobotOptions
        How it is read.
    on_state : callable
        Called with every joint state that could be read, and its receipt on ROS time and on the steady clock [s].
    on_other_robot : callable
        Called where the description changes to other kinematics.
    """

    def __init__(
        self,
        node: Node,
        urdf: str,
        robot: RobotOptions,
        on_state: Callable[[JointSample, float, float], None],
        on_other_robot: Callable[[], None],
    ) -> None:
        self._node, self._urdf, self._robot_options = node, urdf, robot
        self._on_state, self._on_other_robot = on_state, on_other_robot
        self._model: RobotModel | None = None
        self._no_model = "no robot description has been received; publish robot_description or set urdf"
        self._window: JointStateWindow | None = None
        self._has_driver = False
        self._stream = StreamWatch()
        self._rejected, self._rejection = 0, ""  # joint states that could not be read, and why the last one was not
        self._publishers = Publishers(node, node.resolve_topic_name("joint_states"))
        self._states = PolledSubscription(node, JointState, "joint_states", STATE)
        self._simulated = SimulatedTime() if node.get_clock().ros_time_is_active else None
        if not urdf:
            node.create_subscription(String, "robot_description", self._receive_description, LATCHED)

    def read_robot(self) -> None:
        """Read the file, where one is given.

        Raises
        ------
        InertidError
            No usable robot description.
        """
        if self._urdf:
            self._take_description(read_description(self._urdf))
        if self._model is None:
            raise ExcitationError(self._no_model)

    @property
    def model(self) -> RobotModel:
        """The robot as described last."""
        if self._model is None:
            raise self._not_configured()
        return self._model

    @property
    def name(self) -> str:
        """Name of the robot; empty where no description was received."""
        return self._model.name if self._model is not None else ""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The ``n`` joints of the model; none where no description was received."""
        return self._model.joint_names if self._model is not None else ()

    @property
    def has_states(self) -> bool:
        """Whether joint states have been received for long enough to check them."""
        return self._window is not None and self._window.filled(self.steady())

    @property
    def has_driver(self) -> bool:
        """Whether a joint state has ever been received, of whatever joints."""
        return self._has_driver

    @property
    def window(self) -> JointStateWindow:
        """The recent joint states."""
        if self._window is None:
            raise self._not_configured()
        return self._window

    def steady(self) -> float:
        """Return the time of the steady clock [s]; the simulated one with ``use_sim_time``."""
        return time.monotonic() if self._simulated is None else self._simulated.now

    def clock(self) -> float:
        """Return ROS time [s], the clock of the stamps."""
        return float(self._node.get_clock().now().nanoseconds * 1e-9)

    def clock_ahead(self) -> float:
        """Return how far ROS time is ahead of :meth:`steady` [s]."""
        return ahead_of_steady(self.clock) if self._simulated is None else 0.0

    def check_states(self, options: StateMonitorOptions) -> None:
        """Raise ExcitationError unless fresh joint states show a robot at rest."""
        if self._simulated is not None:
            if self._simulated.restart():
                self.window.clear()
            self._simulated.check()
        now = self.steady()
        self.window.check(now, now + self.clock_ahead(), options)

    def poll(self) -> None:
        """Take the joint states that have come since the last call; to be called at every tick."""
        clock_ahead = self.clock_ahead()
        if self._simulated is not None:
            self._simulated.update(self.clock(), time.monotonic())
        for message, received in self._states.take():
            if self._simulated is not None:
                self._simulated.update(self.clock(), received, to_nanoseconds(message.header.stamp) / NANOSECONDS)
                received = self._simulated.now
            self._take_state(message, received, received + clock_ahead)

    @property
    def joint_states(self) -> StreamReport:
        """How joint states of the robot have come; saturated channels are efforts in the order of the joints."""
        return self._stream.report(self.steady())

    @property
    def rejected(self) -> tuple[int, str]:
        """Number of joint states that could not be read, and why the newest one could not; empty where it could."""
        return self._rejected, self._rejection

    def several_publishers(self) -> str:
        """Which nodes publish joint states, where these are several; empty otherwise."""
        publishers = self._publishers.look()
        known = {publisher for publisher in publishers if publisher[0] != UNNAMED}
        if len(publishers) <= 1 or len(known) <= 1 and self._one_publishes():
            return ""
        names = ", ".join(f"{namespace.rstrip('/')}/{name}" for name, namespace in publishers)
        twice = len(known) < len(publishers)
        killed = " (a node that was killed and started again counts twice for some 20 s; wait)" if twice else ""
        return f"several nodes publish {self._publishers.topic}: {names}; stop all but the robot's{killed}"

    def _one_publishes(self) -> bool:
        """Whether joint states come from one publisher, though the graph still holds another that was killed."""
        return self._states.numbered_since < time.monotonic() - _NUMBERED_S

    def _receive_description(self, message: String) -> None:
        try:
            self._take_description(message.data)
        except InertidError as error:
            self._no_model = f"robot_description: {error}"
            self._node.get_logger().error(self._no_model)

    def _take_description(self, text: str) -> None:
        model = load_model(text, model_options(self._robot_options), shapes=False)  # a robot may move meanwhile
        if self._model is not None and model.hash != self._model.hash:
            self._on_other_robot()
        if self._window is None or self._window.joint_names != model.joint_names:
            self._window = JointStateWindow(JointOrder(model.joint_names, model.effort_scale, model.recorded_joints))
        self._model = model
        self._described(model)

    def _not_configured(self) -> ExcitationError:
        name = self._node.get_name()
        return ExcitationError(f"no robot description has been received; configure the {name} node first")

    def _described(self, model: RobotModel) -> None:
        """A description has been read; for those that need more of it."""

    def _take_state(self, message: JointState, received: float, clock: float) -> None:
        self._has_driver = True
        if self._window is None:
            return
        try:
            sample = self._window.take(message, received)
        except RecordingError as error:
            self._rejected, self._rejection = self._rejected + 1, str(error)
            self._node.get_logger().warning(str(error), throttle_duration_sec=1.0)
            return
        if sample is not None:
            self._rejection = ""
            self._stream.add(received, clock - to_nanoseconds(message.header.stamp) / NANOSECONDS)
            self._stream.add_values(received, sample.effort)
            self._on_state(sample, clock, received)
