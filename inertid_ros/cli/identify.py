"""``inertid identify``: identify a robot from recordings; write a result directory."""

import argparse
import time
from dataclasses import replace
from pathlib import Path

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.cli.printing import care, deliver, print_report, progress_bar
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import MOMENTUM_EQUATIONS
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.outputs import check_directory
from inertid_ros.report.results import RESULT
from inertid_ros.robot.model import load_model

from .settings import configuration, inputs, recordings_of_any_length
from .stopping import DONE, REJECTED


def run(options: argparse.Namespace) -> int:
    """Run the command; a rejected result is written too, with exit status 3."""
    start = time.perf_counter()
    fitted = {Path(path).resolve() for path in options.recordings}
    for path in options.validate:
        if Path(path).resolve() in fitted:
            raise RecordingError(f"{path}: is used in the fit, so it cannot validate the fit; give another recording")
    config = configuration(options, Configuration, _settings_of(options))
    check_directory(options.output, RESULT, options.force, (*inputs(options), *config.identify.prior))
    model = load_model(Path(options.urdf), config.robot)
    with progress_bar(options) as progress:
        progress("reading", 0.0)
        train, held_out = (recordings_of_any_length(paths, config, model.recorded_joints)
            for paths in (options.recordings, options.validate))
        read = time.perf_counter() - start
        outcome = calibrate(model, train, held_out, config, lambda now: progress(now.stage, 0.1 + 0.7 * now.fraction))
        timing = {"reading": read, **outcome.timing, "total": time.perf_counter() - start}
        origin = replace(outcome.provenance, command=options.command_line)
        outcome = replace(outcome, timing=timing, provenance=origin)
        progress("writing", 0.8)
        directory = outcome.save(options.output, options.force)
    content = {**outcome.report, "result_directory": str(directory)}
    status = DONE if outcome.passed else REJECTED
    warnings = care(outcome.gate, options)
    return deliver(options, content, lambda: print_report(outcome.report), directory, warnings, status)


def _settings_of(options: argparse.Namespace) -> dict[str, object]:
    """Return the settings that ``--model`` and ``--prior`` imply."""
    implied: dict[str, object] = {} if options.model is None else {"identify.equations": options.model}
    if options.model in MOMENTUM_EQUATIONS:
        implied["robot.base"] = "free"
    return implied if options.prior is None else {**implied, "identify.prior": options.prior}
