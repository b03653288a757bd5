"""Identify what a calibrated robot holds by a short motion that is planned for it.

The robot's own drivers run already: they publish `joint_states` and take joint trajectories. Nothing moves before the
plan has been checked against the measured pose. The motion is planned for the robot without the payload: limits of
velocity and effort in the parameter file leave room for it, and nothing may be in the way of what is held.
"""

from launch import LaunchContext, LaunchDescription
from launch.actions import EmitEvent, OpaqueFunction, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from inertid_ros.nodes.launching import JointNamesFile, ParameterFile, declared, flag, node, package_file, text

ARGUMENTS = (
    ("namespace", "", "namespace of all nodes and topics, one for each robot"),
    ("result", "", "result directory of the calibrated robot; empty takes that of the identifier that runs beside it"),
    ("urdf", "", "URDF file of the robot; empty takes the topic robot_description"),
    ("controller", "", "name of the robot's trajectory controller; empty takes that of the parameter files"),
    ("defaults", package_file("config", "payload.yaml"), "parameter file that is read first, the package's own"),
    ("config", "", "parameter file that is read after it and may hold only what differs; empty takes none"),
    (
        "joint_names",
        "",
        "names in the URDF of joints that recordings and controllers call otherwise, as in '{fer_*: panda_*}'",
    ),
    ("use_sim_time", "false", "take the time from /clock"),
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
    return [node("excitation", {"urdf": text("urdf"), **named}, COMMON)]


def end(event: ProcessExited, _context: LaunchContext) -> EmitEvent:
    """End everything; an exception is how a launch file makes `ros2 launch` itself end with a status other than 0."""
    if event.returncode:
        raise RuntimeError(f"measure_payload ended with status {event.returncode}; see its output above")
    return EmitEvent(event=Shutdown(reason="the payload has been identified"))


def generate_launch_description() -> LaunchDescription:
    flow = node("measure_payload", {}, COMMON)
    return LaunchDescription(
        [
            *declared(ARGUMENTS),
            OpaqueFunction(function=excitation),
            node("online", {"result": text("result")}, COMMON),
            flow,
            RegisterEventHandler(OnProcessExit(target_action=flow, on_exit=end)),
        ]
    )
