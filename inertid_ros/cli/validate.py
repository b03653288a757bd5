"""``inertid validate``: a result or a URDF against recordings."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from inertid_ros.app.screened_samples import screened_samples, with_common_filter
from inertid_ros.config.configuration import Configuration
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.identification.assessment.error_checks import check_errors
from inertid_ros.identification.assessment.gate import GateDecision, Verdict
from inertid_ros.identification.assessment.validation import TorqueErrors, compared, torque_errors
from inertid_ros.identification.information.delay import without_delay
from inertid_ros.regressors.equations import equations_of
from inertid_ros.report.results import read_result
from inertid_ros.robot.configured_model import model_options
from inertid_ros.robot.model import RobotModel, load_model

from .output import number, percent, print_json, print_table, progress_bar, warn_of_care
from .report_tables import print_verdict
from .settings import configuration, recordings_from

_REJECTED = 3


def run(options: argparse.Namespace) -> int:
    """Run the command; 3 where the subject is not to be used on these recordings."""
    config = configuration(options, Configuration)
    model, parameters, baseline, delay, cutoff = _subject(options, config)
    with progress_bar(options) as progress:
        recordings = recordings_from(options.recordings, config, model.recorded_joints)
        samples = []
        config = with_common_filter(recordings, model, config, cutoff_hz=cutoff)
        for index, recording in enumerate(recordings):
            progress("preparing", index / len(recordings))
            samples.append(without_delay(screened_samples(recording, model, config), delay))
        progress("validating", 0.9)
        equations = equations_of(model, config.identify.equations)
        errors = torque_errors(equations, parameters, samples)
        prior = torque_errors(equations, baseline, samples) if baseline is not None else None
    findings = [finding for each in samples for finding in each.findings]
    gate = GateDecision.of([*findings, *check_errors(compared(equations, errors, prior))])
    status = "rejected" if gate.verdict is Verdict.REJECT else "passed"
    against = "" if prior is None else f" against {percent(prior.relative_error)} of the URDF as given"
    message = f"torque error {percent(errors.relative_error)}{against}: {status}, {gate.verdict.value}"
    content: dict[str, Any] = {"joint_names": model.joint_names, "channels": equations.channels}
    content["validation"] = asdict(errors)
    if prior is not None:
        content["prior"] = asdict(prior)
    content |= {"passed": status == "passed", "message": message, **gate.content()}
    if options.json:
        print_json(content)
    else:
        _print(equations.channels, errors, prior)
        print_verdict(content)
    warn_of_care(gate)
    return _REJECTED if gate.verdict is Verdict.REJECT else 0


def _subject(
    options: argparse.Namespace, config: Configuration
) -> tuple[RobotModel, Array, Array | None, float, float]:
    """Model, its parameters, the parameters to compare with, the identified delay of effort [s], and the cutoff with
    which a result was identified [Hz], 0 of a URDF."""
    baseline, delay, cutoff = None, 0.0, 0.0
    if Path(options.subject).is_dir():
        result = read_result(options.subject)
        model, parameters, baseline = result.model, result.parameters, result.prior
        delay = float(result.report.get("effort_delay_s") or 0.0)
        cutoff = float(result.report["provenance"].get("cutoff_hz") or 0.0)
    else:
        model = load_model(Path(options.subject), model_options(config.robot))
        parameters = model.prior
    if options.urdf:
        other = load_model(Path(options.urdf), model.options)
        if other.joint_names != model.joint_names or other.hash != model.hash:
            raise ModelError(
                f"{options.urdf}: has other joints or another geometry than the robot validated; give its description"
            )
        baseline = other.prior
    return model, parameters, baseline, delay, cutoff


def _print(channels: Sequence[str], errors: TorqueErrors, prior: TorqueErrors | None) -> None:
    header = ["joint", "torque", "error"] + (["URDF as given"] if prior else [])
    rows = []
    for index, name in enumerate(channels):
        row = [name, number(errors.rms_torque[index]), number(errors.rms_error[index])]
        rows.append(row + ([number(prior.rms_error[index])] if prior else []))
    print_table("Torque error (RMS, N m or N)", header, rows)
