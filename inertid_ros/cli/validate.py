"""``inertid validate``: a result or a URDF against recordings."""

import argparse
from pathlib import Path
from typing import Any

from inertid_ros.calibration.validation import ValidationOutcome, validate
from inertid_ros.config.configuration import Configuration
from inertid_ros.data.long_recording import LongRecording
from inertid_ros.report.results import Result
from inertid_ros.robot.model import load_model

from .printing import number, print_json, print_table, print_verdict, progress_bar, warn_of_care
from .settings import check_same_robot, configuration, recordings_of_any_length
from .stopping import REJECTED


def run(options: argparse.Namespace) -> int:
    """Run the command; exit status 3 if the subject must not be used for such motions."""
    result = Result.load(options.subject) if Path(options.subject).is_dir() else None
    config = configuration(options, Configuration)
    if result is not None:
        check_same_robot(config, result)
    model = load_model(Path(options.subject), config.robot) if result is None else result.model
    with progress_bar(options) as progress:
        recordings = recordings_of_any_length(options.recordings, config, model.recorded_joints)
        outcome = validate(model if result is None else result, recordings, config, options.urdf or "", progress)
    content: dict[str, Any] = {"joint_names": model.joint_names, "channels": outcome.channels}
    content["validation"] = outcome.errors
    if outcome.prior is not None:
        content["prior"] = outcome.prior
    in_parts = [f"{long.name}: {long.notice}" for long in recordings if isinstance(long, LongRecording)]
    if in_parts:
        content["in_parts"] = in_parts
    content |= {"passed": outcome.passed, "message": outcome.message, **outcome.gate.content()}
    if options.json:
        print_json(content)
    else:
        _print(outcome)
        for notice in in_parts:
            print(notice)
        print_verdict(content)
    warn_of_care(outcome.gate)
    return 0 if outcome.passed else REJECTED


def _print(outcome: ValidationOutcome) -> None:
    errors, prior = outcome.errors, outcome.prior
    header = ["channel", errors.quantity, "error"]
    columns = [errors.rms_torque, errors.rms_error]
    if prior is not None:
        header.append("URDF as given")
        columns.append(prior.rms_error)
    rows = [(name, *map(number, values)) for name, *values in zip(outcome.channels, *columns, strict=True)]
    print_table(f"{errors.quantity.capitalize()} error (RMS, {errors.unit})", header, rows)
