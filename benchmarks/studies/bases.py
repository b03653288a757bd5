"""Scalings of the same information in different frames or bases: none, by the prior's diagonal, or by its metric."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.excitation.planning.criterion import Scaling, pushforward_root

SCALINGS = ("none", "diagonal", "invariant")


def scaling_in(scaling: str, change: Array, base: Array, root: Array, prior: Array) -> Scaling:
    """Scaling computed in parameters ``change @ x``, for rows of equations in ``x``.

    Parameters
    ----------
    change : ndarray, shape (r, r)
        Map from parameters x to parameters of the frame or base.
    base : ndarray, shape (r, p)
        Map from parameters of bodies, in the frame, to x in the frame or base.
    root : ndarray, shape (p, p)
        Inverse root of the prior's metric in the frame.
    prior : ndarray, shape (p,)
        Parameters of bodies in the frame.
    """
    if scaling == "none":
        return Scaling(np.linalg.inv(change))
    if scaling == "diagonal":
        return Scaling(np.linalg.inv(change) @ np.diag(np.abs(base @ prior)))
    # Random bases are badly conditioned: results are transformed back in extended precision.
    wide = np.asarray(base, dtype=np.longdouble) @ np.asarray(root, dtype=np.longdouble)
    return Scaling(pushforward_root(np.eye(len(root)), _solve(change, wide)))


def _solve(matrix: Array, right: Array) -> Array:
    """``matrix^-1 right`` by iterative refinement in extended precision."""
    inverse = np.linalg.inv(np.asarray(matrix, dtype=float))
    extended = np.asarray(matrix, dtype=np.longdouble)
    out = np.zeros_like(right)
    for _ in range(4):
        out = out + (inverse @ np.asarray(right - extended @ out, dtype=float)).astype(np.longdouble)
    return np.asarray(out, dtype=float)
