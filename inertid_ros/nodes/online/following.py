"""From messages to the robot that is followed: its result, the rate of its joint states, and why they are not used."""

from statistics import median

import numpy as np
from sensor_msgs.msg import JointState as JointStateMessage

from inertid_ros.adaptation.online.followed_robot import Followed, FollowedRobot
from inertid_ros.adaptation.online.stream_checks import JointState
from inertid_ros.app.followed_result import followed_robot
from inertid_ros.core.errors import InertidError, RecordingError
from inertid_ros.report.results import StoredResult, read_result
from inertid_ros.ros.joint_order import HeldJoints, JointOrder

from .parameters import OnlineNodeOptions

_STEPS = 60  # from which the rate follows
_SLOWEST_HZ, _FASTEST_HZ = 10.0, 1e4


class Following:
    """Takes messages of joint states.

    Parameters
    ----------
    directory : str
        Result directory of the robot.
    options : OnlineNodeOptions
        Of the node.

    Attributes
    ----------
    result : StoredResult
        The calibration.
    robot : FollowedRobot or None
        None until the rate of the joint states is known.
    problem : str
        Why the last message was not used; empty where it was.
    foreign : bool
        Whether the last message had none of the robot's joints.
    rejected : int
        Messages that were not used.
    last_fault : str
        Why the last one of them was not.

    Raises
    ------
    InertidError
        The result cannot be used.
    """

    def __init__(self, directory: str, options: OnlineNodeOptions) -> None:
        self.result: StoredResult = read_result(directory)
        self._options, self._following = options, options.following()
        model = self.result.model
        self._order = JointOrder(model.joint_names, recorded=model.recorded_joints)
        self._held = HeldJoints(tuple(model.options.locked_joints), model.recorded_joints)
        self.robot: FollowedRobot | None = None
        self.problem, self.last_fault, self.rejected, self.foreign = "", "", 0, False
        self._stamps: list[int] = []
        self._impossible = False
        if options.rate_hz:
            self._begin(options.rate_hz)

    @property
    def others(self) -> str:
        """A line on the joints of messages that had none of the robot's; empty where there were none."""
        return self._order.others

    def take(self, message: JointStateMessage) -> tuple[JointState, Followed] | None:
        """Take a message; what it brought, once the robot is followed and where it holds its joints."""
        self.foreign = False
        try:
            held = self._held.update(message)
            sample = self._order.sample(message)
        except RecordingError as error:
            self._reject(str(error))
            return None
        self.foreign = sample is None
        if sample is None:
            return None
        if self.robot is None:
            self._measure_rate(sample.stamp_ns)
            return None
        state = JointState(sample.stamp_ns, sample.position, sample.velocity, sample.effort, held)
        followed = self.robot.take(state)
        self.problem = ""
        if followed.state.message:
            self.last_fault = followed.state.message
        if not followed.state.usable:
            self._reject(followed.state.message)
        return state, followed

    def _reject(self, reason: str) -> None:
        self.rejected += 1
        if reason:
            self.problem = self.last_fault = reason

    def _measure_rate(self, stamp_ns: int) -> None:
        if self._impossible:
            return
        self._stamps.append(stamp_ns)
        if len(self._stamps) <= _STEPS:
            return
        rate = 1e9 / max(median(np.diff(self._stamps).tolist()), 1.0)
        self._stamps.clear()
        if not _SLOWEST_HZ <= rate <= _FASTEST_HZ:
            self._reject(f"joint_states are stamped at {rate:.3g} Hz; correct the driver's stamps")
            return
        try:
            self._begin(rate)
        except InertidError as error:
            self._impossible = True
            self._reject(str(error))

    def _begin(self, rate_hz: float) -> None:
        self.robot = followed_robot(self.result, rate_hz, self._options.recordings, self._following)
        self.problem = ""
