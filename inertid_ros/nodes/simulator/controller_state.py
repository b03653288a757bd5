"""ControllerState: what a JointTrajectoryController publishes of itself, where control_msgs is installed."""

from collections.abc import Sequence
from typing import Any

from builtin_interfaces.msg import Time
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectoryPoint

from inertid_ros.core.arrays import Array
from inertid_ros.simulation.joint_sensors import StateSample


class ControllerState:
    """Publisher of ``<controller>/controller_state``; none where control_msgs is absent or the name is empty."""

    def __init__(self, node: Node, controller: str, joint_names: Sequence[str]) -> None:
        self._joint_names, self._publisher = list(joint_names), None
        try:
            from control_msgs.msg import JointTrajectoryControllerState
        except ImportError:
            return
        self._type: Any = JointTrajectoryControllerState
        if controller:
            self._publisher = node.create_publisher(self._type, f"{controller}/controller_state", QoSProfile(depth=1))

    def publish(self, stamp: Time, reference: Sequence[Array], measured: StateSample, factor: float) -> None:
        """Publish one cycle: position, velocity and acceleration of the reference ``(n,)`` each, and the speed scaling.
        """
        if self._publisher is None:
            return
        position, velocity, acceleration = reference
        self._publisher.publish(
            self._type(
                header=Header(stamp=stamp),
                joint_names=self._joint_names,
                reference=_point(position, velocity, acceleration),
                feedback=_point(measured.position, measured.velocity),
                error=_point(position - measured.position, velocity - measured.velocity),
                speed_scaling_factor=factor,
            )
        )


def _point(*values: Array) -> JointTrajectoryPoint:
    names = ("positions", "velocities", "accelerations")
    return JointTrajectoryPoint(**dict(zip(names, (each.tolist() for each in values), strict=False)))
