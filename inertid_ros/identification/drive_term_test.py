"""Whether data show a drive term: its parameters in their own standard deviations."""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from inertid_ros.core.arrays import Array
from inertid_ros.core.qr import r_factor
from inertid_ros.identification.information.information import Information
from inertid_ros.identification.prior.coordinates import prior_coordinates, prior_covariance_root
from inertid_ros.regressors.equations import Equations

_FALSE_POSITIVES = 1e-2  # of joints, or robots, without the term
# Weight of the prior on drives: none, but for joints without samples. A prior on the rest of friction would have
# Stribeck friction explain what it keeps from Coulomb and viscous friction.
_VAGUE = 1e-3


@dataclass(frozen=True)
class DriveTermFit:
    """Linear fit of everything, with what the data alone tell of one drive term.

    Attributes
    ----------
    parameters : ndarray, shape (p,)
        All parameters, without the constraints of a physical robot.
    factor, side : ndarray, shape (n, n) and (n,)
        Whitened equations ``factor y = side`` of the parameters of the term, all others solved for.
    """

    parameters: Array
    factor: Array
    side: Array

    @property
    def significance(self) -> Array:
        """``(n,)`` parameters over their standard deviations; the square is the misfit that one explains."""
        inverse = solve_triangular(self.factor, np.eye(len(self.side)))
        return np.asarray(inverse @ self.side / np.linalg.norm(inverse, axis=1), dtype=float)

    @property
    def explained(self) -> float:
        """Misfit in variances that the term of all joints together explains, with no parameter below zero."""
        _, left = scipy.optimize.nnls(self.factor, self.side)
        return float(self.side @ self.side - left**2)


@dataclass(frozen=True)
class DriveTermTest:
    """Test of the data with the prior of bodies, normal under the pullback metric ([Lee2019]_ eq. 4.3.37).

    As many samples count as are independent. One-sided, since the parameters cannot be negative.

    Attributes
    ----------
    weights : ndarray, shape (c,)
        Of the equations of every channel, by which they are of unit variance and independent.
    counts : ndarray, shape (c,)
        Number of independent samples per channel.
    prior_spreads : ndarray, shape (nb,)
        Standard deviation of the geodesic distance of every body to its prior.
    """

    weights: Array
    counts: Array
    prior_spreads: Array

    def fit(self, equations: Equations, information: Information, term: str) -> DriveTermFit:
        """Fit under equations in which all joints have the term."""
        layout, coordinates = equations.model.layout, prior_coordinates(equations.model, information)
        root, given = prior_covariance_root(coordinates, self.prior_spreads), coordinates.physical(coordinates.prior)
        weight, tested = np.ones(layout.size), np.arange(layout.size)[layout.drive(term)]
        weight[layout.inertial_size :] = _VAGUE
        order = np.concatenate([np.delete(np.arange(layout.size), tested), tested])
        R, z = information.whitened(self.weights)
        data = np.column_stack([(R @ root)[:, order], z - R @ given])
        factor = r_factor(np.vstack([data, np.column_stack([np.diag(weight)[:, order], np.zeros(layout.size)])]))
        last = slice(layout.size - len(tested), layout.size)
        whole = solve_triangular(factor[: layout.size, :-1], factor[: layout.size, -1])
        return DriveTermFit(given + root[:, order] @ whole, factor[last, last], factor[last, -1])

    def passed(self, equations: Equations, significance: Array, tried: int) -> NDArray[np.bool_]:
        """``(n,)`` where noise alone would hardly make the best of ``tried`` parameters as significant."""
        chance = scipy.special.stdtr(np.maximum(self.counts[equations.joint_channels], 1.0), -significance)
        return np.asarray(tried * chance < _FALSE_POSITIVES)

    def passed_together(self, fit: DriveTermFit) -> bool:
        """Whether noise alone would hardly have the term of all joints explain as much.

        Noise alone pushes about every other parameter below zero, where it stays: what ``n`` explain has the
        chi-bar-squared distribution ([Silvapulle2005]_ ch. 3), here of joints that do not depend on one another.
        """
        joints = np.arange(1, len(fit.side) + 1)
        shares = scipy.special.comb(len(fit.side), joints) / 2.0 ** len(fit.side)
        return bool(shares @ scipy.special.chdtrc(joints, fit.explained) < _FALSE_POSITIVES)
