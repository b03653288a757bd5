"""Rotors as rigid bodies of their own: motors whose mass and spin a joint's reflected inertia cannot describe."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError

from .inertial_parameters import from_mass_com_inertia

_URDF_ORDER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


@dataclass(frozen=True)
class Rotor:
    """A body that turns with a joint by a gear ratio, in bearings on some link ([Wensing2018]_ sec. VI).

    Its parameters are about the origin of its own frame, which turns with it; at a joint position of zero that frame
    is placed on the link by ``xyz`` and ``rpy``. The URDF's inertia of the link must not contain it.

    Attributes
    ----------
    name : str
        Of the body, unlike that of any link.
    joint : str
        Movable joint that it turns with.
    link : str
        Link of the URDF that it is mounted on, also one that does not move.
    ratio : float
        Turns of the rotor per turn of the joint (per metre of a prismatic one), with sign [1 or rad/m].
    xyz, rpy : tuple of float
        Its frame in that of the link [m], [rad].
    axis : tuple of float
        Of its bearings, in its frame.
    mass : float
        Prior [kg].
    com : tuple of float
        Prior of the centre of mass in its frame [m].
    inertia : tuple of float
        Prior about the centre of mass [kg m^2] (xx, xy, xz, yy, yz, zz).
    """

    name: str
    joint: str
    link: str
    ratio: float
    mass: float
    inertia: tuple[float, ...]
    com: tuple[float, ...] = (0.0, 0.0, 0.0)
    xyz: tuple[float, ...] = (0.0, 0.0, 0.0)
    rpy: tuple[float, ...] = (0.0, 0.0, 0.0)
    axis: tuple[float, ...] = (0.0, 0.0, 1.0)

    def __post_init__(self) -> None:
        for name, length in (("inertia", 6), ("com", 3), ("xyz", 3), ("rpy", 3), ("axis", 3)):
            if len(getattr(self, name)) != length:
                raise ModelError(f"rotor '{self.name}': {name} has {len(getattr(self, name))} numbers; give {length}")
        numbers = (self.ratio, self.mass, *self.inertia, *self.com, *self.xyz, *self.rpy, *self.axis)
        if not np.isfinite(numbers).all():
            raise ModelError(f"rotor '{self.name}': holds a number that is not finite; correct it")
        if self.ratio == 0 or not self.mass > 0 or not any(self.axis):
            raise ModelError(f"rotor '{self.name}': ratio, mass or axis is zero or below; correct it")

    @classmethod
    def cylinder(
        cls, name: str, joint: str, link: str, ratio: float, mass: float, size: tuple[float, float], **placed: Any
    ) -> "Rotor":
        """A homogeneous cylinder of a radius and a length [m] along its axis."""
        radius, length = size
        axis = np.array(placed.get("axis", (0.0, 0.0, 1.0)), dtype=float)
        along = np.outer(axis, axis) / max(float(axis @ axis), 1e-300)
        inertia = mass * (0.5 * radius**2 * along + (radius**2 / 4 + length**2 / 12) * (np.eye(3) - along))
        return cls(name, joint, link, ratio, mass, tuple(inertia[k] for k in _URDF_ORDER), **placed)

    @property
    def parameters(self) -> Array:
        """``(10,)`` prior about the origin of its frame."""
        xx, xy, xz, yy, yz, zz = self.inertia
        return from_mass_com_inertia(self.mass, self.com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])

    @property
    def unit_axis(self) -> Array:
        """``(3,)`` unit vector of the axis."""
        return np.array(self.axis, dtype=float) / np.linalg.norm(self.axis)


def with_rotors(kinematics: pin.Model, rotors: Sequence[Rotor]) -> pin.Model:
    """Copy of a model with every rotor as a body behind a revolute joint of its own, after the other joints.

    Raises
    ------
    ModelError
        A rotor's joint or link does not exist.
    """
    extended = pin.Model(kinematics)
    for rotor in rotors:
        if not kinematics.existJointName(rotor.joint):
            names = ", ".join(list(kinematics.names)[1:])
            raise ModelError(
                f"rotor '{rotor.name}': joint '{rotor.joint}' does not exist or is locked; movable: {names}"
            )
        if not kinematics.existFrame(rotor.link, pin.FrameType.BODY):
            raise ModelError(
                f"rotor '{rotor.name}': the URDF has no link '{rotor.link}'; name the link that it is mounted on"
            )
        frame = kinematics.frames[kinematics.getFrameId(rotor.link, pin.FrameType.BODY)]
        placement = frame.placement * pin.SE3(pin.rpy.rpyToMatrix(*rotor.rpy), np.array(rotor.xyz, dtype=float))
        joint = extended.addJoint(
            frame.parentJoint, pin.JointModelRevoluteUnaligned(*rotor.unit_axis), placement, rotor.name
        )
        extended.appendBodyToJoint(joint, pin.Inertia.FromDynamicParameters(rotor.parameters), pin.SE3.Identity())
    return extended
