"""Calibrate a robot: excite it, record, identify, validate on a second motion, publish the parameters.

The robot's own drivers run already: they publish `joint_states` and take joint trajectories. Nothing moves before the
plan has been checked against the measured pose, and `calibrate:=false` starts the nodes without starting the flow.
"""

from launch import LaunchDescription
from launch.conditions import IfCondition
from launch.substitutions import AndSubstitution, LaunchConfiguration, PathJoinSubstitution
from launch_ros.parameter_descriptions import ParameterValue

from inertid_ros.nodes.launching import (
    JOINT_NAMES,
    JointNamesFile,
    common_parameters,
    declared,
    described,
    ended_by,
    excitation,
    node,
    package_file,
    text,
)

ARGUMENTS = (
    ("namespace", "", "namespace of all nodes and topics, one for each robot"),
    ("urdf", "", "URDF file of the robot; empty takes the topic robot_description"),
    ("controller", "", "name of the robot's trajectory controller; empty takes that of the parameter files"),
    ("defaults", package_file("config", "calibrate.yaml"), "parameter file that is read first, the package's own"),
    ("config", "", "parameter file that is read after it and may hold only what differs; empty takes none"),
    JOINT_NAMES,
    ("output", "results", "directory of the results; recordings are written below it"),
    ("use_sim_time", "false", "take the time from /clock"),
    ("excitation", "true", "start the node that moves the robot; false where the robot moves by itself"),
    ("calibrate", "true", "start the flow; false only starts the nodes"),
    ("exit", "false", "end everything once the flow has ended; status 1 where it failed or the result was rejected"),
)
COMMON = common_parameters(JointNamesFile())


def generate_launch_description() -> LaunchDescription:
    recordings = ParameterValue(PathJoinSubstitution([LaunchConfiguration("output"), "recordings"]), value_type=str)
    exits = IfCondition(AndSubstitution(LaunchConfiguration("calibrate"), LaunchConfiguration("exit")))
    flow = node("calibrate", {}, COMMON, condition=IfCondition(LaunchConfiguration("calibrate")))
    return described(
        __file__,
        [
            *declared(ARGUMENTS),
            excitation(COMMON, IfCondition(LaunchConfiguration("excitation"))),
            node("recorder", {"directory": recordings}, COMMON),
            node("identifier", {"urdf": text("urdf"), "output_directory": text("output")}, COMMON),
            flow,
            ended_by(flow, "calibration", "calibration has ended", exits),
        ],
    )
