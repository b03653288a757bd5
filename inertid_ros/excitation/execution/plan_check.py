"""Checks of a plan before it moves a robot."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from inertid_ros.config.excitation import ExecutionOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.constraints.constraint import Constraint
from inertid_ros.excitation.constraints.effort import EffortConstraint
from inertid_ros.excitation.motion_limits import MotionLimits, check_curve
from inertid_ros.excitation.motions import Concatenation, QuinticRamp
from inertid_ros.excitation.plan import Plan, joined, plan_of
from inertid_ros.robot.model import RobotModel

_MAX_REST_SPEED = 0.02  # rad/s or m/s; at rest, noise of measured velocities included
_SCALING_TOLERANCE = 0.01  # of the speed scaling of a controller at full speed
_MIN_POSITION_IN_DEGREES = 3 * np.pi  # rad; beyond, a plan may be in degrees


def check_plan(
        plan: Plan, model: RobotModel, limits: MotionLimits, constraints: Sequence[Constraint] | None = None) -> None:
    """Refuse a plan that must not be executed.

    Joints and kinematics must match the model. Position, velocity and acceleration must keep ``limits``, also between
    points. The plan must keep ``constraints`` (default: the constraint on the prior model's effort). :class:`Plan` has
    checked that values are finite, time increases and both ends are at rest.

    Raises
    ------
    ExcitationError
        A check fails; the message gives joint, time, value and limit.
    """
    if plan.joint_names != model.joint_names:
        missing = [name for name in model.joint_names if name not in plan.joint_names]
        extra = [name for name in plan.joint_names if name not in model.joint_names]
        raise ExcitationError(
            f"plan: joints or their order differ from the robot's (missing {missing}, unknown {extra}); plan again")
    if plan.model_hash and plan.model_hash != model.hash:
        raise ExcitationError(
            f"plan: made for kinematics {plan.model_hash[:12]}, the robot has {model.hash[:12]}; plan again")
    _check_units(plan, limits)
    check_curve(plan.curve, limits)
    for constraint in (EffortConstraint(model, limits.effort),) if constraints is None else constraints:
        constraint.check(plan)


def check_start(plan: Plan, measured_position: Array, max_start_error: float) -> None:
    """Refuse a plan that begins too far from the robot's position."""
    measured = _finite(measured_position, plan.joint_names, "position")
    gap = np.abs(measured - plan.start)
    joint = int(np.argmax(gap))
    if gap[joint] > max_start_error:
        raise ExcitationError(
            f"joint '{plan.joint_names[joint]}': is at {measured[joint]:.4g}, the plan begins at"
            f" {plan.start[joint]:.4g}, more than {max_start_error:.4g} away; bring it closer, or plan from there")


def check_at_rest(joint_names: tuple[str, ...], measured_velocity: Array) -> None:
    """Refuse to start while the robot moves."""
    speed = np.abs(_finite(measured_velocity, joint_names, "velocity"))
    joint = int(np.argmax(speed))
    if speed[joint] > _MAX_REST_SPEED:
        raise ExcitationError(
            f"joint '{joint_names[joint]}': moves at {speed[joint]:.3g} rad/s already; stop it and try again")


def is_full_speed(scaling: float) -> bool:
    """True if trajectories run at full speed, for a speed scaling of the controller (1 is full speed)."""
    return abs(scaling - 1.0) <= _SCALING_TOLERANCE


def approach(
        plan: Plan, model: RobotModel, measured_position: Array, options: ExecutionOptions | None = None,
        constraints: Sequence[Constraint] | None = None) -> Plan:
    """Motion from the robot's position to the start of a plan, followed by a pause.

    All joints move in step on a minimum-jerk ramp, with at most the fraction ``options.approach_speed`` of the plan's
    velocity limits and the square of this fraction of the acceleration limits. A joint may start outside the plan's
    position limits but not outside the URDF's. ``constraints`` (default: the constraint on the prior model's effort)
    hold on the way too.

    Raises
    ------
    ExcitationError
        Start too far away, joint outside the limits of the URDF, constraint violated on the way, or value not finite.
    """
    options = options or ExecutionOptions()
    check_start(plan, measured_position, options.max_start_error)
    start, urdf = np.array(measured_position, dtype=float), model.limits
    for joint, name in enumerate(plan.joint_names):
        if not urdf.lower[joint] <= start[joint] <= urdf.upper[joint]:
            raise ExcitationError(
                f"joint '{name}': is at {start[joint]:.4g}, outside its limits {urdf.lower[joint]:.4g} to"
                f" {urdf.upper[joint]:.4g}; bring it inside by hand")
    lower, upper = np.minimum(plan.limits.lower, start), np.maximum(plan.limits.upper, start)
    limits = replace(plan.limits, lower=lower, upper=upper)
    speed = options.approach_speed
    ramp = QuinticRamp.within(start, plan.start, speed * limits.velocity, speed**2 * limits.acceleration, 0.5)
    pause = QuinticRamp(plan.start, plan.start, options.settle_s)
    out = plan_of(Concatenation([ramp, pause]), limits, motion_type="approach", model_hash=plan.model_hash)
    check_curve(out.curve, limits)
    for constraint in (EffortConstraint(model, limits.effort),) if constraints is None else constraints:
        constraint.check(out)
    return out


def with_approach(
        plan: Plan, model: RobotModel, measured_position: Array, options: ExecutionOptions | None = None,
        constraints: Sequence[Constraint] | None = None) -> tuple[Plan, float]:
    """Plan with its :func:`approach` prepended, and the duration of the approach [s]."""
    before = approach(plan, model, measured_position, options, constraints)
    return joined(before, plan), before.duration


def _check_units(plan: Plan, limits: MotionLimits) -> None:
    """Refuse a plan that seems to be in degrees, with a message about the unit."""
    largest = np.abs(plan.position).max(axis=0)
    widest = np.maximum(np.abs(limits.lower), np.abs(limits.upper))
    if (largest > np.maximum(_MIN_POSITION_IN_DEGREES, 3 * widest)).any():
        joint = int(np.argmax(largest / widest))
        raise ExcitationError(
            f"joint '{plan.joint_names[joint]}': position {largest[joint]:.4g} is far beyond {widest[joint]:.4g} rad;"
            " the plan looks as if it were in degrees, convert it to rad")


def _finite(values: Array, joint_names: tuple[str, ...], what: str) -> Array:
    array = np.array(values, dtype=float)
    if array.shape != (len(joint_names),) or not np.isfinite(array).all():
        raise ExcitationError(
            f"measured {what} {array.tolist()} is not {len(joint_names)} finite numbers; check the joint states")
    return array
