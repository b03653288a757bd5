"""ArmInterface: joint states of the arm, the reference that is sent, and the efforts that go to it."""

from collections.abc import Callable

import numpy as np
from rclpy.node import Node
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.adaptation.execution.controlled_arm import ArmState
from inertid_ros.adaptation.execution.reference_trajectory import MOST_POINTS, SentTrajectory
from inertid_ros.config.execution import StateMonitorOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.nodes.hardware.command_topic import CommandTopic
from inertid_ros.nodes.hardware.controller_manager import ControllerManager
from inertid_ros.nodes.hardware.robot_states import RobotStates
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.recorded_joints import RecordedJoints
from inertid_ros.ros.conversions import NANOSECONDS, from_joint_trajectory, to_nanoseconds
from inertid_ros.ros.joint_order import JointSample

from .parameters import AdaptationNodeOptions


class EffortTopic(CommandTopic):
    """``std_msgs/Float64MultiArray``, one effort for every joint in the model's order [N m or N]."""

    def send(self, effort: Array) -> None:
        """Command efforts ``(n,)``."""
        self._publisher.publish(Float64MultiArray(data=effort.tolist()))


class ArmInterface(RobotStates):
    """Robot description, joint states and effort commands of one arm.

    Parameters
    ----------
    node : Node
    options : AdaptationNodeOptions
    on_state, on_other_robot : callable
        See :class:`RobotStates`.
    """

    def __init__(
        self,
        node: Node,
        options: AdaptationNodeOptions,
        on_state: Callable[[JointSample, float, float], None],
        on_other_robot: Callable[[], None],
    ) -> None:
        super().__init__(node, options.urdf, options.robot, on_state, on_other_robot)
        topic = f"{options.controller}/commands" if options.controller else "effort_commands"
        self.commands = EffortTopic(node, Float64MultiArray, topic, RecordedJoints())
        self._manager = ControllerManager(node, options.controller)

    def begin(self, options: StateMonitorOptions) -> ArmState:
        """Return the state of an arm that may be taken over.

        Raises
        ------
        ExcitationError
            Joint states are missing, wrong or of a moving arm, or commands would not arrive.
        """
        self.check_states(options)
        problem = self.interference()
        if problem:
            raise ExcitationError(problem)
        sample = self.window.mean()
        if not np.isfinite(sample.velocity).all():
            raise ExcitationError("joint states hold no velocities, which torque control needs; check the driver")
        return ArmState(self.steady(), sample.position, sample.velocity, sample.effort)

    def interference(self) -> str:
        """Why commands do not arrive or are not ours alone, or states come from several; empty when all is well."""
        return self.commands.problem() or self.several_publishers()

    def controller_problem(self) -> str:
        """Why the controller would not pass efforts on; empty where it does, or nobody knows."""
        return self._manager.problem()

    def poll(self) -> None:
        """Take what has come since the last call; to be called at every tick."""
        self._manager.poll(self.steady())
        super().poll()

    def reference(self, message: JointTrajectory) -> SentTrajectory:
        """Return a trajectory in the order of the joints, on the steady clock.

        Raises
        ------
        InertidError
            See :func:`.from_joint_trajectory`, or it has too many points.
        """
        if len(message.points) > MOST_POINTS:
            raise ExcitationError(
                f"reference: has {len(message.points)} points, at most {MOST_POINTS} are followed; send it in parts"
            )
        names = self.model.recorded_joints.recorded(self.model.joint_names)
        points = from_joint_trajectory(message, names)
        stamp = to_nanoseconds(message.header.stamp) / NANOSECONDS
        start = stamp - self.clock_ahead() if stamp else self.steady()
        return SentTrajectory(start, points.time, points.position, points.velocity, points.acceleration)

    def _described(self, model: RobotModel) -> None:
        self._manager.joints = model.recorded_joints.recorded(model.joint_names)
