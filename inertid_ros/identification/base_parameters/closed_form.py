"""Base parameters in closed form: one pass from the base to the tips of the tree, without sampled states.

``docs/base_parameters.md`` derives the method; [Wensing2024]_ describes observability in a similar way. The effect of a
body's parameters on the joints between base and body has two parts. The part that changes with the body's own joint
makes its base parameters. The constant part acts like parameters of the parent: it is regrouped into the parent by the
rules of [Gautier1990]_, and has no effect in the root body. For a freely moving base only the start differs: the base
can have any velocity, so all its ten parameters are observable ([Naveen2019]_ eq. 18-25).
"""

from dataclasses import replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

from . import numeric
from .kinematic_tree import SPATIAL_INERTIA_BASIS, KinematicTree, joint_motion, kinematic_tree, tidy
from .numeric import BODY_ORDER, BaseParameters, span

_LENGTH_POWER = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
# Columns of drive terms that a rigid body can imitate follow the columns of its ten parameters.
_ROTOR_COLUMN, _OFFSET_COLUMN, _LINK_COLUMNS = BODY_PARAMETERS, BODY_PARAMETERS + 1, BODY_PARAMETERS + 2
_LINK_ORDER = (BODY_ORDER[0], _ROTOR_COLUMN, *BODY_ORDER[1:], _OFFSET_COLUMN)  # regrouped first to regrouped last


def base_parameters_of_robot(model: RobotModel) -> BaseParameters:
    """Base parameters of the robot itself: in closed form, or numerically if the closed form does not cover it."""
    try:
        return closed_form_base_parameters(model)
    except IdentificationError:
        return numeric.structural_base_parameters(model)


def closed_form_base_parameters(model: RobotModel) -> BaseParameters:
    """Base parameters of a robot from its kinematics alone.

    Rounded right angles in the URDF are taken as right angles, see :func:`.tidy`. Reflected inertia and offset are
    regrouped if links make the same torque.

    Raises
    ------
    IdentificationError
        The robot has geared rotors, drives that turn with several joints, a gravity compensation or mimic joints.
    """
    if model.layout.rotors or model.layout.couplings or model.layout.compensation or model.mimics:
        raise IdentificationError("the closed form of base parameters covers neither rotors and drives that turn with"
            " several joints nor a gravity compensation and mimic joints; use structural_base_parameters")
    return minimal_parameters(tidy(kinematic_tree(model)), model.layout)


def minimal_parameters(tree: KinematicTree, layout: ParameterLayout) -> BaseParameters:
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
        shown = span(rows[:, local])
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
    return BaseParameters(independent, dropped, regrouping, max(gap, 1.0), layout, float("nan"))


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
            conditions.append(np.eye(BODY_PARAMETERS, _LINK_COLUMNS))
            continue
        upward[body] = velocity[0] @ upward[parent]
        inherited = span(np.vstack([*(moving[parent] @ velocity.swapaxes(1, 2)), velocity[1:] @ upward[parent]]))
        causes = np.vstack([inherited.rows, upward[body], axis])
        constant, *changing = observable[parent] @ parameters
        rows = np.zeros((len(causes), _LINK_COLUMNS))
        rows[:, :BODY_PARAMETERS] = causes @ (axis @ SPATIAL_INERTIA_BASIS).T
        # The inertia of a rotor adds to the inertia of the body, and an offset acts like gravity.
        rows[-1, _ROTOR_COLUMN] = rows[-2, _OFFSET_COLUMN] = 1.0
        passed = np.vstack(changing)
        conditions.append(np.vstack([rows, np.pad(passed, ((0, 0), (0, _LINK_COLUMNS - BODY_PARAMETERS)))]))
        accelerated = span(np.vstack([inherited.rows, axis]))
        seen = span(np.vstack([rows[:, :BODY_PARAMETERS], passed, constant]))
        moving[body], observable[body] = accelerated.rows, seen.rows
        gap = min(gap, inherited.gap, accelerated.gap, seen.gap)
    return conditions, gap
