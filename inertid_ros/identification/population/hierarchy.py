"""Normal hierarchical model: parameters of all robots are drawn from one normal distribution, and measured with errors.

``beta_i ~ N(mu, Sigma)``, and robot ``i`` has the likelihood ``exp(-beta' L_i beta / 2 + beta' e_i)``, which need not
determine all of ``beta_i``. Restricted maximum likelihood by expectation and maximisation ([Laird1982]_): the mean and
the parameters of the robots are integrated out, so that ``Sigma`` of few robots is not too small.
"""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array

_ITERATIONS = 2000
_TOLERANCE = 1e-4  # change of variances in one iteration, relative
_LEAST = 1e-10  # variance in normalised units, so that matrices stay regular
_NEGLIGIBLE = 0.01  # of the variance of the best known robot: less between robots changes nothing, and takes for ever


@dataclass(frozen=True)
class Likelihoods:
    """Normal likelihoods of ``r`` parameters of each of ``n`` robots.

    Attributes
    ----------
    precision : ndarray, shape (n, r, r)
        Inverse covariance of each robot's parameters by its own data; may be singular.
    product : ndarray, shape (n, r)
        Precision times estimate.

    Raises
    ------
    ValueError
        Shapes do not fit.
    """

    precision: Array
    product: Array

    def __post_init__(self) -> None:
        n, r = self.product.shape
        if self.precision.shape != (n, r, r):
            raise ValueError(f"precision has shape {self.precision.shape}, expected {(n, r, r)}")

    @property
    def count(self) -> int:
        """Number of robots."""
        return len(self.product)

    def of(self, robots: np.ndarray) -> "Likelihoods":
        """Those of some robots."""
        return Likelihoods(self.precision[robots], self.product[robots])


@dataclass(frozen=True)
class MeanPrior:
    """What is known of the mean before: normal.

    Attributes
    ----------
    mean : ndarray, shape (r,)
    precision : ndarray, shape (r, r)
        Zero where nothing is known.
    """

    mean: Array
    precision: Array


@dataclass(frozen=True)
class Population:
    """Distribution of parameters between robots.

    Attributes
    ----------
    mean : ndarray, shape (r,)
        Posterior mean of ``mu``.
    mean_covariance : ndarray, shape (r, r)
        Posterior covariance of ``mu``.
    covariance : ndarray, shape (r, r)
        ``Sigma``, between robots.
    count : int
        Robots that it was found from.
    iterations : int
        Of the algorithm.
    converged : bool
        Whether variances had settled.
    """

    mean: Array
    mean_covariance: Array
    covariance: Array
    count: int
    iterations: int
    converged: bool

    @property
    def deviation(self) -> Array:
        """``(r,)`` standard deviation between robots."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def predictive(self) -> Array:
        """``(r, r)`` covariance of a further robot: between robots, and of the mean."""
        return np.asarray(self.covariance + self.mean_covariance)


def fit_population(
    likelihoods: Likelihoods, prior: MeanPrior, start: Array, pseudo_robots: float | None = None
) -> Population:
    """Distribution between robots.

    First a diagonal ``Sigma`` is found, then a full one, which is drawn towards the diagonal one by as many pseudo
    robots (the mode of an inverse Wishart distribution): fewer robots than parameters show no correlations.

    Parameters
    ----------
    start : ndarray, shape (r,)
        Standard deviations to begin with, above zero.
    pseudo_robots : float, optional
        Weight of the diagonal one; by default the number of parameters plus one. Zero is plain restricted maximum
        likelihood.
    """
    size = len(start)
    weight = size + 1.0 if pseudo_robots is None else pseudo_robots
    diagonal = _iterate(likelihoods, prior, np.diag(start**2), None, 0.0)
    target = np.diagonal(diagonal.covariance).copy()
    return _iterate(likelihoods, prior, np.diag(target), target, weight)


def restricted_log_likelihood(likelihoods: Likelihoods, prior: MeanPrior, covariance: Array) -> float:
    """Logarithm of the likelihood of ``Sigma`` with the mean and all robots integrated out, up to a constant."""
    step = _expectation(likelihoods, prior, covariance)
    return step.log_likelihood


def _iterate(
    likelihoods: Likelihoods, prior: MeanPrior, covariance: Array, target: Array | None, weight: float
) -> Population:
    """Expectation and maximisation to the end; a diagonal covariance where there is no target."""
    n, converged, iterations = likelihoods.count, False, 0
    least = np.maximum(_NEGLIGIBLE / np.maximum(likelihoods.precision.max(axis=0).diagonal(), 1e-300), _LEAST)
    least = np.minimum(least, np.diagonal(covariance))
    while not converged and iterations < _ITERATIONS:
        iterations += 1
        step = _expectation(likelihoods, prior, covariance)
        if target is None:
            new = np.diag(np.maximum(np.diagonal(step.squares) / n, least))
        else:
            new = (step.squares + weight * np.diag(target)) / (n + weight)
        size = np.sqrt(np.maximum(np.diagonal(new), 100 * _LEAST))
        converged = bool(np.max(np.abs(new - covariance) / np.outer(size, size)) < _TOLERANCE)
        covariance = new
    step = _expectation(likelihoods, prior, covariance)
    return Population(step.mean, step.mean_covariance, covariance, n, iterations, converged)


@dataclass(frozen=True)
class _Expectation:
    """One expectation step: the mean, and ``sum E[(beta_i - mu)(beta_i - mu)']``."""

    mean: Array
    mean_covariance: Array
    squares: Array
    log_likelihood: float


def _expectation(likelihoods: Likelihoods, prior: MeanPrior, covariance: Array) -> _Expectation:
    precision, product = likelihoods.precision, likelihoods.product
    inverse = np.linalg.inv(covariance)
    within = np.linalg.inv(inverse + precision)  # (n, r, r) of a robot, given the mean
    shrunk = precision @ within  # (n, r, r)
    marginal = precision - shrunk @ precision  # of a robot's estimate about the mean
    score = product - np.einsum("nij,nj->ni", shrunk, product)
    mean_precision = prior.precision + marginal.sum(axis=0)
    mean_covariance = np.linalg.inv((mean_precision + mean_precision.T) / 2)
    right = prior.precision @ prior.mean + score.sum(axis=0)
    mean = mean_covariance @ right
    away = np.einsum("nij,nj->ni", within, product - precision @ mean)
    squares = within.sum(axis=0) + away.T @ away
    squares = squares + np.einsum("nji,jk,nkl->il", shrunk, mean_covariance, shrunk, optimize=True)
    # log of the integral over all robots and the mean
    log_determinants = np.linalg.slogdet(within)[1].sum() - len(product) * np.linalg.slogdet(covariance)[1]
    quadratic = np.einsum("ni,nij,nj->", product, within, product) + right @ mean
    log_likelihood = 0.5 * (log_determinants + np.linalg.slogdet(mean_covariance)[1] + quadratic)
    return _Expectation(mean, mean_covariance, (squares + squares.T) / 2, float(log_likelihood))
