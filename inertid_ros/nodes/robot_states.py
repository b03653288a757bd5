"""Description and joint states of a robot that a node moves; checks of the joint states before a motion."""

import time
from collections import deque
from collections.abc import Callable

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from inertid_ros.config.excitation import StateMonitorOptions
from inertid_ros.config.nodes import AdaptationNodeOptions, ExcitationNodeOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError, InertidError, RecordingError
from inertid_ros.data.screening.live_watch import StreamReport, StreamWatch, ahead_of_steady
from inertid_ros.excitation.execution.plan_check import check_at_rest
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.ros import diagnostics
from inertid_ros.ros.controller import ControllerManager
from inertid_ros.ros.conversions import NANOSECONDS, JointOrder, JointSample, to_nanoseconds
from inertid_ros.ros.diagnostics import ERROR, STALE, WARN, Liveliness, Status, judged
from inertid_ros.ros.topics import LATCHED, STATE, UNNAMED, PolledSubscription, Publishers

# Limits of the speed of simulated time
MIN_REAL_TIME_FACTOR = 0.1  # if slower, a motion of half a minute takes longer than the timeouts of its client
MAX_REAL_TIME_FACTOR = 2.0  # if faster, ticks of 5 ms are too coarse for a brake that begins 20 ms after its request
_MAX_FACTOR_SPAN_S, _MIN_FACTOR_SPAN_S = 2.0, 0.5  # real time over which the factor is measured
_MAX_BACK_S = 0.1  # a larger step back means that the clock was set back, or that the simulator restarted
_MAX_STAMP_AHEAD_S = 0.02  # stamps of states may be this far ahead of /clock, which is published less often
_STATE_WINDOW_S = 0.25  # window of joint states in which the robot must be at rest
_MIN_NUMBERED_S = 2.0  # joint states whose sequence numbers increase for this time have a single publisher
_MAX_STEP_TICKS = 10.0  # in periods; a longer time between two ticks means that the process was delayed


class SimulatedTime:
    """Time of a simulator, used for sending and monitoring a motion instead of the steady clock.

    ``now`` [s] is the latest time of ``/clock`` or the stamps of joint states; only :meth:`restart` sets it back.
    """

    def __init__(self) -> None:
        self.now = self._real = self._back = 0.0  # _back: added to /clock after it went back
        self._looks: deque[tuple[float, float]] = deque()  # real and simulated time

    def update(self, clock: float, real: float, stamp: float = 0.0) -> None:
        """Process the times of ``/clock`` and the steady clock (``real``), and the ``stamp`` of a joint state [s]."""
        if clock + self._back < self.now - _MAX_BACK_S:  # /clock went back: continue from the elapsed real time
            self._back = self.now + (real - self._real) - clock
        simulated, self._real = clock + self._back, real
        self.now = max(self.now, simulated, min(stamp, simulated + _MAX_STAMP_AHEAD_S))
        if not self._looks or real > self._looks[-1][0] + 0.05:
            self._looks.append((real, clock))
            while self._looks[0][0] < real - _MAX_FACTOR_SPAN_S:
                self._looks.popleft()

    def restart(self) -> bool:
        """Adopt the time of a ``/clock`` that went back; return True if it did. Call this while the robot rests."""
        had_gone_back, self.now, self._back = self._back > 0, self.now - self._back, 0.0
        return had_gone_back

    @property
    def factor(self) -> float:
        """Simulated seconds per real second; NaN until it has been measured over half a second."""
        if not self._looks or self._looks[-1][0] - self._looks[0][0] < _MIN_FACTOR_SPAN_S:
            return float("nan")
        (begin, first), (end, last) = self._looks[0], self._looks[-1]
        return (last - first) / (end - begin)

    def check(self) -> None:
        """Raise ExcitationError if the simulator's speed is unknown, or too low or too high to monitor a motion."""
        if not MIN_REAL_TIME_FACTOR <= self.factor <= MAX_REAL_TIME_FACTOR:
            raise ExcitationError(
                f"simulated time runs at {self.factor:.2f} of real time, {MIN_REAL_TIME_FACTOR:g} to"
                f" {MAX_REAL_TIME_FACTOR:g} is needed; check that /clock is published, or change the simulator's speed")


class JointStateWindow:
    """Joint states that were received within the last quarter of a second of the steady clock."""

    def __init__(self, order: JointOrder) -> None:
        self._order, self.joint_names = order, order.joint_names
        self._recent: deque[tuple[float, JointSample]] = deque()

    def take(self, message: JointState, now: float) -> JointSample | None:
        """Store and return the sample of the model's joints; None if the message lacks all, see :class:`JointOrder`."""
        sample = self._order.sample(message)
        if sample is not None:
            self._recent.append((now, sample))
            self._forget(now)
        return sample

    def clear(self) -> None:
        self._recent.clear()

    def filled(self, now: float) -> bool:
        """Return True if the recent states suffice to check that the robot is at rest."""
        self._forget(now)
        return bool(self._recent) and self._recent[-1][0] - self._recent[0][0] > 0.6 * _STATE_WINDOW_S

    @property
    def period(self) -> float:
        """Mean time between the recent states [s]; NaN for fewer than two."""
        if len(self._recent) < 2:
            return float("nan")
        return (self._recent[-1][0] - self._recent[0][0]) / (len(self._recent) - 1)

    def position(self) -> Array:
        """Return the mean of the recent positions ``(n,)``, which reduces noise if the robot is at rest."""
        return np.mean([sample.position for _, sample in self._recent], axis=0)

    def mean(self) -> JointSample:
        """Return the mean of the recent states, with the newest stamp."""
        channels = [(sample.position, sample.velocity, sample.effort) for _, sample in self._recent]
        return JointSample(self._recent[-1][1].stamp_ns, *np.mean(channels, axis=0))

    def check(self, now: float, clock: float, options: StateMonitorOptions) -> None:
        """Raise ExcitationError if the joint states are old, rare or invalid, or if the robot moves.

        ``now`` is the time on the steady clock, ``clock`` the time on the clock of the stamps [s].
        """
        self._forget(now)
        options = options.timed(self.period)
        if not self._recent or now - self._recent[-1][0] > 2 * options.state_timeout_s:
            others = self._order.others
            raise ExcitationError(others or "no fresh joint states; start the robot's driver, or remap joint_states")
        newest = self._recent[-1][1]
        values = np.array([sample.position for _, sample in self._recent])
        if not (np.isfinite(values).all() and np.isfinite(newest.effort).all()):
            raise ExcitationError("joint states hold values that are not finite, or lack efforts; check the driver")
        age = clock - newest.stamp_ns * 1e-9
        if not -options.max_future_s <= age <= options.max_age_s + options.state_timeout_s:
            raise ExcitationError(f"joint-state stamps are off by {abs(age):.3f} s; check the clocks and use_sim_time")
        span = self._recent[-1][0] - self._recent[0][0]
        if span < 0.5 * _STATE_WINDOW_S or len(self._recent) < options.min_rate_hz * span:
            raise ExcitationError(
                f"only {len(self._recent)} joint states in the last {span:.2f} s; at least {options.min_rate_hz:g} Hz"
                f" over {0.5 * _STATE_WINDOW_S:g} s are needed; check the driver and the network")
        half = len(values) // 2
        drift = (values[half:].mean(axis=0) - values[:half].mean(axis=0)) / (0.5 * span)
        check_at_rest(self.joint_names, drift)

    def _forget(self, now: float) -> None:
        while self._recent and self._recent[0][0] < now - _STATE_WINDOW_S:
            self._recent.popleft()


class RobotStates:
    """Robot description and joint states of one robot.

    Parameters
    ----------
    options : if their ``urdf`` is empty, the description comes from the topic ``robot_description``.
    on_state : called with every valid joint state, and the time of its receipt in ROS time and on the steady clock [s].
    on_other_robot : called if the description changes to other kinematics.

    Attributes
    ----------
    has_driver : True once a joint state was received, even if it has other joints.
    rejected : number of invalid joint states, and the error of the last joint state, empty if it was valid.
    """

    def __init__(
            self, node: Node, options: ExcitationNodeOptions | AdaptationNodeOptions, robot: RobotOptions,
            on_state: Callable[[JointSample, float, float], None], on_other_robot: Callable[[], None]) -> None:
        self._node, self._urdf, self._robot_options = node, options.urdf, robot
        self._on_state, self._on_other_robot = on_state, on_other_robot
        self._model: RobotModel | None = None
        self._no_model = "no robot description has been received; publish robot_description or set urdf"
        self._window: JointStateWindow | None = None
        self.has_driver, self.rejected = False, (0, "")
        self._stream = StreamWatch()
        self._publishers = Publishers(node, node.resolve_topic_name("joint_states"))
        self._namesakes = Liveliness(node, node.get_name())
        self._states = PolledSubscription(node, JointState, "joint_states", STATE)
        self._simulated = SimulatedTime() if node.get_clock().ros_time_is_active else None
        self.manager = ControllerManager(node, options.controller)
        if not self._urdf:
            node.create_subscription(String, "robot_description", self.receive_description, LATCHED)

    def read_robot(self) -> None:
        """Read the URDF file if the parameter ``urdf`` names one; raise InertidError without a usable description."""
        if self._urdf:
            self._take_description(self._urdf)
        if self._model is None:
            raise ExcitationError(self._no_model)

    @property
    def model(self) -> RobotModel:
        """Model of the last valid description; raises ExcitationError if there is no description."""
        if self._model is None:
            raise self._not_configured()
        return self._model

    @property
    def name(self) -> str:
        """Name of the robot; empty if no description was received."""
        return self._model.name if self._model is not None else ""

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Joints of the model; empty if no description was received."""
        return self._model.joint_names if self._model is not None else ()

    @property
    def has_states(self) -> bool:
        """True if the recent joint states span enough time for :meth:`check_states`."""
        return self._window is not None and self._window.filled(self.steady())

    @property
    def window(self) -> JointStateWindow:
        """The recent joint states; raises ExcitationError if there is no description."""
        if self._window is None:
            raise self._not_configured()
        return self._window

    def steady(self) -> float:
        """Return the time of the steady clock, or with ``use_sim_time`` the simulated time [s]."""
        return time.monotonic() if self._simulated is None else self._simulated.now

    def clock(self) -> float:
        """Return ROS time [s], the clock of the stamps."""
        return float(self._node.get_clock().now().nanoseconds * 1e-9)

    def clock_ahead(self) -> float:
        """Return ROS time minus :meth:`steady` [s]."""
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
        """Process the joint states and answers received since the last call; to be called at every tick."""
        self.manager.poll(time.monotonic())
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
        """Rate, gaps and delay of the joint states; ``saturated`` contains indices of joints with saturated effort."""
        return self._stream.report(self.steady())

    def namesake(self) -> str:
        """Return a message if another living node has this node's name, and so receives the same goals; else empty."""
        if self._namesakes.living <= 1:
            return ""
        return f"{self._namesakes.living} nodes are named {self._node.get_fully_qualified_name()}; stop the others"

    def several_publishers(self) -> str:
        """Return a message that names the nodes if several nodes publish joint states; else empty."""
        publishers = self._publishers.look()
        named = {publisher for publisher in publishers if publisher[0] != UNNAMED}
        # The ROS graph may still list a killed publisher; increasing sequence numbers then prove a single publisher.
        one_publishes = self._states.numbered_since < time.monotonic() - _MIN_NUMBERED_S
        if len(publishers) <= 1 or len(named) <= 1 and one_publishes:
            return ""
        names = ", ".join(f"{namespace.rstrip('/')}/{name}" for name, namespace in publishers)
        twice = len(named) < len(publishers)
        killed = " (a killed and restarted node counts twice for about 20 s; wait)" if twice else ""
        return f"several nodes publish {self._publishers.topic}: {names}; stop all but the robot's{killed}"

    def receive_description(self, message: String) -> None:
        try:
            self._take_description(message.data)
        except InertidError as error:
            self._no_model = f"robot_description: {error}"
            self._node.get_logger().error(self._no_model)

    def _take_description(self, source: str) -> None:
        model = load_model(source, self._robot_options, shapes=False)  # fast without shapes: the robot may be moving
        if self._model is not None and model.hash != self._model.hash:
            self._on_other_robot()
        if self._window is None or self._window.joint_names != model.joint_names:
            self._window = JointStateWindow(JointOrder(model.joint_names, model.effort_scale, model.recorded_joints))
        self._model, self.manager.joints = model, model.recorded_joints.recorded(model.joint_names)

    def _not_configured(self) -> ExcitationError:
        name = self._node.get_name()
        return ExcitationError(f"no robot description has been received; configure the {name} node first")

    def _take_state(self, message: JointState, received: float, clock: float) -> None:
        self.has_driver = True
        if self._window is None:
            return
        try:
            sample = self._window.take(message, received)
        except RecordingError as error:
            self.rejected = (self.rejected[0] + 1, str(error))
            self._node.get_logger().warning(str(error), throttle_duration_sec=1.0)
            return
        if sample is not None:
            self.rejected = (self.rejected[0], "")
            self._stream.add(received, clock - to_nanoseconds(message.header.stamp) / NANOSECONDS)
            self._stream.add_values(received, sample.effort)
            self._on_state(sample, clock, received)


def joint_states_status(robot: RobotStates, options: StateMonitorOptions) -> Status:
    """Status of the robot's joint states."""
    report, (rejected, rejection) = robot.joint_states, robot.rejected
    values = {
        **diagnostics.stream_values(report, robot.joint_names),
        "Rejected messages": rejected,
        "Minimum acceptable frequency (Hz)": options.min_rate_hz}
    saturated, is_slow = values["Saturated"], report.rate_hz < options.min_rate_hz
    slow = f"{report.rate_hz:.0f} Hz are below monitor.min_rate_hz {options.min_rate_hz:g}"
    return judged(
        "joint states", values,
        (ERROR, rejection),
        (STALE, "no joint states of the robot; start its driver, or remap joint_states" if report.silent else ""),
        (ERROR, robot.several_publishers()),
        (ERROR, slow if is_slow else ""),
        (ERROR, diagnostics.wrong_clock(report, options.max_age_s, options.max_future_s)),
        (WARN, diagnostics.gaps_between("joint states", report)),
        (WARN, f"effort of {saturated} stays at its largest value; check for a collision" if saturated else ""),
        otherwise=f"{report.rate_hz:.0f} Hz")


def timing_status(ticks: StreamReport, period: float) -> Status:
    """Status of the node's ticks; ``period`` is the nominal time between two ticks [s]."""
    late = f"the process was delayed by {ticks.longest_step_s:.3f} s; reduce the load of this machine"
    is_late = ticks.longest_step_s > _MAX_STEP_TICKS * period
    values = {
        "Actual frequency (Hz)": ticks.rate_hz,
        "Expected frequency (Hz)": 1.0 / period,
        "Longest step (s)": ticks.longest_step_s}
    return judged("timing", values, (WARN, late if is_late else ""), otherwise=f"{ticks.rate_hz:.0f} Hz")
