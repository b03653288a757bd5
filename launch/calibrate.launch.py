"""Calibrate a robot: excite it, record, identify, validate on a second motion, publish the parameters.

The robot's own drivers run already: they publish `joint_states` and take joint trajectories. Nothing moves before the
plan has been checked against the measured pose, and `calibrate:=false` starts the nodes without starting the flow.
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import EmitEvent, OpaqueFunction, RegisterEventHandler
from launch.conditions import IfCondition
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.events.process import ProcessExited
from launch.substitutions import AndSubstitution, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from inertid_ros.nodes.launching import JointNamesFile, ParameterFile, declared, flag, node, package_file, text

ARGUMENTS = (
    ("namespace", "", "namespace of all nodes and topics, one for each robot"),
    ("urdf", "", "URDF file of the robot; empty takes the topic robot_description"),
    ("controller", "", "name of the robot's trajectory controller; empty takes that of the parameter files"),
    ("defaults", package_file("config", "calibrate.yaml"), "parameter file that is read first, the package's own"),
    ("config", "", "parameter file that is read after it and may hold only what differs; empty takes none"),
    (
        "joint_names",
        "",
        "names in the URDF of joints that recordings and controllers call otherwise, as in '{fer_*: panda_*}'",
    ),
    ("output", "results", "directory of the results; recordings are written below it"),
    ("use_sim_time", "false", "take the time from /clock"),
    ("excitation", "true", "start the node that moves the robot; false where the robot moves by itself"),
    ("calibrate", "true", "start the flow; false only starts the nodes"),
    ("exit", "false", "end everything once the flow has ended; status 1 where it failed or the result was rejected"),
)
COMMON = (
    ParameterFile("defaults"),
    ParameterFile("config", LaunchConfiguration("defaults")),
    JointNamesFile(LaunchConfiguration("joint_names")),
    {"use_sim_time": flag("use_sim_time")},
)


def excitation(context: LaunchContext) -> list[Node]:
    """Return the node that moves the robot; an argument that was not given leaves the parameter files alone."""
    controller = LaunchConfiguration("controller").perform(context)
    named = {"controller": controller} if controller else {}
    moved = IfCondition(LaunchConfiguration("excitation"))
    return [node("excitation", {"urdf": text("urdf"), **named}, COMMON, condition=moved)]


def end(event: ProcessExited, _context: LaunchContext) -> EmitEvent:
    """End everything; an exception is how a launch file makes `ros2 launch` itself end with a status other than 0."""
    if event.returncode:
        raise RuntimeError(f"calibration ended with status {event.returncode}; see its output above")
    return EmitEvent(event=Shutdown(reason="calibration has ended"))


def generate_launch_description() -> LaunchDescription:
    recordings = ParameterValue(PathJoinSubstitution([LaunchConfiguration("output"), "recordings"]), value_type=str)
    flow = node("calibrate", {}, COMMON, condition=IfCondition(LaunchConfiguration("calibrate")))
    return LaunchDescription(
        [
            *declared(ARGUMENTS),
            OpaqueFunction(function=excitation),
            node("recorder", {"directory": recordings}, COMMON),
            node("identifier", {"urdf": text("urdf"), "output_directory": text("output")}, COMMON),
            flow,
            RegisterEventHandler(
                OnProcessExit(target_action=flow, on_exit=end),
                condition=IfCondition(AndSubstitution(LaunchConfiguration("calibrate"), LaunchConfiguration("exit"))),
            ),
        ]
    )
