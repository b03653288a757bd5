"""Observability conditions of a kinematic tree, by one pass from the base to the tips.

The joints before a body accelerate it, and the body causes torques at these joints and at its own joint. Accelerations
and torques together determine which of the body's parameters motion can excite. ``docs/base_parameters.md`` derives
the conditions; [Wensing2024]_ describes observability in a similar way.

A geared rotor is a body behind a joint that turns ``ratio`` times as fast as a joint of the robot. Effects that change
with the rotor's own turning concern the rotor alone, provided that other bodies do not turn as fast. All other effects
are the effects of a body fixed to the link that carries the rotor, and of the rotor's spin: its inertia about its
axis, which acts on its joint and on all joints that turn its bearings.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np

from inertid_ros.core.arrays import Array, r_factor
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS

from .kinematic_tree import SPATIAL_INERTIA_BASIS, JointMotion, KinematicTree
from .numeric import BODY_ORDER, ColumnChoice, choose_columns, span

# Columns of drive terms that a rigid body can imitate follow the columns of its ten parameters.
ROTOR_COLUMN, OFFSET_COLUMN = BODY_PARAMETERS, BODY_PARAMETERS + 1
LINK_COLUMNS = BODY_PARAMETERS + 2
GRAVITY_LABEL = 0  # the first of the labels


@dataclass(frozen=True)
class Accelerations:
    """Accelerations that the joints before a body can give it, and gravity as an upward acceleration.

    Most accelerations count by their span alone. An acceleration has a label if the joint that makes it, or a rotor
    that this joint turns, also acts on later joints in other ways. Only the part of the acceleration that does not
    depend on the joints in between keeps the label.

    Attributes
    ----------
    unlabelled : ndarray, shape (k, 6)
        Orthonormal span of accelerations without a label, linear then angular.
    labelled : ndarray, shape (m, 6)
        Part of each labelled acceleration that does not depend on the joints in between.
    """

    unlabelled: Array
    labels: tuple[int, ...]
    labelled: Array

    @property
    def all(self) -> Array:
        """``(k + m, 6)`` accelerations, those without a label first."""
        return np.vstack([self.unlabelled, self.labelled])


@dataclass
class SharedInertiaTerms:
    """Torque of ``s`` inertias that act on several joints: coupled drives, then geared rotors.

    Attributes
    ----------
    own_joint : ndarray, shape (links, 7, s)
        Torque at each link's joint: by the joint's own acceleration, then by the six components of the acceleration
        that the link inherits.
    coefficients : dict of (int, int) to ndarray, shape (s,)
        Torque by two keys: label of the acceleration that causes it, and body at whose joint it acts.
    without_links : list of ndarray, shape (s,)
        Torque that depends on shared inertias only, not on links.
    """

    own_joint: Array
    labels: int = 1
    coefficients: dict[tuple[int, int], Array] = field(default_factory=dict)
    without_links: list[Array] = field(default_factory=list)

    @property
    def count(self) -> int:
        return self.own_joint.shape[2]

    def new_labels(self, number: int) -> tuple[int, ...]:
        first, self.labels = self.labels, self.labels + number
        return tuple(range(first, self.labels))

    def add(self, label: int, body: int, coefficients: Array) -> None:
        self.coefficients[label, body] = self.of(label, body) + coefficients

    def of(self, label: int, body: int) -> Array:
        return self.coefficients.get((label, body), np.zeros(self.count))


@dataclass(frozen=True)
class LinkAccelerations:
    """Accelerations of one body before and after its own joint adds to them.

    Attributes
    ----------
    inherited, total : Accelerations
        Accelerations without and with the body's own joint.
    """

    inherited: Accelerations
    total: Accelerations
    gap: float


def link_accelerations(
    tree: KinematicTree, motion: JointMotion, labelled: set[int], anchors: set[int], terms: SharedInertiaTerms
) -> dict[int, LinkAccelerations]:
    """Accelerations of every link, and of the world (-1), which has gravity only."""
    upward = Accelerations(np.zeros((0, 6)), (GRAVITY_LABEL,), np.append(-tree.gravity, np.zeros(3))[None])
    accelerations = {-1: LinkAccelerations(upward, upward, float("inf"))}
    for body in tree.links:
        if tree.free[body]:
            # Accelerations in every direction: gravity does not add a direction.
            total = Accelerations(np.eye(6), (GRAVITY_LABEL,), np.zeros((1, 6)))
            inherited, gap = total, float("inf")
        else:
            inherited, gap = _through_joint(accelerations[tree.parents[body]].total, motion.velocity[body])
            axis = tree.axes[body][None]
            if body in labelled:
                labels, fixed = (*inherited.labels, *terms.new_labels(1)), np.vstack([inherited.labelled, axis])
                total = Accelerations(inherited.unlabelled, labels, fixed)
            else:
                spanned = span(np.vstack([inherited.unlabelled, axis]))
                total = Accelerations(spanned.rows, inherited.labels, inherited.labelled)
                gap = min(gap, spanned.gap)
        if body in anchors:
            labels = (*total.labels, *terms.new_labels(len(total.unlabelled)))
            total = Accelerations(np.zeros((0, 6)), labels, np.vstack([total.labelled, total.unlabelled]))
        accelerations[body] = LinkAccelerations(inherited, total, gap)
    return accelerations


def _through_joint(before: Accelerations, velocity: Array) -> tuple[Accelerations, float]:
    """Transform accelerations of a parent to its child, by the coefficients ``(3, 6, 6)`` of the transform."""
    moving = before.labelled[before.labelled.any(axis=1)]
    changed = transformed(velocity[1:], moving)
    spanned = span(np.vstack([transformed(velocity, before.unlabelled), changed]))
    return Accelerations(spanned.rows, before.labels, before.labelled @ velocity[0].T), spanned.gap


@dataclass(frozen=True)
class ObservabilityConditions:
    """Functionals of the parameters of a body lumped with all bodies behind it.

    A change of the lumped parameters causes no torque if all functionals vanish.

    Attributes
    ----------
    rows : ndarray, shape (k, 12)
        Conditions on its ten parameters, rotor inertia and offset.
    shared : ndarray, shape (k, s)
        Conditions on the inertias that act on several joints.
    """

    rows: Array
    shared: Array

    def of(self, local: np.ndarray) -> "ObservabilityConditions":
        return ObservabilityConditions(self.rows[:, local], self.shared)


def link_conditions(
    tree: KinematicTree,
    motion: JointMotion,
    accelerations: dict[int, LinkAccelerations],
    terms: SharedInertiaTerms,
) -> tuple[list[ObservabilityConditions], dict[int, Array], float]:
    """Conditions of every link of a tree of unit lengths and unit gravity.

    Returns
    -------
    conditions : list of ObservabilityConditions
        One per link.
    observable : dict of int to ndarray, shape (f, 10)
        Functionals of each link's parameters on which some joint torque depends.
    gap : float
        Smallest gap of all spans.
    """
    observable: dict[int, Array] = {-1: np.zeros((0, BODY_PARAMETERS))}
    conditions, gap = [], min(of_link.gap for of_link in accelerations.values())
    for body in tree.links:
        if tree.free[body]:
            observable[body] = np.eye(BODY_PARAMETERS)
            shared = np.zeros((BODY_PARAMETERS, terms.count))
            conditions.append(ObservabilityConditions(np.eye(BODY_PARAMETERS, LINK_COLUMNS), shared))
            continue
        inherited, axis = accelerations[body].inherited, tree.axes[body]
        causes = np.vstack([inherited.all, axis])
        constant, *changing = observable[tree.parents[body]] @ motion.parameters[body]
        passed = np.vstack(changing)
        first, count = len(inherited.unlabelled), len(causes)
        rows = np.zeros((count + len(passed), LINK_COLUMNS))
        shared = np.zeros((len(rows), terms.count))
        rows[:count, :BODY_PARAMETERS] = causes @ (axis @ SPATIAL_INERTIA_BASIS).T
        rows[count:, :BODY_PARAMETERS] = passed
        # The inertia of a rotor adds to the inertia of the body, and an offset acts like gravity.
        rows[count - 1, ROTOR_COLUMN] = 1.0
        rows[first : count - 1, OFFSET_COLUMN] = np.equal(inherited.labels, GRAVITY_LABEL)
        if terms.count:
            shared[: count - 1] = inherited.all @ terms.own_joint[body][1:]
            shared[first : count - 1] += [terms.of(label, body) for label in inherited.labels]
            shared[count - 1] = terms.own_joint[body][0]
        spanned = span(np.vstack([rows[:, :BODY_PARAMETERS], constant]))
        observable[body], gap = spanned.rows, min(gap, spanned.gap)
        conditions.append(ObservabilityConditions(rows, shared))
    return conditions, observable, gap


def transformed(velocity: Array, vectors: Array) -> Array:
    """Apply every coefficient ``(k, 6, 6)`` of a transform to every vector ``(m, 6)``: ``(k m, 6)``."""
    return np.asarray((vectors @ np.swapaxes(velocity, 1, 2)).reshape(-1, 6))


class TreeConditions(NamedTuple):
    """Observability conditions of a whole tree.

    Attributes
    ----------
    rotors : list of ndarray, shape (k, 10)
        Conditions on every rotor's parameters, from effects of the rotor's turning.
    spins : ndarray, shape (r, 10)
        Functional that gives each rotor's shared inertia from its parameters.
    shared : ndarray, shape (k, s)
        Torques that depend on shared inertias only, not on links.
    """

    links: list[ObservabilityConditions]
    rotors: list[Array]
    spins: Array
    shared: Array
    gap: float


def tree_conditions(tree: KinematicTree, motion: JointMotion, ratios: Array) -> TreeConditions:
    """Observability conditions of a tree of unit lengths and unit gravity.

    Parameters
    ----------
    ratios : ndarray, shape (c, links)
        Ratio of each link's joint in each coupled drive.
    """
    terms = SharedInertiaTerms(np.zeros((len(tree.links), 7, len(ratios) + len(tree.rotors))))
    coupled = [int(body) for body in np.flatnonzero(ratios.any(axis=0))]
    common = {rotor: _common_ancestor(tree, rotor) for rotor in tree.rotors}
    anchors = {body for rotor, body in common.items() if body != tree.driver(rotor)}
    _check_ratios(tree)
    accelerations = link_accelerations(tree, motion, set(coupled), anchors - {-1}, terms)

    terms.own_joint[:, 0, : len(ratios)] = ratios.T**2
    for first, second in combinations(coupled, 2):
        weight = np.append(ratios[:, first] * ratios[:, second], np.zeros(len(tree.rotors)))
        if first in tree.path(second):
            terms.add(_own_label(accelerations[first]), second, weight)
        else:
            terms.without_links.append(weight)
    for column, rotor in enumerate(tree.rotors, start=len(ratios)):
        _add_spin(tree, rotor, column, common[rotor], accelerations, terms)
    links, observable, gap = link_conditions(tree, motion, accelerations, terms)
    spins, rotors = np.zeros((len(tree.rotors), BODY_PARAMETERS)), []
    for row, rotor in enumerate(tree.rotors):
        mount, axis = tree.parents[rotor], tree.axes[rotor]
        torque = axis @ SPATIAL_INERTIA_BASIS
        moving = transformed(motion.velocity[rotor][1:], accelerations[mount].total.all) @ torque.T
        rotors.append(np.vstack([moving, *(observable[mount] @ motion.parameters[rotor][1:])]))
        spins[row] = tree.ratio(rotor) ** 2 * (torque @ axis)
    shared = np.array(terms.without_links).reshape(len(terms.without_links), terms.count)
    return TreeConditions(links, rotors, spins, shared, gap)


def _own_label(accelerations: LinkAccelerations) -> int:
    """Label of a body's own joint: the first label after the inherited labels."""
    return accelerations.total.labels[len(accelerations.inherited.labels)]


def _add_spin(
    tree: KinematicTree,
    rotor: int,
    column: int,
    common: int,
    accelerations: dict[int, LinkAccelerations],
    terms: SharedInertiaTerms,
) -> None:
    """Add a rotor's spin, in units of spin times squared ratio: one at its joint, plus coupling by moving bearings."""
    mount, joint, ratio = tree.parents[rotor], tree.driver(rotor), tree.ratio(rotor)
    axis = tree.rotations[rotor] @ tree.axes[rotor, 3:] / ratio
    terms.own_joint[joint, 0, column] += 1.0
    if mount == joint:
        terms.own_joint[joint, 0, column] += 2.0 * tree.axes[joint, 3:] @ axis
        terms.own_joint[joint, 4:, column] += axis
        return
    bearings, one = accelerations[mount].total, np.eye(terms.count)[column]
    for label, acceleration in zip(bearings.labels, bearings.labelled, strict=True):
        weight = (acceleration[3:] @ axis) * one
        if label in accelerations[common].total.labels:
            terms.add(label, joint, weight)
        else:
            terms.without_links.append(weight)
    terms.without_links += [(acceleration[3:] @ axis) * one for acceleration in bearings.unlabelled]


def _common_ancestor(tree: KinematicTree, rotor: int) -> int:
    """Last body that carries both the rotor's bearings and its joint; -1 for the world."""
    mount, joint = tree.parents[rotor], tree.driver(rotor)
    if mount != joint and joint in tree.path(mount):
        raise IdentificationError(
            f"rotor {rotor - len(tree.links)}: is carried by a link beyond the link that it turns; the closed form of"
            " base parameters does not cover this; use structural_base_parameters"
        )
    if mount == joint:
        return joint
    behind = tree.path(joint)
    while mount >= 0 and mount not in behind:
        mount = tree.parents[mount]
    return mount


def _check_ratios(tree: KinematicTree) -> None:
    """Reject rotors that turn as fast as other bodies with the joint; sums of speeds, from products, count, too."""
    for joint in {tree.driver(rotor) for rotor in tree.rotors}:
        speeds = [0.0, 1.0, 2.0] if tree.axes[joint, 3:].any() else [0.0]
        for rotor in tree.rotors:
            if tree.driver(rotor) == joint:
                mixed = [-2, -1, 0, 1, 2] if tree.parents[rotor] == joint and len(speeds) > 1 else [0]
                speeds += [abs(k * tree.ratio(rotor) + other) for k in (1, 2) for other in mixed]
        if np.min(np.diff(np.sort(speeds)), initial=1.0) < 1e-3:
            raise IdentificationError(
                f"rotors of joint {joint}: a rotor turns as fast as another body with this joint; the closed form of"
                " base parameters does not cover this; use structural_base_parameters, or add the rotor to that body"
            )


def regroup_shared(
    shared: Array, links: Sequence[ObservabilityConditions], choices: Sequence[ColumnChoice]
) -> tuple[ColumnChoice, tuple[Array, ...]]:
    """Regroup shared inertias into links that act on joints in the same way.

    The conditions on shared inertias alone, after elimination of the links, decide which inertias are kept.

    Parameters
    ----------
    shared : ndarray, shape (k, s)
        Torques that depend on shared inertias only, not on links.

    Returns
    -------
    choice : ColumnChoice
        Kept shared inertias, and regrouping of the dropped shared inertias into them.
    mixing : tuple of ndarray, shape (kept, regrouped)
        Regrouping of the dropped shared inertias into the kept columns of every link.
    """
    conditions, shares = [shared], []
    if shared.shape[1] == 0:
        none = np.zeros(0, dtype=int)
        return ColumnChoice(none, none, np.zeros((0, 0)), float("inf")), ()
    for conditions_of_link, choice in zip(links, choices, strict=True):
        whole = r_factor(np.hstack([conditions_of_link.rows, conditions_of_link.shared]))
        columns = conditions_of_link.rows.shape[1]
        left, singular, right = np.linalg.svd(whole[:, :columns])
        rank = len(choice.independent)
        conditions.append(left[:, rank:].T @ whole[:, columns:])
        by_row = choice.projection @ right[:rank].T / singular[:rank]
        shares.append(by_row @ left[:, :rank].T @ whole[:, columns:])
    choice = choose_columns(np.vstack(conditions), list(reversed(range(shared.shape[1]))))
    return choice, tuple(share @ choice.null_space for share in shares)


def regroup_rotor(rows: Array, spin: Array, kept: bool) -> tuple[ColumnChoice, Array]:
    """Choose a rotor's columns.

    Parameters
    ----------
    rows : ndarray, shape (k, 10)
        Conditions from effects of the rotor's turning.
    spin : ndarray, shape (10,)
        Functional that gives the rotor's shared inertia from its parameters.

    Returns
    -------
    choice : ColumnChoice
        Choice among the rotor's ten parameters.
    by_spin : ndarray, shape (kept,)
        A unit of the rotor's spin in the kept columns; zero if the spin is regrouped.
    """
    if not kept:
        choice = choose_columns(rows, BODY_ORDER)
        return choice, np.zeros(len(choice.independent))
    whole = np.vstack([r_factor(rows), spin])
    choice = choose_columns(whole, BODY_ORDER)
    left, singular, right = np.linalg.svd(whole)
    rank = len(choice.independent)
    by_row = choice.projection @ right[:rank].T / singular[:rank]
    return choice, by_row @ left[-1, :rank]
