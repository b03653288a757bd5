"""``inertid predict``: predict torque along a motion, and write it as feed-forward to the points of a trajectory."""

import argparse

import numpy as np

from inertid_ros.calibration.prediction import torque_along
from inertid_ros.core.outputs import check_file, write_file
from inertid_ros.excitation.plan_file import joint_trajectory_text
from inertid_ros.report.results import Result

from .printing import deliver, number, percent, print_table
from .settings import inputs


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.fill:
        check_file(options.fill, options.force, inputs(options))
    result = Result.load(options.result)
    prediction = torque_along(result, options.motion)
    if options.fill:
        text = joint_trajectory_text(prediction.motion, prediction.joint_names, prediction.torque)
        write_file(options.fill, text.encode(), options.force)
    rms, largest = np.sqrt(np.mean(prediction.torque**2, axis=0)), np.abs(prediction.torque).max(axis=0)
    uncertain = np.sqrt(np.mean(prediction.deviation**2, axis=0))
    limit = np.where(np.isfinite(prediction.limit), prediction.limit, np.nan)

    def show() -> None:
        shares = ["-" if np.isnan(bound) else percent(size / bound) for size, bound in zip(largest, limit, strict=True)]
        columns = (prediction.joint_names, map(number, rms), map(number, largest), shares, map(number, uncertain))
        header = ("joint", "torque (RMS)", "largest", "of the limit", "standard deviation (RMS)")
        print_table("Torque along the motion [N m or N]", header, list(zip(*columns, strict=True)))

    content = {
        "joint_names": prediction.joint_names, "time": prediction.motion.time, "torque": prediction.torque,
        "standard_deviation": prediction.deviation, "limit": limit, "verdict": result.report.get("verdict")}
    rejected = ["the verdict on this result is 'do not use'"] if result.rejected else []
    return deliver(options, content, show, options.fill, rejected)
