"""Huber's robust loss, which bounds the influence of gross outliers.

The scale is the median absolute residual. At the minimum the loss has the solution of least squares on pseudo-values,
the prediction plus the clipped residual ([Huber1981]_ sec. 7.6-7.8); their information is ordinary information, so that
ranks, variances and covariances follow as usual. The minimum itself is found by Newton's method: iterating
pseudo-values to their fixed point takes dozens of passes over recordings of real arms, whose residuals are clipped in
whole stretches.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import Information, compress
from inertid_ros.identification.information.residuals import Residuals

from .linear_fit import LinearFit, LinearProblem, least_deviation

_SCALE_PASSES, _SCALE_TOLERANCE = 20, 0.01
_PASSES, _TOLERANCE = 50, 1e-13
_ROUNDING = 1e-24  # of the sum of squared torques
_SURE_DESCENT = 1e-9  # of the objective: a smaller step needs no check that it goes down, which rounding would conceal
_DAMPING = 0.02  # share of the clipped equations' curvature: keeps directions that only they excite


def robust_fit(linear_problem: LinearProblem, recordings: Sequence[Samples], measured: Information) -> LinearFit:
    """Fit of full rank under Huber's loss.

    Raises
    ------
    IdentificationError
        No minimum within the passes.
    """
    fit = linear_problem.weighted(measured, np.ones(linear_problem.equations.count))
    residuals, scale = _settle(linear_problem, recordings, fit)
    information = compress(linear_problem.equations, residuals.pseudo_values(scale))
    fraction = np.ones(linear_problem.equations.count)
    if not linear_problem.options.independent:
        fraction = residuals.independent_fraction(scale, least_deviation(measured))
    fit = linear_problem.weighted(information, fraction, fit.weights)
    # Scale and weights stay from here on: one convex function. The weights of pseudo-values, whose residuals are
    # divided by the share not clipped, belong to a loss of that much more weight.
    weights = fit.weights
    if linear_problem.options.weighting == "residual":
        weights = weights / np.sqrt(1 - residuals.clipped_share(scale))
    residuals, gap, passes = _minimise(linear_problem, recordings, scale, replace(fit, weights=weights))
    clipped = residuals.clipped_share(scale)
    information = compress(linear_problem.equations, residuals.pseudo_values(scale))
    fit = linear_problem.fit(information, weights * np.sqrt(1 - clipped), fraction)
    return replace(fit, scale=scale, clipped=clipped, gap=gap, iterations=passes)


def _settle(linear_problem: LinearProblem, recordings: Sequence[Samples], fit: LinearFit) -> tuple[Residuals, Array]:
    """Residuals and their scale, at a fixed point of both."""
    least = least_deviation(fit.information)
    residuals = Residuals.of(linear_problem.equations, recordings, fit.parameters)
    scale = residuals.scale(least)
    for _ in range(_SCALE_PASSES):
        information = compress(linear_problem.equations, residuals.pseudo_values(scale))
        fit = linear_problem.weighted(information, fit.fraction, fit.weights)
        residuals = Residuals.of(linear_problem.equations, recordings, fit.parameters)
        before, scale = scale, residuals.scale(least)
        if np.max(np.abs(scale / before - 1)) <= _SCALE_TOLERANCE:
            break
    return residuals, scale


def _minimise(
    linear_problem: LinearProblem, recordings: Sequence[Samples], scale: Array, fit: LinearFit
) -> tuple[Residuals, float, int]:
    """Residuals at the minimum, bound of objective minus optimum, and passes."""
    span, weights, at = fit.spectrum.directions, fit.weights, fit.parameters
    residuals = Residuals.of(linear_problem.equations, recordings, at)
    objective = residuals.objective(scale, weights)
    rounding = _ROUNDING * float(weights**2 @ (fit.information.rms_measured**2 * fit.information.counts))
    for passes in range(1, _PASSES + 1):
        R, z = compress(linear_problem.equations, residuals.clipped_torque(scale)).whitened(weights)
        every = R @ span
        inner = compress(linear_problem.equations, residuals.without_clipped(scale)).whitened(weights)[0] @ span
        gradient = every.T @ z
        step = cho_solve(cho_factor(inner.T @ inner + _DAMPING * every.T @ every), gradient)
        gap = 0.5 * float(gradient @ step)
        if gap <= _TOLERANCE * objective + rounding:
            return residuals, gap, passes
        before = objective
        for share in 0.5 ** np.arange(20):
            residuals = Residuals.of(linear_problem.equations, recordings, at + share * (span @ step))
            objective = residuals.objective(scale, weights)
            if gap <= _SURE_DESCENT * before or objective <= before - 0.1 * share * gap:
                break
        at = at + share * (span @ step)
    raise IdentificationError("least squares: the robust loss finds no minimum; look at the recordings for damage")
