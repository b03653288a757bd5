"""Classical estimators: ordinary, weighted, truncated, reduced and robust least squares.

All methods share one linear estimator on compressed information. The estimator fits the directions of a
:class:`.ParameterSpectrum` that the data determine well enough, and keeps the prior (or zero, if configured) along all
other directions. An estimate may be physically inconsistent; :attr:`LeastSquaresEstimate.consistent` is then false,
and validation rejects the estimate.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from inertid_ros.config.identification import LeastSquaresOptions
from inertid_ros.core.arrays import MAD_TO_DEVIATION, Array, one_thread
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.estimate import Estimate, with_identifiability
from inertid_ros.identification.information.data_checks import checked_data
from inertid_ros.identification.information.information import Information, compress, merged
from inertid_ros.identification.information.residuals import band_fraction, effective_fraction
from inertid_ros.identification.solvers.convex_program import Solution
from inertid_ros.identification.solvers.coordinates import TYPICAL_PRIOR_SPREAD
from inertid_ros.regressors.equations import Equations, equations_of
from inertid_ros.robot.model import RobotModel

from .linear_fit import LinearFit, LinearProblem, ParameterSpectrum, least_deviation

_log = logging.getLogger(__name__)
_CROSS_VALIDATION_SETS = 5  # pieces into which rank rule held_out cuts a single recording
HUBER_TUNING = 1.345  # standard deviations beyond which residuals are clipped: 95 % efficiency for normal noise
_MAX_SCALE_PASSES, _SCALE_TOLERANCE = 20, 0.01
_MAX_ROBUST_PASSES, _ROBUST_TOLERANCE = 50, 1e-13
_SQUARE_ROUNDING = 1e-24  # rounding error of the objective, as a share of the sum of squared torques
_UNCHECKED_DECREASE = 1e-9  # share of the objective; rounding hides a smaller decrease
_CLIPPED_CURVATURE_SHARE = 0.02  # added share of the curvature of all equations, for weak directions


@dataclass(frozen=True, kw_only=True)
class LeastSquaresEstimate(Estimate):
    """Estimate of a classical method, which may be physically inconsistent.

    ``covariance`` is the mean squared error: noise along fitted directions, and prior variance along other directions.

    Attributes
    ----------
    spectrum : all directions that motion excites, best determined first
    variances : ndarray, shape (r,)
        Variance of the estimate along each direction, from the noise, ascending ([Lee2019]_ eq. 4.5.53). For
        comparison, the prior's variance along a direction is ``prior_spread**2`` under the metric.
    scores : (r + 1,), score of each rank from 0 to r; empty if the rank rule uses no scores
    """

    rank: int
    spectrum: ParameterSpectrum
    variances: Array
    scores: Array
    clipped: Array


@one_thread()
def least_squares(equations: RobotModel | Equations, data: Sequence[Samples] | Information,
        options: LeastSquaresOptions | None = None) -> LeastSquaresEstimate:
    """Fit parameters by a classical least-squares method ([vanDerGaag2024]_ sec. III; [Lee2019]_ sec. 4.5.1).

    Parameters
    ----------
    equations : equations, or a robot for its force equations
    data : sequence of Samples or Information
        Recordings, or their information. The robust loss needs recordings. Information does not show the correlation
        of residuals, so all samples then count as independent.

    Raises
    ------
    IdentificationError
        No usable samples, zero torque throughout, too few equations for the parameters, or no convergence.
    """
    began = time.perf_counter()
    options = options or LeastSquaresOptions()
    equations = equations_of(equations)
    if isinstance(data, Information) and options.loss == "huber":
        raise IdentificationError("least squares: the robust loss needs every sample; give recordings")
    recordings, information = checked_data(equations, data, "least squares")
    linear_problem = LinearProblem.from_information(equations, information, options)
    if options.loss == "huber":
        fit = robust_fit(linear_problem, recordings, information)
    else:
        fit = linear_problem.weighted(information, np.ones(equations.count))
        if recordings and not options.independent:
            # Fit again with the number of independent samples, by the correlation of residuals.
            residuals = Residuals.from_parameters(equations, recordings, fit.parameters)
            fraction = residuals.independent_fraction(fit.scale, least_deviation(information))
            fit = linear_problem.weighted(information, fraction, fit.weights)
    rank, scores = choose_rank(linear_problem, fit, recordings)
    solution = replace(_solution(fit, rank, options.name), seconds=time.perf_counter() - began)
    estimate = LeastSquaresEstimate(
        equations=equations, parameters=solution.x, covariance=linear_problem.covariance(fit, rank),
        residual_deviation=linear_problem.deviation(fit.information, fit.weights, fit.spectrum, rank),
        effective_counts=fit.fraction * fit.information.counts, base=linear_problem.base,
        train_relative_error=information.relative_error(solution.x), prior_spread=TYPICAL_PRIOR_SPREAD,
        solution=solution, recordings=tuple(samples.name for samples in recordings), information=fit.information,
        weights=fit.weights, rank=rank, spectrum=fit.spectrum, variances=fit.variances, scores=scores,
        clipped=fit.clipped)
    return with_identifiability(estimate)


def _solution(fit: LinearFit, rank: int, name: str) -> Solution:
    parameters = fit.spectrum.solutions[rank]
    R, z = fit.information.whitened(fit.weights)
    gradient = fit.spectrum.left[:, :rank].T @ (z - R @ parameters)
    squares = float(fit.weights**2 @ fit.information.squared_errors(parameters))
    return Solution(x=parameters, hessian=R.T @ R, objective=0.5 * squares, solver=name, iterations=fit.iterations,
        gap=fit.gap + 0.5 * float(gradient @ gradient), seconds=0.0)


def choose_rank(linear_problem: LinearProblem, fit: LinearFit, recordings: Sequence[Samples]) -> tuple[int, Array]:
    """Choose the rank by the configured rule.

    Also return the score ``(r + 1,)`` of each rank from 0 to r; empty ``(0,)`` if the rule uses no scores.
    """
    rule = linear_problem.options.rank
    if rule == "full":
        return fit.spectrum.count, np.zeros(0)
    if rule in ("auto", "variance"):
        # Directions whose variance is at most a limit, or a given number ([Lee2019]_ eqs. a.4, b.4); variances ascend.
        limited = int(np.searchsorted(fit.variances, linear_problem.options.variance_limit, side="right"))
        rank = linear_problem.options.kept_parameters or limited
        if rank > fit.spectrum.count:
            raise IdentificationError(
                f"identify.kept_parameters is {rank}, but only {fit.spectrum.count} can be identified; lower it, or"
                " set it to 0 for all directions of small variance")
        if rule == "auto" and rank < fit.spectrum.count:
            _log.warning("least squares: %d of %d directions are excited enough and fitted; the rest stays at the prior"
                " (reduced identification)", rank, fit.spectrum.count)
        return rank, np.zeros(0)
    if rule == "gcv":
        # Generalised cross-validation: expected squared error per equation on new data of the same motion; infinite for
        # ranks not below the number of equations.
        squares = float(fit.weights**2 @ fit.information.squared_errors(fit.parameters))
        count = float(fit.fraction @ fit.information.counts)
        dropped = np.append(np.cumsum(fit.spectrum.projections[::-1] ** 2)[::-1], 0.0)
        freedom = np.maximum(count - np.arange(fit.spectrum.count + 1), 0.0)
        with np.errstate(divide="ignore"):
            scores = np.asarray(count * (squares + dropped) / freedom**2)
    else:
        scores = cross_validation_scores(linear_problem, fit, recordings)
    return int(np.argmin(scores)), scores


def cross_validation_scores(linear_problem: LinearProblem, fit: LinearFit, recordings: Sequence[Samples]) -> Array:
    """Mean score ``(r + 1,)`` of each rank over cross-validation sets, each held out in turn.

    Each recording is a set. A single recording is cut into contiguous pieces, since neighbouring samples are alike.
    """
    if not recordings:
        raise IdentificationError("least squares: rank held_out has no recordings to split; give recordings or use gcv")
    residuals = Residuals.from_parameters(linear_problem.equations, recordings, fit.parameters)
    fitted = list(residuals.pseudo_values(fit.scale))
    pieces = fitted if len(fitted) > 1 else fitted[0].blocks(_CROSS_VALIDATION_SETS)
    sets = [compress(linear_problem.equations, [samples]) for samples in pieces]
    errors, count = np.zeros(fit.spectrum.count + 1), sum(int(test_set.counts.sum()) for test_set in sets)
    for index, test_set in enumerate(sets):
        spectrum = linear_problem.spectrum(merged(sets[:index] + sets[index + 1 :]), fit.weights)
        errors += fit.weights**2 @ test_set.squared_errors(spectrum.solutions)
    return errors / max(count, 1)


@dataclass(frozen=True)
class Residuals:
    """Residuals of recordings under one set of parameters; masked samples do not count."""

    equations: Equations
    recordings: tuple[Samples, ...]
    values: tuple[Array, ...]

    @classmethod
    def from_parameters(cls, equations: Equations, recordings: Sequence[Samples], parameters: Array) -> "Residuals":
        values = tuple(samples.tau - equations.predict(parameters, samples) for samples in recordings)
        return cls(equations, tuple(recordings), values)

    def at(self, parameters: Array) -> "Residuals":
        """Residuals of the same recordings under other parameters."""
        return Residuals.from_parameters(self.equations, self.recordings, parameters)

    @cached_property
    def sizes(self) -> list[Array]:
        """``n`` arrays of the absolute residuals of unmasked samples."""
        pairs = list(zip(self.recordings, self.values, strict=True))
        joints = range(self.values[0].shape[1])
        return [np.concatenate([np.abs(values[s.mask[:, joint], joint]) for s, values in pairs]) for joint in joints]

    def scale(self, least: Array) -> Array:
        """``(n,)`` robust standard deviation, never below ``least``."""
        return np.maximum([MAD_TO_DEVIATION * np.median(size) if len(size) else 0.0 for size in self.sizes], least)

    def clipped_share(self, scale: Array) -> Array:
        """Share ``(n,)`` of residuals that the loss clips; at most half, since the limit is above their median."""
        limits = zip(self.sizes, HUBER_TUNING * scale, strict=True)
        return np.array([np.mean(size > limit) if len(size) else 0.0 for size, limit in limits])

    def objective(self, scale: Array, weights: Array) -> float:
        """Weighted Huber loss, summed over all joints."""
        total = 0.0
        for size, limit, weight in zip(self.sizes, HUBER_TUNING * scale, weights, strict=True):
            total += weight**2 * float(np.sum(np.where(size <= limit, 0.5 * size**2, limit * (size - 0.5 * limit))))
        return total

    def clipped(self, scale: Array) -> list[Array]:
        limit = HUBER_TUNING * scale
        return [np.clip(values, -limit, limit) for values in self.values]

    def pseudo_values(self, scale: Array) -> Iterator[Samples]:
        """Yield the recordings with pseudo-values in place of torque.

        A pseudo-value is the prediction plus the clipped residual over the unclipped share. With this divisor, the
        variance of the pseudo-values gives the variance of the estimator.
        """
        share = 1 - self.clipped_share(scale)
        for samples, values, clipped in zip(self.recordings, self.values, self.clipped(scale), strict=True):
            yield replace(samples, tau=samples.tau - values + clipped / share)

    def independent_fraction(self, scale: Array, least: Array) -> Array:
        """Share ``(n,)`` of independent samples, by the correlation of clipped residuals and the band of the low-pass.

        The share is one if the residual is only rounding, that is, not above ``least``.
        """
        fraction = effective_fraction(self.clipped(scale), [samples.mask for samples in self.recordings])
        fraction = np.minimum(fraction, band_fraction(self.recordings))
        return np.where(self.scale(np.zeros_like(least)) > least, fraction, 1.0)


def robust_fit(linear_problem: LinearProblem, recordings: Sequence[Samples], measured: Information) -> LinearFit:
    """Fit of full rank under Huber's loss, which bounds the influence of gross outliers.

    The scale comes from the median absolute residual. The minimum equals the least-squares solution for pseudo-values,
    that is, predictions plus clipped residuals ([Huber1981]_ sec. 7.6-7.8). Pseudo-values compress to ordinary
    information, so ranks, variances and covariances follow as usual. Newton's method finds the minimum: a fixed-point
    iteration of pseudo-values would take dozens of passes for real arms, whose residuals are clipped over long
    stretches.

    Raises
    ------
    IdentificationError
        No minimum within the maximum number of passes.
    """
    equations = linear_problem.equations
    fit = linear_problem.weighted(measured, np.ones(equations.count))
    residuals, least = Residuals.from_parameters(equations, recordings, fit.parameters), least_deviation(measured)
    scale = residuals.scale(least)
    for _ in range(_MAX_SCALE_PASSES):
        fit = linear_problem.weighted(compress(equations, residuals.pseudo_values(scale)), fit.fraction, fit.weights)
        residuals = residuals.at(fit.parameters)
        before, scale = scale, residuals.scale(least)
        if np.max(np.abs(scale / before - 1)) <= _SCALE_TOLERANCE:
            break
    information = compress(equations, residuals.pseudo_values(scale))
    fraction = np.ones(equations.count)
    if not linear_problem.options.independent:
        fraction = residuals.independent_fraction(scale, least)
    fit = linear_problem.weighted(information, fraction, fit.weights)
    # Scale and weights stay fixed from here on, so the loss is one convex function. The squared weight of a
    # pseudo-value is the squared weight of the loss times the unclipped share.
    weights = fit.weights
    if linear_problem.options.weighting == "residual":
        weights = weights / np.sqrt(1 - residuals.clipped_share(scale))
    residuals, gap, passes = _minimise(residuals, scale, replace(fit, weights=weights))
    clipped = residuals.clipped_share(scale)
    information = compress(equations, residuals.pseudo_values(scale))
    fit = linear_problem.fit(information, weights * np.sqrt(1 - clipped), fraction)
    return replace(fit, scale=scale, clipped=clipped, gap=gap, iterations=passes)


def _minimise(residuals: Residuals, scale: Array, fit: LinearFit) -> tuple[Residuals, float, int]:
    """Minimise the loss; return residuals at the minimum, bound of objective minus optimum, and number of passes."""
    span, weights, at = fit.spectrum.directions, fit.weights, fit.parameters
    residuals = residuals.at(at)
    objective = residuals.objective(scale, weights)
    rounding = _SQUARE_ROUNDING * float(weights**2 @ (fit.information.rms_measured**2 * fit.information.counts))
    for passes in range(1, _MAX_ROBUST_PASSES + 1):
        clipped = list(zip(residuals.recordings, residuals.values, residuals.clipped(scale), strict=True))
        pulls = (replace(samples, tau=values) for samples, _, values in clipped)
        kept = (replace(samples, mask=samples.mask & (values == limited)) for samples, values, limited in clipped)
        R, z = compress(residuals.equations, pulls).whitened(weights)
        every = R @ span
        inner = compress(residuals.equations, kept).whitened(weights)[0] @ span
        gradient = every.T @ z
        step = np.linalg.solve(inner.T @ inner + _CLIPPED_CURVATURE_SHARE * every.T @ every, gradient)
        gap = 0.5 * float(gradient @ step)
        if gap <= _ROBUST_TOLERANCE * objective + rounding:
            return residuals, gap, passes
        before = objective
        for share in 0.5 ** np.arange(20):
            residuals = residuals.at(at + share * (span @ step))
            objective = residuals.objective(scale, weights)
            if gap <= _UNCHECKED_DECREASE * before or objective <= before - 0.1 * share * gap:
                break
        at = at + share * (span @ step)
    raise IdentificationError("least squares: the robust loss does not converge; check the recordings for damage")
