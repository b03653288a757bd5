"""Posterior of a MAP fit: errors of its parameters from data, prior and bounds together.

Friction cannot be negative, so its interval is asymmetric if the data put it near zero. A quantity that may be absent
from the model is zero or positive, each with its probability under the data ([Mitchell1988]_). Expectation propagation
gives the moments of a normal distribution truncated by bounds ([Minka2001]_, [Cunningham2011]_).
Physically consistent parameters are drawn from the posterior for domain randomisation.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from scipy.linalg import block_diag, null_space
from scipy.special import expit, log_ndtr, ndtr, ndtri, ndtri_exp

from inertid_ros.core.arrays import Array, Mask, inverse_root, r_factor, semidefinite_root
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, is_consistent
from inertid_ros.identification.assessment.torque_confidence import StateTorques
from inertid_ros.identification.solvers.convex_program import ConvexProgram, LinearConstraints, Solution
from inertid_ros.identification.solvers.coordinates import Coordinates
from inertid_ros.identification.solvers.regularizers import Regularization
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

_WIDE_DRIVE_PRECISION = 1e-3  # precision over squared drive weight, for drives that only bound and weight determine
_ACTIVE_SLACK = 1e-4  # normalised slack below which an inequality is active
INTERVAL_COVERAGE = 0.95
_MAX_PROPAGATION_SWEEPS, _PROPAGATION_TOLERANCE = 50, 1e-6
_ZERO_VARIANCE_SHARE = 1e-6  # least variance of a quantity near zero, as a share of its variance without the bound
_TAIL_DEVIATIONS = -50.0  # in deviations from a bound; below it a series replaces differences of nearly equal numbers
_SHOWN_SHARE = 1e-3  # of the largest effect on torque; torque hardly shows directions with less
_HIDDEN_STEPS = (1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.0)  # shares of the drawn change along directions that are not shown
_MIN_DRAWS, _FIRST_BATCHES, _BATCHES = 1000, 4, 50  # of a batch; batches before the first and the last selection
_TOLERANCE, _MULTIPLIERS = 0.02, (-10.0, 10.0)  # of mean squares, and for them


@dataclass(frozen=True)
class ErrorSources:
    """Sources of the difference between an estimate and the truth.

    Attributes
    ----------
    equations : tuple of ndarray, shapes (p, p) and (p,)
        Equations in normalised coordinates, whitened with the noise weights, which may differ from the fit's weights.
    covariance : (p, p), further covariance in normalised coordinates, from quantities that the equations assume known
    left_out : bool (p,), parameters that the fit has left out; their true values may differ from zero
    """

    equations: tuple[Array, Array]
    covariance: Array
    left_out: Mask


def posterior(
        fitted: tuple[Array, Array], sources: ErrorSources, solution: Solution, convex_program: ConvexProgram,
        coordinates: Coordinates, regularization: Regularization) -> tuple[Array, Array]:
    """Posterior of the parameters under noise that may differ from the noise assumed by the weights of the fit.

    The posterior is normal about its optimum, with the curvature of data and regularizer at the estimate, and
    truncated by bounds. If the noise differs, the optimum moves away from the estimate; errors are measured from the
    estimate. A priori, a left-out parameter is zero with probability one half; otherwise it has the exponential
    density of the regularizer.

    Parameters
    ----------
    fitted : (p, p) and (p,), whitened equations in normalised coordinates, with the weights of the fit

    Returns
    -------
    covariance : ndarray, shape (p, p)
        Expected products of the errors about the estimate, which may differ from the mean because of bounds.
    interval : ndarray, shape (p, 2)
        95 % intervals of parameters that cannot be negative, one-sided if the bound is near; NaN for other parameters.
    """
    size, bounded = coordinates.layout.size, convex_program.positive
    x = np.where(sources.left_out, 0.0, solution.x)
    (R, z), (R_fit, z_fit) = sources.equations, fitted
    # Slopes of data, prior and bounds, which balance at the optimum of the fit.
    data_slope = R_fit.T @ (R_fit @ x - z_fit)
    curvature, prior_slope = _prior(x, coordinates, regularization)
    bound_pull = np.zeros(size)
    absent = sources.left_out[bounded]
    barrier = convex_program.positive_weights > 0
    if regularization.rotors_diverge:  # their logarithm is part of the prior, not a bound
        barrier = barrier & ~np.isin(bounded, regularization.rotors)
    pull = np.divide(convex_program.positive_weights, x[bounded], out=np.zeros(len(bounded)), where=barrier & ~absent)
    bound_pull[bounded] = np.where(absent, prior_slope[bounded], pull)  # left-out parameters: as without data
    inequalities = _of_parameters(convex_program.inequalities, size)
    equalities = _of_parameters(convex_program.equalities, size).matrix
    at_bound = bounded[~barrier & ~absent & (x[bounded] < _ACTIVE_SLACK)]  # bounds without barrier
    pushing = np.vstack([inequalities.matrix[inequalities(x) < _ACTIVE_SLACK], np.eye(size)[at_bound]])
    if len(pushing):
        columns = np.vstack([pushing, equalities, -equalities]).T
        bound_pull += pushing.T @ scipy.optimize.nnls(columns, data_slope + prior_slope - bound_pull)[0][: len(pushing)]
    free = null_space(equalities) if len(equalities) else np.eye(size)
    # Factor rows instead of their squares: squares lose the prior if data outweigh it by many orders of magnitude.
    root = free @ inverse_root(np.vstack([R, semidefinite_root(curvature)]) @ free)
    covariance = root @ root.T
    # The optimum under the weights of the noise is the mean of the normal distribution.
    mean = x - covariance @ (R.T @ (R @ x - z) - data_slope + bound_pull)
    covariance = covariance + sources.covariance
    # Bounds truncate the distribution; errors are measured from the estimate.
    rows = np.vstack([np.eye(size)[bounded], inequalities.matrix])
    shift = np.concatenate([np.zeros(len(bounded)), inequalities.shift])
    density = np.full(len(rows), np.nan)
    density[: len(bounded)][absent] = regularization.drive_weight
    within = truncated_normal(mean, covariance, rows, shift, density)
    moved = coordinates.matrix @ (within.mean - x)
    interval = np.full((size, 2), np.nan)
    interval[bounded] = np.diagonal(coordinates.matrix)[bounded, None] * within.intervals[: len(bounded)]
    return coordinates.matrix @ within.covariance @ coordinates.matrix.T + np.outer(moved, moved), interval


def _prior(x: Array, coordinates: Coordinates, regularization: Regularization) -> tuple[Array, Array]:
    """Curvature ``(p, p)`` and slope ``(p,)`` of the regularizer, without bounds."""
    layout, distance = coordinates.layout, regularization.distance
    bodies = layout.all_bodies(x)
    weights = 0.5 / regularization.spreads(len(bodies)) ** 2
    curvature, slope = np.zeros((layout.size, layout.size)), np.zeros(layout.size)
    values, vectors = np.linalg.eigh(distance.hessian(bodies))
    convex = (vectors * (weights[:, None] * np.maximum(values, 0.0))[:, None]) @ vectors.swapaxes(1, 2)
    inside = slice(0, layout.inertial_size)
    curvature[inside, inside] = block_diag(*convex)
    slope[inside] = (weights[:, None] * distance.gradient(bodies)).ravel()
    free = layout.of_any_size
    curvature[free, free] = 1 / regularization.offset_deviation**2
    slope[free] = x[free] / regularization.offset_deviation**2
    positive = layout.non_negative
    curvature[positive, positive] = _WIDE_DRIVE_PRECISION * regularization.drive_weight**2
    slope[positive] = regularization.drive_weight
    rotors, weight = list(regularization.rotors), regularization.weight
    diverge = regularization.rotors_diverge
    curvature[rotors, rotors] = weight / x[rotors] ** 2 if diverge else weight
    slope[rotors] = weight * (1 - 1 / x[rotors] if diverge else x[rotors] - 1)
    return curvature, slope


def _of_parameters(linear: LinearConstraints, size: int) -> LinearConstraints:
    """Constraints on parameters alone, not on pieces of bodies in unions of ellipsoids."""
    alone = ~linear.matrix[:, size:].any(axis=1)
    names = tuple(np.array(linear.names, dtype=object)[alone])
    return LinearConstraints(linear.matrix[alone, :size], linear.shift[alone], names)


@dataclass(frozen=True)
class TruncatedNormal:
    """Normal distribution within bounds.

    Attributes
    ----------
    centres, deviations : ndarray, shape (k,)
        Normal distribution of every bounded quantity without its own bound. If the quantity is not zero, its
        distribution is the part of the normal distribution above zero.
    present : (k,), probability that the quantity is not zero
    """

    mean: Array
    covariance: Array
    centres: Array
    deviations: Array
    present: Array

    @property
    def intervals(self) -> Array:
        """``(k, 2)`` shortest 95 % intervals of every bounded quantity; intervals at the bound are one-sided."""
        quantities = zip(self.centres, self.deviations, self.present, strict=True)
        return np.array([_shortest(*quantity) for quantity in quantities]).reshape(-1, 2)


def truncated_normal(
        mean: Array, covariance: Array, rows: Array, shift: Array, absent: Array | None = None) -> TruncatedNormal:
    """Truncate a normal distribution to ``rows @ x + shift >= 0``.

    Parameters
    ----------
    rows, shift : (k, p) and (k,), the bounds
    absent : ndarray, shape (k,), optional
        For quantities that are zero with prior probability one half: prior density at zero if the quantity is not
        zero, which the normal distribution includes. NaN for other quantities.
    """
    mean, covariance = mean.copy(), covariance.copy()
    absent, present = np.full(len(rows), np.nan) if absent is None else absent, np.ones(len(rows))
    precision, pull = np.zeros(len(rows)), np.zeros(len(rows))
    centres, deviations = np.zeros(len(rows)), np.zeros(len(rows))
    for _ in range(_MAX_PROPAGATION_SWEEPS):
        change = 0.0
        for k, (row, offset) in enumerate(zip(rows, shift, strict=True)):
            along = covariance @ row
            variance, middle = float(row @ along), float(row @ mean) + offset
            if variance <= 0.0:  # fixed by an equality
                centres[k], deviations[k] = middle, 0.0
                continue
            cavity = 1.0 / max(1.0 / variance - precision[k], 1e-9 / variance)  # without this bound
            centre = cavity * (middle / variance - pull[k])
            # Match the moments of the cavity's part above zero.
            inside, size = _above_zero(centre, cavity)
            if np.isfinite(absent[k]):
                present[k] = _probability(centre, cavity, absent[k])
                inside, size = _or_zero(inside, size, present[k], cavity)
            centres[k], deviations[k] = centre, np.sqrt(cavity)
            step, turn = 1 / size - 1 / cavity - precision[k], inside / size - centre / cavity - pull[k]
            precision[k], pull[k] = precision[k] + step, pull[k] + turn
            gain = 1 / (1 + step * variance)
            mean += (turn - step * middle) * gain * along
            covariance -= step * gain * np.outer(along, along)
            change = max(change, abs(step) * variance)
        if change <= _PROPAGATION_TOLERANCE:
            break
    return TruncatedNormal(mean, 0.5 * (covariance + covariance.T), centres, deviations, present)


def _above_zero(centre: float, variance: float) -> tuple[float, float]:
    """Mean and variance of the part of a normal distribution above zero."""
    deviation = np.sqrt(variance)
    z = centre / deviation
    if z < _TAIL_DEVIATIONS:
        return deviation / -z * (1 - 2 / z**2), variance / z**2 * (1 - 6 / z**2)
    hazard = np.exp(-0.5 * z**2 - 0.5 * np.log(2 * np.pi) - log_ndtr(z))
    return centre + deviation * hazard, variance * (1 - z * hazard - hazard**2)


def _probability(centre: float, variance: float, density: float) -> float:
    """Probability that a quantity is positive instead of zero, for a prior density at zero and even prior odds."""
    z = centre / np.sqrt(variance)
    odds = np.log(density) + float(log_ndtr(z)) + 0.5 * z**2 + 0.5 * np.log(2 * np.pi * variance)
    return float(expit(odds))


def _or_zero(mean: float, variance: float, probability: float, scale: float) -> tuple[float, float]:
    """Mean and variance of a quantity that is positive with a probability, else zero; the variance stays positive."""
    whole = probability * (variance + (1 - probability) * mean**2)
    return probability * mean, max(whole, _ZERO_VARIANCE_SHARE * scale)


def _shortest(centre: float, deviation: float, present: float) -> tuple[float, float]:
    """Shortest interval with :data:`INTERVAL_COVERAGE` of a quantity that is zero or normal above zero."""
    if deviation == 0.0:
        return max(centre, 0.0), max(centre, 0.0)
    if 1 - present >= INTERVAL_COVERAGE:
        return 0.0, 0.0
    z, coverage = centre / deviation, INTERVAL_COVERAGE
    if present == 1.0:
        half = float(ndtri(0.5 * (1 + INTERVAL_COVERAGE * ndtr(z))))
        if half <= z:
            return centre - half * deviation, centre + half * deviation
    else:
        coverage = 1 - (1 - INTERVAL_COVERAGE) / present
    if z < _TAIL_DEVIATIONS:  # exponential there
        return 0.0, -deviation / z * -np.log1p(-coverage)
    return 0.0, centre - deviation * float(ndtri_exp(np.log1p(-coverage) + log_ndtr(z)))


def sample_parameters(
        model: RobotModel, parameters: Array, covariance: Array, count: int, rng: np.random.Generator) -> Array:
    """Draw ``(count, p)`` parameter vectors with consistent bodies and without negative friction.

    Torque over random states spreads about the torque of ``parameters (p,)`` as ``covariance (p, p)`` states for every
    joint, as root mean square. Along directions that torque does not show, a draw without consistent bodies is
    shortened; if this does not suffice, it is discarded. Draws are then selected so that their spread is as stated.

    Raises IdentificationError: the base is free, or too few draws are consistent with this spread.
    """
    layout, batch = model.layout, max(count, _MIN_DRAWS)
    root = semidefinite_root(covariance)
    torques = np.array([r_factor(rows) for rows in StateTorques(model).coefficients])
    stated = np.sum((torques @ root.T) ** 2, axis=(1, 2))
    draw, pool = _drawing(layout, parameters, root, torques.reshape(-1, layout.size)), np.empty((0, layout.size))
    for done in range(1, _BATCHES + 1):
        pool = np.concatenate([pool, draw(rng.normal(size=(batch, layout.size)))])
        if done < _FIRST_BATCHES or len(pool) < count:
            continue
        spread = np.sum(((pool - parameters) @ torques.transpose(0, 2, 1)) ** 2, axis=2).T
        squares = spread[:, stated > 0] / stated[stated > 0]
        weights = _weights(squares)
        selected = pool[rng.random(len(pool)) * weights.max() < weights]
        if len(selected) >= count and np.abs(weights @ squares / weights.sum() - 1).max(initial=0) < _TOLERANCE:
            return selected[:count]
    raise IdentificationError(
        f"samples: {len(pool)} of {_BATCHES * batch} draws from the posterior are physically consistent, too few for"
        " the spread of the covariance; identify again with more motion, and with identify.estimator: consistent")


def _drawing(layout: ParameterLayout, parameters: Array, root: Array, torques: Array) -> Callable[[Array], Array]:
    """Return a function from standard normal draws ``(k, p)`` to consistent parameters ``(m, p)``.

    Parameters that cannot be negative come first in the Cholesky factor, beginning with the parameters nearest to zero.
    A draw that would make such a parameter negative changes its sign: the square of the draw stays, and so do the
    correlations with later parameters.
    """
    bounded = np.unique(layout.non_negative)
    deviation = np.maximum(np.linalg.norm(root, axis=0), np.finfo(float).tiny)
    bounded = bounded[np.argsort(parameters[bounded] / deviation[bounded], kind="stable")]
    order = np.concatenate([bounded, np.setdiff1d(np.arange(layout.size), bounded)])
    lower, centre = r_factor(root[:, order]).T, parameters[order]
    lower *= np.where(np.diagonal(lower) < 0, -1.0, 1.0)
    _, effects, directions = np.linalg.svd(r_factor(torques[:, order]) @ lower)
    shown = directions[effects > _SHOWN_SHARE * effects.max()]

    def draw(normal: Array) -> Array:
        for k in range(len(bounded)):
            negative = centre[k] + normal[:, : k + 1] @ lower[k, : k + 1] < 0
            normal[negative, k] = np.abs(normal[negative, k])
        visible = normal @ shown.T @ shown
        samples, left = np.empty_like(normal), np.arange(len(normal))
        for step in _HIDDEN_STEPS:
            samples[np.ix_(left, order)] = centre + (visible + step * (normal - visible))[left] @ lower.T
            bodies = samples[left, : layout.inertial_size].reshape(len(left), len(layout.body_names), BODY_PARAMETERS)
            left = left[(samples[left][:, bounded] < 0).any(axis=1) | ~is_consistent(bodies).all(axis=1)]
        return np.delete(samples, left, axis=0)

    return draw


def _weights(squares: Array) -> Array:
    """Weights ``(k,)`` with weighted mean 1 of each column of ``squares (k, n)``, as equal as possible."""

    def weigh(multipliers: Array) -> tuple[float, Array]:
        exponents = squares @ multipliers
        return float(exponents.max()), np.exp(exponents - exponents.max())

    def dual(multipliers: Array) -> tuple[float, Array]:
        largest, weights = weigh(multipliers)
        return largest + np.log(weights.mean()) - multipliers.sum(), weights @ squares / weights.sum() - 1.0

    bounds = [_MULTIPLIERS] * squares.shape[1]
    return weigh(scipy.optimize.minimize(dual, np.zeros(len(bounds)), jac=True, bounds=bounds).x)[1]
