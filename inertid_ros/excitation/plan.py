"""Motion as dense knots, for inspection, storage, checks and execution."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.motions import Motion, Trajectory, knot_times
from inertid_ros.excitation.quintic import PiecewiseQuintic

MAX_KNOTS = 100_000
_MAX_DURATION_S = 2**31 - 1  # largest time in a trajectory message
_REST = 1e-6  # rad/s and rad/s^2; largest velocity and acceleration at the ends of a plan


@dataclass(frozen=True)
class Plan:
    """Motion that starts and ends at rest; the knots define quintics between them.

    Attributes
    ----------
    time : (N,), times of the knots from zero, strictly increasing [s].
    position, velocity, acceleration : (N, n), at the knots [rad or m, per s, per s^2].
    limits : limits for which the motion was planned.
    motion_type : ``fourier``, ``cycloidal``, ``bspline``, ``combinations``, ``ramp``, ``approach`` or
        ``joint_trajectory``.
    model_hash : ``RobotModel.hash`` of the kinematics for which the motion was planned; empty if unknown.
    condition_number : condition number of the base regressor along the motion, with columns of unit norm (unscaled for
        a floating base); NaN if not computed.

    Raises
    ------
    ExcitationError
        Values not finite or of wrong shape, duplicate joint, too many knots, invalid times, or motion at an end.
    """

    joint_names: tuple[str, ...]
    time: Array
    position: Array
    velocity: Array
    acceleration: Array
    limits: MotionLimits
    motion_type: str = "fourier"
    model_hash: str = ""
    seed: int = 0
    condition_number: float = float("nan")

    def __post_init__(self) -> None:
        names = self.joint_names
        duplicates = sorted(name for name, count in Counter(names).items() if count > 1)
        if not names or duplicates:
            raise ExcitationError(f"plan: joint names are empty or repeat {duplicates}; name every joint once")
        if self.limits.joint_names != names:
            raise ExcitationError("plan: joints of the limits differ from the joints of the plan; use the same order")
        count = len(np.atleast_1d(self.time))
        if not 2 <= count <= MAX_KNOTS:
            raise ExcitationError(f"plan: has {count} points; give 2 to {MAX_KNOTS}")
        for channel in ("time", "position", "velocity", "acceleration"):
            self._freeze(channel, (count,) if channel == "time" else (count, len(names)))
        self._check_time()
        self._check_rest()

    @property
    def duration(self) -> float:
        return float(self.time[-1])

    @property
    def breaks(self) -> Array:
        return self.time

    @property
    def start(self) -> Array:
        return self.position[0]

    @cached_property
    def curve(self) -> PiecewiseQuintic:
        return PiecewiseQuintic(self.time, self.position, self.velocity, self.acceleration)

    def sample(self, t: Array) -> Motion:
        return self.curve.sample(t)

    def ordered(self, names: Sequence[str]) -> "Plan":
        """Copy with the joints ``names``, in their order."""
        order = [self.joint_names.index(name) for name in names]
        channels = {key: getattr(self, key)[:, order] for key in ("position", "velocity", "acceleration")}
        return replace(self, joint_names=tuple(names), limits=self.limits.ordered(names), **channels)

    def _freeze(self, channel: str, shape: tuple[int, ...]) -> None:
        array = np.array(getattr(self, channel), dtype=float)
        if array.shape != shape:
            raise ExcitationError(f"plan: {channel} has shape {array.shape}, expected {shape}")
        bad = ~np.isfinite(array)
        if bad.any():
            place = np.argwhere(bad)[0]
            joint = f", joint '{self.joint_names[place[1]]}'" if len(place) > 1 else ""
            raise ExcitationError(f"plan: {channel} is not finite at point {place[0]}{joint}; plan again")
        array.flags.writeable = False
        object.__setattr__(self, channel, array)

    def _check_time(self) -> None:
        if self.time[0] != 0:
            raise ExcitationError(f"plan: time begins at {self.time[0]:g} s; shift it to begin at 0")
        step = np.diff(self.time)
        if (step <= 0).any():
            row = int(np.argmax(step <= 0)) + 1
            raise ExcitationError(f"plan: time does not increase at point {row} ({self.time[row]:g} s); plan again")
        if self.duration > _MAX_DURATION_S:
            raise ExcitationError(f"plan: ends after {self.duration:g} s; a trajectory has at most {_MAX_DURATION_S} s")

    def _check_rest(self) -> None:
        for row, where in ((0, "start"), (-1, "end")):
            for channel in ("velocity", "acceleration"):
                values = np.abs(getattr(self, channel)[row])
                joint = int(np.argmax(values))
                if values[joint] > _REST:
                    raise ExcitationError(
                        f"plan: joint '{self.joint_names[joint]}' is not at rest at the {where} ({channel}"
                        f" {getattr(self, channel)[row][joint]:g}); a plan starts and ends at rest"
                    )


def plan_of(
    trajectory: Trajectory, limits: MotionLimits, *, knot_step: float = 0.02, motion_type: str = "ramp",
    model_hash: str = "", seed: int = 0,
) -> Plan:
    """Plan of a motion, with knots at most ``knot_step`` [s] apart and at every break of its third derivative."""
    time = knot_times(trajectory, knot_step)
    if len(time) > MAX_KNOTS:
        raise ExcitationError(f"plan: would have {len(time)} points; shorten the motion or widen the knot step")
    q, v, a = trajectory.sample(time)
    for array in (v, a):  # the ends are at rest in theory; remove rounding errors
        for row in (0, -1):
            array[row] = np.where(np.abs(array[row]) < _REST, 0.0, array[row])
    return Plan(limits.joint_names, time, q, v, a, limits, motion_type, model_hash, seed)


def slower(plan: Plan, scale: float) -> Plan:
    """Copy of a plan on the same path with the speed scaled by ``0 < scale <= 1``."""
    if not 0 < scale <= 1:
        raise ExcitationError(f"speed scale is {scale}; give 0 < scale <= 1")
    if scale == 1:
        return plan
    velocity, acceleration = plan.velocity * scale, plan.acceleration * scale**2
    return replace(plan, time=plan.time / scale, velocity=velocity, acceleration=acceleration)


def joined(before: Plan, after: Plan) -> Plan:
    """Join two plans; metadata and limits come from ``after``, with position limits widened to those of ``before``."""
    gap = np.abs(after.start - before.position[-1])
    joint = int(np.argmax(gap))
    if gap[joint] > 1e-9:
        raise ExcitationError(
            f"join: joint '{after.joint_names[joint]}' jumps by {gap[joint]:g} between plans; add a ramp between them"
        )
    lower = np.minimum(before.limits.lower, after.limits.lower)
    upper = np.maximum(before.limits.upper, after.limits.upper)
    time = np.concatenate([before.time, before.duration + after.time[1:]])
    channels = ((plan.position, plan.velocity, plan.acceleration) for plan in (before, after))
    q, v, a = (np.concatenate([first, second[1:]]) for first, second in zip(*channels, strict=True))
    limits = replace(after.limits, lower=lower, upper=upper)
    return replace(after, time=time, position=q, velocity=v, acceleration=a, limits=limits)
