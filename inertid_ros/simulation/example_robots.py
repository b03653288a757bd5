"""Robots to simulate: URDFs of example-robot-data, a small arm, and legged robots on force plates."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin
from scipy.spatial.transform import Rotation

from inertid_ros.config.robot import PlateOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError

PANDA = "panda_description/urdf/panda.urdf"
HUMANOID = "g1_description/urdf/g1_29dof_rev_1_0.urdf"


def packaged_urdf(name: str) -> str:
    """URDF text of a robot of this package: ``example_arm`` or ``exoskeleton``."""
    return (Path(__file__).parent / "robots" / f"{name}.urdf").read_text(encoding="utf-8")


def example_urdf(name: str = PANDA) -> Path:
    """Path of a URDF of example-robot-data; ``name`` is relative to the folder of its robots.

    Raises
    ------
    ModelError
        Example-robot-data is not installed, or has no such file.
    """
    prefixes = [Path(site) / "cmeel.prefix" for site in sys.path]
    prefixes += [Path(prefix) for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(":") if prefix]
    for prefix in prefixes:
        folder = prefix / "share" / "example-robot-data" / "robots"
        if (folder / name).is_file():
            return folder / name
    raise ModelError(f"{name}: not found; install example-robot-data, or give a URDF file")


@dataclass(frozen=True)
class Sole:
    """A flat rectangle of a foot that is in contact with the ground.

    Attributes
    ----------
    frame : link of the foot.
    placement : pose in the link of the rectangle's centre, with x to the toes and z away from the ground.
    """

    frame: str
    placement: pin.SE3
    length: float
    width: float
    plate: str

    @property
    def corners(self) -> Array:
        """Corners ``(4, 3)`` in the link's frame [m]."""
        signs = np.array([[1, 1, 0], [1, -1, 0], [-1, -1, 0], [-1, 1, 0]])
        around = 0.5 * signs * np.array([self.length, self.width, 0.0]) @ self.placement.rotation.T
        return np.asarray(self.placement.translation + around)

    def pose(self, model: pin.Model, data: pin.Data) -> pin.SE3:
        """Pose of the sole in the world; ``data`` must contain the placements of frames."""
        return data.oMf[model.getFrameId(self.frame)] * self.placement

    def jacobian(self, model: pin.Model, data: pin.Data) -> Array:
        """Jacobian ``(6, nv)`` in the sole's axes; ``data`` must contain the Jacobians of joints."""
        jacobian = pin.getFrameJacobian(model, data, model.getFrameId(self.frame), pin.ReferenceFrame.LOCAL)
        return np.asarray(self.placement.toActionMatrixInverse() @ jacobian)


@dataclass(frozen=True)
class SimulatedPlate:
    """A force plate that measures the wrench of the ground on the robot in the plate frame ``placement`` in the world.

    The surface of the plate is at height zero.
    """

    name: str
    placement: pin.SE3


@dataclass(frozen=True)
class LeggedRobotDescription:
    """A legged robot and its stance.

    Attributes
    ----------
    start : map from joints to positions [rad]; other joints start at zero.
    passive : joints without a motor.
    imu : frame of the inertial measurement unit on the base.
    """

    urdf: str
    soles: tuple[Sole, ...]
    plates: tuple[SimulatedPlate, ...]
    start: dict[str, float]
    imu: str
    passive: tuple[str, ...] = ()

    def plate_options(self) -> dict[str, PlateOptions]:
        """Return the plates in the form of ``robot.plates`` in a configuration."""
        places, options = {plate.name: plate.placement for plate in self.plates}, {}
        for sole in self.soles:
            rpy = Rotation.from_matrix(places[sole.plate].rotation).as_euler("xyz")
            numbers = (places[sole.plate].translation, rpy)
            xyz, angles = (tuple(round(float(number), 12) for number in values) for values in numbers)
            options[sole.plate] = PlateOptions(sole.frame, xyz, angles)
        return options


def _biped(crouch: float) -> LeggedRobotDescription:
    """The exoskeleton with each foot on a plate; knees are bent so that hips and ankles turn by ``crouch`` [rad].

    In the frames of the feet, x points down; z points to the toes on the right foot and to the heel on the left foot.
    The frames of the plates follow laboratory practice: z points down, one frame is turned, and both lie below the
    surface.
    """
    right, left = np.array([[[0, 0, -1], [0, side, 0], [side, 0, 0]] for side in (1.0, -1.0)])
    down, turned = np.diag([1.0, -1.0, -1.0]), np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
    bent = {"hip_flexion": crouch, "knee": -2 * crouch, "ankle_flexion": crouch}
    return LeggedRobotDescription(
        packaged_urdf("exoskeleton"),
        soles=(
            Sole("right_foot", pin.SE3(right, np.array([0.09, 0.0, 0.05])), 0.27, 0.11, "right_plate"),
            Sole("left_foot", pin.SE3(left, np.array([0.09, 0.0, -0.05])), 0.27, 0.11, "left_plate")),
        plates=(
            SimulatedPlate("right_plate", pin.SE3(down, np.array([0.05, -0.21, -0.04]))),
            SimulatedPlate("left_plate", pin.SE3(turned, np.array([0.03, 0.24, -0.04])))),
        start={f"{side}_{joint}": angle for side in ("right", "left") for joint, angle in bent.items()},
        imu="imu", passive=("right_ankle_eversion", "left_ankle_eversion"))


def _humanoid(crouch: float) -> LeggedRobotDescription:
    """The Unitree G1 of example-robot-data on its right foot, with the left foot lifted."""
    start = {f"right_{joint}_joint": a for joint, a in (("hip_pitch", -crouch), ("knee", 2 * crouch))}
    start |= {"right_ankle_pitch_joint": -crouch, "left_hip_pitch_joint": -0.7, "left_knee_joint": 1.2}
    start |= {"left_shoulder_roll_joint": 0.3, "right_shoulder_roll_joint": -0.3}
    return LeggedRobotDescription(
        example_urdf(HUMANOID).read_text(encoding="utf-8"),
        (Sole("right_ankle_roll_link", pin.SE3(np.eye(3), np.array([0.035, 0.0, -0.033])), 0.17, 0.06, "plate"),),
        (SimulatedPlate("plate", pin.SE3(np.diag([1.0, -1.0, -1.0]), np.array([0.02, 0.03, -0.04]))),), start,
        imu="imu_in_pelvis")


def legged_robot(name: str, crouch: float = 0.3) -> LeggedRobotDescription:
    """Legged robot ``biped`` or ``humanoid``; ``crouch`` [rad] is the angle of the hips, half the angle of the knees.

    Raises
    ------
    ModelError
        The name is unknown, or the files of the robot are not installed.
    """
    robots = {"biped": _biped, "humanoid": _humanoid}
    if name not in robots:
        raise ModelError(f"simulation: no legged robot '{name}'; choose from {', '.join(robots)}")
    return robots[name](crouch)
