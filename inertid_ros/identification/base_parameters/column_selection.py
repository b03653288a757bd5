"""Ranks from a visible gap, and which columns to keep so that the combinations are simple."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.qr import r_factor
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.bodies.layout import ParameterLayout

from .result import VISIBLE_GAP, ColumnChoice

DROPPABLE = 3e-5  # a direction stronger than this share of the strongest is always kept
_NEVER_KEPT = 1e-8  # a direction weaker than this share of the strongest is always dropped
_ROUNDING = 1e-13  # singular values below this share of the largest are rounding errors
SPAN_TOLERANCE = 1e-7  # part of a unit vector outside of a span below which it belongs to the span
NEGLIGIBLE = 1e-10  # coefficient of columns of the order of one that is rounding
_CLEAR = 0.05  # part of a null direction that must be a column's own for it to be regrouped first

# Regrouped first to regrouped last: what the rules for a revolute joint about z move into the parent comes first.
BODY_ORDER = (0, 3, 2, 1, 6, 9, 4, 8, 7, 5)  # m, mcz, mcy, mcx, Iyy, Izz, Ixx, Iyz, Ixz, Ixy


class Rank(NamedTuple):
    """A rank and the ratio of the last singular value kept to the first one dropped."""

    rank: int
    gap: float


def visible_rank(singular: Array) -> Rank:
    """Rank of a matrix from its singular values ``(k,)``, descending, at the first visible gap among weak ones.

    Where no gap is visible the widest one is taken; :attr:`Rank.gap` shows it. Without weak singular
    values the rank is full and the gap is that to the rounding error.
    """
    if len(singular) == 0 or singular[0] <= 0:
        return Rank(0, float("inf"))
    relative = np.append(np.maximum(singular / singular[0], _ROUNDING), _ROUNDING)
    ratios = relative[:-1] / relative[1:]
    candidates = np.flatnonzero((relative[1:] <= DROPPABLE) & (relative[:-1] > _NEVER_KEPT))
    visible = candidates[ratios[candidates] >= VISIBLE_GAP]
    last = visible[0] if visible.size else candidates[np.argmax(ratios[candidates])]
    return Rank(int(last) + 1, float(ratios[last]))


def choose_dependent(null_space: Array, order: Sequence[int]) -> np.ndarray:
    """Rows of an orthonormal null space ``(p, k)`` that determine all of it, ``(k,)`` ascending.

    Columns of the regressor are offered in ``order``; each is regrouped if a clear part of a null direction is its
    own after those before it; if that does not suffice, less and less clear ones are taken.
    """
    rest = null_space.copy()
    chosen: list[int] = []
    threshold, wanted = _CLEAR, null_space.shape[1]
    while len(chosen) < wanted:
        for row in order:
            length = np.linalg.norm(rest[row])
            if length > threshold:
                direction = rest[row] / length
                rest -= np.outer(rest @ direction, direction)
                chosen.append(row)
                if len(chosen) == wanted:
                    break
        threshold *= 0.1
    return np.sort(np.array(chosen, dtype=int))


class Span(NamedTuple):
    """Orthonormal rows ``(k, n)`` of a span, those ``(n - k, n)`` of the rest, and how wide the gap between them is."""

    rows: Array
    rest: Array
    gap: float


def span(rows: Array) -> Span:
    """Span of rows of the order of one, with what is below :data:`SPAN_TOLERANCE` taken for zero."""
    if rows.size == 0:
        return Span(rows[:0], np.eye(rows.shape[1]), float("inf"))
    _, singular, directions = np.linalg.svd(r_factor(rows) if len(rows) > rows.shape[1] else rows)
    kept = int(np.sum(singular > SPAN_TOLERANCE * max(1.0, singular[0])))
    above = singular[kept - 1] if kept else 1.0
    below = singular[kept] if kept < len(singular) else 0.0
    return Span(directions[:kept], directions[kept:], float(above / max(below, np.finfo(float).eps)))


def choose_columns(rows: Array, order: Sequence[int]) -> ColumnChoice:
    """Choice of columns of conditions ``(k, n)`` whose elements are of the order of one."""
    spanned = span(rows)
    dependent = choose_dependent(spanned.rest.T, order)
    kept = np.ones(rows.shape[1], dtype=bool)
    kept[dependent] = False
    independent = np.flatnonzero(kept)
    mixing: Array = -np.linalg.solve(spanned.rest[:, dependent], spanned.rest[:, independent]).T.astype(float)
    mixing[np.abs(mixing) < NEGLIGIBLE] = 0.0
    return ColumnChoice(independent, dependent, mixing, spanned.gap)


def dependence_order(layout: ParameterLayout) -> np.ndarray:
    """``(p,)`` columns, regrouped first to regrouped last.

    Drives that turn with several joints come first, then rotors, then links from the tips to the base, of each the
    mass before its reflected inertia and its moments; friction and offset come last.
    """
    order = list(reversed(range(layout.coupling_start, layout.size)))
    bases = len(layout.links) - len(layout.joints)  # a base that moves freely has no joint
    for body in reversed(range(layout.inertial_size // BODY_PARAMETERS)):
        columns = [BODY_PARAMETERS * body + k for k in BODY_ORDER]
        joint = body - bases
        has_rotor = 0 <= joint < len(layout.joints) and "rotor_inertia" in layout.drive_terms
        order += columns[:1] + ([layout.drive("rotor_inertia").start + joint] if has_rotor else []) + columns[1:]
    rest = np.setdiff1d(np.arange(layout.size), order)
    return np.concatenate([np.array(order, dtype=int), rest])
