"""Identify what a calibrated robot holds from a result directory and recordings."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import attrs
import numpy as np

from inertid_ros.calibration.dataset import TRAIN, VALIDATION, Dataset
from inertid_ros.config.configuration import Configuration
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.findings import Severity
from inertid_ros.data.files.loading import load_recording
from inertid_ros.data.recording import Recording
from inertid_ros.identification.information.delay import without_delay
from inertid_ros.identification.provenance import checksum, recording_source
from inertid_ros.payload.checks import check_payload, check_recordings, notices
from inertid_ros.payload.equations import CalibratedRobot, FrictionDrift, ToolFrame
from inertid_ros.payload.payload import Payload, identify_payload, payload_content
from inertid_ros.regressors.equations import equations_of
from inertid_ros.report.report_content import plain
from inertid_ros.report.results import REPORT, Result, ResultError, as_written


@dataclass(frozen=True)
class PayloadOptions:
    """Options of a payload.

    Attributes
    ----------
    frame : str
        Link in whose frame it is expressed; empty takes the last moving link.
    drift : FrictionDrift
    largest_mass : float
        Largest mass that the robot may hold [kg].
    """

    frame: str = ""
    drift: FrictionDrift = field(default_factory=FrictionDrift)
    largest_mass: float = np.inf


@dataclass(frozen=True)
class PayloadOutcome:
    """A payload, findings on its recordings, warnings on its use, and the content of payload.json."""

    payload: Payload
    findings: tuple[str, ...]
    notices: tuple[str, ...]
    content: dict[str, Any]


def payload_offline(
    result: Result,
    loaded: Sequence[Recording],
    reference: Sequence[Recording] = (),
    options: PayloadOptions | None = None,
    configuration: Configuration | None = None,
    progress: Callable[[str, float], None] = lambda stage, fraction: None,
) -> PayloadOutcome:
    """Identify a payload.

    Parameters
    ----------
    loaded, reference : sequence of Recording
        With the payload, and of the same session without it.
    configuration : Configuration, optional
        Preparation of recordings; the cutoff of the result takes precedence.

    Raises
    ------
    InertidError
        The result or a recording cannot be used, or the payload is beyond what robot or motion can show.
    """
    options, configuration = options or PayloadOptions(), configuration or Configuration()
    robot = calibrated_robot(result)
    tool = ToolFrame.from_link(robot.equations.model, options.frame)
    recordings = [*loaded, *reference]
    _check_new(result, recordings)
    check_recordings(robot.equations.model, recordings)
    # Effort checks look for errors of a URDF; what calibration and payload leave unexplained is checked below.
    prepare = attrs.evolve(configuration.prepare, check_efforts=False)
    configuration = attrs.evolve(configuration, prepare=prepare)
    dataset = Dataset.screened(robot.equations.model, configuration, loaded, reference)
    dataset = dataset.prepared(dataset.cutoff(result.cutoff_hz), lambda fraction: progress("preparing", fraction))
    dataset = dataset.changed(lambda _part, samples: without_delay(samples, result.effort_delay_s))
    progress("solving", 0.9)
    for finding in dataset.findings:
        if finding.severity >= Severity.REJECT:  # a payload has no verdict that could say so
            raise RecordingError(str(finding))
    with_payload = dataset.samples(TRAIN)
    payload = identify_payload(robot, tool, with_payload, dataset.samples(VALIDATION), options.drift)
    check_payload(robot, payload, with_payload, options.largest_mass)
    findings, warnings = tuple(map(str, dataset.findings)), notices(robot, payload)
    roles = ["payload"] * len(loaded) + ["reference"] * len(reference)
    content: dict[str, Any] = plain(
        {
            **payload_content(payload),
            "notices": [*warnings, *findings],
            "joint_names": result.model.joint_names,
            "residual_deviation": payload.residual_deviation,
            "calibration": {
                "directory": str(result.directory),
                "created": result.report["provenance"]["created"],
                "model_hash": result.model.hash,
                "residual_deviation": result.report["residual_deviation"],
            },
            "friction_drift": asdict(options.drift),
            "recordings": [asdict(source) for source in map(recording_source, recordings, dataset.samples(), roles)],
        }
    )
    return PayloadOutcome(payload, findings, warnings, content)


def payload_job(
    directory: str,
    recording: Recording,
    reference: Sequence[str],
    options: PayloadOptions,
    progress: Callable[[tuple[str, float]], None],
) -> PayloadOutcome:
    """Identify a payload in the process of a :class:`~inertid_ros.core.worker.Worker`; see :func:`payload_offline`.

    Parameters
    ----------
    directory : str
        Result of the robot without the payload.
    reference : sequence of str
        Paths of recordings.
    """

    def report(stage: str, fraction: float) -> None:
        progress((stage, fraction))

    result = Result.load(directory)
    references = [load_recording(path, joints=result.model.recorded_joints) for path in reference]
    return payload_offline(result, [recording], references, options, progress=report)


def calibrated_robot(result: Result) -> CalibratedRobot:
    """Robot of a result.

    Raises
    ------
    ResultError
        The result was rejected, or is not of joint torques on a fixed base.
    """
    if result.rejected:
        raise ResultError(f"{result.directory}: was rejected ({result.report.get('message')}); give a good calibration")
    if result.equation_type != "force" or result.model.free:
        raise ResultError(
            f"{result.directory}: is not of joint torques on a fixed base, which payloads are identified from; give"
            " such a result"
        )
    keys = ("residual_deviation", "effective_samples")
    with as_written(result.directory / REPORT):
        deviation, counts = (np.array(result.report[key], dtype=float) for key in keys)
    return CalibratedRobot(equations_of(result.model), result.parameters, result.covariance, deviation, counts)


def _check_new(result: Result, recordings: Sequence[Recording]) -> None:
    """Refuse recordings that the result was fitted to: they are without payload."""
    for recording in recordings:
        if checksum(recording) in result.fitted_recordings:
            raise RecordingError(
                f"{recording.name}: is a recording that {result.directory} was fitted to; give one with the payload"
            )
