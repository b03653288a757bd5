"""Standing robots by name."""

from collections.abc import Callable

import numpy as np

from ...errors import ModelError
from ..example import example_urdf
from .contact import Plate, Sole
from .exoskeleton import IMU, PASSIVE, exoskeleton_urdf, plates, soles
from .robot import StandingRobotDescription

HUMANOID = "g1_description/urdf/g1_29dof_rev_1_0.urdf"


def biped(crouch: float) -> StandingRobotDescription:
    """The exoskeleton on both feet, knees bent so that hips and ankles turn by ``crouch`` [rad]."""
    bent = {"hip_flexion": crouch, "knee": -2 * crouch, "ankle_flexion": crouch}
    start = {f"{side}_{joint}": angle for side in ("right", "left") for joint, angle in bent.items()}
    return StandingRobotDescription(exoskeleton_urdf(), soles(), plates(), start, PASSIVE, imu=IMU)


def humanoid(crouch: float) -> StandingRobotDescription:
    """The Unitree G1 of example-robot-data on its right foot, the left one lifted."""
    sole = Sole("right_ankle_roll_link", np.eye(3), np.array([0.035, 0.0, -0.033]), 0.17, 0.06, "plate")
    plate = Plate("plate", np.diag([1.0, -1.0, -1.0]), np.array([0.02, 0.03, -0.04]))
    start = {f"right_{joint}_joint": a for joint, a in (("hip_pitch", -crouch), ("knee", 2 * crouch))}
    start |= {"right_ankle_pitch_joint": -crouch, "left_hip_pitch_joint": -0.7, "left_knee_joint": 1.2}
    start |= {"left_shoulder_roll_joint": 0.3, "right_shoulder_roll_joint": -0.3}
    urdf = example_urdf(HUMANOID).read_text(encoding="utf-8")
    return StandingRobotDescription(urdf, (sole,), (plate,), start, imu="imu_in_pelvis")


ROBOTS: dict[str, Callable[[float], StandingRobotDescription]] = {"biped": biped, "humanoid": humanoid}


def standing_robot(name: str, crouch: float = 0.3) -> StandingRobotDescription:
    """One of them.

    Raises
    ------
    ModelError: no such robot, or its files are not installed.
    """
    if name not in ROBOTS:
        raise ModelError(f"simulation: no standing robot '{name}'; choose from {', '.join(ROBOTS)}")
    return ROBOTS[name](crouch)
