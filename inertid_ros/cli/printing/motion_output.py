"""Output of a planned motion: its summary, tables, and the directory with plan, page and plots."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from inertid_ros.config.configuration import ExcitationConfiguration
from inertid_ros.core.outputs import write_directory
from inertid_ros.excitation.inspection import CHANNELS, Inspection
from inertid_ros.excitation.limits.constraint import Clearance
from inertid_ros.excitation.planning.optimize import PlanningProgress
from inertid_ros.excitation.plans.joint_trajectory_file import joint_trajectory_text
from inertid_ros.excitation.plans.plan import Plan
from inertid_ros.excitation.plans.plan_file import plan_text
from inertid_ros.report.report_content import plain
from inertid_ros.robot.model import RobotModel

from .output import number, percent, print_table

MOTION = "motion"  # kind of output
PLAN, VALIDATION_PLAN = "plan.yaml", "validation_plan.yaml"
SUMMARY, TRAJECTORY = "excitation.json", "joint_trajectory.yaml"
FITTED, HELD_OUT = "to fit", "to validate"
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
            "peak_speed": np.abs(plan.velocity[:, i]).max(),
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
            "clearance": asdict(inspection.clearance) if inspection.clearance else None,
            "constraints": [{"used": usage.used, "words": usage.description} for usage in inspection.constraint_usage],
            "findings": [finding.content() for finding in inspection.findings],
            "longest_stop": inspection.longest_stop,
            "joints": joints,
            "configuration": attrs.asdict(config),
        }
    )
    return summary


def print_motion(summary: Mapping[str, Any], purpose: str = "") -> None:
    """Print a motion as a table with a row per joint, its criterion and how much of the constraints it uses."""
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


def write_motion(
    plans: Sequence[Plan],
    summary: Mapping[str, Any],
    target: Path,
    force: bool,
    pages: Mapping[str, bytes] | None = None,
) -> dict[str, str]:
    """Write a plan, and that of the held-out motion where there are two, trajectory, summary, page and plots.

    Returns
    -------
    dict
        Paths of the plans.

    Raises
    ------
    OutputError
        The directory cannot be written, or holds something else.
    """
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
