"""The problem that planning solves: a smooth function of a shape, and its gradient."""

from functools import cached_property

import numpy as np

from inertid_ros.config.excitation import KINDS, ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.constraints.motion_constraints import motion_constraints
from inertid_ros.excitation.criteria.criterion import Criterion, make_criterion, regressor_condition
from inertid_ros.excitation.criteria.earlier_information import EarlierInformation
from inertid_ros.excitation.limits.constraint import MotionSamples
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.excitation.motions.basis_functions import Basis, CycloidalBasis, FourierBasis
from inertid_ros.excitation.motions.spline import SplineBasis
from inertid_ros.kinematics.chain import Chain
from inertid_ros.robot.model import RobotModel

from .feasible_size import shapes

_POWER = 8.0
_SHARES = (1.0, 0.5, 0.25, 0.12)  # of the size that fits the limits, where a search may begin


class Problem:
    """Shapes of motions from one start pose, and how good they are.

    Attributes
    ----------
    inner :
        Limits of position, velocity and acceleration that motions touch.
    basis :
        Functions of time.
    criterion :
        That motions are planned for.
    limits : MotionLimits
        That finished motions keep.
    options, earlier : ExcitationOptions
        As given.
    constraints :
        What finished motions keep beside their limits.
    confined :
        There is more to keep than limits of single joints, so that the best motion may touch few of them.
    strictness :
        Factor on all penalties.

    Raises
    ------
    ExcitationError
        The start is outside the limits or breaks a constraint.
    """

    def __init__(
        self,
        model: RobotModel,
        limits: MotionLimits,
        start: Array,
        options: ExcitationOptions,
        earlier: EarlierInformation | None = None,
    ) -> None:
        self.model, self.limits, self.options, self.earlier = model, limits, options, earlier
        self.inner = limits.scaled(options.limit_use, options.limit_use)
        self.start = np.array(start, dtype=float)
        self.constraints = motion_constraints(model, limits, options)
        self.confined = any(constraint.positions_only for constraint in self.constraints)
        self.strictness = 1.0
        _check_start(limits, self.start)
        for constraint in self.constraints:
            constraint.check_start(self.start)
        self.basis = make_basis(options)
        instants = (np.arange(options.criterion_samples) + 0.5) * options.duration_s / options.criterion_samples
        self._rows = self.basis.evaluate(instants)
        self._dense = self.basis.evaluate(np.linspace(0.0, options.duration_s, options.constraint_samples))
        self._shapes = shapes(self.basis, _limit_instants(self.basis, options), self.start, self.inner)
        self._step = options.duration_s / options.criterion_samples
        self.criterion = make_criterion(model, limits, options, earlier)

    @cached_property
    def comparison(self) -> Criterion:
        """Condition number that motions are compared by, see :func:`~.criterion.regressor_condition`."""
        return regressor_condition(self.model, self.limits)

    def sized(self, shape: Array) -> Array:
        """Parameters ``(size, n)`` of a shape at the size that just fits, nearly; see :meth:`gradient`."""
        return shape * self._size(shape)[0]

    def refine(self, shape: Array) -> bool:
        """Correct penalties where the motion of a shape shows them to be coarse; whether anything changed."""
        many = self._many(self.criterion.measured.chain, self.sized(shape))
        return sum(constraint.refine(many) for constraint in self.constraints) > 0

    def settled(self, shape: Array) -> Array:
        """A shape to begin with, at the best of a few sizes where the size matters."""
        if not self.confined:
            return shape
        whole = shape * self._shapes.size(shape)[0]
        return min((share * whole for share in _SHARES), key=self.value)

    def _size(self, shape: Array) -> tuple[Array, Array]:
        """Factor per joint ``(n,)`` on a shape, and the derivative ``(size, n)`` of its logarithm."""
        size, slope = self._shapes.size(shape)
        if not self.confined:
            return size, slope
        power = size**-_POWER  # at most both 1 and the size that fits, and smooth
        return (1 + power) ** (-1 / _POWER), slope * (power / (1 + power))

    def value(self, shape: Array) -> float:
        """See :meth:`gradient`; without the gradient it takes half of the time."""
        return self._evaluate(shape, False)[0]

    def gradient(self, shape: Array) -> tuple[float, Array]:
        """Smooth logarithm of the criterion plus the penalties of the constraints, and its gradient.

        ``shape`` is ``(size, n)`` of any scale; what is judged is the motion of that shape that just fits the limits
        of position, velocity and acceleration. Where more than these confines the motion, it is the motion of the
        shape's own size as long as that is well within the limits. The gradient has the form of the shape.
        """
        return self._evaluate(shape, True)

    def _evaluate(self, shape: Array, with_gradient: bool) -> tuple[float, Array]:
        size, size_slope = self._size(shape)
        parameters = shape * size
        q, v, a = (rows @ parameters for rows in self._rows)
        motion = MotionSamples(self.criterion.measured.chain, q + self.start, v, a, self._step)
        excitation = self.criterion.evaluate(motion)
        value = self.criterion.smooth(excitation)
        penalties = [entry.penalty(motion) for entry in self.constraints if not entry.positions_only]
        closely = [entry for entry in self.constraints if entry.positions_only]
        many = self._many(motion.chain, parameters) if closely else motion
        by_position = [entry.penalty(many) for entry in closely]
        value += self.strictness * sum(penalty.value for penalty in penalties + by_position)
        if not with_gradient:
            return value, np.zeros_like(shape)
        entries = (
            self.strictness * sum((getattr(penalty, name) for penalty in penalties), np.zeros(()))
            for name in ("joint_weights", "base_weights")
        )
        along = self.criterion.gradient(excitation, *entries)
        by_parameters = np.zeros_like(shape)
        for rows, channel in zip(self._rows, ("position", "velocity", "acceleration"), strict=True):
            part = self.strictness * sum((getattr(penalty, channel) for penalty in penalties), np.zeros_like(q))
            by_parameters += rows.T @ (getattr(along, channel) + part)
        for penalty in by_position:
            by_parameters += self.strictness * self._dense[0].T @ np.broadcast_to(penalty.position, many.q.shape)
        return value, by_parameters * size + (by_parameters * parameters).sum(axis=0) * size_slope

    def _many(self, chain: Chain, parameters: Array) -> MotionSamples:
        """The motion at the instants of constraints of positions."""
        q, v, a = (rows @ parameters for rows in self._dense)
        return MotionSamples(chain, q + self.start, v, a, self.basis.duration / len(q))


def make_basis(options: ExcitationOptions) -> Basis:
    """Functions of time of the chosen kind of motion.

    Raises
    ------
    ExcitationError
        An unknown kind, or too few harmonics or intervals to move.
    """
    if options.kind == "fourier":
        return FourierBasis(options.duration_s, options.harmonics, options.base_frequency_hz)
    if options.kind == "cycloidal":
        return CycloidalBasis(options.duration_s, options.intervals)
    if options.kind == "bspline":
        return SplineBasis(options.duration_s, options.intervals)
    raise ExcitationError(f"excitation.kind '{options.kind}' is unknown; choose from {', '.join(KINDS)}")


def _limit_instants(basis: Basis, options: ExcitationOptions) -> Array:
    """Where the search looks at the limits, densely; the finished plan is bounded everywhere."""
    if isinstance(basis, FourierBasis):
        count = int(np.ceil(20 * basis.harmonics * basis.base_frequency * basis.duration))
    else:
        count = 12 * options.intervals
    return np.linspace(0.0, basis.duration, max(count, 50))


def _check_start(limits: MotionLimits, start: Array) -> None:
    joints = len(limits.joint_names)
    if start.shape != (joints,) or not np.isfinite(start).all():
        raise ExcitationError(f"start pose {start.tolist()} is not {joints} finite numbers; correct it")
    for joint, name in enumerate(limits.joint_names):
        if not limits.lower[joint] <= start[joint] <= limits.upper[joint]:
            raise ExcitationError(
                f"joint '{name}': the start pose {start[joint]:.4g} is outside its range {limits.lower[joint]:.4g} to"
                f" {limits.upper[joint]:.4g}; move it inside or widen limits.position"
            )
