"""The offline calibration in one call, from recordings to an outcome with validation and provenance.

:func:`identify_job` runs this calibration in the process of a :class:`~inertid_ros.core.worker.Worker`.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import attrs
import numpy as np

from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import IdentifyOptions, RoundsOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import NoticeLogger, without_notices
from inertid_ros.core.findings import Finding, subjects_of
from inertid_ros.core.samples import Samples
from inertid_ros.data.files.loading import load_any_length
from inertid_ros.data.long_recording import LongRecording, kept_parts
from inertid_ros.data.preparation.bandwidth import MAX_CUTOFF_PER_RATE
from inertid_ros.data.recording import Recording, renamed
from inertid_ros.data.screening.channel_checks import refuse
from inertid_ros.data.screening.motion_checks import check_different_samples, check_motion
from inertid_ros.identification.assess import assess, check_new_motion, validate_on_blocks
from inertid_ros.identification.assessment import validation as errors
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.gate import GateDecision
from inertid_ros.identification.continuation import UNKNOWN_LOAD_SPREAD
from inertid_ros.identification.drive_gains import DriveGains, drive_gains, effort_products
from inertid_ros.identification.identify import IdentificationProgress, StreamedSamples, identify, takes_further
from inertid_ros.identification.information.delay import known_or_estimated_delay, may_be_shifted, without_delay
from inertid_ros.identification.outcome import Round, RoundDecision
from inertid_ros.identification.provenance import provenance
from inertid_ros.identification.solvers.constraints import configured_constraints
from inertid_ros.identification.solvers.regularizers import OWN_SPREADS
from inertid_ros.regressors.equations import equations_of, with_gains
from inertid_ros.report.results import CalibrationOutcome, Result
from inertid_ros.robot.body_changes import matches
from inertid_ros.robot.model import RobotModel, load_model

from .dataset import TRAIN, VALIDATION, Dataset, ReadPart, ScreenedRecording, with_moving_leaders
from .earlier_result import given_prior
from .validation import prediction_errors

_log = NoticeLogger(__name__)

FIXED_BANDS_HZ = (2.0, 5.0, 10.0)  # cutoffs of bands in which results with different cutoffs are compared
_MIN_BAND_PERIODS = 20.0  # periods of a band's cutoff in the shortest recording; with fewer, filter transients dominate
_COMMAND_GAIN_ROUNDS, _DELAY_STEP_S = 3, 5e-4  # the error of the delay enters to first order in each round
_PREPARED_FRACTION, _SOLVED_FRACTION = 0.3, 0.9
_READ_FRACTION, _CALIBRATED_FRACTION = 0.1, 0.9  # fractions of a job, which also reads and writes files


def calibrate(model: RobotModel, train: Sequence[Recording | LongRecording],
        held_out: Sequence[Recording | LongRecording] = (), configuration: Configuration | None = None,
        progress: Callable[[IdentificationProgress], None] = lambda report: None) -> CalibrationOutcome:
    """Prepare, identify and validate; used by the command line and by the identifier node.

    Raises InertidError: a recording cannot be used, or a solution does not exist.

    Parameters
    ----------
    train : recordings to fit. All parts of a long recording count for parameters and covariance; delay, outliers,
        noise, errors and details come from the parts in memory. If the options need every sample, see
        :func:`.takes_further`, all parts are loaded.
    held_out : recordings of another motion to validate with; of a long recording, only parts in memory are used. If
        empty, blocks of ``train`` are held out in turn, and the verdict is "use with care" at best.
    """
    configuration, clock = configuration or Configuration(), _Clock()
    check_different_samples(kept_parts(train), kept_parts(held_out))
    model = with_moving_leaders(model, kept_parts([*train, *held_out]))

    # Screen recordings, prepare them with one cutoff, and scale efforts to newton metres.
    every_sample = not takes_further(model, configuration.identify)
    dataset = Dataset.screened(model, configuration, train, held_out, every_sample)
    dataset = dataset.prepared(dataset.cutoff(),
        lambda done: progress(IdentificationProgress("preparing", _PREPARED_FRACTION * done)))
    _report_unused_patterns(dataset)
    dataset, gains = with_drive_gains(dataset)
    motion = check_motion(dataset.samples(TRAIN), dataset.model)
    refuse(motion)
    options = _with_loaded_links(configuration.identify, dataset.samples(TRAIN))
    constraints = configured_constraints(dataset.model, configuration.constraints)
    model, earlier, origin = given_prior(options.prior, dataset.model, dataset.first_parts)
    clock.stop("preparing")

    # Estimate parameters.
    read_parts: list[ReadPart] = []
    streamed = StreamedSamples(dataset.samples(TRAIN), dataset.further_samples(read_parts.append))
    estimate = identify(model, streamed, options, constraints,
        lambda report: progress(report.within(_PREPARED_FRACTION, _SOLVED_FRACTION)), earlier)
    estimate = _with_gain_uncertainty(estimate, gains, dataset) if gains else estimate
    clock.stop("identifying")

    # Compute errors on held-out data, and the verdict.
    progress(IdentificationProgress("validating", _SOLVED_FRACTION))
    validation = errors.validate(estimate, dataset.samples(VALIDATION)) if held_out else None
    aligned = dataset.changed(lambda _part, samples: without_delay(samples, estimate.delay))
    fitted, validated = aligned.samples(TRAIN), aligned.samples(VALIDATION)
    blocks = None if held_out else validate_on_blocks(estimate, fitted, options, constraints)
    findings = _different([*motion, *(gains.findings if gains else ()), *dataset.findings], read_parts)
    findings += check_new_motion(estimate, fitted, validated, options, constraints)
    assessment = assess(estimate, fitted, validated, validation or blocks, findings, constraints)
    bands = () if gains else band_errors(estimate, dataset.parts(VALIDATION) or dataset.parts())
    predictions = floating_errors(estimate, dataset.parts(VALIDATION) or dataset.parts(), validated or fitted)
    clock.stop("validating")
    progress(IdentificationProgress("validating", 1.0))
    sources = tuple(recording.provenance(read_parts) for recording in dataset.recordings)
    return CalibrationOutcome(estimate, fitted, validated, validation, assessment,
        provenance(model, sources, configuration, origin, earlier is not None), clock.seconds, blocks=blocks,
        drive_gains=gains, bands=bands, predictions=predictions, health=dataset.health)


def _report_unused_patterns(dataset: Dataset) -> None:
    names = [recording.name for recording in dataset.first_parts]
    robot = dataset.configuration.robot
    patterns = {f"loads.{name}: recordings {', '.join(load.recordings)}": load.recordings
        for name, load in robot.loads.items()}
    patterns |= {f"command_gain_factors: recordings {pattern}": (pattern,) for pattern in robot.command_gain_factors}
    for key, recordings in patterns.items():
        if not any(matches(recording, recordings) for recording in names):
            _log.warning("robot.%s match none of %s; correct the pattern, or remove it", key, ", ".join(names))


def with_drive_gains(dataset: Dataset) -> tuple[Dataset, DriveGains | None]:
    """Estimate drive gains from the recordings to fit, and multiply the efforts of all recordings by the gains.

    Without the option ``drive_gains`` the dataset is unchanged, and the gains are None. IdentificationError: all
    recordings have equal loads, or the equations are not joint torques. RecordingError: another robot's efforts.
    """
    model, options = dataset.model, dataset.configuration.identify
    if not options.drive_gains:
        return dataset, None
    if model.command_gains is not None:
        return _with_command_gains(dataset)
    loads = [part.load for part in dataset.parts(TRAIN)]
    gains = drive_gains(equations_of(model, options.equations), dataset.samples(TRAIN), loads)

    def scaled(part: ScreenedRecording, samples: Samples) -> Samples:
        return part.with_checked_efforts(with_gains(model, gains.values, part.load, samples))

    scale = dict(zip(model.joint_names, (model.effort_scale * gains.values).tolist(), strict=True))
    scaled_model = replace(model, options=attrs.evolve(model.options, effort_scale=scale))
    return replace(dataset.changed(scaled), model=scaled_model), gains


def _with_command_gains(dataset: Dataset) -> tuple[Dataset, DriveGains]:
    """Estimate both gains of drives that follow commands, near the given gains, with the delay of the commands."""
    model, options, samples = dataset.model, dataset.configuration.identify, dataset.samples(TRAIN)
    equations, delay, known = equations_of(model, options.equations), 0.0, not options.remove_delay
    if options.remove_delay and may_be_shifted(equations, samples):
        found = known_or_estimated_delay(equations, samples)
        delay, known = found.removed, found.deviation == 0
    doubled = _with_doubled_damping(dataset)
    for _ in range(_COMMAND_GAIN_ROUNDS):
        early, present, late = (
            [without_delay(one, delay + step) for one in samples] for step in (-_DELAY_STEP_S, 0.0, _DELAY_STEP_S))
        slopes = [(1 - known) * (b.tau - a.tau) / (2 * _DELAY_STEP_S) for a, b in zip(early, late, strict=True)]
        commanded = [np.stack(parts, axis=-1) for parts in zip(_damping(samples, doubled, delay), slopes, strict=True)]
        gains = drive_gains(equations, present, [part.load for part in dataset.parts(TRAIN)], commanded)
        delay += gains.shift
    kp, kd = (
        {joint: given[joint] * float(factor) for joint, factor in zip(model.joint_names, factors, strict=True)}
        for given, factors in ((model.options.command_kp, gains.values),
            (model.options.command_kd, gains.values * gains.damping)))
    corrected = dataset.with_model(replace(model, options=attrs.evolve(model.options, command_kp=kp, command_kd=kd)))
    return corrected.changed(ScreenedRecording.with_checked_efforts), gains


def _with_doubled_damping(dataset: Dataset) -> Sequence[Samples]:
    """Samples of the recordings to fit, as if the velocity gains were twice as large."""
    model = dataset.model
    doubled = {joint: 2 * gain for joint, gain in model.options.command_kd.items()}
    with without_notices():
        other = dataset.with_model(replace(model, options=attrs.evolve(model.options, command_kd=doubled)))
    return other.samples(TRAIN)


def _damping(samples: Sequence[Samples], doubled: Sequence[Samples], delay: float) -> list[Array]:
    """Part ``(N, n)`` of the efforts of each recording that follows from velocity gains, with the delay removed."""
    return [without_delay(twice, delay).tau - without_delay(once, delay).tau
        for once, twice in zip(samples, doubled, strict=True)]


def _with_gain_uncertainty(estimate: Estimate, gains: DriveGains, dataset: Dataset) -> Estimate:
    """Add the uncertainty of the gains to the covariance of an estimate."""
    loads, samples = [part.load for part in dataset.parts(TRAIN)], dataset.samples(TRAIN)
    products = effort_products(estimate.equations, [without_delay(one, estimate.delay) for one in samples], loads)
    if gains.damping.size:
        damping = _damping(samples, _with_doubled_damping(dataset), estimate.delay)
        of_damping = [replace(one, tau=part / gains.damping) for one, part in zip(samples, damping, strict=True)]
        none = [np.zeros_like(load) for load in loads]
        products = np.vstack([products, effort_products(estimate.equations, of_damping, none)])
    return gains.widened(estimate, products)


def band_errors(estimate: Estimate, recordings: Sequence[ScreenedRecording]) -> tuple[errors.BandErrors, ...]:
    """Errors of the estimate and of the URDF as given, below 2, 5 and 10 Hz if rate and length of recordings allow."""
    if estimate.equations.equation_type != "force":
        return ()
    raw = [recording.preparation.fresh for recording in recordings]
    slowest = max(recording.period for recording in raw)
    shortest = min(recording.duration for recording in raw)
    lowest, highest = _MIN_BAND_PERIODS / shortest, MAX_CUTOFF_PER_RATE / slowest
    bands = []
    for band in FIXED_BANDS_HZ:
        if lowest < band < highest:
            with without_notices():
                samples = [without_delay(recording.prepared(band), estimate.delay) for recording in recordings]
            calibrated = errors.torque_errors(estimate.equations, estimate.parameters, samples)
            prior = errors.torque_errors(estimate.equations, estimate.prior, samples)
            bands.append(errors.BandErrors(band, calibrated, prior))
    return tuple(bands)


def floating_errors(estimate: Estimate, parts: Sequence[ScreenedRecording],
        samples: Sequence[Samples]) -> tuple[errors.PredictionError, ...]:
    """Errors of predicted base motion and torque for a robot that floats from rest; empty for other equations."""
    if estimate.equations.equation_type != "momentum":
        return ()
    recordings = [part.preparation.fresh for part in parts]
    return prediction_errors(estimate.model, estimate.model.body_prior, estimate.bodies, recordings, samples)


def _with_loaded_links(options: IdentifyOptions, fitted: Sequence[Samples]) -> IdentifyOptions:
    """Give links with an undeclared load their own prior spread; otherwise the prior of all links would weaken."""
    if options.estimator != "consistent" or options.regularizer not in OWN_SPREADS:
        return options
    loaded = subjects_of(chain.from_iterable(samples.findings for samples in fitted), "undeclared_load")
    return attrs.evolve(options, spread={**dict.fromkeys(sorted(loaded), UNKNOWN_LOAD_SPREAD), **options.spread})


def _different(findings: Iterable[Finding], read_parts: Iterable[ReadPart]) -> tuple[Finding, ...]:
    """Append findings of parts read for the fit, unless a finding with equal cause and subjects is already listed."""
    findings = tuple(findings)
    stated = {(finding.cause, finding.subjects) for finding in findings}
    others: dict[tuple[str, tuple[str, ...]], Finding] = {}
    for finding in chain.from_iterable(part.findings for part in read_parts):
        others.setdefault((finding.cause, finding.subjects), finding)
    return (*findings, *(finding for key, finding in others.items() if key not in stated))


class _Clock:
    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def stop(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage], self._last = now - self._last, now


@dataclass(frozen=True)
class IdentificationJob:
    """Recordings (or their paths) and options of an identification, and the result directory to write, if any.

    ``urdf`` is the content of the URDF, and ``folder`` the folder of its file, if it is one. ``previous`` is the result
    directory of the previous round; empty in the first.
    """

    urdf: str
    configuration: Configuration
    train: tuple[Recording | str, ...]
    held_out: tuple[Recording | str, ...] = ()
    output: Path | None = None
    rounds: RoundsOptions = field(default_factory=RoundsOptions)
    previous: str = ""
    folder: Path | None = None


@dataclass(frozen=True)
class IdentificationResult:
    """Parts of an outcome that the node publishes; the samples stay in the worker process."""

    estimate: Estimate
    validation: errors.Validation | None
    gate: GateDecision
    report: dict[str, object]
    urdf: str
    output: Path | None
    history: tuple[Round, ...] = ()
    decision: RoundDecision | None = None


def identify_job(job: IdentificationJob, progress: Callable[[IdentificationProgress], None]) -> IdentificationResult:
    """Read, identify, validate, and write the result; a rejected result is written too."""
    model = load_model(job.urdf, job.configuration.robot, folder=job.folder)
    progress(IdentificationProgress("reading", 0.0))
    rounds = Result.load(job.previous).report.get("rounds") if job.previous else None
    history = tuple(map(Round.read, rounds["done"])) if rounds else ()
    topics, stamps, joints = job.configuration.topics, job.configuration.prepare.stamps, model.recorded_joints

    def read(source: Recording | str) -> Recording | LongRecording:
        if isinstance(source, Recording):
            return renamed(source, joints)
        return load_any_length(source, topics, joints, stamps)

    train, held_out = ([read(source) for source in sources] for sources in (job.train, job.held_out))
    outcome = calibrate(model, train, held_out, job.configuration,
        lambda report: progress(report.within(_READ_FRACTION, _CALIBRATED_FRACTION)))
    outcome = replace(outcome, rounds=(job.rounds, history))
    progress(IdentificationProgress("writing", _CALIBRATED_FRACTION))
    if job.output is not None:
        outcome.save(job.output)
    return IdentificationResult(outcome.estimate, outcome.validation, outcome.gate, outcome.report, outcome.urdf,
        job.output, outcome.history, outcome.decision)
