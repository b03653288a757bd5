"""Linear least squares of full rank with iterated weights, and the spectrum of parameter directions."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from inertid_ros.config.identification import LeastSquaresOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.identification.base_parameters.numeric import BaseParameters, base_parameters
from inertid_ros.identification.information.information import ROUNDING_SHARE, Information
from inertid_ros.identification.solvers import coordinates as priors
from inertid_ros.regressors.equations import Equations

_MAX_WEIGHT_ITERATIONS, _REWEIGHTED_TOLERANCE = 200, 1e-7
_WEAK_TORQUE_SHARE = 1e-3  # of the strongest joint's torque; for base parameters, weaker joints count as this strong
_TINY_TORQUE_SHARE = 1e-12  # of the strongest joint's torque; weaker torques are raised to it


@dataclass(frozen=True)
class ParameterSpectrum:
    """Singular value decomposition of equations ``R x = z`` around a centre, in scaled parameters.

    The method is [vanDerGaag2024]_ eq. 15-23. With base parameters ``x_B = B x`` and the metric ``G`` of the scaling,
    let ``H0 = (B G^-1 B^T)^-1`` be the pushforward of ``G`` ([Lee2019]_ eq. 4.3.35). Then ``B @ directions`` are the
    ``v_i`` of [Lee2019]_ eq. 4.5.53, and ``1 / strengths**2`` are the ``lambda_i``, the eigenvalues of the covariance
    normalised by ``H0``.

    Attributes
    ----------
    directions : (p, r), orthonormal under the scaling, and orthogonal to all directions that motion cannot excite
    strengths : (r,), singular values, descending: a unit step along a direction changes ``R x`` by this length
    left : (k, r), left singular vectors
    projections : (r,), ``left.T @ (z - R centre)``
    """

    centre: Array
    directions: Array
    strengths: Array
    left: Array
    projections: Array

    @property
    def count(self) -> int:
        return len(self.strengths)

    @cached_property
    def solutions(self) -> Array:
        """Solution of each rank from 0 to r, ``(r + 1, p)``, see [vanDerGaag2024]_ eq. 20-23 and [Lee2019]_ eq. 4.5.60.

        A solution minimises the squares along the first directions, and is the centre along all other directions.
        """
        excited = self.strengths > np.finfo(float).eps * self.strengths[:1].sum() * 1e-6
        steps = np.divide(self.projections, self.strengths, out=np.zeros(self.count), where=excited)
        return np.vstack([self.centre, self.centre + np.cumsum(steps[:, None] * self.directions.T, axis=0)])

    def roots(self, rank: int) -> Array:
        """Square root ``(p, rank)`` of the solution's covariance ``roots @ roots.T`` under noise of unit variance."""
        return self.directions[:, :rank] / self.strengths[:rank]


def _svd(matrix: Array) -> tuple[Array, Array, Array]:
    """Compute ``U, s, V`` of a tall matrix by Jacobi rotations.

    Jacobi rotations keep weak directions accurate relative to their own size: grams next to tons, micrometres next to
    metres.
    """
    strengths, left, right, work, _, info = lapack.dgejsv(matrix, joba=0, jobu=0, jobv=0, jobr=0, jobt=0, jobp=0)
    if info != 0:  # no convergence, rarely if ever
        left, strengths, transposed = np.linalg.svd(matrix, full_matrices=False)
        return left, strengths, transposed.T
    return left[:, : len(strengths)], strengths * (work[0] / work[1]), right


@dataclass(frozen=True)
class LinearFit:
    """Fit of full rank. The residual sets the noise level; under residual weighting, equations have unit variance.

    Attributes
    ----------
    deviation : (n,), standard deviation of the residual per joint [N m or N]
    scale : (n,), scale of a robust loss per joint [N m or N]; infinite for a squared loss
    clipped : (n,), share of equations whose residual the loss clipped
    gap : bound of objective minus optimum
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
        return self.spectrum.solutions[-1]

    @property
    def noise(self) -> Array:
        """Noise variance ``(n,)`` of each joint's weighted equations, increased by the correlation of samples."""
        return self.weights**2 * self.deviation**2 / self.fraction

    @property
    def variances(self) -> Array:
        """Variance ``(r,)`` of the estimate along each direction, ascending, from the pooled noise of all joints.

        See [Lee2019]_ eq. 4.5.53 and [vanDerGaag2024]_ eq. 33-34.
        """
        pooled = float(np.average(self.noise, weights=self.information.counts))
        return np.asarray(pooled / self.spectrum.strengths**2)


def least_deviation(information: Information) -> Array:
    """Lower bound ``(n,)`` of residual deviations, above zero; a smaller residual is rounding of a perfect fit."""
    return ROUNDING_SHARE * _level(information)


def _level(information: Information) -> Array:
    level = information.rms_measured
    return np.maximum(level, _TINY_TORQUE_SHARE * level.max())


@dataclass(frozen=True)
class LinearProblem:
    """Parts of a linear least-squares problem that stay fixed while weights, pseudo-values and ranks change.

    Attributes
    ----------
    base : base parameters that the motion excites
    """

    equations: Equations
    options: LeastSquaresOptions
    coordinates: priors.Coordinates
    base: BaseParameters
    scaling: Array

    @classmethod
    def from_information(
            cls, equations: Equations, information: Information, options: LeastSquaresOptions) -> "LinearProblem":
        model = equations.model
        coordinates = priors.prior_coordinates(model, information)
        level = information.rms_measured
        if information.noise is not None:
            level = information.deviation(coordinates.physical(coordinates.prior))
        R, _ = information.whitened(1 / np.maximum(level, _WEAK_TORQUE_SHARE * level.max()))
        base = base_parameters(model.layout, R)
        return cls(equations, options, coordinates, base, priors.scaling_matrix(options.scaling, coordinates))

    @cached_property
    def prior(self) -> Array:
        """Parameters ``(p,)`` of the URDF, repaired if it is not physically consistent."""
        return self.coordinates.physical(self.coordinates.prior)

    @property
    def centre(self) -> Array:
        """Value ``(p,)`` of the solution in directions that are not fitted."""
        return self.prior if self.options.null_space == "prior" else np.zeros(self.coordinates.layout.size)

    def spectrum(self, information: Information, weights: Array) -> ParameterSpectrum:
        """Spectrum of weighted equations; for all weights, the rank is the number of base parameters."""
        if self.base.count == 0:
            raise IdentificationError("least squares: the motion excites no parameter; check that the robot moved")
        R, z = information.whitened(weights)
        shown, _ = np.linalg.qr((self.base.projection @ self.scaling).T)
        span = self.scaling @ shown
        left, strengths, right = _svd(R @ span)
        return ParameterSpectrum(self.centre, span @ right, strengths, left, left.T @ (z - R @ self.centre))

    def fit(self, information: Information, weights: Array, fraction: Array) -> LinearFit:
        spectrum = self.spectrum(information, weights)
        deviation = self.deviation(information, weights, spectrum, spectrum.count)
        none = np.zeros(self.equations.count)
        return LinearFit(information, weights, deviation, fraction, spectrum, none + np.inf, none)

    def weighted(self, information: Information, fraction: Array, start: Array | None = None) -> LinearFit:
        """Fit with stated weights, or iterate residual weights to a fixed point ([vanDerGaag2024]_ eq. 28, 29-32)."""
        stated = self.options.sensor_deviation
        weighted, weights = self.options.weighting == "residual" and not stated, start
        if weights is None:
            weights = 1 / (_level(information) if information.noise is None else information.deviation(self.prior))
        if stated:
            weights = 1 / self._stated_deviation()
        elif not weighted:
            weights = np.ones(self.equations.count)
        for iteration in range(1, _MAX_WEIGHT_ITERATIONS + 1):
            fit = self.fit(information, weights, fraction)
            balanced = np.sqrt(fraction) / fit.deviation
            if not weighted or np.max(np.abs(balanced / weights - 1)) <= _REWEIGHTED_TOLERANCE:
                return replace(fit, iterations=iteration)
            weights = balanced
        raise IdentificationError("least squares: weights do not converge; record more motion or use weighting none")

    def _stated_deviation(self) -> Array:
        stated, channels = self.options.sensor_deviation, self.equations.channels
        if wrong := sorted(set(stated) ^ set(channels)):
            problem = "is missing" if wrong[0] in channels else "is not a channel"
            raise IdentificationError(
                f"identify.sensor_deviation: {wrong[0]} {problem}; give one value for each of {', '.join(channels)}")
        return np.array([stated[channel] for channel in channels])

    def deviation(self, information: Information, weights: Array, spectrum: ParameterSpectrum, rank: int) -> Array:
        """Residual deviation ``(n,)`` per joint for the remaining degrees of freedom ([vanDerGaag2024]_ eq. 30)."""
        roots, parameters = spectrum.roots(rank), spectrum.solutions[rank]
        free = []
        for name, channel, weight in zip(self.equations.channels, information.channels, weights, strict=True):
            taken = weight**2 * float(np.sum((channel.r_factor[:, :-1] @ roots[channel.columns]) ** 2))
            freedom = channel.count - taken
            if freedom < 1e-6 * channel.count:
                raise IdentificationError(
                    f"least squares: '{name}' has too few samples ({channel.count}) to fit its parameters; record more"
                    " motion")
            free.append(freedom)
        return np.maximum(information.deviation(parameters, np.array(free)), least_deviation(information))

    def covariance(self, fit: LinearFit, rank: int) -> Array:
        """Mean squared error ``(p, p)`` of a rank: noise along fitted directions, prior error along all others."""
        roots = fit.spectrum.roots(rank)
        normal, noise = np.zeros_like(roots.T), np.zeros((rank, rank))
        for channel, weight, level in zip(fit.information.channels, fit.weights, fit.noise, strict=True):
            equations = weight * channel.r_factor[:, :-1]
            local = equations @ roots[channel.columns]
            normal[:, channel.columns] += local.T @ equations
            noise += level * local.T @ local
        prior_error = np.column_stack(
            [priors.prior_covariance_root(self.coordinates, priors.TYPICAL_PRIOR_SPREAD), self.prior - self.centre])
        prior_error -= roots @ (normal @ prior_error)
        return np.asarray(roots @ noise @ roots.T + prior_error @ prior_error.T)
