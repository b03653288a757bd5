"""The problem that planning solves: a smooth function of a shape, and its gradient."""

import numpy as np

from ..errors import ExcitationError
from ..robot.model import RobotModel
from ..robot.parameters import Array
from .bases import Basis, CycloidalBasis, FourierBasis
from .criteria import ConditionNumber, smooth_condition
from .effort import prior_effort
from .feasible import shapes
from .floor import Floor
from .limits import MotionLimits
from .options import ExcitationOptions

_EFFORT_PENALTY = 300.0
_FLOOR_PENALTY = 3000.0  # 1/m^2
_COUPLED_USE = 0.97  # of effort limits, where the penalty begins
_FLOOR_MARGIN = 0.01  # m above the floor, where the penalty begins


class Problem:
    """Shapes of motions from one start pose, and how good they are.

    Attributes
    ----------
    inner: limits of position, velocity and acceleration that motions touch.
    basis: functions of time.
    criterion: condition number.
    limits: that finished motions keep.
    floor: or ``None`` where there is none.

    Raises
    ------
    ExcitationError: the start is outside the limits, needs too much effort or is below the floor.
    """

    def __init__(self, model: RobotModel, limits: MotionLimits, start: Array, options: ExcitationOptions) -> None:
        self.model, self.limits = model, limits
        self.inner = limits.scaled(options.limit_use, options.limit_use)
        self.start = np.array(start, dtype=float)
        self.floor = Floor(model, options.floor_m) if np.isfinite(options.floor_m) else None
        _check_start(model, limits, self.start, self.floor)
        self.basis = make_basis(options)
        instants = (np.arange(options.criterion_samples) + 0.5) * options.duration_s / options.criterion_samples
        self._rows = self.basis.evaluate(instants)
        self._shapes = shapes(self.basis, _limit_instants(self.basis, options), self.start, self.inner)
        self.criterion = ConditionNumber(model, limits.effort, limits.lower, limits.upper)

    def sized(self, shape: Array) -> Array:
        """Parameters ``(size, n)`` of a shape at the size that just fits, nearly."""
        return shape * self._shapes.size(shape)[0]

    def value(self, shape: Array) -> float:
        """See :meth:`gradient`; without the gradient it takes a fifth of the time."""
        return self._evaluate(shape, False)[0]

    def gradient(self, shape: Array) -> tuple[float, Array]:
        """Smoothed logarithm of the condition number plus penalties of effort and floor, and its gradient.

        ``shape`` is ``(size, n)`` of any scale; what is judged is the motion of that shape that just fits the limits
        of position, velocity and acceleration. The gradient has the form of the shape.
        """
        return self._evaluate(shape, True)

    def _evaluate(self, shape: Array, with_gradient: bool) -> tuple[float, Array]:
        size, size_slope = self._shapes.size(shape)
        parameters = shape * size
        q, v, a = (rows @ parameters for rows in self._rows)
        q = q + self.start
        excitation = self.criterion.evaluate(q, v, a)
        value, slope = smooth_condition(excitation.gram)
        ratio = prior_effort(self.model, q, v, a) / self.limits.effort
        excess = np.maximum(np.abs(ratio) - _COUPLED_USE, 0.0)
        value += _EFFORT_PENALTY * float((excess**2).sum()) / len(q)
        sinking: Array | float = 0.0
        if self.floor is not None:
            placements = self.criterion.chain.placements(q)
            depth, sinking = self.floor.penalty(placements, self.criterion.chain.screws(placements), _FLOOR_MARGIN)
            value += _FLOOR_PENALTY * depth
        if not with_gradient:
            return value, np.zeros_like(shape)
        # The effort of the bodies is the regressor times the prior, so its penalty joins the other weights of entries.
        push = _EFFORT_PENALTY * 2 * excess * np.sign(ratio) / self.limits.effort / len(q)
        weights = push[:, :, None] * self.model.body_prior.ravel()
        state = self.criterion.chain.state(q, v, a)
        along = self.criterion.gradient(excitation, slope, state, weights)
        parts = (
            along.position + _FLOOR_PENALTY * sinking,
            along.velocity + push * self.model.drive_prior["viscous"],
            along.acceleration + push * self.model.drive_prior["rotor_inertia"],
        )
        by_parameters = sum((rows.T @ part for rows, part in zip(self._rows, parts, strict=True)), np.zeros_like(shape))
        return value, by_parameters * size + (by_parameters * parameters).sum(axis=0) * size_slope


def make_basis(options: ExcitationOptions) -> Basis:
    """Functions of time of the chosen kind of motion.

    Raises
    ------
    ExcitationError: an unknown kind, or too few harmonics or intervals to move.
    """
    if options.kind == "fourier":
        return FourierBasis(options.duration_s, options.harmonics, options.base_frequency_hz)
    if options.kind == "cycloidal":
        return CycloidalBasis(options.duration_s, options.intervals)
    raise ExcitationError(f"excitation.kind '{options.kind}' is unknown; choose fourier or cycloidal")


def _limit_instants(basis: Basis, options: ExcitationOptions) -> Array:
    """Where the search looks at the limits, densely; the finished plan is bounded everywhere."""
    if isinstance(basis, FourierBasis):
        count = int(np.ceil(20 * basis.harmonics * basis.base_frequency * basis.duration))
    else:
        count = 12 * options.intervals
    return np.linspace(0.0, basis.duration, max(count, 50))


def _check_start(model: RobotModel, limits: MotionLimits, start: Array, floor: Floor | None) -> None:
    if start.shape != (model.joints,) or not np.isfinite(start).all():
        raise ExcitationError(f"start pose {start.tolist()} is not {model.joints} finite numbers; correct it")
    for joint, name in enumerate(limits.joint_names):
        if not limits.lower[joint] <= start[joint] <= limits.upper[joint]:
            raise ExcitationError(
                f"joint '{name}': the start pose {start[joint]:.4g} is outside its range {limits.lower[joint]:.4g} to"
                f" {limits.upper[joint]:.4g}; move it inside or widen limits.position"
            )
    rest = np.zeros((1, model.joints))
    effort = np.abs(prior_effort(model, start[None], rest, rest)[0])
    joint = int(np.argmax(effort / limits.effort))
    if effort[joint] > limits.effort[joint]:
        raise ExcitationError(
            f"joint '{limits.joint_names[joint]}': needs {effort[joint]:.4g} N m to stand at the start pose, beyond its"
            f" effort limit {limits.effort[joint]:.4g} N m; start elsewhere or correct the limit"
        )
    if floor is not None and floor.names:
        heights = floor.heights(start[None])[0]
        lowest = int(np.argmin(heights))
        if heights[lowest] < floor.height:
            raise ExcitationError(
                f"link '{floor.names[lowest]}': is at {heights[lowest]:.3f} m in the start pose, below the floor at"
                f" {floor.height:.3f} m; start higher or lower floor_m"
            )
