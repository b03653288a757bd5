"""Scaling of parameters: how long a change of each is, so that small, and nearest to the prior, mean something."""

import numpy as np

from inertid_ros.core.arrays import Array

from .coordinates import ENERGY_SHARE, Coordinates
from .regularizers import PULLBACK, TYPICAL_SPREAD

SCALINGS = ("metric", "prior", "none")
_LEAST = 0.1  # of its natural size: what a prior near zero counts as, since a zero would fix the parameter


def scaling_matrix(kind: str, coordinates: Coordinates) -> Array:
    """``(p, p)`` matrix H: a change ``H y`` of the parameters has the length ``|y|``.

    Parameters
    ----------
    kind: "metric", the pullback metric at the prior, free of units and frames (C 4.3.29-32); "prior", a column by the
        size of its prior (D §III-C), free of units; "none".
    """
    if kind == "none":
        return np.eye(coordinates.layout.size)
    metric = prior_root(coordinates, TYPICAL_SPREAD) / TYPICAL_SPREAD
    if kind == "metric":
        return metric
    prior = np.abs(coordinates.physical(coordinates.prior))
    return np.diag(np.maximum(prior, _LEAST * np.linalg.norm(metric, axis=1)))


def prior_root(coordinates: Coordinates, spread: float) -> Array:
    """``(p, p)`` root of what is believed before the data: ``root @ root.T`` is the covariance of the prior.

    Bodies are normal under the pullback metric (C 4.3.37); drive parameters have the size of their prior, or make
    a small share of the joint's torque; offsets may be as large as the torque.

    Parameters
    ----------
    spread: standard deviation of a body's geodesic distance per direction.
    """
    layout, root = coordinates.layout, coordinates.matrix.copy()
    shape = spread * np.linalg.inv(np.linalg.cholesky(PULLBACK)).T
    for body in range(len(layout.body_names)):
        block = layout.body(body)
        root[block, block] = root[block, block] @ shape
    root[:, layout.drive("offset")] /= ENERGY_SHARE
    return root
