"""Direction combinations for a robot that floats: joints and wheels, judged by its momentum."""

from collections.abc import Callable

import numpy as np

from inertid_ros.config.direction_combinations import CombinationOptions
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.identification.base_parameters import closed_form_base_parameters
from inertid_ros.robot.model import RobotModel

from .interval_planner import IntervalPlan, IntervalProblem, plan_intervals
from .momentum_rows import MomentumRows

Report = Callable[[float, float], None]


def with_wheels(limits: MotionLimits, model: RobotModel, options: CombinationOptions) -> MotionLimits:
    """Limits of the joints, and of wheels just so wide that they can make their way in every interval."""
    count = len(model.wheels.names)
    wide = np.full(count, (options.offered + 1) * options.wheel_range)
    fast = np.full(count, 2 * options.wheel_range / options.interval_s)
    return MotionLimits(
        limits.joint_names + model.wheels.names,
        np.concatenate([limits.lower, -wide]),
        np.concatenate([limits.upper, wide]),
        np.concatenate([limits.velocity, fast]),
        np.concatenate([limits.acceleration, np.pi / options.interval_s * fast]),
        np.concatenate([limits.effort, np.full(count, 1e9)]),
    )


def floating_problem(model: RobotModel, limits: MotionLimits, options: CombinationOptions) -> IntervalProblem:
    """What planning solves: seeds of the joints, while those of the wheels are given (B §6.2.2).

    Parameters
    ----------
    limits : MotionLimits
        Of the joints.

    Raises
    ------
    ExcitationError
        The robot has no wheels.
    """
    if not model.wheels.names:
        raise ExcitationError(
            f"robot '{model.name}': floats and has no reaction wheels, so that momentum has no scale; name them in"
            " robot.wheels"
        )
    columns = closed_form_base_parameters(model).independent
    columns = columns[columns < model.layout.body_size]
    given = np.concatenate([np.full(model.joints, np.nan), np.full(len(model.wheels.names), options.wheel_range)])
    rows = MomentumRows(model.tree, model.body_prior, model.wheels, columns)
    return IntervalProblem(rows, with_wheels(limits, model, options), given, options)


def plan_floating(
    model: RobotModel,
    limits: MotionLimits,
    options: CombinationOptions,
    seed: int = 0,
    deadline: float = np.inf,
    report: Report = lambda fraction, condition: None,
) -> IntervalPlan:
    """Plan a motion of joints, then wheels; see :func:`~.planner.plan_intervals`."""
    return plan_intervals(floating_problem(model, limits, options), seed, deadline, report)
