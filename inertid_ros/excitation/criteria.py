"""How well a motion excites: the condition number of the base regressor, and its gradient along the motion.

Rows are divided by the joint's effort limit, so that a wrist counts as much as a shoulder, and every column is scaled
to unit norm, so that the number is free of units. The gradient needs no derivative of single regressor entries: that
of a spectral function of the Gram matrix ``G`` is a weighted sum of them (A eqs. 15-17 and 24).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..errors import ExcitationError
from ..regressors.chain import Chain, ChainState
from ..regressors.gradient import MotionGradient, regressor_product_gradient
from ..regressors.joint_torque import joint_torque_regressor
from ..robot.model import RobotModel
from ..robot.parameters import BODY_PARAMETERS, Array

Column = Callable[[Array, Array, Array], Array]

_INDEPENDENT = 1e-6  # part of a unit column that is independent of the others
_PROBES = 200
_SLIDING = 0.02  # rad/s or m/s; the sign of the velocity in Coulomb friction is smoothed over this
# A joint's own drive: its column, which of q, v, a that depends on, and how. Couplings are left out of the criterion.
_DRIVES: dict[str, tuple[Column, int, Column]] = {
    "rotor_inertia": (lambda q, v, a: a, 2, lambda q, v, a: np.ones_like(a)),
    "viscous": (lambda q, v, a: v, 1, lambda q, v, a: np.ones_like(v)),
    "coulomb": (lambda q, v, a: np.tanh(v / _SLIDING), 1, lambda q, v, a: (1 - np.tanh(v / _SLIDING) ** 2) / _SLIDING),
    "offset": (lambda q, v, a: np.ones_like(v), 1, lambda q, v, a: np.zeros_like(v)),
    "stiffness": (lambda q, v, a: q, 0, lambda q, v, a: np.ones_like(q)),
}


@dataclass(frozen=True)
class Excitation:
    """The Gram matrix of a motion in the scaled base columns, and what it was made from.

    Attributes
    ----------
    gram: ``(r, r)`` with unit diagonal.
    norms: ``(r,)`` of the columns before scaling.
    regressor: ``(N, n, r)`` base columns, rows scaled.
    motion: position, velocity, acceleration ``(N, n)``.
    """

    gram: Array
    norms: Array
    regressor: Array
    motion: tuple[Array, Array, Array]

    @property
    def eigenvalues(self) -> Array:
        """Ascending."""
        return np.asarray(np.linalg.eigvalsh(self.gram), dtype=float)

    @property
    def condition_number(self) -> float:
        """Largest over smallest singular value of the scaled base regressor; infinite where one is zero."""
        values = self.eigenvalues
        return float(np.sqrt(values[-1] / values[0])) if values[0] > 0 else float("inf")


class ConditionNumber:
    """Condition number of the base regressor of a robot: bodies and the drive terms that its layout identifies.

    Parameters
    ----------
    model: the robot.
    effort: ``(n,)`` by which the rows are divided [N m or N].
    lower, upper: ``(n,)`` range in which the base columns are determined [rad or m].

    Raises
    ------
    ExcitationError: nothing can be identified.
    """

    def __init__(self, model: RobotModel, effort: Array, lower: Array, upper: Array) -> None:
        self._model, self._weights, self.chain = model, 1.0 / effort, Chain(model)
        self._terms = tuple(term for term in model.layout.drive_terms if term in _DRIVES)
        rng = np.random.default_rng(0)
        q = rng.uniform(lower, upper, (_PROBES, model.joints))
        v, a = rng.normal(size=(2, _PROBES, model.joints))
        rows = self._full(q, v, a).reshape(-1, self._width)
        self.columns = _independent_columns(rows)
        if not len(self.columns):
            raise ExcitationError("excitation: no parameter of this robot can be identified from its torques")
        bodies = self._bodies
        self._body_columns = self.columns[self.columns < bodies]
        self._drives = [divmod(int(column) - bodies, model.joints) for column in self.columns[self.columns >= bodies]]

    @property
    def count(self) -> int:
        """Number of base parameters."""
        return len(self.columns)

    @property
    def _bodies(self) -> int:
        """Columns of the links; rotors that are bodies of their own are left out of the criterion."""
        return BODY_PARAMETERS * self._model.joints

    @property
    def _width(self) -> int:
        return self._bodies + len(self._terms) * self._model.joints

    def evaluate(self, q: Array, v: Array, a: Array) -> Excitation:
        """Excitation of ``(N, n)`` samples."""
        regressor = self._full(q, v, a)[:, :, self.columns]
        rows = regressor.reshape(-1, self.count)
        gram = rows.T @ rows
        norms = np.sqrt(np.maximum(np.diag(gram), 1e-300))
        return Excitation(gram / np.outer(norms, norms), norms, regressor, (q, v, a))

    def gradient(
        self, excitation: Excitation, slope: Array, state: ChainState, extra: Array | float = 0.0
    ) -> MotionGradient:
        """Gradient along the motion of a function of the scaled Gram matrix.

        Parameters
        ----------
        slope: ``(r, r)`` symmetric derivative of the function with respect to ``excitation.gram``.
        state: of the chain at the samples.
        extra: ``(N, n, 10 nb)`` weights of further regressor entries (unscaled rows) to add.
        """
        # Each column's scale depends on its own entries: d G~ = dG / (d_i d_j) - (G~_ij / 2)(dG_ii / d_i^2 + ...).
        inner = slope / np.outer(excitation.norms, excitation.norms)
        np.fill_diagonal(inner, inner.diagonal() - (slope * excitation.gram).sum(axis=1) / excitation.norms**2)
        weights = 2 * (excitation.regressor @ inner) * self._weights[:, None]
        full = np.zeros((*weights.shape[:2], self._bodies))
        bodies = len(self._body_columns)
        full[:, :, self._body_columns] = weights[:, :, :bodies]
        out = regressor_product_gradient(self.chain, state, full + extra)
        parts = (out.position, out.velocity, out.acceleration)
        for column, (term, joint) in enumerate(self._drives, start=bodies):
            _, part, slope_of = _DRIVES[self._terms[term]]
            parts[part][:, joint] += weights[:, joint, column] * slope_of(*(x[:, joint] for x in excitation.motion))
        return out

    def _full(self, q: Array, v: Array, a: Array) -> Array:
        """``(N, n, 10 nb + terms n)`` with scaled rows."""
        n = self._model.joints
        out = np.zeros((len(q), n, self._width))
        out[:, :, : self._bodies] = joint_torque_regressor(self._model, q, v, a)[:, :, : self._bodies]
        joints = np.arange(n)
        for index, term in enumerate(self._terms):
            out[:, joints, self._bodies + index * n + joints] = _DRIVES[term][0](q, v, a)
        return out * self._weights[:, None]


def smooth_condition(gram: Array, power: float = 4.0) -> tuple[float, Array]:
    """Logarithm of the condition number with smoothed extremes, and its derivative with respect to the Gram matrix.

    ``(log sum w^p + log sum w^-p) / (2 p)`` over the eigenvalues ``w``: differentiable where eigenvalues meet, at least
    the logarithm of the condition number, and within ``log(r) / p`` of it.
    """
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 1e-14 * values[-1])
    up, down = (values / values[-1]) ** power, (values / values[0]) ** -power
    value = 0.5 * (np.log(values[-1] / values[0]) + np.log(up.sum()) / power + np.log(down.sum()) / power)
    slope = 0.5 * (up / up.sum() - down / down.sum()) / values
    return float(value), (vectors * slope) @ vectors.T


def _independent_columns(rows: Array) -> np.ndarray:
    """Ascending indices of a largest set of independent columns, by pivoted QR of the columns scaled to unit norm."""
    norms = np.linalg.norm(rows, axis=0)
    used = np.flatnonzero(norms > 1e-12 * norms.max(initial=0.0))
    R, pivots = scipy.linalg.qr(rows[:, used] / norms[used], mode="r", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = int((diagonal > _INDEPENDENT * diagonal[0]).sum()) if len(diagonal) else 0
    return np.sort(used[pivots[:rank]])
