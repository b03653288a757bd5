"""The constraints that a robot's options ask for."""

from collections.abc import Callable, Sequence

import numpy as np

from inertid_ros.config.balance import BalanceOptions
from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.constraints.balance.centre_of_mass import CentreOfMassConstraint
from inertid_ros.excitation.constraints.balance.polygon import polygon
from inertid_ros.excitation.constraints.balance.zero_moment_point import ZeroMomentPointConstraint
from inertid_ros.excitation.constraints.collision.clearance import ClearanceConstraint
from inertid_ros.excitation.constraints.collision.surroundings import surroundings
from inertid_ros.excitation.limits.constraint import Constraint
from inertid_ros.excitation.limits.motion_limits import MotionLimits, usage
from inertid_ros.excitation.plans.plan import Plan
from inertid_ros.robot.model import RobotModel

from .effort import EffortConstraint

_SHRINK_ROUNDS = 12


def motion_constraints(
    model: RobotModel, limits: MotionLimits, options: ExcitationOptions | None = None
) -> tuple[Constraint, ...]:
    """Everything that a motion of this robot must keep beside its limits of position, velocity and acceleration."""
    options = options or ExcitationOptions()
    chosen: list[Constraint] = [EffortConstraint(model, limits.effort)]
    collision, floor = options.collision, surroundings(model, limits, options).floor_m
    if collision.self_collision or collision.obstacles or np.isfinite(floor):
        chosen.append(ClearanceConstraint(model, limits, collision, floor))
    return (*chosen, *_balance(model, options.balance))


def _balance(model: RobotModel, options: BalanceOptions) -> list[Constraint]:
    chosen: list[Constraint] = []
    if options.com_region.x:
        region = polygon(options.com_region, "balance.com_region")
        chosen.append(CentreOfMassConstraint(model, region, options.ground_m))
    if options.support.x:
        area = polygon(options.support, "balance.support", options.support_margin_m)
        if not options.com_region.x:
            chosen.append(CentreOfMassConstraint(model, area, options.ground_m))
        chosen.append(ZeroMomentPointConstraint(model, area, options.ground_m, options.normal_force))
    return chosen


def feasible_share(plan: Callable[[float], Plan], constraints: Sequence[Constraint]) -> float:
    """Largest share of a motion, by bisection from the whole of it, at which ``plan(share)`` keeps every constraint.

    Raises
    ------
    ExcitationError
        Even a thousandth of the motion violates a constraint.
    """

    def violation(share: float) -> str:
        candidate = plan(share)
        try:
            for constraint in constraints:
                constraint.check(candidate)
        except ExcitationError as error:
            return str(error)
        return ""

    message = violation(1.0)
    if not message:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_SHRINK_ROUNDS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if violation(middle) else (middle, high)
    if low == 0:
        raise ExcitationError(f"no motion fits at the start pose: {message}")
    return low


def limiting_constraint(plan: Plan, limits: MotionLimits, constraints: Sequence[Constraint]) -> str:
    """Name of the limit or constraint that a plan comes closest to, and how much of it the plan uses."""
    channels = zip(("position", "velocity", "acceleration"), usage(plan.curve, limits), strict=True)
    names = plan.joint_names
    fractions = [(float(used.max()), f"{name} of joint '{names[int(np.argmax(used))]}'") for name, used in channels]
    fractions += [(used.used, used.description) for used in (constraint.usage(plan) for constraint in constraints)]
    fraction, description = max(fractions)
    return f"{description} at {100 * fraction:.0f} % of its limit"
