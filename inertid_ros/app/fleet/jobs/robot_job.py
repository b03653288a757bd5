"""What a worker does for one robot: the joint information of its bags, and its drift over time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from inertid_ros.config.configuration import Configuration
from inertid_ros.identification.assessment.estimate import NORMAL_95
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information_file import information_bytes, information_from_bytes
from inertid_ros.identification.population.bag_effects import BagEffects, bag_effects
from inertid_ros.identification.population.bag_information import joint_information
from inertid_ros.identification.population.drift import FEWEST, Drift, drift, scatter_about_mean
from inertid_ros.identification.population.random_effects import Series
from inertid_ros.identification.prior.constraints import configured_constraints
from inertid_ros.robot.configured_model import model_options
from inertid_ros.robot.model import load_model

from .bag_job import bag_information
from .fleet_configuration import changing_columns


@dataclass(frozen=True)
class StoredBag:
    """A bag of a robot, as it was stored.

    Attributes
    ----------
    name : str
    day : float
        Date [days].
    summary : mapping
    information : bytes
        Content of its information file.
    """

    name: str
    day: float
    summary: Mapping[str, Any]
    information: bytes


@dataclass(frozen=True)
class RobotJob:
    """A robot whose bags are put together.

    Attributes
    ----------
    serial : str
    urdf : str
        Content.
    configuration : Configuration
        Of the fleet.
    bags : tuple of StoredBag
        In order of their dates, those that may be used.
    """

    serial: str
    urdf: str
    configuration: Configuration
    bags: tuple[StoredBag, ...]


@dataclass(frozen=True)
class RobotResult:
    """What the bags of a robot tell.

    Attributes
    ----------
    summary : dict
        Residual deviation per channel, scatter of the changing terms, and drift of every parameter: plain data.
    information : bytes
        Joint information of the bags.
    """

    summary: dict[str, Any]
    information: bytes


def robot_job(job: RobotJob) -> RobotResult:
    """Put the bags of a robot together.

    Bodies are shared by all bags, changing terms are not: how much these scatter is found around a first fit that
    shares them.

    Raises
    ------
    InertidError
        The bags are of different robots, or there is no solution.
    """
    configuration = job.configuration
    model = load_model(job.urdf, model_options(configuration.robot))
    bags = [
        bag_information(bag.name, bag.day, dict(bag.summary), information_from_bytes(bag.information, bag.name))
        for bag in job.bags
    ]
    changing = np.array(changing_columns(bags[0].information.layout), dtype=int)
    constraints = configured_constraints(model, configuration.constraints)

    def fitted(scatter: np.ndarray) -> Any:
        return identify(model, joint_information(bags, changing, scatter), configuration.identify, constraints)

    scatter = np.zeros(len(changing))
    estimate = fitted(scatter)
    effects: BagEffects | None = None
    if len(bags) > 1:
        effects = bag_effects(bags, estimate, changing)
        found = {series.name: scatter_about_mean(series) for series in effects.series()}
        scatter = np.array([found.get(estimate.layout.names[column], 0.0) for column in changing])
        estimate = fitted(scatter)
    drifts = [_content(series) for series in effects.series()] if effects is not None else []
    summary = {
        "deviation": estimate.residual_deviation.tolist(),
        "scatter": {estimate.layout.names[c]: float(s) for c, s in zip(changing, scatter, strict=True)},
        "drift": drifts,
    }
    return RobotResult(summary, information_bytes(joint_information(bags, changing, scatter)))


def _content(series: Series) -> dict[str, Any]:
    """A series with its trend, where there are enough dates, as plain data."""
    half = NORMAL_95 * series.deviation
    content: dict[str, Any] = {
        "parameter": series.name,
        "days": series.days.tolist(),
        "values": series.values.tolist(),
        "low": (series.values - half).tolist(),
        "high": (series.values + half).tolist(),
        "trend": None,
        "changes": [],
    }
    if len(series.days) < FEWEST or series.days[-1] <= series.days[0]:
        return content
    return content | _trend(drift(series))


def _trend(found: Drift) -> dict[str, Any]:
    low, high = found.trend.interval
    return {
        "trend": found.trend.value,
        "trend_low": low,
        "trend_high": high,
        "p_value": found.trend.p_value,
        "level": found.level.value,
        "scatter": found.scatter,
        "changes": [
            {
                "first_day": change.first_day,
                "last_day": change.last_day,
                "step": change.step.value,
                "step_low": change.step.interval[0],
                "step_high": change.step.interval[1],
                "p_value": change.p_value,
            }
            for change in found.changes
        ],
    }
