"""``inertid excite``: plan an exciting motion, or inspect one that exists."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from inertid_ros.app.earlier_result import earlier_result
from inertid_ros.config.configuration import ExcitationConfiguration
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.core.outputs import check_directory
from inertid_ros.excitation.constraints.collision.surroundings import surroundings
from inertid_ros.excitation.constraints.motion_constraints import motion_constraints
from inertid_ros.excitation.execution.plan_check import check_plan
from inertid_ros.excitation.inspection import inspect_plan
from inertid_ros.excitation.limits.motion_limits import MotionLimits, motion_limits
from inertid_ros.excitation.planner import plan_excitation
from inertid_ros.excitation.planning.optimize import PlanningProgress
from inertid_ros.excitation.planning.start_pose import rest_pose
from inertid_ros.excitation.plans.plan_file import load_motion
from inertid_ros.report.pages import motion_files
from inertid_ros.robot.configured_model import model_options
from inertid_ros.robot.model import load_model

from .excite_floating import excite_floating
from .printing.motion_output import MOTION, PLAN, print_motion, summarise, write_motion
from .printing.output import number, print_json, progress_bar
from .settings import configuration, inputs, named_numbers
from .stopping import ends_early

_log = logging.getLogger(__name__)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.output:
        check_directory(options.output, MOTION, options.force, inputs(options))
    elif not options.check:
        raise ExcitationError("--output is missing; name the directory to write, or a plan to inspect with --check")
    config = configuration(options, ExcitationConfiguration)
    model = load_model(Path(options.urdf), model_options(config.robot))
    earlier = None
    if options.prior:
        model, earlier = earlier_result(options.prior, model)
    limits = motion_limits(model, config.limits)
    if model.free and model.wheels.names:
        return excite_floating(options, model, config, limits, _start(options.start, limits))
    if model.free:
        raise ExcitationError(
            f"{model.name}: its base is free (robot.base), so its motion cannot be planned; plan with"
            " robot.base fixed for a robot whose root link rests on the ground, or give robot.wheels of one that floats"
        )
    planned: PlanningProgress | None = None
    with progress_bar(options, "checking" if options.check else "planning") as progress:

        def report(now: PlanningProgress) -> None:
            nonlocal planned
            planned = now
            progress(f"planning {number(now.value)}", now.fraction)

        plan = load_motion(options.check, limits) if options.check else None
        constraints = motion_constraints(model, limits, config.excitation)
        if plan is None:
            named = [name in named_numbers(options.start, "--start") for name in limits.joint_names]
            start = rest_pose(model, limits, constraints, _start(options.start, limits), np.array(named))
            with ends_early():
                plan = plan_excitation(model, limits, start, config.excitation, report, earlier)
        progress("checking", 1.0)
        check_plan(plan, model, limits, constraints=constraints)
        around = surroundings(model, limits, config.excitation)
        inspection = inspect_plan(plan, model, limits, constraints, earlier, around)
    for finding in inspection.findings:
        _log.warning("warning: %s", finding)
    summary = summarise(inspection, model, config, planned)
    if options.output:
        pages = motion_files(inspection, summary)
        write_motion(inspection.plan, summary, Path(options.output), options.force, pages)
    files = {"plan_file": str(Path(options.output) / PLAN)} if options.output else {"plan_file": str(options.check)}
    if options.json:
        print_json({**summary, **files})
        return 0
    print_motion(summary)
    print(f"written to {files['plan_file']}" if options.output else f"{options.check}: keeps every limit")
    return 0


def _start(texts: Sequence[str], limits: MotionLimits) -> Array:
    """Middle of the ranges, except for the joints that ``--start`` names."""
    start = 0.5 * (limits.lower + limits.upper)
    for joint, position in named_numbers(texts, "--start").items():
        if joint not in limits.joint_names:
            names = ", ".join(limits.joint_names)
            raise ExcitationError(f"--start {joint}={position:g}: the robot has no such joint; it has {names}")
        start[limits.joint_names.index(joint)] = position
    return start
