"""A biped with the inertial parameters of the Symbitron lower-limb exoskeleton ([vanDerGaag2024]_ table D.1, column
"Real").

The table gives mass, first moment and inertia about the link's origin, whose z axis is the joint's ([vanDerGaag2024]_
sec. 2.2.2). What it does not give is the geometry; the lengths here are those of a person of 1.8 m, and the axes are
laid so that the centres of mass lie where the parts of an exoskeleton are: thigh and shank along their x axes, the
foot's before and below the ankle, the torso's above and behind the hips. The left leg mirrors the right one: z axes are
turned over, as the signs of the table show, and joints of the same name move symmetrically at equal positions.
"""

import numpy as np
from lxml import etree
from scipy.spatial.transform import Rotation

from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.inertial_parameters import mass_com_inertia

from .soles import SimulatedPlate, Sole

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
IMU = "imu"
PASSIVE = ("right_ankle_eversion", "left_ankle_eversion")
_MIRRORED = np.array([1, 1, 1, -1, 1, 1, 1, -1, -1, 1])  # of a link whose z axis is turned over
# Lengths that the document does not print, of a person of about 1.8 m [m].
_HIP_TO_MIDLINE, _ABDUCTION_TO_FLEXION, _THIGH, _SHANK, _ANKLE_HEIGHT = 0.06, 0.10, 0.43, 0.43, 0.09
_SOLE_LENGTH, _SOLE_WIDTH, _SOLE_BEFORE_ANKLE = 0.27, 0.11, 0.05
_IMU_POSITION = (-0.12, 0.0, 0.35)


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
    etree.SubElement(robot, "link", name=IMU)
    mount = etree.SubElement(robot, "joint", name="imu_mount", type="fixed")
    etree.SubElement(mount, "origin", xyz=_text(np.array(_IMU_POSITION)), rpy=_text(np.array([0.0, 0.0, np.pi / 2])))
    etree.SubElement(mount, "parent", link="body")
    etree.SubElement(mount, "child", link=IMU)
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
        (0.0, out * _HIP_TO_MIDLINE, 0.0),
        (_ABDUCTION_TO_FLEXION, 0.0, 0.0),
        (_THIGH, 0.0, 0.0),
        (_SHANK, 0.0, 0.0),
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
