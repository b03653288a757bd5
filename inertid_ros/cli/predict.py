"""``inertid predict``: predict torque along a motion for feed-forward control, or of a recording by cause."""

import argparse
from pathlib import Path

import numpy as np

from inertid_ros.calibration.prediction import RecordedTorque, recorded_torque, torque_along
from inertid_ros.config.configuration import Configuration
from inertid_ros.core.errors import ConfigurationError
from inertid_ros.core.formats import csv_text
from inertid_ros.core.outputs import check_file, write_file
from inertid_ros.excitation.plan import joint_trajectory_text
from inertid_ros.report.results import Result

from .printing import deliver, percent, print_table
from .settings import check_same_robot, configuration, inputs, recordings_of_any_length, rejection


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    is_motion = Path(options.motion).suffix in (".yaml", ".yml")
    for option, path, needs_motion in (("--fill", options.fill, True), ("--table", options.table, False)):
        if path and is_motion != needs_motion:
            what = "a motion in YAML" if needs_motion else "a recording"
            raise ConfigurationError(f"{option} needs {what}; {options.motion} is not one")
        if path:
            check_file(path, options.force, inputs(options))
    if is_motion and (options.config or options.set or options.lock):
        raise ConfigurationError("--config, --set and --lock have no effect on a motion; leave them out")
    result = Result.load(options.result)
    return _motion(options, result) if is_motion else _recording(options, result)


def _motion(options: argparse.Namespace, result: Result) -> int:
    prediction = torque_along(result, options.motion)
    if options.fill:
        text = joint_trajectory_text(prediction.motion, prediction.joint_names, prediction.torque)
        write_file(options.fill, text.encode(), options.force)
    rms, largest = np.sqrt(np.mean(prediction.torque**2, axis=0)), np.abs(prediction.torque).max(axis=0)
    uncertain = np.sqrt(np.mean(prediction.deviation**2, axis=0))
    limit = np.where(np.isfinite(prediction.limit), prediction.limit, np.nan)

    def show() -> None:
        shares = ["-" if np.isnan(bound) else percent(size / bound) for size, bound in zip(largest, limit, strict=True)]
        rows = zip(prediction.joint_names, rms, largest, shares, uncertain, strict=True)
        header = ("joint", "torque (RMS)", "largest", "of the limit", "standard deviation (RMS)")
        print_table("Torque along the motion [N m or N]", header, rows)

    content = {
        "joint_names": prediction.joint_names, "time": prediction.motion.time, "torque": prediction.torque,
        "standard_deviation": prediction.deviation, "limit": limit, "verdict": result.report.get("verdict")}
    return deliver(options, content, show, options.fill, rejection(result))


def _recording(options: argparse.Namespace, result: Result) -> int:
    config = configuration(options, Configuration)
    check_same_robot(config, result)
    (recording,) = recordings_of_any_length([options.motion], config, result.model.recorded_joints)
    torque = recorded_torque(result, recording, config)
    if options.table:
        write_file(options.table, _table(torque).encode(), options.force)
    columns = {"measured": torque.measured, **torque.causes, "error": torque.measured - torque.predicted,
        "standard deviation": torque.deviation}
    rms = {name: np.sqrt(np.mean(values**2, axis=0)) for name, values in columns.items()}

    def show() -> None:
        quantity, unit = torque.quantity
        rows = zip(torque.channels, *rms.values(), strict=True)
        print_table(f"{quantity.capitalize()} of the recording and its causes (RMS, {unit})", ("channel", *rms), rows)
        for each in torque.whole_body:
            known = each.value[np.isfinite(each.value).all(axis=1)]
            if not len(known):
                print(f"{each.name}: unknown, because every sample lacks an effort or a wrench")
                continue
            size, deviation = (np.sqrt(np.mean(part**2, axis=0)) for part in (known, each.deviation))
            header = ("channel", "RMS", "smallest", "largest", "standard deviation")
            print_table(each.name[0].upper() + each.name[1:], header,
                zip(each.channels, size, known.min(axis=0), known.max(axis=0), deviation, strict=True))

    content = {"channels": torque.channels, "rms": rms, "time": torque.time, "measured": torque.measured,
        "predicted": torque.predicted, "causes": torque.causes, "standard_deviation": torque.deviation,
        "whole_body": {each.name: {"channels": each.channels, "value": each.value,
            "standard_deviation": each.deviation} for each in torque.whole_body},
        "verdict": result.report.get("verdict")}
    return deliver(options, content, show, options.table, rejection(result))


def _table(torque: RecordedTorque) -> str:
    """CSV: time; measurement, prediction, deviation and causes of every channel; then the quantities of the robot."""
    parts = {"measured": torque.measured, "predicted": torque.predicted, "standard_deviation": torque.deviation,
        **torque.causes}
    header = ["time", *(f"{channel}.{part}" for channel in torque.channels for part in parts)]
    values = [np.stack(list(parts.values()), axis=2).reshape(len(torque.time), -1)]
    for each in torque.whole_body:
        header += [f"{each.name}.{channel}{part}" for channel in each.channels for part in ("", ".standard_deviation")]
        values.append(np.stack([each.value, each.deviation], axis=2).reshape(len(torque.time), -1))
    return csv_text([header, *np.column_stack([torque.time, *values]).tolist()])
