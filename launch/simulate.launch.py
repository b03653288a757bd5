"""Calibrate a simulated arm: the same as calibrate.launch.py with a MuJoCo robot in place of the hardware.

The simulator publishes the robot description that the other nodes use; it is wrong by point masses unless `perturb` is
false, so that there is something to calibrate.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

SHARE = FindPackageShare("inertid_ros")
DEFAULTS = PathJoinSubstitution([SHARE, "config", "simulate.yaml"])
ARGUMENTS = (
    ("namespace", "", "namespace of all nodes and topics, one for each robot"),
    ("urdf", "", "URDF file of the true robot; empty takes the Panda of example-robot-data"),
    ("perturb", "true", "publish a description that is wrong by point masses; false publishes the truth"),
    ("config", DEFAULTS, "parameter file; it is read after the package's own and may hold only what differs"),
    ("output", "results", "directory of the results; recordings are written below it"),
    ("calibrate", "true", "start the flow; false only starts the nodes"),
    ("exit", "false", "end everything once the flow has ended; status 1 where it failed or the result was rejected"),
)
PASSED_ON = ("namespace", "config", "output", "calibrate", "exit")


def generate_launch_description() -> LaunchDescription:
    simulator = Node(
        package="inertid_ros",
        executable="simulator",
        name="simulator",
        namespace=LaunchConfiguration("namespace"),
        parameters=[
            DEFAULTS,
            LaunchConfiguration("config"),
            {
                "urdf": ParameterValue(LaunchConfiguration("urdf"), value_type=str),
                "perturb": ParameterValue(LaunchConfiguration("perturb"), value_type=bool),
            },
        ],
        output="screen",
        additional_env={"PYTHONUNBUFFERED": "1"},
    )
    calibrate = IncludeLaunchDescription(
        PathJoinSubstitution([SHARE, "launch", "calibrate.launch.py"]),
        # The flow reads the description from the simulator's topic, as it would from a robot's.
        launch_arguments={
            "urdf": "",
            "defaults": DEFAULTS,
            **{name: LaunchConfiguration(name) for name in PASSED_ON},
        }.items(),
    )
    return LaunchDescription(
        [
            *(DeclareLaunchArgument(name, default_value=value, description=about) for name, value, about in ARGUMENTS),
            simulator,
            calibrate,
        ]
    )
