"""Calibrate a simulated robot that stands on force plates: simulate.launch.py without the excitation node.

The robot balances and moves by itself. Its published description has point masses as errors unless `perturb`
is false, so that the calibration has errors to correct. The arguments of simulate.launch.py are also accepted.
"""

from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.substitutions import LaunchConfiguration

from inertid_ros.nodes.launching import ParameterFile, declared, described, package_file

ROBOTS = ("biped", "humanoid")
ARGUMENTS = (
    ("robot", "biped", "biped, on two plates, or humanoid, on one foot"),
    ("defaults", "", "parameter file that is read first; empty takes the file of the package for this robot"),
    ("excitation", "false", "start the node that moves the robot, too; this robot moves by itself"),
    ("urdf", "", "not used here; the argument robot names the robot"),
)


def generate_launch_description() -> LaunchDescription:
    own = (package_file("config"), "/", LaunchConfiguration("robot"), ".yaml")
    simulate = IncludeLaunchDescription(
        package_file("launch", "simulate.launch.py"), launch_arguments=[("defaults", ParameterFile("defaults", own))]
    )
    return described(__file__, [*declared(ARGUMENTS, robot=ROBOTS), simulate])
