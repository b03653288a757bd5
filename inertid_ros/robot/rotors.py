"""Rotors of motors as separate bodies, and reaction wheels.

Rotors are motors whose mass and spin the reflected inertia of a joint cannot describe. Reaction wheels are momentum
actuators of known inertia that move a floating robot without external wrenches.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import from_mass_com_inertia
from inertid_ros.robot.urdf import parsing

_MAX_IMBALANCE = 1e-3  # of a wheel's inertia; a held wheel may differ so much from a balanced body of revolution
_URDF_ORDER = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


@dataclass(frozen=True)
class Rotor:
    """Body that turns with a joint by a gear ratio, in bearings on some link ([Wensing2018]_ sec. VI).

    Its parameters are about the origin of its own frame, which turns with it; at a joint position of zero that frame
    is placed on the link by ``xyz`` and ``rpy``. The URDF's inertia of the link must not contain it.

    Attributes
    ----------
    name : no link may have it.
    link : link of the URDF that it is mounted on, also one that does not move.
    ratio : turns of the rotor per turn of the joint (per metre of a prismatic one), with sign [1 or rad/m].
    xyz, rpy : its frame in that of the link [m], [rad].
    axis : of its bearings, in its frame.
    com : prior of the centre of mass in its frame [m].
    inertia : prior about the centre of mass [kg m^2] (xx, xy, xz, yy, yz, zz).
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
        """Homogeneous cylinder of ``size`` radius, length [m] along its axis."""
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


@dataclass(frozen=True)
class Wheel:
    """Balanced wheel in bearings on a link. Its mass and its inertia at rest belong to that link.

    Attributes
    ----------
    name : str
        Name of its joint in the recording, whose velocity is the wheel's speed relative to the link [rad/s]. A joint of
        this name in the URDF is held, and supplies what is not given here.
    inertia : about its axis [kg m^2]; must be known, as it sets the scale of all parameters. NaN: from the URDF.
    link : link that it is mounted on; empty: from the URDF.
    axis : axis of positive speed, in the frame of the link; empty: from the URDF.
    """

    name: str
    inertia: float = float("nan")
    link: str = ""
    axis: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.inertia <= 0 or np.isinf(self.inertia):
            raise ModelError(f"wheel '{self.name}': inertia is {self.inertia:g} kg m^2; give a positive one")
        if self.axis and (len(self.axis) != 3 or not np.isfinite(self.axis).all() or not any(self.axis)):
            raise ModelError(f"wheel '{self.name}': axis {self.axis} is not three finite numbers, not all zero")

    @property
    def unit_axis(self) -> Array:
        """``(3,)`` unit vector of the axis."""
        return np.array(self.axis, dtype=float) / np.linalg.norm(self.axis)


@dataclass(frozen=True)
class MountedWheels:
    """Wheels on the bodies of a robot.

    Attributes
    ----------
    bodies : moving body that each is mounted on.
    axes : (w, 3), inertia times unit axis in the frame of that body [kg m^2].
    """

    names: tuple[str, ...] = ()
    bodies: tuple[int, ...] = ()
    axes: Array = field(default_factory=lambda: np.zeros((0, 3)))


def completed(root: etree._Element, wheels: Sequence[Wheel]) -> tuple[Wheel, ...]:
    """Wheels, completed from the joints of their names in the URDF.

    Raises
    ------
    ModelError
        Inertia, link or axis is neither given nor in the URDF, or the wheel in the URDF is out of balance.
    """
    joints = {joint.get("name"): joint for joint in root.findall("joint")}
    links = {link.get("name"): link for link in root.findall("link")}
    return tuple(_completed(wheel, joints.get(wheel.name), links) for wheel in wheels)


def mount(kinematics: pin.Model, wheels: Sequence[Wheel]) -> MountedWheels:
    """Wheels, as completed, on the bodies of a robot with a free base.

    Raises
    ------
    ModelError
        A wheel is named twice, or its link does not exist.
    """
    names, bodies, axes = tuple(wheel.name for wheel in wheels), [], np.zeros((len(wheels), 3))
    for index, wheel in enumerate(wheels):
        if names.count(wheel.name) > 1:
            raise ModelError(f"wheel '{wheel.name}': is given twice; name every wheel once")
        if not kinematics.existFrame(wheel.link, pin.FrameType.BODY):
            links = ", ".join(frame.name for frame in kinematics.frames if frame.type == pin.FrameType.BODY)
            raise ModelError(f"wheel '{wheel.name}': the URDF has no link '{wheel.link}'; its links are {links}")
        frame = kinematics.frames[kinematics.getFrameId(wheel.link, pin.FrameType.BODY)]
        bodies.append(int(frame.parentJoint) - 1)
        axes[index] = wheel.inertia * (frame.placement.rotation @ wheel.unit_axis)
    return MountedWheels(names, tuple(bodies), axes)


def _completed(wheel: Wheel, joint: etree._Element | None, links: dict[str | None, etree._Element]) -> Wheel:
    if joint is not None:
        where = f"URDF joint '{wheel.name}'"
        if joint.get("type") not in ("continuous", "revolute"):
            raise ModelError(f"{where}: is {joint.get('type')} and cannot be a wheel; name a joint that turns")
        axis = parsing.axis(joint, where)
        if not wheel.axis:
            turned = pin.rpy.rpyToMatrix(*parsing.origin(joint, where)[1]) @ axis
            wheel = replace(wheel, axis=tuple(turned.tolist()))
        wheel = replace(wheel, link=wheel.link or str(joint.find("parent").get("link")))
        inertial = links[joint.find("child").get("link")].find("inertial")
        if np.isnan(wheel.inertia) and inertial is not None:
            wheel = replace(wheel, inertia=_about_axis(wheel.name, inertial, axis))
    if np.isnan(wheel.inertia):
        raise ModelError(
            f"wheel '{wheel.name}': its inertia is missing, and without it no momentum is known; give it in the URDF or"
            f" in robot.wheels, such as {wheel.name}=inertia:0.05 [kg m^2]"
        )
    for name in ("link", "axis"):
        if not getattr(wheel, name):
            raise ModelError(
                f"wheel '{wheel.name}': the URDF has no joint of this name and robot.wheels no {name}; give"
                f" {wheel.name}=link:NAME,axis:X Y Z,inertia:VALUE"
            )
    return wheel


def _about_axis(name: str, inertial: etree._Element, axis: Array) -> float:
    """Moment of inertia [kg m^2] of a balanced wheel about its axis through the joint."""
    where = f"URDF wheel '{name}'"
    mass = parsing.number(inertial.find("mass"), "value", where, "mass")
    element = inertial.find("inertia")
    keys = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    xx, xy, xz, yy, yz, zz = (parsing.number(element, key, where, "inertia", default=0.0) for key in keys)
    place, angles = parsing.origin(inertial, where)
    turn = pin.rpy.rpyToMatrix(*angles)
    inertia = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
    about = float(axis @ inertia @ axis)
    off = place - axis * (place @ axis)
    across = inertia - about * np.outer(axis, axis)
    values = np.sort(np.abs(np.linalg.eigvalsh(across)))[1:]  # two equal moments across the axis, none along it
    wobble = max(mass * float(off @ off), float(np.abs(inertia @ axis - about * axis).max()), float(np.ptp(values)))
    if about <= 0:
        raise ModelError(
            f"{where}: its inertia about the axis is {about:g} kg m^2, and without it no momentum is known; give it in"
            f" the URDF or as robot.wheels {name}=inertia:VALUE"
        )
    if wobble > _MAX_IMBALANCE * about:
        raise ModelError(
            f"{where}: is out of balance by {wobble:.3g} kg m^2, {100 * wobble / about:.1f} % of its inertia about the"
            " axis, so that holding it changes the robot; correct its <inertial>, or identify it as a joint"
        )
    return about
