"""How well a motion excites, and the gradient of that along the motion.

All criteria have one shape: weighted rows of the regressor (:mod:`.rows`), with those of earlier recordings below them
(A 41), are scaled by what a step in the parameters counts (:mod:`.scaling`), and a function of the eigenvalues of
their information matrix is minimised (:mod:`.spectral`). The gradient needs no derivative of single regressor entries:
it is a weighted sum of them (A 45-47; C 4.4.48-52).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.core.qr import r_factor
from inertid_ros.excitation.limits.constraint import MotionSamples
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.regressors.regressor_gradient import MotionGradient
from inertid_ros.robot.model import RobotModel

from .criterion_scaling import Scaling, prior_scaling
from .graded_svd import right_spectrum
from .known_information import KnownInformation
from .measured_rows import Indices, MeasuredRows
from .optimality import Spectral


@dataclass(frozen=True)
class Excitation:
    """What a motion says of the base parameters, together with what is known already.

    Attributes
    ----------
    rows: ``(m, r)`` equations in the base parameters, of the motion first and then of earlier recordings.
    scaled: ``(m, r)`` the same in the units of the scaling.
    motion: that is judged.
    """

    rows: Array
    scaled: Array
    motion: MotionSamples

    @property
    def eigenvalues(self) -> Array:
        """``(r,)`` of the scaled information, ascending; the squares of the singular values of ``scaled``."""
        return self._spectrum[0]

    @property
    def vectors(self) -> Array:
        """``(r, r)`` their eigenvectors, one per column."""
        return self._spectrum[1]

    @property
    def condition_number(self) -> float:
        """Largest over smallest singular value of the scaled rows; infinite where one is zero."""
        values = self.eigenvalues
        return float(np.sqrt(values[-1] / values[0])) if values[0] > 0 else float("inf")

    @cached_property
    def _spectrum(self) -> tuple[Array, Array]:
        return right_spectrum(self.scaled)


@dataclass(frozen=True)
class Criterion:
    """What planning makes small.

    Attributes
    ----------
    measured: what is measured.
    columns: ``(r,)`` base columns, ascending indices into ``measured.columns``.
    base: ``(r, c)`` B, the columns of the rows to base parameters.
    scaling: what a step in the base parameters counts.
    spectral: function of the eigenvalues.
    known: ``(k, r)`` equations of earlier recordings in the base parameters.
    """

    measured: MeasuredRows
    columns: Indices
    base: Array
    scaling: Scaling
    spectral: Spectral
    known: Array

    @property
    def count(self) -> int:
        """Number of base parameters."""
        return len(self.columns)

    def evaluate(self, motion: MotionSamples) -> Excitation:
        """Information of a motion together with what is known already."""
        regressor = self.measured.regressor(motion, self.columns).reshape(-1, self.count)
        rows = np.concatenate([np.sqrt(motion.step) * regressor, self.known])
        return Excitation(rows, self.scaling.scaled(rows), motion)

    def value(self, excitation: Excitation) -> float:
        """The exact criterion."""
        return self.spectral.value(excitation.eigenvalues)

    def smooth(self, excitation: Excitation) -> float:
        """Smooth logarithm of the criterion."""
        return self.spectral.smooth(excitation.eigenvalues)[0]

    def gradient(
        self, excitation: Excitation, joint_entries: Array | float = 0.0, base_entries: Array | float = 0.0
    ) -> MotionGradient:
        """Gradient of :meth:`smooth` along the motion.

        Parameters
        ----------
        joint_entries, base_entries: weights of further entries of the regressor to add, see
            :class:`~.constraint.Penalty`.
        """
        motion, vectors = excitation.motion, excitation.vectors
        slopes = self.spectral.smooth(excitation.eigenvalues)[1]
        by_scaled = (excitation.scaled @ (vectors * (2 * slopes))) @ vectors.T
        by_rows = self.scaling.slope(excitation.rows, excitation.scaled, by_scaled)
        own = np.sqrt(motion.step) * by_rows[: len(excitation.rows) - len(self.known)]
        weights = own.reshape(len(motion), -1, self.count)
        return self.measured.gradient(motion, self.columns, weights, joint_entries, base_entries)

    def keeping(self, kept: int) -> "Criterion":
        """The same, of so many of the best excited combinations only (C 4.5.2)."""
        return replace(self, spectral=replace(self.spectral, kept=min(kept, self.count)))


def make_criterion(
    model: RobotModel,
    limits: MotionLimits,
    options: ExcitationOptions | None = None,
    known: KnownInformation | None = None,
) -> Criterion:
    """The criterion that options ask for.

    Torques weigh by the residual deviations of ``known``, else by the limits of effort, so that a wrist counts as much
    as a shoulder; a wrench at the base by the deviations in the options.

    Raises
    ------
    ExcitationError: nothing is measured or can be identified, or an unknown criterion.
    """
    options = options or ExcitationOptions()
    joints = np.zeros(0)
    if "joints" in options.measured:
        joints = 1.0 / limits.effort if known is None else known.weights
    base = 1.0 / np.array(options.base_deviation).repeat(3) if "base" in options.measured else np.zeros(0)
    measured = MeasuredRows(model, joints, base)
    columns, B = measured.base_columns(limits.lower, limits.upper)
    if options.kept_parameters > len(columns):
        raise ExcitationError(
            f"excitation.kept_parameters is {options.kept_parameters}, but only {len(columns)} can be identified;"
            " lower it, or 0 for all"
        )
    scaling = prior_scaling(options.scaling, model, limits, measured.columns, B)
    spectral = Spectral(options.criterion, options.kept_parameters)
    # Recordings say of the base columns alone what they say of all, for the others are combinations of them.
    earlier = np.zeros((0, len(columns))) if known is None else r_factor(known.root[:, measured.columns[columns]])
    return Criterion(measured, columns, B, scaling, spectral, earlier)


def regressor_condition(model: RobotModel, limits: MotionLimits) -> Criterion:
    """The condition number that all motions of a robot are compared by, whatever they were planned for.

    Torques divided by the limits of effort, base columns of unit norm.
    """
    return make_criterion(model, limits, ExcitationOptions())
