"""Follow a calibrated robot while it moves: parameters, changes, and payload.

The robot's drivers must already run and publish `joint_states`; the node sends no commands.
"""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import OpaqueFunction

from inertid_ros.nodes.launching import common_parameters, declared, described, given, node, package_file

ARGUMENTS = (
    ("namespace", "", "namespace of the node and its topics, one for each robot"),
    ("result", "", "result directory of the calibrated robot; empty takes it from the files or the identifier"),
    ("defaults", package_file("config", "online.yaml"), "first parameter file; default: the file of the package"),
    ("config", "", "parameter file that is read after it, with the values that differ; may be empty"),
    ("use_sim_time", "false", "take the time from /clock"),
)
COMMON = common_parameters()


def online(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    return [node("online", {**given(context, result=str)}, COMMON)]


def generate_launch_description() -> LaunchDescription:
    return described(__file__, [*declared(ARGUMENTS), OpaqueFunction(function=online)])
