"""Control an arm by torques while its inertial parameters adapt; with robot:=simulated, the arm is simulated.

The drivers of a real robot must already run: they publish `joint_states` with velocities and efforts, and an effort
controller takes commands. With hardware, the node sends no commands before its lifecycle configures and activates it;
see docs/adaptive_control.md for the order in which controllers are switched. A simulated arm is controlled at once.
"""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import OpaqueFunction
from launch.conditions import IfCondition
from launch.substitutions import EqualsSubstitution, LaunchConfiguration

from inertid_ros.nodes.launching import ParameterFile, declared, described, flag, given, node, package_file, text

ROBOTS = ("hardware", "simulated")
ARGUMENTS = (
    ("robot", "hardware", "hardware (its drivers run already), or simulated (an arm in MuJoCo)"),
    ("namespace", "", "namespace of all nodes and topics, one for each robot"),
    ("urdf", "", "URDF file of the robot; empty takes the topic robot_description, and simulates the Panda"),
    ("result", "", "result directory of a calibration to begin with; empty takes it from the parameter files"),
    ("controller", "", "name of the effort controller (topic <controller>/commands); empty takes it from the files"),
    ("defaults", "", "parameter file that is read first; empty takes adapt_<robot>.yaml of the package"),
    ("config", "", "parameter file that is read after it, with the values that differ; may be empty"),
    ("use_sim_time", "false", "take the time from /clock"),
)
OWN = (package_file("config", "adapt_"), LaunchConfiguration("robot"), ".yaml")


def generate_launch_description() -> LaunchDescription:
    defaults = ParameterFile("defaults", OWN)
    files = (defaults, ParameterFile("config", defaults))
    simulated = IfCondition(EqualsSubstitution(LaunchConfiguration("robot"), "simulated"))
    common = (*files, {"use_sim_time": flag("use_sim_time")})

    def adaptation(context: LaunchContext) -> list[LaunchDescriptionEntity]:
        return [node("adaptation", {"urdf": text("urdf"), **given(context, result=str, controller=str)}, common)]

    return described(
        __file__,
        [
            *declared(ARGUMENTS, robot=ROBOTS),
            node("simulator", {"urdf": text("urdf")}, files, condition=simulated),
            OpaqueFunction(function=adaptation),
        ],
    )
