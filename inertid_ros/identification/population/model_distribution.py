"""Distribution of the parameters of a robot model's robots, in base parameters, and as the prior of a robot."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.qr import semidefinite_root
from inertid_ros.identification.base_parameters import BaseParameters, base_parameters_of_robot
from inertid_ros.identification.information.earlier_equations import EarlierEquations
from inertid_ros.identification.information.information import Information
from inertid_ros.identification.prior.coordinates import (
    TYPICAL_PRIOR_SPREAD,
    prior_coordinates,
    prior_covariance_root,
)
from inertid_ros.robot.model import RobotModel

from .hierarchy import Likelihoods, MeanPrior, Population, fit_population

FEWEST_ROBOTS = 4  # of a model for which a distribution is found
_START = 1e-4  # of the prior's standard deviation: where the search for that between robots begins at least


@dataclass(frozen=True)
class BaseCoordinates:
    """Base parameters of a robot model, each in units of its prior's standard deviation about its prior.

    Attributes
    ----------
    base : BaseParameters
        Of ``r`` base parameters, drives included.
    centre, scale : ndarray, shape (r,)
        Prior, and its standard deviation under the typical prior spread.
    prior_covariance : ndarray, shape (r, r)
        Of the prior, in these units.
    """

    base: BaseParameters
    centre: Array
    scale: Array
    prior_covariance: Array

    @classmethod
    def of(cls, model: RobotModel, information: Information) -> "BaseCoordinates":
        """Of a model; information of its robots shows the natural size of drive parameters."""
        base, coordinates = base_parameters_of_robot(model), prior_coordinates(model, information)
        root = base.projection @ prior_covariance_root(coordinates, TYPICAL_PRIOR_SPREAD)
        scale = np.linalg.norm(root, axis=1)
        centre = base.projection @ coordinates.physical(coordinates.prior)
        root = root / scale[:, None]
        return cls(base, centre, scale, root @ root.T)

    def likelihood(self, information: Information, deviation: Array) -> tuple[Array, Array]:
        """Precision ``(r, r)`` and product ``(r,)`` of a robot's data with errors of deviation ``(c,)``."""
        R, z = information.whitened(1 / deviation)
        R = R[:, self.base.independent]
        rows, residual = R * self.scale, z - R @ self.centre
        return rows.T @ rows, rows.T @ residual

    def physical(self, normalised: Array) -> Array:
        """Base parameters ``(r,)`` in SI units."""
        return np.asarray(self.centre + self.scale * normalised)

    def direction(self, change: Array) -> Array:
        """``(r,)`` change of normalised base parameters by a change ``(p,)`` of the parameters."""
        return np.asarray(self.base.projection @ change / self.scale)


@dataclass(frozen=True)
class ModelDistribution:
    """Distribution of base parameters between the robots of a model.

    Attributes
    ----------
    coordinates : BaseCoordinates
    population : Population
        In normalised base parameters.
    """

    coordinates: BaseCoordinates
    population: Population

    @classmethod
    def of(
        cls, coordinates: BaseCoordinates, likelihoods: Likelihoods, robots: Sequence[int] | np.ndarray
    ) -> "ModelDistribution":
        """Distribution between some robots, by restricted maximum likelihood."""
        prior = MeanPrior(
            np.zeros(len(coordinates.scale)), np.asarray(np.linalg.inv(coordinates.prior_covariance), dtype=float)
        )
        chosen = likelihoods.of(np.asarray(robots, dtype=int))
        within = np.linalg.inv(chosen.precision + prior.precision)
        estimates = np.einsum("nij,nj->ni", within, chosen.product)
        start = np.maximum(estimates.std(axis=0), _START)  # of estimates: not below that of the robots
        return cls(coordinates, fit_population(chosen, prior, start))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the base parameters."""
        return self.coordinates.base.names

    @property
    def mean(self) -> Array:
        """``(r,)`` base parameters of the mean robot (SI)."""
        return self.coordinates.physical(self.population.mean)

    @property
    def covariance(self) -> Array:
        """``(r, r)`` between robots (SI)."""
        return np.asarray(self.population.covariance * np.outer(self.coordinates.scale, self.coordinates.scale))

    @property
    def mean_deviation(self) -> Array:
        """``(r,)`` standard deviation of the mean (SI)."""
        return np.asarray(self.coordinates.scale * np.sqrt(np.diagonal(self.population.mean_covariance)))

    @cached_property
    def prior_of_robot(self) -> EarlierEquations:
        """The distribution as whitened rows that the fit of a robot starts from.

        About the mean, with the scatter between robots and the error of the mean.
        """
        projection = self.coordinates.base.projection / self.coordinates.scale[:, None]
        root = semidefinite_root(np.asarray(np.linalg.inv(self.population.predictive), dtype=float))
        about = self.coordinates.centre / self.coordinates.scale + self.population.mean
        return EarlierEquations(root @ projection, root @ about)
