"""Options of the robot: how its URDF is read and what is known of it beside."""

from collections.abc import Mapping

import attrs

from inertid_ros.core.errors import ConfigurationError
from inertid_ros.core.expressions import Expression

from .option_fields import REQUIRED, named, option, vector

BASES = ("fixed", "free")
# In the order of msg/JointDynamics.msg; docs/architecture.md ("To add a term of a drive") says what else knows them.
DRIVE_TERMS = ("rotor_inertia", "viscous", "coulomb", "offset", "stiffness", "stribeck")
PLATE_MEASUREMENTS = ("wrench", "pressure")
TERM_SIGNALS = ("q", "v", "a", "direction", "load")
"""What formulas of user terms may use: position, velocity, acceleration, direction of sliding from -1 to 1, and the
torque that the bodies need, of the joint or of another one (``q["elbow"]``) [rad or m, per s, per s^2, 1, N m or N]."""
TERM_SHAPES: Mapping[str, tuple[tuple[str, ...], bool]] = {
    "spring": (("q",), False),
    "counterbalance": (("sin(q)", "cos(q)"), False),
    "polynomial": (("q", "q**2", "q**3"), False),
    "quadratic_viscous": (("abs(v)*v",), True),
    "load_friction": (("abs(load)*direction",), True),
}
"""Name of a shape to its formulas, and whether their parameters cannot be below zero."""


@attrs.frozen
class CouplingOptions:
    """A drive that turns with several joints and has a rotor and friction of its own."""

    joints: tuple[str, ...] = option(REQUIRED, "joints that it turns with, two or more", of=str, many=True)
    ratios: tuple[float, ...] = option(REQUIRED, "turns of the drive per turn of each of these joints [1 or rad/m]",
        -1e6, 1e6, of=float, many=True)

    def __attrs_post_init__(self) -> None:
        if len(self.joints) < 2 or len(set(self.joints)) != len(self.joints):
            raise ConfigurationError(f"joints is {list(self.joints)}; give two or more, each once")
        if len(self.ratios) != len(self.joints):
            raise ConfigurationError(f"ratios has {len(self.ratios)} values; give one for each of the joints")


@attrs.frozen
class RotorOptions:
    """A motor that is a body of its own, not part of the URDF's links."""

    joint: str = option(REQUIRED, "joint that it turns with", of=str)
    link: str = option(REQUIRED, "link of the URDF that carries it", of=str)
    ratio: float = option(REQUIRED, "turns per turn of the joint, with sign [1 or rad/m]", -1e6, 1e6, of=float)
    mass: float = option(REQUIRED, "of the rotor [kg]", 1e-9, 1e6, of=float)
    radius: float = option(0.0, "of a homogeneous cylinder along the axis [m]; 0 where inertia is given", 0.0, 100.0)
    length: float = option(0.0, "of this cylinder [m]; 0 where inertia is given", 0.0, 100.0)
    inertia: tuple[float, ...] = option((), "in place of radius and length: xx, xy, xz, yy, yz, zz about the centre of"
        " mass [kg m^2]", -1e9, 1e9, of=float)
    com: tuple[float, ...] = vector((0.0, 0.0, 0.0), "centre of mass in its frame [m]", 100.0)
    xyz: tuple[float, ...] = vector((0.0, 0.0, 0.0), "origin of its frame in that of the link [m]", 100.0)
    rpy: tuple[float, ...] = vector((0.0, 0.0, 0.0), "roll, pitch and yaw of its frame in that of the link [rad]", 10.0)
    axis: tuple[float, ...] = vector((0.0, 0.0, 1.0), "of its bearings, in its frame", 1e6)

    def __attrs_post_init__(self) -> None:
        if self.inertia and len(self.inertia) != 6:
            raise ConfigurationError(f"inertia has {len(self.inertia)} values; give 6")
        if bool(self.inertia) == bool(self.radius and self.length) or (self.inertia and self.radius + self.length > 0):
            raise ConfigurationError("inertia or radius and length both define the inertia; give one of the two")
        if self.ratio == 0 or not any(self.axis):
            raise ConfigurationError("ratio or axis is zero; correct it")


@attrs.frozen
class ContactOptions:
    """A force/torque sensor on the robot."""

    frame: str = option("", "frame in which the wrench is measured; empty is the frame of this name")


@attrs.frozen
class PlateOptions:
    """A force plate fixed in the world."""

    frame: str = option(REQUIRED, "frame of the robot that stands on it", of=str)
    xyz: tuple[float, ...] = vector((0.0, 0.0, 0.0), "its origin in the world [m]", 1e4)
    rpy: tuple[float, ...] = vector((0.0, 0.0, 0.0), "its roll, pitch and yaw in the world [rad]", 10.0)
    measures: str = option("wrench", "wrench, or pressure of a balance board: the force along z and its centre alone",
        choices=PLATE_MEASUREMENTS)


@attrs.frozen
class WheelOptions:
    """A reaction wheel of a free base."""

    inertia: float = option(0.0, "about its axis [kg m^2]; 0 takes the URDF's", 0.0, 1e6)
    link: str = option("", "link that carries it; empty takes the URDF's")
    axis: tuple[float, ...] = option((), "of its bearings, in the frame of the link; empty takes the URDF's", -1e6, 1e6,
        of=float)

    def __attrs_post_init__(self) -> None:
        if self.axis and (len(self.axis) != 3 or not any(self.axis)):
            raise ConfigurationError(f"axis is {list(self.axis)}; give three numbers, not all zero")


@attrs.frozen
class TermOptions:
    """Torque of a joint beside those of its bodies and its drive."""

    joint: str = option(REQUIRED, "on which it acts", of=str)
    shape: str = option("", "spring (stiffness of either sign, negative where a joint is balanced too much),"
        " counterbalance (sine and cosine of the position), polynomial (cubic in the position), quadratic_viscous"
        " (speed squared), load_friction (in proportion to the torque of the bodies); empty where expressions are"
        " given", choices=("", *TERM_SHAPES))
    expressions: tuple[str, ...] = option((), "formulas in place of a shape, each with a parameter of its own, such as"
        " sin(2*q) or abs(v)*v")
    values: tuple[float, ...] = option((), "of the parameters, where they are known [N m or N per unit of the formula];"
        " empty identifies them", -1e9, 1e9, of=float)
    non_negative: bool = option(False, "parameters cannot be below zero, as those of friction")
    always: bool = option(False, "keep it also where held-out blocks of the data are not predicted better with it")

    def __attrs_post_init__(self) -> None:
        if bool(self.shape) == bool(self.expressions):
            raise ConfigurationError("shape or expressions say what the term is; give one of the two")
        for text in self.expressions:
            try:
                Expression(text, TERM_SIGNALS)
            except ValueError as error:
                raise ConfigurationError(f"expressions: {error}") from None
        count = len(self.expressions or TERM_SHAPES[self.shape][0])
        if self.values and len(self.values) != count:
            raise ConfigurationError(f"values has {len(self.values)} values; give one for each of {count} formulas")


@attrs.frozen
class LoadOptions:
    """A known body that some recordings were made with, fixed to a link."""

    link: str = option(REQUIRED, "link of the URDF that holds it", of=str)
    mass: float = option(REQUIRED, "of the load [kg]", 1e-9, 1e6, of=float)
    recordings: tuple[str, ...] = option(REQUIRED, "recordings that were made with it, by name or pattern such as"
        " loaded_*", of=str, many=True)
    com: tuple[float, ...] = vector((0.0, 0.0, 0.0), "its centre of mass in the frame of the link [m]", 100.0)
    inertia: tuple[float, ...] = option((), "xx, xy, xz, yy, yz, zz about its centre of mass, in the axes of the link"
        " [kg m^2]; empty is a point mass", -1e9, 1e9, of=float)

    def __attrs_post_init__(self) -> None:
        if self.inertia and len(self.inertia) != 6:
            raise ConfigurationError(f"inertia has {len(self.inertia)} values; give 6")


@attrs.frozen
class RobotOptions:
    """How to read the URDF."""

    locked_joints: Mapping[str, float] = named(float, "position at which a joint is held still [rad or m]; the links"
        " behind it move with its parent", "locked_joint_names", minimum=-1e6, maximum=1e6)
    joint_names: Mapping[str, str] = named(str, "name in the URDF of a joint that recordings and controllers call"
        " otherwise; one * in both names stands for the same text, as in fer_*: panda_*", "recorded_joint_names")
    drive_terms: tuple[str, ...] = option(DRIVE_TERMS, "drive parameters identified per joint", choices=DRIVE_TERMS)
    couplings: Mapping[str, CouplingOptions] = named(CouplingOptions, "drives that turn with several joints",
        "coupling_names")
    rotors: Mapping[str, RotorOptions] = named(RotorOptions, "motors that are bodies of their own", "rotor_names")
    stribeck_speeds: Mapping[str, float] = named(float, "speed of a joint's Stribeck friction in place of 0.2 [rad/s or"
        " m/s]; identify.fit_stribeck_speed finds it", "stribeck_joint_names", minimum=1e-9, maximum=1e6)
    terms: Mapping[str, TermOptions] = named(TermOptions, "torque of joints beside those of bodies and drives, linear"
        " in unknowns", "term_names")
    loads: Mapping[str, LoadOptions] = named(LoadOptions, "known bodies that some recordings were made with; their"
        " torque is taken off", "load_names")
    gravity: tuple[float, ...] = option((0.0, 0.0, -9.81), "in the frame of the root link, or of the world where the"
        " base is free [m/s^2]", -100.0, 100.0, length=3)
    effort_scale: Mapping[str, float] = named(float, "factor on a joint's measured effort: gear ratio times torque"
        " constant where drives report currents, -1 where the sign is the opposite one [N m or N per unit of effort]",
        "effort_scale_joint_names", minimum=-1e9, maximum=1e9)
    base: str = option("fixed", "fixed, or free: the root link moves in the world and is identified like the others",
        choices=BASES)
    contacts: Mapping[str, ContactOptions] = named(ContactOptions, "force/torque sensors on the robot, by the name of"
        " their wrench in recordings", "contact_names")
    plates: Mapping[str, PlateOptions] = named(PlateOptions, "force plates fixed in the world, by the name of their"
        " wrench in recordings", "plate_names")
    wheels: Mapping[str, WheelOptions] = named(WheelOptions, "reaction wheels of a free base, by the name of their"
        " joint in recordings", "wheel_names")

    def __attrs_post_init__(self) -> None:
        for recorded, own in self.joint_names.items():
            if not own or recorded.count("*") > 1 or own.count("*") != recorded.count("*"):
                raise ConfigurationError(
                    f"joint_names.{recorded} is {own!r}; give a name for a name, or one * in both, as in fer_*: panda_*"
                )
        if 0.0 in self.effort_scale.values():
            raise ConfigurationError("effort_scale holds a zero, which leaves no effort; correct it")
        if self.wheels and self.base != "free":
            raise ConfigurationError("wheels turn a robot that floats; set base to free")
