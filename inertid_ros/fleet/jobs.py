"""What workers of a fleet do for one bag and for one robot, and the options and keys of these jobs."""

import hashlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import attrs
import numpy as np

from inertid_ros.app.screened_samples import FurtherSamples, cutoff_of, prepared_alike, screened
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.robot import DRIVE_TERMS, LoadOptions
from inertid_ros.core.errors import InertidError
from inertid_ros.data.files.loading import load_any_length
from inertid_ros.data.long_recording import LongRecording, all_parts, kept_parts
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.motion_checks import check_motion
from inertid_ros.fleet.bag_information import BagEffects, BagInformation, bag_effects, joint_information
from inertid_ros.fleet.drift import FEWEST, Drift, Series, drift, scatter_about_mean
from inertid_ros.fleet.fetching import FleetError, content_hash, fetched
from inertid_ros.identification.assessment.estimate import NORMAL_95, Estimate
from inertid_ros.identification.assessment.gate import GateDecision, Verdict, check_solution, plausibility
from inertid_ros.identification.identify import identify, takes_further
from inertid_ros.identification.information.information import EarlierEquations
from inertid_ros.identification.information.information_file import (
    INFORMATION_FORMAT,
    information_bytes,
    information_from_bytes,
)
from inertid_ros.identification.prior.constraints import configured_constraints
from inertid_ros.identification.prior.coordinates import TYPICAL_PRIOR_SPREAD
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel, load_model, model_options

FORMAT = 1  # of stored results of bags and robots: another one computes all of them anew
CHANGING_TERMS = ("viscous", "coulomb", "offset")  # drive terms that every bag has of its own
_LEFT_OUT = "stribeck"  # single bags show it or not, and the columns of all bags must be the same
_PAYLOAD = "payload of the catalogue"


def fleet_configuration(configuration: Configuration) -> Configuration:
    """Options that every bag of a fleet is fitted with.

    Stribeck friction is left out, and user terms are kept whatever single bags show: information of bags adds up where
    all have the same parameters.

    Raises
    ------
    FleetError
        The options ask for what fleets do not have.
    """
    identify = configuration.identify
    refused = {
        "identify.equations": identify.equations != "force",
        "identify.estimator": identify.estimator != "consistent",
        "identify.prior": bool(identify.prior),
        "identify.drive_gains": identify.drive_gains,
        "identify.fit_stribeck_speed": identify.fit_stribeck_speed,
    }
    for key, given in refused.items():
        if given:
            raise FleetError(f"{key}: fleets are identified without it; leave it at its default")
    terms = tuple(term for term in configuration.robot.drive_terms if term != _LEFT_OUT)
    kept = {name: attrs.evolve(term, always=True) for name, term in configuration.robot.terms.items()}
    robot = attrs.evolve(configuration.robot, drive_terms=terms or DRIVE_TERMS[:0], terms=kept)
    return attrs.evolve(configuration, robot=robot)


def with_payload(configuration: Configuration, load: LoadOptions | None) -> Configuration:
    """Options for a bag that was recorded with a payload."""
    if load is None:
        return configuration
    loads = {**configuration.robot.loads, _PAYLOAD: load}
    return attrs.evolve(configuration, robot=attrs.evolve(configuration.robot, loads=loads))


def key_of(*parts: str, configuration: Configuration) -> str:
    """SHA-256 of all that a result depends on, its format included."""
    options = json.dumps(attrs.asdict(configuration), sort_keys=True, default=str)
    digest = hashlib.sha256(f"{FORMAT} {INFORMATION_FORMAT}".encode())
    for part in (*parts, options):
        digest.update(hashlib.sha256(part.encode()).digest())
    return digest.hexdigest()


def changing_columns(layout: ParameterLayout) -> list[int]:
    """Columns of the drive terms that every bag has of its own, those of couplings included."""
    last = {name: name.rpartition(".")[2] for name in layout.names[layout.inertial_size : layout.term_start]}
    return [column for column, name in enumerate(layout.names) if last.get(name) in CHANGING_TERMS]


@dataclass(frozen=True)
class BagJob:
    """One bag to compress.

    Attributes
    ----------
    url : str
        Path or URL.
    urdf : str
        Content of the robot's URDF.
    configuration : Configuration
        Of the fleet, with the bag's payload among its loads.
    known : frozenset of str
        Keys of results that there are already: of these nothing is computed.
    """

    url: str
    urdf: str
    configuration: Configuration
    known: frozenset[str] = frozenset()


@dataclass(frozen=True)
class BagResult:
    """What a bag tells of its robot.

    Attributes
    ----------
    key : str
        Hash of all that it depends on.
    summary : dict
        Verdict, reasons, deviation and effective samples per channel, and figures of the bag: plain data.
    information : bytes
        Content of its information file; empty where the result was known, or the verdict is "do not use".
    """

    key: str
    summary: dict[str, Any]
    information: bytes = b""


def bag_job(job: BagJob) -> BagResult:
    """Compress a bag.

    Raises
    ------
    InertidError
        It cannot be used.
    """
    start, processor = time.perf_counter(), time.process_time()
    with fetched(job.url) as path:
        try:
            sha256, size = content_hash(path)
            key = key_of(sha256, job.urdf, configuration=job.configuration)
            known = {"sha256": sha256, "bytes": size}
            if key in job.known:
                return BagResult(key, known)
            configuration = job.configuration
            model = load_model(job.urdf, model_options(configuration.robot))
            given = load_any_length(path, configuration.topics, model.recorded_joints, configuration.prepare.stamps)
            read = time.perf_counter() - start
            summary, information = _compressed(given, configuration, model)
        except InertidError as error:
            raise type(error)(str(error).replace(str(path), job.url)) from None
    seconds = {
        "seconds_reading": read,
        "seconds_total": time.perf_counter() - start,
        "seconds_processor": time.process_time() - processor,
    }
    return BagResult(key, {**known, **summary, **seconds}, information)


def _compressed(
    given: Recording | LongRecording, configuration: Configuration, model: RobotModel
) -> tuple[dict[str, Any], bytes]:
    """Summary of a recording and its information, of a long one in memory that does not grow with it."""
    options = configuration.identify
    pieces = [given] if takes_further(model, options) else list(all_parts(given))
    recordings = screened(kept_parts(pieces), model, configuration)
    cutoff = cutoff_of(recordings)
    recordings = prepared_alike(pieces, recordings, cutoff)
    long = [each for each in pieces if isinstance(each, LongRecording)]
    samples = [each.samples(cutoff) for each in recordings]
    findings = chain.from_iterable(each.findings for each in samples)
    decision = GateDecision.of([*findings, *check_motion(samples, model)])
    summary: dict[str, Any] = {
        "duration_s": given.duration,
        "samples": len(given),
        "cutoff_hz": cutoff,
        **decision.content(),
    }
    if decision.verdict is Verdict.REJECT:
        return summary, b""
    estimate = identify(model, samples, options, further=FurtherSamples(long, recordings, cutoff))
    summary |= {
        "deviation": estimate.residual_deviation.tolist(),
        "effective_samples": np.asarray(estimate.effective_counts, dtype=float).tolist(),
        "delay_s": estimate.delay,
    }
    return summary, information_bytes(estimate.information)


def bag_information(name: str, day: float, summary: dict[str, Any], information: Any) -> BagInformation:
    """A stored result of a bag, for the fit of its robot."""
    return BagInformation(
        name, day, information, np.array(summary["deviation"]), np.array(summary["effective_samples"])
    )


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
