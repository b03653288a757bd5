"""Regularizers: what is believed before the data, as smooth convex terms in normalised coordinates.

Each term maps a normalised parameter vector ``(p,)`` to its value, gradient and Hessian blocks. A value of infinity
means that the point is outside the term's domain; barriers (entropic) thereby enforce physical consistency.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ..robot.parameters import BODY_PARAMETERS, PSEUDO_INERTIA_BASIS, Array, from_pseudo_inertia, pseudo_inertia

_IDENTITY = from_pseudo_inertia(np.eye(4))
_TRACE = np.trace(PSEUDO_INERTIA_BASIS, axis1=1, axis2=2)
# pullback metric at the identity, g = 1/2 tr(E_k E_l) (C 3.3.30 and B.1)
PULLBACK = 0.5 * np.einsum("kij,lji->kl", PSEUDO_INERTIA_BASIS, PSEUDO_INERTIA_BASIS)


class Derivatives(NamedTuple):
    """Gradient ``(p,)`` and Hessian ``(p, p)`` of a term."""

    gradient: Array
    hessian: Array


class Term(Protocol):
    """A smooth convex function of normalised parameters."""

    def value(self, x: Array) -> float: ...
    def derivatives(self, x: Array) -> Derivatives: ...


@dataclass(frozen=True)
class Entropic:
    """Log-det divergence of every body from its prior, ``weight * sum(-log det S + tr S - 4)`` (C 3.3.28, 3.5.44).

    A barrier: infinite at and beyond the border of physical consistency.
    """

    bodies: int
    weight: float

    def value(self, x: Array) -> float:
        S = pseudo_inertia(x[: BODY_PARAMETERS * self.bodies].reshape(self.bodies, BODY_PARAMETERS))
        try:
            diagonal = np.einsum("bii->bi", np.linalg.cholesky(S))
        except np.linalg.LinAlgError:
            return np.inf
        return self.weight * float(np.einsum("bii->", S) - 4 * self.bodies - 2 * np.log(diagonal).sum())

    def derivatives(self, x: Array) -> Derivatives:
        size = BODY_PARAMETERS * self.bodies
        S = pseudo_inertia(x[:size].reshape(self.bodies, BODY_PARAMETERS))
        products = np.linalg.inv(S)[:, None] @ PSEUDO_INERTIA_BASIS  # S^-1 E_k
        gradient, hessian = np.zeros_like(x), np.zeros((len(x), len(x)))
        gradient[:size] = self.weight * (_TRACE - np.einsum("bkii->bk", products)).ravel()
        flat = products.reshape(self.bodies, BODY_PARAMETERS, 16)
        swapped = np.swapaxes(products, -1, -2).reshape(self.bodies, BODY_PARAMETERS, 16)
        _add_blocks(hessian, self.weight * flat @ np.swapaxes(swapped, -1, -2))
        return Derivatives(gradient, hessian)


@dataclass(frozen=True)
class Pullback:
    """Constant pullback metric at the prior, ``weight * 1/2 tr((S - 1)^2)`` per body (C 3.3.33). Not a barrier."""

    bodies: int
    weight: float

    def value(self, x: Array) -> float:
        deviation = x[: BODY_PARAMETERS * self.bodies].reshape(self.bodies, BODY_PARAMETERS) - _IDENTITY
        return self.weight * float(np.einsum("bk,kl,bl->", deviation, PULLBACK, deviation))

    def derivatives(self, x: Array) -> Derivatives:
        size = BODY_PARAMETERS * self.bodies
        gradient, hessian = np.zeros_like(x), np.zeros((len(x), len(x)))
        deviation = x[:size].reshape(self.bodies, BODY_PARAMETERS) - _IDENTITY
        gradient[:size] = 2 * self.weight * (deviation @ PULLBACK).ravel()
        _add_blocks(hessian, np.broadcast_to(2 * self.weight * PULLBACK, (self.bodies, *PULLBACK.shape)))
        return Derivatives(gradient, hessian)


@dataclass(frozen=True)
class Quadratic:
    """``1/2 sum(weights * (x - centre)^2)`` over some columns."""

    columns: np.ndarray
    centre: Array
    weights: Array

    def value(self, x: Array) -> float:
        return 0.5 * float(np.sum(self.weights * (x[self.columns] - self.centre) ** 2))

    def derivatives(self, x: Array) -> Derivatives:
        gradient, hessian = np.zeros_like(x), np.zeros((len(x), len(x)))
        gradient[self.columns] = self.weights * (x[self.columns] - self.centre)
        hessian[self.columns, self.columns] = self.weights
        return Derivatives(gradient, hessian)


@dataclass(frozen=True)
class Positive:
    """Entropic divergence from one, ``weight * sum(x - log x - 1)``: for parameters that cannot be negative.

    The one-dimensional case of :class:`Entropic` (C 5.3.30), so a normalised parameter is told only its order
    of magnitude.
    """

    columns: np.ndarray
    weight: float

    def value(self, x: Array) -> float:
        own = x[self.columns]
        if not (own > 0).all():
            return np.inf
        return self.weight * float(np.sum(own - np.log(own) - 1))

    def derivatives(self, x: Array) -> Derivatives:
        own = x[self.columns]
        gradient, hessian = np.zeros_like(x), np.zeros((len(x), len(x)))
        gradient[self.columns] = self.weight * (1 - 1 / own)
        hessian[self.columns, self.columns] = self.weight / own**2
        return Derivatives(gradient, hessian)


def _add_blocks(hessian: Array, blocks: Array) -> None:
    for index, block in enumerate(blocks):
        rows = slice(BODY_PARAMETERS * index, BODY_PARAMETERS * (index + 1))
        hessian[rows, rows] += block
