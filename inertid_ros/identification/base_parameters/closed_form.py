"""Base parameters in closed form: one pass from the base to the tips of the tree, without a single state.

``docs/base_parameters.md`` derives it. Of the parameters of a body that act on the joints before it, the part that
changes with its own joint makes its base parameters; the constant part is regrouped into its parent, and of the root
body it has no effect. A base that moves freely differs by its start only: it can have any velocity, so that all its
ten parameters are observable ([Naveen2019]_ eq. 18-25).
"""

import numpy as np

from inertid_ros.robot.bodies.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

from .column_selection import NEGLIGIBLE, choose_columns
from .joint_motion import joint_motion
from .kinematic_tree import KinematicTree, kinematic_tree, tidy
from .parameter_regrouping import ParentRegrouping, coupling_columns, regroup_friction
from .result import BaseParameters
from .shared_inertias import regroup_rotor, regroup_shared, tree_conditions
from .units import TreeUnits, columns_of_links


def closed_form_base_parameters(model: RobotModel) -> BaseParameters:
    """Base parameters of a robot from its kinematics alone.

    Rounded right angles in the URDF are taken as right angles, see :func:`~.kinematic_tree.tidy`. Reflected inertia,
    offset, coupled drives and rotors are regrouped where links or other drives make the same torque.

    Raises
    ------
    IdentificationError
        A rotor is mounted or geared in a way that the closed form does not cover.
    """
    return minimal_parameters(tidy(kinematic_tree(model)), model.layout)


def minimal_parameters(tree: KinematicTree, layout: ParameterLayout) -> BaseParameters:
    """Base parameters of any tree, with a fixed or a freely moving base.

    Parameters
    ----------
    layout : ParameterLayout
        One link per link of the tree, in its order, one joint per link that does not move freely, and its rotors.

    Raises
    ------
    ValueError
        The layout has other numbers of links, joints or rotors.
    IdentificationError
        A rotor is mounted or geared in a way that the closed form does not cover.
    """
    expected = (len(tree.links), int(np.sum(~tree.free[: len(tree.links)])), len(tree.rotors))
    given = (len(layout.links), len(layout.joints), len(layout.rotors))
    if given != expected:
        raise ValueError(
            f"layout: {given} links, joints and rotors do not fit a tree of {expected}; use that of the same robot"
        )
    units, link_columns = TreeUnits.of(tree), columns_of_links(tree, layout)
    normalised = units.normalised(tree)
    motion = joint_motion(normalised)
    conditions = tree_conditions(normalised, motion, units.coupling_ratios(layout))
    links = [own.of(columns.local) for own, columns in zip(conditions.links, link_columns, strict=True)]
    choices = [choose_columns(own.rows, columns.order) for own, columns in zip(links, link_columns, strict=True)]
    shared = regroup_shared(conditions.shared, links, choices)
    couplings, rotors = len(layout.couplings), []
    for index, (rows, spin) in enumerate(zip(conditions.rotors, conditions.spins, strict=True)):
        rotors.append(regroup_rotor(rows, spin, couplings + index in shared.choice.independent))

    regrouping = ParentRegrouping(layout.size, tree.parents, motion.parameters_at_zero)
    for columns, choice in zip(link_columns, choices, strict=True):
        regrouping.add_body(columns.columns, choice)
    for body, rotor in zip(tree.rotors, rotors, strict=True):
        regrouping.add_body(np.arange(layout.size)[layout.body(body)], rotor.choice)
    coupled = coupling_columns(layout, "rotor_inertia")
    for position, index in enumerate(shared.choice.dependent):
        column = np.zeros(layout.size)
        for link, mixing in enumerate(shared.mixing):
            regrouping.add_kept(column, link, mixing[:, position])
        for kept, amount in zip(shared.choice.independent, shared.choice.mixing[:, position], strict=True):
            if kept < couplings:
                column[coupled[kept]] += amount
            else:
                regrouping.add_kept(column, tree.rotors[kept - couplings], amount * rotors[kept - couplings].by_spin)
        if index < couplings:
            regrouping.set_column(coupled[index], column)
        else:
            regrouping.add_spin(tree.rotors[index - couplings], conditions.spins[index - couplings], column)
    gap = min([conditions.gap, shared.choice.gap, *(choice.gap for choice in choices)])
    return _result(regrouping, layout, units, gap)


def _result(parents: ParentRegrouping, layout: ParameterLayout, tree_units: TreeUnits, gap: float) -> BaseParameters:
    projection = parents.projection
    projection[np.abs(projection) < NEGLIGIBLE] = 0.0
    dependent = np.sort(np.concatenate([parents.regrouped, regroup_friction(layout, projection)]).astype(int))
    independent = np.setdiff1d(np.arange(layout.size), dependent)
    units = tree_units.units(layout)
    regrouping = (projection * units[:, None] / units)[np.ix_(independent, dependent)]
    return BaseParameters(layout, independent, dependent, regrouping, float("nan"), max(gap, 1.0))
