"""What the drivers of known robots mean by the effort of a joint state; docs/robots.md has the sources."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

TORQUE, CURRENT, WITHOUT_GRAVITY = "torque", "current", "without_gravity"
EFFORTS = (TORQUE, CURRENT, WITHOUT_GRAVITY)
"""Torque of the joint or the motor behind its gear [N m or N]; current of the motor [A]; torque from which the driver
has taken off the gravity of a model."""


@dataclass(frozen=True)
class KnownDriver:
    """A robot's driver.

    Attributes
    ----------
    robots : str
        What it drives.
    name, joints : str
        Regular expressions that the robot's name and the names of most of its joints match.
    effort : str
        One of :data:`EFFORTS`; empty where it has to be looked at.
    about : str
        What to know of its efforts.
    controller : str
        Name of its trajectory controller; empty where it brings none.
    """

    robots: str
    name: str
    joints: str
    effort: str
    about: str
    controller: str = ""


KNOWN_DRIVERS = (
    KnownDriver(
        "Universal Robots", "", r"(shoulder_pan|shoulder_lift|elbow|wrist_[123])_joint$", CURRENT,
        "ur_robot_driver reports motor currents; newer versions may report torque without gravity in their place: keep"
        " use_currents_as_efforts true",
        "scaled_joint_trajectory_controller",
    ),
    KnownDriver(
        "Franka", "", r"(panda|fer|fr3)(v\d)?_joint[1-7]$", TORQUE,
        "franka_ros2 reports the torque that is measured behind the gears",
    ),
    KnownDriver(
        "KUKA LBR", r"(?i)iiwa|lbr|lwr", r"(joint|a)_?\d$", "",
        "some drivers report external torque, which gravity is no part of: look at the effort at rest",
        "joint_trajectory_controller",
    ),
    KnownDriver(
        "xArm", r"(?i)xarm|lite6|uf850|uf_robot", r"joint_?[1-7]$", "",
        "there are no torque sensors; what the driver reports is estimated: look at the effort at rest",
    ),
    KnownDriver(
        "Unitree", r"(?i)^(a1|aliengo|b1|b2|g1|go1|go2|h1|laikago|z1)(\W|_|$)", r"(joint\d*|_\w+)$", TORQUE,
        "tau_est of its motors is torque, estimated from their currents; put it into effort",
    ),
)  # fmt: skip
_SHARE = 0.6  # of the joints that have to match


def known_driver(robot: str, joints: Sequence[str]) -> KnownDriver | None:
    """Return what is known of the driver of a robot; None where nothing is.

    Parameters
    ----------
    robot : str
        Name in the URDF.
    joints : sequence of str
        That can move.
    """
    for driver in KNOWN_DRIVERS:
        matching = sum(bool(re.search(driver.joints, name)) for name in joints)
        if joints and re.search(driver.name, robot) and matching >= _SHARE * len(joints):
            return driver
    return None
