"""The largest feasible size of a motion's shape, per joint and in closed form.

A linear motion ``start + Phi(t) @ parameters`` scales its excursion, velocity and acceleration alike, so every shape
has one size at which it just touches a limit. The optimiser works on shapes; all of its motions are feasible.
"""

from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.excitation.motions.basis_functions import Basis
from inertid_ros.excitation.motions.quintic import PiecewiseQuintic
from inertid_ros.excitation.motions.trajectories import LinearTrajectory, knot_times

_POWER = 24.0
_SAFE = 1 - 1e-9
_LEAST = 1e-9  # rad or m; keeps a start that lies on a limit from dividing by zero


@dataclass(frozen=True)
class SizeBounds:
    """Linear bounds on the size of a shape at sampled instants.

    Attributes
    ----------
    rows : ndarray, shape (K, size)
        Basis functions and their derivatives at the instants.
    above, below : ndarray, shape (K, n)
        Reciprocals of the distances from the start to the upper and lower limit of each row.
    """

    rows: Array
    above: Array
    below: Array

    def size(self, parameters: Array) -> tuple[Array, Array]:
        """Sizes within the limits at the instants.

        The largest ratio to a limit is taken as a norm of high power: smooth, and never too small.

        Parameters
        ----------
        parameters : ndarray, shape (size, n)
            The shape.

        Returns
        -------
        size : ndarray, shape (n,)
            Factor on the shape of each joint.
        slope : ndarray, shape (size, n)
            Derivative of its logarithm with respect to the parameters.
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


def size_bounds(basis: Basis, time: Array, start: Array, limits: MotionLimits) -> SizeBounds:
    """Bounds on shapes that begin at ``start`` ``(n,)``, at the given instants ``(K,)`` [s]."""
    values = basis.evaluate(time)
    margins = _margins(start, limits)
    above, below = (
        np.concatenate([np.tile(1.0 / margin[side], (len(time), 1)) for margin in margins]) for side in (0, 1)
    )
    return SizeBounds(np.concatenate(values), above, below)


def scale_to_limits(
    trajectory: LinearTrajectory, limits: MotionLimits, knot_step: float, grow: bool = True
) -> LinearTrajectory:
    """The motion with every joint scaled so that it touches a limit and crosses none, between the knots too.

    The quintic through knots ``knot_step`` [s] apart is bounded, which is the curve that a plan holds. Without ``grow``
    joints that cross no limit stay as they are.
    """
    time = knot_times(trajectory, knot_step)
    curve = PiecewiseQuintic(time, *trajectory.sample(time))
    worst = np.full(len(trajectory.start), 1e-300)
    for order, (above, below) in enumerate(_margins(trajectory.start, limits)):
        smallest, largest = curve.extremes(order)
        offset = trajectory.start if order == 0 else 0.0
        worst = np.max([worst, (largest.value - offset) / above, (offset - smallest.value) / below], axis=0)
    scale = _SAFE / worst
    return replace(trajectory, parameters=trajectory.parameters * (scale if grow else np.minimum(scale, 1.0)))


def _margins(start: Array, limits: MotionLimits) -> list[tuple[Array, Array]]:
    """Distance of a start at rest from the upper and lower limits of position, velocity and acceleration."""
    return [
        (np.maximum(limits.upper - start, _LEAST), np.maximum(start - limits.lower, _LEAST)),
        (limits.velocity, limits.velocity),
        (limits.acceleration, limits.acceleration),
    ]
