"""What a motion does not excite, and why: the motion itself, the robot's limits, or its geometry."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.causes.table import remedy_for
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.excitation.limits.constraint import ConstraintUsage, MotionSamples
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.identification.base_parameters.numeric import base_parameters_of_robot
from inertid_ros.robot.model import RobotModel

from .criterion import Criterion
from .motion_information import MotionInformation

WELL_CONDITIONED = 100.0
"""Condition number up to which nothing is told. Where the torque has an error of 3 % and 200 independent samples (20 s
of 5 Hz), the weakest combination of parameters is then known to 20 %, beyond 500 of it to no more than its own size."""
_PROBES = 300
_SHARE = 0.1  # of a weak combination that a parameter has at least to be named
_NAMED = 4
_SLOWEST = 0.01  # of the speeds of random states
_WIDER, _FASTER = 10.0, 3.0  # factors on ranges of joints that slide and on limits of speed, for comparison
_MUCH = 10.0  # factor by which random states are better at least for the motion to be the first reason
_NOTABLE = 2.0  # factor that other limits gain at least for these to be the reason


def weak_parameters(
    criterion: Criterion,
    information: MotionInformation,
    model: RobotModel,
    limits: MotionLimits,
    constrained: ConstraintUsage | None = None,
) -> tuple[Finding, ...]:
    """Findings on parameters that barely show in a motion; none where its condition number is good.

    Parameters
    ----------
    criterion : Criterion
        Of :func:`~.criterion.regressor_condition`.
    information : MotionInformation
        Of the motion by this criterion.
    limits : MotionLimits
        Limits that the motion keeps.
    constrained : ConstraintUsage, optional
        Use of what constrains it beside these, where something does.
    """
    found = [_hidden_columns(criterion, model, limits)]
    if not information.condition_number <= WELL_CONDITIONED:
        found.append(_weak_combinations(criterion, information, model, limits, constrained))
    return tuple(finding for finding in found if finding is not None)


def _hidden_columns(criterion: Criterion, model: RobotModel, limits: MotionLimits) -> Finding | None:
    """Parameters of the robot that no motion within its position limits shows."""
    columns = np.intersect1d(base_parameters_of_robot(model).independent, criterion.measured.columns)
    missing = len(columns) - criterion.count
    if missing <= 0 or not len(criterion.measured.joints):
        return None
    hidden = np.setdiff1d(columns, criterion.measured.columns[criterion.columns])
    narrow = int(np.argmin(limits.upper - limits.lower))
    return Finding(
        "not_excited",
        Severity.CARE,
        f"{missing} of {len(columns)} base parameters cannot show within the limits of position, such as"
        f" {_few([model.layout.names[column] for column in hidden])}",
        remedy_for("not_excited", "positions", joint=limits.joint_names[narrow]),
        (limits.joint_names[narrow],),
    )


def _weak_combinations(
    criterion: Criterion,
    information: MotionInformation,
    model: RobotModel,
    limits: MotionLimits,
    constrained: ConstraintUsage | None,
) -> Finding:
    values = np.sqrt(np.maximum(information.eigenvalues, 0.0))
    weak = values * WELL_CONDITIONED < values[-1]
    weights = (information.vectors[:, weak] ** 2).sum(axis=1)
    names = list(mostly_of(weights, criterion.column_names, len(weights)))
    reason, remedy, subjects = _reason(criterion, information.condition_number, model, limits, constrained)
    return Finding(
        "not_excited",
        Severity.CARE,
        f"condition number {information.condition_number:.3g}: {int(weak.sum())} of {criterion.count} combinations of"
        f" base parameters show less than a hundredth of the best, mostly of {_few(names)}; {reason}",
        remedy,
        subjects,
    )


def mostly_of(weights: Array, names: Sequence[str], most: int = _NAMED) -> tuple[str, ...]:
    """Names of the parameters that a combination with squared weights ``(r,)`` is mostly of, most first."""
    order = np.argsort(-weights)[:most]
    return tuple(names[int(k)] for k in order if weights[k] >= _SHARE * weights.max())


def _reason(
    criterion: Criterion, achieved: float, model: RobotModel, limits: MotionLimits, constrained: ConstraintUsage | None
) -> tuple[str, str, tuple[str, ...]]:
    """Why combinations are weak, what to do, and the joints that it is about; by random states with other limits."""
    joints, within = np.arange(model.joints), _random_condition(criterion, limits)
    if within <= WELL_CONDITIONED or _MUCH * within <= achieved:
        why = f", which the {constrained.description} keeps small" if constrained else ""
        room = constrained.option if constrained else ""
        return (
            f"random states within the limits show them better (condition number {within:.3g}) than this motion{why}",
            remedy_for("not_excited", "room", option=room) if room else remedy_for("not_excited", "motion"),
            (),
        )
    turned = _random_condition(criterion, _widened(model, limits, joints >= 0))
    if _NOTABLE * turned <= within:
        alone = [_random_condition(criterion, _widened(model, limits, joints == joint)) for joint in joints]
        best = int(np.argmin(alone))
        decisive = _NOTABLE * alone[best] <= within
        name = limits.joint_names[best]
        whose, widened = (f"joint '{name}'", alone[best]) if decisive else ("several joints", turned)
        return (
            f"the position limits of {whose} hide them: random states have {within:.3g} within the limits,"
            f" {widened:.3g} with a whole turn",
            remedy_for("not_excited", "ranges"),
            (name,) if decisive else (),
        )
    fast = _random_condition(criterion, limits.scaled(_FASTER, _FASTER))
    if _NOTABLE * fast <= within:
        return (
            f"the limits of velocity and acceleration hide them: random states have {within:.3g} within the limits,"
            f" {fast:.3g} where all are {_FASTER:g} times as high",
            remedy_for("not_excited", "speeds"),
            (),
        )
    held = ", ".join(list(model.options.locked_joints)[:_NAMED])
    return (
        f"the geometry of the robot{f' with {held} held' if held else ''} hides them: random states have"
        f" {min(within, turned, fast):.3g} even with wider limits",
        remedy_for("not_excited", "geometry"),
        (),
    )


def _random_condition(criterion: Criterion, limits: MotionLimits) -> float:
    """Condition number of random states within limits, slow ones among them: fast ones alone hide gravity."""
    rng, size = np.random.default_rng(0), (_PROBES, len(limits.lower))
    slower = _SLOWEST ** rng.uniform(size=(_PROBES, 1))
    q = rng.uniform(limits.lower, limits.upper, size)
    v, a = (bound * rng.uniform(-1, 1, size) for bound in (limits.velocity, limits.acceleration))
    return criterion.evaluate(MotionSamples(criterion.measured.chain, q, slower * v, slower**2 * a)).condition_number


def _widened(model: RobotModel, limits: MotionLimits, joints: NDArray[np.bool_]) -> MotionLimits:
    """The limits with a whole turn for some joints; with more of the range for those that slide."""
    slides = model.axes[model.free :, :3].any(axis=1)
    middle, half = 0.5 * (limits.lower + limits.upper), 0.5 * (limits.upper - limits.lower)
    half = np.where(joints, np.where(slides, _WIDER * half, np.maximum(half, np.pi)), half)
    return replace(limits, lower=middle - half, upper=middle + half)


def _few(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} others" if len(names) > _NAMED else "")
