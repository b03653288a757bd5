"""Validate a result or a URDF on recordings; errors of the predicted motion of a floating base and of joint torques."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import attrs
import numpy as np

from inertid_ros.calibration.dataset import Dataset, with_moving_leaders
from inertid_ros.config.configuration import Configuration
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.core.samples import Samples
from inertid_ros.data.long_recording import LongRecording, kept_parts
from inertid_ros.data.preparation.filtering import low_pass
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.gate import GateDecision, Verdict
from inertid_ros.identification.assessment.torque_confidence import TorqueScale
from inertid_ros.identification.assessment.validation import PredictionError, TorqueErrors, check_errors, torque_errors
from inertid_ros.identification.provenance import checksum
from inertid_ros.regressors.equations import equations_of
from inertid_ros.report.results import Result
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.floating_base_motion import BaseMotion, wheel_force
from inertid_ros.robot.model import GIVEN_URDF, RobotModel, load_model

_BASE = (("linear velocity of the base", "m/s", slice(0, 3)), ("angular velocity of the base", "rad/s", slice(3, 6)))


@dataclass(frozen=True)
class ValidationOutcome:
    """Errors of a result or a URDF on recordings, errors of a prior to compare with, and the verdict."""

    channels: tuple[str, ...]
    errors: TorqueErrors
    prior: TorqueErrors | None
    prior_name: str
    gate: GateDecision

    @property
    def passed(self) -> bool:
        return self.gate.verdict is not Verdict.REJECT

    @property
    def message(self) -> str:
        """Errors, status and verdict in one line."""
        prior = self.prior
        against = "" if prior is None else f" against {100 * prior.relative_error:.2f} % of the {self.prior_name}"
        status = f"{'passed' if self.passed else 'rejected'}, {self.gate.verdict.value}"
        return f"{self.errors.quantity} error {100 * self.errors.relative_error:.2f} %{against}: {status}"


def validate(subject: Result | RobotModel, recordings: Sequence[Recording | LongRecording],
        configuration: Configuration | None = None, baseline: str | Path = "",
        progress: Callable[[str, float], None] = lambda stage, fraction: None) -> ValidationOutcome:
    """Compare measured and predicted torque of recordings.

    A result is validated with its own cutoff (unless one is configured), delay and equations; a robot model with the
    parameters of its URDF. ``baseline`` is a URDF to compare with; a result is compared with its own prior by default.
    InertidError: a recording cannot be used, or the baseline is another robot.
    """
    configuration = configuration or Configuration()
    prior: Array | None
    if isinstance(subject, Result):
        model, parameters, prior = subject.model, subject.parameters, subject.prior
        delay, cutoff_hz = subject.effort_delay_s, subject.cutoff_hz
        identify = attrs.evolve(configuration.identify, equations=subject.equation_type)
        configuration = attrs.evolve(configuration, identify=identify)
        equations = equations_of(model, configuration.identify.equations)
    else:
        subject = with_moving_leaders(subject, kept_parts(recordings))
        equations = equations_of(subject, configuration.identify.equations)
        model, parameters, prior, delay, cutoff_hz = subject, equations.model.prior, None, 0.0, 0.0
    if baseline:
        other = load_model(Path(baseline), model.options)
        if other.joint_names != model.joint_names or other.hash != model.hash:
            raise ModelError(
                f"{baseline}: has other joints or another geometry than the validated robot; give its URDF")
        prior = equations_of(other, configuration.identify.equations).model.prior
        equations = equations_of(replace(model, prior_name=GIVEN_URDF), configuration.identify.equations)

    dataset = Dataset.screened(model, configuration, recordings).aligned(cutoff_hz, delay, progress)
    samples = dataset.samples()
    progress("validating", 0.9)
    errors = torque_errors(equations, parameters, samples)
    prior_errors = None if prior is None else torque_errors(equations, prior, samples)
    given = parameters if prior is None else prior
    scale = TorqueScale.from_recordings(equations, (given, parameters), samples)
    fitted = _fitted_before(subject, dataset.first_parts) if isinstance(subject, Result) else []
    found = check_errors(equations, errors, prior_errors, scale)
    gate = GateDecision.from_findings([*dataset.findings, *fitted, *found])
    return ValidationOutcome(equations.channels, errors, prior_errors, equations.model.prior_name, gate)


def _fitted_before(result: Result, recordings: Sequence[Recording]) -> list[Finding]:
    fitted, evidence = result.known_recordings, "the result or its prior was fitted to this recording"
    return [Finding.with_remedy("held_out_not_new", Severity.CARE, evidence, recording=recording.name)
        for recording in recordings if checksum(recording) in fitted]


def prediction_errors(model: RobotModel, prior: Array, calibrated: Array, recordings: Sequence[Recording],
        samples: Sequence[Samples]) -> tuple[PredictionError, ...]:
    """Errors of bodies ``(nb, 10)`` of the URDF and of the result, on samples for equations of momentum.

    The rates of joints and wheels predict the twist of the base, and the motion of base, joints and wheels predicts the
    torque of the joints, without friction. Torque is compared if the recordings have efforts.
    """
    twist = np.concatenate([part.v[part.usable, :6] for part in samples])
    twists = [np.concatenate([_twist(model, bodies, part)[part.usable] for part in samples])
        for bodies in (prior, calibrated)]
    errors = [PredictionError(name, unit, _rms(twist[:, axes]), *(_rms((twist - each)[:, axes]) for each in twists))
        for name, unit, axes in _BASE]
    if all(np.isfinite(recording.effort).all() and recording.effort.any() for recording in recordings):
        pairs = list(zip(recordings, samples, strict=True))
        torque = np.concatenate([_torque(model, recording, part)[part.usable] for recording, part in pairs])
        of_wheels = [_torque_of_wheels(model, recording, part) for recording, part in pairs]
        torques = [np.concatenate([(rigid_torque(model, bodies, part.q, part.v, part.a)[:, 6:] + wheels)[part.usable]
            for part, wheels in zip(samples, of_wheels, strict=True)]) for bodies in (prior, calibrated)]
        for joint, name in enumerate(model.joint_names):
            unit = "N" if model.slides[joint] else "N m"
            both = (_rms(torque[:, joint] - each[:, joint]) for each in torques)
            errors.append(PredictionError(f"torque of {name}", unit, _rms(torque[:, joint]), *both))
    return tuple(errors)


def _twist(model: RobotModel, bodies: Array, samples: Samples) -> Array:
    """Twist ``(N, 6)`` of the base at zero total momentum; ``samples.tau`` is minus the momentum of the wheels."""
    standing = np.zeros((len(samples.q), len(model.wheels.names)))
    return BaseMotion(model.tree, bodies, model.wheels).twist(samples.q[:, 7:], samples.v[:, 6:], standing, samples.tau)


def _torque_of_wheels(model: RobotModel, recording: Recording, samples: Samples) -> Array:
    """Torque ``(N, n)`` of the joints that turns the momentum of wheels, which need not be on the base."""
    if not any(model.wheels.bodies):
        return np.zeros((len(samples.q), model.joints))
    even, speed = _smooth(recording, _speed(recording)[:, recording.columns(model.wheels.names)], samples)
    both = (_interpolated(samples.time, even, each) for each in (speed, np.gradient(speed, even, axis=0)))
    return wheel_force(model, samples.q[:, 7:], samples.v, *both)[:, 6:]


def _speed(recording: Recording) -> Array:
    if recording.velocity is not None and np.isfinite(recording.velocity).any(axis=0).all():
        return recording.velocity
    return np.asarray(np.gradient(recording.position, recording.time, axis=0))


def _torque(model: RobotModel, recording: Recording, samples: Samples) -> Array:
    """Measured torque ``(N, n)`` at the samples, below their cutoff."""
    effort = recording.effort[:, recording.columns(model.joint_names)] * model.effort_scale
    return _interpolated(samples.time, *_smooth(recording, effort, samples))


def _smooth(recording: Recording, values: Array, samples: Samples) -> tuple[Array, Array]:
    """Even times, and values of a recording at these times, below the cutoff of the samples."""
    even = np.arange(recording.time[0], recording.time[-1], recording.period)
    return even, low_pass(_interpolated(even, recording.time, values), recording.period, samples.cutoff_hz)


def _interpolated(time: Array, known: Array, values: Array) -> Array:
    pairs = zip(np.isfinite(values.T), values.T, strict=True)
    return np.column_stack([np.interp(time, known[finite], column[finite]) for finite, column in pairs])


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))
