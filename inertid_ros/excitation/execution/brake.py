"""Braking along the path: from any phase of a plan to rest, within the limits; and from rest back to full rate.

A brake slows down the phase ``s(t)`` of the plan from rate one to zero, so the robot stays on its checked path. With
``q = plan(s)`` the joint acceleration is ``plan'(s) s'' + plan''(s) s'^2``. The brake uses the strongest ``s''`` that
keeps all joints within their acceleration limits, with a bounded rate of change. Since ``|plan''| <= limit``,
``s'' = 0`` is always allowed: a brake exists at every phase of a plan that keeps its limits. To continue from rest on
the path, the rate rises from zero to one along a polynomial, as fast as the limits allow.
"""

from dataclasses import dataclass

import numpy as np

from inertid_ros.config.excitation import BrakeOptions
from inertid_ros.core.arrays import Array, Indices, Mask
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.plan import Plan
from inertid_ros.excitation.quintic import control_points, exceeds

_SUBSTEPS_PER_POINT = 5
_BRAKE_STRENGTHS = (0.98, 0.9, 0.75, 0.5, 0.25)  # of the acceleration limits; the first that passes the checks is used
_BRAKE_SLACK = 1e-6  # relative, for rounding
_BRAKES_AT_ONCE = 256  # verified together


@dataclass(frozen=True)
class BrakeTable:
    """Brakes from the phases ``k * grid`` [s] of a plan.

    Attributes
    ----------
    profiles : ndarray, shape (3, K, P)
        Phase [s], its rate, and the rate's change [1/s], at times ``p * step`` [s] after the start of the brake.
    points : ndarray, shape (K,)
        Index of the first point at rest; later columns repeat it.
    """

    plan: Plan
    grid: float
    step: float
    profiles: Array
    points: Indices

    @property
    def longest(self) -> float:
        """Longest time to rest over all phases [s]."""
        return float(self.points.max() * self.step)

    def rest_phase(self, index: int) -> float:
        """Phase at which the brake from phase ``index * grid`` ends [s]."""
        return float(self.profiles[0, index, self.points[index]])

    def brake(self, index: int) -> tuple[Array, Array, Array, Array]:
        """Brake from phase ``index * grid``: times since its start ``(P,)``, position, velocity, acceleration."""
        count = int(self.points[index]) + 1
        q, v, a = along_path(self.plan, *self.profiles[:, index, :count])
        return self.step * np.arange(count, dtype=float), q, v, a


def along_path(plan: Plan, phase: Array, rate: Array, change: Array) -> tuple[Array, Array, Array]:
    """Position, velocity and acceleration ``(..., n)`` along a plan for phase, rate and change, ``(...)`` each."""
    q, v, a = (x.reshape(*phase.shape, -1) for x in plan.sample(phase.ravel()))
    rate, change = rate[..., None], change[..., None]
    return q, v * rate, a * rate**2 + v * change


def brake_table(
        plan: Plan, limits: MotionLimits, grid: float, step: float, options: BrakeOptions | None = None) -> BrakeTable:
    """Compute and verify the brake of every phase.

    Raises
    ------
    ExcitationError
        The brake from some phase exceeds a limit or the longest time.
    """
    starts: Array = grid * np.arange(int(np.ceil(plan.duration / grid - 1e-9)) + 1, dtype=float)
    begin = np.stack([starts, np.ones_like(starts), np.zeros_like(starts)])
    return _brakes(plan, limits, begin, grid, step, options or BrakeOptions())


def restarted(
    brakes: BrakeTable, limits: MotionLimits, phase: float, options: BrakeOptions | None = None
) -> tuple[Array, BrakeTable, int]:
    """Continue along the path from rest at a phase [s] of the plan, with ``brakes`` of the whole plan.

    Returns
    -------
    profile : ndarray, shape (3, P)
        Phase, rate and its change at every step until the rate is one; ``P - 1`` steps are a multiple of the grid.
    table : BrakeTable
        Brakes from multiples of the grid since the robot started to move again.
    index : int
        Phase of the plan, in multiples of the grid, at which the rate is one.

    Raises
    ------
    ExcitationError
        A restart within the limits and ``options.longest_s`` does not exist.
    """
    plan, grid, step, options = brakes.plan, brakes.grid, brakes.step, options or BrakeOptions()
    per_grid, last = round(grid / step), len(brakes.points) - 1
    # Second derivative of the rate: at most 6 / seconds^2, no more than in brakes. Near the end, the rest is short.
    shortest = min(np.sqrt(6 * options.shortest_s * options.rise_s), 2 * (last * grid - phase))
    for cells in range(max(int(np.ceil(shortest / grid)), 1), round(options.longest_s / grid) + 1):
        seconds = cells * grid
        index = min(round((phase + 0.5 * seconds) / grid), last)
        profile = _rising(phase, index * grid, seconds, cells * per_grid)
        if (profile[1] < 0).any() or index < last and plan.duration - index * grid < step:
            continue
        good, _ = _verify(plan, limits, profile[:, None], np.array([profile.shape[1] - 1]), step)
        if not good[0]:
            continue
        try:
            table = _brakes(plan, limits, profile[:, :-1:per_grid], grid, step, options)
        except ExcitationError:
            continue
        both = table.profiles, brakes.profiles[:, index:]
        width = max(profiles.shape[2] for profiles in both)
        # A brake that has ended stays at rest.
        padded = [np.pad(rows, ((0, 0), (0, 0), (0, width - rows.shape[2])), mode="edge") for rows in both]
        points = np.concatenate([table.points, brakes.points[index:]])
        return profile, BrakeTable(plan, grid, step, np.concatenate(padded, axis=1), points), index
    raise ExcitationError(
        f"plan: a restart from rest at {phase:.2f} s would take longer than {options.longest_s:g} s; plan slower or"
        " raise the acceleration limits")


def _rising(phase: float, end: float, seconds: float, steps: int) -> Array:
    """Phase, rate and its change ``(3, steps + 1)`` from rest to rate one; the change is zero at both ends."""
    x = np.linspace(0.0, 1.0, steps + 1)
    extra = (end - phase) / seconds - 0.5  # mean rate minus one half, the mean rate of the first two terms
    rise = phase + seconds * (x**3 - 0.5 * x**4 + extra * x**3 * (10 - 15 * x + 6 * x**2))
    rate = x**2 * (3 - 2 * x) + extra * 30 * x**2 * (1 - x) ** 2
    change = (6 * x * (1 - x) + extra * 60 * x * (1 - x) * (1 - 2 * x)) / seconds
    return np.stack([rise, rate, change])


def _brakes(
        plan: Plan, limits: MotionLimits, begin: Array, grid: float, step: float, options: BrakeOptions) -> BrakeTable:
    """Brakes from initial phases, rates and changes ``(3, K)``; ExcitationError if a brake fails at every strength."""
    width, brakes = int(np.ceil(options.longest_s / step)) + 1, begin.shape[1]
    table, points = np.zeros((3, brakes, width)), np.zeros(brakes, dtype=int)
    left, problem = np.arange(brakes), ""
    for strength in _BRAKE_STRENGTHS:
        profile = _integrate(plan, strength * limits.acceleration, begin[:, left], step, options, width)
        count = np.where((profile[1] == 0).any(axis=1), np.argmax(profile[1] == 0, axis=1), width)
        good, problem = _verify(plan, limits, profile, count, step)
        table[:, left[good]], points[left[good]] = profile[:, good], count[good]
        left = left[~good]
        if not len(left):
            return BrakeTable(plan, grid, step, table[:, :, : points.max() + 1], points)
    raise ExcitationError(
        f"plan: braking from {begin[0, left[0]]:.2f} s {problem}; plan slower or raise the acceleration limits")


def _integrate(plan: Plan, limit: Array, begin: Array, step: float, options: BrakeOptions, width: int) -> Array:
    """Phase, rate and its change ``(3, M, width)`` of brakes with initial values ``(3, M)``, computed together."""
    strongest = 1.0 / options.shortest_s
    jerk = strongest / options.rise_s
    dt = step / _SUBSTEPS_PER_POINT
    s, r, d = begin.copy()
    out = np.zeros((3, len(s), width))
    out[:, :, 0] = s, r, d
    for row in range(1, width):
        for _ in range(_SUBSTEPS_PER_POINT):
            allowed = _strongest(plan, limit, s, r)
            # The last term returns the deceleration to zero with bounded change, just when the rate reaches zero.
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
    """Largest deceleration ``(M,)`` of the phase that keeps every joint within its acceleration limit."""
    _, v, a = plan.sample(s)
    room = np.maximum(limit + np.sign(v) * a * (r**2)[:, None], 0.0)
    return np.min(room / np.maximum(np.abs(v), 1e-9), axis=1)


def _verify(plan: Plan, limits: MotionLimits, profile: Array, count: Indices, step: float) -> tuple[Mask, str]:
    """Mask of brakes that end in time and keep all limits, also between points; problem of the first failing brake."""
    width = profile.shape[2]
    good, problem = count < width, f"takes longer than {(width - 1) * step:g} s"
    bounds = (
        ("position", limits.lower, limits.upper),
        ("velocity", -limits.velocity, limits.velocity),
        ("acceleration", -limits.acceleration, limits.acceleration))
    for begin in range(0, len(count), _BRAKES_AT_ONCE):
        rows = slice(begin, begin + _BRAKES_AT_ONCE)
        used = min(int(count[rows].max()) + 1, width)
        ends = along_path(plan, *profile[:, rows, : max(used, 2)])
        for order, (channel, lower, upper) in enumerate(bounds):
            points = control_points(np.array([[[step]]]), [x[:, :-1] for x in ends], [x[:, 1:] for x in ends], order)
            # Scale to the half range about the middle of the range, so that one bound serves all joints.
            points = (points - 0.5 * (upper + lower)) / (0.5 * (upper - lower))
            suspect = np.argwhere(np.abs(points).max(axis=2) > 1 + _BRAKE_SLACK)
            beyond = np.zeros((len(points), points.shape[-1]), dtype=bool)
            if len(suspect):
                chosen = points[suspect[:, 0], suspect[:, 1], :, suspect[:, 2]]
                over = exceeds(chosen, 1 + _BRAKE_SLACK) | exceeds(-chosen, 1 + _BRAKE_SLACK)
                np.logical_or.at(beyond, (suspect[:, 0], suspect[:, 2]), over)
            bad = good[rows] & beyond.any(axis=1)
            if bad.any() and good[: begin + 1].all():
                joint = limits.joint_names[int(np.argmax(beyond[np.argmax(bad)]))]
                problem = f"exceeds the {channel} limit of joint '{joint}'"
            good[rows] &= ~bad
    return good, problem
