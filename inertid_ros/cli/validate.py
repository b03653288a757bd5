"""``inertid validate``: validate a result or a URDF on recordings."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inertid_ros.calibration.validation import ValidationOutcome, validate
from inertid_ros.config.configuration import Configuration
from inertid_ros.data.long_recording import LongRecording
from inertid_ros.report.results import Result
from inertid_ros.robot.model import load_model

from .printing import care, deliver, print_table, print_verdict, progress_bar
from .settings import check_same_robot, configuration, recordings_of_any_length
from .stopping import DONE, REJECTED


def run(options: argparse.Namespace) -> int:
    """Run the command; exit status 3 if the subject must not be used for motions like the recorded ones."""
    result = Result.load(options.subject) if Path(options.subject).is_dir() else None
    config = configuration(options, Configuration)
    if result is not None:
        check_same_robot(config, result)
    model = load_model(Path(options.subject), config.robot) if result is None else result.model
    with progress_bar(options) as progress:
        recordings = recordings_of_any_length(options.recordings, config, model.recorded_joints)
        outcome = validate(model if result is None else result, recordings, config, options.urdf or "", progress)
    in_parts = [f"{long.name}: {long.notice}" for long in recordings if isinstance(long, LongRecording)]
    content = {"joint_names": model.joint_names, "channels": outcome.channels, "validation": outcome.errors,
        **({} if outcome.prior is None else {"prior": outcome.prior}), **({"in_parts": in_parts} if in_parts else {}),
        "passed": outcome.passed, "message": outcome.message, **outcome.gate.content()}
    status = DONE if outcome.passed else REJECTED
    return deliver(options, content, lambda: _print(outcome, content), "", care(outcome.gate, options), status)


def _print(outcome: ValidationOutcome, content: Mapping[str, Any]) -> None:
    errors, prior = outcome.errors, outcome.prior
    columns = {"channel": outcome.channels, errors.quantity: errors.rms_torque, "error": errors.rms_error}
    if prior is not None:
        columns[outcome.prior_name] = prior.rms_error
    rows = zip(*columns.values(), strict=True)
    print_table(f"{errors.quantity.capitalize()} error (RMS, {errors.unit})", tuple(columns), rows)
    for notice in content.get("in_parts", ()):
        print(notice)
    print_verdict(content)
