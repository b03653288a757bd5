"""Identify the payload of a calibrated robot by a short motion that is planned for it.

The robot's drivers must already run: they publish `joint_states` and take joint trajectories. The robot does not move
before the plan has been checked against the measured pose. The plan is for the robot without the payload: the limits
of velocity and effort in the parameter file leave a margin for the payload, and the way of the payload must be free of
obstacles.
"""

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from launch.actions import OpaqueFunction

from inertid_ros.nodes.launching import (
    JOINT_NAMES,
    JointNamesFile,
    common_parameters,
    declared,
    described,
    ended_by,
    excitation,
    given,
    node,
    package_file,
)

ARGUMENTS = (
    ("namespace", "", "namespace of all nodes and topics, one for each robot"),
    ("result", "", "result directory of the calibrated robot; empty takes it from the files or the identifier"),
    ("urdf", "", "URDF file of the robot; empty takes the topic robot_description"),
    ("controller", "", "name of the robot's trajectory controller; empty takes it from the parameter files"),
    ("defaults", package_file("config", "payload.yaml"), "first parameter file; default: the file of the package"),
    ("config", "", "parameter file that is read after it, with the values that differ; may be empty"),
    JOINT_NAMES,
    ("use_sim_time", "false", "take the time from /clock"),
)
COMMON = common_parameters(JointNamesFile())


def online(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    return [node("online", {**given(context, result=str)}, COMMON)]


def generate_launch_description() -> LaunchDescription:
    flow = node("measure_payload", {}, COMMON)
    return described(
        __file__,
        [
            *declared(ARGUMENTS),
            excitation(COMMON),
            OpaqueFunction(function=online),
            flow,
            ended_by(flow, "measure_payload", "the payload has been identified"),
        ],
    )
