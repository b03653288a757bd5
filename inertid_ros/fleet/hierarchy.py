"""Normal hierarchical model: parameters of all robots are drawn from one normal distribution, and measured with errors.

Robot ``i`` has the parameters ``beta_i ~ N(mu, Sigma)`` and the likelihood
``exp(-beta_i' L_i beta_i / 2 + beta_i' e_i)``, which need not determine all of ``beta_i``. Restricted maximum
likelihood by expectation and maximisation ([Laird1982]_) integrates over ``mu`` and all ``beta_i``, so that ``Sigma``
of few robots is not too small.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inertid_ros.core.arrays import Array

_MAX_EM_ITERATIONS = 500
_VARIANCE_TOLERANCE = 1e-4  # relative change in one iteration
_MIN_EIGENVALUE = 1e-14  # eigenvalue of a precision, relative to the largest
_MIN_VARIANCE = 1e-10  # in normalised units, so that matrices stay regular
_NEGLIGIBLE_SHARE = 0.01  # share of the most certain robot's variance; smaller values only slow down convergence


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
