"""Identify the payload of a calibrated robot from a result directory and recordings."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import attrs
import numpy as np

from inertid_ros.calibration.dataset import TRAIN, VALIDATION, Dataset
from inertid_ros.config.configuration import Configuration
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError, RecordingError
from inertid_ros.core.findings import Severity
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.torque_confidence import sample_states
from inertid_ros.identification.provenance import checksum, recording_source
from inertid_ros.regressors.equations import equations_of
from inertid_ros.report.report_content import plain
from inertid_ros.report.results import REPORT, Result, ResultError, as_written
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.model import RobotModel

from .equations import CalibratedRobot, FrictionDrift, ToolFrame
from .payload import Payload, identify_payload, payload_content

# A joint is saturated if its effort reaches the first share of its limit in the second share of the samples.
_SATURATION_SHARE, _SATURATED_SAMPLES = 0.99, 0.01
# The payload does not explain the recording if the residual is larger than this multiple of the calibration's residual
# and than this share of the effort, or if the robot is this many standard deviations from its calibration.
_MAX_RESIDUAL_RATIO = 10.0
_MAX_RESIDUAL_SHARE = 0.15
_MAX_SURPRISE_DEVIATIONS = 8.0
# Largest half widths of intervals. A wider interval of the mass is refused (share of payload or robot: the larger
# bound applies); a wider interval of the centre of mass gives a notice.
_MAX_MASS_SHARE, _MAX_ROBOT_MASS_SHARE = 0.25, 0.02
_MAX_COM_HALF_WIDTH_M = 0.05


@dataclass(frozen=True)
class PayloadOptions:
    """Frame of a payload (empty: of the last moving link), friction drift, and largest allowed mass [kg]."""

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
        result: Result, loaded: Sequence[Recording], reference: Sequence[Recording] = (),
        options: PayloadOptions | None = None, configuration: Configuration | None = None,
        progress: Callable[[str, float], None] = lambda stage, fraction: None) -> PayloadOutcome:
    """Identify a payload.

    Parameters
    ----------
    loaded, reference : recordings with the payload, and recordings of the same session without the payload.
    configuration : options for the preparation of recordings; the result's cutoff takes precedence.

    Raises
    ------
    InertidError
        The result or a recording cannot be used, or the payload is too heavy or not determined by the motion.
    """
    options, configuration = options or PayloadOptions(), configuration or Configuration()
    robot = calibrated_robot(result)
    tool = ToolFrame.from_link(robot.equations.model, options.frame)
    recordings = [*loaded, *reference]
    _check_recordings(result, recordings)
    # Effort checks look for errors of a URDF; _check_payload checks the residual with calibration and payload.
    prepare = attrs.evolve(configuration.prepare, check_efforts=False)
    configuration = attrs.evolve(configuration, prepare=prepare)
    dataset = Dataset.screened(robot.equations.model, configuration, loaded, reference)
    dataset = dataset.aligned(result.cutoff_hz, result.effort_delay_s, progress)
    progress("solving", 0.9)
    for finding in dataset.findings:
        if finding.severity >= Severity.REJECT:  # a payload has no verdict that reports the finding
            raise RecordingError(str(finding))
    with_payload = dataset.samples(TRAIN)
    payload = identify_payload(robot, tool, with_payload, dataset.samples(VALIDATION), options.drift)
    _check_payload(robot, payload, with_payload, options.largest_mass)
    findings, warnings = tuple(map(str, dataset.findings)), _notices(robot, payload)
    roles = ["payload"] * len(loaded) + ["reference"] * len(reference)
    with as_written(result.directory / REPORT):
        calibration = {
            "directory": str(result.directory), "created": result.report["provenance"]["created"],
            "model_hash": result.model.hash, "residual_deviation": result.report["residual_deviation"]}
    content: dict[str, Any] = plain({
        **payload_content(payload), "notices": [*warnings, *findings], "joint_names": result.model.joint_names,
        "residual_deviation": payload.residual_deviation, "calibration": calibration,
        "friction_drift": asdict(options.drift),
        "recordings": [asdict(source) for source in map(recording_source, recordings, dataset.samples(), roles)]})
    return PayloadOutcome(payload, findings, warnings, content)


def payload_job(
        directory: str, recording: Recording, reference: Sequence[str], options: PayloadOptions,
        progress: Callable[[tuple[str, float]], None]) -> PayloadOutcome:
    """Identify a payload in the process of a :class:`~inertid_ros.core.worker.Worker`; see :func:`payload_offline`.

    ``directory`` holds the result of the robot without payload; ``reference`` are paths of recordings without payload.
    """
    result = Result.load(directory)
    references = [result.load_recording(path) for path in reference]
    return payload_offline(
        result, [recording], references, options, progress=lambda stage, fraction: progress((stage, fraction)))


def calibrated_robot(result: Result) -> CalibratedRobot:
    """Return the calibrated robot of a result.

    Raises
    ------
    ResultError
        The result was rejected, or was not fitted to joint torques on a fixed base.
    """
    if result.rejected:
        raise ResultError(f"{result.directory}: was rejected ({result.report.get('message')}); give a good calibration")
    if result.equation_type != "force" or result.model.free:
        raise ResultError(
            f"{result.directory}: was not identified from joint torques on a fixed base; give a result that was, as a"
            " payload requires")
    keys = ("residual_deviation", "effective_samples")
    with as_written(result.directory / REPORT):
        deviation, counts = (np.array(result.report[key], dtype=float) for key in keys)
    return CalibratedRobot(equations_of(result.model), result.parameters, result.covariance, deviation, counts)


def _check_recordings(result: Result, recordings: Sequence[Recording]) -> None:
    """Refuse recordings that the result was fitted to, or in which a joint is at its effort limit."""
    model = result.model
    limits, scales = (dict(zip(model.joint_names, values.tolist(), strict=True))
        for values in (np.asarray(model.limits.effort), model.effort_scale))
    for recording in recordings:
        if checksum(recording) in result.fitted_recordings:
            raise RecordingError(
                f"{recording.name}: is a recording that {result.directory} was fitted to; record the payload")
        for column, joint in enumerate(recording.joint_names):
            if not 0 < (limit := limits.get(joint, 0.0)) < np.inf:
                continue
            share = float(np.mean(np.abs(scales[joint] * recording.effort[:, column]) >= _SATURATION_SHARE * limit))
            if share > _SATURATED_SAMPLES:
                raise RecordingError(
                    f"{recording.name}: {joint} is at its effort limit of {limit:g} N m or N in {100 * share:.0f} % of"
                    " the samples: the payload is too heavy for this pose; hold a lighter payload, or hold it closer")


def _check_payload(robot: CalibratedRobot, payload: Payload, loaded: Sequence[Samples], largest_mass: float) -> None:
    """Refuse a payload that does not explain the recording, is not determined by the motion, or is too heavy."""
    name = loaded[0].name
    size = np.sqrt(np.mean(np.concatenate([samples.tau[samples.usable] for samples in loaded]) ** 2, axis=0))
    ratio = payload.residual_deviation / np.maximum(robot.deviation, 1e-12)
    worst = int(np.argmax(ratio))
    share = float(np.linalg.norm(payload.residual_deviation) / max(float(np.linalg.norm(size)), 1e-300))
    # Excess of the squared distance from the calibration, in standard deviations of its chi-squared distribution.
    freedom = float(np.linalg.matrix_rank(robot.covariance, hermitian=True))
    surprise = (payload.equations.surprise - freedom) / np.sqrt(2 * freedom)
    unexplained = ratio[worst] > _MAX_RESIDUAL_RATIO and share > _MAX_RESIDUAL_SHARE
    if unexplained or surprise > _MAX_SURPRISE_DEVIATIONS:
        raise IdentificationError(
            f"{name}: no payload on {payload.tool.name} explains it: {robot.equations.channels[worst]} is off by"
            f" {payload.residual_deviation[worst]:.2g} N m or N, in the calibration by {robot.deviation[worst]:.2g};"
            " for another robot, give its result; for another link, give --frame; inertid validate reports other causes"
        )
    mass, half = payload.mass, payload.mass.half_width
    robot_mass = float(np.sum(robot.layout.bodies(robot.parameters)[:, 0]))
    if half > max(_MAX_MASS_SHARE * mass.value, _MAX_ROBOT_MASS_SHARE * robot_mass):
        raise IdentificationError(
            f"{name}: too little motion to identify the payload: its mass is between {mass.interval[0]:.2g} and"
            f" {mass.interval[1]:.2g} kg; move all joints, and turn the wrist further")
    if mass.value > largest_mass:
        raise IdentificationError(
            f"{name}: holds {mass.value:.3g} kg, more than the allowed {largest_mass:g} kg; hold a lighter payload")


def _notices(robot: CalibratedRobot, payload: Payload) -> tuple[str, ...]:
    lines = []
    if payload.mass.interval[0] <= 0.0:
        lines.append(
            f"there may be no payload: its mass is between 0 and {payload.mass.interval[1]:.2g} kg; do not send it to a"
            " controller")
    half_widths = [quantity.half_width for quantity in payload.com]
    unknown = [axis for axis, half in zip("xyz", half_widths, strict=True) if half > _MAX_COM_HALF_WIDTH_M]
    if unknown and payload.mass.interval[0] > 0.0:
        lines.append(
            f"its centre of mass along {', '.join(unknown)} is uncertain by {100 * max(half_widths):.0f} cm; turn the"
            " wrist into further orientations")
    model = robot.equations.model
    added = payload.tool.bodies(payload.parameters, len(model.link_names))
    if overload := _overload(model, model.layout.bodies(robot.parameters) + added):
        lines.append(overload)
    return tuple(lines)


def _overload(model: RobotModel, bodies: Array) -> str:
    """Describe the joint whose gravity torque most exceeds its limit in the robot's range; empty if there is none."""
    states, limits = sample_states(model), np.asarray(model.limits.effort)
    still = np.zeros_like(states.v)
    torque = np.abs(rigid_torque(model, bodies.reshape(-1, BODY_PARAMETERS), states.q, still, still))
    share = torque.max(axis=0) / np.where(np.isfinite(limits) & (limits > 0), limits, np.inf)
    worst = int(np.argmax(share))
    if share[worst] <= 1.0:
        return ""
    return (
        f"{model.joint_names[worst]} cannot hold it everywhere: gravity needs up to {torque[:, worst].max():.3g} of"
        f" {limits[worst]:g} N m or N; keep the payload closer, or hold a lighter payload")
