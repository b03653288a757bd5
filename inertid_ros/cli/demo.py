"""``inertid demo``: simulate an arm with a wrong URDF, and run the commands of the first guide on it."""

import argparse
import shlex
from pathlib import Path

from inertid_ros.core.outputs import check_directory
from inertid_ros.simulation.examples import arm

from . import main

SECONDS = 10.0  # of each recording


def run(options: argparse.Namespace) -> int:
    """Run the command; return the exit status of the last command that it runs."""
    folder = Path(options.output)
    check_directory(folder, "demo")
    arm(folder, SECONDS)
    inside = shlex.quote(str(folder))
    print(f"simulated an arm: {inside}/robot.urdf has wrong masses and no friction, {inside}/truth.urdf is the true"
        f" arm; recordings: {inside}/run1_bag, run2_bag, box_bag")
    status = 0
    for command in (
        f"info {inside}/run1_bag",
        f"validate {inside}/robot.urdf {inside}/run2_bag",
        f"identify {inside}/run1_bag --urdf {inside}/robot.urdf --validate {inside}/run2_bag --output {inside}/result",
        f"validate {inside}/truth.urdf {inside}/run2_bag"):
        print(f"\n$ inertid {command}")
        status = main.main(shlex.split(command))
    print(f"\nopen {inside}/result/report.html; {inside}/result/calibrated.urdf is the calibrated arm")
    return status
