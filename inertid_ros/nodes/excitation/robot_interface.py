"""RobotInterface: what the excitation node receives from the robot, and whether it may begin to move it."""

import time
from collections.abc import Callable

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from inertid_ros.config.execution import MonitorOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError, InertidError, RecordingError
from inertid_ros.data.live.stream_watch import StreamReport, StreamWatch
from inertid_ros.msg import RecorderStatus
from inertid_ros.robot.configured_model import model_options
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.urdf.parsing import read_description
from inertid_ros.ros.conversions import NANOSECONDS, to_nanoseconds
from inertid_ros.ros.joint_order import JointOrder, JointSample
from inertid_ros.ros.polling import PolledSubscription
from inertid_ros.ros.qos import LATCHED, STATE

from .commander import COMMANDERS, Commander
from .controller_manager import ControllerManager
from .joint_state_window import JointStateWindow
from .parameters import ExcitationNodeOptions
from .publishers import Publishers
from .speed_scaling import SpeedScaling

_RECORDER_TIMEOUT_S = 3.0


class RobotInterface:
    """Robot description, joint states, recorder and command interface of one robot.

    Parameters
    ----------
    node : Node
    options : ExcitationNodeOptions
    on_state : callable
        Called with every joint state that could be read, and its receipt on ROS time and on the steady clock [s].
    on_other_robot : callable
        Called where the description changes to other kinematics.
    on_speed_scaling : callable
        Called with the speed scaling, 1 at full speed, whenever a source tells it.
    """

    def __init__(
        self,
        node: Node,
        options: ExcitationNodeOptions,
        on_state: Callable[[JointSample, float, float], None],
        on_other_robot: Callable[[], None],
        on_speed_scaling: Callable[[float], None],
    ) -> None:
        self._node, self._options = node, options
        self._on_state, self._on_other_robot = on_state, on_other_robot
        self._model: RobotModel | None = None
        self._no_model = "no robot description has been received; publish robot_description or set urdf"
        self._window: JointStateWindow | None = None
        self._commander: Commander | None = None
        self._has_driver = False
        self._stream = StreamWatch()
        self._rejected, self._rejection = 0, ""  # joint states that could not be read, and why the last one was not
        self._recorder: tuple[float, RecorderStatus] | None = None  # the last status and its receipt
        self._scaling = SpeedScaling(node, options.speed_scaling, options.controller, on_speed_scaling)
        self._manager = ControllerManager(node, options.controller)
        self._publishers = Publishers(node, node.resolve_topic_name("joint_states"))
        self._states = PolledSubscription(node, JointState, "joint_states", STATE)
        node.create_subscription(RecorderStatus, "recorder/status", self._take_recorder_status, LATCHED)
        if not options.urdf:
            node.create_subscription(String, "robot_description", self._receive_description, LATCHED)

    def configure(self) -> None:
        """Read the robot and prepare the command interface.

        Raises
        ------
        InertidError
            No usable robot description, or the command interface is not available.
        """
        if self._options.urdf:
            self._take_description(read_description(self._options.urdf))
        if self._model is None:
            raise ExcitationError(self._no_model)
        if self._commander is None:
            make = COMMANDERS[self._options.command_interface]
            self._commander = make(self._node, self._model.recorded_joints, self._options.controller)

    @property
    def model(self) -> RobotModel:
        """The robot as described last."""
        if self._model is None:
            raise ExcitationError("no robot description has been received; configure the excitation node first")
        return self._model

    @property
    def commander(self) -> Commander:
        """The command interface."""
        if self._commander is None:
            raise ExcitationError("no command interface; configure the excitation node first")
        return self._commander

    @property
    def name(self) -> str:
        """Name of the robot; empty where no description was received."""
        return self._model.name if self._model is not None else ""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The ``n`` joints of the model; none where no description was received."""
        return self._model.joint_names if self._model is not None else ()

    @property
    def is_configured(self) -> bool:
        """Whether there is a command interface."""
        return self._commander is not None

    @property
    def has_states(self) -> bool:
        """Whether joint states have been received for long enough to check them."""
        return self._window is not None and self._window.filled(time.monotonic())

    @property
    def recorder_is_fresh(self) -> bool:
        """Whether a status of the recorder was received lately."""
        return self._recorder is not None and time.monotonic() - self._recorder[0] <= _RECORDER_TIMEOUT_S

    @property
    def has_driver(self) -> bool:
        """Whether a joint state has ever been received, of whatever joints."""
        return self._has_driver

    @property
    def has_controller(self) -> bool:
        """Whether a controller that takes commands has been discovered."""
        return self._commander is not None and self._commander.has_controller

    def position(self) -> Array:
        """Return the position ``(n,)`` of the robot at rest."""
        return self._known_window().position()

    @property
    def state_period(self) -> float:
        """Mean time between the recent joint states [s]."""
        return self._known_window().period

    def steady(self) -> float:
        """Return the time of the steady clock [s]."""
        return time.monotonic()

    def clock(self) -> float:
        """Return ROS time [s], the clock of the stamps."""
        return float(self._node.get_clock().now().nanoseconds * 1e-9)

    def check_states(self, options: MonitorOptions) -> None:
        """Raise ExcitationError unless fresh joint states show a robot at rest."""
        self._known_window().check(time.monotonic(), self.clock(), options)

    def check_recorder(self) -> None:
        """Raise ExcitationError unless the recorder confirms that samples are being written."""
        status = self._recorder[1] if self._recorder is not None else None
        if status is None or not self.recorder_is_fresh or not status.recording:
            why = status.message if status is not None else "no status was received from it"
            raise ExcitationError(f"the recorder does not confirm that it writes ({why}); start it first")

    def poll(self) -> None:
        """Take what has come since the last call: joint states, and the controller's; to be called at every tick."""
        now = time.monotonic()
        self._scaling.poll(now)
        self._manager.poll(now)
        clock_offset = self.clock() - time.monotonic()
        for message, received in self._states.take():
            self._take_state(message, received, received + clock_offset)

    @property
    def speed_scaling(self) -> float:
        """By how much trajectories are slowed down; 1 where nothing tells that they are."""
        return self._scaling.factor

    @property
    def joint_states(self) -> StreamReport:
        """How joint states of the robot have come; saturated channels are efforts in the order of the joints."""
        return self._stream.report(time.monotonic())

    @property
    def rejected(self) -> tuple[int, str]:
        """Number of joint states that could not be read, and why the newest one could not; empty where it could."""
        return self._rejected, self._rejection

    def interference(self) -> str:
        """Why commands do not arrive or are not ours alone, or states come from several; empty when all is well."""
        return self.controller_problem() or self.several_publishers()

    def controller_problem(self) -> str:
        """Why commands do not arrive, or are not ours alone; empty when all is well."""
        return self._manager.problem() or self.commander.problem()

    @property
    def controller_tolerance(self) -> float | None:
        """Smallest distance [rad or m] from a trajectory at which the controller gives up; None where nobody said."""
        return self._manager.tolerance

    def several_publishers(self) -> str:
        """Which nodes publish joint states, where these are several; empty otherwise."""
        publishers = self._publishers.look()
        if len(publishers) <= 1:
            return ""
        names = ", ".join(f"{namespace.rstrip('/')}/{name}" for name, namespace in publishers)
        twice = len(set(publishers)) < len(publishers)
        killed = " (a node that was killed and started again counts twice for some 20 s; wait)" if twice else ""
        return f"several nodes publish {self._publishers.topic}: {names}; stop all but the robot's{killed}"

    def _known_window(self) -> JointStateWindow:
        if self._window is None:
            raise ExcitationError("no robot description has been received; configure the excitation node first")
        return self._window

    def _receive_description(self, message: String) -> None:
        try:
            self._take_description(message.data)
        except InertidError as error:
            self._no_model = f"robot_description: {error}"
            self._node.get_logger().error(self._no_model)

    def _take_description(self, text: str) -> None:
        model = load_model(text, model_options(self._options.robot))
        if self._model is not None and model.hash != self._model.hash:
            self._on_other_robot()
        if self._window is None or self._window.joint_names != model.joint_names:
            self._window = JointStateWindow(JointOrder(model.joint_names, model.effort_scale, model.recorded_joints))
        self._model = model
        self._manager.joints = model.recorded_joints.recorded(model.joint_names)

    def _take_recorder_status(self, status: RecorderStatus) -> None:
        self._recorder = (time.monotonic(), status)

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
