"""Calibrate a robot: excite it, record, identify, validate on a second motion, publish the parameters.

The robot's own drivers run already: they publish `joint_states` and take joint trajectories. Nothing moves before the
plan has been checked against the measured pose, and `calibrate:=false` starts the nodes without starting the flow.
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import EmitEvent, RegisterEventHandler
from launch.conditions import IfCondition
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.events.process import ProcessExited
from launch.substitutions import AndSubstitution, LaunchConfiguration, PathJoinSubstitution
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from inertid_ros.nodes.launching import declared, flag, node, text

DEFAULTS = PathJoinSubstitution([FindPackageShare("inertid_ros"), "config", "calibrate.yaml"])
ARGUMENTS = (
    ("namespace", "", "namespace of all nodes and topics, one for each robot"),
    ("urdf", "", "URDF file of the robot; empty takes the topic robot_description"),
    ("defaults", DEFAULTS, "parameter file that is read first, the package's own"),
    ("config", LaunchConfiguration("defaults"), "parameter file that is read after it and may hold only what differs"),
    ("output", "results", "directory of the results; recordings are written below it"),
    ("use_sim_time", "false", "take the time from /clock"),
    ("excitation", "true", "start the node that moves the robot; false where the robot moves by itself"),
    ("calibrate", "true", "start the flow; false only starts the nodes"),
    ("exit", "false", "end everything once the flow has ended; status 1 where it failed or the result was rejected"),
)
COMMON = (LaunchConfiguration("defaults"), LaunchConfiguration("config"), {"use_sim_time": flag("use_sim_time")})


def end(event: ProcessExited, _context: LaunchContext) -> EmitEvent:
    """End everything; an exception is how a launch file makes `ros2 launch` itself end with a status other than 0."""
    if event.returncode:
        raise RuntimeError(f"calibration ended with status {event.returncode}; see its output above")
    return EmitEvent(event=Shutdown(reason="calibration has ended"))


def generate_launch_description() -> LaunchDescription:
    recordings = ParameterValue(PathJoinSubstitution([LaunchConfiguration("output"), "recordings"]), value_type=str)
    moved = IfCondition(LaunchConfiguration("excitation"))
    flow = node("calibrate", {}, COMMON, condition=IfCondition(LaunchConfiguration("calibrate")))
    return LaunchDescription(
        [
            *declared(ARGUMENTS),
            node("excitation", {"urdf": text("urdf")}, COMMON, condition=moved),
            node("recorder", {"directory": recordings}, COMMON),
            node("identifier", {"urdf": text("urdf"), "output_directory": text("output")}, COMMON),
            flow,
            RegisterEventHandler(
                OnProcessExit(target_action=flow, on_exit=end),
                condition=IfCondition(AndSubstitution(LaunchConfiguration("calibrate"), LaunchConfiguration("exit"))),
            ),
        ]
    )
