"""Base parameters from a rank by SVD: kept columns of a regressor, and regrouping of all other columns."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from inertid_ros.core.arrays import Array, r_factor
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.layout import ParameterLayout

VISIBLE_GAP = 100.0  # last kept over first dropped singular value; with a smaller ratio a rank is doubtful
_UNIT_TOLERANCE = 1e-6  # a coefficient this close to one is printed as one
_DROPPABLE_SHARE = 3e-5  # a direction stronger than this share of the strongest is always kept
_NEVER_KEPT_SHARE = 1e-8  # a direction weaker than this share of the strongest is always dropped
_SINGULAR_ROUNDING = 1e-13  # singular values below this share of the largest are rounding errors
SPAN_TOLERANCE = 1e-7  # a unit vector with a smaller part outside of a span belongs to the span
NEGLIGIBLE_COEFFICIENT = 1e-10  # for columns of the order of one, a smaller coefficient is rounding
_CLEAR_PART = 0.05  # part of a null direction that a column must have on its own to be regrouped first
# Regrouped first to regrouped last: parameters that the rules for a revolute joint about z move into the parent first.
BODY_ORDER = (0, 3, 2, 1, 6, 9, 4, 8, 7, 5)  # m, mcz, mcy, mcx, Iyy, Izz, Ixx, Iyz, Ixz, Ixy
_log = logging.getLogger(__name__)
_NEGLIGIBLE_MIXING = 1e-9  # a coefficient below this share of its column is rounding


@dataclass(frozen=True)
class BaseParameters:
    """Base parameters of a layout: kept columns of a regressor, and dependence of all other columns on them.

    Attributes
    ----------
    independent : ndarray, shape (r,)
        Columns kept, ascending.
    dependent : ndarray, shape (p - r,)
        Columns regrouped, ascending.
    regrouping : ndarray, shape (r, p - r)
        ``Y[:, dependent] = Y[:, independent] @ regrouping``.
    gap : float
        Last kept over first dropped singular value, at least one; over the rounding error if all are kept. In closed
        form it is the smallest of these ratios over all decisions.
    condition_number : float
        Condition of the kept columns, each scaled to unit norm; NaN in closed form, without data.
    """

    independent: np.ndarray
    dependent: np.ndarray
    regrouping: Array
    gap: float
    layout: ParameterLayout
    condition_number: float

    @property
    def count(self) -> int:
        return len(self.independent)

    @cached_property
    def projection(self) -> Array:
        """``(r, p)`` matrix from the parameter vector to the parameters kept."""
        matrix = np.zeros((self.count, self.count + len(self.dependent)))
        matrix[:, self.independent], matrix[:, self.dependent] = np.eye(self.count), self.regrouping
        return matrix

    @cached_property
    def null_space(self) -> Array:
        """``(p, p - r)`` changes of the parameter vector without effect in any motion: ``Y @ null_space = 0``."""
        matrix = np.zeros((self.count + len(self.dependent), len(self.dependent)))
        matrix[self.dependent, np.arange(len(self.dependent))] = 1.0
        matrix[self.independent] = -self.regrouping
        return matrix

    @property
    def clear(self) -> bool:
        """True if a visible gap separates kept from dropped singular values."""
        return self.gap >= VISIBLE_GAP

    @cached_property
    def alone(self) -> np.ndarray:
        """Columns that are a base parameter by themselves."""
        return self.independent[~self.regrouping.any(axis=1)]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A readable combination per base parameter, such as ``arm.mcx + 0.4 hand.m``."""
        names = self.layout.names
        readable = []
        for row, column in enumerate(self.independent):
            terms = [names[column]]
            for factor, other in zip(self.regrouping[row], self.dependent, strict=True):
                if factor != 0.0:
                    size = "" if abs(abs(factor) - 1) < _UNIT_TOLERANCE else f"{abs(factor):.4g} "
                    terms.append(f"{'-' if factor < 0 else '+'} {size}{names[other]}")
            readable.append(" ".join(terms))
        return tuple(readable)


def visible_rank(singular: Array) -> tuple[int, float]:
    """Rank of a matrix from its singular values ``(k,)``, descending, at the first visible gap among weak values.

    Without a visible gap the widest gap decides. The returned gap is the ratio of the last kept to the first dropped
    singular value. Without weak singular values the rank is full, and the gap is the ratio to the rounding error.
    """
    if len(singular) == 0 or singular[0] <= 0:
        return 0, float("inf")
    relative = np.append(np.maximum(singular / singular[0], _SINGULAR_ROUNDING), _SINGULAR_ROUNDING)
    ratios = relative[:-1] / relative[1:]
    candidates = np.flatnonzero((relative[1:] <= _DROPPABLE_SHARE) & (relative[:-1] > _NEVER_KEPT_SHARE))
    visible = candidates[ratios[candidates] >= VISIBLE_GAP]
    last = visible[0] if visible.size else candidates[np.argmax(ratios[candidates])]
    return int(last) + 1, float(ratios[last])


def regrouped(null_space: Array, order: Sequence[int]) -> tuple[np.ndarray, np.ndarray, Array]:
    """Choose ``k`` columns to regroup, from an orthonormal null space ``(p, k)`` of the regressor.

    Columns of the regressor are tried in ``order``. A column is chosen if it has a clear part of a null direction that
    the columns chosen before do not cover. If too few columns have a clear part, the threshold is lowered.

    Returns
    -------
    independent, dependent : ndarray, shape (p - k,) and (k,)
        Columns kept and columns regrouped, ascending.
    regrouping : (p - k, k), see :class:`BaseParameters`
    """
    rest = null_space.copy()
    chosen: list[int] = []
    threshold, wanted = _CLEAR_PART, null_space.shape[1]
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
    dependent = np.sort(np.array(chosen, dtype=int))
    independent = np.setdiff1d(np.arange(len(null_space)), dependent)
    regrouping = -np.linalg.solve(null_space[dependent].T, null_space[independent].T).T
    return independent, dependent, np.asarray(regrouping, dtype=float)


class Span(NamedTuple):
    """Orthonormal rows ``(k, n)`` of a span, rows ``(n - k, n)`` of its complement, and the gap between both."""

    rows: Array
    rest: Array
    gap: float


def span(rows: Array) -> Span:
    """Span of rows of the order of one; singular values below :data:`SPAN_TOLERANCE` count as zero."""
    if rows.size == 0:
        return Span(rows[:0], np.eye(rows.shape[1]), float("inf"))
    _, singular, directions = np.linalg.svd(r_factor(rows) if len(rows) > rows.shape[1] else rows)
    kept = int(np.sum(singular > SPAN_TOLERANCE * max(1.0, singular[0])))
    above = singular[kept - 1] if kept else 1.0
    below = singular[kept] if kept < len(singular) else 0.0
    return Span(directions[:kept], directions[kept:], float(above / max(below, np.finfo(float).eps)))


def dependence_order(layout: ParameterLayout) -> np.ndarray:
    """Columns ``(p,)`` in the order in which they are regrouped.

    Drives that turn with several joints come first, then rotors, then links from the tips to the base. In each link the
    mass comes before reflected inertia and moments. Friction and offset come last.
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


def base_parameters(layout: ParameterLayout, R: Array, structure: BaseParameters | None = None) -> BaseParameters:
    """Base parameters of a regressor by its R factor.

    The rank is at the first clear gap of the singular values of columns scaled to unit norm; without a clear gap a
    warning is logged. Common effects of a child and its parent are regrouped into the parent, as in closed-form rules.

    Parameters
    ----------
    structure : BaseParameters, optional
        Base parameters of the robot itself, see :func:`.base_parameters_of_robot`. With these, the result regroups in
        the same way and drops only parameters that the data do not excite. Without these, a right angle rounded in the
        URDF can look like a weakly excited parameter.
    """
    if structure is None:
        return _of_columns(layout, R)
    excited = _of_columns(layout, R, structure.independent)
    dependent = np.setdiff1d(np.arange(layout.size), excited.independent)
    regrouped = np.isin(structure.independent, excited.dependent)
    kept = np.zeros((excited.count, structure.count))
    kept[:, ~regrouped], kept[:, regrouped] = np.eye(excited.count), excited.regrouping
    projection = kept @ structure.projection
    return replace(excited, dependent=dependent, regrouping=projection[:, dependent])


def _of_columns(layout: ParameterLayout, R: Array, columns: np.ndarray | None = None) -> BaseParameters:
    """Base parameters of some columns of an R factor; ``dependent`` holds the regrouped part of ``columns``."""
    columns = np.arange(layout.size) if columns is None else columns
    norms = np.linalg.norm(R[:, columns], axis=0)
    present = norms > 1e-12 * norms.max(initial=0.0)
    used, scale = columns[present], norms[present]
    scaled = r_factor(R[:, used] / scale)
    _, singular, directions = np.linalg.svd(scaled)
    rank, gap = visible_rank(singular)
    order = dependence_order(layout)
    local = np.full(layout.size, -1)
    local[used] = np.arange(len(used))
    kept, dropped, mixing = regrouped(directions[rank:].T, [int(k) for k in local[order] if k >= 0])
    mixing[np.abs(mixing) < _NEGLIGIBLE_MIXING * np.maximum(1.0, np.abs(mixing).max(axis=0, initial=0.0))] = 0.0
    independent = used[kept]
    dependent = np.setdiff1d(columns, independent)
    regrouping = np.zeros((len(independent), len(dependent)))
    regrouping[:, np.searchsorted(dependent, used[dropped])] = mixing * scale[dropped] / scale[kept][:, None]
    condition = float("inf")
    if len(kept):
        weakest = np.linalg.svd(scaled[:, kept], compute_uv=False)
        condition = float(weakest[0] / weakest[-1])
    result = BaseParameters(independent, dependent, regrouping, gap, layout, condition)
    if not result.clear:
        _log.warning("base parameters: the singular values have no visible gap (the widest is a factor %.0f, after %d);"
            " the count is doubtful: record more motion", result.gap, result.count)
    return result
