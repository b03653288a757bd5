"""``inertid excite`` for a robot that floats: direction combinations of joints and reaction wheels."""

import argparse
import time
from pathlib import Path
from typing import Any

import attrs

from inertid_ros.config.configuration import ExcitationConfiguration
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.direction_combinations.floating_base import floating_problem, with_wheels
from inertid_ros.excitation.direction_combinations.interval_planner import IntervalPlan, plan_intervals
from inertid_ros.excitation.limits.motion_limits import MotionLimits, check_curve
from inertid_ros.excitation.motions.trajectories import Concatenation, QuinticRamp
from inertid_ros.excitation.plans.plan import Plan, plan_of
from inertid_ros.report.report_content import plain
from inertid_ros.robot.model import RobotModel

from .printing.motion_output import PLAN, outline, write_motion
from .printing.output import number, print_json, progress_bar

_RAMP_USE = 0.8  # of the limits, on the way to the first waypoint


def excite_floating(
    options: argparse.Namespace,
    model: RobotModel,
    config: ExcitationConfiguration,
    limits: MotionLimits,
    start: Array,
) -> int:
    """Plan from ``start`` ``(n,)`` of the joints, write plan and summary, print the summary; return the exit status.

    Raises
    ------
    ExcitationError
        Another type of motion than combinations, a plan to check, or no wheels.
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
            **outline(plan, model),
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
    write_motion([plan], summary, Path(options.output), options.force)
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
    ramp = QuinticRamp.within(begin, first, _RAMP_USE * whole.velocity, _RAMP_USE * whole.acceleration)
    plan = plan_of(
        Concatenation([ramp, best.motion.trajectory]), whole, knot_step=config.excitation.knot_step_s,
        motion_type="combinations", model_hash=model.hash, seed=config.excitation.seed,
        condition_number=best.condition_number,
    )
    check_curve(plan.curve, whole)
    return plan
