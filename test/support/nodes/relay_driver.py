"""A robot's driver, between the robot and everybody else: joint states one way, trajectories the other, unchanged.

A process of its own, so that it can die; the robot (remapped by :data:`ROBOT_SIDE`) then follows what it has.
"""

import contextlib
from typing import Any

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.ros.topics import COMMAND

ROBOT_SIDE = {"joint_states": "robot/joint_states", "joint_trajectory": "robot/joint_trajectory"}


def relay(node: Node, type_: Any, source: str, target: str, qos: QoSProfile) -> None:
    """Publish what comes on a topic on another one, as it is."""
    publisher = node.create_publisher(type_, target, qos)
    node.create_subscription(type_, source, publisher.publish, qos, raw=True)


def main() -> None:
    rclpy.init()
    node, executor = rclpy.create_node("driver"), SingleThreadedExecutor()
    relay(node, JointState, ROBOT_SIDE["joint_states"], "joint_states", QoSProfile(depth=10))
    relay(node, JointTrajectory, "joint_trajectory", ROBOT_SIDE["joint_trajectory"], COMMAND)
    executor.add_node(node)
    with contextlib.suppress(ExternalShutdownException, KeyboardInterrupt):
        executor.spin()


if __name__ == "__main__":
    main()
