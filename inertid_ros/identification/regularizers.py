"""Regularizers: what is believed before the data, added to the data's equations as one convex program.

All are written in normalised coordinates, where every body's prior is the identity; so units and frames do not matter.
"""

from dataclasses import dataclass

import numpy as np

from ..robot.layout import ParameterLayout
from ..robot.parameters import BODY_PARAMETERS, PSEUDO_INERTIA_BASIS, Array, from_pseudo_inertia, pseudo_inertia
from .program import Program

REGULARIZERS = ("entropic", "pullback")
TYPICAL_SPREAD = 0.3  # geodesic distance of CAD links to real ones: some tens of per cent in mass and size
_BARRIER = 0.05
_IDENTITY = from_pseudo_inertia(np.eye(4))
_TRACE = np.trace(PSEUDO_INERTIA_BASIS, axis1=1, axis2=2)
# pullback metric at the identity, g = 1/2 tr(E_k E_l) (C 3.3.30 and B.1)
PULLBACK = 0.5 * np.einsum("kij,lji->kl", PSEUDO_INERTIA_BASIS, PSEUDO_INERTIA_BASIS)


@dataclass(frozen=True)
class Belief:
    """What is believed before the data.

    Attributes
    ----------
    regularizer: "entropic" (log-det divergence, C 3.5.44) or "pullback" (constant pullback metric, C 3.5.50).
    spread: standard deviation of a body's geodesic distance to its prior.
    drive_weight: of the belief that drive parameters which cannot be negative are small: an exponential density per
        normalised unit, so that a term stays near zero unless the data ask for it. A weak log barrier
        (C 5.3.30) keeps it above zero.
    offset_deviation: standard deviation of normalised offsets around zero.
    """

    regularizer: str
    spread: float
    drive_weight: float
    offset_deviation: float

    @property
    def weight(self) -> float:
        """``exp(-weight d^2)`` is a normal density of that spread."""
        return 0.5 / self.spread**2


def regularized(R: Array, z: Array, layout: ParameterLayout, belief: Belief) -> Program:
    """Program of whitened equations ``R x = z`` in normalised coordinates under a belief."""
    bodies, size, inertial = len(layout.body_names), layout.size, layout.inertial_size
    positive = layout.non_negative
    offsets = np.arange(size)[layout.drive("offset")]
    rows = [R, _unit_rows(offsets, size) / belief.offset_deviation]
    targets = [z, np.zeros(len(offsets))]
    slope, constant = np.zeros(size), 0.0
    slope[positive] = belief.drive_weight
    if belief.regularizer == "entropic":
        slope[:inertial] = belief.weight * np.tile(_TRACE, bodies)
        constant -= 4 * belief.weight * bodies
        body_weights = np.full(bodies, belief.weight)
    else:
        root = np.zeros((inertial, size))
        root[:, :inertial] = np.kron(np.eye(bodies), np.linalg.cholesky(2 * belief.weight * PULLBACK).T)
        rows.append(root)
        targets.append(root[:, :inertial] @ np.tile(_IDENTITY, bodies))
        body_weights = np.zeros(bodies)
    return Program(
        R=np.vstack(rows),
        z=np.concatenate(targets),
        slope=slope,
        body_weights=body_weights,
        positive=positive,
        positive_weights=np.full(len(positive), _BARRIER * belief.drive_weight),
        constant=constant,
    )


def divergence(x: Array, bodies: int, regularizer: str) -> float:
    """Sum over the bodies of the regularizer's squared distance to the prior, in normalised coordinates."""
    parameters = x[: BODY_PARAMETERS * bodies].reshape(bodies, BODY_PARAMETERS)
    if regularizer == "pullback":
        return float(np.einsum("bk,kl,bl->", parameters - _IDENTITY, PULLBACK, parameters - _IDENTITY))
    S = pseudo_inertia(parameters)
    return float(np.einsum("bii->", S) - 4 * bodies - np.linalg.slogdet(S)[1].sum())


def _unit_rows(columns: np.ndarray, size: int) -> Array:
    rows = np.zeros((len(columns), size))
    rows[np.arange(len(columns)), columns] = 1.0
    return rows
