"""Excitation criteria of a motion, and their gradient along the motion.

Weighted rows of the regressor (:mod:`.measurement_regressor`) are stacked on the rows of earlier recordings
([Ayusawa2017]_ eq. 41) and scaled by the units of the parameters. The criterion, to be minimised, is a function of the
eigenvalues of the information matrix of all rows. Its gradient is the derivative of a weighted sum of regressor
elements ([Ayusawa2017]_ eqs. 45-47; [Lee2019]_ eqs. 4.4.48-52).

**Scaling.** Rows ``A`` of equations in the base parameters become ``A T`` for parameters in units of ``T``, and their
information ``A^T A`` becomes ``T^T A^T A T``. Scaling makes the parameters of a wrist and of a shoulder comparable:

- ``columns``: every column of the regressor has unit norm along the evaluated motion; independent of units;
- ``metric``: units of the pushforward metric ``H0 = (B G0^-1 B^T)^-1`` of the prior ([Lee2019]_ eq. 4.3.35). This
  gives coordinate-invariant criteria ([Lee2019]_ eq. 4.3.38), equal in all frames, units and bases;
- ``prior``: each base parameter in units of its prior value ([Lee2019]_ eq. 4.2.26); depends on frames and bases;
- ``none``: SI units; depends on units, frames and bases.

**Optimality** ([Lee2019]_ 4.2.9, 4.3.41-45). An eigenvalue ``w`` is the precision of one combination of parameters,
``w^-1/2`` its standard deviation. All criteria are expressed in standard deviations:

- ``condition``: largest over smallest deviation, the condition number of the scaled regressor ([Ayusawa2017]_ eq. 7);
- ``a``: root mean square deviation;  ``d``: geometric mean;  ``e``: largest deviation.

The search minimises the criterion's logarithm, with norms of high power for extremes. Equal eigenvalues then have equal
slopes, so the gradient ``V diag(slope) V^T`` does not depend on the choice of their eigenvectors ([Ayusawa2017]_ leaves
this open after eq. 17). Exact extremes would have a kink at equal eigenvalues, and descent would stall there.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.arrays import Array, Indices, r_factor
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.constraints.constraint import MotionSamples
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.motions import Trajectory
from inertid_ros.excitation.planning import measurement_regressor as measurement
from inertid_ros.identification.information.information import EarlierInformation
from inertid_ros.identification.solvers.coordinates import ENERGY_SHARE, normalised_coordinates, scaling_matrix
from inertid_ros.regressors.regressor_gradient import MotionGradient
from inertid_ros.robot.model import RobotModel

_MIN_PRIOR_SHARE = 0.01  # smallest ``prior`` unit of a parameter, as a share of its ``metric`` unit
_NORM_POWER = 4.0  # of norms that replace extremes; the smooth logarithm is too large by at most log(r) / 4
_MIN_EIGENVALUE_RATIO = 1e-24  # to the largest eigenvalue; a direction below it counts as not excited
_EIGENVALUE_TIE = 1e-9  # relative difference of eigenvalues that count as equal


@dataclass(frozen=True)
class Scaling:
    """Units of the base parameters: the matrix T, ``root`` ``(r, r)``; None scales columns to unit norm."""

    root: Array | None = None

    def scaled(self, rows: Array) -> Array:
        """``(m, r)`` rows in the units of the scaling."""
        return rows / _norms(rows) if self.root is None else np.asarray(rows @ self.root, dtype=float)

    def slope(self, rows: Array, scaled: Array, slope: Array) -> Array:
        """Derivative of a function with respect to ``rows``, from its derivative with respect to ``scaled``."""
        if self.root is not None:
            return slope @ self.root.T
        # Remove the component that would only lengthen a column.
        return (slope - scaled * np.einsum("mr,mr->r", scaled, slope)) / _norms(rows)


def prior_scaling(scaling: str, model: RobotModel, limits: MotionLimits, columns: Indices, base: Array) -> Scaling:
    """Scaling with the given name (``columns``, ``metric``, ``prior`` or ``none``), evaluated at the model's prior.

    The array ``columns`` ``(c,)`` selects columns of the layout; ``base``, B ``(r, c)``, regroups them into base
    parameters.
    """
    if scaling == "columns":
        return Scaling()
    if scaling == "none":
        return Scaling(np.eye(len(base)))
    layout = model.layout
    has_prior = np.zeros(layout.size, dtype=bool)
    has_prior[layout.non_negative] = model.prior[layout.non_negative] > 0
    tail, start = slice(layout.inertial_size, None), model.prior[layout.inertial_size :]
    scale = np.where(has_prior[tail], start, typical_drives(model, limits))
    coordinates = normalised_coordinates(layout, model.consistent_prior, model.inertial_locked, start, scale)
    root = pushforward_root(scaling_matrix("metric", coordinates)[np.ix_(columns, columns)], base)
    if scaling == "metric":
        return Scaling(root)
    prior = np.abs(base @ model.prior[columns])
    return Scaling(np.diag(np.maximum(prior, _MIN_PRIOR_SHARE * np.linalg.norm(root, axis=1))))


def pushforward_root(root: Array, base: Array) -> Array:
    """L ``(r, r)`` with ``L L^T = B G0^-1 B^T``, the inverse pushforward metric; ``root root^T`` is ``G0^-1``."""
    return r_factor((base @ root).T).T


def typical_drives(model: RobotModel, limits: MotionLimits) -> Array:
    """Drive parameters whose efforts are a share of the effort limit; 1 for couplings and user terms of the layout."""
    layout, half_range = model.layout, 0.5 * (limits.upper - limits.lower)
    by_term = {"rotor_inertia": limits.acceleration, "viscous": limits.velocity, "stiffness": half_range}
    drives = [ENERGY_SHARE * limits.effort / by_term.get(term, 1.0) for term in layout.drive_terms]
    # Criteria exclude couplings and user terms.
    return np.concatenate([*drives, np.ones(layout.size - layout.coupling_start)])


def _norms(rows: Array) -> Array:
    return np.maximum(np.sqrt(np.einsum("mr,mr->r", rows, rows)), 1e-150)


Smooth = Callable[[Array], tuple[float, Array]]


def _condition(values: Array) -> tuple[float, Array]:
    up, down = (values / values[-1]) ** _NORM_POWER, (values / values[0]) ** -_NORM_POWER
    value = 0.5 * (np.log(values[-1] / values[0]) + np.log(up.sum()) / _NORM_POWER + np.log(down.sum()) / _NORM_POWER)
    return float(value), 0.5 * (up / up.sum() - down / down.sum()) / values


def _a(values: Array) -> tuple[float, Array]:
    inverse = values[0] / values
    return float(0.5 * np.log(inverse.mean() / values[0])), -0.5 * inverse / inverse.sum() / values


def _d(values: Array) -> tuple[float, Array]:
    return float(-0.5 * np.log(values).mean()), -0.5 / len(values) / values


def _e(values: Array) -> tuple[float, Array]:
    down = (values / values[0]) ** -_NORM_POWER
    return float(0.5 * (np.log(down.sum()) / _NORM_POWER - np.log(values[0]))), -0.5 * down / down.sum() / values


# Criterion as a function of eigenvalues, and its smooth logarithm.
_CRITERIA: dict[str, tuple[Callable[[Array], float], Smooth]] = {
    "condition": (lambda values: float(np.sqrt(values[-1] / values[0])), _condition),
    "a": (lambda values: float(np.sqrt(np.mean(1 / values))), _a),
    "d": (lambda values: float(np.exp(-0.5 * np.log(values).mean())), _d),
    "e": (lambda values: float(1 / np.sqrt(values[0])), _e)}


@dataclass(frozen=True)
class OptimalityCriterion:
    """Function ``condition``, ``a``, ``d`` or ``e`` of eigenvalues, to be minimised.

    Only the ``kept`` largest eigenvalues count ([Lee2019]_ sec. 4.5.2); 0 counts all. Equal eigenvalues at the cut
    share their slope, so that the gradient lies in the subdifferential.
    """

    name: str
    kept: int = 0

    def value(self, values: Array) -> float:
        """Criterion of ascending eigenvalues ``(r,)``; infinite if a counted direction is not excited."""
        counted = self._counted(values)
        return _CRITERIA[self.name][0](counted) if counted[0] > 0 else float("inf")

    def smooth(self, values: Array) -> tuple[float, Array]:
        """Smooth logarithm of the criterion, and its derivative ``(r,)`` with respect to the eigenvalues."""
        values = np.maximum(values, _MIN_EIGENVALUE_RATIO * values[-1])
        counted = self._counted(values)
        value, slope = _CRITERIA[self.name][1](counted)
        slope = np.concatenate([np.zeros(len(values) - len(counted)), slope])
        tied = np.abs(values - counted[0]) < _EIGENVALUE_TIE * counted[0]
        slope[tied] = slope[tied].mean()
        return value, slope

    def _counted(self, values: Array) -> Array:
        return values[-self.kept :] if self.kept else values


@dataclass(frozen=True)
class Criterion:
    """Objective of planning, to be minimised.

    The base ``columns`` ``(r,)`` are ascending indices into ``measured.columns`` ``(c,)``. ``base`` B ``(r, c)``
    regroups all columns into base parameters. ``earlier_rows`` ``(k, r)`` are equations of earlier recordings in the
    base parameters.
    """

    measured: measurement.MeasurementRegressor
    columns: Indices
    base: Array
    scaling: Scaling
    optimality: OptimalityCriterion
    earlier_rows: Array

    @property
    def count(self) -> int:
        return len(self.columns)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of the ``r`` base columns, such as ``forearm.mcx``."""
        return tuple(self.measured.model.layout.names[column] for column in self.measured.columns[self.columns])

    def evaluate(self, motion: MotionSamples) -> measurement.MotionInformation:
        """Information of a motion and of earlier recordings."""
        regressor = self.measured.regressor(motion, self.columns).reshape(-1, self.count)
        rows = np.concatenate([np.sqrt(motion.step) * regressor, self.earlier_rows])
        scaled = self.scaling.scaled(rows)
        return measurement.MotionInformation(rows, scaled, motion, *measurement.right_spectrum(scaled))

    def along(self, trajectory: Trajectory, step: float = 0.05) -> measurement.MotionInformation:
        """:meth:`evaluate` a trajectory at the middle of every step of length ``step`` [s]."""
        instants = np.arange(0.5 * step, trajectory.duration, step)
        return self.evaluate(MotionSamples(self.measured.chain, *trajectory.sample(instants), step))

    def value(self, information: measurement.MotionInformation) -> float:
        """Exact criterion."""
        return self.optimality.value(information.eigenvalues)

    def smooth(self, information: measurement.MotionInformation) -> float:
        """Smooth logarithm of the criterion."""
        return self.optimality.smooth(information.eigenvalues)[0]

    def gradient(
            self, information: measurement.MotionInformation, joint_weights: Array | float = 0.0,
            base_weights: Array | float = 0.0) -> MotionGradient:
        """Gradient of :meth:`smooth` along the motion, plus gradient of penalties with :class:`.Penalty`'s weights."""
        motion, vectors = information.motion, information.vectors
        slopes = self.optimality.smooth(information.eigenvalues)[1]
        by_scaled = (information.scaled @ (vectors * (2 * slopes))) @ vectors.T
        by_rows = self.scaling.slope(information.rows, information.scaled, by_scaled)
        by_motion = np.sqrt(motion.step) * by_rows[: len(information.rows) - len(self.earlier_rows)]
        weights = by_motion.reshape(len(motion), -1, self.count)
        return self.measured.gradient(motion, self.columns, weights, joint_weights, base_weights)


def make_criterion(
        model: RobotModel, limits: MotionLimits, options: ExcitationOptions | None = None,
        earlier: EarlierInformation | None = None) -> Criterion:
    """Make the criterion of the options, for base parameters that are identifiable within ``limits``.

    Default options give the condition number by which motions of a robot are compared. Torques have the weights of
    ``earlier``, or else the inverse effort limits; a wrench at the base has the inverse deviations in the options.
    """
    options = options or ExcitationOptions()
    weights = 1.0 / limits.effort if earlier is None else earlier.weights
    joints = weights if "joints" in options.measured else np.zeros(0)
    base = 1.0 / np.array(options.base_deviation).repeat(3) if "base" in options.measured else np.zeros(0)
    measured = measurement.MeasurementRegressor(model, joints, base)
    columns, B = measured.base_columns(limits.lower, limits.upper)
    if options.kept_parameters > len(columns):
        raise ExcitationError(
            f"excitation.kept_parameters is {options.kept_parameters}, but only {len(columns)} can be identified;"
            " lower it, or set 0 for all")
    scaling = prior_scaling(options.scaling, model, limits, measured.columns, B)
    optimality = OptimalityCriterion(options.criterion, options.kept_parameters)
    # All other columns are combinations of the base columns, so the base columns carry all information of recordings.
    rows = np.zeros((0, len(columns))) if earlier is None else r_factor(earlier.root[:, measured.columns[columns]])
    return Criterion(measured, columns, B, scaling, optimality, rows)
