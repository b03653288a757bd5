"""Calibrate a simulated robot that stands on force plates: simulate.launch.py without the excitation node.

The robot balances and moves by itself. What it publishes as its description is wrong by point masses unless `perturb`
is false, so that there is something to calibrate. All arguments of simulate.launch.py but `urdf` may be given.
"""

from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.substitutions import FindPackageShare

from inertid_ros.nodes.launching import declared

SHARE = FindPackageShare("inertid_ros")
DEFAULTS = (PathJoinSubstitution([SHARE, "config"]), "/", LaunchConfiguration("robot"), ".yaml")
ARGUMENTS = (("robot", "biped", "biped, on two plates, or humanoid, on one foot"),)


def generate_launch_description() -> LaunchDescription:
    simulate = IncludeLaunchDescription(
        PathJoinSubstitution([SHARE, "launch", "simulate.launch.py"]),
        launch_arguments=[("defaults", DEFAULTS), ("excitation", "false")],
    )
    return LaunchDescription([*declared(ARGUMENTS), simulate])
