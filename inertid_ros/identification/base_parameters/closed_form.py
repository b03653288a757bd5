"""Base parameters in closed form: one pass from the base to the tips of the tree, without a single state.

``docs/base_parameters.md`` derives it. The accelerations that the joints before a body give it, and the torques that it
causes there and at its own joint, determine which of its parameters motion can excite ([Wensing2024]_ describes
observability likewise). The part that changes with its own joint makes its base parameters; the constant part is
regrouped into its parent by the rules of [Gautier1990]_, and has no effect in the root body. A base that moves freely
differs by its start only: it can have any velocity, so that all its ten parameters are observable ([Naveen2019]_ eq.
18-25).
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, PSEUDO_INERTIA_BASIS, from_pseudo_inertia
from inertid_ros.core.rotations import skew
from inertid_ros.robot.dynamics import WRENCH_TABLE
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

from .kinematic_tree import KinematicTree, kinematic_tree, tidy
from .numeric import (
    BODY_ORDER,
    NEGLIGIBLE_COEFFICIENT,
    BaseParameters,
    choose_columns,
    span,
    structural_base_parameters,
)

# Drive terms that a rigid body can imitate follow its ten parameters.
_ROTOR_COLUMN, _OFFSET_COLUMN = BODY_PARAMETERS, BODY_PARAMETERS + 1
_DRIVE_TERMS = {_ROTOR_COLUMN: "rotor_inertia", _OFFSET_COLUMN: "offset"}
_LINK_ORDER = (BODY_ORDER[0], _ROTOR_COLUMN, *BODY_ORDER[1:], _OFFSET_COLUMN)  # regrouped first to regrouped last
_LENGTH_POWER = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
_SPATIAL_INERTIA_BASIS = WRENCH_TABLE[..., :6].swapaxes(0, 1)  # (10, 6, 6), linear, then angular


def base_parameters_of_robot(model: RobotModel) -> BaseParameters:
    """Base parameters of the robot itself: in closed form, or numerically with rotors as bodies or coupled drives."""
    numeric = model.layout.rotors or model.layout.couplings
    return structural_base_parameters(model) if numeric else closed_form_base_parameters(model)


def closed_form_base_parameters(model: RobotModel) -> BaseParameters:
    """Base parameters of a robot from its kinematics alone.

    Rounded right angles in the URDF are taken as right angles, see :func:`.tidy`. Reflected inertia and offset are
    regrouped if links make the same torque.

    Raises
    ------
    IdentificationError
        The robot has rotors as bodies or coupled drives, whose parameters are shared by several bodies.
    """
    if model.layout.rotors or model.layout.couplings:
        raise IdentificationError(
            f"robot '{model.name}': the closed form of base parameters does not cover rotors as bodies and coupled"
            " drives; use structural_base_parameters"
        )
    return minimal_parameters(tidy(kinematic_tree(model)), model.layout)


def minimal_parameters(tree: KinematicTree, layout: ParameterLayout) -> BaseParameters:
    """Base parameters of any tree, with a fixed or a freely moving base.

    Parameters
    ----------
    layout : ParameterLayout
        One link per link of the tree, in its order, and one joint per link that does not move freely.
    """
    # In units in which the typical length and gravity are one.
    gravity = float(np.linalg.norm(tree.gravity)) or 1.0
    motion = joint_motion(
        replace(tree, translations=tree.translations / tree.length, gravity=tree.gravity / gravity)
    )
    conditions, gap = link_conditions(tree, motion, tree.gravity / gravity)
    terms = [column for column, term in _DRIVE_TERMS.items() if term in layout.drive_terms]
    projection, regrouped, joint = np.eye(layout.size), [], 0
    for body, (parent, free, rows) in enumerate(zip(tree.parents, tree.free, conditions, strict=True)):
        # Columns of the link and of its joint's drive that exist, and those of them that are kept.
        local = [*range(BODY_PARAMETERS), *(() if free else terms)]
        drives = [layout.drive(_DRIVE_TERMS[term]).start + joint for term in local[BODY_PARAMETERS:]]
        columns = np.array([*range(BODY_PARAMETERS * body, BODY_PARAMETERS * (body + 1)), *drives])
        choice = choose_columns(rows[:, local], [local.index(column) for column in _LINK_ORDER if column in local])
        kept = np.zeros((layout.size, len(columns)))
        kept[columns[choice.independent], choice.independent] = 1.0
        kept[np.ix_(columns[choice.independent], choice.dependent)] = choice.regrouping
        # The others act like parameters of the parent.
        if parent >= 0:
            of_parent = projection[:, BODY_PARAMETERS * parent : BODY_PARAMETERS * (parent + 1)]
            kept[:, choice.dependent] += of_parent @ motion.at_zero[body] @ choice.null_space[:BODY_PARAMETERS]
        projection[:, columns] = kept
        regrouped += list(columns[choice.dependent])
        joint, gap = joint + (not free), min(gap, choice.gap)
    projection[np.abs(projection) < NEGLIGIBLE_COEFFICIENT] = 0.0
    dependent = np.sort(np.array(regrouped, dtype=int))
    independent = np.setdiff1d(np.arange(layout.size), dependent)
    units = _units(tree, layout, gravity)
    regrouping = (projection * units[:, None] / units)[np.ix_(independent, dependent)]
    return BaseParameters(independent, dependent, regrouping, max(gap, 1.0), layout, float("nan"))


def _units(tree: KinematicTree, layout: ParameterLayout, gravity: float) -> Array:
    """``(p,)`` SI value of a unit of each parameter."""
    units = np.ones(layout.size)
    units[: layout.inertial_size] = np.tile(tree.length**_LENGTH_POWER, layout.inertial_size // BODY_PARAMETERS)
    if "rotor_inertia" in layout.drive_terms:
        revolute = tree.axes[~tree.free, 3:].any(axis=1)
        units[layout.drive("rotor_inertia")] = np.where(revolute, tree.length, 1.0) ** 2
    units[layout.drive("offset")] = gravity
    return units


def link_conditions(tree: KinematicTree, motion: "JointMotion", gravity: Array) -> tuple[list[Array], float]:
    """Functionals of every body that must vanish for a change of parameters to cause no torque.

    Parameters
    ----------
    motion, gravity : JointMotion and ndarray, shape (3,)
        In units in which length and gravity are of the order of one.

    Returns
    -------
    conditions : list of ndarray, shape (k, 12)
        Conditions on the ten parameters of a body with all bodies behind it, rotor inertia and offset.
    gap : float
        Smallest gap of all spans.
    """
    # Accelerations that a body can have, by their span, and apart from these the part of the acceleration upward,
    # which replaces gravity, that no joint in between changes: an offset can be confused with it.
    accelerations = {-1: (np.zeros((0, 6)), np.append(-gravity, np.zeros(3))[None])}
    observable: dict[int, Array] = {-1: np.zeros((0, BODY_PARAMETERS))}  # functionals on which some torque depends
    conditions, gap = [], float("inf")
    for body, (parent, axis) in enumerate(zip(tree.parents, tree.axes, strict=True)):
        if tree.free[body]:
            # Accelerations in every direction: gravity adds none.
            accelerations[body], observable[body] = (np.eye(6), np.zeros((1, 6))), np.eye(BODY_PARAMETERS)
            conditions.append(np.eye(BODY_PARAMETERS, BODY_PARAMETERS + len(_DRIVE_TERMS)))
            continue
        before, upward = accelerations[parent]
        velocity = motion.velocity[body]
        changed = _transformed(velocity[1:], upward[upward.any(axis=1)])
        inherited = span(np.vstack([_transformed(velocity, before), changed]))
        upward = upward @ velocity[0].T
        total = span(np.vstack([inherited.rows, axis]))
        accelerations[body] = total.rows, upward
        causes = np.vstack([inherited.rows, upward, axis])
        constant, *changing = observable[parent] @ motion.parameters[body]
        rows = np.zeros((len(causes) + len(changing) * len(constant), BODY_PARAMETERS + len(_DRIVE_TERMS)))
        rows[: len(causes), :BODY_PARAMETERS] = causes @ (axis @ _SPATIAL_INERTIA_BASIS).T
        rows[len(causes) :, :BODY_PARAMETERS] = np.vstack(changing)
        # A rotor resists together with the body, and an offset pulls like gravity.
        rows[len(causes) - 1, _ROTOR_COLUMN] = rows[len(causes) - 2, _OFFSET_COLUMN] = 1.0
        shown = span(np.vstack([rows[:, :BODY_PARAMETERS], constant]))
        observable[body], gap = shown.rows, min(gap, inherited.gap, total.gap, shown.gap)
        conditions.append(rows)
    return conditions, gap


def _transformed(velocity: Array, vectors: Array) -> Array:
    """Apply every coefficient ``(k, 6, 6)`` of a transform to every vector ``(m, 6)``: ``(k m, 6)``."""
    return np.asarray((vectors @ np.swapaxes(velocity, 1, 2)).reshape(-1, 6))


class JointMotion(NamedTuple):
    """Transforms of every body by its joint's position: ``X(q) = sum_k phi_k(q) X_k``.

    The functions are 1, cos q, sin q, cos 2q, sin 2q behind a revolute joint and 1, q, q^2 behind a prismatic one.

    Attributes
    ----------
    velocity : ndarray, shape (nb, 3, 6, 6)
        Coefficients of a velocity of the parent (linear, angular, at its origin) seen at the body's origin.
    parameters : ndarray, shape (nb, 5, 10, 10)
        Coefficients of the parameters of the body seen in its parent's frame.
    at_zero : ndarray, shape (nb, 10, 10)
        The parameters seen in the parent's frame at q = 0; any q would do as well.
    """

    velocity: Array
    parameters: Array
    at_zero: Array


def joint_motion(tree: KinematicTree) -> JointMotion:
    """Split the transforms of velocity and parameters for every joint of a tree."""
    count = len(tree.parents)
    linear, angular = tree.axes[:, :3], tree.axes[:, 3:]
    outer = angular[:, :, None] * angular[:, None, :]
    revolute = np.any(angular, axis=1, keepdims=True)[..., None]
    turns = np.zeros((count, 3, 3, 3))  # R(q) = turns_0 + cos q turns_1 + sin q turns_2
    turns[:, 0] = np.where(revolute, outer, np.eye(3))
    turns[:, 1] = np.where(revolute, np.eye(3) - outer, 0.0)
    turns[:, 2] = skew(angular)

    pose = np.zeros((count, 3, 4, 4))
    placement = np.zeros((count, 4, 4))
    placement[:, :3, :3], placement[:, :3, 3], placement[:, 3, 3] = tree.rotations, tree.translations, 1.0
    pose[:, :, :3, :3] = turns
    pose[:, 0, 3, 3] = 1.0
    pose[:, 1, :3, 3] += linear  # of a prismatic joint; its turns_1 is zero
    pose = placement[:, None] @ pose
    constant, first, second = pose[:, 0], pose[:, 1], pose[:, 2]

    cos2, sin2 = _congruence(first, first), _congruence(second, second)
    prismatic = np.any(linear, axis=1, keepdims=True)[..., None]
    parameters = np.stack(
        [
            _congruence(constant, constant) + np.where(prismatic, 0.0, 0.5 * (cos2 + sin2)),
            2.0 * _congruence(constant, first),
            2.0 * _congruence(constant, second),
            np.where(prismatic, cos2, 0.5 * (cos2 - sin2)),
            _congruence(first, second),
        ],
        axis=1,
    )

    to_joint = np.zeros((count, 6, 6))
    inverse = np.swapaxes(tree.rotations, 1, 2)
    to_joint[:, :3, :3] = to_joint[:, 3:, 3:] = inverse
    to_joint[:, :3, 3:] = -inverse @ skew(tree.translations)
    velocity = np.zeros((count, 3, 6, 6))
    velocity[:, :, :3, :3] = velocity[:, :, 3:, 3:] = np.swapaxes(turns, 2, 3)
    velocity[:, 1, :3, 3:] -= skew(linear)
    return JointMotion(velocity @ to_joint[:, None], parameters, _congruence(placement, placement))


def _congruence(left: Array, right: Array) -> Array:
    """``(..., 10, 10)`` matrices of ``J -> (left J right^T + right J left^T) / 2`` on parameters."""
    image = left[..., None, :, :] @ PSEUDO_INERTIA_BASIS @ np.swapaxes(right, -1, -2)[..., None, :, :]
    return np.swapaxes(from_pseudo_inertia(0.5 * (image + np.swapaxes(image, -1, -2))), -1, -2)
