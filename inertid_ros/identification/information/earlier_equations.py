"""Equations of earlier recordings, weighted once and for all: what a later fit takes over in place of their samples.

Information is additive: an earlier posterior is the divergence from the first prior plus the weighted equations of its
recordings. With these equations as further rows, and the same first prior, a later fit is the joint fit of both.
"""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.qr import r_factor


@dataclass(frozen=True)
class EarlierEquations:
    """Whitened equations ``R x = z``: errors are independent and of unit variance.

    Attributes
    ----------
    R : ndarray, shape (k, p)
        In the columns of a layout.
    z : ndarray, shape (k,)
        Measured side.
    """

    R: Array
    z: Array

    def __add__(self, other: "EarlierEquations") -> "EarlierEquations":
        whole = r_factor(np.vstack([self.rows, other.rows]))[:-1]
        return EarlierEquations(whole[:, :-1], whole[:, -1])

    @property
    def rows(self) -> Array:
        """``(k, p + 1)``, with the measured side as the last column."""
        return np.column_stack([self.R, self.z])

    def without(self, columns: np.ndarray) -> "EarlierEquations":
        """What the equations say of all other parameters where those of ``columns`` may have any value.

        The parameters are marginalised out under a flat prior, so that nothing of what is left is overstated.
        """
        size = self.R.shape[1]
        rest = np.setdiff1d(np.arange(size), columns)
        ordered = r_factor(self.rows[:, np.concatenate([columns, rest, [size]])])[len(columns) : -1, len(columns) :]
        R = np.zeros((len(ordered), size))
        R[:, rest] = ordered[:, :-1]
        return EarlierEquations(R, ordered[:, -1])

    def in_columns(self, columns: np.ndarray, size: int) -> "EarlierEquations":
        """The same in another layout of ``size`` columns, where parameter ``i`` is in column ``columns[i]``.

        Those with a negative column must not appear in the equations, see :meth:`without`.
        """
        R = np.zeros((len(self.R), size))
        kept = columns >= 0
        R[:, columns[kept]] = self.R[:, kept]
        return EarlierEquations(R, self.z)
