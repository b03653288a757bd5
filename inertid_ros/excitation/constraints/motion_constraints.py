"""The constraints that a robot's options ask for."""

from collections.abc import Sequence

import numpy as np

from inertid_ros.config.balance import BalanceOptions
from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.excitation.constraints.balance.centre_of_mass import CentreOfMass
from inertid_ros.excitation.constraints.balance.polygon import polygon
from inertid_ros.excitation.constraints.balance.zero_moment_point import Contact
from inertid_ros.excitation.constraints.collision.clearance import Clearance
from inertid_ros.excitation.limits.constraint import Constraint
from inertid_ros.excitation.limits.motion_limits import MotionLimits, usage
from inertid_ros.excitation.plans.plan import Plan
from inertid_ros.robot.model import RobotModel

from .effort import Effort


def motion_constraints(
    model: RobotModel, limits: MotionLimits, options: ExcitationOptions | None = None
) -> tuple[Constraint, ...]:
    """Everything that a motion of this robot must keep beside its limits of position, velocity and acceleration."""
    options = options or ExcitationOptions()
    chosen: list[Constraint] = [Effort(model, limits.effort)]
    collision = options.collision
    if collision.self_collision or collision.obstacles or np.isfinite(options.floor_m):
        chosen.append(Clearance(model, limits, collision, options.floor_m))
    return (*chosen, *_balance(model, options.balance))


def _balance(model: RobotModel, options: BalanceOptions) -> list[Constraint]:
    chosen: list[Constraint] = []
    if options.com_region:
        chosen.append(CentreOfMass(model, polygon(options.com_region, "balance.com_region"), options.ground_m))
    if options.support:
        area = polygon(options.support, "balance.support", options.support_margin_m)
        if not options.com_region:
            chosen.append(CentreOfMass(model, area, options.ground_m))
        chosen.append(Contact(model, area, options.ground_m, options.normal_force))
    return chosen


def limiting_constraint(plan: Plan, limits: MotionLimits, constraints: Sequence[Constraint]) -> str:
    """The limit or constraint that a plan comes closest to, in words."""
    channels = zip(("position", "velocity", "acceleration"), usage(plan.curve, limits), strict=True)
    names = plan.joint_names
    found = [(float(used.max()), f"{name} of joint '{names[int(np.argmax(used))]}'") for name, used in channels]
    found += [(usage.used, usage.description) for usage in (constraint.usage(plan) for constraint in constraints)]
    used, words = max(found)
    return f"{words} at {100 * used:.0f} % of its limit"
