"""Regressor of what is measured along a motion: joint torques, the wrench at the base.

A robot on a force plate can be excited for the plate alone ([Lee2019]_ sec. 4.6.3). Bodies and the drive terms of
single joints are columns; couplings and rotors that are bodies of their own are left out.
"""
# DOC Information of a motion: rows of the regressor in scaled base parameters, and their singular values to all digits.

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.core.qr import r_factor
from inertid_ros.excitation.constraints.constraint import MotionSamples
from inertid_ros.identification.base_parameters.kinematic_tree import tidied
from inertid_ros.regressors.regressor_gradient import MotionGradient, moved_columns, regressor_product_gradient
from inertid_ros.robot.kinematics import TreeKinematics
from inertid_ros.robot.model import RobotModel

Indices = NDArray[np.int_]
Column = Callable[[Array, Array, Array], Array]

_INDEPENDENT = 1e-6  # part of a unit column that is independent of the others
_PREFERENCE = 1e-3  # exponent of its length; a per cent or two between the longest and the shortest column
_PROBES = 200
_SLIDING = 0.02  # rad/s or m/s; the sign of the velocity in Coulomb friction is smoothed over this
# A joint's own drive: its column, which of q, v, a that depends on, and how.
_DRIVES: dict[str, tuple[Column, int, Column]] = {
    "rotor_inertia": (lambda q, v, a: a, 2, lambda q, v, a: np.ones_like(a)),
    "viscous": (lambda q, v, a: v, 1, lambda q, v, a: np.ones_like(v)),
    "coulomb": (lambda q, v, a: np.tanh(v / _SLIDING), 1, lambda q, v, a: (1 - np.tanh(v / _SLIDING) ** 2) / _SLIDING),
    "offset": (lambda q, v, a: np.ones_like(v), 1, lambda q, v, a: np.zeros_like(v)),
    "stiffness": (lambda q, v, a: q, 0, lambda q, v, a: np.ones_like(q)),
}


class MeasurementRegressor:
    """Weighted rows of the regressor of what is measured.

    Parameters
    ----------
    model : RobotModel
        The robot.
    joints : ndarray, shape (n,)
        Weights of the joint torques; empty where none is measured.
    base : ndarray, shape (6,)
        Weights of the reaction wrench (force, torque) at the root, in its frame; empty where none is measured.

    Attributes
    ----------
    columns : ndarray, shape (c,)
        Columns of the model's layout that the rows contain.
    """

    def __init__(self, model: RobotModel, joints: Array, base: Array) -> None:
        self.model, self.chain = model, TreeKinematics.of(tidied(model))
        self.joints, self.base = np.asarray(joints, dtype=float), np.asarray(base, dtype=float)
        if not (len(self.joints) or len(self.base)):
            raise ExcitationError("excitation.measured is empty; name joints, base or both")
        layout = model.layout
        self._terms = tuple(t for t in layout.drive_terms if t in _DRIVES) if len(self.joints) else ()
        drives = [np.arange(layout.size)[layout.drive(term)] for term in self._terms]
        self.columns = np.concatenate([np.arange(layout.body_size), *drives])
        self._carried = moved_columns(self.chain)

    @property
    def bodies(self) -> int:
        """Columns of the bodies; those of drives follow, term by term."""
        return self.model.layout.body_size

    def regressor(self, motion: MotionSamples, columns: Indices) -> Array:
        """``(N, k, r)`` weighted rows, joints first, of the chosen of :attr:`columns` (ascending indices)."""
        bodies, drives = self._split(columns)
        joints = len(self.joints)
        out = np.zeros((len(motion), joints + len(self.base), len(columns)))
        per_parameter = motion.wrenches.regressor[:, :, bodies]
        if joints:
            screws = motion.screws * self.joints[:, None]
            out[:, :joints, : len(bodies)] = (screws @ per_parameter) * self._carried[:, bodies]
            for column, (term, joint) in enumerate(drives, start=len(bodies)):
                signal = _DRIVES[term][0](*(x[:, joint] for x in (motion.q, motion.v, motion.a)))
                out[:, joint, column] = self.joints[joint] * signal
        if len(self.base):
            out[:, joints:, : len(bodies)] = self.base[:, None] * per_parameter
        return out

    def gradient(
        self,
        motion: MotionSamples,
        columns: Indices,
        weights: Array,
        joint_weights: Array | float = 0.0,
        base_weights: Array | float = 0.0,
    ) -> MotionGradient:
        """Gradient along the motion of the weighted sum of the elements of :meth:`regressor`.

        Parameters
        ----------
        weights : ndarray, shape (N, k, r)
        joint_weights, base_weights : ndarray or float, optional
            Weights of further elements of the bodies' rows, which are not weighted as the measured ones are; see
            :class:`.Penalty`.
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
            _, part, slope = _DRIVES[term]
            signal = slope(*(x[:, joint] for x in (motion.q, motion.v, motion.a)))
            parts[part][:, joint] += self.joints[joint] * weights[:, joint, column] * signal
        return out

    def base_columns(self, lower: Array, upper: Array) -> tuple[Indices, Array]:
        """Independent columns for any motion in the range, and how the others depend on them.

        Parameters
        ----------
        lower, upper : ndarray, shape (n,)
            Range of positions [rad or m].

        Returns
        -------
        columns : ndarray of int, shape (r,)
            Ascending indices into :attr:`columns`.
        base : ndarray, shape (r, c)
            Matrix B: all columns are the independent ones times B, so that ``B x`` are the base parameters
            ([Lee2019]_ eqs. 4.2.14-15).

        Raises
        ------
        ExcitationError
            No parameter can be identified.
        """
        rng = np.random.default_rng(0)
        q = rng.uniform(lower, upper, (_PROBES, self.model.joints))
        motion = MotionSamples(self.chain, q, *rng.normal(size=(2, _PROBES, self.model.joints)))
        rows = self.regressor(motion, np.arange(len(self.columns)))
        R = r_factor(rows.reshape(-1, len(self.columns)))
        chosen = _independent_columns(R)
        if not len(chosen):
            raise ExcitationError("excitation: no parameter of this robot can be identified from what is measured")
        norms = np.maximum(np.linalg.norm(R, axis=0), 1e-300)
        unit = R / norms
        base = np.linalg.lstsq(unit[:, chosen], unit, rcond=None)[0]
        base = np.where(np.abs(base) > 1e-9, base, 0.0) * norms / norms[chosen, None]
        base[:, norms <= 1e-12 * norms.max()] = 0.0
        return chosen, base

    def _split(self, columns: Indices) -> tuple[Indices, list[tuple[str, int]]]:
        """Columns of bodies, and drive term and joint of each of the others."""
        drives = (divmod(int(column) - self.bodies, self.model.joints) for column in columns[columns >= self.bodies])
        return columns[columns < self.bodies], [(self._terms[term], joint) for term, joint in drives]


def _independent_columns(rows: Array) -> Indices:
    """Ascending indices of a largest set of independent columns, by pivoted QR of the columns scaled to unit norm.

    Of columns that are multiples of one another, as are the inertias of a first link, the longest is to be chosen and
    not the one that rounding prefers: the others are large multiples of a short one, and digits are lost.
    """
    norms = np.linalg.norm(rows, axis=0)
    used = np.flatnonzero(norms > 1e-12 * norms.max(initial=0.0))
    preferred = (norms[used] / norms.max(initial=1e-300)) ** _PREFERENCE
    R, pivots = scipy.linalg.qr(rows[:, used] / norms[used] * preferred, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > _INDEPENDENT * diagonal[0]).sum()) if len(diagonal) else 0
    return np.sort(used[pivots[:rank]])


_WELL_CONDITIONED, _USABLE = 1e-6, 1e-9  # smallest over largest eigenvalue of the normal matrix
_SMALL = 0.05  # rad; larger angles are between nearly equal values, whose vectors do not matter


@dataclass(frozen=True)
class MotionInformation:
    """Equations that a motion gives in the base parameters, together with those of earlier recordings.

    Attributes
    ----------
    rows : ndarray, shape (m, r)
        Weighted regressor in the base parameters: of the motion first, then of earlier recordings.
    scaled : ndarray, shape (m, r)
        The same in the units of the scaling.
    motion : MotionSamples
        The motion.
    """

    rows: Array
    scaled: Array
    motion: MotionSamples

    @property
    def eigenvalues(self) -> Array:
        """``(r,)`` of the scaled information matrix, ascending; the squares of the singular values of ``scaled``."""
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


def right_spectrum(rows: Array) -> tuple[Array, Array]:
    """Squared singular values and right singular vectors of rows whose columns have very different sizes.

    They come from the normal matrix where that resolves them, and from the rows where rounding would hide them.

    Parameters
    ----------
    rows : ndarray, shape (m, r)
        The matrix.

    Returns
    -------
    values : ndarray, shape (r,)
        Squares of the singular values, ascending.
    vectors : ndarray, shape (r, r)
        Right singular vectors, one per column.
    """
    values, vectors = np.linalg.eigh(rows.T @ rows)
    if values[0] > _WELL_CONDITIONED * values[-1]:
        return values, vectors
    if values[0] < _USABLE * values[-1]:
        vectors = np.linalg.svd(r_factor(rows))[2].T
    return _refined(rows, vectors)


def _refined(rows: Array, vectors: Array) -> tuple[Array, Array]:
    """The same from vectors that are nearly right.

    Decompositions err by rounding of the largest singular value. Along nearly right vectors each length and each angle
    is exact on its own scale, and one rotation in every plane by its angle squares the error (as in Jacobi's method).
    """
    along = rows @ vectors
    lengths = np.maximum(np.linalg.norm(along, axis=0), 1e-150)
    cosines = (along / lengths).T @ (along / lengths)
    squares = lengths**2
    gaps = squares[None, :] - squares[:, None]
    angles = cosines * np.outer(lengths, lengths) / np.where(gaps == 0, np.inf, gaps)
    vectors, _ = np.linalg.qr(vectors + vectors @ np.where(np.abs(angles) < _SMALL, angles, 0.0))
    values = np.sum((rows @ vectors) ** 2, axis=0)
    order = np.argsort(values)
    return values[order], vectors[:, order]
