"""A quadruped's leg of three links and three rotors, from the numbers in ``cheetah3_leg/model.json``."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from support.robots.random_robots import load_with

from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import Ellipsoid, mass_com_inertia
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.rotors import Rotor

LINKS, ROTORS = ("abad", "thigh", "shank"), ("abad_rotor", "hip_rotor", "knee_rotor")
JOINTS = ("abad_joint", "hip_joint", "knee_joint")
_ORDER = (0, 1, 2, 3, 4, 9, 5, 8, 7, 6)  # of the file's (m, h, xx, yy, zz, yz, xz, xy)
_AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def read_leg(folder: Path) -> dict[str, Any]:
    """Numbers of the leg in a folder of data sets."""
    numbers: dict[str, Any] = json.loads((folder / "cheetah3_leg" / "model.json").read_text(encoding="utf-8"))
    return numbers


def bodies(leg: dict[str, Any], which: str) -> Array:
    """``(6, 10)`` parameters of links and rotors: ``prior`` or ``identified_cheetah_software``."""
    return np.array(leg[which])[:, _ORDER]


def bounds(leg: dict[str, Any]) -> dict[str, tuple[Ellipsoid, ...]]:
    """The ellipsoid around every body."""
    numbers = zip(LINKS + ROTORS, leg["bounding_center"], leg["bounding_semiaxes"], strict=True)
    return {name: (Ellipsoid.from_axes(np.array(centre), np.eye(3), axes),) for name, centre, axes in numbers}


def leg_model(leg: dict[str, Any], drive_terms: tuple[str, ...] = ("viscous", "coulomb")) -> RobotModel:
    """The leg on a base that does not move."""
    prior = bodies(leg, "prior")
    rotors = tuple(
        _rotor(index, joint, pi, leg["gear"])
        for index, (joint, pi) in enumerate(zip(leg["joints"], prior[3:], strict=True))
    )
    gravity = tuple(leg["gravity"])
    return load_with(_urdf(leg, prior[:3]), rotors=rotors, drive_terms=drive_terms, gravity=gravity)


def _rotor(index: int, joint: dict[str, Any], pi: Array, gear: float) -> Rotor:
    mass, com, inertia = mass_com_inertia(pi)
    return Rotor(
        name=ROTORS[index],
        joint=JOINTS[index],
        link=("body", *LINKS)[index],
        ratio=gear,
        mass=float(mass),
        com=tuple(com),
        inertia=tuple(inertia[np.triu_indices(3)]),
        xyz=tuple(joint["rotor_origin"]),
        rpy=tuple(pin.rpy.matrixToRpy(np.array(joint["rotor_R"]))),
        axis=_AXES[joint["axis"]],
    )


def _urdf(leg: dict[str, Any], links: Array) -> str:
    elements = ['<link name="body"/>']
    for index, (joint, pi) in enumerate(zip(leg["joints"], links, strict=True)):
        mass, com, inertia = mass_com_inertia(pi)
        xx, xy, xz, yy, yz, zz = inertia[np.triu_indices(3)]
        elements += [
            f'<link name="{LINKS[index]}"><inertial><origin xyz="{_text(com)}"/><mass value="{float(mass)!r}"/>'
            f'<inertia ixx="{xx}" ixy="{xy}" ixz="{xz}" iyy="{yy}" iyz="{yz}" izz="{zz}"/></inertial></link>',
            f'<joint name="{JOINTS[index]}" type="revolute"><parent link="{("body", *LINKS)[index]}"/>'
            f'<child link="{LINKS[index]}"/><axis xyz="{_text(_AXES[joint["axis"]])}"/>'
            f'<origin xyz="{_text(joint["origin"])}" rpy="{_text(pin.rpy.matrixToRpy(np.array(joint["R_parent"])))}"/>'
            '<limit lower="-3" upper="3" velocity="20" effort="200"/></joint>',
        ]
    return f'<robot name="cheetah_leg">{"".join(elements)}</robot>'


def _text(numbers: Any) -> str:
    return " ".join(repr(float(number)) for number in numbers)
