"""Messages that tell how a free base moves, to the channels of a recording.

They work on whatever has the fields of the message: rclpy's classes, or those that a bag reader makes.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from inertid_ros.core.arrays import Array

ODOMETRY = "nav_msgs/msg/Odometry"
POSE_STAMPED = "geometry_msgs/msg/PoseStamped"
TWIST_STAMPED = "geometry_msgs/msg/TwistStamped"
IMU = "sensor_msgs/msg/Imu"
WIDTHS = {"base_pose": 7, "base_twist": 6, "imu": 6}


def base_values(kind: str, message: Any) -> Mapping[str, Array]:
    """Channel to values of one message of type ``kind``, one of :data:`BASE_TYPES`."""
    return _READ[kind](message)


def channels_of(kind: str) -> tuple[str, ...]:
    """Channels that messages of a type fill."""
    return BASE_TYPES[kind]


def _odometry(message: Any) -> Mapping[str, Array]:
    """Pose of the child frame, and its twist in its own axes, as the message's definition says."""
    twist = message.twist.twist
    return {"base_pose": _pose(message.pose.pose), "base_twist": np.array([*_xyz(twist.linear), *_xyz(twist.angular)])}


def _twist_stamped(message: Any) -> Mapping[str, Array]:
    """Twist of a body in its own axes: the header's frame must be that of the base."""
    return {"base_twist": np.array([*_xyz(message.twist.linear), *_xyz(message.twist.angular)])}


def _pose_stamped(message: Any) -> Mapping[str, Array]:
    return {"base_pose": _pose(message.pose)}


def _imu(message: Any) -> Mapping[str, Array]:
    """Specific force, at rest upwards, and angular velocity; the orientation is not used."""
    return {"imu": np.array([*_xyz(message.linear_acceleration), *_xyz(message.angular_velocity)])}


def _pose(pose: Any) -> Array:
    turn = pose.orientation
    return np.array([*_xyz(pose.position), turn.x, turn.y, turn.z, turn.w])


def _xyz(vector: Any) -> tuple[float, float, float]:
    return vector.x, vector.y, vector.z


BASE_TYPES = {
    ODOMETRY: ("base_pose", "base_twist"), POSE_STAMPED: ("base_pose",), TWIST_STAMPED: ("base_twist",), IMU: ("imu",),
}
_READ: dict[str, Callable[[Any], Mapping[str, Array]]] = {
    ODOMETRY: _odometry, POSE_STAMPED: _pose_stamped, TWIST_STAMPED: _twist_stamped, IMU: _imu,
}
