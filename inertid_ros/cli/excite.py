"""``inertid excite``: plan an exciting motion, or inspect one that exists."""

import argparse
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from inertid_ros.app.earlier_result import earlier_result
from inertid_ros.config.configuration import ExcitationConfiguration
from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.core.outputs import check_directory
from inertid_ros.excitation.constraints.collision.surroundings import surroundings
from inertid_ros.excitation.constraints.motion_constraints import motion_constraints
from inertid_ros.excitation.criteria.earlier_information import EarlierInformation
from inertid_ros.excitation.execution.plan_check import check_plan
from inertid_ros.excitation.inspection import Inspection, inspect_plan
from inertid_ros.excitation.limits.constraint import Constraint
from inertid_ros.excitation.limits.motion_limits import MotionLimits, motion_limits
from inertid_ros.excitation.planner import plan_excitation, refuse_free_base
from inertid_ros.excitation.planning.optimize import PlanningProgress
from inertid_ros.excitation.planning.start_pose import rest_pose
from inertid_ros.excitation.plans.plan import Plan
from inertid_ros.excitation.plans.plan_file import load_motion
from inertid_ros.report.pages import motion_files
from inertid_ros.robot.configured_model import model_options
from inertid_ros.robot.model import RobotModel, load_model

from .excite_floating import excite_floating
from .printing.motion_output import FITTED, HELD_OUT, MOTION, print_motion, summarise, write_motion
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
    refuse_free_base(model)
    constraints = motion_constraints(model, limits, config.excitation)
    around = surroundings(model, limits, config.excitation)

    planned: dict[str, PlanningProgress | None] = {}
    inspections: dict[str, Inspection] = {}
    with progress_bar(options, "checking" if options.check else "planning") as progress:
        for purpose, plan, end in _plans(options, config, model, limits, constraints, earlier, progress):
            check_plan(plan, model, limits, constraints=constraints)
            inspections[purpose] = inspect_plan(plan, model, limits, constraints, earlier, around)
            planned[purpose] = end
        progress("checking", 1.0)
    for finding in dict.fromkeys(finding for motion in inspections.values() for finding in motion.findings):
        _log.warning("warning: %s", finding)
    summaries = {name: summarise(motion, model, config, planned[name]) for name, motion in inspections.items()}
    first, held_out = next(iter(summaries.values())), summaries.get(HELD_OUT)
    summary = {**first, **({"held_out": held_out} if held_out else {})}
    written = {"plan_file": str(options.check)}
    if options.output:
        pages = motion_files([(name, motion, summaries[name]) for name, motion in inspections.items()])
        plans = [motion.plan for motion in inspections.values()]
        written = write_motion(plans, summary, Path(options.output), options.force, pages)
    if options.json:
        print_json({**summary, **written})
        return 0
    for name, motion in summaries.items():
        print_motion(motion, name)
    print(f"written to {' and '.join(written.values())}" if options.output else f"{options.check}: keeps every limit")
    return 0


def _plans(
    options: argparse.Namespace,
    config: ExcitationConfiguration,
    model: RobotModel,
    limits: MotionLimits,
    constraints: Sequence[Constraint],
    earlier: EarlierInformation | None,
    progress: Callable[[str, float], None],
) -> Iterator[tuple[str, Plan, PlanningProgress | None]]:
    """Purpose, plan and end of planning of every motion; one to check has neither purpose nor planning."""
    if options.check:
        yield "", load_motion(options.check, limits), None
        return
    named = [name in named_numbers(options.start, "--start") for name in limits.joint_names]
    start = rest_pose(model, limits, constraints, _start(options.start, limits), np.array(named))
    for purpose, wanted in _motions(config.excitation, bool(options.prior)).items():
        reports: list[PlanningProgress] = []

        def report(
            now: PlanningProgress, purpose: str = purpose, reports: list[PlanningProgress] = reports
        ) -> None:
            reports[:] = [now]
            progress(f"planning {purpose} {number(now.value)}", now.fraction)

        with ends_early():
            plan = plan_excitation(model, limits, start, wanted, report, earlier)
        yield purpose, plan, reports[0] if reports else None


def _motions(options: ExcitationOptions, continues: bool) -> Mapping[str, ExcitationOptions]:
    """What to plan, by what each motion is for; recordings that are continued have held-out ones already."""
    return {FITTED: options} if continues else {FITTED: options, HELD_OUT: options.held_out}


def _start(texts: Sequence[str], limits: MotionLimits) -> Array:
    """Middle of the ranges, except for the joints that ``--start`` names."""
    start = 0.5 * (limits.lower + limits.upper)
    for joint, position in named_numbers(texts, "--start").items():
        if joint not in limits.joint_names:
            names = ", ".join(limits.joint_names)
            raise ExcitationError(f"--start {joint}={position:g}: the robot has no such joint; it has {names}")
        start[limits.joint_names.index(joint)] = position
    return start
