"""Trend and change points of parameters over time, by random-effects regression.

In ``y = X b + u + e``, the errors ``e ~ N(0, V)`` have a known covariance, and ``u`` is the scatter between
recordings. Restricted maximum likelihood estimates the variance of ``u``. Intervals are by [Hartung2001]_: the
residuals scale them, so that they hold also if ``V`` is wrong by a factor.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from scipy.linalg import null_space

from inertid_ros.core.arrays import Array

_MIN_ESTIMATES = 5  # for a trend
_MIN_SEGMENT = 2  # estimates on either side of a change point
_MAX_CHANGES, _CHANGE_LEVEL = 5, 0.01  # change points of a series, and probability of a false change
_CONFIDENCE = 0.95
_MAX_SCATTER_RATIO = 1e3  # largest ratio to the variance of the estimates in the search
_YEAR_DAYS = 365.25


@dataclass(frozen=True)
class Series:
    """Estimates ``values (k,)`` of a parameter at ascending ``days``, with ``covariance (k, k)`` of their errors."""

    name: str
    days: Array
    values: Array
    covariance: Array

    @property
    def deviation(self) -> Array:
        """Standard deviation ``(k,)`` of every estimate."""
        return np.sqrt(np.diagonal(self.covariance))


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of a regression, with the degrees of freedom of its t distribution."""

    value: float
    deviation: float
    freedom: int

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval."""
        half = float(scipy.stats.t.ppf(0.5 + _CONFIDENCE / 2, self.freedom)) * self.deviation
        return self.value - half, self.value + half

    @property
    def p_value(self) -> float:
        """Two-sided p-value of the hypothesis that the coefficient is zero."""
        if self.deviation == 0.0:
            return float(self.value == 0.0)
        return float(2 * scipy.stats.t.sf(abs(self.value) / self.deviation, self.freedom))


@dataclass(frozen=True)
class Regression:
    """Random-effects regression of a series on ``columns (k, m)``, with fewer columns than estimates."""

    series: Series
    columns: Array

    @cached_property
    def scatter(self) -> float:
        """Standard deviation between recordings in excess of their errors, by restricted maximum likelihood."""
        return float(np.sqrt(_restricted_variance(self.series, self.columns)))

    @cached_property
    def _whitening(self) -> Array:
        k = len(self.series.days)
        covariance = self.series.covariance + self.scatter**2 * np.eye(k)
        level = max(float(np.trace(covariance)) / k, 1e-300)
        return np.linalg.inv(np.linalg.cholesky(covariance + 1e-12 * level * np.eye(k)))

    def coefficients(self) -> tuple[Coefficient, ...]:
        X, y = self._whitening @ self.columns, self._whitening @ self.series.values
        size = np.maximum(np.linalg.norm(X, axis=0), 1e-300)
        inverse = np.linalg.pinv(X / size)
        values = inverse @ y
        freedom = len(y) - X.shape[1]
        scale = float(np.sum((y - X / size @ values) ** 2)) / freedom
        deviations = np.sqrt(scale * np.sum(inverse**2, axis=1))
        return tuple(Coefficient(float(value), float(deviation), freedom)
            for value, deviation in zip(values / size, deviations / size, strict=True))

    def p_values_of(self, further: Array) -> Array:
        """Return p-values ``(c,)`` of an F-test of each column of ``further (k, c)``, added alone.

        The scatter is that of the fit without the column.
        """
        X, y, Z = (self._whitening @ array for array in (self.columns, self.series.values, further))
        Q, _ = np.linalg.qr(X)
        y, Z = y - Q @ (Q.T @ y), Z - Q @ (Q.T @ Z)
        size = np.linalg.norm(Z, axis=0)
        explained = np.where(size > 1e-9, (Z.T @ y) ** 2 / np.maximum(size**2, 1e-300), 0.0)
        freedom = len(y) - X.shape[1] - 1
        left = np.maximum(np.sum(y**2) - explained, 1e-300)
        return np.asarray(scipy.stats.f.sf(freedom * explained / left, 1, freedom), dtype=float)


def _restricted_variance(series: Series, columns: Array) -> float:
    contrasts = null_space(columns.T)
    if not contrasts.shape[1]:
        return 0.0
    values, vectors = np.linalg.eigh(contrasts.T @ series.covariance @ contrasts)
    squares = (vectors.T @ (contrasts.T @ series.values)) ** 2
    size = max(float(np.mean(squares)), 1e-300)
    values = np.maximum(values, 1e-12 * size)

    def loss(variance: float | Array) -> Array:
        total = values[:, None] + variance
        return np.asarray(np.sum(np.log(total) + squares[:, None] / total, axis=0))

    grid = np.concatenate([[0.0], size * np.logspace(-6, np.log10(_MAX_SCATTER_RATIO), 40)])
    losses = loss(grid)
    best = int(np.argmin(losses))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    refined = scipy.optimize.minimize_scalar(lambda variance: float(loss(variance)[0]), bounds=(low, high),
        method="bounded")
    return float(refined.x) if refined.fun < losses[best] else float(grid[best])


@dataclass(frozen=True)
class ChangePoint:
    """A step of a parameter, between two dates.

    Attributes
    ----------
    index : index of the first estimate after the step.
    p_value : under the hypothesis of no change, corrected for the number of places tried.
    """

    index: int
    first_day: float
    last_day: float
    step: Coefficient
    p_value: float


@dataclass(frozen=True)
class Drift:
    """Trend and change points of a series; the change points are sorted by time.

    Attributes
    ----------
    trend : change per year.
    level : value in the middle of the time span, including half of every step.
    scatter : standard deviation between recordings in excess of their errors.
    """

    trend: Coefficient
    level: Coefficient
    scatter: float
    changes: tuple[ChangePoint, ...]


def drift(series: Series) -> Drift | None:
    """Estimate the trend over the whole time, and significant steps; None for few estimates, or only one date.

    Each search adds the step at the place with the smallest p-value, which is multiplied by the number of places
    (Bonferroni). At least two estimates lie between two steps, before the first step and after the last step.
    """
    k = len(series.days)
    if k < _MIN_ESTIMATES or series.days[-1] <= series.days[0]:
        return None
    years = (series.days - (series.days[0] + series.days[-1]) / 2) / _YEAR_DAYS
    columns = np.column_stack([np.ones(k), years])
    steps_found: list[tuple[int, float]] = []  # places and p-values
    while len(steps_found) < _MAX_CHANGES and k - columns.shape[1] - 1 >= 2:
        places = _places(series.days, [place for place, _ in steps_found])
        if not len(places):
            break
        steps = np.where(np.arange(k)[:, None] >= places, 0.5, -0.5)  # (k, c), one rising step per place
        p_values = len(places) * Regression(series, columns).p_values_of(steps)
        best = int(np.argmin(p_values))
        if p_values[best] > _CHANGE_LEVEL:
            break
        steps_found.append((int(places[best]), float(p_values[best])))
        columns = np.column_stack([columns, steps[:, best]])
    regression = Regression(series, columns)
    middle, trend, *sizes = regression.coefficients()
    changes = [ChangePoint(place, float(series.days[place - 1]), float(series.days[place]), size, p_value)
        for (place, p_value), size in zip(steps_found, sizes, strict=True)]
    ordered = tuple(sorted(changes, key=lambda change: change.index))
    return Drift(trend, middle, regression.scatter, ordered)


def _places(days: Array, taken: list[int]) -> np.ndarray:
    """Return indices before which a step may lie: between two dates, and not close to other steps or to an end."""
    inside = range(_MIN_SEGMENT, len(days) - _MIN_SEGMENT + 1)
    free = [place for place in inside if all(abs(place - other) >= _MIN_SEGMENT for other in taken)]
    return np.array([place for place in free if days[place] > days[place - 1]], dtype=int)

