"""The largest feasible size of a motion's shape, per joint and in closed form.

A linear motion ``start + Phi(t) @ parameters`` scales its excursion, velocity and acceleration alike, so every shape
has one size at which it just touches a limit. The optimiser works on shapes; all of its motions are feasible.
"""

from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.excitation.motions.quintic import PiecewiseQuintic
from inertid_ros.excitation.motions.trajectories import Basis, LinearTrajectory, knot_times

_POWER = 24.0
_SAFE = 1 - 1e-9
_LEAST = 1e-9  # rad or m; keeps a start that lies on a limit from dividing by zero


@dataclass(frozen=True)
class Shapes:
    """Rows that bound the size of a shape at sampled instants.

    Attributes
    ----------
    rows : ndarray, shape (K, size)
        Basis functions and their derivatives at the instants.
    above, below : ndarray, shape (K, n)
        Reciprocals of what each may reach on either side.
    """

    rows: Array
    above: Array
    below: Array

    def size(self, parameters: Array) -> tuple[Array, Array]:
        """``(n,)`` sizes within the limits at the instants, and the derivative ``(size, n)`` of their logarithm.

        The largest ratio to a limit is taken as a norm of high power: smooth, and never too small.
        """
        ratio = self.rows @ parameters
        ratio = ratio * np.where(ratio > 0, self.above, self.below)
        magnitude = np.abs(ratio)
        top = np.maximum(magnitude.max(axis=0), 1e-300)
        powers = (magnitude / top) ** (_POWER - 1)
        total = (powers * magnitude / top).sum(axis=0)
        size = 1.0 / (top * total ** (1 / _POWER))
        weight = powers * np.sign(ratio) * np.where(ratio > 0, self.above, self.below) / (top * total)
        return size, -self.rows.T @ weight


def shapes(basis: Basis, time: Array, start: Array, limits: MotionLimits) -> Shapes:
    """Bounds of shapes that begin at ``start`` ``(n,)``, at the given instants ``(K,)`` [s]."""
    values = basis.evaluate(time)
    rooms = _rooms(start, limits)
    above, below = (
        np.concatenate([np.tile(1.0 / room[side], (len(time), 1)) for room in rooms]) for side in (0, 1)
    )
    return Shapes(np.concatenate(values), above, below)


def fitted(
    trajectory: LinearTrajectory, limits: MotionLimits, knot_step: float, grow: bool = True
) -> LinearTrajectory:
    """The motion with every joint scaled so that it touches a limit and crosses none, between the knots too.

    Without ``grow`` joints that cross none stay as they are.

    What is bounded is the quintic through knots ``knot_step`` [s] apart, which is what a plan holds.
    """
    time = knot_times(trajectory, knot_step)
    curve = PiecewiseQuintic(time, *trajectory.sample(time))
    worst = np.full(len(trajectory.start), 1e-300)
    for order, (above, below) in enumerate(_rooms(trajectory.start, limits)):
        smallest, largest = curve.extremes(order)
        offset = trajectory.start if order == 0 else 0.0
        high = (np.array([e.value for e in largest]) - offset) / above
        low = (offset - np.array([e.value for e in smallest])) / below
        worst = np.max([worst, high, low], axis=0)
    scale = _SAFE / worst
    return replace(trajectory, parameters=trajectory.parameters * (scale if grow else np.minimum(scale, 1.0)))


def _rooms(start: Array, limits: MotionLimits) -> list[tuple[Array, Array]]:
    """What position, velocity and acceleration may add above and below a start at rest."""
    return [
        (np.maximum(limits.upper - start, _LEAST), np.maximum(start - limits.lower, _LEAST)),
        (limits.velocity, limits.velocity),
        (limits.acceleration, limits.acceleration),
    ]
