"""Regressor of measurements along a motion (joint torques, wrench at the base), and information of a motion.

A robot on a force plate can be excited for the plate alone ([Lee2019]_ sec. 4.6.3). Columns are bodies and the drive
terms of single joints; couplings, and rotors that are separate bodies, are left out.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from inertid_ros.core.arrays import Array, Indices, r_factor
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.constraints.constraint import MotionSamples
from inertid_ros.identification.base_parameters.closed_form import tidied
from inertid_ros.regressors.regressor_gradient import MotionGradient, moved_columns, regressor_product_gradient
from inertid_ros.robot.kinematics import TreeKinematics
from inertid_ros.robot.model import RobotModel

Column = Callable[[Array], Array]

_MIN_INDEPENDENT_PART = 1e-6  # of a unit column
_LENGTH_EXPONENT = 1e-3  # preference for long columns; a per cent or two between the longest and the shortest
_BASE_SAMPLES = 200  # random states for the choice of base columns
_MIN_SLIDING = 0.02  # rad/s or m/s; velocity over which the sign in Coulomb friction is smoothed
# Drive terms of a joint: index of its argument in (q, v, a), its column, and the derivative of the column.
_DRIVE_COLUMNS: dict[str, tuple[int, Column, Column]] = {
    "rotor_inertia": (2, np.asarray, np.ones_like),
    "viscous": (1, np.asarray, np.ones_like),
    "coulomb": (1, lambda v: np.tanh(v / _MIN_SLIDING), lambda v: (1 - np.tanh(v / _MIN_SLIDING) ** 2) / _MIN_SLIDING),
    "offset": (1, np.ones_like, np.zeros_like),
    "stiffness": (0, np.asarray, np.ones_like)}
# Smallest over largest eigenvalue of the normal matrix: eigenvectors are precise above the first ratio, and useless
# below the second ratio.
_PRECISE_RATIO, _USABLE_RATIO = 1e-6, 1e-9
_MAX_ROTATION = 0.05  # rad; larger angles occur only between nearly equal values, whose vectors do not matter


class MeasurementRegressor:
    """Weighted rows of the regressor of measurements.

    ``joints`` ``(n,)`` are the weights of the joint torques, and ``base`` ``(6,)`` the weights of the reaction wrench
    (force, torque) at the root in its frame; empty if not measured. ``columns`` ``(c,)`` are the layout's columns in
    the rows: first ``bodies`` columns of bodies, then the columns of drives, term by term.
    """

    def __init__(self, model: RobotModel, joints: Array, base: Array) -> None:
        self.model, self.chain = model, TreeKinematics.of(tidied(model))
        self.joints, self.base = np.asarray(joints, dtype=float), np.asarray(base, dtype=float)
        if not (len(self.joints) or len(self.base)):
            raise ExcitationError("excitation.measured is empty; name joints, base or both")
        layout = model.layout
        # Terms without a column here, such as Stribeck friction, do not influence the motion.
        self._terms = tuple(t for t in layout.drive_terms if t in _DRIVE_COLUMNS) if len(self.joints) else ()
        drives = [np.arange(layout.size)[layout.drive(term)] for term in self._terms]
        self.columns = np.concatenate([np.arange(layout.body_size), *drives])
        self._carried, self.bodies = moved_columns(self.chain), layout.body_size

    def regressor(self, motion: MotionSamples, columns: Indices) -> Array:
        """Weighted rows ``(N, k, r)``, joints first; ``columns`` are ascending indices into :attr:`columns`."""
        bodies, drives = self._split(columns)
        joints = len(self.joints)
        out = np.zeros((len(motion), joints + len(self.base), len(columns)))
        per_parameter = motion.wrenches.regressor[:, :, bodies]
        if joints:
            screws = motion.state.screws * self.joints[:, None]
            out[:, :joints, : len(bodies)] = (screws @ per_parameter) * self._carried[:, bodies]
            for column, (term, joint) in enumerate(drives, start=len(bodies)):
                part, function, _ = _DRIVE_COLUMNS[term]
                out[:, joint, column] = self.joints[joint] * function((motion.q, motion.v, motion.a)[part][:, joint])
        if len(self.base):
            out[:, joints:, : len(bodies)] = self.base[:, None] * per_parameter
        return out

    def gradient(
            self, motion: MotionSamples, columns: Indices, weights: Array, joint_weights: Array | float = 0.0,
            base_weights: Array | float = 0.0) -> MotionGradient:
        """Gradient along the motion of the sum of elements of :meth:`regressor` times ``weights`` ``(N, k, r)``.

        ``joint_weights`` and ``base_weights`` come from a :class:`.Penalty` and apply to the unweighted regressor.
        """
        bodies, drives = self._split(columns)
        joints = len(self.joints)
        if joints:
            full = np.zeros((len(motion), joints, self.bodies))
            full[:, :, bodies] = weights[:, :joints, : len(bodies)] * self.joints[:, None]
            joint_weights = full + joint_weights
        if len(self.base):
            full = np.zeros((len(motion), 6, self.bodies))
            full[:, :, bodies] = weights[:, joints:, : len(bodies)] * self.base[:, None]
            base_weights = full + base_weights
        out = regressor_product_gradient(self.chain, motion.state, joint_weights, base_weights, motion.wrenches)
        parts = (out.position, out.velocity, out.acceleration)
        for column, (term, joint) in enumerate(drives, start=len(bodies)):
            part, _, slope = _DRIVE_COLUMNS[term]
            signal = (motion.q, motion.v, motion.a)[part][:, joint]
            parts[part][:, joint] += self.joints[joint] * weights[:, joint, column] * slope(signal)
        return out

    def base_columns(self, lower: Array, upper: Array) -> tuple[Indices, Array]:
        """Independent columns for motions in a range of positions ``(n,)`` [rad or m], and the regrouping matrix B.

        The independent columns are ascending indices ``(r,)`` into :attr:`columns`. Multiplied by B ``(r, c)`` they
        give all columns, so ``B x`` are the base parameters ([Lee2019]_ eqs. 4.2.14-15).
        """
        rng = np.random.default_rng(0)
        q = rng.uniform(lower, upper, (_BASE_SAMPLES, self.model.joints))
        motion = MotionSamples(self.chain, q, *rng.normal(size=(2, _BASE_SAMPLES, self.model.joints)))
        rows = self.regressor(motion, np.arange(len(self.columns)))
        R = r_factor(rows.reshape(-1, len(self.columns)))
        columns = _independent_columns(R)
        if not len(columns):
            raise ExcitationError("excitation: the measurements cannot identify any parameter of this robot")
        norms = np.maximum(np.linalg.norm(R, axis=0), 1e-300)
        unit = R / norms
        base = np.linalg.lstsq(unit[:, columns], unit, rcond=None)[0]
        base = np.where(np.abs(base) > 1e-9, base, 0.0) * norms / norms[columns, None]
        base[:, norms <= 1e-12 * norms.max()] = 0.0
        return columns, base

    def _split(self, columns: Indices) -> tuple[Indices, list[tuple[str, int]]]:
        """Columns of bodies, and the drive term and joint of each other column."""
        drives = (divmod(int(column) - self.bodies, self.model.joints) for column in columns[columns >= self.bodies])
        return columns[columns < self.bodies], [(self._terms[term], joint) for term, joint in drives]


def _independent_columns(rows: Array) -> Indices:
    """Ascending indices of a largest set of independent columns, by pivoted QR of the columns scaled to unit norm.

    If columns are multiples of each other, such as the inertias of a first link, the longest column is chosen. With a
    short column, the other columns would be large multiples, and digits would be lost.
    """
    norms = np.linalg.norm(rows, axis=0)
    used = np.flatnonzero(norms > 1e-12 * norms.max(initial=0.0))
    preferred = (norms[used] / norms.max(initial=1e-300)) ** _LENGTH_EXPONENT
    R, pivots = scipy.linalg.qr(rows[:, used] / norms[used] * preferred, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > _MIN_INDEPENDENT_PART * diagonal[0]).sum()) if len(diagonal) else 0
    return np.sort(used[pivots[:rank]])


@dataclass(frozen=True)
class MotionInformation:
    """Information on the base parameters from a motion and earlier recordings.

    Attributes
    ----------
    rows : (m, r), weighted equations, first of the motion, then of earlier recordings.
    scaled : (m, r), ``rows`` in the units of the scaling.
    eigenvalues, vectors : (r,) and (r, r), ascending, with eigenvectors as columns, of ``scaled.T @ scaled``.
    """

    rows: Array
    scaled: Array
    motion: MotionSamples
    eigenvalues: Array
    vectors: Array

    @property
    def condition_number(self) -> float:
        """Condition number of the scaled rows."""
        return condition_number(self.eigenvalues)


def condition_number(squares: Array) -> float:
    """Largest over smallest singular value, from their squares in ascending order; infinite if the smallest is zero."""
    return float(np.sqrt(squares[-1] / squares[0])) if squares[0] > 0 else float("inf")


def right_spectrum(rows: Array) -> tuple[Array, Array]:
    """Squared singular values ``(r,)``, ascending, and right singular vectors ``(r, r)`` of ``(m, r)`` rows.

    Computed from the normal matrix if it is precise enough; otherwise refined with the rows, as columns may differ much
    in size.
    """
    values, vectors = np.linalg.eigh(rows.T @ rows)
    if values[0] > _PRECISE_RATIO * values[-1]:
        return values, vectors
    if values[0] < _USABLE_RATIO * values[-1]:
        vectors = np.linalg.svd(r_factor(rows))[2].T
    return _refined(rows, vectors)


def _refined(rows: Array, vectors: Array) -> tuple[Array, Array]:
    """Squared singular values and vectors from approximate vectors.

    Rounding errors of decompositions have the scale of the largest singular value. For rows projected on approximate
    vectors, lengths and angles between columns are exact on their own scale. One rotation in each plane of two vectors
    squares the error (Jacobi's method).
    """
    along = rows @ vectors
    lengths = np.maximum(np.linalg.norm(along, axis=0), 1e-150)
    cosines = (along / lengths).T @ (along / lengths)
    squares = lengths**2
    gaps = squares[None, :] - squares[:, None]
    angles = cosines * np.outer(lengths, lengths) / np.where(gaps == 0, np.inf, gaps)
    vectors, _ = np.linalg.qr(vectors + vectors @ np.where(np.abs(angles) < _MAX_ROTATION, angles, 0.0))
    values = np.sum((rows @ vectors) ** 2, axis=0)
    order = np.argsort(values)
    return values[order], vectors[:, order]
