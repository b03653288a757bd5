"""Criteria of optimal experiments as functions of the eigenvalues of an information matrix ([Lee2019]_ 4.2.9,
4.3.41-45).

An eigenvalue ``w`` is the precision of one combination of parameters, ``w^-1/2`` its standard deviation. All criteria
are expressed in standard deviations:

- ``condition``: largest over smallest deviation, the condition number of the scaled regressor
  ([Ayusawa2017]_ eq. 7);
- ``a``: root mean square deviation;  ``d``: geometric mean;  ``e``: largest deviation.

The search minimises the logarithm, with extremes replaced by norms of high power. A function that treats all
eigenvalues alike and is smooth has a gradient where eigenvalues meet, whatever eigenvectors the decomposition returns
there: equal eigenvalues get equal slopes, so ``V diag(slope) V^T`` does not depend on the choice ([Ayusawa2017]_ leaves
this open after eq. 17). The exact extremes have a kink there instead, at which descent would stall.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array

_POWER = 4.0  # of the norms that replace extremes; the smooth logarithm is too large by at most log(r) / _POWER
_LEAST = 1e-24  # of the largest eigenvalue; below this a direction counts as not excited
_TIE = 1e-9

Smooth = Callable[[Array], tuple[float, Array]]


def _condition(values: Array) -> tuple[float, Array]:
    up, down = (values / values[-1]) ** _POWER, (values / values[0]) ** -_POWER
    value = 0.5 * (np.log(values[-1] / values[0]) + np.log(up.sum()) / _POWER + np.log(down.sum()) / _POWER)
    return float(value), 0.5 * (up / up.sum() - down / down.sum()) / values


def _a(values: Array) -> tuple[float, Array]:
    inverse = values[0] / values
    return float(0.5 * np.log(inverse.mean() / values[0])), -0.5 * inverse / inverse.sum() / values


def _d(values: Array) -> tuple[float, Array]:
    return float(-0.5 * np.log(values).mean()), -0.5 / len(values) / values


def _e(values: Array) -> tuple[float, Array]:
    down = (values / values[0]) ** -_POWER
    return float(0.5 * (np.log(down.sum()) / _POWER - np.log(values[0]))), -0.5 * down / down.sum() / values


_SMOOTH: dict[str, Smooth] = {"condition": _condition, "a": _a, "d": _d, "e": _e}
_EXACT: dict[str, Callable[[Array], float]] = {
    "condition": lambda values: float(np.sqrt(values[-1] / values[0])),
    "a": lambda values: float(np.sqrt(np.mean(1 / values))),
    "d": lambda values: float(np.exp(-0.5 * np.log(values).mean())),
    "e": lambda values: float(1 / np.sqrt(values[0])),
}


@dataclass(frozen=True)
class OptimalityCriterion:
    """One criterion, to be minimised.

    Attributes
    ----------
    name : str
        ``condition``, ``a``, ``d`` or ``e``.
    kept : int
        Only so many eigenvalues count, the largest ([Lee2019]_ sec. 4.5.2: the directions that can be excited); 0
        counts all. Where the cut goes through equal eigenvalues they share the slope of those that are kept, which lies
        in the subdifferential.
    """

    name: str
    kept: int = 0

    def value(self, values: Array) -> float:
        """The criterion of ``(r,)`` eigenvalues, ascending; infinite where a direction that counts is not excited."""
        counted = self._counted(values)
        return _EXACT[self.name](counted) if counted[0] > 0 else float("inf")

    def smooth(self, values: Array) -> tuple[float, Array]:
        """Its smooth logarithm, and the derivative ``(r,)`` of that with respect to the eigenvalues."""
        values = np.maximum(values, _LEAST * values[-1])
        counted = self._counted(values)
        value, slope = _SMOOTH[self.name](counted)
        slope = np.concatenate([np.zeros(len(values) - len(counted)), slope])
        tied = np.abs(values - counted[0]) < _TIE * counted[0]
        slope[tied] = slope[tied].mean()
        return value, slope

    def _counted(self, values: Array) -> Array:
        return values[-self.kept :] if self.kept else values
