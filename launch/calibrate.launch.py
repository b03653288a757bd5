"""Calibrate a robot: excite it, record, identify, validate on a second motion, publish the parameters.

The robot's drivers must already run: they publish `joint_states` and take joint trajectories. The robot does not move
before the plan has been checked against the measured pose. `calibrate:=false` starts only the nodes, without the
calibration flow.
"""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import OpaqueFunction
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.parameter_descriptions import ParameterValue

from inertid_ros.nodes.launching import (
    JOINT_NAMES,
    JointNamesFile,
    common_parameters,
    declared,
    described,
    ended_by,
    excitation,
    given,
    node,
    package_file,
    text,
)

ARGUMENTS = (
    ("namespace", "", "namespace of all nodes and topics, one for each robot"),
    ("urdf", "", "URDF file of the robot; empty takes the topic robot_description"),
    ("controller", "", "name of the robot's trajectory controller; empty takes it from the parameter files"),
    ("defaults", package_file("config", "calibrate.yaml"), "first parameter file; default: the file of the package"),
    ("config", "", "parameter file that is read after it, with the values that differ; may be empty"),
    JOINT_NAMES,
    ("plan", "", "plan.yaml of the fitted motion, written by `inertid excite`; empty plans a motion"),
    ("validation_plan", "", "validation_plan.yaml of the held-out motion; empty plans a motion"),
    ("confirm", "", "true shows each motion and waits for the service excitation/go; empty takes it from the files"),
    ("output", "results", "directory of the results; recordings are written below it"),
    ("use_sim_time", "false", "take the time from /clock"),
    ("excitation", "true", "start the node that moves the robot; false if the robot moves by itself"),
    ("calibrate", "true", "start the flow; false only starts the nodes"),
    ("exit", "false", "end all nodes once the flow has ended; status 1 if it failed or the result was rejected"),
)
COMMON = common_parameters(JointNamesFile())


def flow(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """Return the node that runs the calibration steps, and the handler of its end."""
    steps = node("calibrate", {**given(context, plan=str, validation_plan=str, confirm=bool)}, COMMON)
    exits = IfCondition(LaunchConfiguration("exit"))
    return [steps, ended_by(steps, "calibration", "calibration has ended", exits)]


def generate_launch_description() -> LaunchDescription:
    recordings = ParameterValue(PathJoinSubstitution([LaunchConfiguration("output"), "recordings"]), value_type=str)
    return described(
        __file__,
        [
            *declared(ARGUMENTS),
            excitation(COMMON, IfCondition(LaunchConfiguration("excitation"))),
            node("recorder", {"directory": recordings}, COMMON),
            node("identifier", {"urdf": text("urdf"), "output_directory": text("output")}, COMMON),
            OpaqueFunction(function=flow, condition=IfCondition(LaunchConfiguration("calibrate"))),
        ],
        {"calibrate": ("plan", "validation_plan", "confirm", "exit")},
    )
