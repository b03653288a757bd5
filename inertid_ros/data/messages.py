"""Types of the messages that make a recording, and messages of wrenches and base motion as arrays.

The functions take any object with the fields of the message: of rclpy's classes, or of those of a bag reader.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from inertid_ros.config.recording_topics import BaseTopics
from inertid_ros.core.arrays import Array

JOINT_STATE = "sensor_msgs/msg/JointState"
WRENCH_STAMPED = "geometry_msgs/msg/WrenchStamped"
ODOMETRY = "nav_msgs/msg/Odometry"
POSE_STAMPED = "geometry_msgs/msg/PoseStamped"
TWIST_STAMPED = "geometry_msgs/msg/TwistStamped"
IMU = "sensor_msgs/msg/Imu"
WIDTHS = {"base_pose": 7, "base_twist": 6, "imu": 6}


def stamp_ns(message: Any) -> int:
    """Header stamp of a message [ns]."""
    return int(message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec)


def wrench_values(message: Any) -> Array:
    """Force [N] and torque [N m] ``(6,)`` of a ``geometry_msgs/WrenchStamped``."""
    return _six(message.wrench.force, message.wrench.torque)


def base_topics(topics: BaseTopics) -> dict[str, str]:
    """Topic to type of what measures the motion of a free base."""
    given = {topics.odometry: ODOMETRY, topics.pose: POSE_STAMPED, topics.twist: TWIST_STAMPED, topics.imu: IMU}
    return {topic: message_type for topic, message_type in given.items() if topic}


def base_values(message_type: str, message: Any) -> Mapping[str, Array]:
    """Channel to values of one message that measures the motion of a free base."""
    return {channel: read(message) for channel, read in _READ[message_type].items()}


def channels_of(message_type: str) -> tuple[str, ...]:
    """Channels of the base that messages of a type fill."""
    return tuple(_READ[message_type])


def tare_topic(topic: str) -> str:
    """Topic of a bag that holds what was subtracted from a wrench topic while it was recorded."""
    return f"{topic}/tare"


def _pose(pose: Any) -> Array:
    quaternion = pose.orientation
    return np.array([*_xyz(pose.position), quaternion.x, quaternion.y, quaternion.z, quaternion.w])


def _six(first: Any, second: Any) -> Array:
    return np.array([*_xyz(first), *_xyz(second)])


def _xyz(vector: Any) -> tuple[float, float, float]:
    return vector.x, vector.y, vector.z


_READ: dict[str, dict[str, Callable[[Any], Array]]] = {
    # Pose of the child frame, and its twist in its own axes, as defined by the message.
    ODOMETRY: {
        "base_pose": lambda message: _pose(message.pose.pose),
        "base_twist": lambda message: _six(message.twist.twist.linear, message.twist.twist.angular),
    },
    POSE_STAMPED: {"base_pose": lambda message: _pose(message.pose)},
    # Twist of a body in its own axes: the header's frame must be that of the base.
    TWIST_STAMPED: {"base_twist": lambda message: _six(message.twist.linear, message.twist.angular)},
    # Specific force, at rest upwards, and angular velocity; the orientation is not used.
    IMU: {"imu": lambda message: _six(message.linear_acceleration, message.angular_velocity)},
}
