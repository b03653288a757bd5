"""Reaction wheels: momentum actuators of known inertia, which move a floating robot without external wrenches."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.robot.urdf import parsing

_BALANCED = 1e-3  # of the wheel's own inertia; how unlike a balanced body of revolution it may be


@dataclass(frozen=True)
class Wheel:
    """A balanced wheel in bearings on a link. Its mass and its inertia at rest belong to that link.

    Attributes
    ----------
    name : str
        Of its joint in the recording, whose velocity is the wheel's speed relative to the link [rad/s]. If the URDF has
        a joint of this name, it is held, and what is not given here is read from the URDF.
    inertia : float
        About its axis [kg m^2]; must be known, as it sets the scale of all parameters. NaN where not given.
    link : str
        Of the URDF that it is mounted on; empty where not given.
    axis : tuple of float
        Of its bearings, in the frame of the link; the speed counts about it by the right hand. Empty where not given.
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
    """Wheels on the bodies of a robot, as momentum equations take them.

    Attributes
    ----------
    names : tuple of str
        ``w`` names of their joints.
    bodies : tuple of int
        Index of the moving body that each is mounted on.
    axes : ndarray, shape (w, 3)
        Inertia times unit axis in the frame of that body [kg m^2].
    """

    names: tuple[str, ...]
    bodies: tuple[int, ...]
    axes: Array


def completed(root: etree._Element, wheels: Sequence[Wheel]) -> tuple[Wheel, ...]:
    """Wheels with what they lack taken from the joints of their names in the URDF.

    Raises
    ------
    ModelError
        Inertia, link or axis is neither given nor in the URDF, or the wheel of the URDF is out of balance.
    """
    joints = {joint.get("name"): joint for joint in root.findall("joint")}
    links = {link.get("name"): link for link in root.findall("link")}
    return tuple(_completed(wheel, joints.get(wheel.name), links) for wheel in wheels)


def mount(kinematics: pin.Model, wheels: Sequence[Wheel]) -> MountedWheels:
    """Complete wheels on the bodies of a robot with a free base.

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
            known = ", ".join(frame.name for frame in kinematics.frames if frame.type == pin.FrameType.BODY)
            raise ModelError(f"wheel '{wheel.name}': the URDF has no link '{wheel.link}'; its links are {known}")
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
    for field in ("link", "axis"):
        if not getattr(wheel, field):
            raise ModelError(
                f"wheel '{wheel.name}': the URDF has no joint of this name and robot.wheels no {field}; give"
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
    if wobble > _BALANCED * about:
        raise ModelError(
            f"{where}: is out of balance by {wobble:.3g} kg m^2, {100 * wobble / about:.1f} % of its inertia about the"
            " axis, so that holding it changes the robot; correct its <inertial>, or identify it as a joint"
        )
    return about
