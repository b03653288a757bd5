"""What a worker does for the result of one robot: the fit that starts from the distribution of its model."""

from dataclasses import dataclass, replace
from typing import Any

import attrs
import numpy as np

from inertid_ros.config.configuration import Configuration
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.gate import GateDecision
from inertid_ros.identification.assessment.plausibility import plausibility
from inertid_ros.identification.assessment.solution_checks import check_solution
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.earlier_equations import EarlierEquations
from inertid_ros.identification.information.information_file import information_from_bytes
from inertid_ros.identification.prior.constraints import configured_constraints
from inertid_ros.identification.prior.coordinates import TYPICAL_PRIOR_SPREAD
from inertid_ros.robot.configured_model import model_options
from inertid_ros.robot.model import load_model


@dataclass(frozen=True)
class EstimateJob:
    """A robot to estimate.

    Attributes
    ----------
    urdf : str
        Content.
    configuration : Configuration
        Of the fleet.
    information : bytes
        Joint information of the robot's bags.
    prior : EarlierEquations or None
        Distribution of the robot's model; None starts from the URDF alone.
    """

    urdf: str
    configuration: Configuration
    information: bytes
    prior: EarlierEquations | None


@dataclass(frozen=True)
class ParameterEstimates:
    """Parameters of a robot.

    Attributes
    ----------
    names : tuple of str
        Of the parameters.
    values, deviations, urdf : ndarray, shape (p,)
        Estimates, their standard deviations, and what the URDF says.
    intervals : ndarray, shape (p, 2)
        Of 95 %.
    decision : dict
        Verdict with its reasons, as in ``report.json``.
    """

    names: tuple[str, ...]
    values: np.ndarray
    deviations: np.ndarray
    urdf: np.ndarray
    intervals: np.ndarray
    decision: dict[str, Any]


def estimate_job(job: EstimateJob) -> ParameterEstimates:
    """Physically consistent parameters of a robot from all its bags and the distribution of its model.

    Raises
    ------
    InertidError
        There is no solution.
    """
    configuration = job.configuration
    model = load_model(job.urdf, model_options(configuration.robot))
    information = information_from_bytes(job.information, model.name)
    options = configuration.identify
    if job.prior is not None:
        # The model's robots say how far a robot is from the mean one; the URDF is one robot's guess.
        information = replace(information, earlier=job.prior)
        options = attrs.evolve(options, prior_spread=options.prior_spread or TYPICAL_PRIOR_SPREAD)
    estimate = identify(model, information, options, configured_constraints(model, configuration.constraints))
    return _result(estimate)


def _result(estimate: Estimate) -> ParameterEstimates:
    decision = GateDecision.of([*check_solution(estimate), *plausibility(estimate)])
    return ParameterEstimates(
        estimate.layout.names,
        estimate.parameters,
        estimate.standard_deviation,
        estimate.prior,
        estimate.interval,
        decision.content(),
    )
