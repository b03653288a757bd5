"""Follow a calibrated robot while it moves: parameters, changes, and what it holds.

The robot's own drivers run already and publish `joint_states`; nothing is commanded.
"""

from launch import LaunchDescription

from inertid_ros.nodes.launching import common_parameters, declared, described, node, package_file, text

ARGUMENTS = (
    ("namespace", "", "namespace of the node and its topics, one for each robot"),
    ("result", "", "result directory of the calibrated robot; empty takes that of the identifier that runs beside it"),
    ("defaults", package_file("config", "online.yaml"), "parameter file that is read first, the package's own"),
    ("config", "", "parameter file that is read after it and may hold only what differs; empty takes none"),
    ("use_sim_time", "false", "take the time from /clock"),
)
COMMON = common_parameters()


def generate_launch_description() -> LaunchDescription:
    return described(__file__, [*declared(ARGUMENTS), node("online", {"result": text("result")}, COMMON)])
