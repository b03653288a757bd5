"""Validate a result or a URDF on recordings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import attrs

from inertid_ros.config.configuration import Configuration
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.data.long_recording import LongRecording, kept_parts
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.gate import GateDecision, Verdict
from inertid_ros.identification.assessment.torque_confidence import TorqueScale
from inertid_ros.identification.assessment.validation import TorqueErrors, check_errors, torque_errors
from inertid_ros.identification.provenance import checksum
from inertid_ros.regressors.equations import equations_of
from inertid_ros.report.results import Result
from inertid_ros.robot.model import GIVEN_URDF, RobotModel, load_model

from .dataset import Dataset, with_moving_leaders


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
