"""Squared distances of bodies to their prior, with gradient and Hessian, in normalised coordinates.

There every body's prior is the identity, so that each distance is a function of the pseudo-inertia ``S`` alone. All
but the Euclidean one are the same in any frames and units ([Lee2019]_ sec. 3.3).
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.inertial_parameters import (
    BODY_PARAMETERS,
    PSEUDO_INERTIA_BASIS,
    from_pseudo_inertia,
    pseudo_inertia,
)

IDENTITY = from_pseudo_inertia(np.eye(4))
TRACE = np.trace(PSEUDO_INERTIA_BASIS, axis1=1, axis2=2)
# pullback metric at the identity, g = 1/2 tr(E_k E_l) ([Lee2019]_ eq. 3.3.30, appendix B.1)
PULLBACK = 0.5 * np.einsum("kij,lji->kl", PSEUDO_INERTIA_BASIS, PSEUDO_INERTIA_BASIS)
_COINCIDENT = 1e-7  # relative difference of eigenvalues below which they count as one


class Distance(Protocol):
    """A squared distance to the prior, summed over bodies ``(nb, 10)`` in normalised coordinates."""

    def value(self, bodies: Array) -> float:
        """Sum over the bodies."""
        ...

    def gradient(self, bodies: Array) -> Array:
        """``(nb, 10)``."""
        ...

    def hessian(self, bodies: Array) -> Array:
        """``(nb, 10, 10)``: bodies do not depend on one another."""
        ...


@dataclass(frozen=True)
class Quadratic:
    """``sum (x - x0)^T g (x - x0)``: constant pullback, Euclidean, relative, or that of point masses.

    The constant pullback distance is [Lee2019]_ eq. 3.3.32.

    Attributes
    ----------
    metric : ndarray, shape (nb, 10, 10) or (10, 10)
        g.
    centre : ndarray, shape (nb, 10) or (10,)
        x0; the prior, which is the identity where it is a body that can exist.
    """

    metric: Array
    centre: Array = field(default_factory=IDENTITY.copy)

    def value(self, bodies: Array) -> float:
        """Sum over the bodies."""
        return float(np.sum((bodies - self.centre) * self.gradient(bodies)) / 2)

    def gradient(self, bodies: Array) -> Array:
        """``(nb, 10)``."""
        return 2 * np.asarray((self.metric @ (bodies - self.centre)[..., None])[..., 0])

    def hessian(self, bodies: Array) -> Array:
        """``(nb, 10, 10)``."""
        return np.array(np.broadcast_to(2 * self.metric, (len(bodies), BODY_PARAMETERS, BODY_PARAMETERS)))


@dataclass(frozen=True)
class Entropic:
    """Log-det divergence ``tr S - log det S - 4`` ([Lee2019]_ eq. 3.3.28)."""

    def value(self, bodies: Array) -> float:
        """Sum over the bodies."""
        S = pseudo_inertia(bodies)
        sign, logarithm = np.linalg.slogdet(S)
        if not _inside(S):
            return np.inf
        return float(np.einsum("bii->", S) - 4 * len(S) - logarithm.sum())

    def gradient(self, bodies: Array) -> Array:
        """``(nb, 10)``."""
        return _trace_with_basis(np.eye(4) - np.linalg.inv(pseudo_inertia(bodies)))

    def hessian(self, bodies: Array) -> Array:
        """``(nb, 10, 10)``."""
        inverse = np.linalg.inv(pseudo_inertia(bodies))[:, None]
        return np.einsum("bkij,lji->bkl", inverse @ PSEUDO_INERTIA_BASIS @ inverse, PSEUDO_INERTIA_BASIS)


@dataclass(frozen=True)
class Riemannian:
    """Squared geodesic distance ``1/2 |log S|^2`` ([Lee2019]_ eq. 3.3.25). Not convex where an eigenvalue exceeds e."""

    def value(self, bodies: Array) -> float:
        """Sum over the bodies."""
        S = pseudo_inertia(bodies)
        if not _inside(S):
            return np.inf
        return float(0.5 * np.sum(np.log(np.linalg.eigvalsh(S)) ** 2))

    def gradient(self, bodies: Array) -> Array:
        """``(nb, 10)``."""
        values, vectors = np.linalg.eigh(pseudo_inertia(bodies))
        return _trace_with_basis((vectors * (np.log(values) / values)[:, None]) @ np.swapaxes(vectors, 1, 2))

    def hessian(self, bodies: Array) -> Array:
        """In the eigenvectors of S the Hessian of a sum of functions of eigenvalues is diagonal: the divided
        differences of the functions' derivative ``log(x) / x``."""
        values, vectors = np.linalg.eigh(pseudo_inertia(bodies))
        turned = np.swapaxes(vectors, 1, 2)[:, None] @ PSEUDO_INERTIA_BASIS @ vectors[:, None]
        first, second = values[:, :, None], values[:, None, :]
        step = second / first - 1
        together = np.abs(step) < _COINCIDENT
        apart = np.where(together, 1.0, step)
        slope = np.where(together, 1 - step / 2, np.log1p(apart) / apart)
        weights = (slope - np.log(first)) / (first * second)
        return np.einsum("bkij,bij,blij->bkl", turned, weights, turned)


def _inside(S: Array) -> bool:
    try:
        np.linalg.cholesky(S)
    except np.linalg.LinAlgError:
        return False
    return True


def _trace_with_basis(matrices: Array) -> Array:
    """``(nb, 10)`` traces of ``(nb, 4, 4)`` with each basis matrix: a gradient by S as one by the parameters."""
    return np.einsum("kij,bij->bk", PSEUDO_INERTIA_BASIS, matrices)
