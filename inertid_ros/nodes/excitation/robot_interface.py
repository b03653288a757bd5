"""RobotInterface: messages from the robot to the excitation node, and the checks before a motion."""

import time
from collections.abc import Callable

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.node import Node
from std_msgs.msg import Float64

from inertid_ros.config.nodes import ExcitationNodeOptions, SpeedScalingOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError, InertidError
from inertid_ros.msg import RecorderStatus
from inertid_ros.nodes.robot_states import RobotStates
from inertid_ros.robot.model import commanded_options
from inertid_ros.ros.controller import optional_type, state_topic
from inertid_ros.ros.conversions import NANOSECONDS, JointSample, to_nanoseconds
from inertid_ros.ros.topics import LATCHED, NEWEST, STATE, PolledSubscription

from .commander import COMMANDERS, Commander

_CONTROLLER_STATE_PERIOD_S = 0.02  # between two reads of the controller's state, which is published every cycle
_ODOMETRY_TIMEOUT_S = 0.5  # an older twist is unknown; a base of tons changes it slowly
_RECORDER_TIMEOUT_S = 3.0  # an older status of the recorder is ignored


class ControllerState:
    """The controller's reference, and the newest speed scaling of each source (controller, driver).

    The controller's state is read only if ``topic`` is not empty and control_msgs is installed. Whenever a source
    reports a factor, ``on_scaling`` is called with the smallest factor of all sources, 1 at full speed.
    ``on_reference`` is called with the stamp [s], joint names and position [rad or m] of each reference that is read.
    """

    def __init__(
            self, node: Node, options: SpeedScalingOptions, topic: str, on_scaling: Callable[[float], None],
            on_reference: Callable[[float, tuple[str, ...], Array], None]) -> None:
        self._factors: dict[str, float] = {}
        self._on_scaling, self._on_reference = on_scaling, on_reference
        self._polled_at = -float("inf")
        self._state: PolledSubscription | None = None
        if options.topic:
            node.create_subscription(
                Float64, options.topic, lambda message: self._take("driver", message.data / options.full), STATE)
        state_type = optional_type("control_msgs.msg", "JointTrajectoryControllerState")
        if topic and state_type is not None:
            self._state = PolledSubscription(node, state_type, topic, NEWEST)

    def poll(self, now: float, at_once: bool = False) -> None:
        """Read the controller's newest state every 20 ms; to be called at every tick with the steady clock [s].

        With ``at_once``, the state is read at every call. Use ``at_once`` before a horizon is sent: a robot that the
        controller has slowed down would jump to the horizon.
        """
        if self._state is None or now - self._polled_at < _CONTROLLER_STATE_PERIOD_S and not at_once:
            return
        self._polled_at = now
        for state, _received in self._state.take():
            self._take("controller", getattr(state, "speed_scaling_factor", 1.0))
            reference = getattr(state, "reference", None)  # missing in older messages
            if reference is not None and len(reference.positions) == len(state.joint_names):
                stamp = to_nanoseconds(state.header.stamp) / NANOSECONDS
                self._on_reference(stamp, tuple(state.joint_names), np.asarray(reference.positions))

    @property
    def factor(self) -> float:
        """Smallest factor of all sources; 1 without a source."""
        return min(self._factors.values(), default=1.0)

    @property
    def is_heard(self) -> bool:
        """True if the controller publishes its state."""
        return "controller" in self._factors

    def _take(self, source: str, factor: float) -> None:
        self._factors[source] = factor
        self._on_scaling(self.factor)


class RobotInterface(RobotStates):
    """Robot description, joint states, recorder and command interface of one robot; see :class:`RobotStates`.

    ``on_speed_scaling`` is called with the speed scaling, 1 at full speed, whenever a source publishes a factor;
    ``on_reference`` with the stamp [s] and position ``(n,)`` of the controller's reference, whenever one is read.
    """

    def __init__(
            self, node: Node, options: ExcitationNodeOptions, on_state: Callable[[JointSample, float, float], None],
            on_other_robot: Callable[[], None], on_speed_scaling: Callable[[float], None],
            on_reference: Callable[[float, Array], None]) -> None:
        super().__init__(node, options, commanded_options(options.robot), on_state, on_other_robot)
        self._options = options
        self._commander: Commander | None = None
        self._recorder: tuple[float, RecorderStatus] | None = None  # the last status and its receipt
        self._on_reference = on_reference
        self._controller_state = ControllerState(
            node, options.speed_scaling, state_topic(node, options.controller), on_speed_scaling, self._take_reference)
        node.create_subscription(RecorderStatus, "recorder/status", self._take_recorder_status, LATCHED)
        self._odometry = PolledSubscription(node, Odometry, options.odometry, STATE) if options.odometry else None
        self._twist = -float("inf"), np.full(6, np.nan)  # receipt of the last twist of a floating base, and twist

    def configure(self) -> None:
        """Read the robot and prepare the command interface; raise InertidError if either cannot be used."""
        self.read_robot()
        if self._commander is None:
            make = COMMANDERS[self._options.command_interface]
            self._commander = make(self._node, self.model.recorded_joints, self._options.controller)

    @property
    def commander(self) -> Commander:
        """The command interface; raises ExcitationError before :meth:`configure`."""
        if self._commander is None:
            raise ExcitationError("no command interface; configure the excitation node first")
        return self._commander

    @property
    def is_configured(self) -> bool:
        """True if the command interface exists."""
        return self._commander is not None

    @property
    def has_controller(self) -> bool:
        """True if a controller that accepts commands has been discovered."""
        return self._commander is not None and self._commander.has_controller

    @property
    def node_name(self) -> str:
        """Name of the excitation node, with its namespace."""
        return self._node.get_fully_qualified_name()

    def position(self) -> Array:
        """Return the position ``(n,)`` of the robot at rest [rad or m]."""
        return self.window.position()

    def base_twist(self) -> Array:
        """Return the twist ``(6,)`` of a floating base; NaN without a recent one."""
        if self._odometry is not None and (messages := self._odometry.take()):
            message, received = messages[-1]
            parts = message.twist.twist.linear, message.twist.twist.angular
            self._twist = received, np.array([[part.x, part.y, part.z] for part in parts]).ravel()
        received, twist = self._twist
        return twist if time.monotonic() - received <= _ODOMETRY_TIMEOUT_S else np.full(6, np.nan)

    @property
    def recorder_writes(self) -> bool:
        """True if a recent status of the recorder confirms that samples are written."""
        if self._recorder is None:
            return False
        received, status = self._recorder
        return status.recording and time.monotonic() - received <= _RECORDER_TIMEOUT_S

    def check_recorder(self) -> None:
        """Raise ExcitationError unless a recent status of the recorder confirms that samples are written."""
        if not self.recorder_writes:
            status = self._recorder[1] if self._recorder is not None else None
            why = status.message if status is not None else "it has not sent a status"
            raise ExcitationError(f"the recorder does not confirm that it writes ({why}); start it first")

    def poll(self, may_send: bool = False) -> None:
        """Process the received joint states and controller states; to be called at every tick.

        Set ``may_send`` if a horizon may be sent afterwards; the controller's state is then read at once.
        """
        self._controller_state.poll(time.monotonic(), may_send)
        super().poll()

    @property
    def speed_scaling(self) -> float:
        """Factor by which trajectories are slowed down; 1 if unknown."""
        return self._controller_state.factor

    @property
    def has_controller_state(self) -> bool:
        """True if the controller's state shows how far its trajectory has come."""
        return self._controller_state.is_heard

    def interference(self) -> str:
        """Return why commands do not arrive, or which other nodes interfere; else empty."""
        return self.namesake() or self.controller_problem() or self.several_publishers()

    def controller_problem(self) -> str:
        """Return why commands do not arrive, or which other node commands the robot; else empty."""
        return self.manager.problem() or self.commander.problem()

    def halt(self) -> str:
        """Return why the controller itself stopped the robot and holds it; empty if no such stop was reported."""
        return self.manager.inactivity() or self.commander.halt()

    def _take_reference(self, stamp: float, names: tuple[str, ...], position: Array) -> None:
        if self._model is None:
            return
        try:
            joints = self._model.recorded_joints.urdf_names(names, "controller_state")
        except InertidError as error:
            self._node.get_logger().warning(str(error), throttle_duration_sec=10.0)
            return
        if np.isfinite(position).all() and set(joints) >= set(self._model.joint_names):
            self._on_reference(stamp, position[[joints.index(joint) for joint in self._model.joint_names]])

    def _take_recorder_status(self, status: RecorderStatus) -> None:
        self._recorder = (time.monotonic(), status)
