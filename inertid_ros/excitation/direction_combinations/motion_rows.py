"""Equations along a motion that is only planned, as pruning and its cost see them."""

from typing import Protocol

from inertid_ros.core.arrays import Array


class MotionRows(Protocol):
    """What a planned motion will say of the parameters."""

    def rows(self, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        """Equations and measured speeds.

        Parameters
        ----------
        q, v, a : ndarray, shape (N, n)
            Of everything that is planned.

        Returns
        -------
        tuple
            ``(N, r, p)`` rows in independent columns, and ``(N, t)`` what is measured of velocity, which noise blurs
            the less the larger it is.
        """
        ...
