"""Regressor of what is measured along a motion: joint torques, the wrench at the base.

A robot on a force plate can be excited for the plate alone ([Lee2019]_ sec. 4.6.3). Bodies and the drive terms of
single joints are columns; couplings and rotors that are bodies of their own are left out.
"""

from collections.abc import Callable

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.core.qr import r_factor
from inertid_ros.excitation.limits.constraint import MotionSamples
from inertid_ros.identification.base_parameters.kinematic_tree import tidied
from inertid_ros.kinematics.tree_kinematics import TreeKinematics
from inertid_ros.regressors.body_wrenches import moved_columns
from inertid_ros.regressors.regressor_gradient import MotionGradient, regressor_product_gradient
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
