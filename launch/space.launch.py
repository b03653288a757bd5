"""Calibrate a simulated space robot from its momentum: simulate.launch.py with a floating base and reaction wheels.

The robot is a satellite with two arms and three wheels. The excitation node commands arms and wheels. The arguments of
simulate.launch.py are also accepted.
"""

from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription

from inertid_ros.nodes.launching import ParameterFile, declared, described, package_file

OWN = package_file("config", "space.yaml")
ARGUMENTS = (("defaults", OWN, "first parameter file; default: the file of the package"),)


def generate_launch_description() -> LaunchDescription:
    simulate = IncludeLaunchDescription(
        package_file("launch", "simulate.launch.py"), launch_arguments=[("defaults", ParameterFile("defaults"))]
    )
    return described(__file__, [*declared(ARGUMENTS), simulate])
