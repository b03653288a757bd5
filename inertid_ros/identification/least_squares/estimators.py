"""Classical estimators: ordinary, weighted, truncated, reduced and robust least squares.

All are one linear estimator on compressed information, which fits the directions of a
:class:`~.parameter_spectrum.ParameterSpectrum` that the data determines well enough and keeps the prior along all
others. None of them ensures physical consistency: :attr:`LeastSquaresEstimate.consistent` states it, and validation
rejects inconsistent estimates.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.config.least_squares import LeastSquaresOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.uncertainty import with_identifiability
from inertid_ros.identification.information.data_checks import checked_data
from inertid_ros.identification.information.information import Information
from inertid_ros.identification.information.residuals import Residuals
from inertid_ros.identification.prior.convex_program import Solution
from inertid_ros.identification.prior.coordinates import TYPICAL_PRIOR_SPREAD
from inertid_ros.regressors.equations import Equations, equations_of
from inertid_ros.robot.model import RobotModel

from .linear_fit import LinearFit, LinearProblem, least_deviation
from .parameter_spectrum import ParameterSpectrum
from .rank import choose_rank
from .robust import robust_fit


@dataclass(frozen=True, kw_only=True)
class LeastSquaresEstimate(Estimate):
    """Estimate of a classical method, which need not be physically consistent.

    ``covariance`` is the mean squared error: noise along what is fitted, and the variance of the prior along the rest.

    Attributes
    ----------
    rank : int
        Directions fitted.
    spectrum : ParameterSpectrum
        All directions that motion shows at all, best determined first.
    variances : ndarray, shape (r,)
        Of each direction under the noise, ascending ([Lee2019]_ eq. 4.5.53); those of the prior are ``prior_spread**2``
        under the metric.
    scores : ndarray, shape (r + 1,)
        Criterion per rank from zero where the rank was chosen by one, else empty.
    clipped : ndarray, shape (n,)
        Share of equations whose residual the robust loss clipped, zero for squares.
    """

    rank: int
    spectrum: ParameterSpectrum
    variances: Array
    scores: Array
    clipped: Array


def least_squares(
    equations: RobotModel | Equations,
    data: Sequence[Samples] | Information,
    options: LeastSquaresOptions | None = None,
    held_out: Sequence[Samples] | Information = (),
) -> LeastSquaresEstimate:
    """Parameters by a classical least-squares method ([vanDerGaag2024]_ sec. III; [Lee2019]_ sec. 4.5.1).

    Parameters
    ----------
    equations : RobotModel or Equations
        A robot stands for its equations of force.
    data : sequence of Samples or Information
        Recordings, or their information. The robust loss needs recordings; so does the correlation of residuals,
        without which all samples count as independent.
    held_out : sequence of Samples or Information, optional
        Data of rank "held_out"; without it, recordings in turn are held out, or pieces of the only one.

    Raises
    ------
    IdentificationError
        No usable samples, no torque, no more equations than parameters, or no convergence.
    """
    began = time.perf_counter()
    options = options or LeastSquaresOptions()
    equations = equations_of(equations)
    if isinstance(data, Information) and options.loss == "huber":
        raise IdentificationError("least squares: the robust loss needs every sample; give recordings")
    recordings, information = checked_data(equations, data, "least squares")
    linear_problem = LinearProblem.of(equations, information, options)
    if options.loss == "huber":
        fit = robust_fit(linear_problem, recordings, information)
    else:
        fit = _plain_fit(linear_problem, recordings, information)
    rank, scores = choose_rank(linear_problem, fit, recordings, held_out)
    parameters = fit.spectrum.solution(rank)
    errors = [channel.squared_error(parameters) for channel in fit.information.channels]
    R, z = fit.information.whitened(fit.weights)
    gradient = fit.spectrum.left[:, :rank].T @ (z - R @ parameters)
    solution = Solution(
        x=parameters,
        hessian=R.T @ R,
        objective=0.5 * float(fit.weights**2 @ errors),
        gap=fit.gap + 0.5 * float(gradient @ gradient),
        solver=options.name,
        iterations=fit.iterations,
        seconds=time.perf_counter() - began,
    )
    estimate = LeastSquaresEstimate(
        equations=equations,
        parameters=parameters,
        covariance=linear_problem.covariance(fit, rank),
        residual_deviation=linear_problem.deviation(fit.information, fit.weights, fit.spectrum, rank),
        effective_counts=fit.fraction * fit.information.counts,
        base=linear_problem.base,
        train_relative_error=information.relative_error(parameters),
        prior_spread=TYPICAL_PRIOR_SPREAD,
        solution=solution,
        recordings=tuple(samples.name for samples in recordings),
        information=fit.information,
        weights=fit.weights,
        rank=rank,
        spectrum=fit.spectrum,
        variances=fit.variances,
        scores=scores,
        clipped=fit.clipped,
    )
    return with_identifiability(estimate)


def _plain_fit(linear_problem: LinearProblem, recordings: Sequence[Samples], information: Information) -> LinearFit:
    """Fit of full rank; of recordings, samples count as the independent share of their correlated residuals."""
    fit = linear_problem.weighted(information, np.ones(linear_problem.equations.count))
    if not recordings or linear_problem.options.independent:
        return fit
    residuals = Residuals.of(linear_problem.equations, recordings, fit.parameters)
    fraction = residuals.independent_fraction(fit.scale, least_deviation(information))
    return linear_problem.weighted(information, fraction, fit.weights)
