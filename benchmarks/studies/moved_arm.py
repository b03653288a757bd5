"""A seven-joint arm that follows joint trajectories and publishes its states at a given rate.

``python -m studies.moved_arm RATE``. A separate process without an executor, so that it reaches 1 kHz.
"""

import contextlib
import gc
import sys
import time

import rclpy
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState
from studies.simulated_panda import MODEL, START
from trajectory_msgs.msg import JointTrajectory

from inertid_ros.core.errors import ExcitationError
from inertid_ros.robot.model import load_model
from inertid_ros.ros.conversions import from_joint_trajectory, to_nanoseconds, to_time
from inertid_ros.ros.topics import COMMAND
from inertid_ros.simulation.controller import Follower
from inertid_ros.simulation.example_robots import example_urdf


def main(rate: float) -> None:
    """Run until the process is ended."""
    model = load_model(example_urdf(), MODEL)
    follower = Follower(START)
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node = rclpy.create_node("arm")
    publisher = node.create_publisher(JointState, "joint_states", QoSProfile(depth=10))
    commands = node.create_subscription(JointTrajectory, "joint_trajectory", lambda _message: None, COMMAND)
    names, zeros = list(model.joint_names), [0.0] * model.joints
    message = JointState(name=names, velocity=zeros, effort=zeros)
    offset_ns = time.time_ns() - time.monotonic_ns()
    due = time.monotonic()
    while True:
        time.sleep(max(due - time.monotonic(), 0.0))
        now, due = time.monotonic(), due + 1.0 / rate
        taken = commands.handle.take_message(JointTrajectory, False)
        if taken is not None:
            points = from_joint_trajectory(taken[0], names)
            start = to_nanoseconds(taken[0].header.stamp)
            with contextlib.suppress(ExcitationError):  # commands after its end are ignored
                follower.follow(points, now, (start - offset_ns) * 1e-9 if start else now)
        position, velocity, _ = follower.desired(now)
        message.header.stamp = to_time(round(now * 1e9) + offset_ns)
        message.position, message.velocity = position.tolist(), velocity.tolist()
        publisher.publish(message)


if __name__ == "__main__":
    gc.disable()
    main(float(sys.argv[1]))
