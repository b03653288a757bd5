"""Linear least squares of full rank, with the weights of the joints at their fixed point."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from inertid_ros.config.least_squares import LeastSquaresOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.identification.base_parameters import BaseParameters, base_parameters
from inertid_ros.identification.information.information import Information
from inertid_ros.identification.prior.coordinates import (
    TYPICAL_PRIOR_SPREAD,
    Coordinates,
    prior_coordinates,
    prior_covariance_root,
    scaling_matrix,
)
from inertid_ros.regressors.equations import Equations

from .parameter_spectrum import ParameterSpectrum, parameter_spectrum

_ITERATIONS, _TOLERANCE = 200, 1e-7
_PERFECT = 1e-9  # of the torque: a smaller residual is rounding
_WEAK = 1e-3  # of the strongest joint's torque: a weaker joint counts as this for base parameters
_LEAST_TORQUE = 1e-12  # of the strongest joint's torque: a weaker one counts as this


@dataclass(frozen=True)
class LinearFit:
    """Fit of full rank. Noise is the residual's: where weights are too, every weighted equation has variance one.

    Attributes
    ----------
    information : Information
        What was fitted.
    weights : ndarray, shape (n,)
        Factor on every joint's equations.
    deviation : ndarray, shape (n,)
        Standard deviation of the residual per joint [N m or N].
    fraction : ndarray, shape (n,)
        Independent share of the samples per joint.
    scale : ndarray, shape (n,)
        Of a robust loss per joint [N m or N]; infinite for squares.
    clipped : ndarray, shape (n,)
        Share of equations whose residual the loss clipped.
    gap : float
        Bound of objective minus optimum.
    """

    information: Information
    weights: Array
    deviation: Array
    fraction: Array
    spectrum: ParameterSpectrum
    scale: Array
    clipped: Array
    iterations: int = 1
    gap: float = 0.0

    @property
    def parameters(self) -> Array:
        """``(p,)`` at full rank."""
        return self.spectrum.solution(self.spectrum.count)

    @property
    def noise(self) -> Array:
        """``(n,)`` variance of an independent weighted equation per joint."""
        return self.weights**2 * self.deviation**2 / self.fraction

    @property
    def variances(self) -> Array:
        """``(r,)`` variance along every direction, ascending; where joints are not weighted their noise is pooled
        ([Lee2019]_ eq. 4.5.53; [vanDerGaag2024]_ eq. 33-34)."""
        pooled = float(np.average(self.noise, weights=self.information.counts))
        return np.asarray(pooled / self.spectrum.strengths**2)


def least_deviation(information: Information) -> Array:
    """``(n,)`` residual deviation below which a fit is perfect, so that it is never zero."""
    return _PERFECT * _level(information)


def _level(information: Information) -> Array:
    level = information.rms_measured
    return np.maximum(level, _LEAST_TORQUE * level.max())


@dataclass(frozen=True)
class LinearProblem:
    """Linear least-squares problem: what stays the same while weights, pseudo-values and ranks change.

    Attributes
    ----------
    base : BaseParameters
        Base parameters of the motion, which decide what it excites at all.
    scaling : ndarray, shape (p, p)
        See :func:`~inertid_ros.identification.prior.coordinates.scaling_matrix`.
    """

    equations: Equations
    options: LeastSquaresOptions
    coordinates: Coordinates
    base: BaseParameters
    scaling: Array

    @classmethod
    def of(cls, equations: Equations, information: Information, options: LeastSquaresOptions) -> "LinearProblem":
        """Problem of compressed data."""
        model = equations.model
        coordinates = prior_coordinates(model, information)
        level = information.rms_measured
        if information.noise is not None:
            level = information.deviation(coordinates.physical(coordinates.prior))
        R, _ = information.whitened(1 / np.maximum(level, _WEAK * level.max()))
        base = base_parameters(model.layout, R)
        return cls(equations, options, coordinates, base, scaling_matrix(options.scaling, coordinates))

    @cached_property
    def prior(self) -> Array:
        """``(p,)`` of the URDF, repaired where it is not physically consistent."""
        return self.coordinates.physical(self.coordinates.prior)

    @property
    def centre(self) -> Array:
        """``(p,)`` where the solution stays in directions that are not fitted."""
        return self.prior if self.options.null_space == "prior" else np.zeros(self.coordinates.layout.size)

    def spectrum(self, information: Information, weights: Array) -> ParameterSpectrum:
        """ParameterSpectrum under weights ``(n,)``."""
        return parameter_spectrum(*information.whitened(weights), self.base, self.scaling, self.centre)

    def fit(self, information: Information, weights: Array, fraction: Array) -> LinearFit:
        """Fit with given weights."""
        spectrum = self.spectrum(information, weights)
        deviation = self.deviation(information, weights, spectrum, spectrum.count)
        none = np.zeros(self.equations.count)
        return LinearFit(information, weights, deviation, fraction, spectrum, none + np.inf, none)

    def weighted(self, information: Information, fraction: Array, start: Array | None = None) -> LinearFit:
        """Fit with the weights that the options want, at their fixed point ([vanDerGaag2024]_ eq. 29-32)."""
        weighted, weights = self.options.weighting == "residual", start
        if weights is None:
            weights = 1 / (_level(information) if information.noise is None else information.deviation(self.prior))
        if not weighted:
            weights = np.ones(self.equations.count)
        for iteration in range(1, _ITERATIONS + 1):
            fit = self.fit(information, weights, fraction)
            balanced = np.sqrt(fraction) / fit.deviation
            if not weighted or np.max(np.abs(balanced / weights - 1)) <= _TOLERANCE:
                return replace(fit, iterations=iteration)
            weights = balanced
        raise IdentificationError("least squares: weights do not settle; record more motion or use weighting none")

    def deviation(self, information: Information, weights: Array, spectrum: ParameterSpectrum, rank: int) -> Array:
        """``(n,)`` residual deviation per joint, less the degrees of freedom of its fit ([vanDerGaag2024]_ eq. 30)."""
        roots, parameters = spectrum.roots(rank), spectrum.solution(rank)
        free = []
        for name, channel, weight in zip(self.equations.channels, information.channels, weights, strict=True):
            if channel.count == 0:
                free.append(0.0)
                continue
            taken = weight**2 * float(np.sum((channel.r_factor[:, :-1] @ roots[channel.columns]) ** 2))
            freedom = channel.count - taken
            if freedom < 1e-6 * channel.count:
                raise IdentificationError(
                    f"least squares: '{name}' has {channel.count} samples and as many parameters to fit;"
                    " record more motion"
                )
            free.append(freedom)
        return np.maximum(information.deviation(parameters, np.array(free)), least_deviation(information))

    def covariance(self, fit: LinearFit, rank: int) -> Array:
        """``(p, p)`` mean squared error of a rank: by noise along what is fitted, by the prior along the rest."""
        roots = fit.spectrum.roots(rank)
        normal, noise = np.zeros_like(roots.T), np.zeros((rank, rank))
        for channel, weight, level in zip(fit.information.channels, fit.weights, fit.noise, strict=True):
            equations = weight * channel.r_factor[:, :-1]
            local = equations @ roots[channel.columns]
            normal[:, channel.columns] += local.T @ equations
            noise += level * local.T @ local
        prior_error = np.column_stack(
            [prior_covariance_root(self.coordinates, TYPICAL_PRIOR_SPREAD), self.prior - self.centre]
        )
        prior_error -= roots @ (normal @ prior_error)
        return np.asarray(roots @ noise @ roots.T + prior_error @ prior_error.T)
