"""How well a motion excites, and the gradient of that along the motion.

All criteria have one form: weighted rows of the regressor (:mod:`.measurement_regressor`), with those of earlier
recordings below them ([Ayusawa2017]_ eq. 41), are scaled by the units of the parameters (:mod:`.criterion_scaling`),
and a function of the eigenvalues of their information matrix is minimised (:mod:`.optimality`). The gradient needs no
derivative of single elements of the regressor: it is the derivative of a weighted sum of them ([Ayusawa2017]_ eqs.
45-47; [Lee2019]_ eqs. 4.4.48-52).
"""

from dataclasses import dataclass, replace

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
from .earlier_information import EarlierInformation
from .measurement_regressor import Indices, MeasurementRegressor
from .motion_information import MotionInformation
from .optimality import OptimalityCriterion


@dataclass(frozen=True)
class Criterion:
    """The objective of planning, to be minimised.

    Attributes
    ----------
    measured : MeasurementRegressor
        Regressor of what is measured along a motion.
    columns : ndarray of int, shape (r,)
        Base columns, ascending indices into ``measured.columns``.
    base : ndarray, shape (r, c)
        Matrix B that regroups the columns of ``measured`` into base parameters.
    scaling : Scaling
        Units of the base parameters.
    optimality : OptimalityCriterion
        Function of the eigenvalues.
    earlier_rows : ndarray, shape (k, r)
        Equations of earlier recordings in the base parameters.
    """

    measured: MeasurementRegressor
    columns: Indices
    base: Array
    scaling: Scaling
    optimality: OptimalityCriterion
    earlier_rows: Array

    @property
    def count(self) -> int:
        """Number of base parameters."""
        return len(self.columns)

    @property
    def column_names(self) -> tuple[str, ...]:
        """``r`` names of the base columns, such as ``forearm.mcx``."""
        return tuple(self.measured.model.layout.names[column] for column in self.measured.columns[self.columns])

    def evaluate(self, motion: MotionSamples) -> MotionInformation:
        """Information of a motion together with that of earlier recordings."""
        regressor = self.measured.regressor(motion, self.columns).reshape(-1, self.count)
        rows = np.concatenate([np.sqrt(motion.step) * regressor, self.earlier_rows])
        return MotionInformation(rows, self.scaling.scaled(rows), motion)

    def value(self, information: MotionInformation) -> float:
        """The exact criterion."""
        return self.optimality.value(information.eigenvalues)

    def smooth(self, information: MotionInformation) -> float:
        """Smooth logarithm of the criterion."""
        return self.optimality.smooth(information.eigenvalues)[0]

    def gradient(
        self, information: MotionInformation, joint_weights: Array | float = 0.0, base_weights: Array | float = 0.0
    ) -> MotionGradient:
        """Gradient of :meth:`smooth` along the motion.

        Parameters
        ----------
        information : MotionInformation
            Of :meth:`evaluate`.
        joint_weights, base_weights : ndarray, optional
            Weights of further elements of the regressor to add, see
            :class:`.Penalty`.

        Returns
        -------
        MotionGradient
            Derivative with respect to positions, velocities and accelerations, ``(N, n)`` each.
        """
        motion, vectors = information.motion, information.vectors
        slopes = self.optimality.smooth(information.eigenvalues)[1]
        by_scaled = (information.scaled @ (vectors * (2 * slopes))) @ vectors.T
        by_rows = self.scaling.slope(information.rows, information.scaled, by_scaled)
        own = np.sqrt(motion.step) * by_rows[: len(information.rows) - len(self.earlier_rows)]
        weights = own.reshape(len(motion), -1, self.count)
        return self.measured.gradient(motion, self.columns, weights, joint_weights, base_weights)

    def keeping(self, kept: int) -> "Criterion":
        """The same over the ``kept`` best excited combinations of parameters only ([Lee2019]_ sec. 4.5.2)."""
        return replace(self, optimality=replace(self.optimality, kept=min(kept, self.count)))


def make_criterion(
    model: RobotModel,
    limits: MotionLimits,
    options: ExcitationOptions | None = None,
    earlier: EarlierInformation | None = None,
) -> Criterion:
    """The criterion that the options name.

    Torques are weighted by the residual deviations of ``earlier``, else by the limits of effort, so that a wrist counts
    as much as a shoulder; a wrench at the base by the deviations in the options.

    Parameters
    ----------
    model : RobotModel
        The robot, with its prior.
    limits : MotionLimits
        Range in which base parameters are determined, and efforts.
    options : ExcitationOptions, optional
        Criterion, scaling and what is measured.
    earlier : EarlierInformation, optional
        Information of earlier recordings.

    Raises
    ------
    ExcitationError
        Nothing is measured or can be identified, or the criterion is unknown.
    """
    options = options or ExcitationOptions()
    joints = np.zeros(0)
    if "joints" in options.measured:
        joints = 1.0 / limits.effort if earlier is None else earlier.weights
    base = 1.0 / np.array(options.base_deviation).repeat(3) if "base" in options.measured else np.zeros(0)
    measured = MeasurementRegressor(model, joints, base)
    columns, B = measured.base_columns(limits.lower, limits.upper)
    if options.kept_parameters > len(columns):
        raise ExcitationError(
            f"excitation.kept_parameters is {options.kept_parameters}, but only {len(columns)} can be identified;"
            " lower it, or 0 for all"
        )
    scaling = prior_scaling(options.scaling, model, limits, measured.columns, B)
    optimality = OptimalityCriterion(options.criterion, options.kept_parameters)
    # The other columns are combinations of the base columns: these hold all the information of recordings.
    rows = np.zeros((0, len(columns))) if earlier is None else r_factor(earlier.root[:, measured.columns[columns]])
    return Criterion(measured, columns, B, scaling, optimality, rows)


def regressor_condition(model: RobotModel, limits: MotionLimits) -> Criterion:
    """The condition number by which all motions of a robot are compared, whatever they were planned for.

    Torques are divided by the limits of effort, and base columns have unit norm.
    """
    return make_criterion(model, limits, ExcitationOptions())
