"""What a calibrated robot holds, from recordings: a result directory and recordings in, a payload out."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import attrs
import numpy as np

from inertid_ros.calibration.dataset import TRAIN, VALIDATION, Dataset
from inertid_ros.config.configuration import Configuration
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.data.recording import Recording
from inertid_ros.identification.information.delay import without_delay
from inertid_ros.identification.provenance import RecordingSource, checksum, recording_source
from inertid_ros.payload.checks import check_payload, check_recordings, notices
from inertid_ros.payload.equations import CalibratedRobot, FrictionDrift, ToolFrame
from inertid_ros.payload.payload import Payload, identify_payload, payload_content
from inertid_ros.regressors.equations import equations_of
from inertid_ros.report.report_content import plain
from inertid_ros.report.results import REPORT, ResultError, StoredResult, as_written


@dataclass(frozen=True)
class PayloadOptions:
    """How a payload is identified.

    Attributes
    ----------
    frame : str
        Link in whose frame it is expressed; empty takes the last moving link.
    drift : FrictionDrift
        How much friction may have changed.
    largest_mass : float
        What the robot may hold [kg].
    """

    frame: str = ""
    drift: FrictionDrift = field(default_factory=FrictionDrift)
    largest_mass: float = np.inf


@dataclass(frozen=True)
class PayloadOutcome:
    """A payload and where it comes from.

    Attributes
    ----------
    payload : Payload
        The estimate.
    findings : tuple of Finding
        What was found in the recordings.
    notices : tuple of str
        What to know before it is used.
    sources : tuple of RecordingSource
        The recordings.
    options : PayloadOptions
        That were given.
    """

    payload: Payload
    findings: tuple[Finding, ...]
    notices: tuple[str, ...]
    sources: tuple[RecordingSource, ...]
    options: PayloadOptions


def payload_offline(
    result: StoredResult,
    loaded: Sequence[Recording],
    reference: Sequence[Recording] = (),
    options: PayloadOptions | None = None,
    configuration: Configuration | None = None,
    progress: Callable[[str, float], None] = lambda stage, fraction: None,
) -> PayloadOutcome:
    """Identify a payload; the command line does exactly this.

    Parameters
    ----------
    result : StoredResult
        Of the robot without the payload.
    loaded : sequence of Recording
        With the payload.
    reference : sequence of Recording, optional
        Of the same session without it.
    options : PayloadOptions, optional
        Frame, drift of friction, largest mass.
    configuration : Configuration, optional
        How recordings are prepared; the cutoff of the result goes before the one that they would choose.

    Raises
    ------
    InertidError
        The result or a recording cannot be used, or the payload is beyond what robot or motion can show.
    """
    options, configuration = options or PayloadOptions(), configuration or Configuration()
    robot, delay, cutoff = calibrated_robot(result)
    model = robot.equations.model
    tool = ToolFrame.from_link(model, options.frame)
    everything = [*loaded, *reference]
    _check_new(result, everything)
    check_recordings(model, everything)
    dataset = Dataset.screened(model, _without_effort_checks(configuration), loaded, reference)
    dataset = dataset.prepared(dataset.cutoff(cutoff), lambda fraction: progress("preparing", fraction))
    dataset = dataset.changed(lambda _part, samples: without_delay(samples, delay))
    progress("solving", 0.9)
    findings = dataset.findings
    _refuse_rejected(findings)
    with_payload, without = dataset.samples(TRAIN), dataset.samples(VALIDATION)
    payload = identify_payload(robot, tool, with_payload, without, options.drift)
    check_payload(robot, payload, with_payload, options.largest_mass)
    roles = ["payload"] * len(loaded) + ["reference"] * len(reference)
    return PayloadOutcome(
        payload,
        findings,
        notices(robot, payload),
        tuple(recording_source(*each) for each in zip(everything, dataset.samples(), roles, strict=True)),
        options,
    )


def outcome_content(outcome: PayloadOutcome, result: StoredResult) -> dict[str, Any]:
    """Content of payload.json, with what it was identified from."""
    payload, report = outcome.payload, result.report
    content: dict[str, Any] = plain(
        {
            **payload_content(payload),
            "notices": [*outcome.notices, *map(str, outcome.findings)],
            "joint_names": result.model.joint_names,
            "residual_deviation": payload.residual_deviation,
            "calibration": {
                "directory": str(result.directory),
                "created": report["provenance"]["created"],
                "model_hash": result.model.hash,
                "residual_deviation": report["residual_deviation"],
            },
            "friction_drift": asdict(outcome.options.drift),
            "recordings": [asdict(source) for source in outcome.sources],
        }
    )
    return content


def calibrated_robot(result: StoredResult) -> tuple[CalibratedRobot, float, float]:
    """Return the robot of a result, the delay of its efforts [s], and the cutoff of its recordings [Hz].

    Raises
    ------
    ResultError
        The result was rejected, or is not of joint torques on a fixed base.
    """
    report, model = result.report, result.model
    if report.get("status") == "rejected":
        raise ResultError(f"{result.directory}: was rejected ({report.get('message')}); give a good calibration")
    with as_written(result.directory / REPORT):
        provenance = report["provenance"]
        stored = provenance.get("configuration") or {}
        kind = stored.get("identify", {}).get("equations", "force")
        deviation, counts = (np.array(report[key], dtype=float) for key in ("residual_deviation", "effective_samples"))
        delay, cutoff = float(report.get("effort_delay_s") or 0.0), float(provenance.get("cutoff_hz") or 0.0)
    if kind != "force" or model.free:
        raise ResultError(
            f"{result.directory}: is not of joint torques on a fixed base, which payloads are identified from; give"
            " such a result"
        )
    robot = CalibratedRobot(equations_of(model), result.parameters, result.covariance, deviation, counts)
    return robot, delay, cutoff


def _check_new(result: StoredResult, recordings: Sequence[Recording]) -> None:
    """Refuse recordings that the result was fitted to: they are without payload, and known already."""
    with as_written(result.directory / REPORT):
        fitted = {each["sha256"] for each in result.report["provenance"]["recordings"] if each["role"] == "train"}
    for recording in recordings:
        if checksum(recording) in fitted:
            raise RecordingError(
                f"{recording.name}: is a recording that {result.directory} was fitted to; give one with the payload"
            )


def _refuse_rejected(findings: Sequence[Finding]) -> None:
    """Refuse recordings whose result would not be used: a payload has no verdict that could say so."""
    for finding in findings:
        if finding.severity >= Severity.REJECT:
            raise RecordingError(str(finding))


def _without_effort_checks(configuration: Configuration) -> Configuration:
    """They look for what may be wrong with a URDF; what calibration and payload leave unexplained is checked here."""
    return attrs.evolve(configuration, prepare=attrs.evolve(configuration.prepare, check_efforts=False))
