"""Jobs that workers run for one bag or one robot, with the options and the keys of results."""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import attrs
import numpy as np

from inertid_ros.calibration.dataset import Dataset
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.robot import CHANGING_TERMS
from inertid_ros.core.errors import InertidError
from inertid_ros.data.files.loading import load_any_length
from inertid_ros.data.long_recording import LongRecording
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.motion_checks import check_motion
from inertid_ros.fleet.bag_information import BagInformation, bag_effects, joint_information
from inertid_ros.fleet.catalogue import FleetBag
from inertid_ros.fleet.drift import Regression, Series, drift
from inertid_ros.fleet.fetching import FleetError, content_hash, fetched
from inertid_ros.identification.assessment.estimate import NORMAL_95
from inertid_ros.identification.assessment.gate import GateDecision, Verdict, check_solution
from inertid_ros.identification.assessment.plausibility import plausibility
from inertid_ros.identification.identify import StreamedSamples, identify, takes_further
from inertid_ros.identification.information import information_file
from inertid_ros.identification.information.information import EarlierEquations
from inertid_ros.identification.solvers.constraints import configured_constraints
from inertid_ros.identification.solvers.coordinates import TYPICAL_PRIOR_SPREAD
from inertid_ros.report.report_content import records
from inertid_ros.robot.model import RobotModel, load_model

STORE_FORMAT = 2  # format of stored results of bags and robots; a new format invalidates all stored results
_EXCLUDED_TERM = "stribeck"  # only some bags determine it, and all bags need the same columns
_CHANGING_TERMS = tuple(term for term in CHANGING_TERMS if term != _EXCLUDED_TERM)  # that differ between bags


def fleet_configuration(configuration: Configuration) -> Configuration:
    """Return options that give all bags the same parameters, so that their information can be added.

    Stribeck friction is excluded, and user terms are always kept. Raises FleetError for options that fleets do not
    support.
    """
    identify = configuration.identify
    refused = {"identify.equations": identify.equations != "force",
        "identify.estimator": identify.estimator != "consistent", "identify.prior": bool(identify.prior),
        "identify.drive_gains": identify.drive_gains, "identify.fit_stribeck_speed": identify.fit_stribeck_speed}
    for key, is_set in refused.items():
        if is_set:
            raise FleetError(f"{key}: is not supported for fleets; leave it at its default")
    terms = tuple(term for term in configuration.robot.drive_terms if term != _EXCLUDED_TERM)
    user_terms = {name: attrs.evolve(term, always=True) for name, term in configuration.robot.terms.items()}
    robot = attrs.evolve(configuration.robot, drive_terms=terms, terms=user_terms)
    return attrs.evolve(configuration, robot=robot)


def key_of(*parts: str, configuration: Configuration) -> str:
    """Return the SHA-256 of all inputs of a result and of its format version."""
    options = json.dumps(attrs.asdict(configuration), sort_keys=True, default=str)
    digest = hashlib.sha256(f"{STORE_FORMAT} {information_file.INFORMATION_FORMAT}".encode())
    for part in (*parts, options):
        digest.update(hashlib.sha256(part.encode()).digest())
    return digest.hexdigest()


@dataclass(frozen=True)
class JobResult:
    """Result of a bag or robot: plain data, and the content of its information file.

    A bag's summary has verdict, reasons, deviation and effective samples per channel, sizes and times. A robot's
    summary has deviation per channel, scatter of the changing terms, and drift of every parameter. A bag's information
    is empty if its result already exists or must not be used.
    """

    summary: dict[str, Any]
    information: bytes = b""


def bag_job(url: str, urdf: str, configuration: Configuration, known: frozenset[str] = frozenset()) -> JobResult:
    """Compress a bag at a path or URL into its information; raise InertidError if the bag is unusable.

    ``configuration`` has the bag's payload among its loads; ``known`` are the keys of existing results, which are not
    computed again.
    """
    start, processor = time.perf_counter(), time.process_time()
    with fetched(url) as path:
        try:
            sha256, size = content_hash(path)
            content = {"sha256": sha256, "bytes": size}
            if key_of(sha256, urdf, configuration=configuration) in known:
                return JobResult(content)
            model = load_model(urdf, configuration.robot)
            stamps = configuration.prepare.stamps
            recording = load_any_length(path, configuration.topics, model.recorded_joints, stamps)
            read = time.perf_counter() - start
            summary, information = _compressed(recording, configuration, model)
            for finding in (*summary["reasons"], *summary["notices"]):  # messages name the bag as the catalogue does
                finding |= {key: finding[key].replace(str(path), url) for key in ("recording", "message")}
        except InertidError as error:
            raise type(error)(str(error).replace(str(path), url)) from None
    seconds = {"seconds_reading": read, "seconds_total": time.perf_counter() - start,
        "seconds_processor": time.process_time() - processor}
    return JobResult({**content, **summary, **seconds}, information)


def _compressed(recording: Recording | LongRecording, configuration: Configuration,
        model: RobotModel) -> tuple[dict[str, Any], bytes]:
    """Return summary and information of a recording, in memory that does not grow with its length."""
    options = configuration.identify
    dataset = Dataset.screened(model, configuration, [recording], every_sample=not takes_further(model, options))
    dataset = dataset.prepared(dataset.cutoff())
    samples = dataset.samples()
    decision = GateDecision.from_findings([*dataset.findings, *check_motion(samples, model)])
    summary: dict[str, Any] = {"duration_s": recording.duration, "samples": len(recording),
        "cutoff_hz": dataset.cutoff_hz, **decision.content()}
    if decision.verdict is Verdict.REJECT:
        return summary, b""
    estimate = identify(model, StreamedSamples(samples, dataset.further_samples()), options)
    summary |= {"deviation": estimate.residual_deviation.tolist(),
        "effective_samples": np.asarray(estimate.effective_counts, dtype=float).tolist(), "delay_s": estimate.delay}
    return summary, information_file.information_bytes(estimate.information)


def robot_job(urdf: str, configuration: Configuration, results: Sequence[tuple[FleetBag, JobResult]]) -> JobResult:
    """Combine the usable bags of a robot, sorted by date.

    All bags share bodies, but not the changing terms. A first fit shares all parameters; deviations of single bags
    from this fit give the scatter of the changing terms in the second fit.

    Raises InertidError: the bags belong to different robots, or there is no solution.
    """
    model = load_model(urdf, configuration.robot)
    bags = [BagInformation(bag.day, information_file.information_from_bytes(result.information, bag.url),
        np.array(result.summary["deviation"]), np.array(result.summary["effective_samples"]))
        for bag, result in results]
    layout = bags[0].information.layout
    drives = enumerate(layout.names[layout.inertial_size : layout.term_start], layout.inertial_size)
    changing = np.array([c for c, name in drives if name.rpartition(".")[2] in _CHANGING_TERMS], dtype=int)
    constraints = configured_constraints(model, configuration.constraints)

    scatter = np.zeros(len(changing))
    information = joint_information(bags, changing, scatter)
    estimate = identify(model, information, configuration.identify, constraints)
    names = [estimate.layout.names[column] for column in changing]
    effects: tuple[Series, ...] = ()
    if len(bags) > 1:
        effects = bag_effects(bags, estimate, changing)
        by_name = {s.name: Regression(s, np.ones((len(s.days), 1))).scatter for s in effects}
        scatter = np.array([by_name.get(name, 0.0) for name in names])
        information = joint_information(bags, changing, scatter)
        estimate = identify(model, information, configuration.identify, constraints)
    summary = {"deviation": estimate.residual_deviation.tolist(),
        "scatter": dict(zip(names, scatter.tolist(), strict=True)),
        "drift": [_series_content(series) for series in effects]}
    return JobResult(summary, information_file.information_bytes(information))


def _series_content(series: Series) -> dict[str, Any]:
    """Return plain data of a series, with trend and changes if it has enough dates; keys as in ``drift.parquet``."""
    half = NORMAL_95 * series.deviation
    content: dict[str, Any] = {"parameter": series.name, "days": series.days.tolist(), "values": series.values.tolist(),
        "low": (series.values - half).tolist(), "high": (series.values + half).tolist(),
        **dict.fromkeys(("trend", "trend_low", "trend_high", "p_value", "level", "scatter"))}
    estimate = drift(series)
    changes = estimate.changes if estimate is not None else ()
    if estimate is not None:
        low, high = estimate.trend.interval
        content |= {"trend": estimate.trend.value, "trend_low": low, "trend_high": high,
            "p_value": estimate.trend.p_value, "level": estimate.level.value, "scatter": estimate.scatter}
    return content | {"change_after": [change.first_day for change in changes],
        "change_before": [change.last_day for change in changes], "change": [change.step.value for change in changes],
        "change_low": [change.step.interval[0] for change in changes],
        "change_high": [change.step.interval[1] for change in changes],
        "change_p_value": [change.p_value for change in changes]}


def estimate_job(urdf: str, configuration: Configuration, stored: bytes,
        prior: EarlierEquations | None) -> dict[str, Any]:
    """Estimate physically consistent parameters of a robot from the joint information of its bags.

    ``prior`` is the distribution of the robot's model; with None, the URDF alone is the prior. Returns the parameters
    as ``rows`` of a table (SI), and the verdict with its reasons as in ``report.json``.
    """
    model = load_model(urdf, configuration.robot)
    information = information_file.information_from_bytes(stored, model.name)
    options = configuration.identify
    if prior is not None:
        # The distribution of the model's robots is a better prior than the URDF of a single robot.
        information = replace(information, earlier=prior)
        options = attrs.evolve(options, prior_spread=options.prior_spread or TYPICAL_PRIOR_SPREAD)
    estimate = identify(model, information, options, configured_constraints(model, configuration.constraints))
    decision = GateDecision.from_findings([*check_solution(estimate), *plausibility(estimate)])
    columns = {"parameter": estimate.layout.names, "value": estimate.parameters.tolist(),
        "deviation": estimate.standard_deviation.tolist(), "low": estimate.interval[:, 0].tolist(),
        "high": estimate.interval[:, 1].tolist(), "urdf": estimate.prior.tolist()}
    return {"rows": records(columns), **decision.content()}
