"""Base parameters of a robot itself: in closed form, without sampled states, or from random states.

``docs/base_parameters.md`` derives the closed form, one pass from the base to the tips of the tree; [Wensing2024]_
describes observability in a similar way. The effect of a body's parameters on the joints between base and body has two
parts. The part that changes with the body's own joint makes its base parameters. The constant part acts like parameters
of the parent: it is regrouped into the parent by the rules of [Gautier1990]_, and has no effect in the root body. For a
freely moving base only the start differs: the base can have any velocity, so all its ten parameters are observable
([Naveen2019]_ eq. 18-25).

The velocity and the parameters of the body behind a joint depend on the joint position only by a few independent
functions, ``X(q) = sum_k phi_k(q) X_k``: 1, cos q, sin q, cos 2q, sin 2q behind a revolute joint; 1, q, q^2 behind a
prismatic joint. :func:`tidy` removes the rounding of URDF files.
"""

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, transform
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import compress
from inertid_ros.robot.dynamics import WRENCH_TABLE
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.rotors import with_rotors

from . import numeric

_ROUNDING_RAD = 2e-5  # right angles written with five digits (1.5708, 3.1416) and their sums
_ROUNDING_LENGTH_SHARE = 1e-5  # of the robot's typical link length
SPATIAL_INERTIA_BASIS = WRENCH_TABLE[..., :6].swapaxes(0, 1)
"""``(10, 6, 6)``: spatial inertia (linear, then angular) of each unit parameter."""

_LENGTH_POWER = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
# Columns of drive terms that a rigid body can imitate follow the columns of its ten parameters.
_ROTOR_COLUMN, _OFFSET_COLUMN, _CONDITION_COLUMNS = BODY_PARAMETERS, BODY_PARAMETERS + 1, BODY_PARAMETERS + 2
_LINK_ORDER = (numeric.BODY_ORDER[0], _ROTOR_COLUMN, *numeric.BODY_ORDER[1:], _OFFSET_COLUMN)  # first to last regrouped


@dataclass(frozen=True)
class KinematicTree:
    """A tree of links and rotors, each behind one revolute or prismatic joint.

    Attributes
    ----------
    parents : tuple of int
        ``(nb,)`` index of the parent body, -1 for the world; parents come before children; rotors have no children and
        come last.
    rotations, translations : ndarray, shape (nb, 3, 3) and (nb, 3)
        Pose of the joint frame in the parent's frame at q = 0 [m].
    axes : ndarray, shape (nb, 6)
        Motion subspace in the joint frame, linear then angular: one part is a unit vector and the other part zero. A
        body with a zero axis is a base that moves freely.
    gravity : ndarray, shape (3,)
        In the world's frame [m/s^2]; zero without gravity.
    """

    parents: tuple[int, ...]
    rotations: Array
    translations: Array
    axes: Array
    gravity: Array

    @property
    def free(self) -> np.ndarray:
        """Mask ``(nb,)`` of bodies that move freely."""
        return np.logical_not(np.any(self.axes, axis=1))

    @property
    def length(self) -> float:
        """Typical distance [m] between joints; 1 if all joints meet in one point."""
        distances = np.linalg.norm(self.translations, axis=1)
        apart = distances[distances > 1e-9 * distances.max(initial=0.0)]
        return float(np.sqrt(np.mean(apart**2))) if apart.size else 1.0


def kinematic_tree(model: RobotModel) -> KinematicTree:
    """Kinematic tree of a robot, with the rounding of its URDF."""
    layout = model.layout
    kinematics = with_rotors(model.pinocchio, layout.rotors)
    placements = list(kinematics.jointPlacements)[1:]
    axes = [np.concatenate([np.zeros(3), rotor.unit_axis]) for rotor in layout.rotors]
    return KinematicTree(
        tuple(parent - 1 for parent in list(kinematics.parents)[1:]),
        np.array([placement.rotation for placement in placements]),
        np.array([placement.translation for placement in placements]),
        np.vstack([model.axes, *axes]), np.array(kinematics.gravity.linear))


def tidy(tree: KinematicTree) -> KinematicTree:
    """Set nearly zero angles and offsets of a tree to zero.

    With 1.5708 for a right angle in a file, axes meet, cross or run in parallel only up to some microradians. The
    rounding thus adds base parameters that cannot be measured. All other angles stay as they are.
    """
    axes = np.where(np.abs(tree.axes) < _ROUNDING_RAD, 0.0, tree.axes)
    rounding = _ROUNDING_LENGTH_SHARE * tree.length
    return replace(
        tree, rotations=np.array([_tidy_rotation(rotation) for rotation in tree.rotations]),
        translations=np.where(np.abs(tree.translations) < rounding, 0.0, tree.translations),
        axes=axes / np.maximum(np.linalg.norm(axes, axis=1, keepdims=True), 1e-300))


def tidied(model: RobotModel) -> RobotModel:
    """Robot with the kinematics of :func:`tidy`; its URDF text stays as it is."""
    tree, old, layout = tidy(kinematic_tree(model)), model.pinocchio, model.layout
    new = pin.Model()
    new.gravity = old.gravity
    for body in range(len(layout.links)):
        linear, angular = tree.axes[body, :3], tree.axes[body, 3:]
        if tree.free[body]:
            joint = pin.JointModelFreeFlyer()
        elif angular.any():
            joint = pin.JointModelRevoluteUnaligned(angular)
        else:
            joint = pin.JointModelPrismaticUnaligned(linear)
        placement = pin.SE3(tree.rotations[body], tree.translations[body])
        new.addJoint(tree.parents[body] + 1, joint, placement, old.names[body + 1])
        new.inertias[body + 1] = old.inertias[body + 1]
    for frame in list(old.frames)[1:]:
        if frame.type == pin.FrameType.BODY:
            new.addFrame(frame)
    rotors = []
    for body, rotor in enumerate(layout.rotors, start=len(layout.links)):
        link = new.frames[new.getFrameId(rotor.link, pin.FrameType.BODY)]
        placement = link.placement.actInv(pin.SE3(tree.rotations[body], tree.translations[body]))
        angles, axis = pin.rpy.matrixToRpy(placement.rotation), tree.axes[body, 3:]
        rotors.append(replace(rotor, xyz=tuple(placement.translation), rpy=tuple(angles), axis=tuple(axis)))
    return replace(model, pinocchio=new, layout=replace(layout, rotors=tuple(rotors)))


def _tidy_rotation(rotation: Array) -> Array:
    """Set small elements to zero if the result is still a rotation."""
    sparse = np.where(np.abs(rotation) < _ROUNDING_RAD, 0.0, rotation)
    if np.abs(sparse @ sparse.T - np.eye(3)).max() > 3 * _ROUNDING_RAD**2:
        return rotation
    left, _, right = np.linalg.svd(sparse)
    nearest = left @ right
    return np.where(np.abs(nearest) < 1e-15, 0.0, nearest)


def joint_motion(tree: KinematicTree) -> tuple[Array, Array]:
    """Split the transforms of velocity and parameters for every joint of a tree by the functions of q.

    Five functions make both transforms, so their values at five positions give the coefficients.

    Returns
    -------
    velocity : ndarray, shape (nb, 5, 6, 6)
        Coefficients of the transforms of the parent's velocity (linear, angular, at the parent's origin) to the body's
        frame; axis 1 is the function, the constant first.
    parameters : ndarray, shape (nb, 5, 10, 10)
        Coefficients of the transforms of the body's parameters to the parent's frame.
    """
    velocity, parameters, angles = [], [], 0.4 * np.pi * np.arange(5)
    harmonics = [np.ones(5), np.cos(angles), np.sin(angles), np.cos(2 * angles), np.sin(2 * angles)]
    for rotation, translation, axis in zip(tree.rotations, tree.translations, tree.axes, strict=True):
        revolute, steps = axis[3:].any(), np.linspace(-1.0, 1.0, 5)
        q, functions = (angles, np.transpose(harmonics)) if revolute else (steps, np.vander(steps, increasing=True))
        poses = [pin.SE3(rotation, translation) * pin.exp6(pin.Motion(axis * position)) for position in q]
        moved = [transform(np.eye(BODY_PARAMETERS), pose.rotation, pose.translation).T for pose in poses]
        weights = np.linalg.inv(functions)
        velocity.append(np.tensordot(weights, [pose.actionInverse for pose in poses], 1))
        parameters.append(np.tensordot(weights, moved, 1))
    return np.array(velocity), np.array(parameters)


def base_parameters_of_robot(model: RobotModel) -> numeric.BaseParameters:
    """Base parameters of the robot itself: in closed form, or numerically if the closed form does not cover it."""
    try:
        return closed_form_base_parameters(model)
    except IdentificationError:
        return structural_base_parameters(model)


def closed_form_base_parameters(model: RobotModel) -> numeric.BaseParameters:
    """Base parameters of a robot from its kinematics alone.

    Rounded right angles in the URDF are taken as right angles, see :func:`.tidy`. Reflected inertia and offset are
    regrouped if links make the same torque.

    Raises
    ------
    IdentificationError
        The robot has geared rotors, drives that turn with several joints, a gravity compensation or mimic joints.
    """
    if model.layout.rotors or model.layout.couplings or model.layout.compensation or model.mimics:
        raise IdentificationError("the closed form of base parameters does not cover rotors, drives that turn with"
            " several joints, gravity compensation or mimic joints; use structural_base_parameters")
    return minimal_parameters(tidy(kinematic_tree(model)), model.layout)


def minimal_parameters(tree: KinematicTree, layout: ParameterLayout) -> numeric.BaseParameters:
    """Base parameters of any tree, with a fixed or a freely moving base.

    Parameters
    ----------
    layout : layout with the links of the tree, in its order, and one joint per link that does not move freely
    """
    length, weight = tree.length, float(np.linalg.norm(tree.gravity)) or 1.0
    velocity, parameters = joint_motion(replace(tree, translations=tree.translations / length))
    conditions, gap = link_conditions(tree, (velocity, parameters), tree.gravity / weight)
    projection, dependent, joint = np.eye(layout.size), [], 0
    drives = {_ROTOR_COLUMN: "rotor_inertia", _OFFSET_COLUMN: "offset"}
    terms = [column for column, term in drives.items() if term in layout.drive_terms]
    for body, (parent, rows) in enumerate(zip(tree.parents, conditions, strict=True)):
        # Existing parameters among the body's ten, reflected inertia and offset, and their columns in the layout.
        local = [*range(BODY_PARAMETERS), *(() if tree.free[body] else terms)]
        columns = np.arange(BODY_PARAMETERS * body, BODY_PARAMETERS * (body + 1))
        if not tree.free[body]:
            columns = np.append(columns, [layout.drive(drives[term]).start + joint for term in terms]).astype(int)
            joint += 1
        shown = numeric.span(rows[:, local])
        order = [local.index(k) for k in _LINK_ORDER if k in local]
        kept, regrouped, mixing = numeric.regrouped(shown.rest.T, order)
        mixing[np.abs(mixing) < numeric.NEGLIGIBLE_COEFFICIENT] = 0.0
        by_kept = np.zeros((layout.size, len(columns)))
        by_kept[columns[kept], kept] = 1.0
        by_kept[np.ix_(columns[kept], regrouped)] = mixing
        if parent >= 0:
            # A change that the body's own joint does not show acts like parameters of the parent, at any q.
            change = np.eye(len(local))[:, regrouped]
            change[kept] = -mixing
            of_parent = projection[:, BODY_PARAMETERS * parent : BODY_PARAMETERS * (parent + 1)]
            by_kept[:, regrouped] += of_parent @ parameters[body, 0] @ change[:BODY_PARAMETERS]
        projection[:, columns] = by_kept
        dependent += list(columns[regrouped])
        gap = min(gap, shown.gap)
    projection[np.abs(projection) < numeric.NEGLIGIBLE_COEFFICIENT] = 0.0
    # Back from the units in which typical length and gravity are one.
    units = np.ones(layout.size)
    units[: layout.inertial_size] = np.tile(length**_LENGTH_POWER, layout.inertial_size // BODY_PARAMETERS)
    if "rotor_inertia" in layout.drive_terms:
        units[layout.drive("rotor_inertia")] = np.where(tree.axes[:, 3:].any(axis=1), length**2, 1.0)[~tree.free]
    units[layout.drive("offset")] = weight
    dropped = np.array(sorted(dependent), dtype=int)
    independent = np.setdiff1d(np.arange(layout.size), dropped)
    regrouping = (projection * units[:, None] / units)[np.ix_(independent, dropped)]
    return numeric.BaseParameters(independent, dropped, regrouping, max(gap, 1.0), layout, float("nan"))


def link_conditions(
        tree: KinematicTree, motion: tuple[Array, Array], gravity: Array) -> tuple[list[Array], float]:
    """Conditions ``(k, 12)`` per link, and the smallest gap of all spans.

    A change of the parameters of a link, lumped with all links behind it, causes no torque if all its conditions
    vanish. Their columns are ten parameters, rotor inertia and offset. ``motion``, see :func:`.joint_motion`, and
    ``gravity (3,)`` have units in which typical length and gravity are one.
    """
    # Per body: span (k, 6) of its accelerations, linear then angular, the part of the upward acceleration that does not
    # depend on any joint, and functionals (f, 10) of its parameters on which some torque depends. The world is -1.
    moving, upward = {-1: np.zeros((0, 6))}, {-1: np.append(-gravity, np.zeros(3))}
    observable, conditions, gap = {-1: np.zeros((0, BODY_PARAMETERS))}, [], float("inf")
    for body, parent in enumerate(tree.parents):
        velocity, parameters, axis = motion[0][body], motion[1][body], tree.axes[body]
        if tree.free[body]:  # accelerates in every direction, so gravity does not add a direction
            moving[body], upward[body], observable[body] = np.eye(6), np.zeros(6), np.eye(BODY_PARAMETERS)
            conditions.append(np.eye(BODY_PARAMETERS, _CONDITION_COLUMNS))
            continue
        upward[body] = velocity[0] @ upward[parent]
        passed_on = moving[parent] @ velocity.swapaxes(1, 2)
        inherited = numeric.span(np.vstack([*passed_on, velocity[1:] @ upward[parent]]))
        causes = np.vstack([inherited.rows, upward[body], axis])
        constant, *changing = observable[parent] @ parameters
        rows = np.zeros((len(causes), _CONDITION_COLUMNS))
        rows[:, :BODY_PARAMETERS] = causes @ (axis @ SPATIAL_INERTIA_BASIS).T
        # The inertia of a rotor adds to the inertia of the body, and an offset acts like gravity.
        rows[-1, _ROTOR_COLUMN] = rows[-2, _OFFSET_COLUMN] = 1.0
        passed = np.vstack(changing)
        conditions.append(np.vstack([rows, np.pad(passed, ((0, 0), (0, _CONDITION_COLUMNS - BODY_PARAMETERS)))]))
        accelerated = numeric.span(np.vstack([inherited.rows, axis]))
        seen = numeric.span(np.vstack([rows[:, :BODY_PARAMETERS], passed, constant]))
        moving[body], observable[body] = accelerated.rows, seen.rows
        gap = min(gap, inherited.gap, accelerated.gap, seen.gap)
    return conditions, gap


def structural_base_parameters(model: RobotModel) -> numeric.BaseParameters:
    """Base parameters of the robot itself, from random states rather than from a recording.

    Rounded right angles in the URDF are taken as right angles, see :func:`.tidy`. If the closed form,
    :func:`.closed_form_base_parameters`, covers the robot, it gives an equal result much faster.
    """
    generator, n = np.random.default_rng(0), model.joints
    states = 12 * len(model.link_names) + 20  # as many as the first joint alone needs for all its columns
    q, v, a = generator.uniform(-np.pi, np.pi, (states, n)), *generator.normal(size=(2, states, model.velocities))
    q[:, model.slides] /= np.pi
    if model.free:
        quaternions = generator.normal(size=(states, 4))
        quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
        q = np.hstack([np.zeros((states, 3)), quaternions, q])
    every = np.ones(v.shape, dtype=bool)
    samples = Samples(np.arange(states, dtype=float), q, v, a, np.zeros_like(v), every, every[:, 0], "random states")
    R, _ = compress(tidied(model), [samples]).whitened(np.ones(model.velocities))
    return numeric.base_parameters(model.layout, R)
