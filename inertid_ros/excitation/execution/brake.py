"""Braking along the path: from any phase of a plan to rest, within the limits, computed before anything moves.

A brake slows down the phase ``s(t)`` of the plan from rate one to zero, so the robot stays on the path that was
checked. With ``q = plan(s)`` the joint acceleration is ``plan'(s) s'' + plan''(s) s'^2``; at every instant the
strongest ``s''`` that keeps all joints within their acceleration limits is used, with a bounded rate of change, so
that the acceleration stays continuous. Since ``|plan''| <= limit``, ``s'' = 0`` is always allowed: a brake exists at
every phase of a plan that keeps its limits.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.execution import BrakeOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.excitation.motions.quintic import control_points, exceeds
from inertid_ros.excitation.plans.plan import Plan

_SUBSTEPS = 5
_STRENGTHS = (0.98, 0.9, 0.75, 0.5, 0.25)
_ROUNDING = 1e-6  # relative
_CHUNK = 256


@dataclass(frozen=True)
class BrakeTable:
    """A brake for every multiple ``k * grid`` of the phase of a plan.

    Attributes
    ----------
    plan : Plan
        The motion.
    grid : float
        Distance of the start phases [s].
    step : float
        Distance in time of the points of each brake [s].
    phase, rate, change : ndarray, shape (K, P)
        Phase [s], its rate and the rate's change [1/s], at times ``p * step`` after the
        brake began.
    points : ndarray, shape (K,)
        Index of the first point at rest; later columns repeat it.
    """

    plan: Plan
    grid: float
    step: float
    phase: Array
    rate: Array
    change: Array
    points: NDArray[np.int_]

    @property
    def longest(self) -> float:
        """Longest time to rest over all phases [s]."""
        return float(self.points.max() * self.step)

    def brake(self, index: int) -> tuple[Array, Array, Array, Array]:
        """Return the brake from phase ``index * grid``: times since then ``(P,)``, position, velocity, acceleration."""
        count = int(self.points[index]) + 1
        rows = (self.phase[index, :count], self.rate[index, :count], self.change[index, :count])
        q, v, a = along_path(self.plan, *rows)
        return self.step * np.arange(count, dtype=float), q, v, a


def along_path(plan: Plan, phase: Array, rate: Array, change: Array) -> tuple[Array, Array, Array]:
    """Return position, velocity and acceleration ``(..., n)`` of a plan passed with a changing rate, ``(...)`` each."""
    q, v, a = (x.reshape(*phase.shape, -1) for x in plan.sample(phase.ravel()))
    rate, change = rate[..., None], change[..., None]
    return q, v * rate, a * rate**2 + v * change


def brake_table(
    plan: Plan, limits: MotionLimits, grid: float, step: float, options: BrakeOptions | None = None
) -> BrakeTable:
    """Compute and verify the brake of every phase.

    Raises
    ------
    ExcitationError
        Some phase has no brake within the limits and the longest time; joint, phase and value named.
    """
    options = options or BrakeOptions()
    starts: Array = grid * np.arange(int(np.ceil(plan.duration / grid - 1e-9)) + 1, dtype=float)
    width = int(np.ceil(options.longest_s / step)) + 1
    table = np.zeros((3, len(starts), width))
    points = np.zeros(len(starts), dtype=int)
    left, problem = np.arange(len(starts)), ""
    for strength in _STRENGTHS:
        profile = _integrate(plan, strength * limits.acceleration, starts[left], step, options, width)
        count = np.where((profile[1] == 0).any(axis=1), np.argmax(profile[1] == 0, axis=1), width)
        good, problem = _verify(plan, limits, profile, count, step)
        table[:, left[good]], points[left[good]] = profile[:, good], count[good]
        left = left[~good]
        if not len(left):
            table = table[:, :, : points.max() + 1]
            phase, rate, change = table
            return BrakeTable(plan, grid, step, phase, rate, change, points)
    raise ExcitationError(
        f"plan: braking from {starts[left[0]]:.2f} s {problem}; plan slower or raise the acceleration limits"
    )


def _integrate(
    plan: Plan, limit: Array, starts: Array, step: float, options: BrakeOptions, width: int
) -> Array:
    """``(3, M, width)`` phase, rate and its change for brakes from all the start phases at once."""
    strongest = 1.0 / options.shortest_s
    jerk = strongest / options.rise_s
    dt = step / _SUBSTEPS
    s, r, d = starts.copy(), np.ones(len(starts)), np.zeros(len(starts))
    out = np.zeros((3, len(starts), width))
    out[:, :, 0] = s, r, d
    for row in range(1, width):
        for _ in range(_SUBSTEPS):
            allowed = _strongest(plan, limit, s, r)
            # The last term brings the deceleration back to zero with bounded change just as the rate vanishes.
            wanted = -np.minimum(np.minimum(allowed, strongest), np.sqrt(2 * jerk * r))
            d = np.maximum(wanted, d - jerk * dt)
            rate = np.maximum(r + d * dt, 0.0)
            s, r = s + 0.5 * (r + rate) * dt, rate
        r = np.where((r < 1e-5) | (s >= plan.duration), 0.0, r)
        d = np.where(r == 0, 0.0, d)
        out[:, :, row] = s, r, d
        if not r.any():
            out[:, :, row + 1 :] = out[:, :, row : row + 1]
            break
    return out


def _strongest(plan: Plan, limit: Array, s: Array, r: Array) -> Array:
    """Largest deceleration of the phase ``(M,)`` that keeps every joint within its acceleration limit."""
    _, v, a = plan.sample(s)
    room = np.maximum(limit + np.sign(v) * a * (r**2)[:, None], 0.0)
    return np.min(room / np.maximum(np.abs(v), 1e-9), axis=1)


def _verify(
    plan: Plan, limits: MotionLimits, profile: Array, count: NDArray[np.int_], step: float
) -> tuple[NDArray[np.bool_], str]:
    """Which brakes end in time and keep every limit between their points too; and what the first other one exceeds."""
    width = profile.shape[2]
    good, problem = count < width, f"takes longer than {(width - 1) * step:g} s"
    bounds = (
        ("position", limits.lower, limits.upper),
        ("velocity", -limits.velocity, limits.velocity),
        ("acceleration", -limits.acceleration, limits.acceleration),
    )
    for begin in range(0, len(count), _CHUNK):
        rows = slice(begin, begin + _CHUNK)
        used = min(int(count[rows].max()) + 1, width)
        ends = along_path(plan, *profile[:, rows, : max(used, 2)])
        for order, (channel, lower, upper) in enumerate(bounds):
            points = control_points(
                np.array([[[step]]]), *(x[:, :-1] for x in ends), *(x[:, 1:] for x in ends), order=order
            )
            # As a fraction of the way from the middle of the range to its end, so that one bound serves all.
            points = (points - 0.5 * (upper + lower)) / (0.5 * (upper - lower))
            suspect = np.argwhere(np.abs(points).max(axis=2) > 1 + _ROUNDING)
            beyond = np.zeros((len(points), points.shape[-1]), dtype=bool)
            if len(suspect):
                chosen = points[suspect[:, 0], suspect[:, 1], :, suspect[:, 2]]
                over = exceeds(chosen, 1 + _ROUNDING) | exceeds(-chosen, 1 + _ROUNDING)
                np.logical_or.at(beyond, (suspect[:, 0], suspect[:, 2]), over)
            bad = good[rows] & beyond.any(axis=1)
            if bad.any() and good[: begin + 1].all():
                joint = limits.joint_names[int(np.argmax(beyond[np.argmax(bad)]))]
                problem = f"exceeds the {channel} limit of joint '{joint}'"
            good[rows] &= ~bad
    return good, problem
