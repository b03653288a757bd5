"""Calibrate a simulated robot that stands on force plates: simulator, recorder, identifier, and the flow.

The robot balances and moves by itself. What it publishes as its description is wrong by point masses, so that there is
something to calibrate.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, EmitEvent, RegisterEventHandler
from launch.conditions import IfCondition
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.substitutions import AndSubstitution, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterFile, ParameterValue
from launch_ros.substitutions import FindPackageShare

FOLDER = PathJoinSubstitution([FindPackageShare("inertid_ros"), "config"])
DEFAULTS = (FOLDER, "/", LaunchConfiguration("robot"), ".yaml")
ARGUMENTS = (
    ("namespace", "", "namespace of all nodes and topics, one for each robot"),
    ("robot", "biped", "biped, on two plates, or humanoid, on one foot"),
    ("perturb", "true", "publish a description that is wrong by point masses; false publishes the truth"),
    ("config", DEFAULTS, "parameter file; it is read after the package's own and may hold only what differs"),
    ("output", "results", "directory of the results; recordings are written below it"),
    ("calibrate", "true", "start the flow; false only starts the nodes"),
    ("exit", "false", "end everything once the flow has ended; otherwise the parameters stay on offer"),
)


def node(executable: str, parameters: dict, **keywords) -> Node:
    """A node of this package in the given namespace, with the parameters of both files and those of the arguments."""
    return Node(
        package="inertid_ros",
        executable=executable,
        name=executable,
        namespace=LaunchConfiguration("namespace"),
        parameters=[ParameterFile(DEFAULTS), LaunchConfiguration("config"), parameters],
        output="screen",
        additional_env={"PYTHONUNBUFFERED": "1"},
        **keywords,
    )


def generate_launch_description() -> LaunchDescription:
    recordings = ParameterValue(PathJoinSubstitution([LaunchConfiguration("output"), "recordings"]), value_type=str)
    output = ParameterValue(LaunchConfiguration("output"), value_type=str)
    perturb = ParameterValue(LaunchConfiguration("perturb"), value_type=bool)
    flow = node("calibrate", {"moved_by": "robot"}, condition=IfCondition(LaunchConfiguration("calibrate")))
    return LaunchDescription(
        [
            *(DeclareLaunchArgument(name, default_value=value, description=about) for name, value, about in ARGUMENTS),
            node("simulator", {"perturb": perturb}),
            node("recorder", {"directory": recordings}),
            node("identifier", {"output_directory": output}),
            flow,
            RegisterEventHandler(
                OnProcessExit(target_action=flow, on_exit=[EmitEvent(event=Shutdown(reason="calibration has ended"))]),
                condition=IfCondition(AndSubstitution(LaunchConfiguration("calibrate"), LaunchConfiguration("exit"))),
            ),
        ]
    )
