"""RobotModel: a checked URDF with all data for identification, on top of Pinocchio."""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.arrays import Array, Mask
from inertid_ros.core.errors import ModelError, first_few, log_once
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, is_consistent, nearest_consistent
from inertid_ros.robot.urdf import joints as urdf_joints, parsing
from inertid_ros.robot.urdf.shapes import DENSITY, as_bars, placeholders, with_inertias
from inertid_ros.robot.urdf.text import standing_on
from inertid_ros.robot.urdf.units import DoubtfulLimits, check_units, doubtful_limits, longest_chain

from .contacts import Contact, Plate, check_contacts, contacts_of, ground_of
from .kinematics import TreeJoint, tree_joints
from .layout import STRIBECK_SPEED, Coupling, ParameterLayout, UserTerm, misnamed
from .recorded_joints import POSE, RecordedJoints
from .rotors import MountedWheels, Rotor, completed, mount, with_rotors

GIVEN_URDF = "URDF as given"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RobotModel:
    """Robot of one-degree-of-freedom joints on a fixed or a free base.

    A free base is Pinocchio's free-flyer, and the root link is the first body. ``q`` holds the base's position and
    quaternion (x, y, z, w), then the joints; ``v`` the base's twist in its own frame (linear, angular), then the
    joints; ``a`` is the derivative of ``v``. A fixed base has as many bodies as joints, a free base has one body more,
    and every carried mimic joint adds a body. Body ``b`` is Pinocchio's joint ``b + 1``; in Pinocchio's model, mimic
    joints are joints of their own.

    Attributes
    ----------
    urdf : text as given, except that links without inertia get the inertia of their shapes.
    pinocchio : model of the moving bodies; locked and fixed joints are lumped into them.
    body_prior : (nb, 10), parameters of the moving bodies as the URDF states them, lumped links included.
    body_locked : (nb, 10), part of ``body_prior`` from links behind locked joints. The written URDF keeps the inertia
        of these links, so that an estimate minus ``body_locked`` must be consistent.
    drive_prior : map from drive terms to ``(n,)`` values; friction from ``<dynamics>``, default zero; rotor inertia
        from the options, or else from transmissions.
    fitted_bodies : (nb, 10), bodies for the signal ``load`` of user terms; None: the prior.
    prior_name : what ``body_prior`` was made from, in messages.
    mimics : carried mimic joints, which move with joints of the robot, see :attr:`.RobotOptions.carried_joints`.
    held_leaders : locked joints that are locked only because other joints mimic them.
    options : options as given, plus locked leaders of mimic joints; values estimated from recordings are in ``layout``.
    folder : folder of the URDF, for its meshes; None if the URDF was given as text.
    """

    name: str
    urdf: str
    pinocchio: pin.Model
    layout: ParameterLayout
    body_prior: Array
    body_locked: Array
    drive_prior: Mapping[str, Array]
    limits: urdf_joints.JointLimits
    options: RobotOptions
    contacts: tuple[Contact, ...] = ()
    wheels: MountedWheels = field(default_factory=MountedWheels)
    mimics: Mapping[str, urdf_joints.Mimic] = field(default_factory=dict)
    held_leaders: tuple[str, ...] = ()
    fitted_bodies: Array | None = None
    prior_name: str = GIVEN_URDF
    folder: Path | None = None

    def __repr__(self) -> str:
        return f"RobotModel('{self.name}', {self.joints} joints, {self.options.base} base)"

    @cached_property
    def consistent_body_prior(self) -> Array:
        """``(nb, 10)`` prior of identification: ``body_prior``, made consistent, and bars for placeholder inertias."""
        bodies = self.body_prior - self.body_locked
        if self.placeholders.any():
            bodies = np.where(self.placeholders[:, None], as_bars(self.pinocchio, bodies), bodies)
        return self.body_locked + nearest_consistent(bodies)

    @cached_property
    def placeholders(self) -> Mask:
        """``(nb,)`` bodies whose inertia in the URDF is a placeholder."""
        return placeholders(self.body_prior - self.body_locked)

    @property
    def further_prior(self) -> Array:
        """``(k, 10)`` parameters of the rotors as given, then of the links of a gravity compensation as in the URDF."""
        rotors = np.array([rotor.parameters for rotor in self.layout.rotors]).reshape(-1, BODY_PARAMETERS)
        return np.vstack([rotors, self.body_prior]) if self.layout.compensation else rotors

    @cached_property
    def consistent_prior(self) -> Array:
        """``(nb + k, 10)`` prior of identification for all bodies of the layout, physically consistent."""
        return np.vstack([self.consistent_body_prior, nearest_consistent(self.further_prior)])

    @cached_property
    def inertial_locked(self) -> Array:
        """``(nb + k, 10)`` known part of the prior, from links behind locked joints."""
        return np.vstack([self.body_locked, np.zeros_like(self.further_prior)])

    @property
    def root_name(self) -> str:
        return str(self.pinocchio.frames[1].name)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Movable joints, in the order of q, v, a and tau."""
        return self.layout.joints

    @property
    def link_names(self) -> tuple[str, ...]:
        """Moving bodies: the root link if the base is free, then one per joint."""
        return self.layout.links

    @property
    def recorded_joints(self) -> RecordedJoints:
        """Movable joints, then wheels, with their names in recordings; for segments, the numbers of their poses."""
        poses = tuple(f"{link}.{part}" for link in self.link_names for part in POSE) if self.segmented else ()
        names = poses + self.joint_names + self.wheels.names
        return RecordedJoints(names, self.options.joint_names, self.options.markers)

    @property
    def joints(self) -> int:
        return len(self.layout.joints)

    @property
    def free(self) -> bool:
        return self.options.base != "fixed"

    @property
    def segmented(self) -> bool:
        """True if every body moves freely and its pose is recorded, see :func:`.body_segment_model`."""
        return self.options.base == "segments"

    @property
    def positions(self) -> int:
        """Length of ``q``: joints, plus seven for a free base."""
        return int(self.pinocchio.nq) - len(self.mimics)

    @property
    def velocities(self) -> int:
        """Length of ``v``, ``a`` and generalized force: joints, plus six for a free base."""
        return int(self.pinocchio.nv) - len(self.mimics)

    @cached_property
    def effort_scale(self) -> Array:
        """``(n,)`` factor from a joint's measured effort to torque or force [N m or N per unit of effort]."""
        return np.array([self.options.effort_scale.get(joint, 1.0) for joint in self.joint_names])

    @cached_property
    def command_gains(self) -> tuple[Array, Array] | None:
        """``(n,)`` gains of position and of velocity in units of :attr:`effort_scale`; None if efforts are measured.

        Raises ModelError: a joint has no gain.
        """
        options, joints = self.options, self.joint_names
        if options.effort != "position_command":
            return None
        for key, values in (("command_kp", options.command_kp), ("command_kd", options.command_kd)):
            if missing := [joint for joint in joints if joint not in values]:
                gains = ", ".join(f"{joint}: ..." for joint in missing)
                raise ModelError(
                    f"robot.{key}: lacks the gain of {', '.join(missing)}, which robot.effort position_command needs;"
                    f" set robot.{key}: {{{gains}}}")
        return np.array([options.command_kp[name] for name in joints]), np.array(
            [options.command_kd[name] for name in joints])

    @cached_property
    def command_limits(self) -> Array | None:
        """Scaled efforts ``(n,)`` at which drives clip [N m or N], infinite for unlisted joints; None if unset."""
        limits = self.options.command_limits
        if not limits:
            return None
        return np.abs(self.effort_scale) * np.array([limits.get(joint, np.inf) for joint in self.joint_names])

    @cached_property
    def ground(self) -> Plate | None:
        """Plate in whose frame the six rows of a free base or of segments are; None: frame of the base or the world."""
        return ground_of(self.contacts) if self.free else None

    @cached_property
    def prior(self) -> Array:
        """Parameter vector ``(p,)`` of URDF and options as given, not made consistent."""
        drives = [self.drive_prior[term] for term in self.layout.drive_terms]
        terms = [np.array(term.values or np.zeros(len(term.expressions))) for term in self.layout.terms]
        bodies = [self.body_prior.ravel(), self.further_prior.ravel()]
        couplings = np.zeros(self.layout.term_start - self.layout.coupling_start)
        given = {f"{name}.rotor_inertia": value for name, value in self.options.rotor_inertias.items()}
        names = self.layout.names[self.layout.coupling_start :]
        further = [given.get(*pair) for pair in zip(names, np.concatenate([couplings, *terms]), strict=True)]
        return np.concatenate([*bodies, *drives, further])

    @property
    def load_bodies(self) -> Array:
        """``(nb, 10)`` bodies for the signal ``load`` of user terms."""
        return self.body_prior if self.fitted_bodies is None else self.fitted_bodies

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the kinematics (joint names, types, axes, placements), without inertia, meshes and limits."""
        model, digest = self.pinocchio, hashlib.sha256()
        for index in range(1, model.njoints):
            placement = model.jointPlacements[index]
            numbers = np.concatenate([placement.translation, placement.rotation.ravel(), self.axes[index - 1]])
            joint_type = model.joints[index].shortname().replace("Unaligned", "")[:14]
            digest.update(f"{model.names[index]}|{model.parents[index]}|{joint_type}|".encode())
            digest.update((np.round(numbers, 9) + 0.0).astype("<f8").tobytes())  # + 0.0: no negative zeros
        for name, mimic in self.mimics.items():
            digest.update(f"{name}|{mimic.leader}|{mimic.multiplier:.9g}|{mimic.offset:.9g}|".encode())
        return digest.hexdigest()

    @cached_property
    def doubtful_limits(self) -> tuple[DoubtfulLimits, ...]:
        """Limits of the joints that seem to be in degrees or millimetres."""
        return doubtful_limits(self.joint_names, self.limits, self.slides, longest_chain(self.pinocchio))

    @property
    def slides(self) -> Mask:
        """``(n,)`` whether a joint is prismatic."""
        return np.array([self.tree[body].prismatic for body in self.joint_bodies], dtype=bool)

    @cached_property
    def joint_bodies(self) -> tuple[int, ...]:
        """Body behind each joint."""
        return tuple(self.pinocchio.getJointId(name) - 1 for name in self.joint_names)

    @property
    def joint_parents(self) -> tuple[int, ...]:
        """Joint that carries each joint; -1 if the base or a mimic joint carries it."""
        joints = {body: joint for joint, body in enumerate(self.joint_bodies)}
        return tuple(joints.get(self.tree[body].parent, -1) for body in self.joint_bodies)

    @cached_property
    def axes(self) -> Array:
        """``(nb, 6)`` motion subspace (linear, angular) of each joint, in the joint frame; zero for a free base."""
        joints = self.joints + len(self.mimics)
        data, base = self.pinocchio.createData(), len(self.link_names) - joints
        pin.computeJointJacobians(self.pinocchio, data, pin.neutral(self.pinocchio))
        jacobian = data.J.reshape(6, -1)[:, 6 * base :]  # Pinocchio returns a single column as a vector
        columns = [data.oMi[i + 1 + base].actInv(pin.Motion(jacobian[:, i])).vector for i in range(joints)]
        return np.vstack([np.zeros((base, 6)), *columns])

    @cached_property
    def tree(self) -> tuple[TreeJoint, ...]:
        return tree_joints(self.pinocchio, self.axes, self.mimics)

    @cached_property
    def rotor_tree(self) -> tuple[TreeJoint, ...]:
        """Joints, and every rotor as a further body behind a joint of its own."""
        axes = [np.concatenate([np.zeros(3), rotor.unit_axis]) for rotor in self.layout.rotors]
        kinematics = with_rotors(self.pinocchio, self.layout.rotors)
        return tree_joints(kinematics, np.vstack([self.axes, *axes]), self.mimics)

    @cached_property
    def commanded(self) -> "RobotModel":
        """Model of the joints' motion: base at rest, wheels as joints; a robot on one foot stands on the ground.

        ModelError if a wheel is not a joint of the URDF, the plate's frame is not a link, or mimic joints are carried.
        """
        refuse_carried(self)
        if self.foot:
            return self._standing
        if not self.wheels.names:
            return self
        commanded = load_model(self.urdf, commanded_options(self.options), folder=self.folder)
        for name in self.wheels.names:
            if name not in commanded.joint_names:
                raise ModelError(
                    f"wheel '{name}': the URDF has no joint of this name, so controllers cannot turn the wheel; add a"
                    f" continuous joint '{name}' whose child is the wheel")
        return commanded

    @property
    def foot(self) -> str:
        """Link on which a robot with a free base stands: the frame of its only plate; empty for other robots."""
        plates = tuple(self.options.plates.values())
        return plates[0].frame if self.options.base == "free" and len(plates) == 1 and not self.wheels.names else ""

    @property
    def _standing(self) -> "RobotModel":
        """Model whose root is the ground under the foot, with the axes of the root link in the zero pose of the URDF.

        The sole is level in this pose. Loads and rotors are left out, as their frames change with the root.
        """
        data = self.pinocchio.createData()
        pin.framesForwardKinematics(self.pinocchio, data, pin.neutral(self.pinocchio))
        rotation = data.oMf[self.pinocchio.getFrameId(self.foot)].rotation
        options = attrs.evolve(self.options, base="fixed", plates={}, contacts={}, loads={}, rotors={})
        return load_model(standing_on(self.urdf, self.foot, rotation), options, folder=self.folder)

    def with_layout(self, **changes: Any) -> "RobotModel":
        """Copy with changed fields of the layout, such as ``terms`` or ``transition_speeds``."""
        return replace(self, layout=replace(self.layout, **changes))

    @property
    def end_bodies(self) -> tuple[int, ...]:
        """Bodies without child bodies."""
        parents = {joint.parent for joint in self.tree}
        return tuple(body for body in range(len(self.tree)) if body not in parents)

    def with_prior_bodies(self, bodies: Array, name: str = GIVEN_URDF) -> "RobotModel":
        """Copy with other prior parameters ``(nb, 10)`` of the links, and their name; the URDF text stays the same."""
        return replace(self, body_prior=bodies, prior_name=name)

    def with_bodies(self, bodies: Array) -> pin.Model:
        """Copy of the Pinocchio model with other inertial parameters, ``(nb, 10)``."""
        model = pin.Model(self.pinocchio)
        for index, pi in enumerate(bodies, start=1):  # Pinocchio divides by the mass
            model.inertias[index] = pin.Inertia.FromDynamicParameters(np.array(pi)) if pi[0] else pin.Inertia.Zero()
        return model


def load_model(source: str | Path, options: RobotOptions | None = None, shapes: bool = True,
        folder: Path | None = None) -> RobotModel:
    """Build a :class:`RobotModel` from a URDF file or text.

    Parameters
    ----------
    shapes : whether links without inertia get the inertia of their shapes; reading meshes may take a long time. If not,
        the model has bars in place of these links, and its ``urdf`` stays as given; bars suffice to monitor a robot.
    folder : folder of the file that a text comes from, for its meshes.

    Raises
    ------
    ModelError
        The URDF is broken, its inertias are in impossible units, or it has joints that are not supported (planar,
        floating); or a locked joint does not exist.
    """
    text = parsing.read_description(source)
    file = None if text == str(source) else Path(source).resolve()
    folder = folder if file is None else file.parent
    try:
        model = _from_text(text, options or RobotOptions(), folder, shapes)
        return replace(model, folder=folder, urdf=model.urdf if shapes else text)
    except ModelError as error:
        if file is None:
            raise
        raise ModelError(f"{source}: {error}") from None


def commanded_options(options: RobotOptions) -> RobotOptions:
    """Options for the joints that a controller moves: the base of a floating robot rests, and its wheels are joints."""
    if not options.wheels:
        return options
    return attrs.evolve(options, base="fixed", gravity=(0.0, 0.0, 0.0), wheels={})


def _from_text(text: str, options: RobotOptions, folder: Path | None, shapes: bool) -> RobotModel:
    root = parsing.parse_description(text)
    if options.base == "segments":
        from .body_segments import segments_of_urdf  # late, as it imports this module

        return segments_of_urdf(text, root, options)
    wheels = completed(root, options.wheels)
    names = parsing.by_name(root, "joint")
    held = {name: 0.0 for name in wheels if name in names}
    urdf_joints.check_supported(root)
    given, options = options, _with_leaders_held(root, options, {**held, **options.locked_joints})
    locked = urdf_joints.locked_joints(root, {**held, **options.locked_joints})
    free = options.base == "free"
    full = urdf_joints.full_model(root, options.gravity, free)
    model, full_ids = urdf_joints.reduced_model(full, locked)
    if model.njoints < 2:
        raise ModelError(
            f"URDF robot '{root.get('name')}': has no movable joint left; identification is impossible"
            " unless its base moves (robot.base: free)")
    moving = tuple(model.names)[1 + free :]
    carried = urdf_joints.mimics_of(root, options.carried_joints).items()
    mimics = {name: mimic for name, mimic in carried if name in moving}
    joints = tuple(name for name in moving if name not in mimics)
    links = urdf_joints.moving_links(root, moving, free)
    prior = np.array([model.inertias[i].toDynamicParameters() for i in range(1, model.njoints)])
    unlocked = np.array([full.inertias[i].toDynamicParameters() for i in full_ids])
    body_locked = np.where(np.abs(prior - unlocked) > 1e-12 * np.abs(prior).max(), prior - unlocked, 0.0)
    if massless := [link for link, pi in zip(links, unlocked, strict=True) if pi[0] <= 0]:
        log_once(
            f"URDF robot '{root.get('name')}': no inertia for {first_few(massless)}; it is guessed from their shapes at"
            f" {DENSITY:g} kg/m^3, or from bars between joints. Efforts of plans and the prior of identification depend"
            " on this guess; give better values in <inertial>", logging.WARNING if shapes else logging.DEBUG)
        return _from_text(with_inertias(text, root, massless, locked, folder, shapes), given, folder, shapes)
    warn_of_inconsistent("URDF link", links, prior)
    check_units(model, links, prior)
    layout, contacts = _layout(links, joints, options), contacts_of(options)
    _check_rotors(model, links, layout.rotors)
    check_contacts(model, contacts)
    drives = urdf_joints.drive_prior(root, joints)
    stated = zip(joints, drives["rotor_inertia"], strict=True)
    drives["rotor_inertia"] = np.array([options.rotor_inertias.get(joint, inertia) for joint, inertia in stated])
    return RobotModel(
        name=root.get("name") or "robot", urdf=text, pinocchio=model, layout=layout, contacts=contacts,
        body_prior=prior, body_locked=body_locked, drive_prior=drives,
        limits=urdf_joints.limits(root, joints), options=options, wheels=mount(model, wheels), mimics=mimics,
        held_leaders=tuple(name for name in options.locked_joints if name not in given.locked_joints))


def _with_leaders_held(root: etree._Element, options: RobotOptions, locked: Mapping[str, float]) -> RobotOptions:
    """Options with the leaders of mimic joints added to the locked joints."""
    leaders = urdf_joints.held_leaders(root, locked)
    for name in options.carried_joints:
        if name not in leaders:
            can = f"one of {', '.join(leaders)}" if leaders else "none, as no joint that moves is mimicked"
            raise ModelError(f"robot.carried_joints: no joint mimics '{name}', or it is locked; give {can}")
    if not (held := {name: at for name, at in leaders.items() if name not in options.carried_joints}):
        return options
    # Write a decimal point, because ROS does not accept an integer for a parameter of type double.
    at = ", ".join(f"{name}: {float(f'{position:.6g}')!r}" for name, position in held.items())
    mimic = f"mimic joints, which are locked with their leaders: {first_few(urdf_joints.followers(root, held))}"
    mimic += ", unless recordings show that they move"
    remedy = f"for another pose, set robot.locked_joints: {{{at}}}"
    log_once(f"URDF robot '{root.get('name')}': {mimic}; {remedy}")
    return attrs.evolve(options, locked_joints={**options.locked_joints, **held})


def refuse_carried(model: RobotModel) -> None:
    """Raise ModelError if a robot carries mimic joints."""
    if model.mimics:
        raise ModelError("robot.carried_joints: only identification and validation from recordings carry mimic joints;"
            " remove the option here, so that they are locked")


def warn_of_inconsistent(what: str, names: Sequence[str], bodies: Array) -> None:
    """Log a warning about bodies ``(nb, 10)`` that no mass distribution can have; ``what`` precedes their names."""
    bad = [name for name, consistent in zip(names, is_consistent(bodies), strict=True) if not consistent]
    if not bad:
        return
    others = "1 more" if len(bad) == 2 else f"{len(bad) - 1} more"
    rest = f", also for {others} ({', '.join(bad[1:])})" if len(bad) > 1 else ""
    problem = "inertia is not physically consistent (impossible for any mass distribution)"
    _log.warning("%s '%s': %s%s; fits start from the nearest consistent inertia", what, bad[0], problem, rest)


def _check_rotors(model: pin.Model, links: tuple[str, ...], rotors: tuple[Rotor, ...]) -> None:
    names = [rotor.name for rotor in rotors]
    if taken := [name for name in names if names.count(name) > 1 or name in links or model.existJointName(name)]:
        raise ModelError(f"rotor '{taken[0]}': another rotor, link or joint has this name; choose another name")
    with_rotors(model, rotors)
    warn_of_inconsistent("rotor", names, np.array([rotor.parameters for rotor in rotors]).reshape(-1, BODY_PARAMETERS))


def _layout(links: tuple[str, ...], joints: tuple[str, ...], options: RobotOptions) -> ParameterLayout:
    of_joints = {"effort scale": options.effort_scale, "Stribeck speed": options.stribeck_speeds,
        "command_kp": options.command_kp, "command_kd": options.command_kd, "command limit": options.command_limits}
    for what, values in of_joints.items():
        for joint in values:
            if joint not in joints:
                raise ModelError(f"{what} of '{joint}': no such joint; the robot has {joints}")
    for name, coupling in options.couplings.items():
        if name in joints:
            raise ModelError(f"coupling '{name}': a joint has this name; choose another name")
        for joint in coupling.joints:
            if joint not in joints:
                raise ModelError(f"coupling '{name}': joint '{joint}' does not exist; the robot has {joints}")
    for name in options.rotor_inertias:
        if name not in (*joints, *options.couplings):
            raise ModelError(f"rotor_inertias: no joint or coupling '{name}'; the robot has {joints}")
    terms = [UserTerm.from_options(name, term) for name, term in options.terms.items()]
    posed = {name: drive.position for name, drive in options.couplings.items() if drive.position}
    try:
        terms += [UserTerm.of_coupling(name, position) for name, position in posed.items()]
        problem = misnamed(terms, joints)
    except ValueError as error:
        raise ModelError(f"couplings: position {error}") from None
    if problem:
        raise ModelError(problem)
    speeds = [options.stribeck_speeds.get(joint, STRIBECK_SPEED) for joint in joints if options.stribeck_speeds]
    return ParameterLayout(
        links, joints, options.drive_terms,
        tuple(Coupling(name, drive.joints, drive.ratios) for name, drive in options.couplings.items() if drive.joints),
        tuple(Rotor.from_options(name, rotor) for name, rotor in options.rotors.items()), tuple(speeds), tuple(terms),
        options.effort == "gravity_compensated")
