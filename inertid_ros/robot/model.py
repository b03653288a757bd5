"""RobotModel: one URDF, checked, with what identification needs, on top of Pinocchio."""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pinocchio as pin
from lxml import etree
from numpy.typing import NDArray

from inertid_ros.config.robot import BASES, DRIVE_TERMS
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.log_once import log_once
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS, is_consistent, nearest_consistent
from inertid_ros.robot.bodies.layout import STRIBECK_SPEED, Coupling, ParameterLayout
from inertid_ros.robot.bodies.rotors import Rotor, with_rotors
from inertid_ros.robot.bodies.user_terms import UserTerm, misnamed
from inertid_ros.robot.urdf import joints as urdf_joints
from inertid_ros.robot.urdf import parsing
from inertid_ros.robot.urdf.joints import JointLimits

from .contacts import Contact, Plate, check_contacts, ground_of
from .missing_inertias import DENSITY, with_inertias
from .recorded_joints import RecordedJoints
from .tree import TreeJoint, tree_joints
from .units import DoubtfulLimits, check_units, doubtful_limits, longest_chain
from .wheels import MountedWheels, Wheel, completed, mount

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ModelOptions:
    """How to read a URDF.

    Attributes
    ----------
    locked_joints : mapping of str to float
        Joint name to the position [rad or m] at which it is held; its subtree moves with its parent. Mimic joints of a
        locked joint are locked with it. Joints that others mimic are held too, at zero or as near as they can be; a
        loaded model's options name them.
    drive_terms : tuple of str
        The drive terms to identify per joint, see :class:`ParameterLayout`.
    gravity : tuple of float
        (3,) m/s^2 in the frame of the root link; of the world where the base is free.
    couplings : tuple of Coupling
        Drives that turn with several joints.
    rotors : tuple of Rotor
        Motors that are bodies of their own.
    base : str
        "fixed", or "free" where the root link moves in the world and is a body to identify like the others.
    contacts : tuple of Contact
        External wrenches that are measured.
    stribeck_speeds : mapping of str to float
        Joint name to the speed of its Stribeck friction [rad/s or m/s], where it is known.
    without_stribeck : tuple of str
        Joints that show no Stribeck friction.
    transition_speeds : mapping of str to float
        Joint name to the speed within which its friction turns [rad/s or m/s], where it is known.
    wheels : tuple of Wheel
        Reaction wheels on a free base; their joints are held.
    effort_scale : mapping of str to float
        Joint name to the factor on its measured effort [N m or N per unit of effort]; 1 where it is not named.
    terms : tuple of UserTerm
        Torques that a configuration adds.
    joint_names : mapping of str to str
        Name of a joint in recordings to that in the URDF, see :class:`RecordedJoints`.
    """

    locked_joints: Mapping[str, float] = field(default_factory=dict)
    drive_terms: tuple[str, ...] = DRIVE_TERMS
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    couplings: tuple[Coupling, ...] = ()
    rotors: tuple[Rotor, ...] = ()
    base: str = "fixed"
    contacts: tuple[Contact, ...] = ()
    stribeck_speeds: Mapping[str, float] = field(default_factory=dict)
    wheels: tuple[Wheel, ...] = ()
    effort_scale: Mapping[str, float] = field(default_factory=dict)
    terms: tuple[UserTerm, ...] = ()
    without_stribeck: tuple[str, ...] = ()
    transition_speeds: Mapping[str, float] = field(default_factory=dict)
    joint_names: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.base not in BASES:
            raise ModelError(f"base '{self.base}' is unknown; choose from {', '.join(BASES)}")
        if self.wheels and self.base != "free":
            raise ModelError(f"wheel '{self.wheels[0].name}': turns a robot that floats; set robot.base to free")


@dataclass(frozen=True)
class RobotModel:
    """A robot of one-degree-of-freedom joints on a fixed base, or on one that moves freely.

    A free base is Pinocchio's free-flyer: the root link is the first body, ``q`` is the base's position and quaternion
    (x, y, z, w), then the joints, ``v`` the twist of the base in its own frame (linear, angular), then the joints, and
    ``a`` the derivative of ``v``. Joints and bodies of a fixed base are the same in number, those of a free one are
    one body more; body ``b`` is Pinocchio's joint ``b + 1`` in both.

    Attributes
    ----------
    name : str
        Of the robot in the URDF.
    urdf : str
        The text as given; with inertias of their shapes for links that had none.
    pinocchio : pin.Model
        Model of the moving bodies; locked and fixed joints are lumped into them.
    layout : ParameterLayout
        Columns of the parameter vector.
    body_prior : ndarray, shape (nb, 10)
        Parameters of the moving bodies as the URDF states them, lumped links included.
    body_locked : ndarray, shape (nb, 10)
        The part of ``body_prior`` that links behind locked joints contribute. It keeps its own inertial elements in the
        written URDF, so that a consistent estimate is at least this much.
    drive_prior : mapping of str to ndarray
        Drive term to ``(n,)``; friction from ``<dynamics>``, zero where absent.
    limits : JointLimits
        Of the joints.
    wheels : MountedWheels
        Reaction wheels on the bodies.
    fitted_bodies : ndarray or None, shape (nb, 10)
        Bodies by which user terms know the load of a joint, in place of the prior.
    folder : Path or None
        Folder of the URDF, from which its meshes are looked for; None where it is a text.
    """

    name: str
    urdf: str
    pinocchio: pin.Model
    layout: ParameterLayout
    body_prior: Array
    body_locked: Array
    drive_prior: Mapping[str, Array]
    limits: JointLimits
    options: ModelOptions
    wheels: MountedWheels
    fitted_bodies: Array | None = None
    folder: Path | None = None

    @cached_property
    def consistent_body_prior(self) -> Array:
        """``(nb, 10)`` ``body_prior``, repaired where it is not physically consistent: the prior of identification."""
        return self.body_locked + nearest_consistent(self.body_prior - self.body_locked)

    @property
    def rotor_prior(self) -> Array:
        """``(r, 10)`` parameters of the rotors as given."""
        return np.array([rotor.parameters for rotor in self.layout.rotors]).reshape(-1, BODY_PARAMETERS)

    @cached_property
    def consistent_prior(self) -> Array:
        """``(nb + r, 10)`` the same of links and rotors."""
        return np.vstack([self.consistent_body_prior, nearest_consistent(self.rotor_prior)])

    @cached_property
    def inertial_locked(self) -> Array:
        """``(nb + r, 10)`` known part of it, of links behind locked joints."""
        return np.vstack([self.body_locked, np.zeros_like(self.rotor_prior)])

    @property
    def root_name(self) -> str:
        """Root link."""
        return str(self.pinocchio.frames[1].name)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Movable joints in the order of q, v, a and tau everywhere."""
        return self.layout.joints

    @property
    def link_names(self) -> tuple[str, ...]:
        """The moving bodies: the root link where the base is free, then one per joint."""
        return self.layout.links

    @property
    def recorded_joints(self) -> RecordedJoints:
        """Movable joints, then wheels, and what recordings call them."""
        return RecordedJoints(self.joint_names + self.wheels.names, self.options.joint_names)

    @property
    def joints(self) -> int:
        """Number of movable joints."""
        return len(self.layout.joints)

    @property
    def free(self) -> bool:
        """Whether the base moves freely."""
        return self.options.base == "free"

    @property
    def positions(self) -> int:
        """Length of ``q``: joints, and seven of a free base."""
        return int(self.pinocchio.nq)

    @property
    def velocities(self) -> int:
        """Length of ``v``, ``a`` and generalized force: joints, and six of a free base."""
        return int(self.pinocchio.nv)

    @cached_property
    def effort_scale(self) -> Array:
        """``(n,)`` factor from a joint's measured effort to torque or force [N m or N per unit of effort]."""
        return np.array([self.options.effort_scale.get(joint, 1.0) for joint in self.joint_names])

    @cached_property
    def ground(self) -> Plate | None:
        """The plate in whose frame the six rows of a free base are expressed; None for the frame of the base itself."""
        return ground_of(self.options.contacts) if self.free else None

    @cached_property
    def prior(self) -> Array:
        """Parameter vector ``(p,)`` of the URDF as given."""
        drives = [self.drive_prior[term] for term in self.layout.drive_terms]
        couplings = np.zeros(self.layout.term_start - self.layout.coupling_start)
        terms = [np.array(term.values or np.zeros(len(term.expressions))) for term in self.layout.terms]
        return np.concatenate([self.body_prior.ravel(), self.rotor_prior.ravel(), *drives, couplings, *terms])

    @property
    def load_bodies(self) -> Array:
        """``(nb, 10)`` bodies by which user terms know the load of a joint."""
        return self.body_prior if self.fitted_bodies is None else self.fitted_bodies

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the kinematics: joint names, types, axes, placements. Inertia, meshes and limits do not count."""
        model, digest = self.pinocchio, hashlib.sha256()
        for index in range(1, model.njoints):
            placement = model.jointPlacements[index]
            numbers = np.concatenate([placement.translation, placement.rotation.ravel(), self.axes[index - 1]])
            joint_type = model.joints[index].shortname().replace("Unaligned", "")[:14]
            digest.update(f"{model.names[index]}|{model.parents[index]}|{joint_type}|".encode())
            digest.update(np.round(numbers + 0.0, 9).astype("<f8").tobytes())
        return digest.hexdigest()

    @cached_property
    def doubtful_limits(self) -> tuple[DoubtfulLimits, ...]:
        """Limits of the joints that look as if they were in degrees or millimetres."""
        slides = np.any(self.axes[len(self.link_names) - self.joints :, :3] != 0, axis=1)
        return doubtful_limits(self.joint_names, self.limits, slides, longest_chain(self.pinocchio))

    @cached_property
    def axes(self) -> Array:
        """``(nb, 6)`` motion subspace of the joint before each body in its own frame, linear then angular; zero for a
        base that moves freely."""
        data, base = self.pinocchio.createData(), len(self.link_names) - self.joints
        pin.computeJointJacobians(self.pinocchio, data, pin.neutral(self.pinocchio))
        jacobian = data.J.reshape(6, -1)[:, 6 * base :]  # a single column comes as a vector
        columns = [data.oMi[i + 1 + base].actInv(pin.Motion(jacobian[:, i])).vector for i in range(self.joints)]
        return np.vstack([np.zeros((base, 6)), *columns])

    @cached_property
    def tree(self) -> tuple[TreeJoint, ...]:
        """The joints for batched recursions."""
        return tree_joints(self.pinocchio, self.axes)

    @cached_property
    def rotor_tree(self) -> tuple[TreeJoint, ...]:
        """The same with every rotor as a further body behind a joint of its own."""
        axes = [np.concatenate([np.zeros(3), rotor.unit_axis]) for rotor in self.layout.rotors]
        return tree_joints(with_rotors(self.pinocchio, self.layout.rotors), np.vstack([self.axes, *axes]))

    def with_stribeck_speeds(self, speeds: Array) -> "RobotModel":
        """The same robot with Stribeck friction of all joints, at other speeds ``(n,)`` [rad/s or m/s]."""
        named = dict(zip(self.joint_names, map(float, speeds), strict=True))
        layout = replace(self.layout, stribeck_speeds=tuple(named.values()), without_stribeck=())
        options = replace(self.options, stribeck_speeds=named, without_stribeck=())
        return replace(self, layout=layout, options=options)

    def with_stribeck_of(self, present: NDArray[np.bool_]) -> "RobotModel":
        """The same robot with Stribeck friction of some joints alone, ``(n,)``."""
        absent = tuple(name for name, shown in zip(self.joint_names, present, strict=True) if not shown)
        layout = replace(self.layout, without_stribeck=absent)
        return replace(self, layout=layout, options=replace(self.options, without_stribeck=absent))

    def with_transition_speeds(self, speeds: Array) -> "RobotModel":
        """The same robot with other speeds within which friction turns, ``(n,)`` [rad/s or m/s]."""
        named = dict(zip(self.joint_names, map(float, speeds), strict=True))
        layout = replace(self.layout, transition_speeds=tuple(named.values()))
        return replace(self, layout=layout, options=replace(self.options, transition_speeds=named))

    def with_terms(self, terms: tuple[UserTerm, ...]) -> "RobotModel":
        """The same robot with other user terms."""
        return replace(self, layout=replace(self.layout, terms=terms), options=replace(self.options, terms=terms))

    def with_bodies_alone(self) -> "RobotModel":
        """The same robot without drive terms, couplings and user terms: what momentum shows."""
        layout = replace(self.layout, drive_terms=(), couplings=(), terms=())
        return replace(self, layout=layout, options=replace(self.options, drive_terms=(), couplings=(), terms=()))

    def with_prior_bodies(self, bodies: Array) -> "RobotModel":
        """The same robot with other parameters of its links ``(nb, 10)`` as the prior; its URDF stays as given."""
        return replace(self, body_prior=bodies)

    def with_bodies(self, bodies: Array) -> pin.Model:
        """Copy of the Pinocchio model with other inertial parameters, ``(nb, 10)``."""
        model = pin.Model(self.pinocchio)
        for index, pi in enumerate(bodies):
            model.inertias[index + 1] = (
                pin.Inertia.FromDynamicParameters(np.array(pi)) if pi[0] else pin.Inertia.Zero()  # it divides by mass
            )
        return model


def load_model(source: str | Path, options: ModelOptions | None = None, shapes: bool = True) -> RobotModel:
    """Build a :class:`RobotModel` from a URDF file or text.

    Parameters
    ----------
    source : str or Path
    options : ModelOptions, optional
    shapes : bool
        Whether links without inertia have that of their shapes, whose meshes may take long to be read. Otherwise they
        are bars in the model, though not in its ``urdf``: enough for whoever watches a robot.

    Raises
    ------
    ModelError
        The URDF is broken, its inertias are in impossible units, or it has joints that are not supported (planar,
        floating); or a locked joint does not exist.
    """
    text = parsing.read_description(source)
    folder = None if text == str(source) else Path(source).resolve().parent
    try:
        model = _from_text(text, options or ModelOptions(), folder, shapes)
        return replace(model, folder=folder, urdf=model.urdf if shapes else text)
    except ModelError as error:
        if folder is None:
            raise
        raise ModelError(f"{source}: {error}") from None


def _from_text(text: str, options: ModelOptions, folder: Path | None, shapes: bool) -> RobotModel:
    root = parsing.parse_description(text)
    wheels = completed(root, options.wheels)
    names = {joint.get("name") for joint in root.findall("joint")}
    held = {wheel.name: 0.0 for wheel in wheels if wheel.name in names}
    urdf_joints.check_supported(root)
    options = _with_leaders_held(root, options, {**held, **options.locked_joints})
    locked = urdf_joints.locked_joints(root, {**held, **options.locked_joints})
    free = options.base == "free"
    try:
        flyer = (pin.JointModelFreeFlyer(),) if free else ()
        full = pin.buildModelFromXML(urdf_joints.without_geometry(root), *flyer)
    except (ValueError, RuntimeError) as error:
        raise ModelError(f"URDF: Pinocchio refuses it ({str(error).splitlines()[0]}); fix the URDF") from None
    full.gravity.linear = np.array(options.gravity, dtype=float)
    model, full_ids = _reduce(full, locked)
    if model.njoints < 2:
        raise ModelError(
            f"URDF robot '{root.get('name')}': has no movable joint left; there is nothing to identify"
            " unless its base moves (robot.base: free)"
        )
    joints = tuple(model.names)[1 + free :]
    links = urdf_joints.moving_links(root, joints, free)
    prior = np.array([model.inertias[i].toDynamicParameters() for i in range(1, model.njoints)])
    own = np.array([full.inertias[i].toDynamicParameters() for i in full_ids])
    body_locked = np.where(np.abs(prior - own) > 1e-12 * np.abs(prior).max(), prior - own, 0.0)
    massless = [link for link, pi in zip(links, prior, strict=True) if pi[0] <= 0]
    if massless:
        log_once(
            logging.WARNING if shapes else logging.DEBUG,
            f"URDF robot '{root.get('name')}': no inertia for {_few(massless)}; taken are those of their shapes at"
            f" {DENSITY:g} kg/m^3, or of bars between joints: a guess, on which efforts of plans and the prior of"
            " identification rest; give better ones in <inertial>",
        )
        return _from_text(with_inertias(text, root, massless, locked, folder, shapes), options, folder, shapes)
    _warn_of_inconsistent("URDF link", links, prior)
    check_units(model, links, prior)
    _check_rotors(model, links, options.rotors)
    _check_effort_scale(joints, options.effort_scale)
    check_contacts(model, options.contacts)
    return RobotModel(
        name=root.get("name") or "robot",
        urdf=text,
        pinocchio=model,
        layout=ParameterLayout(
            links,
            joints,
            tuple(options.drive_terms),
            _couplings(joints, options.couplings),
            tuple(options.rotors),
            _stribeck_speeds(joints, options.stribeck_speeds),
            _terms(joints, options.terms),
            options.without_stribeck,
            _transition_speeds(joints, options.transition_speeds),
        ),
        body_prior=prior,
        body_locked=body_locked,
        drive_prior=urdf_joints.drive_prior(root, joints),
        limits=urdf_joints.limits(root, joints),
        options=options,
        wheels=mount(model, wheels),
    )


def _with_leaders_held(root: etree._Element, options: ModelOptions, locked: Mapping[str, float]) -> ModelOptions:
    """The options with the joints that mimic joints follow among the locked ones."""
    held = urdf_joints.held_leaders(root, locked)
    if not held:
        return options
    # With a point, as ROS does not take a whole number for a double.
    at = ", ".join(f"{name}: {float(f'{position:.6g}')!r}" for name, position in held.items())
    log_once(
        logging.WARNING,
        f"URDF robot '{root.get('name')}': {_few(urdf_joints.followers(root, held))} mimic other joints and are held"
        f" with them; another pose is set by robot.locked_joints: {{{at}}}",
    )
    return replace(options, locked_joints={**options.locked_joints, **held})


def _few(names: Sequence[str], most: int = 4) -> str:
    """Names for a message, cut short where there are many."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} others" if len(names) > most else "")


def _reduce(full: pin.Model, locked: Mapping[str, float]) -> tuple[pin.Model, list[int]]:
    """Model without the locked joints, and the index in ``full`` of each joint that stays."""
    if not locked:
        return full, list(range(1, full.njoints))
    reference = pin.neutral(full)
    ids = [full.getJointId(name) for name in locked]
    for index, position in zip(ids, locked.values(), strict=True):
        reference[full.joints[index].idx_q] = position
    try:
        reduced = pin.buildReducedModel(full, ids, reference)
    except ValueError:
        raise ModelError("URDF: a joint and a link have the same name, so no joint can be held; rename one") from None
    return reduced, [full.getJointId(name) for name in list(reduced.names)[1:]]


def _warn_of_inconsistent(what: str, names: Sequence[str], bodies: Array) -> None:
    bad = [name for name, consistent in zip(names, is_consistent(bodies), strict=True) if not consistent]
    if bad:
        _log.warning(
            "%s '%s': inertia is not physically consistent (no mass distribution has it)%s;"
            " identification starts from the nearest that is",
            what,
            bad[0],
            _and_others(bad),
        )


def _check_effort_scale(joints: tuple[str, ...], scales: Mapping[str, float]) -> None:
    for joint, scale in scales.items():
        if joint not in joints:
            raise ModelError(f"effort scale of '{joint}': no such joint; the robot has {joints}")
        if not np.isfinite(scale) or scale == 0:
            raise ModelError(f"effort scale of '{joint}': {scale} leaves no torque; give N m per unit of effort")


def _and_others(names: list[str]) -> str:
    others = "another" if len(names) == 2 else f"{len(names) - 1} others"
    return f", as have {others} ({', '.join(names[1:])})" if len(names) > 1 else ""


def _stribeck_speeds(joints: tuple[str, ...], wanted: Mapping[str, float]) -> tuple[float, ...]:
    for joint, speed in wanted.items():
        if joint not in joints:
            raise ModelError(f"Stribeck speed of '{joint}': no such joint; the robot has {joints}")
        if not (np.isfinite(speed) and speed > 0):
            raise ModelError(f"Stribeck speed of '{joint}': {speed} is not a positive number; give rad/s or m/s")
    return tuple(float(wanted.get(joint, STRIBECK_SPEED)) for joint in joints) if wanted else ()


def _terms(joints: tuple[str, ...], wanted: tuple[UserTerm, ...]) -> tuple[UserTerm, ...]:
    wrong = misnamed(wanted, joints)
    if wrong:
        raise ModelError(wrong)
    return tuple(wanted)


def _couplings(joints: tuple[str, ...], wanted: tuple[Coupling, ...]) -> tuple[Coupling, ...]:
    for coupling in wanted:
        for joint in coupling.joints:
            if joint not in joints:
                raise ModelError(f"coupling '{coupling.name}': joint '{joint}' does not exist; the robot has {joints}")
    return tuple(wanted)


def _check_rotors(model: pin.Model, links: tuple[str, ...], rotors: tuple[Rotor, ...]) -> None:
    names = [rotor.name for rotor in rotors]
    taken = [name for name in names if names.count(name) > 1 or name in links or model.existJointName(name)]
    if taken:
        raise ModelError(f"rotor '{taken[0]}': another rotor, link or joint has this name; choose another")
    with_rotors(model, rotors)
    _warn_of_inconsistent("rotor", names, np.array([rotor.parameters for rotor in rotors]).reshape(-1, BODY_PARAMETERS))


def _transition_speeds(joints: tuple[str, ...], wanted: Mapping[str, float]) -> tuple[float, ...]:
    for joint, speed in wanted.items():
        if joint not in joints:
            raise ModelError(f"transition speed of '{joint}': no such joint; the robot has {joints}")
        if not (np.isfinite(speed) and speed >= 0):
            raise ModelError(f"transition speed of '{joint}': {speed} is below zero or not finite; give rad/s or m/s")
    return tuple(float(wanted.get(joint, 0.0)) for joint in joints) if wanted else ()
