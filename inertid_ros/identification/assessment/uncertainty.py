"""Uncertainty of every parameter by the data, apart from the prior: variances and identifiability."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from scipy.linalg import solve_triangular

from inertid_ros.core.arrays import Array
from inertid_ros.core.qr import r_factor
from inertid_ros.identification.base_parameters.numeric import BaseParameters
from inertid_ros.identification.information.information import Information
from inertid_ros.identification.prior.coordinates import TYPICAL_PRIOR_SPREAD, prior_coordinates, prior_covariance_root

from .estimate import Estimate, Identifiability, identifiability

_AnyEstimate = TypeVar("_AnyEstimate", bound=Estimate)


@dataclass(frozen=True)
class Uncertainty:
    """Variances from the data alone, and from data and prior under the prior's metric.

    Attributes
    ----------
    values : ndarray, shape (r,)
        Base parameters.
    base_covariance : ndarray, shape (r, r)
        Covariance of the base parameters by the data alone.
    base_shares : ndarray, shape (r,)
        Share of the prior variance of each base parameter that the data removes, 0 to 1, if all are taken as
        independent: a mere correlation of the prior with something identified does not count as identified.
    prior, posterior : ndarray, shape (p, p)
        Covariance of the standard parameters before and after the data. Normal under the pullback metric at the prior
        ([Lee2019]_ eq. 4.3.37), for every regularizer and all hard constraints of the fit.
    relative_deviation : ndarray, shape (p,)
        Standard deviation of the estimate over its value.
    moved : ndarray, shape (p,)
        Estimate less prior, in deviations of the prior or of the estimate, the larger of the two; of bodies, those of
        the typical prior spread if a larger one was estimated from these data.
    """

    base: BaseParameters
    values: Array
    base_covariance: Array
    base_shares: Array
    prior: Array
    posterior: Array
    relative_deviation: Array
    moved: Array

    @cached_property
    def standard_deviation(self) -> Array:
        """``(r,)`` of the base parameters by the data alone."""
        return np.sqrt(np.diagonal(self.base_covariance))

    @cached_property
    def relative_standard_deviation(self) -> Array:
        """Standard deviation ``(r,)`` in per cent of the value; infinite if it is zero."""
        with np.errstate(divide="ignore"):
            return 100 * self.standard_deviation / np.abs(self.values)

    @property
    def rows(self) -> tuple[tuple[str, float, float, float], ...]:
        """Name, value, standard deviation and the same in per cent of every base parameter, as papers print them."""
        numbers = (self.values, self.standard_deviation, self.relative_standard_deviation)
        return tuple(zip(self.base.names, *(column.tolist() for column in numbers), strict=True))

    @cached_property
    def identifiability(self) -> tuple[Identifiability, ...]:
        """One per standard parameter, in the order of the layout."""
        return identifiability(self.base, self.base_shares, self.prior, self.relative_deviation, self.moved)


def with_identifiability(estimate: _AnyEstimate) -> _AnyEstimate:
    """Estimate with the identifiability of its parameters."""
    return replace(estimate, identifiability=uncertainty(estimate, estimate.information).identifiability)


def uncertainty(estimate: Estimate, information: Information) -> Uncertainty:
    """Uncertainty of an estimate's parameters.

    Parameters
    ----------
    information : Information
        Information of the data that was fitted.
    """
    fraction = estimate.effective_counts / np.maximum(information.counts, 1)
    R, _ = information.whitened(np.sqrt(fraction) / estimate.residual_deviation)
    # By the data alone: base parameters under independent samples.
    base = estimate.base
    columns = R[:, base.independent]
    inverse = _inverse_root(columns)
    coordinates = prior_coordinates(estimate.model, information)
    root = prior_covariance_root(coordinates, estimate.prior_spreads)
    single = np.isfinite(estimate.own_prior_spreads) if estimate.own_prior_spreads is not None else False
    spreads = np.where(single, estimate.prior_spreads, np.minimum(estimate.prior_spreads, TYPICAL_PRIOR_SPREAD))
    scale = np.linalg.norm(prior_covariance_root(coordinates, spreads), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.nan_to_num(estimate.standard_deviation / np.abs(estimate.parameters), nan=np.inf)
    scale = np.maximum(scale, estimate.standard_deviation)
    # Under the prior's metric: after the data, and what the data leave of every base parameter's prior variance.
    after = root @ _inverse_root(np.vstack([R @ root, np.eye(len(root))]))
    sizes = np.linalg.norm(base.projection @ root, axis=1)
    remaining = np.sum(_inverse_root(np.vstack([columns * sizes, np.eye(base.count)])) ** 2, axis=1)
    return Uncertainty(
        base=base,
        values=base.projection @ estimate.parameters,
        base_covariance=inverse @ inverse.T,
        base_shares=np.clip(1 - remaining, 0.0, 1.0),
        prior=root @ root.T,
        posterior=after @ after.T,
        relative_deviation=relative,
        moved=(estimate.parameters - coordinates.physical(coordinates.prior)) / scale,
    )


def _inverse_root(equations: Array) -> Array:
    """Inverse of the R factor of equations, columns scaled on the way so that units do not matter."""
    scale = np.linalg.norm(equations, axis=0)
    inverse = solve_triangular(r_factor(equations / scale), np.eye(len(scale)))
    return np.asarray(inverse / scale[:, None])
