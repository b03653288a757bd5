"""Options of the robot: interpretation of its URDF, and properties that are not in a URDF."""

from collections.abc import Mapping

import attrs

from inertid_ros.core.errors import ConfigurationError
from inertid_ros.core.expressions import Expression

from .option_fields import REQUIRED, SIX, TRIPLE, named, option, vector

BASES = ("fixed", "free", "segments")
EFFORTS = ("torque", "gravity_compensated", "position_command")
# In the order of msg/JointDynamics.msg; docs/architecture.md ("To add a term of a drive") lists other places to change.
DRIVE_TERMS = ("rotor_inertia", "viscous", "coulomb", "offset", "stiffness", "stribeck")
FRICTION_TERMS = ("viscous", "coulomb", "stribeck")
CHANGING_TERMS = ("viscous", "coulomb", "offset", "stribeck")  # from day to day, as lubricant and drives warm up
PLATE_MEASUREMENTS = ("wrench", "pressure")
TERM_SIGNALS = ("q", "v", "a", "direction", "load")
"""Signals in formulas of user terms: position, velocity, acceleration, direction of sliding from -1 to 1, and torque
of the bodies [rad or m, per s, per s^2, 1, N m or N]. ``q["elbow"]`` is the signal of another joint."""
TERM_SHAPES: Mapping[str, tuple[tuple[str, ...], bool]] = {
    "spring": (("q",), False),
    "counterbalance": (("sin(q)", "cos(q)"), False),
    "polynomial": (("q", "q**2", "q**3"), False),
    "quadratic_viscous": (("abs(v)*v",), True),
    "load_friction": (("abs(load)*direction",), True)}
"""Formulas of each shape, and whether its parameters cannot be below zero."""


@attrs.frozen
class CouplingOptions:
    """Drive that turns with several joints and has its own rotor and friction."""

    joints: tuple[str, ...] = option((), "two or more joints that the drive turns with")
    ratios: tuple[float, ...] = option((), "turns of the drive per turn of each of these joints [1 or rad/m]",
        -1e6, 1e6, of=tuple[float, ...])
    position: str = option("", "in place of joints and ratios: formula of the drive's position, if its ratios change"
        " with the pose, such as 50*q[\"elbow\"] + 8*sin(q[\"wrist\"])")

    def __attrs_post_init__(self) -> None:
        if self.position:
            try:
                used = Expression(self.position, ("q",)).used
            except ValueError as error:
                raise ConfigurationError(f"position: {error}") from None
            if not used or ("q", "") in used:
                raise ConfigurationError(f'position is {self.position}; name the joint of every q, as in q["elbow"]')
            if self.joints or self.ratios:
                raise ConfigurationError("position is given, and joints or ratios; remove joints and ratios")
            return
        if len(self.joints) < 2 or len(set(self.joints)) != len(self.joints):
            raise ConfigurationError(f"joints is {list(self.joints)}; give two or more, each once")
        if len(self.ratios) != len(self.joints):
            raise ConfigurationError(f"ratios has {len(self.ratios)} values; give one for each of the joints")


@attrs.frozen
class RotorOptions:
    """Motor that is a body of its own, not part of a link in the URDF."""

    joint: str = option(REQUIRED, "joint that the rotor turns with", of=str)
    link: str = option(REQUIRED, "link of the URDF that carries the rotor", of=str)
    ratio: float = option(REQUIRED, "rotor turns per turn of the joint, with sign [1 or rad/m]", -1e6, 1e6, of=float)
    mass: float = option(REQUIRED, "mass of the rotor [kg]", 1e-9, 1e6, of=float)
    radius: float = option(0.0, "radius of a homogeneous cylinder along the axis [m]; 0 if inertia is given", 0.0,
        100.0)
    length: float = option(0.0, "length of this cylinder [m]; 0 if inertia is given", 0.0, 100.0)
    inertia: tuple[float, ...] = option((), "in place of radius and length: xx, xy, xz, yy, yz, zz about the centre of"
        " mass [kg m^2]", -1e9, 1e9, of=SIX)
    com: tuple[float, ...] = vector((0.0, 0.0, 0.0), "centre of mass in the rotor's frame [m]", 100.0)
    xyz: tuple[float, ...] = vector((0.0, 0.0, 0.0), "origin of the rotor's frame in the link's frame [m]", 100.0)
    rpy: tuple[float, ...] = vector((0.0, 0.0, 0.0), "roll, pitch, yaw of this frame in the link's frame [rad]", 10.0)
    axis: tuple[float, ...] = vector((0.0, 0.0, 1.0), "axis of the bearings, in the rotor's frame", 1e6)

    def __attrs_post_init__(self) -> None:
        if bool(self.inertia) == bool(self.radius and self.length) or (self.inertia and self.radius + self.length > 0):
            raise ConfigurationError("inertia is given twice or not at all; give inertia, or radius and length")
        if self.ratio == 0 or not any(self.axis):
            raise ConfigurationError("ratio or axis is zero; correct it")


@attrs.frozen
class ContactOptions:
    """A force/torque sensor on the robot."""

    frame: str = option("", "frame in which the wrench is measured; empty takes the frame with the contact's name")


@attrs.frozen
class PlateOptions:
    """A force plate fixed in the world."""

    frame: str = option(REQUIRED, "frame of the robot that stands on the plate", of=str)
    xyz: tuple[float, ...] = vector((0.0, 0.0, 0.0), "origin of the plate in the world [m]", 1e4)
    rpy: tuple[float, ...] = vector((0.0, 0.0, 0.0), "roll, pitch and yaw of the plate in the world [rad]", 10.0)
    measures: str = option("wrench", "wrench, or pressure of a balance board: only the force along z and its centre",
        choices=PLATE_MEASUREMENTS)


@attrs.frozen
class MarkerOptions:
    """A marker of motion capture on a segment."""

    link: str = option(REQUIRED, "link of the URDF that carries the marker", of=str)
    xyz: tuple[float, ...] = option(REQUIRED, "place of the marker in the frame of the link [m]", -100.0, 100.0,
        of=TRIPLE)


@attrs.frozen
class WheelOptions:
    """A reaction wheel of a free base."""

    inertia: float = option(0.0, "inertia of the wheel about its axis [kg m^2]; 0 takes it from the URDF", 0.0, 1e6)
    link: str = option("", "link that carries the wheel; empty takes it from the URDF")
    axis: tuple[float, ...] = option((), "axis of its bearings, in the frame of the link; empty takes it from the URDF",
        -1e6, 1e6, of=tuple[float, ...])

    def __attrs_post_init__(self) -> None:
        if self.axis and (len(self.axis) != 3 or not any(self.axis)):
            raise ConfigurationError(f"axis is {list(self.axis)}; give three numbers, not all zero")


@attrs.frozen
class TermOptions:
    """Joint torque in addition to the torques of bodies and drive."""

    joint: str = option(REQUIRED, "joint on which the torque acts", of=str)
    shape: str = option("", "spring (stiffness of either sign, negative for an overbalanced joint),"
        " counterbalance (sine and cosine of the position), polynomial (cubic in the position), quadratic_viscous"
        " (speed squared), load_friction (in proportion to the torque of the bodies); empty if expressions are"
        " given", choices=("", *TERM_SHAPES))
    expressions: tuple[str, ...] = option((), "formulas in place of a shape, each with a parameter of its own, such as"
        " sin(2*q) or abs(v)*v")
    values: tuple[float, ...] = option((), "values of the parameters, if known [N m or N per unit of the formula];"
        " empty identifies them", -1e9, 1e9, of=tuple[float, ...])
    non_negative: bool = option(False, "parameters cannot be below zero, as for friction")
    always: bool = option(False, "keep the term even if it does not improve the prediction of held-out blocks")

    def __attrs_post_init__(self) -> None:
        if bool(self.shape) == bool(self.expressions):
            raise ConfigurationError("give either shape or expressions, not both or neither")
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
    """Known load of some recordings, fixed to a link."""

    link: str = option(REQUIRED, "link of the URDF that holds the load", of=str)
    mass: float = option(REQUIRED, "mass of the load [kg]", 1e-9, 1e6, of=float)
    recordings: tuple[str, ...] = option(REQUIRED, "recordings with this load, by name or pattern such as"
        " loaded_*", of=tuple[str, ...])
    com: tuple[float, ...] = vector((0.0, 0.0, 0.0), "centre of mass in the frame of the link [m]", 100.0)
    inertia: tuple[float, ...] = option((), "xx, xy, xz, yy, yz, zz about the centre of mass, in the axes of the link"
        " [kg m^2]; empty: a point mass", -1e9, 1e9, of=SIX)


@attrs.frozen
class RobotOptions:
    """Robot: its URDF, and properties that are not in a URDF."""

    locked_joints: Mapping[str, float] = named(float, "position at which a joint is held still [rad or m]; the links"
        " behind it move with its parent", "locked_joint_names", minimum=-1e6, maximum=1e6)
    carried_joints: tuple[str, ...] = option((), "joints that move together with the joints that mimic them; other"
        " joints that are mimicked are locked. If recordings show that such a joint moves and changes torques,"
        " identification carries it without this option", of=tuple[str, ...])
    joint_names: Mapping[str, str] = named(str, "URDF name of the joint that recordings and controllers call by"
        " the name in the key; one * in both names stands for the same text, as in fer_*: panda_*",
        "recorded_joint_names")
    drive_terms: tuple[str, ...] = option(DRIVE_TERMS, "drive parameters identified per joint", choices=DRIVE_TERMS)
    couplings: Mapping[str, CouplingOptions] = named(CouplingOptions, "drives that turn with several joints",
        "coupling_names")
    rotor_inertias: Mapping[str, float] = named(float, "rotor inertia of a joint or coupling by its data sheet,"
        " times the squared gear ratio; identification keeps it near this value instead of zero [kg m^2 or kg]",
        "rotor_inertia_names", minimum=1e-12, maximum=1e6)
    rotors: Mapping[str, RotorOptions] = named(RotorOptions, "motors as separate bodies", "rotor_names")
    stribeck_speeds: Mapping[str, float] = named(float, "speed of a joint's Stribeck friction in place of 0.2 [rad/s or"
        " m/s]; identify.fit_stribeck_speed estimates it", "stribeck_joint_names", minimum=1e-9, maximum=1e6)
    terms: Mapping[str, TermOptions] = named(TermOptions, "torque of joints in addition to bodies and drives, linear"
        " in unknowns", "term_names")
    loads: Mapping[str, LoadOptions] = named(LoadOptions, "known loads of some recordings; their torque is"
        " subtracted, without gravity if efforts lack it (then the controller compensates the load)", "load_names")
    gravity: tuple[float, ...] = option((0.0, 0.0, -9.81), "gravity in the frame of the root link, or in the world if"
        " the base is free [m/s^2]", -100.0, 100.0, of=TRIPLE)
    effort: str = option("torque", "quantity that the robot reports as effort: torque; gravity_compensated, torque from"
        " which the controller subtracted the gravity of its own model of the robot, whose masses and centres of mass"
        " are identified, too, near the values of the URDF; or position_command, if the robot reports no torque: it is"
        " computed from recorded commands, command_kp (command - position) + command_kd (command velocity - velocity) +"
        " commanded effort, and the delay of the commands is estimated", choices=EFFORTS)
    command_kp: Mapping[str, float] = named(float, "position gain of every joint's drive, for effort position_command"
        " [N m/rad or N/m]", "command_kp_joint_names", minimum=0.0, maximum=1e9)
    command_kd: Mapping[str, float] = named(float, "velocity gain of every joint's drive, for effort position_command"
        " [N m s/rad or N s/m]", "command_kd_joint_names", minimum=0.0, maximum=1e9)
    command_gain_factors: Mapping[str, float] = named(float, "factor on command_kp and command_kd in recordings whose"
        " name matches the pattern in the key, such as soft_*; motions with two gains determine the delay of stiff"
        " drives", "command_gain_patterns", minimum=1e-6, maximum=1e6)
    command_limits: Mapping[str, float] = named(float, "effort at which a drive clips its command; such samples are"
        " left out [N m or N]", "command_limit_joint_names", minimum=1e-9, maximum=1e9)
    effort_scale: Mapping[str, float] = named(float, "factor on a joint's measured effort: gear ratio times torque"
        " constant if drives report currents, -1 if the sign is reversed [N m or N per unit of effort]",
        "effort_scale_joint_names", minimum=-1e9, maximum=1e9)
    command_delay_s: float = option(-1.0, "known time from the stamp of a command until the drive follows it [s];"
        " negative: estimated. Stiff drives need it, or motions with two gains (command_gain_factors): an error of it"
        " acts like viscous friction of command_kp times this error", -1.0, 0.05)
    base: str = option("fixed", "fixed, or free: the root link moves in the world and is identified like other links;"
        " or segments: every link with mass moves freely, and its pose is recorded, as by motion capture of a person",
        choices=BASES)
    contacts: Mapping[str, ContactOptions] = named(ContactOptions, "force/torque sensors on the robot, by the name of"
        " their wrench in recordings", "contact_names")
    plates: Mapping[str, PlateOptions] = named(PlateOptions, "force plates fixed in the world, by the name of their"
        " wrench in recordings", "plate_names")
    markers: Mapping[str, MarkerOptions] = named(MarkerOptions, "markers of motion capture, by their names in C3D and"
        " TRC files, whose places give the poses of segments; three or more on every link", "marker_names")
    wheels: Mapping[str, WheelOptions] = named(WheelOptions, "reaction wheels of a free base, by the name of their"
        " joint in recordings", "wheel_names")

    def __attrs_post_init__(self) -> None:
        for recorded, own in self.joint_names.items():
            if not own or recorded.count("*") > 1 or own.count("*") != recorded.count("*"):
                raise ConfigurationError(
                    f"joint_names.{recorded} is {own!r}; give two names, or one * in both, as in fer_*: panda_*")
        if 0.0 in self.effort_scale.values():
            raise ConfigurationError("effort_scale holds a zero, which removes the effort; correct it")
        if self.effort == "gravity_compensated" and self.base != "fixed":
            raise ConfigurationError("effort is gravity_compensated, which needs base fixed; correct one of them")
        if self.effort == "position_command" and self.base == "segments":
            raise ConfigurationError("effort is position_command, which needs base fixed or free; correct one of them")
        if self.command_limits and (self.base != "fixed" or self.loads or self.contacts):
            raise ConfigurationError("command_limits need base fixed without loads and contacts; remove command_limits")
        if self.carried_joints and self.base != "fixed":
            raise ConfigurationError("carried_joints need base fixed; correct one of them")
        for name in self.rotor_inertias:
            if name not in self.couplings and "rotor_inertia" not in self.drive_terms:
                raise ConfigurationError(
                    f"rotor_inertias.{name} needs rotor_inertia in drive_terms; add it, or remove rotor_inertias")
        if self.markers and self.base != "segments":
            raise ConfigurationError("markers need measured segments; set base to segments")
        links = [marker.link for marker in self.markers.values()]
        if few := [link for link in links if links.count(link) < 3]:
            raise ConfigurationError(f"markers: '{few[0]}' has {links.count(few[0])}; give three or more per link")
        if self.wheels and self.base != "free":
            raise ConfigurationError("wheels need a floating robot; set base to free")
