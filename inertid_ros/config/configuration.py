"""The configuration: trees of options, the same for command line and nodes."""

from dataclasses import dataclass, field, replace

from inertid_ros.config.preparation import PrepareOptions
from inertid_ros.data.files.bag_reading import BagTopics
from inertid_ros.identification.prior.constraints import Constraints
from inertid_ros.robot.bodies.layout import DRIVE_TERMS
from inertid_ros.robot.contacts import BASES
from inertid_ros.robot.geometry.collision_ellipsoids import collision_ellipsoids
from inertid_ros.robot.model import ModelOptions, RobotModel

from . import entries
from .excitation import ExcitationOptions, LimitOptions
from .identification import IdentifyOptions
from .options import ConfigurationError, option


@dataclass(frozen=True)
class RobotOptions:
    """How to read the URDF."""

    locked_joints: tuple[str, ...] = option(
        (), "joints held still, each JOINT=POSITION [rad or m]; what they carry moves with their parent"
    )
    drive_terms: tuple[str, ...] = option(
        DRIVE_TERMS, "drive parameters identified per joint", choices=DRIVE_TERMS
    )
    couplings: tuple[str, ...] = option(
        (),
        "drives that turn with several joints and have a rotor and friction of their own, each"
        " NAME=JOINT:RATIO,JOINT:RATIO such as wrist=joint_5:1,joint_6:1",
    )
    rotors: tuple[str, ...] = option(
        (),
        "motors that are bodies of their own, not part of the URDF's links: each NAME=FIELD:VALUE,... with the joint it"
        " turns with, the link that carries it, ratio, mass, radius and length (or inertia: xx xy xz yy yz zz) and,"
        " where not zero, com, xyz, rpy and axis, such as"
        " motor3=joint:elbow,link:arm,ratio:50,mass:0.4,radius:0.03,length:0.05,xyz:0 0.1 0,axis:0 1 0",
    )
    stribeck_speeds: tuple[str, ...] = option(
        (),
        "speeds of Stribeck friction in place of 0.2, each JOINT=SPEED [rad/s or m/s];"
        " identify.fit_stribeck_speed finds them",
    )
    gravity: tuple[float, ...] = option(
        (0.0, 0.0, -9.81),
        "in the frame of the root link, or of the world where the base is free [m/s^2]",
        minimum=-100.0,
        maximum=100.0,
    )

    base: str = option(
        "fixed", "fixed, or free: the root link moves in the world and is identified like the others", choices=BASES
    )
    contacts: tuple[str, ...] = option(
        (),
        "wrenches measured on the robot, by force/torque sensors, each NAME=FRAME, or FRAME alone where the wrench is"
        " named like the frame it is measured in",
    )
    plates: tuple[str, ...] = option(
        (),
        "force plates fixed in the world, each NAME=FIELD:VALUE,... with the frame of the robot that stands on it and,"
        " where not zero, xyz [m] and rpy [rad] of the plate, such as left_plate=frame:left_foot,xyz:0 0.1 0; with"
        " measures:pressure it is a balance board, of which only the force along z and its centre are known",
    )

    wheels: tuple[str, ...] = option(
        (),
        "reaction wheels of a free base, each a joint of the URDF, which is held, or NAME=FIELD:VALUE,... with the"
        " inertia about the axis [kg m^2], and link and axis where the URDF has no joint of that name, such as"
        " wheel_x=inertia:0.05,link:base,axis:1 0 0",
    )

    def __post_init__(self) -> None:
        if len(self.gravity) != 3:
            raise ConfigurationError(f"robot.gravity has {len(self.gravity)} numbers; give x, y, z")
        self.model_options()

    def model_options(self) -> ModelOptions:
        """The same, for :func:`~inertid_ros.robot.model.load_model`."""
        x, y, z = self.gravity
        locked, couplings = entries.positions(self.locked_joints), entries.couplings(self.couplings)
        contacts = entries.contacts(self.contacts) + entries.plates(self.plates)
        speeds = entries.positions(self.stribeck_speeds, "robot.stribeck_speeds")
        return ModelOptions(
            locked, self.drive_terms, (x, y, z), couplings, entries.rotors(self.rotors), self.base, contacts, speeds,
            entries.wheels(self.wheels),
        )


@dataclass(frozen=True)
class ConstraintOptions:
    """What is known of the robot for certain, beyond physical consistency."""

    collision_shapes: bool = option(False, "a link's mass lies within ellipsoids around its collision shapes")
    collision_margin: float = option(1.0, "factor on the axes of these ellipsoids", minimum=0.1, maximum=10.0)
    mesh_folders: tuple[str, ...] = option((), "folders in which package:// meshes of collision shapes are looked for")
    mass: tuple[str, ...] = option((), "ranges of masses [kg], each LINK=LOWEST:HIGHEST")
    total_mass: float = option(0.0, "of all moving links [kg]; 0 where unknown", minimum=0.0, maximum=1e6)
    at_most: tuple[str, ...] = option((), "highest values of parameters (SI), each PARAMETER=VALUE")
    fixed: tuple[str, ...] = option((), "parameters held at their value in the URDF, such as link3.m")
    equal: tuple[str, ...] = option((), "parameters of the same value, each PARAMETER=PARAMETER")
    mirrored: tuple[str, ...] = option(
        (), "links that mirror one another across the plane normal to an axis, each LINK=LINK:AXIS"
    )

    def __post_init__(self) -> None:
        self._facts()

    def constraints(self, model: RobotModel) -> Constraints:
        """The same, for :func:`~inertid_ros.identification.identify.identify`."""
        inside = collision_ellipsoids(model, self.mesh_folders, self.collision_margin) if self.collision_shapes else {}
        return replace(self._facts(), inside=inside)

    def _facts(self) -> Constraints:
        return Constraints(
            mass=entries.ranges(self.mass, "constraints.mass"),
            total_mass=self.total_mass,
            at_most=entries.bounds(self.at_most, "constraints.at_most"),
            fixed=self.fixed,
            equal=entries.pairs(self.equal, "constraints.equal"),
            mirrored=entries.mirrors(self.mirrored, "constraints.mirrored"),
        )


@dataclass(frozen=True)
class Configuration:
    """Everything that can be set of reading, preparing and identifying, by topic."""

    robot: RobotOptions = field(default_factory=RobotOptions)
    topics: BagTopics = field(default_factory=BagTopics)
    prepare: PrepareOptions = field(default_factory=PrepareOptions)
    identify: IdentifyOptions = field(default_factory=IdentifyOptions)
    constraints: ConstraintOptions = field(default_factory=ConstraintOptions)


@dataclass(frozen=True)
class ExcitationConfiguration:
    """Everything that can be set of planning a motion, by topic."""

    robot: RobotOptions = field(default_factory=RobotOptions)
    limits: LimitOptions = field(default_factory=LimitOptions)
    excitation: ExcitationOptions = field(default_factory=ExcitationOptions)
