"""Which columns are kept, how the others regroup into them, and how clear that decision was."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.layout import ParameterLayout

VISIBLE_GAP = 100.0  # a rank whose last kept singular value is not this many times the first dropped one is doubtful
_UNIT = 1e-6  # a coefficient this close to one is printed as one


class ColumnChoice(NamedTuple):
    """Positions of columns kept and regrouped.

    Attributes
    ----------
    independent, dependent : ndarray of int
        Positions kept and regrouped.
    mixing : ndarray, shape (kept, regrouped)
        A column regrouped is ``kept @ mixing``.
    gap : float
        Between the singular values of both.
    """

    independent: np.ndarray
    dependent: np.ndarray
    mixing: Array
    gap: float

    @property
    def projection(self) -> Array:
        """``(kept, n)``: what is kept, of all columns."""
        matrix = np.zeros((len(self.independent), len(self.independent) + len(self.dependent)))
        matrix[:, self.independent], matrix[:, self.dependent] = np.eye(len(self.independent)), self.mixing
        return matrix

    @property
    def null_space(self) -> Array:
        """``(n, regrouped)``: one of each column regrouped, with what it takes of those kept for nothing to show."""
        matrix = np.zeros((len(self.independent) + len(self.dependent), len(self.dependent)))
        matrix[self.dependent, np.arange(len(self.dependent))] = 1.0
        matrix[self.independent] = -self.mixing
        return matrix


@dataclass(frozen=True)
class BaseParameters:
    """Independent columns of a regressor and how the others depend on them.

    Attributes
    ----------
    layout : ParameterLayout
        Of the full parameter vector.
    independent : ndarray, shape (r,)
        Columns kept, ascending.
    dependent : ndarray, shape (p - r,)
        Columns regrouped, ascending.
    regrouping : ndarray, shape (r, p - r)
        ``Y[:, dependent] = Y[:, independent] @ regrouping``.
    condition_number : float
        Of the kept columns, each scaled to unit norm; NaN in closed form, where there is no data.
    gap : float
        Last singular value kept over the first one dropped, at least one; where nothing is dropped, over the rounding
        error. In closed form the smallest such ratio of all decisions on the way.
    """

    layout: ParameterLayout
    independent: np.ndarray
    dependent: np.ndarray
    regrouping: Array
    condition_number: float
    gap: float = float("inf")

    @property
    def count(self) -> int:
        """Number ``r`` of base parameters."""
        return len(self.independent)

    @property
    def clear(self) -> bool:
        """Whether a visible gap separates what is kept from what is dropped."""
        return self.gap >= VISIBLE_GAP

    @cached_property
    def projection(self) -> Array:
        """``(r, p)`` matrix from the parameter vector to the base parameters."""
        return ColumnChoice(self.independent, self.dependent, self.regrouping, self.gap).projection

    @cached_property
    def null_space(self) -> Array:
        """``(p, p - r)`` changes of the parameter vector that no motion shows: ``Y @ null_space = 0``."""
        return ColumnChoice(self.independent, self.dependent, self.regrouping, self.gap).null_space

    @cached_property
    def without_effect(self) -> np.ndarray:
        """Columns that are in no base parameter at all: they may take any value."""
        return self.dependent[~self.regrouping.any(axis=0)]

    @cached_property
    def alone(self) -> np.ndarray:
        """Columns that are a base parameter by themselves: identified one by one."""
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
                    size = "" if abs(abs(factor) - 1) < _UNIT else f"{abs(factor):.4g} "
                    terms.append(f"{'-' if factor < 0 else '+'} {size}{names[other]}")
            readable.append(" ".join(terms))
        return tuple(readable)
