"""Distribution of the parameters between the robots of a model, and detection of outlying robots.

Every robot is compared with the distribution of the robots that are not outlying. For each possible change, such as a
heavier link or more friction of a joint, the most likely size is estimated; the noise is the scatter between robots
plus the robot's own errors. Student's t distribution tests whether this size differs from zero. All tests of a model
together have one error probability (Holm).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from inertid_ros.core.arrays import MAD_TO_DEVIATION, Array, Indices, Mask, semidefinite_root
from inertid_ros.fleet.mixed_models import Likelihoods, Population, fit_population
from inertid_ros.identification.base_parameters.closed_form import base_parameters_of_robot
from inertid_ros.identification.base_parameters.numeric import BaseParameters
from inertid_ros.identification.information.information import EarlierEquations, Information
from inertid_ros.identification.solvers import coordinates as priors
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

MIN_ROBOTS = 4  # minimum number of robots of a model for a distribution
_MIN_START = 1e-4  # share of the prior's standard deviation: smallest start value of the deviation between robots
OUTLIER_LEVEL = 0.01  # probability of finding an outlier in a model without outlying robots
_MAX_ITERATIONS = 10
_MIN_DIRECTION = 1e-6  # effect of a change, relative to the largest effect; smaller changes are not measurable
_MAX_ROBUST_DEVIATIONS = 5.0  # from the median; farther robots are left out of the first distribution


@dataclass(frozen=True)
class BaseCoordinates:
    """Coordinates of the ``r`` base parameters of a robot model, normalised by prior and prior deviation.

    Attributes
    ----------
    centre, scale : (r,), prior, and its standard deviation under the typical prior spread.
    prior : (r, r), precision of the prior in normalised coordinates.
    """

    base: BaseParameters
    centre: Array
    scale: Array
    prior: Array

    @classmethod
    def from_model(cls, model: RobotModel, information: Information) -> "BaseCoordinates":
        """Return the coordinates of a model; a robot's information gives the natural size of drive parameters."""
        base, coordinates = base_parameters_of_robot(model), priors.prior_coordinates(model, information)
        root = base.projection @ priors.prior_covariance_root(coordinates, priors.TYPICAL_PRIOR_SPREAD)
        scale = np.linalg.norm(root, axis=1)
        centre = base.projection @ coordinates.physical(coordinates.prior)
        root = root / scale[:, None]
        return cls(base, centre, scale, np.asarray(np.linalg.inv(root @ root.T), dtype=float))

    def likelihoods(self, information: Sequence[Information], deviations: Sequence[Array]) -> Likelihoods:
        """Return the likelihoods of robots' data; ``deviations`` holds the errors' deviation ``(c,)`` of each robot."""
        precision, product = [], []
        for robot, deviation in zip(information, deviations, strict=True):
            R, z = robot.whitened(1 / deviation)
            R = R[:, self.base.independent]
            rows, residual = R * self.scale, z - R @ self.centre
            precision.append(rows.T @ rows)
            product.append(rows.T @ residual)
        return Likelihoods(np.array(precision), np.array(product))

    def physical(self, normalised: Array) -> Array:
        """Base parameters ``(r,)`` in SI units."""
        return np.asarray(self.centre + self.scale * normalised)

    def direction(self, change: Array) -> Array:
        """Return the change ``(r,)`` of normalised base parameters that a change ``(p,)`` of the parameters causes."""
        return np.asarray(self.base.projection @ change / self.scale)


@dataclass(frozen=True)
class ModelDistribution:
    """Distribution of base parameters between ``robots`` of a model (indices), in normalised coordinates.

    ``likelihoods`` has one entry for every robot of the model.
    """

    coordinates: BaseCoordinates
    population: Population
    likelihoods: Likelihoods
    robots: Indices

    @classmethod
    def from_likelihoods(cls, coordinates: BaseCoordinates, likelihoods: Likelihoods,
            robots: Indices) -> "ModelDistribution":
        """Estimate the distribution from the likelihoods of the robots with the given indices."""
        chosen = Likelihoods(likelihoods.precision[robots], likelihoods.product[robots])
        estimates, _ = chosen.estimates(coordinates.prior)
        start = np.maximum(estimates.std(axis=0), _MIN_START)  # not below the deviation between robots
        return cls(coordinates, fit_population(chosen, coordinates.prior, start), likelihoods, robots)

    @property
    def names(self) -> tuple[str, ...]:
        return self.coordinates.base.names

    @property
    def mean(self) -> Array:
        """Base parameters ``(r,)`` of the mean robot (SI)."""
        return self.coordinates.physical(self.population.mean)

    @property
    def covariance(self) -> Array:
        """Covariance ``(r, r)`` between robots (SI)."""
        return np.asarray(self.population.covariance * np.outer(self.coordinates.scale, self.coordinates.scale))

    @property
    def mean_deviation(self) -> Array:
        """Standard deviation ``(r,)`` of the mean (SI)."""
        return np.asarray(self.coordinates.scale * np.sqrt(np.diagonal(self.population.mean_covariance)))

    @property
    def within_deviation(self) -> Array:
        """Standard deviation ``(r,)`` of a single robot by its own data, as the median over all robots (SI)."""
        _, covariances = self.likelihoods.estimates(self.coordinates.prior)
        deviations = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
        return np.asarray(self.coordinates.scale * np.median(deviations, axis=0))

    @cached_property
    def _marginal(self) -> tuple[Array, Array]:
        return self.likelihoods.marginal(self.population.covariance)

    def prior_of(self, robot: int) -> EarlierEquations:
        """Prior of a robot as whitened equations: mean of the other robots, with its error and the scatter between all.

        The mean leaves the robot out, because a fit with this prior adds the data of the robot.
        """
        others = self.robots[self.robots != robot]
        precision, product = (values[others].sum(axis=0) for values in self._marginal)
        mean_covariance = np.linalg.inv(self.coordinates.prior + precision)
        projection = self.coordinates.base.projection / self.coordinates.scale[:, None]
        root = semidefinite_root(np.asarray(np.linalg.inv(self.population.covariance + mean_covariance), dtype=float))
        about = self.coordinates.centre / self.coordinates.scale + mean_covariance @ product
        return EarlierEquations(root @ projection, root @ about)


def benjamini_hochberg(p_values: Array, level: float) -> Mask:
    """Mask ``(m,)`` of rejected hypotheses; the expected share of false rejections is at most ``level``
    [Benjamini1995]_."""
    ordered, m = np.sort(p_values), len(p_values)
    below = ordered[ordered <= level * np.arange(1, m + 1) / max(m, 1)]
    return np.asarray(p_values <= below.max(initial=-np.inf))


def holm(p_values: Array, level: float) -> Mask:
    """Mask ``(m,)`` of rejected hypotheses; the probability of any false rejection is at most ``level`` [Holm1979]_."""
    ordered = np.sort(p_values)
    above = ordered[ordered > level / np.arange(len(p_values), 0, -1)]
    return np.asarray(p_values < above.min(initial=np.inf))


@dataclass(frozen=True)
class Outlier:
    """An outlying robot, and the change of one parameter that explains it best [kg, m or SI].

    ``robot`` is an index; ``parameter`` is a name such as ``arm.m`` or ``joint2.coulomb``. The p-value is corrected for
    the number of tried changes.
    """

    robot: int
    parameter: str
    size: float
    deviation: float
    p_value: float


def changes_of(layout: ParameterLayout, parameters: Array) -> dict[str, Array]:
    """Return the unit changes ``(p,)`` to test, for a robot with ``parameters (p,)``, by the name of the parameter.

    A change affects the mass of a link at constant shape, the centre of mass of a link, or a drive parameter.
    """
    changes: dict[str, Array] = {}
    for index, (link, body) in enumerate(zip(layout.links, layout.bodies(parameters), strict=True)):
        mass = max(float(body[0]), 1e-9)
        shifts = mass * np.eye(len(body))[1:4]
        for name, values in zip(("m", "com_x", "com_y", "com_z"), (body / mass, *shifts), strict=True):
            changes[f"{link}.{name}"] = np.zeros(layout.size)
            changes[f"{link}.{name}"][layout.body(index)] = values
    unit = np.eye(layout.size)
    return changes | {layout.names[column]: unit[column] for column in range(layout.inertial_size, layout.size)}


def outlying_robots(coordinates: BaseCoordinates, likelihoods: Likelihoods, changes: Mapping[str, Array],
        level: float = OUTLIER_LEVEL) -> tuple[ModelDistribution, tuple[Outlier, ...]]:
    """Return the distribution of the robots that are not outlying, and the outliers.

    Outliers would widen the distribution and hide themselves. The first distribution therefore leaves out robots far
    from the medians; each further distribution leaves out the last outliers, until the outliers stay the same or fewer
    than :data:`MIN_ROBOTS` robots would remain.
    """
    n = len(likelihoods.product)
    directions = np.array([coordinates.direction(change) for change in changes.values()])
    size = np.linalg.norm(directions, axis=1)
    shown = np.flatnonzero(size > _MIN_DIRECTION * size.max())
    directions, names = directions[shown], np.array(list(changes))[shown].tolist()
    outliers: tuple[Outlier, ...] = ()
    left_out = _far_by_medians(coordinates, likelihoods)
    for _ in range(_MAX_ITERATIONS):
        members = np.setdiff1d(np.arange(n), sorted(left_out))
        distribution = ModelDistribution.from_likelihoods(coordinates, likelihoods, members)
        sizes, deviations = _sizes(distribution, likelihoods, directions)
        freedom = len(members) - 1
        p_values = 2 * scipy.stats.t.sf(np.abs(sizes) / deviations, freedom) * len(directions)
        best = np.argmin(p_values, axis=1)
        least = np.minimum(p_values[np.arange(n), best], 1.0)
        outliers = tuple(Outlier(int(i), names[best[i]], float(sizes[i, best[i]]), float(deviations[i, best[i]]),
            least[i]) for i in np.flatnonzero(holm(least, level)))
        named = {outlier.robot for outlier in outliers}
        if named == left_out or n - len(named) < MIN_ROBOTS:
            break
        left_out = named
    return distribution, outliers


def _sizes(distribution: ModelDistribution, likelihoods: Likelihoods, directions: Array) -> tuple[Array, Array]:
    """Return the most likely size ``(n, m)`` of each change of each robot, and its standard deviation."""
    population = distribution.population
    marginal, product = likelihoods.marginal(population.predictive)
    score = product - marginal @ population.mean
    information = np.einsum("mi,nij,mj->nm", directions, marginal, directions, optimize=True)
    information = np.maximum(information, 1e-12)
    # The inverse of a covariance of r parameters from ``count`` robots is too large by the square of this factor.
    r, count = len(population.mean), population.count
    wider = np.sqrt((count + r + 1.0) / count)
    return score @ directions.T / information, wider / np.sqrt(information)


def _far_by_medians(coordinates: BaseCoordinates, likelihoods: Likelihoods) -> set[int]:
    """Return robots (at most half) with a base parameter far from the median, each by its own data and the prior."""
    estimates, within = likelihoods.estimates(coordinates.prior)
    away = np.abs(estimates - np.median(estimates, axis=0))
    variances = np.diagonal(within, axis1=1, axis2=2)
    robust = np.hypot(MAD_TO_DEVIATION * np.median(away, axis=0), np.sqrt(variances))
    far = np.max(away / robust, axis=1)
    order = np.argsort(-far)[: max((len(estimates) - MIN_ROBOTS) // 2, 0)]
    return {int(robot) for robot in order if far[robot] > _MAX_ROBUST_DEVIATIONS}

