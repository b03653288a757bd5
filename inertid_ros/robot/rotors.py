"""Rotors of motors as separate bodies, and reaction wheels.

A motor is modelled as a rotor if the reflected inertia of a joint cannot describe its mass and spin. Reaction wheels
are momentum actuators of known inertia that move a floating robot without external wrenches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import attrs
import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.config.robot import RotorOptions, WheelOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import URDF_INERTIA, from_mass_com_inertia, symmetric
from inertid_ros.robot.urdf import parsing

_MAX_IMBALANCE = 1e-3  # of a wheel's inertia; largest deviation from a balanced body of revolution


@dataclass(frozen=True)
class Rotor:
    """Body that turns with a joint at a gear ratio, in bearings on a link ([Wensing2018]_ sec. VI).

    Its parameters are in the rotor frame, which turns with the rotor. ``xyz`` and ``rpy`` are the pose of this frame on
    the link at joint position zero. The inertia of the link in the URDF must not include the rotor.

    Attributes
    ----------
    name : different from the names of links, joints and other rotors.
    link : link of the URDF that carries the rotor; it may be fixed.
    ratio : turns of the rotor per turn of the joint (per metre of a prismatic joint), with sign [1 or rad/m].
    xyz, rpy : pose of the rotor frame in the frame of the link [m], [rad].
    axis : axis of the bearings, in the rotor frame.
    com : prior of the centre of mass, in the rotor frame [m].
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

    @classmethod
    def from_options(cls, name: str, rotor: RotorOptions) -> "Rotor":
        """Rotor from a configuration; without an inertia, a homogeneous cylinder along its axis."""
        inertia = rotor.inertia
        if not inertia:
            axis = np.array(rotor.axis)
            along = np.outer(axis, axis) / max(float(axis @ axis), 1e-300)
            across = rotor.radius**2 / 4 + rotor.length**2 / 12
            cylinder = rotor.mass * (0.5 * rotor.radius**2 * along + across * (np.eye(3) - along))
            inertia = tuple(cylinder[np.triu_indices(3)])
        others = attrs.asdict(rotor, filter=lambda field, _: field.name not in ("inertia", "radius", "length"))
        return cls(name, inertia=inertia, **others)

    @property
    def parameters(self) -> Array:
        """``(10,)`` prior about the origin of the rotor frame."""
        return from_mass_com_inertia(self.mass, self.com, symmetric(self.inertia))

    @property
    def unit_axis(self) -> Array:
        return np.array(self.axis, dtype=float) / np.linalg.norm(self.axis)


def with_rotors(kinematics: pin.Model, rotors: Sequence[Rotor]) -> pin.Model:
    """Copy of a model with every rotor as a body behind an additional revolute joint, after the other joints."""
    extended = pin.Model(kinematics)
    for rotor in rotors:
        if not kinematics.existJointName(rotor.joint):
            names = ", ".join(list(kinematics.names)[1:])
            raise ModelError(
                f"rotor '{rotor.name}': joint '{rotor.joint}' does not exist or is locked; movable: {names}")
        if not kinematics.existFrame(rotor.link, pin.FrameType.BODY):
            raise ModelError(
                f"rotor '{rotor.name}': the URDF has no link '{rotor.link}'; name the link that it is mounted on")
        frame = kinematics.frames[kinematics.getFrameId(rotor.link, pin.FrameType.BODY)]
        placement = frame.placement * pin.SE3(pin.rpy.rpyToMatrix(*rotor.rpy), np.array(rotor.xyz, dtype=float))
        joint = extended.addJoint(
            frame.parentJoint, pin.JointModelRevoluteUnaligned(*rotor.unit_axis), placement, rotor.name)
        extended.appendBodyToJoint(joint, pin.Inertia.FromDynamicParameters(rotor.parameters), pin.SE3.Identity())
    return extended


@dataclass(frozen=True)
class MountedWheels:
    """Wheels on the bodies of a robot.

    Attributes
    ----------
    bodies : index of the moving body that carries each wheel.
    axes : (w, 3), inertia times unit axis, in the frame of the carrying body [kg m^2].
    """

    names: tuple[str, ...] = ()
    bodies: tuple[int, ...] = ()
    axes: Array = field(default_factory=lambda: np.zeros((0, 3)))


def completed(root: etree._Element, wheels: Mapping[str, WheelOptions]) -> dict[str, WheelOptions]:
    """Wheels by name; missing values come from the joint of the same name in the URDF.

    A wheel must be balanced; its mass, and its inertia while it does not turn, belong to the link that carries the
    wheel. In recordings, the velocity of the joint with the wheel's name is the speed of the wheel relative to this
    link [rad/s]. ModelError for values that are missing in options and URDF, and for a wheel that is out of balance in
    the URDF.
    """
    joints, links = parsing.by_name(root, "joint"), parsing.by_name(root, "link")
    return {name: _completed(name, wheel, joints.get(name), links) for name, wheel in wheels.items()}


def mount(kinematics: pin.Model, wheels: Mapping[str, WheelOptions]) -> MountedWheels:
    """Mount wheels from :func:`completed` on a robot with a free base; ModelError if a link does not exist."""
    bodies, axes = [], np.zeros((len(wheels), 3))
    for index, (name, wheel) in enumerate(wheels.items()):
        if not kinematics.existFrame(wheel.link, pin.FrameType.BODY):
            links = ", ".join(frame.name for frame in kinematics.frames if frame.type == pin.FrameType.BODY)
            raise ModelError(f"wheel '{name}': the URDF has no link '{wheel.link}'; its links are {links}")
        frame = kinematics.frames[kinematics.getFrameId(wheel.link, pin.FrameType.BODY)]
        bodies.append(int(frame.parentJoint) - 1)
        axis = np.array(wheel.axis) / np.linalg.norm(wheel.axis)
        axes[index] = wheel.inertia * (frame.placement.rotation @ axis)
    return MountedWheels(tuple(wheels), tuple(bodies), axes)


def _completed(name: str, wheel: WheelOptions, joint: etree._Element | None,
        links: Mapping[str, etree._Element]) -> WheelOptions:
    if joint is not None:
        if joint.get("type") not in ("continuous", "revolute"):
            problem = f"is {joint.get('type')} and cannot be a wheel; name a joint that turns"
            raise ModelError(f"{parsing.place(joint)}: {problem}")
        axis, (parent, child) = parsing.axis(joint), parsing.ends(joint)
        turned = pin.rpy.rpyToMatrix(*parsing.origin(joint)[1]) @ axis
        wheel = attrs.evolve(wheel, axis=wheel.axis or tuple(turned.tolist()), link=wheel.link or parent)
        inertial = links[child].find("inertial")
        if not wheel.inertia and inertial is not None:
            wheel = attrs.evolve(wheel, inertia=_about_axis(name, inertial, axis))
    if not wheel.inertia:
        raise ModelError(
            f"wheel '{name}': its inertia is missing, so that its momentum is unknown; give it in the URDF or"
            f" in robot.wheels, such as {name}=inertia:0.05 [kg m^2]")
    for what in ("link", "axis"):
        if not getattr(wheel, what):
            raise ModelError(
                f"wheel '{name}': the URDF has no joint of this name and robot.wheels no {what}; give"
                f" {name}=link:NAME,axis:X Y Z,inertia:VALUE")
    return wheel


def _about_axis(name: str, inertial: etree._Element, axis: Array) -> float:
    """Moment of inertia [kg m^2] of a balanced wheel about the axis of its joint."""
    where = f"URDF wheel '{name}'"
    mass = parsing.number(inertial, "mass", "value")
    elements = [parsing.number(inertial, "inertia", key) for key in URDF_INERTIA]
    place, angles = parsing.origin(inertial)
    turn = pin.rpy.rpyToMatrix(*angles)
    inertia = turn @ symmetric(elements) @ turn.T
    about = float(axis @ inertia @ axis)
    off = place - axis * (place @ axis)
    across = inertia - about * np.outer(axis, axis)
    values = np.sort(np.abs(np.linalg.eigvalsh(across)))[1:]  # two equal moments across the axis, none along it
    wobble = max(mass * float(off @ off), float(np.abs(inertia @ axis - about * axis).max()), float(np.ptp(values)))
    if about <= 0:
        raise ModelError(
            f"{where}: its inertia about the axis is {about:g} kg m^2, so that its momentum is unknown; give it in"
            f" the URDF or as robot.wheels {name}=inertia:VALUE")
    if wobble > _MAX_IMBALANCE * about:
        raise ModelError(
            f"{where}: is out of balance by {wobble:.3g} kg m^2, {100 * wobble / about:.1f} % of its inertia about the"
            " axis, so that its angle changes the robot; correct its <inertial>, or identify it as a joint")
    return about
