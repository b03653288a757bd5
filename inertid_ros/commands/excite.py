"""``inertid excite``: plan an exciting motion."""

import argparse
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..configuration import ExcitationConfiguration
from ..entries import positions
from ..errors import ExcitationError, ModelError
from ..excitation.check import check_plan
from ..excitation.constraints import motion_constraints
from ..excitation.limits import MotionLimits, motion_limits, usage
from ..excitation.optimize import PlanningProgress, plan_excitation
from ..excitation.plan import Plan
from ..excitation.plan_file import save_plan
from ..files import write_directory
from ..report.outcome import plain
from ..report.results import check_target, read_result
from ..robot.model import RobotModel, load_model
from ..robot.parameters import Array
from .common import configuration, number, percent, print_json, print_table, progress_bar, set_up_logging

PLAN, SUMMARY = "plan.yaml", "excitation.json"


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    set_up_logging(options)
    check_target(options.output, options.force, (PLAN, SUMMARY))
    config = configuration(options, ExcitationConfiguration)
    model = load_model(Path(options.urdf), config.robot.model_options())
    if options.prior:
        model = _calibrated(options.prior, model)
    limits = motion_limits(model, config.limits)
    start = _start(options.start, limits)
    with progress_bar(options) as progress:

        def report(now: PlanningProgress) -> None:
            progress(f"planning {number(now.condition_number)}", now.fraction)

        plan = plan_excitation(model, limits, start, config.excitation, report)
        check_plan(plan, model, limits, constraints=motion_constraints(model, limits, config.excitation))
    summary = plain(_summary(plan, model, limits, config))
    _write(plan, summary, Path(options.output), options.force)
    if options.json:
        print_json({**summary, "plan_file": str(Path(options.output) / PLAN)})
        return 0
    header = ("joint", "from", "to", "of the range", "of the velocity", "of the acceleration")
    print_table(f"{plan.kind} motion of {number(plan.duration)} s", header, map(_row, summary["joints"]))
    print(f"condition number of the base regressor {number(summary['condition_number'])}")
    print(f"written to {Path(options.output) / PLAN}")
    return 0


def _calibrated(directory: str, model: RobotModel) -> RobotModel:
    """The same robot with the inertia of a result, for the effort that a motion needs."""
    result = read_result(directory)
    if result.model.joint_names != model.joint_names or result.model.hash != model.hash:
        raise ModelError(f"{directory}: is of another robot, or has other joints locked; give the result of this one")
    return result.model


def _start(entries: Sequence[str], limits: MotionLimits) -> Array:
    """Middle of the ranges, but for the joints that ``--start`` names."""
    start = 0.5 * (limits.lower + limits.upper)
    for joint, position in positions(entries, "--start").items():
        if joint not in limits.joint_names:
            known = ", ".join(limits.joint_names)
            raise ExcitationError(f"--start {joint}={position:g}: the robot has no such joint; it has {known}")
        start[limits.joint_names.index(joint)] = position
    return start


def _summary(plan: Plan, model: RobotModel, limits: MotionLimits, config: ExcitationConfiguration) -> dict[str, Any]:
    position, velocity, acceleration = usage(plan.curve, limits)
    joints = [
        {
            "name": name,
            "lowest": plan.position[:, i].min(),
            "highest": plan.position[:, i].max(),
            "range_used": position[i],
            "velocity_used": velocity[i],
            "acceleration_used": acceleration[i],
        }
        for i, name in enumerate(plan.joint_names)
    ]
    return {
        "robot": model.name,
        "model_hash": model.hash,
        "kind": plan.kind,
        "seed": plan.seed,
        "duration": plan.duration,
        "points": len(plan.time),
        "condition_number": plan.condition_number,
        "joints": joints,
        "configuration": asdict(config),
    }


def _row(joint: dict[str, Any]) -> tuple[str, ...]:
    shares = (percent(joint[key]) for key in ("range_used", "velocity_used", "acceleration_used"))
    return (joint["name"], number(joint["lowest"]), number(joint["highest"]), *shares)


def _write(plan: Plan, summary: dict[str, Any], target: Path, force: bool) -> None:
    try:
        with tempfile.TemporaryDirectory() as scratch:
            save_plan(plan, Path(scratch) / PLAN)
            content = (Path(scratch) / PLAN).read_bytes()
        text = json.dumps(summary, indent=1, allow_nan=False) + "\n"
        write_directory(target, {PLAN: content, SUMMARY: text.encode()}, force)
    except OSError as error:
        raise ExcitationError(f"{target}: cannot be written ({error.strerror}); choose another directory") from None
