"""Mixed-effects models: trend and change points of a robot's parameters over time, and parameters of many robots.

Parameters over time: in ``y = X b + u + e``, the errors ``e ~ N(0, V)`` have a known covariance, and ``u`` is the
scatter between recordings. Restricted maximum likelihood estimates the variance of ``u``. Intervals are by
[Hartung2001]_: the residuals scale them, so that they hold also if ``V`` is wrong by a factor.

Many robots: robot ``i`` has the parameters ``beta_i ~ N(mu, Sigma)`` and the likelihood
``exp(-beta_i' L_i beta_i / 2 + beta_i' e_i)``, which need not determine all of ``beta_i``. Restricted maximum
likelihood by expectation and maximisation ([Laird1982]_) integrates over ``mu`` and all ``beta_i``, so that ``Sigma``
of few robots is not too small.
"""

from collections.abc import Callable
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
_MAX_EM_ITERATIONS = 500
_VARIANCE_TOLERANCE = 1e-4  # relative change in one iteration
_MIN_EIGENVALUE = 1e-14  # eigenvalue of a precision, relative to the largest
_MIN_VARIANCE = 1e-10  # in normalised units, so that matrices stay regular
_NEGLIGIBLE_SHARE = 0.01  # share of the most certain robot's variance; smaller values only slow down convergence


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

        The scatter comes from the fit without the column.
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


@dataclass(frozen=True)
class Likelihoods:
    """Normal likelihoods of ``r`` parameters for each of ``n`` robots.

    Attributes
    ----------
    precision : (n, r, r), from each robot's own data; may be singular.
    product : (n, r), precision times estimate.
    """

    precision: Array
    product: Array

    @cached_property
    def roots(self) -> tuple[Array, Array]:
        """``R (n, r, r)`` and ``z (n, r)`` with ``precision = R' R`` and ``product = R' z``."""
        values, vectors = np.linalg.eigh(self.precision)
        shown = values > _MIN_EIGENVALUE * values[:, -1:]
        root = np.sqrt(np.where(shown, values, 0.0))
        R = root[:, :, None] * vectors.transpose(0, 2, 1)
        z = np.where(shown, np.einsum("nji,nj->ni", vectors, self.product) / np.where(shown, root, 1.0), 0.0)
        return R, z

    def marginal(self, covariance: Array) -> tuple[Array, Array]:
        """Return precision ``(n, r, r)``, and precision times estimate ``(n, r)``, of robots about the common mean.

        The precision is ``(Sigma + L^-1)^-1``. The computation does not need the inverse of ``L``, and avoids the
        cancellation in ``L - L (Sigma^-1 + L)^-1 L`` that occurs if data outweighs the scatter.
        """
        R, z = self.roots
        solved = np.linalg.solve(np.eye(len(covariance)) + R @ covariance @ R.transpose(0, 2, 1), R)
        return R.transpose(0, 2, 1) @ solved, np.einsum("nji,nj->ni", solved, z)

    def estimates(self, prior: Array) -> tuple[Array, Array]:
        """Estimate the parameters of each robot from its own data and a prior about zero.

        ``prior (r, r)`` is the precision of the prior. Returns the parameters ``(n, r)`` and covariances ``(n, r, r)``.
        """
        covariances = np.asarray(np.linalg.inv(self.precision + prior), dtype=float)
        return np.einsum("nij,nj->ni", covariances, self.product), covariances


@dataclass(frozen=True)
class Population:
    """Normal distribution of parameters between ``count`` robots.

    Attributes
    ----------
    mean, mean_covariance : (r,) and (r, r), posterior mean and covariance of ``mu``.
    covariance : (r, r), covariance ``Sigma`` between robots.
    """

    mean: Array
    mean_covariance: Array
    covariance: Array
    count: int

    @property
    def predictive(self) -> Array:
        """Covariance ``(r, r)`` of a further robot: covariance between robots, plus covariance of the mean."""
        return np.asarray(self.covariance + self.mean_covariance)


def fit_population(likelihoods: Likelihoods, prior: Array, start: Array,
        pseudo_robots: float | None = None) -> Population:
    """Estimate the distribution between robots.

    A first fit has a diagonal ``Sigma``, a second fit a full ``Sigma``. Pseudo robots draw the full ``Sigma`` towards
    the diagonal one (the mode of an inverse Wishart distribution), as fewer robots than parameters do not determine
    correlations.

    Parameters
    ----------
    prior : (r, r), precision of the normal prior of the mean about zero; may be zero.
    start : (r,), standard deviations to begin with, above zero.
    pseudo_robots : number of pseudo robots; by default the number of parameters plus one. Zero is plain maximum
        likelihood.
    """
    n, size = likelihoods.product.shape
    weight = size + 1.0 if pseudo_robots is None else pseudo_robots
    best_known = np.maximum(likelihoods.precision.max(axis=0).diagonal(), 1e-300)
    least = np.minimum(np.maximum(_NEGLIGIBLE_SHARE / best_known, _MIN_VARIANCE), start**2)

    def diagonal(squares: Array) -> Array:
        return np.diag(np.maximum(np.diagonal(squares) / n, least))

    target = np.diag(np.diagonal(_iterated(likelihoods, prior, np.diag(start**2), diagonal)))

    def full(squares: Array) -> Array:
        return np.asarray((squares + weight * target) / (n + weight))

    covariance = _iterated(likelihoods, prior, target, full)
    mean, mean_covariance, _ = _expectation(likelihoods, prior, covariance)
    return Population(mean, mean_covariance, covariance, n)


def _iterated(
        likelihoods: Likelihoods, prior: Array, covariance: Array, maximised: Callable[[Array], Array]) -> Array:
    """Iterate expectation and maximisation until the covariance converges.

    ``maximised`` is the M-step, which makes a covariance of the squares of the robots' deviations from the mean.
    """
    for _ in range(_MAX_EM_ITERATIONS):
        _, _, squares = _expectation(likelihoods, prior, covariance)
        before, covariance = covariance, maximised(squares)
        size = np.sqrt(np.maximum(np.diagonal(covariance), 100 * _MIN_VARIANCE))
        if np.max(np.abs(covariance - before) / np.outer(size, size)) < _VARIANCE_TOLERANCE:
            break
    return covariance


def _expectation(likelihoods: Likelihoods, prior: Array, covariance: Array) -> tuple[Array, Array, Array]:
    """Return the mean, its covariance, and ``sum E[(beta_i - mu)(beta_i - mu)']``."""
    n = len(likelihoods.product)
    marginal, product = likelihoods.marginal(covariance)
    mean_precision = prior + marginal.sum(axis=0)
    mean_covariance = np.linalg.inv((mean_precision + mean_precision.T) / 2)
    mean = mean_covariance @ product.sum(axis=0)
    pulled = covariance @ marginal  # (n, r, r): Sigma M, equal to within-robot covariance times precision
    away = (product - marginal @ mean) @ covariance
    squares = n * covariance - pulled.sum(axis=0) @ covariance + away.T @ away
    squares = squares + (pulled @ mean_covariance @ pulled.transpose(0, 2, 1)).sum(axis=0)
    return mean, mean_covariance, (squares + squares.T) / 2
