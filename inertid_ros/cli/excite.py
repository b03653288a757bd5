"""``inertid excite``: plan an exciting motion, or inspect one that exists."""

import argparse
import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from inertid_ros.calibration.earlier_result import earlier_result
from inertid_ros.cli.printing import ShowProgress, number, percent, print_json, print_table, progress_bar
from inertid_ros.cli.settings import configuration, inputs, named_numbers
from inertid_ros.cli.stopping import ends_early
from inertid_ros.config.configuration import ExcitationConfiguration
from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.core.outputs import check_directory, write_directory
from inertid_ros.excitation.constraints.constraint import Clearance
from inertid_ros.excitation.constraints.motion_constraints import motion_constraints, surroundings
from inertid_ros.excitation.execution.plan_check import check_plan
from inertid_ros.excitation.motion_limits import MotionLimits, check_curve, motion_limits
from inertid_ros.excitation.motions import Concatenation, QuinticRamp
from inertid_ros.excitation.plan import Plan, plan_of
from inertid_ros.excitation.plan_file import joint_trajectory_text, load_motion, plan_text
from inertid_ros.excitation.planning.criterion import EarlierInformation
from inertid_ros.excitation.planning.floating_base import floating_problem, with_wheels
from inertid_ros.excitation.planning.inspection import USAGE_CHANNELS, Inspection, inspect_plan
from inertid_ros.excitation.planning.interval_planner import IntervalPlan, plan_intervals
from inertid_ros.excitation.planning.planner import PlanningProgress, plan_excitation, refuse_free_base
from inertid_ros.excitation.planning.start_pose import rest_pose
from inertid_ros.report.pages import motion_files
from inertid_ros.report.report_content import plain
from inertid_ros.robot.model import RobotModel, load_model, model_options

_log = logging.getLogger(__name__)
_APPROACH_USE = 0.8  # share of the limits on the way to the first waypoint
MOTION = "motion"  # kind of output
PLAN, VALIDATION_PLAN = "plan.yaml", "validation_plan.yaml"
SUMMARY, TRAJECTORY = "excitation.json", "joint_trajectory.yaml"
FITTED, HELD_OUT = "to fit", "to validate"
_USED = dict(zip(("range_used", "velocity_used", "acceleration_used", "effort_used"), USAGE_CHANNELS, strict=True))


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
        return _excite_floating(options, model, config, limits, _start(options.start, limits))
    refuse_free_base(model)
    constraints = motion_constraints(model, limits, config.excitation)
    around = surroundings(model, limits, config.excitation)

    planned: dict[str, PlanningProgress | None] = {}
    inspections: dict[str, Inspection] = {}
    with progress_bar(options, "checking" if options.check else "planning") as progress:
        plans: Iterable[tuple[str, Plan, PlanningProgress | None]]
        if options.check:
            plans = [("", load_motion(options.check, limits), None)]
        else:
            named = [name in named_numbers(options.start, "--start") for name in limits.joint_names]
            start = rest_pose(model, limits, constraints, _start(options.start, limits), np.array(named))
            plans = _planned(config.excitation, model, limits, start, earlier, progress)
        for purpose, plan, end in plans:
            check_plan(plan, model, limits, constraints=constraints)
            inspections[purpose] = inspect_plan(plan, model, limits, constraints, earlier, around)
            planned[purpose] = end
        progress("checking", 1.0)
    for finding in dict.fromkeys(finding for motion in inspections.values() for finding in motion.findings):
        _log.warning("warning: %s", finding)
    summaries = {name: _summary(motion, model, config, planned[name]) for name, motion in inspections.items()}
    first, held_out = next(iter(summaries.values())), summaries.get(HELD_OUT)
    summary = {**first, **({"held_out": held_out} if held_out else {})}
    written = {"plan_file": str(options.check)}
    if options.output:
        pages = motion_files([(name, motion, summaries[name]) for name, motion in inspections.items()])
        planned_motions = [motion.plan for motion in inspections.values()]
        written = _write_motion(planned_motions, summary, Path(options.output), options.force, pages)
    if options.json:
        print_json({**summary, **written})
        return 0
    for name, motion in summaries.items():
        _print_motion(motion, name)
    print(f"written to {' and '.join(written.values())}" if options.output else f"{options.check}: keeps every limit")
    return 0


def _planned(
    options: ExcitationOptions,
    model: RobotModel,
    limits: MotionLimits,
    start: Array,
    earlier: EarlierInformation | None,
    progress: ShowProgress,
) -> Iterator[tuple[str, Plan, PlanningProgress | None]]:
    """Purpose, plan and end of planning of every motion; an earlier result has its held-out recordings already."""
    motions = {FITTED: options} if earlier is not None else {FITTED: options, HELD_OUT: options.held_out}
    for purpose, wanted in motions.items():
        reports: list[PlanningProgress] = []

        def report(
            now: PlanningProgress, purpose: str = purpose, reports: list[PlanningProgress] = reports
        ) -> None:
            reports[:] = [now]
            progress(f"planning {purpose} {number(now.value)}", now.fraction)

        with ends_early():
            plan = plan_excitation(model, limits, start, wanted, report, earlier)
        yield purpose, plan, reports[0] if reports else None


def _start(texts: Sequence[str], limits: MotionLimits) -> Array:
    """Middle of the ranges, except for the joints that ``--start`` names."""
    start = 0.5 * (limits.lower + limits.upper)
    for joint, position in named_numbers(texts, "--start").items():
        if joint not in limits.joint_names:
            names = ", ".join(limits.joint_names)
            raise ExcitationError(f"--start {joint}={position:g}: the robot has no such joint; it has {names}")
        start[limits.joint_names.index(joint)] = position
    return start


def _excite_floating(
    options: argparse.Namespace,
    model: RobotModel,
    config: ExcitationConfiguration,
    limits: MotionLimits,
    start: Array,
) -> int:
    """Plan direction combinations of joints and reaction wheels for a robot that floats; return the exit status.

    Raises
    ------
    ExcitationError
        Another kind of motion, a plan to check, or an earlier result.
    """
    if config.excitation.kind != "combinations" or options.check or options.prior:
        raise ExcitationError(
            f"robot '{model.name}': floats, and its motions are planned as combinations without earlier results; set"
            " excitation.kind to combinations, and leave out --prior and --check"
        )
    settings = config.excitation
    inner = limits.scaled(settings.limit_use, settings.limit_use)
    deadline = time.monotonic() + settings.time_limit_s
    with progress_bar(options, "planning") as progress:
        best = plan_intervals(
            floating_problem(model, inner, settings.combinations), settings.seed, deadline,
            lambda fraction, condition: progress(f"planning {number(condition)}", fraction),
        )  # fmt: skip
        plan = _plan(best, model, config, limits, start)
    summary: dict[str, Any] = plain(
        {
            **_outline(plan, model),
            "condition_number": plan.condition_number,
            "significant_singular_values": best.significant,
            "intervals_offered": len(best.whole.directions),
            "intervals_kept": len(best.motion.directions),
            "joints": [
                {"name": name, "lowest": low, "highest": high}
                for name, low, high in zip(
                    plan.joint_names, plan.position.min(axis=0), plan.position.max(axis=0), strict=True
                )
            ],
            "configuration": attrs.asdict(config),
        }
    )
    _write_motion([plan], summary, Path(options.output), options.force)
    plan_file = str(Path(options.output) / PLAN)
    if options.json:
        print_json({**summary, "plan_file": plan_file})
        return 0
    print(
        f"{summary['intervals_kept']} of {summary['intervals_offered']} intervals, {number(summary['duration'])} s;"
        f" condition number {number(summary['condition_number'])} under the prior,"
        f" {summary['significant_singular_values']} significant singular values"
    )
    print(f"written to {plan_file}")
    return 0


def _plan(
    best: IntervalPlan, model: RobotModel, config: ExcitationConfiguration, limits: MotionLimits, start: Array
) -> Plan:
    """A ramp from the start to the first waypoint, and the intervals; wheels begin at zero."""
    whole = with_wheels(limits, model, config.excitation.combinations)
    first, begin = best.motion.waypoints[0], best.motion.waypoints[0].copy()
    begin[: model.joints] = start
    ramp = QuinticRamp.within(begin, first, _APPROACH_USE * whole.velocity, _APPROACH_USE * whole.acceleration)
    plan = plan_of(
        Concatenation([ramp, best.motion.trajectory]), whole, knot_step=config.excitation.knot_step_s,
        motion_type="combinations", model_hash=model.hash, seed=config.excitation.seed,
    )
    check_curve(plan.curve, whole)
    return replace(plan, condition_number=best.condition_number)


def _outline(plan: Plan, model: RobotModel) -> dict[str, Any]:
    return {
        "robot": model.name,
        "model_hash": model.hash,
        "kind": plan.motion_type,
        "seed": plan.seed,
        "duration": plan.duration,
        "points": len(plan.time),
    }


def _summary(
    inspection: Inspection,
    model: RobotModel,
    config: ExcitationConfiguration,
    planned: PlanningProgress | None = None,
) -> dict[str, Any]:
    """Content of ``excitation.json``; shares of limits are fractions."""
    plan, wanted = inspection.plan, config.excitation
    criterion = None
    if planned is not None:
        criterion = {
            "kind": wanted.criterion, "scaling": wanted.scaling, "value": planned.value, "parameters": planned.kept
        }  # fmt: skip
    joints = [
        {
            "name": name,
            "lowest": plan.position[:, i].min(),
            "highest": plan.position[:, i].max(),
            "peak_speed": np.abs(plan.velocity[:, i]).max(),
            **{key: inspection.usage[row, i] for row, key in enumerate(_USED)},
        }
        for i, name in enumerate(plan.joint_names)
    ]
    summary: dict[str, Any] = plain(
        {
            **_outline(plan, model),
            "criterion": criterion,
            "condition_number": inspection.condition_number,
            "singular_values": {"before": inspection.spectrum_before, "after": inspection.spectrum},
            "singular_directions": inspection.directions,
            "surroundings": inspection.surroundings,
            "clearance": asdict(inspection.clearance) if inspection.clearance else None,
            "constraints": [{"used": usage.used, "words": usage.description} for usage in inspection.constraint_usage],
            "findings": [finding.content() for finding in inspection.findings],
            "longest_stop": inspection.longest_stop,
            "joints": joints,
            "configuration": attrs.asdict(config),
        }
    )
    return summary


def _print_motion(summary: Mapping[str, Any], purpose: str = "") -> None:
    header = ("joint", "from", "to", "peak speed", *(f"of the {name}" for name in _USED.values()))
    title = f"{summary['kind']} motion of {number(summary['duration'])} s{f' {purpose}' if purpose else ''}"
    print_table(title, header, map(_row, summary["joints"]))
    criterion = summary["criterion"]
    if criterion is not None and (criterion["kind"], criterion["scaling"]) != ("condition", "columns"):
        print(
            f"criterion '{criterion['kind']}' in the scaling '{criterion['scaling']}' {number(criterion['value'])},"
            f" {criterion['parameters']} combinations of parameters"
        )
    print(f"condition number of the base regressor {number(summary['condition_number'])}")
    if summary["singular_values"]["before"] is not None:
        values = (summary["singular_values"][when] for when in ("before", "after"))
        before, after = (number(v[0] / v[-1] if v[-1] else None) for v in values)
        print(f"with the earlier recordings {after}; these alone {before}")
    for sentence in summary["surroundings"]:
        print(sentence)
    if summary["clearance"]:
        print(Clearance(**summary["clearance"]))
    for constraint in summary["constraints"]:
        print(f"{constraint['words']} at {percent(constraint['used'])} of what is allowed")
    print(f"at rest within {number(summary['longest_stop'])} s, whatever fails")


def _write_motion(
    plans: Sequence[Plan],
    summary: Mapping[str, Any],
    target: Path,
    force: bool,
    pages: Mapping[str, bytes] | None = None,
) -> dict[str, str]:
    """Write plan, held-out plan if there is one, trajectory, summary, page and plots; return the paths of the plans."""
    named = dict(zip((PLAN, VALIDATION_PLAN), plans, strict=False))
    files = {
        **{name: plan_text(plan).encode() for name, plan in named.items()},
        SUMMARY: (json.dumps(summary, indent=1, allow_nan=False) + "\n").encode(),
        TRAJECTORY: joint_trajectory_text(plans[0]).encode(),
        **(pages or {}),
    }
    write_directory(target, MOTION, files, force)
    return {name.replace(".yaml", "_file"): str(target / name) for name in named}


def _row(joint: Mapping[str, Any]) -> tuple[str, ...]:
    values = (number(joint[key]) for key in ("lowest", "highest", "peak_speed"))
    return (joint["name"], *values, *(percent(joint[key]) for key in _USED))
