"""Nearest points of hyperplanes in the manifold of bodies, and geodesic means ([Lee2019]_ sec. 3.4).

All is in normalised coordinates; points of the manifold are pseudo-inertias ``(nb, 4, 4)``, positive definite.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.identification.prior.distances import PULLBACK
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS, PSEUDO_INERTIA_BASIS

_DUAL = np.einsum("kl,lij->kij", np.linalg.inv(2 * PULLBACK), PSEUDO_INERTIA_BASIS)  # tr(E_k F_l) = 1 if k = l, else 0
_LEAST = -0.95 * np.exp(-0.95)  # where Lambert's W is -0.95; at -1 its slope, and with it all accuracy, is lost
_ROOT_STEPS = 80
_EXACT = 1e-15
_DOUBLINGS = 60


@dataclass(frozen=True)
class Hyperplanes:
    """Equations ``sum_j tr(S_j X_ij) = b_i`` ([Lee2019]_ eq. 3.4.38), with weights.

    Attributes
    ----------
    X : ndarray, shape (m, nb, 4, 4)
        Symmetric.
    b, weights : ndarray, shape (m,)
        Weights are ``|a_i|^2 / sigma_i^2`` in the pullback metric ([Lee2019]_ Remark 3.8).
    """

    X: Array
    b: Array
    weights: Array

    @classmethod
    def of(cls, A: Array, b: Array) -> "Hyperplanes":
        """From whitened equations ``A x = b``, ``(m, 10 nb)``, of parameters in normalised coordinates."""
        rows = A.reshape(len(b), -1, BODY_PARAMETERS)
        weights = np.einsum("mbk,kl,mbl->m", rows, np.linalg.inv(PULLBACK), rows)
        return cls(np.einsum("mbk,kij->mbij", rows, _DUAL), b, weights)

    def select(self, rows: np.ndarray) -> "Hyperplanes":
        """Some of the hyperplanes."""
        return Hyperplanes(self.X[rows], self.b[rows], self.weights[rows])


@dataclass(frozen=True)
class Projections:
    """Nearest points of all hyperplanes from one point ``S``.

    Attributes
    ----------
    exists : ndarray, shape (m,)
        Where it is false the hyperplane misses the cone or is too far for a unique nearest point.
    distance : ndarray, shape (m,)
        Signed geodesic distance; positive where ``a^T x > b``.
    direction : ndarray, shape (m, nb, 4, 4)
        Unit tangent, in coordinates whitened by ``S``, along which the distance grows.
    """

    exists: np.ndarray
    distance: Array
    direction: Array

    def points(self, S: Array) -> Array:
        """``(m, nb, 4, 4)`` the nearest points ([Lee2019]_ eq. 3.4.41)."""
        root = matrix_root(S)
        return root @ exponential(-self.distance[:, None, None, None] * self.direction) @ root


def project(S: Array, planes: Hyperplanes) -> Projections:
    """Nearest points of hyperplanes, unique within ``lambda_max(S_j^-1 S_j') < e`` ([Lee2019]_ Prop. 3.2).

    With eigenvalues s of ``S^1/2 X S^1/2`` and Lambert's W the nearest point is where
    ``sum s exp(-W(lambda s)) = b``, a decreasing function of lambda.
    """
    root = matrix_root(S)
    values, vectors = np.linalg.eigh(root @ planes.X @ root)
    flat = values.reshape(len(values), -1)
    scale = np.maximum(np.abs(flat).max(axis=1), 1e-300)  # per row, so that lambda is of the order of one
    sigma, target = flat / scale[:, None], planes.b / scale
    highest, lowest = sigma.max(axis=1), sigma.min(axis=1)
    low = np.where(highest > 0, _LEAST / np.where(highest > 0, highest, 1.0), -np.inf)
    high = np.where(lowest < 0, _LEAST / np.where(lowest < 0, lowest, -1.0), np.inf)
    low, exists_low = _bracket(sigma, target, low, -1.0)
    high, exists_high = _bracket(sigma, target, high, 1.0)
    exists = exists_low & exists_high
    multiplier = _root_of(sigma, target, low, high)
    pull = _slope(multiplier[:, None] * sigma) * sigma  # W(lambda s) / lambda, also at lambda = 0
    length = np.linalg.norm(pull, axis=1)
    unit = (pull / np.maximum(length, 1e-300)[:, None]).reshape(values.shape)
    direction = (vectors * unit[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    # unit tangents of the metric 1/2 tr(U V) have Frobenius norm sqrt(2)
    return Projections(exists, multiplier * length / np.sqrt(2), np.sqrt(2) * direction)


def _slope(x: Array) -> Array:
    """``W(x) / x``, 1 at 0."""
    small = np.abs(x) < 1e-6
    safe = np.where(small, 1.0, x)
    return np.where(small, 1 - x + 1.5 * x**2, _lambert(safe) / np.maximum(safe, _LEAST))


def _lambert(x: Array) -> Array:
    """Lambert's W, from :data:`_LEAST` on."""
    return np.asarray(scipy.special.lambertw(np.maximum(x, _LEAST)).real)


def _sum(sigma: Array, multiplier: Array) -> Array:
    """``sum s exp(-W(lambda s))``."""
    return np.asarray((sigma * _slope(multiplier[:, None] * sigma)).sum(axis=1))


def _bracket(sigma: Array, target: Array, bound: Array, side: float) -> tuple[Array, np.ndarray]:
    """A finite bound of the root on one side, and whether the root lies within it."""
    open_end = ~np.isfinite(bound)
    end = np.where(open_end, side, bound)
    for _ in range(_DOUBLINGS):
        beyond = side * (_sum(sigma, end) - target) > 0  # still on the wrong side: go further where there is room
        if not (beyond & open_end).any():
            break
        end = np.where(beyond & open_end, 2 * end, end)
    return end, side * (_sum(sigma, end) - target) <= 0


def _root_of(sigma: Array, target: Array, low: Array, high: Array) -> Array:
    """Root of a decreasing function per row, by Newton's method kept within a shrinking bracket."""
    x, rounding = np.clip(np.zeros(len(target)), low, high), _EXACT * np.abs(sigma).sum(axis=1)
    for _ in range(_ROOT_STEPS):
        value = _sum(sigma, x) - target
        low, high = np.where(value > 0, x, low), np.where(value > 0, high, x)
        W = _lambert(x[:, None] * sigma)
        slope = -np.sum(sigma**2 * np.exp(-2 * W) / (1 + W), axis=1)
        newton = x - value / np.minimum(slope, -1e-300)
        settled = (np.abs(newton - x) <= _EXACT * np.abs(x)) | (np.abs(value) <= rounding)
        if settled.all():
            break
        middle = np.where((newton > low) & (newton < high), newton, 0.5 * (low + high))
        x = np.where(settled, x, middle)
    return x


def matrix_root(S: Array) -> Array:
    """Square root of positive definite matrices ``(..., n, n)``."""
    return _of_eigenvalues(S, np.sqrt)


def logarithm(S: Array) -> Array:
    """Logarithm of positive definite matrices ``(..., n, n)``."""
    return _of_eigenvalues(S, np.log)


def exponential(S: Array) -> Array:
    """Exponential of symmetric matrices ``(..., n, n)``."""
    return _of_eigenvalues(S, np.exp)


def _of_eigenvalues(S: Array, function: np.ufunc) -> Array:
    values, vectors = np.linalg.eigh(S)
    return np.asarray((vectors * function(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2))
