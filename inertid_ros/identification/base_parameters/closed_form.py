"""Base parameters in closed form: one pass from the base to the tips of the tree, without a single state.

``docs/base_parameters.md`` derives it. What changes with a body's own joint, of what the joints before it feel, must be
known of this body alone and makes its base parameters; what does not change is regrouped into its parent, and from the
root body into nothing. A base that moves freely differs by its start only: it can have any velocity, so that all its
ten parameters are felt (B 18-25).
"""

from dataclasses import dataclass, replace

import numpy as np

from ...robot.layout import ParameterLayout
from ...robot.model import RobotModel
from ...robot.parameters import BODY_PARAMETERS, Array
from .couplings import CoupledRotors, coupling_columns, regroup_friction, regroup_rotors
from .geometry import KinematicTree, kinematic_tree, tidy
from .motion import joint_motion
from .reach import OFFSET, ROTOR, reach_of_bodies
from .result import BaseParameters
from .selection import BODY_ORDER, NEGLIGIBLE, Choice, regroup

_LENGTH_POWER = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
_DRIVES = {ROTOR: "rotor_inertia", OFFSET: "offset"}
_ORDER = (BODY_ORDER[0], ROTOR, *BODY_ORDER[1:], OFFSET)  # regrouped first to regrouped last


def closed_form_base_parameters(model: RobotModel) -> BaseParameters:
    """Base parameters of a fixed-base robot from its kinematics alone.

    Rounded right angles in the URDF are taken as right angles, see :func:`~.geometry.tidy`. Rotor inertia, offset and
    coupled drives are regrouped where bodies or other drives make the same torque.
    """
    return minimal_parameters(tidy(kinematic_tree(model)), model.layout)


def minimal_parameters(tree: KinematicTree, layout: ParameterLayout) -> BaseParameters:
    """Base parameters of any tree, with a fixed or a freely moving base.

    Parameters
    ----------
    layout: one link per body of the tree, in its order, and one joint per body that does not move freely.

    Raises
    ------
    ValueError: the layout has not one link per body and one joint per joint.
    """
    joints = int(np.sum(~tree.free))
    if len(layout.links) != len(tree.parents) or len(layout.joints) != joints:
        raise ValueError(
            f"layout of {len(layout.links)} links and {len(layout.joints)} joints does not fit a tree of"
            f" {len(tree.parents)} bodies and {joints} joints: use the layout of the same robot"
        )
    length, gravity = tree.length, float(np.linalg.norm(tree.gravity)) or 1.0
    normal = replace(tree, translations=tree.translations / length, gravity=tree.gravity / gravity)
    scale = _Scale(length, gravity, np.where(tree.axes[:, 3:].any(axis=1), length, 1.0), ~tree.free)
    motion, places = joint_motion(normal), _places(tree, layout)
    equations, gap = reach_of_bodies(normal, motion, scale.unit_ratios(layout))
    equations = [e.of(place.local) for e, place in zip(equations, places, strict=True)]
    choices = [regroup(e.rows, place.order) for e, place in zip(equations, places, strict=True)]
    rotors = regroup_rotors(equations, choices)

    projection = np.eye(layout.size)
    carry = _Carry(tree.parents, places, choices, motion.parameters_at_zero)
    contributions = carry.fill_bodies(projection)
    columns = coupling_columns(layout, "rotor_inertia")
    carry.fill_coupled(projection, contributions, columns, rotors)
    projection[np.abs(projection) < NEGLIGIBLE] = 0.0
    regrouped = [place.columns[choice.dependent] for place, choice in zip(places, choices, strict=True)]
    regrouped += [columns[rotors.choice.dependent], regroup_friction(layout, projection)]
    dependent = np.sort(np.concatenate(regrouped))
    independent = np.setdiff1d(np.arange(layout.size), dependent)
    units = scale.units(layout)
    regrouping = (projection * units[:, None] / units)[np.ix_(independent, dependent)]
    gap = min([gap, rotors.choice.gap, *(choice.gap for choice in choices)])
    return BaseParameters(layout, independent, dependent, regrouping, float("nan"), max(gap, 1.0))


@dataclass(frozen=True)
class _Place:
    """Which of its ten parameters, rotor inertia and offset a body has in the layout, and at which columns."""

    local: np.ndarray
    columns: np.ndarray

    @property
    def order(self) -> list[int]:
        """Positions in ``local``, regrouped first to regrouped last."""
        return [int(np.flatnonzero(self.local == k)[0]) for k in _ORDER if k in self.local]


def _places(tree: KinematicTree, layout: ParameterLayout) -> list[_Place]:
    joints = np.cumsum(~tree.free) - 1
    terms = [k for k, term in _DRIVES.items() if term in layout.drive_terms]
    places = []
    for body, (free, joint) in enumerate(zip(tree.free, joints, strict=True)):
        own = [] if free else terms
        drives = [layout.drive(_DRIVES[k]).start + joint for k in own]
        inertial = range(BODY_PARAMETERS * body, BODY_PARAMETERS * (body + 1))
        places.append(_Place(np.array([*range(BODY_PARAMETERS), *own]), np.array([*inertial, *drives], dtype=int)))
    return places


@dataclass(frozen=True)
class _Scale:
    """What one is in the tree of unit lengths and unit gravity.

    Attributes
    ----------
    length, gravity: in m and m/s^2.
    of_joint: ``(nb,)`` velocity of each joint's body at the typical length per unit of joint velocity.
    moved: ``(nb,)`` bodies behind a joint.
    """

    length: float
    gravity: float
    of_joint: Array
    moved: np.ndarray

    def unit_ratios(self, layout: ParameterLayout) -> Array:
        """``(c, nb)`` ratios of coupled drives, of unit length."""
        ratios = np.zeros((len(layout.couplings), len(self.moved)))
        ratios[:, self.moved] = layout.coupling_ratios
        ratios /= self.of_joint
        return np.asarray(ratios / np.linalg.norm(ratios, axis=1, keepdims=True))

    def units(self, layout: ParameterLayout) -> Array:
        """``(p,)`` SI value of a unit of each parameter."""
        units = np.ones(layout.size)
        units[: layout.body_size] = np.tile(self.length**_LENGTH_POWER, len(self.moved))
        of_joint = self.of_joint[self.moved]
        if "rotor_inertia" in layout.drive_terms:
            units[layout.drive("rotor_inertia")] = of_joint**2
        units[layout.drive("offset")] = self.gravity
        units[coupling_columns(layout, "rotor_inertia")] = 1 / np.sum((layout.coupling_ratios / of_joint) ** 2, axis=1)
        return units


@dataclass(frozen=True)
class _Carry:
    """Carries what each body does not keep to its parent, and on to the base."""

    parents: tuple[int, ...]
    places: list[_Place]
    choices: list[Choice]
    at_zero: Array

    def fill_bodies(self, projection: Array) -> list[Array]:
        """Fill the columns of bodies and their drives in ``projection`` ``(p, p)``.

        Returns
        -------
        ``(p, 10)`` of each body: how its parameters, and what is regrouped into them, add to those kept.
        """
        contributions: list[Array] = []
        for body, (place, choice, parent) in enumerate(zip(self.places, self.choices, self.parents, strict=True)):
            local = np.zeros((len(projection), len(place.local)))
            local[place.columns[choice.independent], choice.independent] = 1.0
            local[np.ix_(place.columns[choice.independent], choice.dependent)] = choice.mixing
            if parent >= 0:
                left = choice.null_space[:BODY_PARAMETERS]
                local[:, choice.dependent] += contributions[parent] @ self.at_zero[body] @ left
            projection[:, place.columns] = local
            contributions.append(local[:, :BODY_PARAMETERS])
        return contributions

    def fill_coupled(
        self, projection: Array, contributions: list[Array], columns: np.ndarray, rotors: CoupledRotors
    ) -> None:
        """Fill the columns of coupled rotors, which regroup among each other and into every body they act on."""
        lost = columns[rotors.choice.dependent]
        projection[:, lost] = 0.0
        projection[np.ix_(columns[rotors.choice.independent], lost)] = rotors.choice.mixing
        bodies = zip(self.places, self.choices, self.parents, rotors.mixing, strict=True)
        for body, (place, choice, parent, mixing) in enumerate(bodies):
            projection[place.columns[choice.independent][:, None], lost] += mixing
            if parent >= 0:
                left = np.zeros((len(place.local), len(lost)))
                left[choice.independent] = -mixing
                projection[:, lost] += contributions[parent] @ self.at_zero[body] @ left[:BODY_PARAMETERS]
