"""Least squares of reported efforts by parameters and gains of drives at once ([Gautier2014]_)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.estimate import NORMAL_95
from inertid_ros.identification.assessment.truncated_normal import COVERAGE
from inertid_ros.identification.information.information import Information
from inertid_ros.identification.prior.coordinates import TYPICAL_PRIOR_SPREAD, prior_coordinates, prior_covariance_root
from inertid_ros.regressors.equations import Equations

TYPICAL_GAIN_ERROR = 0.3
"""Of the logarithms of gains beside one another, as data sheets and drivers give them: what no load shows stays near
them, but for the factor of all joints. That is free, as efforts in ampere or per mille know nothing of torque."""
_UNKNOWN_FACTOR = 7.0  # standard deviation of its logarithm: three orders of magnitude
_FLAT = 1e3  # times the typical deviation of bodies, friction and rotors: no prior of them may set the scale
_ITERATIONS, _TOLERANCE = 100, 1e-6
_LONGEST_STEP = 0.7  # of the logarithm of a gain: no more than half or double of it
_FEWEST_BLOCKS = 5  # for the jackknife


@dataclass(frozen=True)
class GainFit:
    """Least squares of the reported efforts.

    Attributes
    ----------
    blocks : list of (ndarray, Information)
        Parameters ``(p,)`` of the load of each block of samples, and its information with efforts as reported.
    root : ndarray, shape (p, p)
        Of the covariance of the parameters, all but flat.
    parameters : ndarray, shape (p,)
        x.
    inverse : ndarray, shape (n,)
        1 / g.
    """

    equations: Equations
    blocks: list[tuple[Array, Information]]
    root: Array
    parameters: Array
    inverse: Array

    @classmethod
    def of(cls, equations: Equations, blocks: Sequence[tuple[Array, Information]]) -> "GainFit":
        """The fit of blocks of samples, each with its load, started at the gains as given."""
        model = equations.model
        padded = []
        for load, information in blocks:
            parameters = np.zeros(model.layout.size)
            parameters[: load.size] = load.ravel()
            padded.append((parameters, information))
        coordinates = prior_coordinates(model, _sum([information for _, information in blocks]))
        root = _FLAT * prior_covariance_root(coordinates, TYPICAL_PRIOR_SPREAD)
        return cls(equations, padded, root, model.prior, np.ones(model.joints)).converged()

    def converged(self) -> "GainFit":
        """The same at its least squares.

        Raises
        ------
        IdentificationError
            There is none.
        """
        fit, root = replace(self, blocks=self.merged()), self.root
        weights = fit.weights(1.0)
        for _ in range(_ITERATIONS):
            J, r = fit.system(weights)
            step = np.linalg.lstsq(J, -r)[0]
            size = len(root)
            inverse = fit.inverse * np.exp(np.clip(step[size:], -_LONGEST_STEP, _LONGEST_STEP))
            change = np.abs(np.log(inverse / fit.inverse)).max()
            fit = replace(fit, parameters=fit.parameters + root @ step[:size], inverse=inverse)
            weights = fit.weights(1.0)
            if change < _TOLERANCE:
                return replace(fit, blocks=self.blocks)
        raise IdentificationError(
            "identify.drive_gains: found no gains that explain the recordings; check the loads and the efforts"
        )

    def scatter(self) -> Array:
        """``(n,)`` relative standard deviation of the gains by the jackknife over blocks.

        Errors of the model count in it that residuals as independent noise would hide. Blocks are few, and some tell
        more than others: the deviation is that of a normal distribution whose interval of 95 % is as wide as that of
        Student's t distribution with the degrees of freedom of their scatter ([Cameron2015]_ sec. VI).
        """
        count = len(self.blocks)
        if count < _FEWEST_BLOCKS:
            return np.zeros_like(self.inverse)
        without = [
            replace(self, blocks=[*self.blocks[:index], *self.blocks[index + 1 :]]).converged().inverse
            for index in range(count)
        ]
        squares = (np.log(without) - np.log(without).mean(axis=0)) ** 2
        freedom = 3 * squares.sum(axis=0) ** 2 / np.maximum(np.sum(squares**2, axis=0), 1e-300)
        wider = scipy.special.stdtrit(np.clip(freedom, 1.0, count - 1), 0.5 + 0.5 * COVERAGE) / NORMAL_95
        return np.asarray(wider * np.sqrt((count - 1) / count * squares.sum(axis=0)))

    def merged(self) -> list[tuple[Array, Information]]:
        """One block of all samples with the same load."""
        loads = {load.tobytes(): load for load, _ in self.blocks}
        return [
            (load, _sum([information for own, information in self.blocks if own.tobytes() == key]))
            for key, load in loads.items()
        ]

    def deviation(self) -> Array:
        """``(n,)`` standard deviation of the residual of the reported efforts."""
        squares = sum(np.array([np.sum(r**2) for _, r in self.channels(block)]) for block in self.blocks)
        counts = np.maximum(sum(information.counts for _, information in self.blocks), 1)
        return np.asarray(np.sqrt(squares / counts))

    def weights(self, fraction: Array | float) -> Array:
        """``(n,)`` of the residuals, by the independent share ``(n,)`` of samples."""
        return np.asarray(np.sqrt(fraction) / np.maximum(self.deviation(), 1e-9))

    def system(self, weights: Array) -> tuple[Array, Array]:
        """Jacobian by the parameters, in units of the root, and by ``-log g``; weighted residuals, prior included."""
        size, joints = len(self.root), len(self.inverse)
        rows, residuals = [], []
        for block in self.merged():
            for joint, (jacobian, residual) in enumerate(self.channels(block)):
                row = np.zeros((len(residual), size + joints))
                row[:, :size] = self.inverse[joint] * jacobian @ self.root
                row[:, size + joint] = self.inverse[joint] * jacobian @ (self.parameters + block[0])
                rows.append(weights[joint] * row)
                residuals.append(weights[joint] * residual)
        common = np.full((joints, joints), 1 / joints)
        of_gains = (np.eye(joints) - common) / TYPICAL_GAIN_ERROR + common / _UNKNOWN_FACTOR
        prior = np.eye(size + joints)
        prior[size:, size:] = of_gains
        away = np.linalg.solve(self.root, self.parameters - self.equations.model.prior)
        residuals += [away, of_gains @ np.log(self.inverse)]
        return np.vstack([*rows, prior]), np.concatenate(residuals)

    def channels(self, block: tuple[Array, Information]) -> list[tuple[Array, Array]]:
        """Columns ``(k, p)`` of the layout and residuals ``(k,)`` of every joint."""
        load, information = block
        found = []
        for channel, inverse in zip(information.channels, self.inverse, strict=True):
            columns = np.zeros((len(channel.r_factor), len(self.root)))
            columns[:, channel.columns] = channel.r_factor[:, :-1]
            found.append((columns, inverse * columns @ (self.parameters + load) - channel.r_factor[:, -1]))
        return found

    def residuals(self, reported: Sequence[Samples], loads: Sequence[Array]) -> list[Array]:
        """``(N, n)`` residuals of every recording."""
        residuals = []
        for samples, load in zip(reported, loads, strict=True):
            parameters = self.parameters.copy()
            parameters[: load.size] += load.ravel()
            residuals.append(samples.tau - self.inverse * self.equations.predict(parameters, samples))
        return residuals

    def log_covariance(self, fraction: Array) -> Array:
        """``(n, n)`` covariance of the logarithms of the gains, by the independent share ``(n,)`` of samples."""
        J, _ = self.system(self.weights(fraction))
        size = len(self.root)
        return np.asarray(np.linalg.inv(J.T @ J)[size:, size:], dtype=float)


def _sum(parts: Sequence[Information]) -> Information:
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    return whole
