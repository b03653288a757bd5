"""Robots of a model together: their distribution, and which of them are outlying."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import add

import numpy as np

from inertid_ros.config.configuration import Configuration
from inertid_ros.core.arrays import Array
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information_file import information_from_bytes
from inertid_ros.identification.population.hierarchy import Likelihoods
from inertid_ros.identification.population.model_distribution import (
    FEWEST_ROBOTS,
    BaseCoordinates,
    ModelDistribution,
)
from inertid_ros.identification.population.outlying_robots import Outlier, changes_of, outlying_robots
from inertid_ros.robot.configured_model import model_options
from inertid_ros.robot.model import load_model

from .jobs.robot_job import RobotResult


@dataclass(frozen=True)
class ModelPopulation:
    """The robots of a model.

    Attributes
    ----------
    model : str
        Its name.
    serials : tuple of str
        Of the robots with results, in order.
    distribution : ModelDistribution or None
        None of fewer than :data:`.FEWEST_ROBOTS` robots.
    within : ndarray or None, shape (r,)
        Standard deviation of base parameters by the data of one robot, median over robots (SI).
    outliers : mapping of str to Outlier
        By serial number.
    """

    model: str
    serials: tuple[str, ...]
    distribution: ModelDistribution | None = None
    within: Array | None = None
    outliers: Mapping[str, Outlier] = field(default_factory=dict)


def model_population(
    name: str, urdf: str, configuration: Configuration, robots: Mapping[str, RobotResult]
) -> ModelPopulation:
    """Distribution of a model's robots, and its outlying ones.

    Parameters
    ----------
    urdf : str
        Content of the URDF of one of the robots, whose bodies are the prior of the mean.
    robots : mapping of str to RobotResult
        By serial number.

    Raises
    ------
    InertidError
        The URDF cannot be used, or information is damaged.
    """
    serials = tuple(sorted(robots))
    if len(serials) < FEWEST_ROBOTS:
        return ModelPopulation(name, serials)
    model = load_model(urdf, model_options(configuration.robot))
    known = [information_from_bytes(robots[serial].information, serial) for serial in serials]
    coordinates = BaseCoordinates.of(model, known[0])
    likelihoods = [
        coordinates.likelihood(each, np.array(robots[serial].summary["deviation"]))
        for each, serial in zip(known, serials, strict=True)
    ]
    every = Likelihoods(*(np.array(each) for each in zip(*likelihoods, strict=True)))
    # Shapes of links by the data of all: those of a URDF may be far off.
    pooled = identify(model, reduce(add, known), configuration.identify)
    changes = changes_of(model.layout, pooled.parameters)
    distribution, outliers = outlying_robots(coordinates, every, changes)
    inverse = np.linalg.inv(coordinates.prior_covariance)
    within = np.median([np.sqrt(np.diagonal(np.linalg.inv(each + inverse))) for each in every.precision], axis=0)
    found = {serials[outlier.robot]: outlier for outlier in outliers}
    return ModelPopulation(name, serials, distribution, coordinates.scale * within, found)
