"""Base parameters in closed form: one pass from the base to the tips of the tree, without a single state.

``docs/base_parameters.md`` derives it. What changes with a body's own joint, of what the joints before it feel, must be
known of this body alone and makes its base parameters; what does not change is regrouped into its parent, and from the
root body into nothing. A base that moves freely differs by its start only: it can have any velocity, so that all its
ten parameters are felt (B 18-25).
"""

import numpy as np

from inertid_ros.robot.bodies.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

from .column_selection import NEGLIGIBLE, regroup
from .coupled_friction import coupling_columns, regroup_friction
from .joint_motion import joint_motion
from .kinematic_tree import KinematicTree, kinematic_tree, tidy
from .regrouping import Carry
from .result import BaseParameters
from .shared_inertias import find_equations, regroup_rotor, regroup_shared
from .units import Scale, places_of_links


def closed_form_base_parameters(model: RobotModel) -> BaseParameters:
    """Base parameters of a robot from its kinematics alone.

    Rounded right angles in the URDF are taken as right angles, see :func:`~.geometry.tidy`. Reflected inertia, offset,
    coupled drives and rotors are regrouped where links or other drives make the same torque.

    Raises
    ------
    IdentificationError: a rotor is mounted or geared in a way that the closed form does not cover.
    """
    return minimal_parameters(tidy(kinematic_tree(model)), model.layout)


def minimal_parameters(tree: KinematicTree, layout: ParameterLayout) -> BaseParameters:
    """Base parameters of any tree, with a fixed or a freely moving base.

    Parameters
    ----------
    layout: one link per link of the tree, in its order, one joint per link that does not move freely, and its rotors.

    Raises
    ------
    ValueError: the layout has other numbers of links, joints or rotors.
    IdentificationError: a rotor is mounted or geared in a way that the closed form does not cover.
    """
    expected = (len(tree.links), int(np.sum(~tree.free[: len(tree.links)])), len(tree.rotors))
    found = (len(layout.links), len(layout.joints), len(layout.rotors))
    if found != expected:
        raise ValueError(
            f"layout: {found} links, joints and rotors do not fit a tree of {expected}; use that of the same robot"
        )
    scale, places = Scale.of(tree), places_of_links(tree, layout)
    normal = scale.normal(tree)
    motion = joint_motion(normal)
    equations = find_equations(normal, motion, scale.coupling_ratios(layout))
    links = [own.of(place.local) for own, place in zip(equations.links, places, strict=True)]
    choices = [regroup(own.rows, place.order) for own, place in zip(links, places, strict=True)]
    shared = regroup_shared(equations.alone, links, choices)
    couplings, rotors = len(layout.couplings), []
    for index, (rows, spin) in enumerate(zip(equations.rotors, equations.spins, strict=True)):
        rotors.append(regroup_rotor(rows, spin, couplings + index in shared.choice.independent))

    carry = Carry(layout.size, tree.parents, motion.parameters_at_zero)
    for place, choice in zip(places, choices, strict=True):
        carry.add(place.columns, choice)
    for body, rotor in zip(tree.rotors, rotors, strict=True):
        carry.add(np.arange(layout.size)[layout.body(body)], rotor.choice)
    coupled = coupling_columns(layout, "rotor_inertia")
    for position, lost in enumerate(shared.choice.dependent):
        into = shared.choice.mixing[:, position]
        column = np.zeros(layout.size)
        for link, mixing in enumerate(shared.mixing):
            carry.spread(column, link, mixing[:, position])
        for kept, amount in zip(shared.choice.independent, into, strict=True):
            if kept < couplings:
                column[coupled[kept]] += amount
            else:
                carry.spread(column, tree.rotors[kept - couplings], amount * rotors[kept - couplings].by_spin)
        if lost < couplings:
            carry.regroup(coupled[lost], column)
        else:
            carry.add_spin(tree.rotors[lost - couplings], equations.spins[lost - couplings], column)
    return _result(carry, layout, scale, min([equations.gap, shared.choice.gap, *(choice.gap for choice in choices)]))


def _result(carry: Carry, layout: ParameterLayout, scale: Scale, gap: float) -> BaseParameters:
    projection = carry.projection
    projection[np.abs(projection) < NEGLIGIBLE] = 0.0
    dependent = np.sort(np.concatenate([carry.regrouped, regroup_friction(layout, projection)]).astype(int))
    independent = np.setdiff1d(np.arange(layout.size), dependent)
    units = scale.units(layout)
    regrouping = (projection * units[:, None] / units)[np.ix_(independent, dependent)]
    return BaseParameters(layout, independent, dependent, regrouping, float("nan"), max(gap, 1.0))
