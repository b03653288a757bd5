"""Identifiability of every parameter: the share of the prior variance that the data removes."""

from dataclasses import replace
from typing import TypeVar

import numpy as np
from scipy.linalg import solve_triangular

from inertid_ros.core.arrays import Array
from inertid_ros.core.qr import r_factor
from inertid_ros.identification.base_parameters.numeric import BaseParameters
from inertid_ros.identification.prior.coordinates import TYPICAL_PRIOR_SPREAD, prior_coordinates, prior_covariance_root

from .estimate import COMBINED, IDENTIFIED, MOVED_DEVIATIONS, PARTLY, PARTLY_SHARE, PRIOR, Estimate, Identifiability

_IDENTIFIED_SHARE = 0.9  # of the prior variance that the data takes away: the prior is a tenth of what is known
_MEMBER_SHARE = 0.1  # what counts as part of a combination: this much of its most uncertain member's standard deviation
_AnyEstimate = TypeVar("_AnyEstimate", bound=Estimate)


def with_identifiability(estimate: _AnyEstimate) -> _AnyEstimate:
    """Estimate with the identifiability of its parameters, which counts samples by their independent share.

    The prior is normal under the pullback metric ([Lee2019]_ eq. 4.3.37), for every regularizer and all hard
    constraints of the fit. Base parameters count as independent under it: a mere correlation of the prior with
    something identified does not count as identified.
    """
    information, base = estimate.information, estimate.base
    fraction = estimate.effective_counts / np.maximum(information.counts, 1)
    R, _ = information.whitened(np.sqrt(fraction) / estimate.residual_deviation)
    coordinates = prior_coordinates(estimate.model, information)
    root = prior_covariance_root(coordinates, estimate.prior_spreads)
    # What the data leave of the prior variance of every base parameter.
    sizes = np.linalg.norm(base.projection @ root, axis=1)
    remaining = np.sum(_inverse_root(np.vstack([R[:, base.independent] * sizes, np.eye(base.count)])) ** 2, axis=1)
    # Moves count in deviations of the prior or of the estimate, the larger of the two; of bodies, in those of the
    # typical prior spread if a larger one was estimated from these data.
    single = np.isfinite(estimate.own_prior_spreads) if estimate.own_prior_spreads is not None else False
    spreads = np.where(single, estimate.prior_spreads, np.minimum(estimate.prior_spreads, TYPICAL_PRIOR_SPREAD))
    scale = np.linalg.norm(prior_covariance_root(coordinates, spreads), axis=1)
    scale = np.maximum(scale, estimate.standard_deviation)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.nan_to_num(estimate.standard_deviation / np.abs(estimate.parameters), nan=np.inf)
    moved = (estimate.parameters - coordinates.physical(coordinates.prior)) / scale
    shares, deviation = np.clip(1 - remaining, 0.0, 1.0), np.linalg.norm(root, axis=1)
    return replace(estimate, identifiability=identifiability(base, shares, deviation, relative, moved))


def identifiability(
    base: BaseParameters, base_shares: Array, prior_deviation: Array, relative_deviation: Array, moved: Array
) -> tuple[Identifiability, ...]:
    """Identifiability of every standard parameter, in the order of the layout.

    Parameters
    ----------
    base_shares : ndarray, shape (r,)
        Share of the prior variance of each base parameter that the data removes, 0 to 1.
    prior_deviation : ndarray, shape (p,)
        Standard deviation of the standard parameters before the data.
    relative_deviation, moved : ndarray, shape (p,)
        Values of the standard parameters, see :class:`.Identifiability`.
    """
    deviation = np.abs(base.projection) * prior_deviation
    weight = deviation / np.maximum(deviation.max(axis=1, keepdims=True), np.finfo(float).tiny)
    alone, names = set(base.alone.tolist()), base.names
    parameters = []
    for column, name in enumerate(base.layout.names):
        members = np.flatnonzero(weight[:, column] >= _MEMBER_SHARE)
        share = float(base_shares[members].max(initial=0.0))
        verdict = IDENTIFIED if column in alone else COMBINED
        within = members[base_shares[members] >= _IDENTIFIED_SHARE]
        if len(within) == 0:
            off = abs(moved[column]) >= MOVED_DEVIATIONS
            within = members if off else members[base_shares[members] >= PARTLY_SHARE]
            verdict = PARTLY if off or len(within) else PRIOR
        within = within[np.argsort(-weight[within, column], kind="stable")]
        combinations = tuple(names[row] for row in within)
        parameters.append(
            Identifiability(name, verdict, combinations, share, float(relative_deviation[column]), float(moved[column]))
        )
    return tuple(parameters)


def _inverse_root(equations: Array) -> Array:
    """Inverse of the R factor of equations, columns scaled on the way so that units do not matter."""
    scale = np.linalg.norm(equations, axis=0)
    inverse = solve_triangular(r_factor(equations / scale), np.eye(len(scale)))
    return np.asarray(inverse / scale[:, None])
