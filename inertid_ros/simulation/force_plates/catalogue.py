"""Legged robots on force plates by name."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from inertid_ros.config.robot import PlateOptions
from inertid_ros.config.simulation import LEGGED_ROBOTS
from inertid_ros.core.errors import ModelError
from inertid_ros.simulation.example_robots import example_urdf

from .exoskeleton import IMU, PASSIVE, exoskeleton_urdf, plates, soles
from .legged_robot import LeggedRobotDescription
from .soles import SimulatedPlate, Sole

HUMANOID = "g1_description/urdf/g1_29dof_rev_1_0.urdf"


@dataclass(frozen=True)
class Stance:
    """Stance of a robot: its soles, the plates below them, and the frame of its inertial measurement unit."""

    soles: tuple[Sole, ...]
    plates: tuple[SimulatedPlate, ...]
    imu: str

    def plate_options(self) -> dict[str, PlateOptions]:
        """The plates as ``robot.plates`` in a configuration has them."""
        plates, found = {plate.name: plate for plate in self.plates}, {}
        for sole in self.soles:
            plate = plates[sole.plate]
            rpy = Rotation.from_matrix(plate.rotation).as_euler("xyz")
            xyz, angles = (tuple(round(float(number), 12) for number in values) for values in (plate.origin, rpy))
            found[plate.name] = PlateOptions(sole.frame, xyz, angles)
        return found


STANCES = {
    "biped": Stance(soles(), plates(), IMU),
    "humanoid": Stance(
        (Sole("right_ankle_roll_link", np.eye(3), np.array([0.035, 0.0, -0.033]), 0.17, 0.06, "plate"),),
        (SimulatedPlate("plate", np.diag([1.0, -1.0, -1.0]), np.array([0.02, 0.03, -0.04])),),
        "imu_in_pelvis",
    ),
}


def biped(crouch: float) -> LeggedRobotDescription:
    """The exoskeleton on both feet, knees bent so that hips and ankles turn by ``crouch`` [rad]."""
    bent = {"hip_flexion": crouch, "knee": -2 * crouch, "ankle_flexion": crouch}
    start = {f"{side}_{joint}": angle for side in ("right", "left") for joint, angle in bent.items()}
    stance = STANCES["biped"]
    return LeggedRobotDescription(exoskeleton_urdf(), stance.soles, stance.plates, start, PASSIVE, imu=stance.imu)


def humanoid(crouch: float) -> LeggedRobotDescription:
    """The Unitree G1 of example-robot-data on its right foot, the left one lifted."""
    stance = STANCES["humanoid"]
    start = {f"right_{joint}_joint": a for joint, a in (("hip_pitch", -crouch), ("knee", 2 * crouch))}
    start |= {"right_ankle_pitch_joint": -crouch, "left_hip_pitch_joint": -0.7, "left_knee_joint": 1.2}
    start |= {"left_shoulder_roll_joint": 0.3, "right_shoulder_roll_joint": -0.3}
    urdf = example_urdf(HUMANOID).read_text(encoding="utf-8")
    return LeggedRobotDescription(urdf, stance.soles, stance.plates, start, imu=stance.imu)


ROBOTS = dict(zip(LEGGED_ROBOTS, (biped, humanoid), strict=True))


def legged_robot(name: str, crouch: float = 0.3) -> LeggedRobotDescription:
    """A legged robot of the catalogue.

    Raises
    ------
    ModelError
        There is no such robot, or its files are not installed.
    """
    if name not in ROBOTS:
        raise ModelError(f"simulation: no legged robot '{name}'; choose from {', '.join(ROBOTS)}")
    return ROBOTS[name](crouch)
