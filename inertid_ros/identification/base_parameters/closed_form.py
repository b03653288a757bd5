"""Base parameters in closed form: one pass from the base to the tips of the tree, without a single state.

``docs/base_parameters.md`` derives it, and [Wensing2024]_ describes observability likewise. Of the parameters of a body
that act on the joints before it, the part that changes with its own joint makes its base parameters; the constant part
is regrouped into its parent by the rules of [Gautier1990]_, and has no effect in the root body. A base that moves
freely differs by its start only: it can have any velocity, so that all its ten parameters are observable
([Naveen2019]_ eq. 18-25).
"""

from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

from .kinematic_tree import SPATIAL_INERTIA_BASIS, JointMotion, KinematicTree, joint_motion, kinematic_tree, tidy
from .numeric import (
    BODY_ORDER,
    NEGLIGIBLE_COEFFICIENT,
    BaseParameters,
    choose_columns,
    span,
    structural_base_parameters,
)

_LENGTH_POWER = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
# Drive terms that a rigid body can imitate follow its ten parameters.
_ROTOR_COLUMN, _OFFSET_COLUMN = BODY_PARAMETERS, BODY_PARAMETERS + 1
_TERMS_OF_COLUMNS = {_ROTOR_COLUMN: "rotor_inertia", _OFFSET_COLUMN: "offset"}
_LINK_ORDER = (BODY_ORDER[0], _ROTOR_COLUMN, *BODY_ORDER[1:], _OFFSET_COLUMN)  # regrouped first to regrouped last


def base_parameters_of_robot(model: RobotModel) -> BaseParameters:
    """Base parameters of the robot itself: in closed form, or numerically with rotors or drives of several joints."""
    if model.layout.rotors or model.layout.couplings:
        return structural_base_parameters(model)
    return closed_form_base_parameters(model)


def closed_form_base_parameters(model: RobotModel) -> BaseParameters:
    """Base parameters of a robot from its kinematics alone.

    Rounded right angles in the URDF are taken as right angles, see :func:`.tidy`. Reflected inertia and offset are
    regrouped if links make the same torque.

    Raises
    ------
    IdentificationError
        The robot has rotors or drives of several joints.
    """
    if model.layout.rotors or model.layout.couplings:
        raise IdentificationError(
            "the closed form of base parameters covers neither rotors nor drives of several joints; use"
            " structural_base_parameters"
        )
    return minimal_parameters(tidy(kinematic_tree(model)), model.layout)


@dataclass(frozen=True)
class _Accelerations:
    """Accelerations (linear, angular) that a body can have by the joints before it, and gravity as an upward one.

    Attributes
    ----------
    moving : ndarray, shape (k, 6)
        Orthonormal span of all that joints make or change.
    steady : ndarray, shape (6,)
        Part of gravity that no joint changes.
    """

    moving: Array
    steady: Array


def minimal_parameters(tree: KinematicTree, layout: ParameterLayout) -> BaseParameters:
    """Base parameters of any tree, with a fixed or a freely moving base.

    Parameters
    ----------
    layout : ParameterLayout
        One link per body of the tree, in its order, and one joint per body that does not move freely.
    """
    length, gravity = tree.length, float(np.linalg.norm(tree.gravity)) or 1.0
    tree = replace(tree, translations=tree.translations / length, gravity=tree.gravity / gravity)
    motion, columns_of_bodies = joint_motion(tree), _columns(tree, layout)
    accelerations = {-1: _Accelerations(np.zeros((0, 6)), np.append(-tree.gravity, np.zeros(3)))}
    observable = {-1: np.zeros((0, BODY_PARAMETERS))}  # functionals of a body on which some joint torque depends
    projection = np.eye(layout.size)
    regrouped: list[int] = []
    gaps: list[float] = []
    for body, (parent, (local, columns)) in enumerate(zip(tree.parents, columns_of_bodies, strict=True)):
        before = accelerations[parent], observable[parent]
        rows, accelerations[body], observable[body], gap = _conditions(tree, motion, body, *before)
        choice = choose_columns(rows[:, local], [local.index(k) for k in _LINK_ORDER if k in local])
        # Columns regrouped have the effect of those kept, and that of the rest in the body's parent.
        kept, dropped = columns[choice.independent], columns[choice.dependent]
        projection[dropped, dropped] = 0.0
        projection[np.ix_(kept, dropped)] = choice.regrouping
        if parent >= 0:
            inertial = projection[:, columns_of_bodies[parent][1][:BODY_PARAMETERS]]
            rest = choice.null_space[:BODY_PARAMETERS]
            projection[:, dropped] += inertial @ motion.parameters_at_zero[body] @ rest
        regrouped += dropped.tolist()
        gaps += [gap, choice.gap]
    projection[np.abs(projection) < NEGLIGIBLE_COEFFICIENT] = 0.0
    dependent = np.sort(np.array(regrouped, dtype=int))
    independent = np.setdiff1d(np.arange(layout.size), dependent)
    units = _units(tree, layout, length, gravity)
    regrouping = (projection * units[:, None] / units)[np.ix_(independent, dependent)]
    return BaseParameters(independent, dependent, regrouping, max(min(gaps), 1.0), layout, float("nan"))


def _conditions(
    tree: KinematicTree, motion: JointMotion, body: int, before: _Accelerations, observable: Array
) -> tuple[Array, _Accelerations, Array, float]:
    """Conditions on a body, with all bodies behind it, under which a change of parameters causes no torque.

    Parameters
    ----------
    before, observable : _Accelerations and ndarray, shape (f, 10)
        Accelerations and observable functionals of its parent.

    Returns
    -------
    rows : ndarray, shape (k, 12)
        Conditions on its ten parameters, rotor inertia and offset.
    accelerations, observable : _Accelerations and ndarray, shape (f, 10)
        Those of the body itself.
    gap : float
        Smallest gap of the spans.
    """
    if tree.free[body]:  # accelerations in every direction: gravity adds none
        every = np.eye(BODY_PARAMETERS)
        return np.eye(BODY_PARAMETERS, BODY_PARAMETERS + 2), _Accelerations(np.eye(6), np.zeros(6)), every, np.inf
    # Accelerations of the parent as the body has them, without and with its own joint.
    axis, velocity = tree.axes[body], motion.velocity[body]
    changed = velocity[1:] @ before.steady
    inherited = span(np.vstack([(before.moving @ np.swapaxes(velocity, 1, 2)).reshape(-1, 6), changed]))
    steady = velocity[0] @ before.steady
    total = span(np.vstack([inherited.rows, axis]))
    # Its own torque, by each acceleration, and what its motion changes in the torque at the joints before.
    causes = np.vstack([inherited.rows, steady, axis])
    constant, *changing = observable @ motion.parameters[body]
    rows = np.zeros((len(causes) + sum(map(len, changing)), BODY_PARAMETERS + 2))
    rows[: len(causes), :BODY_PARAMETERS] = causes @ (axis @ SPATIAL_INERTIA_BASIS).T
    rows[len(causes) :, :BODY_PARAMETERS] = np.vstack(changing)
    # A rotor resists together with the body, and an offset pulls like gravity.
    rows[len(causes) - 1, _ROTOR_COLUMN] = rows[len(causes) - 2, _OFFSET_COLUMN] = 1.0
    shown = span(np.vstack([rows[:, :BODY_PARAMETERS], constant]))
    gap = min(inherited.gap, total.gap, shown.gap)
    return rows, _Accelerations(total.rows, steady), shown.rows, gap


def _columns(tree: KinematicTree, layout: ParameterLayout) -> list[tuple[list[int], np.ndarray]]:
    """Parameters of each body, of its ten, reflected inertia and offset, and their columns in the layout."""
    terms = [column for column, term in _TERMS_OF_COLUMNS.items() if term in layout.drive_terms]
    columns_of_bodies, joint = [], 0
    for body, free in enumerate(tree.free):
        inertial, present = range(BODY_PARAMETERS * body, BODY_PARAMETERS * (body + 1)), [] if free else terms
        drives = [layout.drive(_TERMS_OF_COLUMNS[column]).start + joint for column in present]
        columns_of_bodies.append(([*range(BODY_PARAMETERS), *present], np.array([*inertial, *drives])))
        joint += not free
    return columns_of_bodies


def _units(tree: KinematicTree, layout: ParameterLayout, length: float, gravity: float) -> Array:
    """``(p,)`` SI value of a unit of each parameter, where typical length and gravity are one."""
    units = np.ones(layout.size)
    units[: layout.inertial_size] = np.tile(length**_LENGTH_POWER, len(tree.parents))
    if "rotor_inertia" in layout.drive_terms:
        revolute = tree.axes[~tree.free, 3:].any(axis=1)
        units[layout.drive("rotor_inertia")] = np.where(revolute, length, 1.0) ** 2
    units[layout.drive("offset")] = gravity
    return units
