"""``inertid validate``: a result or a URDF against recordings."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import attrs

from inertid_ros.calibration.dataset import Dataset
from inertid_ros.cli.printing import number, percent, print_json, print_table, print_verdict, progress_bar, warn_of_care
from inertid_ros.config.configuration import Configuration
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.findings import Finding, Severity, remedy_for
from inertid_ros.data.long_recording import LongRecording
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.gate import GateDecision, Verdict
from inertid_ros.identification.assessment.validation import TorqueErrors, check_errors, compared, torque_errors
from inertid_ros.identification.information.delay import without_delay
from inertid_ros.identification.provenance import checksum
from inertid_ros.regressors.equations import equations_of
from inertid_ros.report.results import Result
from inertid_ros.robot.model import RobotModel, load_model, model_options

from .settings import check_same_robot, configuration, recordings_of_any_length
from .stopping import REJECTED


@dataclass(frozen=True)
class _Subject:
    """What is validated: a model with its parameters ``(p,)``, those to compare with, and the result it comes from."""

    model: RobotModel
    parameters: Array
    baseline: Array | None
    result: Result | None

    @property
    def delay(self) -> float:
        """Identified delay of effort [s]."""
        return float(self.result.report.get("effort_delay_s") or 0.0) if self.result is not None else 0.0

    @property
    def cutoff(self) -> float:
        """Cutoff with which the result was identified [Hz]; 0 where it is not known."""
        return float(self.result.report["provenance"].get("cutoff_hz") or 0.0) if self.result is not None else 0.0

    def fitted(self, recordings: Sequence[Recording]) -> list[Finding]:
        """Findings on recordings that the result was fitted to."""
        sources = self.result.report["provenance"]["recordings"] if self.result is not None else ()
        fitted = {source["sha256"] for source in sources if source["role"] == "train"}
        evidence = "is a recording that the result was fitted to"
        return [
            Finding("held_out_not_new", Severity.CARE, evidence, remedy_for("held_out_not_new"), (), recording.name)
            for recording in recordings
            if checksum(recording) in fitted
        ]


def run(options: argparse.Namespace) -> int:
    """Run the command; exit status 3 if the subject must not be used for such motions."""
    result = Result.load(options.subject) if Path(options.subject).is_dir() else None
    config = configuration(options, Configuration)
    if result is not None:
        check_same_robot(config, result)
        config = attrs.evolve(config, identify=attrs.evolve(config.identify, equations=_equation_type(result)))
    subject = _subject(options, config, result)
    model = subject.model
    with progress_bar(options) as progress:
        recordings = recordings_of_any_length(options.recordings, config, model.recorded_joints)
        dataset = Dataset.screened(model, config, recordings)
        dataset = dataset.prepared(dataset.cutoff(subject.cutoff), lambda fraction: progress("preparing", fraction))
        samples = [without_delay(prepared, subject.delay) for prepared in dataset.samples()]
        progress("validating", 0.9)
        equations = equations_of(model, config.identify.equations)
        errors = torque_errors(equations, subject.parameters, samples)
        prior = torque_errors(equations, subject.baseline, samples) if subject.baseline is not None else None
        reference = subject.parameters if subject.baseline is None else subject.baseline
        comparison = compared(equations, (reference, subject.parameters), samples, (errors, prior))
    findings = [finding for prepared in samples for finding in prepared.findings]
    fitted_before = subject.fitted([recording.first for recording in dataset.recordings])
    gate = GateDecision.from_findings([*findings, *fitted_before, *check_errors(comparison)])
    status = "rejected" if gate.verdict is Verdict.REJECT else "passed"
    against = "" if prior is None else f" against {percent(prior.relative_error)} of the URDF as given"
    message = f"{errors.quantity} error {percent(errors.relative_error)}{against}: {status}, {gate.verdict.value}"
    content: dict[str, Any] = {"joint_names": model.joint_names, "channels": equations.channels}
    content["validation"] = asdict(errors)
    if prior is not None:
        content["prior"] = asdict(prior)
    in_parts = [f"{long.name}: {long.notice}" for long in recordings if isinstance(long, LongRecording)]
    if in_parts:
        content["in_parts"] = in_parts
    content |= {"passed": status == "passed", "message": message, **gate.content()}
    if options.json:
        print_json(content)
    else:
        _print(equations.channels, errors, prior)
        for notice in in_parts:
            print(notice)
        print_verdict(content)
    warn_of_care(gate)
    return REJECTED if gate.verdict is Verdict.REJECT else 0


def _equation_type(result: Result) -> str:
    """Type of the equations that a result was fitted with."""
    stored = result.report["provenance"].get("configuration") or {}
    return str(stored.get("identify", {}).get("equations", Configuration().identify.equations))


def _subject(options: argparse.Namespace, config: Configuration, result: Result | None) -> _Subject:
    if result is not None:
        subject = _Subject(result.model, result.parameters, result.prior, result)
    else:
        model = load_model(Path(options.subject), model_options(config.robot))
        subject = _Subject(model, model.prior, None, None)
    if not options.urdf:
        return subject
    other = load_model(Path(options.urdf), subject.model.options)
    if other.joint_names != subject.model.joint_names or other.hash != subject.model.hash:
        raise ModelError(
            f"{options.urdf}: has other joints or another geometry than the robot validated; give its description"
        )
    return replace(subject, baseline=other.prior)


def _print(channels: Sequence[str], errors: TorqueErrors, prior: TorqueErrors | None) -> None:
    header = ["channel", errors.quantity, "error"] + (["URDF as given"] if prior else [])
    rows = []
    for index, name in enumerate(channels):
        row = [name, number(errors.rms_torque[index]), number(errors.rms_error[index])]
        rows.append(row + ([number(prior.rms_error[index])] if prior else []))
    print_table(f"{errors.quantity.capitalize()} error (RMS, {errors.unit})", header, rows)
