"""Steps on the manifold of physically consistent inertial parameters, without the inverse of a metric.

The metric of a body is ``g_ij = tr(J^-1 E_i J^-1 E_j)``, the Hessian of ``-log det J`` ([Lee2019]_ eqs. 5.3.23-24),
with the pseudo-inertia ``J`` and its basis ``E_i``.

For a covector ``b`` and the symmetric ``X`` with ``tr(E_i X) = b_i``, the natural gradient is ``J X J`` ([Lee2019]_
eq. B.4.20; its factor 2 comes from a different definition of ``X``). With ``J = L L^T``, the geodesic in this
direction is ``L exp(s L^T X L) L^T``, which needs no inverse and stays on the manifold.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from inertid_ros.core import inertial_parameters as inertial
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError

_MAX_LOG_STEP = 1.0  # logarithm of the factor by which one step may change a body
_MIN_ROOM = 1e-12  # least distance to the largest ratio, against rounding
_MAX_BOUND_SHARE = 0.9  # share of the way to a bound, or to the border of the manifold, in one step

# Symmetric D_i with tr(E_i D_j) = 1 for i = j, else 0; each flattened.
_GRAM = np.einsum("iab,jab->ij", inertial.PSEUDO_INERTIA_BASIS, inertial.PSEUDO_INERTIA_BASIS)
_DUAL_BASIS = np.tensordot(np.linalg.inv(_GRAM), inertial.PSEUDO_INERTIA_BASIS, axes=1).reshape(-1, 16)


def dual_matrix(b: Array) -> Array:
    """Symmetric ``X (..., 4, 4)`` of a covector ``(..., 10)``: ``phi . b = tr(J(phi) X)``."""
    return np.asarray((b @ _DUAL_BASIS).reshape(*b.shape[:-1], 4, 4))


def natural_gradient(bodies: Array, b: Array) -> Array:
    """``g(phi)^-1 b`` of bodies and covectors ``(nb, 10)`` ([Lee2019]_ eq. B.4.20)."""
    J = inertial.pseudo_inertia(bodies)
    return inertial.from_pseudo_inertia(J @ dual_matrix(b) @ J)


def geodesic_step(bodies: Array, b: Array, size: float) -> Array:
    """Bodies ``(nb, 10)`` after a step along the geodesic with the initial direction ``-size g^-1 b``.

    The bodies stay consistent for every ``size``. A step is shortened so that it changes a body by at most a factor e.
    """
    lower = np.linalg.cholesky(inertial.pseudo_inertia(bodies))
    tangent = -size * np.swapaxes(lower, 1, 2) @ dual_matrix(b) @ lower
    values, vectors = np.linalg.eigh(tangent)
    longest = np.abs(values).max(axis=1, keepdims=True)
    values = values * np.minimum(1.0, _MAX_LOG_STEP / np.maximum(longest, 1e-300))
    turned = lower @ vectors
    return inertial.from_pseudo_inertia((turned * np.exp(values)[:, None, :]) @ np.swapaxes(turned, 1, 2))


def straight_step(bodies: Array, change: Array) -> Array:
    """Bodies ``(nb, 10)`` after a straight step, shortened if it would leave the manifold."""
    lower = np.linalg.cholesky(inertial.pseudo_inertia(bodies))
    relative = inertial.relative_pseudo_inertia(lower, change)
    least = np.linalg.eigvalsh(0.5 * (relative + np.swapaxes(relative, 1, 2)))[:, 0]
    share = np.minimum(1.0, _MAX_BOUND_SHARE / np.maximum(-least, 1e-300))
    return np.asarray(bodies + share[:, None] * change)


def within_factor(bodies: Array, first: Array, factor: float) -> Array:
    """Limit the ratio of bodies ``(nb, 10)`` to ``first`` between ``1 / factor`` and ``factor``.

    The eigenvalues of the pseudo-inertia relative to ``first`` are clipped; bodies inside the limits stay unchanged.
    """
    lower = np.linalg.cholesky(inertial.pseudo_inertia(first))
    values, vectors = np.linalg.eigh(inertial.relative_pseudo_inertia(lower, bodies))
    clipped = np.clip(values, 1 / factor, factor)
    turned = lower @ vectors
    moved = inertial.from_pseudo_inertia((turned * clipped[:, None, :]) @ np.swapaxes(turned, 1, 2))
    return np.where((clipped == values).all(axis=1)[:, None], bodies, moved)


def step_within_factor(body: Array, change: Array, first: Array, factor: float) -> Array:
    """Body ``(10,)`` after a straight step, shortened to keep its ratio to ``first`` from ``1 / factor`` to ``factor``.

    Unlike the result of :func:`within_factor`, this body lies on the step, and so within all convex bounds that hold at
    both ends of the step.
    """
    lower = np.linalg.cholesky(inertial.pseudo_inertia(first))
    ratio, slope = inertial.relative_pseudo_inertia(lower, body), inertial.relative_pseudo_inertia(lower, change)
    shares = [1.0]
    for room, towards in ((factor * np.eye(4) - ratio, slope), (ratio - np.eye(4) / factor, -slope)):
        values, vectors = np.linalg.eigh(room)
        scaled = vectors / np.sqrt(np.maximum(values, _MIN_ROOM))
        fastest = float(np.linalg.eigvalsh(scaled.T @ towards @ scaled)[-1])
        shares.append(_MAX_BOUND_SHARE / max(fastest, 1e-300))
    return np.asarray(body + min(shares) * change)


@dataclass(frozen=True)
class HalfSpaces:
    """Bounds ``a_k . phi > b_k`` of one body, kept by barriers ([Lee2019]_ eqs. 5.3.26-29).

    ``a`` are the normals ``(m, 10)``, ``b`` the offsets ``(m,)``; ``weight`` is the barriers' dimensionless weight.
    """

    normals: Array
    offsets: Array
    weight: float = 1.0

    def slack(self, body: Array) -> Array:
        """``(m,)`` distance to the bounds; positive inside."""
        return np.asarray(self.normals @ body - self.offsets)

    def natural_gradient(self, body: Array, b: Array) -> Array:
        """``g+^-1 b``, with barriers, by a linear system with one row per bound ([Lee2019]_ eq. B.4.21)."""
        gradients = natural_gradient(np.tile(body, (1 + len(self.offsets), 1)), np.vstack([b, self.normals]))
        inner = np.diag(self.slack(body) ** 2 / self.weight) + self.normals @ gradients[1:].T
        return np.asarray(gradients[0] - gradients[1:].T @ np.linalg.solve(inner, self.normals @ gradients[0]))

    def step(self, body: Array, b: Array, size: float) -> Array:
        """Body ``(10,)`` after a step that keeps the bounds for every size.

        Raises
        ------
        IdentificationError
            The body is not inside the bounds.
        """
        slack = self.slack(body)
        if (slack <= 0).any():
            raise IdentificationError("adaptation: the first parameters break a bound; start inside the bounds")
        change = -size * self.natural_gradient(body, b)
        approach = float(np.max(-(self.normals @ change) / slack, initial=0.0))
        return straight_step(body[None], change[None] * min(1.0, _MAX_BOUND_SHARE / max(approach, 1e-300)))[0]


@dataclass(frozen=True)
class Intervals:
    """Friction and stiffness between bounds ``(k,)``; upper bounds may be infinite ([Lee2019]_ eqs. 5.3.30-37)."""

    lower: Array
    upper: Array

    def natural_gradient(self, values: Array, b: Array) -> Array:
        """``g^-1 b`` ([Lee2019]_ eqs. B.4.22-23)."""
        return np.asarray(b / (1 / (values - self.lower) ** 2 + 1 / (values - self.upper) ** 2))

    def step(self, values: Array, b: Array, size: float) -> Array:
        """Values ``(k,)`` after a step; inside the bounds for every size.

        Without an upper bound, the step follows the geodesic, which multiplies the distance to the lower bound.
        """
        change = -size * self.natural_gradient(values, b)
        bounded = np.isfinite(self.upper)
        room = np.where(change < 0, values - self.lower, self.upper - values)
        straight = values + change * np.minimum(1.0, _MAX_BOUND_SHARE * room / np.maximum(np.abs(change), 1e-300))
        above = values - self.lower
        curved = self.lower + above * np.exp(np.clip(change / above, -_MAX_LOG_STEP, _MAX_LOG_STEP))
        return np.where(bounded, straight, curved)


@dataclass(frozen=True)
class HalfSpaceProjection:
    """Keep a body in ``a . phi <= b`` by projection ([Lee2019]_ props. 5.8, 5.9); ``a`` is the normal ``(10,)``."""

    normal: Array
    offset: float = 0.0

    def along(self, body: Array, velocity: Array) -> Array:
        """Velocity ``(10,)`` at ``body`` without the part that would leave the half-space ([Lee2019]_ eq. 5.4.57)."""
        outwards = float(self.normal @ velocity)
        if self.normal @ body < self.offset or outwards <= 0:
            return velocity
        w = natural_gradient(body[None], self.normal[None])[0]
        return np.asarray(velocity - outwards / float(self.normal @ w) * w)

    def nearest(self, body: Array) -> Array:
        """Body of the half-space with the least divergence from ``body`` ([Lee2019]_ eq. 5.4.59).

        The minimum of ``D(phi' || phi)`` has ``J'^-1 = J^-1 + s X(a)``, so that ``J' = L (1 + s L^T X L)^-1 L^T``.

        Raises
        ------
        IdentificationError
            The half-space contains no consistent body.
        """
        if self.normal @ body <= self.offset:
            return body
        lower = np.linalg.cholesky(inertial.pseudo_inertia(body))
        values, vectors = np.linalg.eigh(lower.T @ dual_matrix(self.normal) @ lower)
        largest = float(values.max())
        limit = -1 / float(values.min()) if values.min() < 0 else np.inf

        def excess(s: float) -> float:
            return float(np.sum(values / (1 + s * values)) - self.offset)

        upper = 1 / max(largest, 1e-300)
        while excess(min(upper, limit * (1 - 1e-12))) > 0:
            upper *= 2.0
            if upper > min(1e12 / max(largest, 1e-300), limit):
                raise IdentificationError("adaptation: the bound excludes every body; give another bound")
        s = scipy.optimize.brentq(excess, 0.0, min(upper, limit * (1 - 1e-12)), xtol=1e-300, rtol=1e-14)
        turned = lower @ vectors
        return np.asarray(inertial.from_pseudo_inertia((turned / (1 + s * values)) @ turned.T))
