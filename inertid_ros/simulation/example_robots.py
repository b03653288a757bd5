"""Robots to simulate: URDFs of example-robot-data, a small arm, and legged robots on force plates.

The biped has the inertial parameters of the Symbitron lower-limb exoskeleton ([vanDerGaag2024]_ table D.1, column
"Real"). The table gives mass, first moment and inertia about the link's origin, whose z axis is the joint's
([vanDerGaag2024]_ sec. 2.2.2). What it does not give is the geometry; the lengths here are those of a person of 1.8 m,
and the axes are laid so that the centres of mass lie where the parts of an exoskeleton are: thigh and shank along their
x axes, the foot's before and below the ankle, the torso's above and behind the hips. The left leg mirrors the right
one: z axes are turned over, as the signs of the table show, and joints of the same name move symmetrically at equal
positions.
"""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin
from lxml import etree
from scipy.spatial.transform import Rotation

from inertid_ros.config.robot import PlateOptions
from inertid_ros.config.simulation import LEGGED_ROBOTS
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import mass_com_inertia

PANDA = "panda_description/urdf/panda.urdf"
ARM_URDF = """\
<robot name="example_arm">
  <link name="base_link">
    <collision><origin xyz="0 0 0.15"/><geometry><cylinder radius="0.08" length="0.3"/></geometry></collision>
  </link>
  <link name="shoulder">
    <inertial>
      <origin xyz="0.01 0 0.03"/><mass value="3.0"/>
      <inertia ixx="0.012" ixy="0" ixz="0" iyy="0.012" iyz="0" izz="0.010"/>
    </inertial>
    <collision><origin xyz="0 0 0.05"/><geometry><sphere radius="0.07"/></geometry></collision>
  </link>
  <link name="upper_arm">
    <inertial>
      <origin xyz="0.18 0.02 0"/><mass value="4.0"/>
      <inertia ixx="0.010" ixy="0.001" ixz="0" iyy="0.070" iyz="0" izz="0.070"/>
    </inertial>
    <collision>
      <origin xyz="0.2 0 0" rpy="0 1.570796326795 0"/><geometry><cylinder radius="0.05" length="0.3"/></geometry>
    </collision>
  </link>
  <link name="forearm">
    <inertial>
      <origin xyz="0.14 0 0.02"/><mass value="2.0"/>
      <inertia ixx="0.004" ixy="0" ixz="0" iyy="0.024" iyz="0" izz="0.024"/>
    </inertial>
    <collision>
      <origin xyz="0.18 0 0" rpy="0 1.570796326795 0"/><geometry><cylinder radius="0.04" length="0.24"/></geometry>
    </collision>
  </link>
  <joint name="shoulder_pan" type="revolute">
    <parent link="base_link"/><child link="shoulder"/><origin xyz="0 0 0.4"/><axis xyz="0 0 1"/>
    <limit lower="-2.8" upper="2.8" velocity="2.5" effort="60"/>
  </joint>
  <joint name="shoulder_lift" type="revolute">
    <parent link="shoulder"/><child link="upper_arm"/><origin xyz="0 0 0.1"/><axis xyz="0 1 0"/>
    <limit lower="-2.2" upper="0.8" velocity="2.5" effort="90"/>
  </joint>
  <joint name="elbow" type="revolute">
    <parent link="upper_arm"/><child link="forearm"/><origin xyz="0.4 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-2.0" upper="2.0" velocity="3.0" effort="40"/>
  </joint>
</robot>
"""
# m, m c (x, y, z), I (xx, xy, yy, xz, yz, zz) about the link's origin; rows of the right leg.
BODY = (13.5, -0.773, 0.0715, 4.94, 2.29, 0.00621, 2.31, 0.312, -0.029, 0.0951)
LEG = {
    "hip": (4.35, 0.36, 0.0594, -0.328, 0.0808, -0.00483, 0.128, 0.0545, 0.00249, 0.0587),
    "thigh": (5.18, 1.04, 0.0425, -0.0258, 0.0155, -0.00747, 0.326, 0.0175, 0.00328, 0.323),
    "shank": (3.5, 0.39, -0.0299, -0.0423, 0.00868, 0.00161, 0.0834, 0.00258, 0.00137, 0.0822),
    "ankle": (0.198, 0.000492, -0.00409, -0.00768, 0.00174, 3.97e-05, 0.000446, 8.46e-06, -4.94e-05, 0.00132),
    "foot": (0.547, 0.0268, -0.000725, 0.0676, 0.0131, 5.17e-05, 0.0145, -0.00333, 9.73e-05, 0.00229),
}
JOINTS = ("hip_abduction", "hip_flexion", "knee", "ankle_flexion", "ankle_eversion")
IMU_FRAME = "imu"
PASSIVE = ("right_ankle_eversion", "left_ankle_eversion")
_MIRRORED = np.array([1, 1, 1, -1, 1, 1, 1, -1, -1, 1])  # of a link whose z axis is turned over
# Lengths that the document does not print, of a person of about 1.8 m [m].
_HIP_TO_MIDLINE, _ABDUCTION_TO_FLEXION, _THIGH, _SHANK, _ANKLE_HEIGHT = 0.06, 0.10, 0.43, 0.43, 0.09
_SOLE_LENGTH, _SOLE_WIDTH, _SOLE_BEFORE_ANKLE = 0.27, 0.11, 0.05
_IMU_POSITION = (-0.12, 0.0, 0.35)
HUMANOID = "g1_description/urdf/g1_29dof_rev_1_0.urdf"


def example_urdf(name: str = PANDA) -> Path:
    """Path of an example robot's URDF, relative to the package's folder of robots.

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
    rotation : (3, 3), of the sole's axes (x to the toes, z away from the ground) in the link's.
    centre : (3,), of the rectangle in the link's frame [m].
    """

    frame: str
    rotation: Array
    centre: Array
    length: float
    width: float
    plate: str

    @property
    def placement(self) -> pin.SE3:
        """Of the sole in its link."""
        return pin.SE3(self.rotation, self.centre)

    @property
    def corners(self) -> Array:
        """``(4, 3)`` in the link's frame [m]."""
        signs = np.array([[1, 1, 0], [1, -1, 0], [-1, -1, 0], [-1, 1, 0]])
        return self.centre + 0.5 * signs * np.array([self.length, self.width, 0.0]) @ self.rotation.T


@dataclass(frozen=True)
class SimulatedPlate:
    """A force plate that is fixed in the world. It measures the wrench of the ground on the robot, in its own frame.

    Attributes
    ----------
    rotation : (3, 3), of the plate's axes in the world's.
    origin : (3,), of the plate's frame in the world [m]; the surface is at height zero.
    """

    name: str
    rotation: Array
    origin: Array

    @property
    def placement(self) -> pin.SE3:
        """Of the plate in the world."""
        return pin.SE3(np.array(self.rotation), np.array(self.origin))


@dataclass(frozen=True)
class LeggedRobotDescription:
    """A robot and its stance.

    Attributes
    ----------
    start : joint to position [rad] where it is not zero.
    passive : joints without a motor.
    imu : frame of the inertial measurement unit on the base; empty is the base's own.
    """

    urdf: str
    soles: tuple[Sole, ...]
    plates: tuple[SimulatedPlate, ...]
    start: dict[str, float]
    passive: tuple[str, ...] = ()
    imu: str = ""


def link_parameters() -> dict[str, Array]:
    """Link to its ten parameters about its origin, in the project's order ([vanDerGaag2024]_ table D.1)."""
    links = {"body": np.array(BODY)}
    for side, sign in (("right", np.ones(10)), ("left", _MIRRORED)):
        links |= {f"{side}_{part}": sign * np.array(row) for part, row in LEG.items()}
    return links


def soles() -> tuple[Sole, Sole]:
    """Right and left; each stands on a plate of its own."""
    out = []
    for side, sign in (("right", 1.0), ("left", -1.0)):
        # Foot frame: x down, z to the toes on the right; z to the heel on the left.
        rotation = np.array([[0.0, 0.0, -1.0], [0.0, sign, 0.0], [sign, 0.0, 0.0]])
        centre = np.array([_ANKLE_HEIGHT, 0.0, sign * _SOLE_BEFORE_ANKLE])
        name = f"{side}_foot"
        out.append(Sole(name, rotation, centre, _SOLE_LENGTH, _SOLE_WIDTH, f"{side}_plate"))
    return out[0], out[1]


def plates() -> tuple[SimulatedPlate, SimulatedPlate]:
    """Right and left plate; frames as laboratories lay them, with z down and one turned, sunk below the surface."""
    turned = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
    down = np.diag([1.0, -1.0, -1.0])
    return (
        SimulatedPlate("right_plate", down, np.array([0.05, -0.21, -0.04])),
        SimulatedPlate("left_plate", turned, np.array([0.03, 0.24, -0.04])),
    )


def exoskeleton_urdf() -> str:
    """The robot as URDF text; the root link 'body' has x forward, z up and its origin between the hips."""
    robot = etree.Element("robot", name="exoskeleton")
    parameters = link_parameters()
    _link(robot, "body", parameters["body"])
    for side in ("right", "left"):
        parent, orientation = "body", np.eye(3)
        for joint, part, origin in zip(JOINTS, LEG, _origins(side), strict=True):
            wanted, child = _orientation(side, part), f"{side}_{part}"
            _joint(robot, f"{side}_{joint}", (parent, child), origin, orientation.T @ wanted)
            _link(robot, child, parameters[child])
            parent, orientation = child, wanted
    etree.SubElement(robot, "link", name=IMU_FRAME)
    mount = etree.SubElement(robot, "joint", name="imu_mount", type="fixed")
    etree.SubElement(mount, "origin", xyz=_text(np.array(_IMU_POSITION)), rpy=_text(np.array([0.0, 0.0, np.pi / 2])))
    etree.SubElement(mount, "parent", link="body")
    etree.SubElement(mount, "child", link=IMU_FRAME)
    etree.indent(robot)
    return etree.tostring(robot, encoding="unicode")


_LIMITS = {  # lower, upper [rad], velocity [rad/s], effort [N m]
    "hip_abduction": (-0.4, 0.4, 5.0, 150.0),
    "hip_flexion": (-0.5, 1.9, 8.0, 150.0),
    "knee": (-2.0, 0.05, 8.0, 150.0),
    "ankle_flexion": (-0.7, 0.7, 8.0, 150.0),
    "ankle_eversion": (-0.4, 0.4, 5.0, 0.0),
}


def _orientation(side: str, part: str) -> Array:
    """``(3, 3)`` of a link's axes in the body's where all joints are at zero."""
    x, z = {
        "hip": ((0, -1, 0), (1, 0, 0)),  # outward; abduction about the line of sight
        "foot": ((0, 0, -1), (1, 0, 0)),  # down; eversion about the line of sight
    }.get(part, ((0, 0, -1), (0, -1, 0)))  # down; flexion about the line between the hips
    right = np.column_stack([x, np.cross(z, x), z]).astype(float)
    return right if side == "right" else np.diag([1.0, -1.0, 1.0]) @ right @ np.diag([1.0, 1.0, -1.0])


def _origins(side: str) -> tuple[tuple[float, float, float], ...]:
    """Of the five joints in their parents [m]."""
    out = -1.0 if side == "right" else 1.0
    return (
        (0.0, out * _HIP_TO_MIDLINE, 0.0), (_ABDUCTION_TO_FLEXION, 0.0, 0.0), (_THIGH, 0.0, 0.0), (_SHANK, 0.0, 0.0),
        (0.0, 0.0, 0.0),
    )


def _link(robot: etree._Element, name: str, parameters: Array) -> None:
    mass, com, inertia = mass_com_inertia(parameters)
    inertial = etree.SubElement(etree.SubElement(robot, "link", name=name), "inertial")
    etree.SubElement(inertial, "origin", xyz=_text(com), rpy="0 0 0")
    etree.SubElement(inertial, "mass", value=repr(float(mass)))
    keys = {"ixx": (0, 0), "ixy": (0, 1), "ixz": (0, 2), "iyy": (1, 1), "iyz": (1, 2), "izz": (2, 2)}
    etree.SubElement(inertial, "inertia", {key: repr(float(inertia[index])) for key, index in keys.items()})


def _joint(
    robot: etree._Element, name: str, links: tuple[str, str], origin: tuple[float, float, float], rotation: Array
) -> None:
    joint = etree.SubElement(robot, "joint", name=name, type="revolute")
    rpy = Rotation.from_matrix(rotation).as_euler("xyz")
    etree.SubElement(joint, "origin", xyz=_text(np.array(origin)), rpy=_text(np.round(rpy, 15)))
    for tag, link in zip(("parent", "child"), links, strict=True):
        etree.SubElement(joint, tag, link=link)
    etree.SubElement(joint, "axis", xyz="0 0 1")
    numbers = zip(("lower", "upper", "velocity", "effort"), _LIMITS[name.split("_", 1)[1]], strict=True)
    etree.SubElement(joint, "limit", {key: repr(value) for key, value in numbers})


def _text(values: Array) -> str:
    return " ".join(repr(float(value)) for value in values)


@dataclass(frozen=True)
class Stance:
    """Soles of a robot, the plates below them, and the frame of its inertial measurement unit."""

    soles: tuple[Sole, ...]
    plates: tuple[SimulatedPlate, ...]
    imu: str

    def plate_options(self) -> dict[str, PlateOptions]:
        """The plates as ``robot.plates`` in a configuration has them."""
        plates, options = {plate.name: plate for plate in self.plates}, {}
        for sole in self.soles:
            plate = plates[sole.plate]
            rpy = Rotation.from_matrix(plate.rotation).as_euler("xyz")
            xyz, angles = (tuple(round(float(number), 12) for number in values) for values in (plate.origin, rpy))
            options[plate.name] = PlateOptions(sole.frame, xyz, angles)
        return options


STANCES = {
    "biped": Stance(soles(), plates(), IMU_FRAME),
    "humanoid": Stance(
        (Sole("right_ankle_roll_link", np.eye(3), np.array([0.035, 0.0, -0.033]), 0.17, 0.06, "plate"),),
        (SimulatedPlate("plate", np.diag([1.0, -1.0, -1.0]), np.array([0.02, 0.03, -0.04])),), "imu_in_pelvis",
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


_LEGGED_ROBOTS = dict(zip(LEGGED_ROBOTS, (biped, humanoid), strict=True))


def legged_robot(name: str, crouch: float = 0.3) -> LeggedRobotDescription:
    """A legged robot of the catalogue.

    Raises
    ------
    ModelError
        There is no such robot, or its files are not installed.
    """
    if name not in _LEGGED_ROBOTS:
        raise ModelError(f"simulation: no legged robot '{name}'; choose from {', '.join(_LEGGED_ROBOTS)}")
    return _LEGGED_ROBOTS[name](crouch)
