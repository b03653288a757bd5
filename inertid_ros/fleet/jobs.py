"""Jobs that workers run for one bag or one robot, with the options and the keys of results.

A robot's job combines the information of its bags, and estimates friction and masses of single bags.
"""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import attrs
import numpy as np
from scipy.linalg import solve_triangular

from inertid_ros.calibration.dataset import Dataset
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.robot import CHANGING_TERMS
from inertid_ros.core.arrays import Array, inverse_root, r_factor
from inertid_ros.core.errors import InertidError
from inertid_ros.data.files.loading import load_any_length
from inertid_ros.data.long_recording import LongRecording
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.motion_checks import check_motion
from inertid_ros.fleet.catalogue import FleetBag, FleetError, content_hash, fetched
from inertid_ros.fleet.mixed_models import Regression, Series, drift
from inertid_ros.identification.assessment.estimate import NORMAL_95, Estimate
from inertid_ros.identification.assessment.gate import GateDecision, Verdict, check_solution
from inertid_ros.identification.assessment.plausibility import plausibility
from inertid_ros.identification.identify import StreamedSamples, identify, takes_further
from inertid_ros.identification.information import information_file
from inertid_ros.identification.information.information import Channel, EarlierEquations, Information, merged
from inertid_ros.identification.solvers import coordinates as priors
from inertid_ros.identification.solvers.constraints import configured_constraints
from inertid_ros.report.report_content import records
from inertid_ros.robot.model import RobotModel, load_model

# Vague priors of a bag's own parameters: standard deviation of the factor on a link's mass, and of a changing term
# relative to its natural size.
_MASS_FACTOR_DEVIATION = 3.0
_CHANGING_TERM_DEVIATION = 1e2
_MAX_MASS_DEVIATION_SHARE = 0.3  # share of a link's mass; a less certain mass is not followed over time
STORE_FORMAT = 2  # format of stored results of bags and robots; a new format invalidates all stored results
_EXCLUDED_TERM = "stribeck"  # only some bags determine it, and all bags need the same columns
_CHANGING_TERMS = tuple(term for term in CHANGING_TERMS if term != _EXCLUDED_TERM)  # that differ between bags


@dataclass(frozen=True)
class BagInformation:
    """Information of one bag, from its samples without outliers.

    Attributes
    ----------
    day : date [days since 1970].
    deviation : (c,), standard deviation of the residual of each channel in the fit of this bag alone.
    effective_counts : (c,), independent samples per channel.
    """

    day: float
    information: Information
    deviation: Array
    effective_counts: Array

    @property
    def share(self) -> Array:
        """Independent share ``(c,)`` of the samples."""
        return np.minimum(self.effective_counts / np.maximum(self.information.counts, 1), 1.0)

    @property
    def equations(self) -> EarlierEquations:
        """Whitened equations of all channels."""
        return self.information.independent(self.deviation, self.effective_counts)


def joint_information(bags: Sequence[BagInformation], changing: np.ndarray, scatter: Array) -> Information:
    """Merge the information of all bags of a robot, with shared bodies and changing terms that scatter between bags.

    The noise of each bag gives its weight. In the merged information, all equations count as independent.

    Parameters
    ----------
    changing : (k,), columns of parameters that differ between bags.
    scatter : (k,), standard deviation of each changing parameter about the robot's value; zero to share the parameter.
    """
    deviation = np.median([bag.deviation for bag in bags], axis=0)
    by_column = np.zeros(bags[0].information.layout.size)
    by_column[changing] = scatter
    return merged(_weighted(bag, deviation, by_column) for bag in bags)


def _weighted(bag: BagInformation, deviation: Array, scatter: Array) -> Information:
    """Return a bag's information, scaled to a common deviation ``(c,)``, with the bag's own scatter eliminated.

    ``scatter (p,)`` are standard deviations about the robot's values. The elimination is exact for parameters that
    appear in one channel only; scatter of coupled drives counts as independent between channels.
    """
    factors = np.sqrt(bag.share) * deviation / bag.deviation
    counts = np.maximum(np.round(bag.effective_counts), 1) * (bag.information.counts > 0)
    channels = []
    for channel, factor, count, noise in zip(bag.information.channels, factors, counts, deviation, strict=True):
        scaled = replace(channel, r_factor=factor * channel.r_factor, count=int(count))
        channels.append(_with_scatter(scaled, scatter[channel.columns], noise))
    return replace(bag.information, channels=tuple(channels))


def _with_scatter(channel: Channel, scatter: Array, deviation: float) -> Channel:
    """Eliminate a bag's scatter ``e`` from the equations ``A x + A_s e = b`` and ``e / scatter = 0``."""
    apart = np.flatnonzero(scatter > 0)
    if not len(apart) or not channel.count:
        return channel
    R, k = channel.r_factor, len(apart)
    above = np.hstack([R[:, apart], R])
    below = np.hstack([np.diag(deviation / scatter[apart]), np.zeros((k, R.shape[1]))])
    return replace(channel, r_factor=r_factor(np.vstack([above, below]))[k:, k:])


def bag_effects(bags: Sequence[BagInformation], estimate: Estimate, changing: np.ndarray) -> tuple[Series, ...]:
    """Return friction, offsets and masses of every bag as series over time; uncertain masses are left out.

    Every bag has its own changing terms (friction, offsets) and its own factor on the mass of every link; all bags
    share centres of mass and shapes. The bag's own parameters are eliminated from its equations. The remaining
    equations of all bags determine the shared parameters, whose errors affect every bag. Masses are shifted so that
    their mean over the bags is the mass in ``estimate``. The bags are sorted by date, and ``changing (k,)`` are the
    columns of the changing terms.
    """
    layout, size, first = estimate.layout, estimate.layout.size, len(changing)
    shared = np.setdiff1d(np.arange(size), changing)
    coordinates = priors.prior_coordinates(estimate.model, estimate.information)
    prior = coordinates.physical(coordinates.prior)
    prior_root = priors.prior_covariance_root(coordinates, estimate.prior_spreads)
    masses = np.zeros((size, len(layout.links)))
    for link in range(len(layout.links)):
        masses[layout.body(link), link] = estimate.parameters[layout.body(link)]
    term_deviation = _CHANGING_TERM_DEVIATION * np.linalg.norm(prior_root[changing], axis=1)
    own_deviation = np.concatenate([term_deviation, np.full(masses.shape[1], _MASS_FACTOR_DEVIATION)])
    solved = [_eliminated(bag, estimate.parameters, changing, shared, masses, own_deviation) for bag in bags]
    prior_rows = np.linalg.inv(prior_root[np.ix_(shared, shared)])
    first_rows = np.column_stack([prior_rows, prior_rows @ (prior[shared] - estimate.parameters[shared])])
    factor = r_factor(np.vstack([first_rows, *(bag.rest for bag in solved)]))
    root = inverse_root(factor[: len(shared), :-1])
    common = root @ (root.T @ (factor[: len(shared), :-1].T @ factor[: len(shared), -1]))
    scale = np.concatenate([np.ones(first), layout.bodies(estimate.parameters)[:, 0]])
    values = np.array([bag.own - bag.of_shared @ common for bag in solved]) * scale
    values[:, :first] += estimate.parameters[changing]
    values[:, first:] += scale[first:] - values[:, first:].mean(axis=0)
    names = [*(layout.names[c] for c in changing), *(f"{link}.m" for link in layout.links)]
    days, found = np.array([bag.day for bag in bags]), []
    for index, name in enumerate(names):
        loading = np.array([bag.of_shared[index] for bag in solved]) @ root
        alone = np.array([np.sum(bag.root[index] ** 2) for bag in solved])
        covariance = scale[index] ** 2 * (loading @ loading.T + np.diag(alone))
        mass = index >= first
        series = Series(name, days, values[:, index], _about_mean(covariance) if mass else covariance)
        mean = abs(float(np.mean(series.values)))
        if not mass or np.median(series.deviation) < _MAX_MASS_DEVIATION_SHARE * mean:
            found.append(series)
    return tuple(found)


def _about_mean(covariance: Array) -> Array:
    """Return the covariance ``(k, k)`` of the deviations from the mean, plus the variance of the mean.

    The mean has the variance of a mean of ``k`` independent values with the average variance of the deviations.
    """
    k = len(covariance)
    centring = np.eye(k) - 1 / k
    about = centring @ covariance @ centring
    return np.asarray(about + float(np.trace(about)) / max(k - 1, 1) / k)


@dataclass(frozen=True)
class _Eliminated:
    """Equations of a bag after the elimination of its own parameters.

    At shared parameters ``x``, the bag's own parameters are ``own - of_shared @ x``, and ``root`` is the root of their
    covariance. ``rest`` are the remaining equations of the shared parameters.
    """

    own: Array
    of_shared: Array
    root: Array
    rest: Array


def _eliminated(bag: BagInformation, about: Array, changing: np.ndarray, shared: np.ndarray, masses: Array,
        deviation: Array) -> _Eliminated:
    equations, k = bag.equations, len(deviation)
    columns = np.hstack([equations.R[:, changing], equations.R @ masses])
    residual = equations.z - equations.R @ about
    above = np.column_stack([columns, equations.R[:, shared], residual])
    below = np.column_stack([np.diag(1 / deviation), np.zeros((k, len(shared) + 1))])
    factor = r_factor(np.vstack([above, below]))
    root = solve_triangular(factor[:k, :k], np.eye(k))
    return _Eliminated(root @ factor[:k, -1], root @ factor[:k, k:-1], root, factor[k:, k:])


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
        options = attrs.evolve(options, prior_spread=options.prior_spread or priors.TYPICAL_PRIOR_SPREAD)
    estimate = identify(model, information, options, configured_constraints(model, configuration.constraints))
    decision = GateDecision.from_findings([*check_solution(estimate), *plausibility(estimate)])
    columns = {"parameter": estimate.layout.names, "value": estimate.parameters.tolist(),
        "deviation": estimate.standard_deviation.tolist(), "low": estimate.interval[:, 0].tolist(),
        "high": estimate.interval[:, 1].tolist(), "urdf": estimate.prior.tolist()}
    return {"rows": records(columns), **decision.content()}
