"""Identify from a bag that is played as if the robot were running. These nodes cannot move a robot.

The bag's clock is the time of all nodes. To play the bag with `ros2 bag play --clock` instead, set `play:=false`, and
call `recorder/start` before playing and `recorder/stop` after playing.
"""

from launch import LaunchDescription
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration
from launch_ros.parameter_descriptions import ParameterValue

from inertid_ros.nodes.launching import (
    JOINT_NAMES,
    JointNamesFile,
    ParameterFile,
    declared,
    described,
    ended_by,
    node,
    package_file,
    text,
)

DEFAULTS = package_file("config", "replay.yaml")
ARGUMENTS = (
    ("bag", "", "bag directory or file to play"),
    ("namespace", "", "namespace of all nodes and topics"),
    ("urdf", "", "URDF file of the robot; empty takes the topic robot_description"),
    (
        "config",
        "",
        "parameter file that is read after the file of the package, with the values that differ; may be empty",
    ),
    JOINT_NAMES,
    ("output", "results", "directory of the results"),
    ("rate", "1.0", "speed; 2.0 plays twice as fast"),
    ("play", "true", "play the bag; false waits for another player"),
)
FILES = (DEFAULTS, ParameterFile("config", DEFAULTS))
COMMON = (*FILES, JointNamesFile(), {"use_sim_time": True})  # the bag's clock


def generate_launch_description() -> LaunchDescription:
    rate = ParameterValue(LaunchConfiguration("rate"), value_type=float)
    player = node(
        "replay",
        {"bag": text("bag"), "rate": rate, "record": True},
        FILES,  # without use_sim_time, as this node publishes the clock
        remappings=[("/joint_states", "joint_states")],  # bags hold full names
        condition=IfCondition(LaunchConfiguration("play")),
    )
    return described(
        __file__,
        [
            *declared(ARGUMENTS),
            node("recorder", {"write_bag": False}, COMMON),
            node("identifier", {"urdf": text("urdf"), "output_directory": text("output")}, COMMON),
            player,
            ended_by(player, "replay", ""),  # end all nodes if the bag cannot be played
        ],
        {"play": ("bag", "rate")},
    )
