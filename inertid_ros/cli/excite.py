"""``inertid excite``: plan an exciting motion, or inspect an existing plan."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from inertid_ros.calibration.planning import PlannedMotion, check_motion, plan
from inertid_ros.config.configuration import ExcitationConfiguration
from inertid_ros.core.errors import ExcitationError
from inertid_ros.core.outputs import check_directory, write_directory
from inertid_ros.excitation.constraints.constraint import Clearance
from inertid_ros.excitation.plan import Plan, joint_trajectory_text, plan_text
from inertid_ros.excitation.planning.inspection import USAGE_CHANNELS
from inertid_ros.excitation.planning.planner import PlanningProgress
from inertid_ros.report.pages import motion_files
from inertid_ros.report.report_content import json_text, plain, records
from inertid_ros.robot.model import RobotModel, load_model

from .printing import deliver, number, percent, print_table, progress_bar
from .settings import configuration, inputs, named_numbers
from .stopping import ends_early

MOTION = "motion"  # kind of output
PLAN, VALIDATION_PLAN = "plan.yaml", "validation_plan.yaml"
SUMMARY, TRAJECTORY = "excitation.json", "joint_trajectory.yaml"
_USED = dict(zip(("range_used", "velocity_used", "acceleration_used", "effort_used"), USAGE_CHANNELS, strict=True))


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    if options.output:
        check_directory(options.output, MOTION, options.force, inputs(options))
    elif not options.check:
        raise ExcitationError("--output is missing; name the directory to write, or a plan to inspect with --check")
    config = configuration(options, ExcitationConfiguration)
    model = load_model(Path(options.urdf), config.robot)
    start = named_numbers(options.start, "--start")
    motions: Sequence[PlannedMotion]
    with progress_bar(options, "checking" if options.check else "planning") as progress:
        if options.check:
            motions = [check_motion(model, options.check, config, options.prior or "")]
        else:

            def report(purpose: str, state: PlanningProgress) -> None:
                progress(f"planning {purpose} {number(state.value)}", state.fraction)

            with ends_early():
                motions = plan(model, config, start, options.prior or "", report)
        progress("checking", 1.0)
    summaries = [(motion.purpose, motion.inspection, _summary(motion, model, config)) for motion in motions]
    (_, _, summary), *others = summaries
    for _, _, held_out in others:
        summary = {**summary, "held_out": held_out}

    def show() -> None:
        for purpose, _, content in summaries:
            _print_motion(content, purpose)
        if options.check and not options.output:
            print(f"{options.check}: keeps every limit")

    pages = motion_files(summaries) if options.output else {}
    findings = dict.fromkeys(str(finding) for motion in motions for finding in motion.inspection.findings)
    return _finish(options, [motion.plan for motion in motions], summary, pages, show, findings)


def _summary(motion: PlannedMotion, model: RobotModel, config: ExcitationConfiguration) -> dict[str, Any]:
    """Content of ``excitation.json``; shares of limits are fractions."""
    inspection, plan = motion.inspection, motion.plan
    criterion: dict[str, Any] | None = None
    if motion.criterion is not None:
        chosen, reached = config.excitation, motion.criterion
        criterion = {"kind": chosen.criterion, "scaling": chosen.scaling}
        criterion |= {"value": reached.value, "parameters": reached.kept}
    columns = {"name": plan.joint_names, "lowest": plan.position.min(axis=0), "highest": plan.position.max(axis=0),
        "peak_speed": np.abs(plan.velocity).max(axis=0), **dict(zip(_USED, inspection.usage, strict=True))}
    constraints = [{"used": usage.used, "words": usage.description} for usage in inspection.constraint_usage]
    return plain({"robot": model.name, "model_hash": model.hash, "kind": plan.motion_type, "seed": plan.seed,
        "duration": plan.duration, "points": len(plan.time), "criterion": criterion,
        "condition_number": inspection.condition_number,
        "singular_values": {"before": inspection.spectrum_before, "after": inspection.spectrum},
        "singular_directions": inspection.directions, "surroundings": inspection.surroundings,
        "clearance": inspection.clearance, "constraints": constraints,
        "findings": [finding.content() for finding in inspection.findings], "longest_stop": inspection.longest_stop,
        "joints": records(columns), "configuration": attrs.asdict(config)})


def _print_motion(summary: Mapping[str, Any], purpose: str) -> None:
    header = ("joint", "from", "to", "peak speed", *(f"{name} used" for name in _USED.values()))
    rows = [(*(joint[key] for key in ("name", "lowest", "highest", "peak_speed")),
        *(percent(joint[key]) for key in _USED)) for joint in summary["joints"]]
    print_table(f"{summary['kind']} motion of {number(summary['duration'])} s{f' {purpose}' if purpose else ''}",
        header, rows)
    criterion = summary["criterion"]
    if criterion is not None and (criterion["kind"], criterion["scaling"]) != ("condition", "columns"):
        print(f"criterion '{criterion['kind']}' in the scaling '{criterion['scaling']}' {number(criterion['value'])},"
            f" {criterion['parameters']} combinations of parameters")
    print(f"condition number of the base regressor {number(summary['condition_number'])}")
    if summary["singular_values"]["before"] is not None:
        values = (summary["singular_values"][when] for when in ("before", "after"))
        before, after = (number(v[0] / v[-1] if v[-1] else None) for v in values)
        print(f"with the earlier recordings {after}; from the earlier recordings alone {before}")
    for sentence in summary["surroundings"]:
        print(sentence)
    if summary["clearance"]:
        print(Clearance(**summary["clearance"]))
    for constraint in summary["constraints"]:
        print(f"{constraint['words']} at {percent(constraint['used'])} of the allowed value")
    print(f"at rest within {number(summary['longest_stop'])} s after any failure")


def _finish(options: argparse.Namespace, plans: Sequence[Plan], summary: Mapping[str, Any], pages: Mapping[str, bytes],
        show: Callable[[], None], findings: Iterable[str] = ()) -> int:
    """Print the summary; with ``--output``, first write the plans, trajectory, summary, page and plots."""
    if not options.output:
        return deliver(options, {**summary, "plan_file": str(options.check)}, show, "", findings)
    target, named = Path(options.output), dict(zip((PLAN, VALIDATION_PLAN), plans, strict=False))
    files = {**{name: plan_text(motion).encode() for name, motion in named.items()},
        SUMMARY: json_text(summary).encode(), TRAJECTORY: joint_trajectory_text(plans[0]).encode(), **pages}
    write_directory(target, MOTION, files, options.force)
    written = {name.replace(".yaml", "_file"): str(target / name) for name in named}
    return deliver(options, {**summary, **written}, show, " and ".join(written.values()), findings)
