"""Planning problem: a smooth function of a motion's shape, and its gradient.

A factor on the parameters of a linear motion ``start + Phi(t) @ parameters`` scales its excursion, velocity and
acceleration equally. So the size per joint at which a shape just touches a limit has a closed form. All motions of the
optimiser keep the limits.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation import motions
from inertid_ros.excitation.constraints.constraint import MotionSamples, Penalty
from inertid_ros.excitation.constraints.motion_constraints import motion_constraints
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.planning.criterion import Criterion, make_criterion
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.identification.information.information import EarlierInformation
from inertid_ros.robot.kinematics import TreeKinematics
from inertid_ros.robot.model import RobotModel

_INITIAL_SHARES = (1.0, 0.5, 0.25, 0.12)  # of the size that fits the limits; candidates for the start of a search
_SIZE_NORM_POWER = 24.0  # of the norm that replaces the largest ratio to a limit
_SIZE_BLEND_POWER = 8.0  # of the smooth minimum of a shape's own size and the size that fits
_SIZE_SAFETY = 1 - 1e-9  # factor on sizes that touch a limit exactly
_MIN_MARGIN = 1e-9  # rad or m; avoids division by zero for a start that lies on a limit

PlanningArguments = tuple[RobotModel, MotionLimits, Array, ExcitationOptions, EarlierInformation | None]
"""Arguments of :class:`PlanningProblem`, to make the problem again in another process or with fresh penalties."""


class PlanningProblem:
    """Objective for shapes of motions from one start pose ``(n,)`` [rad or m].

    Attributes
    ----------
    planning_limits : limits of position, velocity and acceleration to which motions are scaled.
    position_constrained : whether constraints other than joint limits restrict positions; the best motion may then
        touch few joint limits.
    """

    def __init__(
            self, model: RobotModel, limits: MotionLimits, start: Array, options: ExcitationOptions,
            earlier: EarlierInformation | None = None) -> None:
        self.model, self.limits, self.options = model, limits, options
        self.arguments: PlanningArguments = (model, limits, start, options, earlier)
        self.planning_limits = limits.scaled(options.limit_use, options.limit_use)
        self.start = np.array(start, dtype=float)
        self.constraints = motion_constraints(model, limits, options)
        self.position_constrained = any(constraint.positions_only for constraint in self.constraints)
        self.penalty_factor = 1.0
        _check_start(limits, self.start)
        for constraint in self.constraints:
            constraint.check_start(self.start)
        self.basis = make_basis(options)
        self._step = options.duration_s / options.criterion_samples
        instants = self._step * (np.arange(options.criterion_samples, dtype=float) + 0.5)
        self._criterion_basis = self.basis.evaluate(instants)
        self._constraint_basis = self.basis.evaluate(np.linspace(0.0, options.duration_s, options.constraint_samples))
        self._size_bounds = SizeBounds(self.basis, _limit_instants(self.basis), self.start, self.planning_limits)
        self.criterion = make_criterion(model, limits, options, earlier)

    @cached_property
    def comparison(self) -> Criterion:
        return make_criterion(self.model, self.limits)

    def scaled_to_limits(self, shape: Array) -> Array:
        """Parameters ``(size, n)`` of a shape at about the size that just fits the limits; see :meth:`gradient`."""
        return shape * self._size(shape)[0]

    def refine_penalties(self, shape: Array) -> bool:
        """Correct penalties that are too coarse for the motion of a shape; return whether any penalty changed."""
        samples = self._constraint_samples(self.criterion.measured.chain, self.scaled_to_limits(shape))
        return sum(constraint.refine(samples) for constraint in self.constraints) > 0

    def initial_shape(self, shape: Array) -> Array:
        """Initial shape for a descent; if ``position_constrained``, at the best of a few sizes."""
        if not self.position_constrained:
            return shape
        whole = shape * self._size_bounds.size(shape)[0]
        return min((share * whole for share in _INITIAL_SHARES), key=self.value)

    def _size(self, shape: Array) -> tuple[Array, Array]:
        """Factor per joint ``(n,)`` on a shape, and the derivative ``(size, n)`` of its logarithm."""
        size, slope = self._size_bounds.size(shape)
        if not self.position_constrained:
            return size, slope
        power = size**-_SIZE_BLEND_POWER  # smooth minimum of 1 and the size that fits, never above either
        return (1 + power) ** (-1 / _SIZE_BLEND_POWER), slope * (power / (1 + power))

    def value(self, shape: Array) -> float:
        """Value of :meth:`gradient` without the gradient, in half the time."""
        return self._evaluate(shape, False)[0]

    def gradient(self, shape: Array) -> tuple[float, Array]:
        """Smooth logarithm of the criterion plus penalties of the constraints, and its gradient for the shape.

        The shape ``(size, n)`` has any scale, and is evaluated at the size that just fits the limits of position,
        velocity and acceleration. If ``position_constrained``, a size well within these limits is left as it is.
        """
        return self._evaluate(shape, True)

    def _evaluate(self, shape: Array, with_gradient: bool) -> tuple[float, Array]:
        size, size_slope = self._size(shape)
        parameters = shape * size
        q, v, a = (rows @ parameters for rows in self._criterion_basis)
        motion = MotionSamples(self.criterion.measured.chain, q + self.start, v, a, self._step)
        information = self.criterion.evaluate(motion)
        value = self.criterion.smooth(information)
        penalties = [constraint.penalty(motion) for constraint in self.constraints if not constraint.positions_only]
        on_positions = [constraint for constraint in self.constraints if constraint.positions_only]
        samples = self._constraint_samples(motion.chain, parameters) if on_positions else motion
        position_penalties = [constraint.penalty(samples) for constraint in on_positions]
        value += self.penalty_factor * sum(penalty.value for penalty in penalties + position_penalties)
        if not with_gradient:
            return value, np.zeros_like(shape)
        direct = sum(penalties, Penalty(0.0))
        slopes = self.criterion.gradient(
            information, self.penalty_factor * direct.joint_weights, self.penalty_factor * direct.base_weights)
        by_parameters = np.zeros_like(shape)
        for rows, channel in zip(self._criterion_basis, ("position", "velocity", "acceleration"), strict=True):
            by_parameters += rows.T @ (getattr(slopes, channel) + self.penalty_factor * getattr(direct, channel))
        for penalty in position_penalties:
            slope = np.broadcast_to(penalty.position, samples.q.shape)
            by_parameters += self.penalty_factor * self._constraint_basis[0].T @ slope
        return value, by_parameters * size + (by_parameters * parameters).sum(axis=0) * size_slope

    def _constraint_samples(self, chain: TreeKinematics, parameters: Array) -> MotionSamples:
        q, v, a = (rows @ parameters for rows in self._constraint_basis)
        return MotionSamples(chain, q + self.start, v, a, self.basis.duration / len(q))


def make_basis(options: ExcitationOptions) -> motions.Basis:
    """Basis functions of motions of the configured kind."""
    if options.kind == "fourier":
        return motions.FourierBasis(options.duration_s, options.harmonics, options.base_frequency_hz)
    if options.kind == "cycloidal":
        return motions.CycloidalBasis(options.duration_s, options.intervals)
    return motions.SplineBasis(options.duration_s, options.intervals)


def _limit_instants(basis: motions.Basis) -> Array:
    """Dense instants [s] at which the search evaluates the limits; the finished plan is bounded everywhere."""
    if isinstance(basis, motions.FourierBasis):
        count = int(np.ceil(20 * basis.harmonics * basis.base_frequency * basis.duration))
    else:
        count = 12 * basis.intervals
    return np.linspace(0.0, basis.duration, max(count, 50))


def _check_start(limits: MotionLimits, start: Array) -> None:
    joints = len(limits.joint_names)
    if start.shape != (joints,) or not np.isfinite(start).all():
        raise ExcitationError(f"start pose {start.tolist()} is not {joints} finite numbers; correct it")
    for joint, name in enumerate(limits.joint_names):
        if not limits.lower[joint] <= start[joint] <= limits.upper[joint]:
            raise ExcitationError(
                f"joint '{name}': the start pose {start[joint]:.4g} is outside its range {limits.lower[joint]:.4g} to"
                f" {limits.upper[joint]:.4g}; move it inside, or widen its range with"
                " limits.position and limits.position_margin")


class SizeBounds:
    """Largest sizes of shapes from ``start`` ``(n,)`` that keep the limits at sampled instants ``(K,)`` [s]."""

    def __init__(self, basis: motions.Basis, time: Array, start: Array, limits: MotionLimits) -> None:
        self._rows = np.concatenate(basis.evaluate(time))
        margins = _margins(start, limits)
        # Reciprocal distances from the start to the upper and lower limit of each row.
        self._above, self._below = (
            np.concatenate([np.tile(1.0 / margin[side], (len(time), 1)) for margin in margins]) for side in (0, 1))

    def size(self, parameters: Array) -> tuple[Array, Array]:
        """Factor ``(n,)`` per joint that makes a shape ``(size, n)`` fit the limits, and derivative of its logarithm.

        A smooth norm of high power replaces the largest ratio to a limit; the norm is never smaller than this ratio.
        """
        ratio = self._rows @ parameters
        ratio = ratio * np.where(ratio > 0, self._above, self._below)
        magnitude = np.abs(ratio)
        top = np.maximum(magnitude.max(axis=0), 1e-300)
        powers = (magnitude / top) ** (_SIZE_NORM_POWER - 1)
        total = (powers * magnitude / top).sum(axis=0)
        size = 1.0 / (top * total ** (1 / _SIZE_NORM_POWER))
        weight = powers * np.sign(ratio) * np.where(ratio > 0, self._above, self._below) / (top * total)
        return size, -self._rows.T @ weight


def scale_to_limits(
    trajectory: motions.LinearTrajectory, limits: MotionLimits, knot_step: float, grow: bool = True
) -> motions.LinearTrajectory:
    """Scale every joint of a motion until the curve through knots ``knot_step`` [s] apart just touches a limit.

    Without ``grow``, joints within all limits are unchanged.
    """
    time = motions.knot_times(trajectory, knot_step)
    curve = PiecewiseQuintic(time, *trajectory.sample(time))
    worst = np.full(len(trajectory.start), 1e-300)
    for order, (above, below) in enumerate(_margins(trajectory.start, limits)):
        smallest, largest = curve.extremes(order)[0]
        offset = trajectory.start if order == 0 else 0.0
        worst = np.max([worst, (largest - offset) / above, (offset - smallest) / below], axis=0)
    scale = _SIZE_SAFETY / worst
    return replace(trajectory, parameters=trajectory.parameters * (scale if grow else np.minimum(scale, 1.0)))


def _margins(start: Array, limits: MotionLimits) -> list[tuple[Array, Array]]:
    """Distances of a start at rest from the upper and lower limits of position, velocity and acceleration."""
    rest = np.zeros_like(start)
    return [
        (np.maximum(upper - origin, _MIN_MARGIN), np.maximum(origin - lower, _MIN_MARGIN))
        for origin, (lower, upper) in zip((start, rest, rest), limits.bounds, strict=True)]
