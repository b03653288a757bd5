"""MAP fit: weights of channels and the prior spread, iterated with the solution to their fixed point."""

from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.base_parameters import base_parameters, base_parameters_of_robot
from inertid_ros.identification.information.information import Information, compress
from inertid_ros.identification.information.outliers import without_outliers
from inertid_ros.identification.information.residuals import effective_fraction
from inertid_ros.identification.prior.constraints import Constraints
from inertid_ros.identification.prior.convex_program import Solution
from inertid_ros.identification.prior.coordinates import ENERGY_SHARE, TYPICAL_PRIOR_SPREAD, prior_coordinates
from inertid_ros.identification.prior.regularizers import Regularization
from inertid_ros.identification.solvers.map_problem import MapProblem
from inertid_ros.regressors.equations import Equations
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.bodies.layout import ParameterLayout

_OUTER_ITERATIONS = 30
_OUTER_TOLERANCE = 3e-3
_HYPERPRIOR_COUNT = 30.0  # weight of the typical prior spread in directions: errors of the model must not widen it


@dataclass(frozen=True)
class FitData:
    """Data of a fit.

    Attributes
    ----------
    equations : Equations
        Of the robot.
    recordings : tuple of Samples
        Empty where only their information is given.
    information : Information
        Of the recordings.
    delay : float
        Delay of effort that has been removed [s].
    prior_spreads : ndarray or None, shape (nb,)
        Prior spreads of single bodies; NaN, or None for all, where it is that of the options.
    """

    equations: Equations
    recordings: tuple[Samples, ...]
    information: Information
    delay: float = 0.0
    prior_spreads: Array | None = None


@dataclass(frozen=True)
class Weighting:
    """Weights of data and prior.

    Attributes
    ----------
    deviation : ndarray, shape (c,)
        Standard deviation of the residual per channel.
    fraction : ndarray, shape (c,)
        Independent share of the samples per channel.
    regularization : Regularization
        With the prior spread.
    """

    deviation: Array
    fraction: Array
    regularization: Regularization


@dataclass(frozen=True)
class MapFit:
    """MAP fit of one set of data: what stays the same while weights are iterated."""

    data: FitData
    map_problem: MapProblem
    regularization: Regularization
    options: IdentifyOptions

    @classmethod
    def of(cls, data: FitData, options: IdentifyOptions, constraints: Constraints) -> "MapFit":
        """Fit of data under options and constraints."""
        model, prior_spread = data.equations.model, options.prior_spread or TYPICAL_PRIOR_SPREAD
        known = tuple(name for term in model.layout.terms if term.values for name in term.parameter_names)
        constraints = replace(constraints, fixed=(*constraints.fixed, *known))
        map_problem = MapProblem(prior_coordinates(model, data.information), model.prior, constraints, options.solver)
        regularization = Regularization(
            options.regularizer, prior_spread, options.drive_weight, 1 / ENERGY_SHARE, data.prior_spreads
        )
        return cls(
            data,
            map_problem,
            map_problem.completed(regularization, model.consistent_prior - model.inertial_locked),
            options,
        )

    @property
    def initial_weighting(self) -> Weighting:
        """Weights before anything is fitted: by the errors of the prior."""
        information = self.data.information
        deviation = np.maximum(information.deviation(self.data.equations.model.prior), 0.01 * information.rms_measured)
        return Weighting(np.maximum(deviation, 1e-9 * deviation.max()), np.ones(len(deviation)), self.regularization)

    def reweighted(self, weighting: Weighting) -> tuple[Weighting, Solution]:
        """Iterate weights (residual deviation per channel) and prior spread to their fixed point."""
        information, coordinates = self.data.information, self.map_problem.coordinates
        start: Solution | None = None
        for _ in range(_OUTER_ITERATIONS):
            R, z = self.normalised_equations(weighting)
            start = solution = self.map_problem.solve(R, z, weighting.regularization, start)
            deviation = information.deviation(coordinates.physical(solution.x))
            deviation = np.maximum(deviation, 1e-9 * information.rms_measured.max())  # not zero for a perfect fit
            prior_spread = self.options.prior_spread or _evidence_prior_spread(
                R, solution, information.layout, weighting.regularization
            )
            change = max(
                np.max(np.abs(deviation / weighting.deviation - 1)),
                abs(prior_spread / weighting.regularization.prior_spread - 1),
            )
            if change <= _OUTER_TOLERANCE:
                break
            weighting = Weighting(
                deviation, weighting.fraction, replace(weighting.regularization, prior_spread=prior_spread)
            )
        return weighting, solution

    def normalised_equations(self, weighting: Weighting) -> tuple[Array, Array]:
        """Weighted equations ``R (p, p)`` and ``z (p,)`` in normalised coordinates."""
        R, z = self.data.information.whitened(np.sqrt(weighting.fraction) / weighting.deviation)
        return self.map_problem.coordinates.normalise(R, z)

    def refitted(self, estimate: Estimate) -> Array:
        """Parameters ``(p,)`` of this fit with the weights of data and prior of an estimate, not iterated again."""
        fraction = estimate.effective_counts / np.maximum(estimate.information.counts, 1)
        regularization = replace(self.regularization, prior_spread=estimate.prior_spread)
        weighting = Weighting(estimate.residual_deviation, fraction, regularization)
        R, z = self.normalised_equations(weighting)
        return self.map_problem.coordinates.physical(self.map_problem.solve(R, z, regularization).x)

    def without_outliers(self, solution: Solution) -> tuple["MapFit", Array, np.ndarray]:
        """The fit without outliers, the independent fraction of samples ``(c,)``, and the number of outliers ``(c,)``.

        Both follow from the residuals of a first solution.
        """
        equations, recordings = self.data.equations, self.data.recordings
        parameters = self.map_problem.coordinates.physical(solution.x)
        residuals = [samples.tau - equations.predict(parameters, samples) for samples in recordings]
        kept, outliers = without_outliers(recordings, residuals, self.options.outlier_threshold)
        fraction = effective_fraction(residuals, [samples.mask for samples in kept])
        data = self.data
        if outliers.any():
            data = replace(data, information=replace(compress(equations, kept), earlier=data.information.earlier))
        return replace(self, data=data), fraction, outliers

    def estimate(self, weighting: Weighting, solution: Solution) -> Estimate:
        """Estimate of a solution, with its covariance and base parameters."""
        coordinates, information, model = self.map_problem.coordinates, self.data.information, self.data.equations.model
        parameters = coordinates.physical(solution.x)
        covariance = coordinates.matrix @ self._normalised_covariance(solution) @ coordinates.matrix.T
        r_factor, _ = information.whitened(1 / weighting.deviation)
        return Estimate(
            equations=self.data.equations,
            parameters=parameters,
            covariance=0.5 * (covariance + covariance.T),
            residual_deviation=weighting.deviation,
            effective_counts=weighting.fraction * information.counts,
            base=base_parameters(model.layout, r_factor, base_parameters_of_robot(model)),
            train_relative_error=information.relative_error(parameters),
            prior_spread=weighting.regularization.prior_spread,
            own_prior_spreads=self.data.prior_spreads,
            solution=solution,
            recordings=tuple(samples.name for samples in self.data.recordings),
            information=information,
            delay=self.data.delay,
        )

    def _normalised_covariance(self, solution: Solution) -> Array:
        """``(p, p)`` inverse of the Hessian; parameters that are held have no variance."""
        held = np.isin(self.map_problem.coordinates.layout.names, self.map_problem.constraints.fixed)
        if not held.any():
            return np.asarray(np.linalg.pinv(solution.hessian, hermitian=True))
        covariance, free = np.zeros_like(solution.hessian), np.ix_(~held, ~held)
        covariance[free] = np.linalg.pinv(solution.hessian[free], hermitian=True)
        return covariance


def _evidence_prior_spread(
    R: Array, solution: Solution, layout: ParameterLayout, regularization: Regularization
) -> float:
    """Prior spread of the largest evidence, by the fixed point of [MacKay1992]_.

    The data determines ``nu`` directions of the body parameters; over these the divergence ``D`` from the prior
    has the expectation ``nu * prior_spread^2``. A weak hyperprior around the typical prior spread decides where the
    data determines nothing. Bodies with a prior spread of their own count nowhere.
    """
    bodies = slice(0, layout.inertial_size)
    free = np.isnan(regularization.spreads(len(layout.body_names), of_all=np.nan))
    columns = np.repeat(free, BODY_PARAMETERS)
    curvature = (solution.hessian - R.T @ R)[bodies, bodies][columns]
    covariance = np.linalg.pinv(solution.hessian, hermitian=True)[bodies, bodies][columns]
    determined = np.clip(columns.sum() - np.sum(covariance * curvature), 0.0, columns.sum())
    distance = regularization.distance.value(layout.all_bodies(solution.x)[free])
    variance = (distance + _HYPERPRIOR_COUNT * TYPICAL_PRIOR_SPREAD**2) / (determined + _HYPERPRIOR_COUNT)
    return float(np.clip(np.sqrt(variance), 0.05, 5.0))
