"""Prior spread of the largest evidence, from a solution and what the data determines there."""

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.qr import inverse_root, semidefinite_root
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.bodies.layout import ParameterLayout

from .convex_program import Solution
from .coordinates import TYPICAL_PRIOR_SPREAD
from .regularizers import Regularization

_HYPERPRIOR_COUNT = 10.0  # weight of the typical prior spread in directions: as much as one body has
_LEAST, _LARGEST = 0.05, 5.0


def prior_spread_of_largest_evidence(
    R: Array, solution: Solution, layout: ParameterLayout, regularization: Regularization, held: NDArray[np.bool_]
) -> float:
    """Prior spread by the fixed point of [MacKay1992]_.

    The data determines ``nu`` directions of the body parameters; over these the divergence ``D`` from the prior
    has the expectation ``nu * prior_spread^2``. A weak hyperprior around the typical prior spread decides where the
    data determines nothing. Bodies with a prior spread of their own count nowhere.

    Parameters
    ----------
    R : ndarray, shape (k, p)
        Whitened equations in normalised coordinates.
    solution : Solution
        Under these and the regularization.
    held : ndarray of bool, shape (p,)
        Parameters that are held at a value; those of bodies count as if they were not.

    Raises
    ------
    IdentificationError
        Neither data nor prior determines a direction.
    """
    bodies = slice(0, layout.inertial_size)
    free = np.isnan(regularization.spreads(len(layout.body_names), of_all=np.nan))
    columns = np.repeat(free, BODY_PARAMETERS)
    root = covariance_root(R, solution, ~held | (np.arange(layout.size) < layout.inertial_size))
    curvature = _prior_curvature(R, solution)[bodies, bodies][columns]
    covariance = (root @ root.T)[bodies, bodies][columns]
    determined = np.clip(columns.sum() - np.sum(covariance * curvature), 0.0, columns.sum())
    distance = regularization.distance.value(layout.all_bodies(solution.x)[free])
    variance = (distance + _HYPERPRIOR_COUNT * TYPICAL_PRIOR_SPREAD**2) / (determined + _HYPERPRIOR_COUNT)
    return float(np.clip(np.sqrt(variance), _LEAST, _LARGEST))


def covariance_root(R: Array, solution: Solution, free: NDArray[np.bool_]) -> Array:
    """Root of the inverse Hessian of a solution in the free columns ``(p,)``, in normalised coordinates.

    Raises
    ------
    IdentificationError
        It has none.
    """
    try:
        prior = semidefinite_root(_prior_curvature(R, solution)[np.ix_(free, free)])
        return inverse_root(np.vstack([R[:, free], prior]))
    except np.linalg.LinAlgError:
        raise IdentificationError("bodies are all but massless; check units of effort and masses") from None


def _prior_curvature(R: Array, solution: Solution) -> Array:
    """``(p, p)`` Hessian of a solution without that of the data."""
    return solution.hessian - R.T @ R if solution.curvature is None else solution.curvature
