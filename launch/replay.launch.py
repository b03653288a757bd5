"""Identify from a bag that is played as if the robot were running. Nothing here can move a robot.

The bag's clock is the time of all nodes. To play with `ros2 bag play --clock` instead, set `play:=false`, and call
`recorder/start` before it and `recorder/stop` after it.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

DEFAULTS = PathJoinSubstitution([FindPackageShare("inertid_ros"), "config", "replay.yaml"])
ARGUMENTS = (
    ("bag", "", "bag directory or file to play"),
    ("namespace", "", "namespace of all nodes and topics"),
    ("urdf", "", "URDF file of the robot; empty takes the topic robot_description"),
    ("config", DEFAULTS, "parameter file; it is read after the package's own and may hold only what differs"),
    ("output", "results", "directory of the results"),
    ("rate", "1.0", "speed; 2.0 plays twice as fast"),
    ("play", "true", "play the bag; false waits for another player"),
)


def node(executable: str, parameters: dict, **keywords) -> Node:
    """A node of this package in the given namespace, on the bag's clock."""
    return Node(
        package="inertid_ros",
        executable=executable,
        name=executable,
        namespace=LaunchConfiguration("namespace"),
        parameters=[DEFAULTS, LaunchConfiguration("config"), parameters],
        output="screen",
        additional_env={"PYTHONUNBUFFERED": "1"},
        **keywords,
    )


def text(argument: str) -> ParameterValue:
    """The value of an argument as text, also when it looks like a number."""
    return ParameterValue(LaunchConfiguration(argument), value_type=str)


def generate_launch_description() -> LaunchDescription:
    rate = ParameterValue(LaunchConfiguration("rate"), value_type=float)
    return LaunchDescription(
        [
            *(DeclareLaunchArgument(name, default_value=value, description=about) for name, value, about in ARGUMENTS),
            node("recorder", {"use_sim_time": True, "write_bag": False}),
            node("identifier", {"use_sim_time": True, "urdf": text("urdf"), "output_directory": text("output")}),
            node(
                "replay",
                {"bag": text("bag"), "rate": rate, "record": True},
                remappings=[("/joint_states", "joint_states")],  # bags hold full names
                condition=IfCondition(LaunchConfiguration("play")),
            ),
        ]
    )
