"""Inertias that several joints feel at once: drives that turn with several joints, and rotors that are bodies.

A geared rotor is a body behind a joint that turns ``ratio`` times as fast as a joint of the robot. What its own turning
changes of it concerns it alone, provided that nothing else changes as fast. The rest is that of a body fixed to the
link that carries it, and its spin: the inertia about its axis, felt by its joint and by all that turn its bearings.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.qr import r_factor
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS

from .column_selection import BODY_ORDER, Choice, regroup
from .joint_motion import SPATIAL_INERTIA_BASIS, JointMotion
from .kinematic_tree import KinematicTree
from .observability import Equations, Labels, Reach, observability_conditions, parts, reach_of_links


class Found(NamedTuple):
    """Equations of links and of rotors, what is known of shared inertias alone ``(k, s)``, the smallest gap of spans.

    ``spins`` ``(r, 10)`` gives the shared inertia of each rotor from its parameters.
    """

    links: list[Equations]
    rotors: list[Array]
    spins: Array
    alone: Array
    gap: float


def find_equations(tree: KinematicTree, motion: JointMotion, ratios: Array) -> Found:
    """All equations of a tree of unit lengths and unit gravity.

    Parameters
    ----------
    ratios: ``(c, links)`` ratio of each link's joint in each coupled drive.

    Raises
    ------
    IdentificationError: a rotor is carried by a link beyond that which it turns, or is geared so low that its turning
        cannot be told from that of other bodies by this reasoning.
    """
    labels = Labels(len(ratios) + len(tree.rotors))
    coupled = [int(body) for body in np.flatnonzero(ratios.any(axis=0))]
    meetings = {rotor: _meeting(tree, rotor) for rotor in tree.rotors}
    anchors = {meeting for rotor, meeting in meetings.items() if meeting != tree.driver(rotor)}
    _check_ratios(tree)
    reaches = reach_of_links(tree, motion, set(coupled), anchors - {-1}, labels)

    felt_by_own = np.zeros((len(tree.links), 7, labels.shared))
    felt_by_own[:, 0, : len(ratios)] = ratios.T**2
    for first, second in combinations(coupled, 2):
        weight = np.append(ratios[:, first] * ratios[:, second], np.zeros(len(tree.rotors)))
        if first in tree.path(second):
            labels.add(_label_of(reaches[first]), second, weight)
        else:
            labels.alone.append(weight)
    for column, rotor in enumerate(tree.rotors, start=len(ratios)):
        _couple(tree, rotor, column, meetings[rotor], reaches, felt_by_own, labels)
    links, felt, gap = observability_conditions(tree, motion, reaches, felt_by_own, labels)
    spins, rotors = np.zeros((len(tree.rotors), BODY_PARAMETERS)), []
    for row, rotor in enumerate(tree.rotors):
        mount, axis = tree.parents[rotor], tree.axes[rotor]
        torque = axis @ SPATIAL_INERTIA_BASIS
        moving = parts(motion.velocity[rotor][1:], reaches[mount].own.all) @ torque.T
        rotors.append(np.vstack([moving, *(felt[mount] @ motion.parameters[rotor][1:])]))
        spins[row] = tree.ratio(rotor) ** 2 * (torque @ axis)
    return Found(links, rotors, spins, np.array(labels.alone).reshape(len(labels.alone), labels.shared), gap)


def _label_of(reach: Reach) -> int:
    """Label of a body's own joint: the first after those that it had before."""
    return reach.own.labels[len(reach.carried.labels)]


def _couple(
    tree: KinematicTree,
    rotor: int,
    column: int,
    meeting: int,
    reaches: dict[int, Reach],
    felt_by_own: Array,
    labels: Labels,
) -> None:
    """Enter the spin of a rotor, times its squared ratio: its joint feels one, and more if that moves the bearings."""
    mount, joint, ratio = tree.parents[rotor], tree.driver(rotor), tree.ratio(rotor)
    axis = tree.rotations[rotor] @ tree.axes[rotor, 3:] / ratio
    felt_by_own[joint, 0, column] += 1.0
    if mount == joint:
        felt_by_own[joint, 0, column] += 2.0 * tree.axes[joint, 3:] @ axis
        felt_by_own[joint, 4:, column] += axis
        return
    own, one = reaches[mount].own, np.eye(labels.shared)[column]
    for label, acceleration in zip(own.labels, own.steady, strict=True):
        weight = (acceleration[3:] @ axis) * one
        if label in reaches[meeting].own.labels:
            labels.add(label, joint, weight)
        else:
            labels.alone.append(weight)
    labels.alone += [(acceleration[3:] @ axis) * one for acceleration in own.spread]


def _meeting(tree: KinematicTree, rotor: int) -> int:
    """The last body that both the rotor's bearings and its joint are behind; -1 for the world."""
    mount, joint = tree.parents[rotor], tree.driver(rotor)
    if mount != joint and joint in tree.path(mount):
        raise IdentificationError(
            f"rotor {rotor - len(tree.links)}: is carried by a link beyond the one that it turns, which the closed form"
            " of base parameters does not cover; use structural_base_parameters"
        )
    if mount == joint:
        return joint
    behind = tree.path(joint)
    while mount >= 0 and mount not in behind:
        mount = tree.parents[mount]
    return mount


def _check_ratios(tree: KinematicTree) -> None:
    """Refuse rotors that turn as fast as other bodies do with the same joint, up to the products that occur."""
    for joint in {tree.driver(rotor) for rotor in tree.rotors}:
        speeds = [0.0, 1.0, 2.0] if tree.axes[joint, 3:].any() else [0.0]
        for rotor in tree.rotors:
            if tree.driver(rotor) == joint:
                mixed = [-2, -1, 0, 1, 2] if tree.parents[rotor] == joint and len(speeds) > 1 else [0]
                speeds += [abs(k * tree.ratio(rotor) + other) for k in (1, 2) for other in mixed]
        if np.min(np.diff(np.sort(speeds)), initial=1.0) < 1e-3:
            raise IdentificationError(
                f"rotors of joint {joint}: one turns as fast as another body with this joint, which the closed form of"
                " base parameters does not cover; use structural_base_parameters, or count it to that body"
            )


class SharedChoice(NamedTuple):
    """How shared inertias regroup: among each other, and ``(kept, regrouped)`` into the columns kept of every link."""

    choice: Choice
    mixing: tuple[Array, ...]


def regroup_shared(alone: Array, links: Sequence[Equations], choices: Sequence[Choice]) -> SharedChoice:
    """Shared inertias that joints feel as they feel the links behind them are regrouped into these.

    What the equations say of shared inertias alone, after elimination of the links, decides which are kept.

    Parameters
    ----------
    alone: ``(k, s)`` what is felt of them where no link is.
    links: equations of every link, on its columns of the layout; choices: of these columns.
    """
    known, shares = [alone], []
    if alone.shape[1] == 0:
        none = np.zeros(0, dtype=int)
        return SharedChoice(Choice(none, none, np.zeros((0, 0)), float("inf")), ())
    for own, choice in zip(links, choices, strict=True):
        whole = r_factor(np.hstack([own.rows, own.shared]))
        columns = own.rows.shape[1]
        left, singular, right = np.linalg.svd(whole[:, :columns])
        rank = len(choice.independent)
        known.append(left[:, rank:].T @ whole[:, columns:])
        by_row = choice.kept_and_regrouped @ right[:rank].T / singular[:rank]
        shares.append(by_row @ left[:, :rank].T @ whole[:, columns:])
    choice = regroup(np.vstack(known), list(reversed(range(alone.shape[1]))))
    return SharedChoice(choice, tuple(share @ choice.null_space for share in shares))


class RotorChoice(NamedTuple):
    """Columns of a rotor, and what a unit of its spin is in those kept ``(kept,)``; zero where it is regrouped."""

    choice: Choice
    by_spin: Array


def regroup_rotor(rows: Array, spin: Array, kept: bool) -> RotorChoice:
    """Choice of a rotor's ten columns from what its turning changes ``(k, 10)`` and, if that is kept, its spin."""
    if not kept:
        choice = regroup(rows, BODY_ORDER)
        return RotorChoice(choice, np.zeros(len(choice.independent)))
    whole = np.vstack([r_factor(rows), spin])
    choice = regroup(whole, BODY_ORDER)
    left, singular, right = np.linalg.svd(whole)
    rank = len(choice.independent)
    by_row = choice.kept_and_regrouped @ right[:rank].T / singular[:rank]
    return RotorChoice(choice, by_row @ left[-1, :rank])
