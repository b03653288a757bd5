"""Steps on the manifold of physically consistent inertial parameters, without the inverse of a metric.

The metric of a body is ``g_ij = tr(J^-1 E_i J^-1 E_j)``, the Hessian of ``-log det J`` ([Lee2019]_ eqs. 5.3.23-24),
with the pseudo-inertia ``J`` and its basis ``E_i``. For a covector ``b`` and the symmetric ``X`` with ``tr(E_i X) =
b_i`` the natural gradient is ``J X J`` ([Lee2019]_ eq. B.4.20, whose factor 2 is in its definition of ``X``). With
``J = L L^T`` the geodesic in that direction is ``L exp(s L^T X L) L^T``: it needs no inverse and stays on the manifold.
"""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import (
    BODY_PARAMETERS,
    PSEUDO_INERTIA_BASIS,
    from_pseudo_inertia,
    pseudo_inertia,
)

_MAX_LOG_STEP = 1.0  # logarithm of the factor by which one step may change a body
_STRAIGHT_STEP_SHARE = 0.9  # of the way to the border of the manifold, in one step


# Symmetric D_i with tr(E_i D_j) = 1 for i = j, else 0; each flattened.
_GRAM = np.einsum("iab,jab->ij", PSEUDO_INERTIA_BASIS, PSEUDO_INERTIA_BASIS)
_DUAL_BASIS = np.tensordot(np.linalg.inv(_GRAM), PSEUDO_INERTIA_BASIS, axes=1).reshape(BODY_PARAMETERS, 16)


def dual_matrix(b: Array) -> Array:
    """Symmetric ``X (..., 4, 4)`` of a covector ``(..., 10)``: ``phi . b = tr(J(phi) X)``."""
    return np.asarray((b @ _DUAL_BASIS).reshape(*b.shape[:-1], 4, 4))


def natural_gradient(bodies: Array, b: Array) -> Array:
    """``g(phi)^-1 b`` of bodies and covectors ``(nb, 10)`` ([Lee2019]_ eq. B.4.20)."""
    J = pseudo_inertia(bodies)
    return from_pseudo_inertia(J @ dual_matrix(b) @ J)


def geodesic_step(bodies: Array, b: Array, size: float) -> Array:
    """Bodies ``(nb, 10)`` after a step along the geodesic that begins with ``-size g^-1 b``.

    Consistent for every size: no step changes a body by more than a factor of e.
    """
    lower = np.linalg.cholesky(pseudo_inertia(bodies))
    tangent = -size * np.swapaxes(lower, 1, 2) @ dual_matrix(b) @ lower
    values, vectors = np.linalg.eigh(tangent)
    longest = np.abs(values).max(axis=1, keepdims=True)
    values = values * np.minimum(1.0, _MAX_LOG_STEP / np.maximum(longest, 1e-300))
    turned = lower @ vectors
    return from_pseudo_inertia((turned * np.exp(values)[:, None, :]) @ np.swapaxes(turned, 1, 2))


def straight_step(bodies: Array, change: Array) -> Array:
    """Bodies ``(nb, 10)`` after a straight step, shortened if it would leave the manifold."""
    lower = np.linalg.cholesky(pseudo_inertia(bodies))
    relative = _relative(lower, change)
    least = np.linalg.eigvalsh(0.5 * (relative + np.swapaxes(relative, 1, 2)))[:, 0]
    share = np.minimum(1.0, _STRAIGHT_STEP_SHARE / np.maximum(-least, 1e-300))
    return np.asarray(bodies + share[:, None] * change)


def within_factor(bodies: Array, first: Array, factor: float) -> Array:
    """Bodies ``(nb, 10)`` between ``first`` over and times a factor, in every direction of the pseudo-inertia.

    Eigenvalues of the pseudo-inertia relative to the first are clipped, which leaves bodies inside as they are.
    """
    lower = np.linalg.cholesky(pseudo_inertia(first))
    values, vectors = np.linalg.eigh(_relative(lower, bodies))
    clipped = np.clip(values, 1 / factor, factor)
    turned = lower @ vectors
    moved = from_pseudo_inertia((turned * clipped[:, None, :]) @ np.swapaxes(turned, 1, 2))
    return np.where((clipped == values).all(axis=1)[:, None], bodies, moved)


def _relative(lower: np.ndarray, parameters: Array) -> Array:
    """``L^-1 J L^-T``, ``(nb, 4, 4)``, of parameters ``(nb, 10)`` and Cholesky factors of other pseudo-inertias."""
    inner = np.linalg.solve(lower, pseudo_inertia(parameters))
    return np.asarray(np.linalg.solve(lower, np.swapaxes(inner, 1, 2)))
