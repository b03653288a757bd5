"""Output of a planned motion: its summary, tables, and the directory with plan, page and plots."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from inertid_ros.config.configuration import ExcitationConfiguration
from inertid_ros.core.outputs import write_directory
from inertid_ros.excitation.inspection import CHANNELS, Inspection
from inertid_ros.excitation.planning.optimize import PlanningProgress
from inertid_ros.excitation.plans.joint_trajectory_file import joint_trajectory_text
from inertid_ros.excitation.plans.plan import Plan
from inertid_ros.excitation.plans.plan_file import plan_text
from inertid_ros.report.report_content import plain
from inertid_ros.robot.model import RobotModel

from .output import number, percent, print_table

MOTION = "motion"  # kind of output
PLAN, SUMMARY, TRAJECTORY = "plan.yaml", "excitation.json", "joint_trajectory.yaml"
_USED = dict(zip(("range_used", "velocity_used", "acceleration_used", "effort_used"), CHANNELS, strict=True))


def outline(plan: Plan, model: RobotModel) -> dict[str, Any]:
    """First part of the summary of every motion."""
    return {
        "robot": model.name,
        "model_hash": model.hash,
        "kind": plan.motion_type,
        "seed": plan.seed,
        "duration": plan.duration,
        "points": len(plan.time),
    }


def summarise(
    inspection: Inspection,
    model: RobotModel,
    config: ExcitationConfiguration,
    planned: PlanningProgress | None = None,
) -> dict[str, Any]:
    """Content of ``excitation.json``; shares of limits are fractions. ``planned`` is the end of planning."""
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
            **{key: inspection.usage[row, i] for row, key in enumerate(_USED)},
        }
        for i, name in enumerate(plan.joint_names)
    ]
    summary: dict[str, Any] = plain(
        {
            **outline(plan, model),
            "criterion": criterion,
            "condition_number": inspection.condition_number,
            "singular_values": {"before": inspection.spectrum_before, "after": inspection.spectrum},
            "singular_directions": inspection.directions,
            "surroundings": inspection.surroundings,
            "constraints": [{"used": usage.used, "words": usage.description} for usage in inspection.constraint_usage],
            "findings": [finding.content() for finding in inspection.findings],
            "longest_stop": inspection.longest_stop,
            "joints": joints,
            "configuration": attrs.asdict(config),
        }
    )
    return summary


def print_motion(summary: Mapping[str, Any]) -> None:
    """Print a motion as a table with a row per joint, its criterion and how much of the constraints it uses."""
    header = ("joint", "from", "to", *(f"of the {name}" for name in _USED.values()))
    print_table(f"{summary['kind']} motion of {number(summary['duration'])} s", header, map(_row, summary["joints"]))
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
    for constraint in summary["constraints"]:
        print(f"{constraint['words']} at {percent(constraint['used'])} of what is allowed")
    print(f"at rest within {number(summary['longest_stop'])} s, whatever fails")


def write_motion(
    plan: Plan, summary: Mapping[str, Any], target: Path, force: bool, pages: Mapping[str, bytes] | None = None
) -> None:
    """Write plan, trajectory and summary, and page and plots of the motion.

    Raises
    ------
    OutputError
        The directory cannot be written, or holds something else.
    """
    files = {
        PLAN: plan_text(plan).encode(),
        SUMMARY: (json.dumps(summary, indent=1, allow_nan=False) + "\n").encode(),
        TRAJECTORY: joint_trajectory_text(plan).encode(),
        **(pages or {}),
    }
    write_directory(target, MOTION, files, force)


def _row(joint: Mapping[str, Any]) -> tuple[str, ...]:
    return (joint["name"], number(joint["lowest"]), number(joint["highest"]), *(percent(joint[key]) for key in _USED))
