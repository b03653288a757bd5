"""Direction combinations for a free-floating robot, whose momentum is conserved: joints and reaction wheels."""

import numpy as np

from inertid_ros.config.excitation import CombinationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.planning.interval_planner import IntervalPlanningProblem
from inertid_ros.identification.base_parameters.closed_form import closed_form_base_parameters
from inertid_ros.regressors.momentum_equations import momentum_regressor
from inertid_ros.robot.floating_base_motion import BaseMotion
from inertid_ros.robot.model import RobotModel


def with_wheels(limits: MotionLimits, model: RobotModel, options: CombinationOptions) -> MotionLimits:
    """Limits of the joints, and of wheels, wide enough for their range in every interval."""
    count = len(model.wheels.names)
    wide = np.full(count, (options.offered + 1) * options.wheel_range)
    fast = np.full(count, 2 * options.wheel_range / options.interval_s)
    of_joints = (limits.lower, limits.upper, limits.velocity, limits.acceleration, limits.effort)
    of_wheels = (-wide, wide, fast, np.pi / options.interval_s * fast, np.full(count, 1e9))
    bounds = map(np.concatenate, zip(of_joints, of_wheels, strict=True))
    return MotionLimits(limits.joint_names + model.wheels.names, *bounds)


def floating_problem(model: RobotModel, limits: MotionLimits, options: CombinationOptions) -> IntervalPlanningProblem:
    """The planning problem: start and range of the joints; those of the wheels are fixed ([Naveen2019]_ sec. 6.2.2).

    ExcitationError if the robot has no wheels.
    """
    if not model.wheels.names:
        raise ExcitationError(
            f"robot '{model.name}': floats and has no reaction wheels, so that momentum has no scale; name them in"
            " robot.wheels"
        )
    columns = closed_form_base_parameters(model).independent
    columns = columns[columns < model.layout.body_size]
    fixed_range = np.concatenate([np.full(model.joints, np.nan), np.full(len(model.wheels.names), options.wheel_range)])
    base, joints = BaseMotion(model.tree, model.body_prior, model.wheels), model.joints

    def regressor(q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        # A robot that floats at rest until it moves has no momentum ([Naveen2019]_ eq. 26). The prior predicts the
        # motion of the base. Rows are in its frame, about its origin; in an inertial frame, their singular values are
        # nearly the same.
        q, v, speeds = q[:, :joints], v[:, :joints], v[:, joints:]
        twist = base.twist(q, v, speeds)
        return momentum_regressor(model.tree, twist, q, v)[:, :, columns], np.hstack([twist, v])

    return IntervalPlanningProblem(regressor, with_wheels(limits, model, options), fixed_range, options)
