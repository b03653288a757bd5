"""The whole offline path in one call: recordings in, outcome with validation and provenance out."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

import attrs

from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.core.findings import subjects_of
from inertid_ros.core.samples import Samples
from inertid_ros.data.long_recording import LongRecording, all_parts, kept_parts
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.channel_checks import refuse
from inertid_ros.data.screening.motion_checks import check_different_samples, check_motion
from inertid_ros.data.screening.recording_health import recording_health
from inertid_ros.identification.assessment.validation import validate
from inertid_ros.identification.continuation import UNKNOWN_LOAD
from inertid_ros.identification.held_out import check_new_motion, validate_on_blocks
from inertid_ros.identification.identify import IdentificationProgress, identify, takes_further
from inertid_ros.identification.information.delay import without_delay
from inertid_ros.identification.prior.constraints import configured_constraints
from inertid_ros.identification.prior.regularizers import OWN_SPREADS
from inertid_ros.identification.provenance import RecordingSource, provenance, recording_source
from inertid_ros.report.pages import CalibrationOutcome
from inertid_ros.robot.model import RobotModel

from .earlier_result import earlier_fit
from .fixed_bands import band_errors
from .known_loads import LoadedRecordings
from .screened_samples import FurtherSamples, cutoff_of, prepared_alike, screened

_PREPARED, _SOLVED = 0.3, 0.9


def calibrate(
    model: RobotModel,
    train: Sequence[Recording | LongRecording],
    held_out: Sequence[Recording | LongRecording] = (),
    configuration: Configuration | None = None,
    progress: Callable[[IdentificationProgress], None] = lambda report: None,
) -> CalibrationOutcome:
    """Prepare, identify and validate; the command line and the identifier node both do exactly this.

    Parameters
    ----------
    train : sequence of Recording or LongRecording
        Recordings to fit. All parts of a long one count for parameters and covariance; delay, outliers, noise, errors
        and details are of the parts that are kept.
    held_out : sequence of Recording or LongRecording
        Recordings to validate the result with, of another motion, of long ones the parts that are kept; without any,
        blocks of ``train`` are held out in turn, and the verdict is "use with care" at best.

    Raises
    ------
    InertidError
        A recording cannot be used, or there is no solution.
    """
    configuration = configuration or Configuration()
    options, clock = configuration.identify, _Clock()
    long = [each for each in train if isinstance(each, LongRecording)]
    if long and not takes_further(model, options):
        train, long = [each for own in train for each in all_parts(own)], []
    given, roles = [*train, *held_out], ["train"] * len(train) + ["validation"] * len(held_out)
    parts = [kept_parts([each]) for each in given]
    everything, samples = list(chain.from_iterable(parts)), []
    fitted_parts = sum(map(len, parts[: len(train)]))
    check_different_samples(everything[:fitted_parts], everything[fitted_parts:])
    recordings = screened(everything, model, configuration)
    cutoff = cutoff_of(recordings[:fitted_parts], recordings[fitted_parts:])
    recordings = prepared_alike(given, recordings, cutoff)
    for index, recording in enumerate(recordings):
        progress(IdentificationProgress("preparing", _PREPARED * index / len(everything)))
        samples.append(recording.samples(cutoff))
    loaded = None
    if options.drive_gains:
        loaded = LoadedRecordings.of(model, everything, samples, fitted_parts, configuration)
        model, samples = loaded.model, list(loaded.samples)
    fitted, held_out_samples = tuple(samples[:fitted_parts]), tuple(samples[fitted_parts:])
    motion = check_motion(fitted, model)
    refuse(motion)
    of_gains = () if loaded is None else loaded.gains.findings
    findings = (*motion, *of_gains, *chain.from_iterable(each.findings for each in samples))
    options = _with_loaded_links(options, fitted)
    earlier, source = earlier_fit(options.prior, model, [own[0] for own in parts]) if options.prior else (None, None)
    further = FurtherSamples(long, recordings[:fitted_parts], cutoff)
    clock.stop("preparing")
    constraints = configured_constraints(model, configuration.constraints)
    estimate = identify(
        model,
        fitted,
        options,
        constraints,
        lambda report: progress(report.within(_PREPARED, _SOLVED)),
        earlier,
        further,
    )
    findings += further.findings_beside(findings)
    if loaded is not None:
        estimate = loaded.widened(estimate, fitted)
    clock.stop("identifying")
    progress(IdentificationProgress("validating", _SOLVED))
    validation = validate(estimate, held_out_samples) if held_out_samples else None
    fitted, held_out_samples = (
        tuple(without_delay(each, estimate.delay) for each in group) for group in (fitted, held_out_samples)
    )
    blocks = None if held_out else validate_on_blocks(estimate, fitted, options, constraints)
    bands = () if loaded is not None else band_errors(estimate, recordings[fitted_parts:] or recordings)
    findings += check_new_motion(estimate, fitted, held_out_samples, options, constraints)
    clock.stop("validating")
    prepared = iter(samples)
    sources = tuple(
        _source(each, own, [next(prepared) for _ in own], role, further)
        for each, own, role in zip(given, parts, roles, strict=True)
    )
    health = tuple(recording_health(*entry, model) for entry in zip(everything, samples, strict=True))
    progress(IdentificationProgress("validating", 1.0))
    return CalibrationOutcome(
        estimate,
        fitted,
        held_out_samples,
        validation,
        provenance(model, sources, configuration, source),
        clock.seconds,
        findings=findings,
        blocks=blocks,
        constraints=constraints,
        drive_gains=None if loaded is None else loaded.gains,
        bands=bands,
        health=health,
    )


def _source(
    given: Recording | LongRecording,
    parts: Sequence[Recording],
    samples: Sequence[Samples],
    role: str,
    further: FurtherSamples,
) -> RecordingSource:
    """Source of a result: a recording, of a long one with its parts that are kept and their samples."""
    source = recording_source(parts[0], samples[0], role)
    if not isinstance(given, LongRecording):
        return source
    used = sum(int(own.usable.sum()) for own in samples)
    return further.source(given, replace(source, used_samples=used))


def _with_loaded_links(options: IdentifyOptions, fitted: Sequence[Samples]) -> IdentifyOptions:
    """Options with a prior spread of their own for links that hold what the URDF does not know.

    What they hold would otherwise make the prior of all other links as weak.
    """
    if options.estimator != "consistent" or options.regularizer not in OWN_SPREADS:
        return options
    loaded = subjects_of(chain.from_iterable(samples.findings for samples in fitted), "undeclared_load")
    return attrs.evolve(options, spread={**dict.fromkeys(sorted(loaded), UNKNOWN_LOAD), **options.spread})


class _Clock:
    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.seconds: dict[str, float] = {}

    def stop(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage], self._last = now - self._last, now
