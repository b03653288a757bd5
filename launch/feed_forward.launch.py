"""Fill the efforts of trajectories by a calibration, and send them on to the robot's trajectory controller.

The robot's drivers and a joint_trajectory_controller with the command interface effort must already run. In place of
the controller's topic or action, send trajectories to `feed_forward/joint_trajectory`, or goals to
`feed_forward/follow_joint_trajectory`; see docs/guides/controllers.md.
"""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import OpaqueFunction

from inertid_ros.nodes.launching import (
    JOINT_NAMES,
    JointNamesFile,
    common_parameters,
    declared,
    described,
    given,
    node,
    package_file,
    text,
)

ARGUMENTS = (
    ("namespace", "", "namespace of the node and its topics, one for each robot"),
    ("result", "", "result directory of the calibrated robot; empty takes it from the files or the identifier"),
    ("urdf", "", "URDF file of the robot; empty takes the topic robot_description"),
    ("controller", "", "name of the robot's trajectory controller; empty takes it from the parameter files"),
    ("command_interface", "", "joint_trajectory or follow_joint_trajectory; empty takes it from the parameter files"),
    ("defaults", package_file("config", "feed_forward.yaml"), "first parameter file; default: the file of the package"),
    ("config", "", "parameter file that is read after it, with the values that differ; may be empty"),
    JOINT_NAMES,
    ("use_sim_time", "false", "take the time from /clock"),
)
COMMON = common_parameters(JointNamesFile())


def feed_forward(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    chosen = given(context, result=str, controller=str, command_interface=str)
    return [node("feed_forward", {"urdf": text("urdf"), **chosen}, COMMON)]


def generate_launch_description() -> LaunchDescription:
    return described(__file__, [*declared(ARGUMENTS), OpaqueFunction(function=feed_forward)])
