"""Units of the base parameters in a criterion, so that those of a wrist and of a shoulder can be compared.

Rows ``A`` of equations in the base parameters become ``A T`` for parameters measured in units of ``T``, and their
information ``A^T A`` becomes ``T^T A^T A T``:

- ``columns``: every column of the regressor has unit norm, along the motion that is evaluated; free of units;
- ``metric``: units of the pushforward metric ``H0 = (B G0^-1 B^T)^-1`` of the prior ([Lee2019]_ eq. 4.3.35), which
  gives the coordinate-invariant criteria ([Lee2019]_ eq. 4.3.38): the same in all frames, units and bases;
- ``prior``: each base parameter in units of its prior value ([Lee2019]_ eq. 4.2.26); frames and bases matter;
- ``none``: SI units; everything matters.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.qr import r_factor
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.identification.prior.coordinates import ENERGY_SHARE, normalised_coordinates, scaling_matrix
from inertid_ros.robot.model import RobotModel

_LEAST = 0.01  # of its length in the metric: what a base parameter of nearly zero counts as


class Scaling(Protocol):
    """How rows of equations are scaled."""

    def scaled(self, rows: Array) -> Array:
        """``(m, r)`` rows in the units of the scaling."""

    def slope(self, rows: Array, scaled: Array, slope: Array) -> Array:
        """Derivative of a function with respect to ``rows``, given that with respect to the ``scaled`` ones."""


@dataclass(frozen=True)
class FixedScaling:
    """Units that do not depend on the motion.

    Attributes
    ----------
    root : ndarray, shape (r, r)
        The matrix T.
    """

    root: Array

    def scaled(self, rows: Array) -> Array:
        """See :class:`Scaling`."""
        return rows @ self.root

    def slope(self, rows: Array, scaled: Array, slope: Array) -> Array:
        """See :class:`Scaling`."""
        return slope @ self.root.T


@dataclass(frozen=True)
class UnitColumns:
    """Columns of unit norm."""

    def scaled(self, rows: Array) -> Array:
        """See :class:`Scaling`."""
        return rows / _norms(rows)

    def slope(self, rows: Array, scaled: Array, slope: Array) -> Array:
        """See :class:`Scaling`."""
        # The component that would only lengthen a column is removed.
        return (slope - scaled * np.einsum("mr,mr->r", scaled, slope)) / _norms(rows)


def prior_scaling(
    scaling: str, model: RobotModel, limits: MotionLimits, columns: NDArray[np.int_], base: Array
) -> Scaling:
    """The scaling ``columns``, ``metric``, ``prior`` or ``none`` at the prior of a model.

    Parameters
    ----------
    columns : ndarray of int, shape (c,)
        Columns of the model's layout that the criterion is about.
    base : ndarray, shape (r, c)
        Matrix B that regroups them into base parameters.
    """
    if scaling == "columns":
        return UnitColumns()
    if scaling == "none":
        return FixedScaling(np.eye(len(base)))
    layout = model.layout
    given = np.zeros(layout.size, dtype=bool)
    given[layout.non_negative] = model.prior[layout.non_negative] > 0
    tail = slice(layout.inertial_size, None)
    scale = np.where(given[tail], model.prior[tail], typical_drives(model, limits))
    coordinates = normalised_coordinates(
        layout, model.consistent_prior, model.inertial_locked, model.prior[tail], scale
    )
    root = pushforward_root(scaling_matrix("metric", coordinates)[np.ix_(columns, columns)], base)
    if scaling == "metric":
        return FixedScaling(root)
    prior = np.abs(base @ model.prior[columns])
    return FixedScaling(np.diag(np.maximum(prior, _LEAST * np.linalg.norm(root, axis=1))))


def pushforward_root(root: Array, base: Array) -> Array:
    """``(r, r)`` L with ``L L^T = B G0^-1 B^T``, the inverse of the pushforward metric, of ``root root^T = G0^-1``."""
    return r_factor((base @ root).T).T


def typical_drives(model: RobotModel, limits: MotionLimits) -> Array:
    """Typical size of each drive parameter of the layout without a prior: a small share of the effort limit."""
    layout, share = model.layout, ENERGY_SHARE * limits.effort
    half_range = 0.5 * (limits.upper - limits.lower)
    by_term = {"rotor_inertia": limits.acceleration, "viscous": limits.velocity, "stiffness": half_range}
    ones = np.ones(model.joints)
    drives = [share / by_term.get(term, ones) for term in layout.drive_terms]
    # Couplings and user terms are in no criterion.
    return np.concatenate([*drives, np.ones(layout.size - layout.coupling_start)])


def _norms(rows: Array) -> Array:
    return np.maximum(np.sqrt(np.einsum("mr,mr->r", rows, rows)), 1e-150)
