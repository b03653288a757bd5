"""Combine the information of a robot's bags, and estimate friction and masses of single bags.

All bags of a robot share its bodies. Friction and offsets of single bags scatter about the robot's values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from inertid_ros.core.arrays import Array
from inertid_ros.core.qr import inverse_root, r_factor
from inertid_ros.fleet.drift import Series
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.information.information import Channel, EarlierEquations, Information, merged
from inertid_ros.identification.solvers.coordinates import prior_coordinates, prior_covariance_root

# Vague priors of a bag's own parameters: standard deviation of the factor on a link's mass, and of a changing term
# relative to its natural size.
_MASS_FACTOR_DEVIATION = 3.0
_CHANGING_TERM_DEVIATION = 1e2
_MAX_MASS_DEVIATION_SHARE = 0.3  # share of a link's mass; a less certain mass is not followed over time


@dataclass(frozen=True)
class BagInformation:
    """Information of one bag, from its samples without outliers.

    Attributes
    ----------
    day : date [days since 1970].
    deviation : (c,), standard deviation of the residual of each channel in the fit of this bag alone.
    effective_counts : (c,), independent samples per channel.
    """

    day: float
    information: Information
    deviation: Array
    effective_counts: Array

    @property
    def share(self) -> Array:
        """Independent share ``(c,)`` of the samples."""
        return np.minimum(self.effective_counts / np.maximum(self.information.counts, 1), 1.0)

    @property
    def equations(self) -> EarlierEquations:
        """Whitened equations of all channels."""
        return self.information.independent(self.deviation, self.effective_counts)


def joint_information(bags: Sequence[BagInformation], changing: np.ndarray, scatter: Array) -> Information:
    """Merge the information of all bags of a robot, with shared bodies and changing terms that scatter between bags.

    The noise of each bag gives its weight. In the merged information, all equations count as independent.

    Parameters
    ----------
    changing : (k,), columns of parameters that differ between bags.
    scatter : (k,), standard deviation of each changing parameter about the robot's value; zero to share the parameter.
    """
    deviation = np.median([bag.deviation for bag in bags], axis=0)
    by_column = np.zeros(bags[0].information.layout.size)
    by_column[changing] = scatter
    return merged(_weighted(bag, deviation, by_column) for bag in bags)


def _weighted(bag: BagInformation, deviation: Array, scatter: Array) -> Information:
    """Return a bag's information, scaled to a common deviation ``(c,)``, with the bag's own scatter eliminated.

    ``scatter (p,)`` are standard deviations about the robot's values. The elimination is exact for parameters that
    appear in one channel only; scatter of coupled drives counts as independent between channels.
    """
    factors = np.sqrt(bag.share) * deviation / bag.deviation
    counts = np.maximum(np.round(bag.effective_counts), 1) * (bag.information.counts > 0)
    channels = []
    for channel, factor, count, noise in zip(bag.information.channels, factors, counts, deviation, strict=True):
        scaled = replace(channel, r_factor=factor * channel.r_factor, count=int(count))
        channels.append(_with_scatter(scaled, scatter[channel.columns], noise))
    return replace(bag.information, channels=tuple(channels))


def _with_scatter(channel: Channel, scatter: Array, deviation: float) -> Channel:
    """Eliminate a bag's scatter ``e`` from the equations ``A x + A_s e = b`` and ``e / scatter = 0``."""
    apart = np.flatnonzero(scatter > 0)
    if not len(apart) or not channel.count:
        return channel
    R, k = channel.r_factor, len(apart)
    above = np.hstack([R[:, apart], R])
    below = np.hstack([np.diag(deviation / scatter[apart]), np.zeros((k, R.shape[1]))])
    return replace(channel, r_factor=r_factor(np.vstack([above, below]))[k:, k:])


def bag_effects(bags: Sequence[BagInformation], estimate: Estimate, changing: np.ndarray) -> tuple[Series, ...]:
    """Return friction, offsets and masses of every bag as series over time; uncertain masses are left out.

    Every bag has its own changing terms (friction, offsets) and its own factor on the mass of every link; all bags
    share centres of mass and shapes. The bag's own parameters are eliminated from its equations. The remaining
    equations of all bags determine the shared parameters, whose errors affect every bag. Masses are shifted so that
    their mean over the bags is the mass in ``estimate``. The bags are sorted by date, and ``changing (k,)`` are the
    columns of the changing terms.
    """
    layout, size, first = estimate.layout, estimate.layout.size, len(changing)
    shared = np.setdiff1d(np.arange(size), changing)
    coordinates = prior_coordinates(estimate.model, estimate.information)
    prior = coordinates.physical(coordinates.prior)
    prior_root = prior_covariance_root(coordinates, estimate.prior_spreads)
    masses = np.zeros((size, len(layout.links)))
    for link in range(len(layout.links)):
        masses[layout.body(link), link] = estimate.parameters[layout.body(link)]
    term_deviation = _CHANGING_TERM_DEVIATION * np.linalg.norm(prior_root[changing], axis=1)
    own_deviation = np.concatenate([term_deviation, np.full(masses.shape[1], _MASS_FACTOR_DEVIATION)])
    solved = [_eliminated(bag, estimate.parameters, changing, shared, masses, own_deviation) for bag in bags]
    prior_rows = np.linalg.inv(prior_root[np.ix_(shared, shared)])
    first_rows = np.column_stack([prior_rows, prior_rows @ (prior[shared] - estimate.parameters[shared])])
    factor = r_factor(np.vstack([first_rows, *(bag.rest for bag in solved)]))
    root = inverse_root(factor[: len(shared), :-1])
    common = root @ (root.T @ (factor[: len(shared), :-1].T @ factor[: len(shared), -1]))
    scale = np.concatenate([np.ones(first), layout.bodies(estimate.parameters)[:, 0]])
    values = np.array([bag.own - bag.of_shared @ common for bag in solved]) * scale
    values[:, :first] += estimate.parameters[changing]
    values[:, first:] += scale[first:] - values[:, first:].mean(axis=0)
    names = [*(layout.names[c] for c in changing), *(f"{link}.m" for link in layout.links)]
    days, found = np.array([bag.day for bag in bags]), []
    for index, name in enumerate(names):
        loading = np.array([bag.of_shared[index] for bag in solved]) @ root
        alone = np.array([np.sum(bag.root[index] ** 2) for bag in solved])
        covariance = scale[index] ** 2 * (loading @ loading.T + np.diag(alone))
        mass = index >= first
        series = Series(name, days, values[:, index], _about_mean(covariance) if mass else covariance)
        mean = abs(float(np.mean(series.values)))
        if not mass or np.median(series.deviation) < _MAX_MASS_DEVIATION_SHARE * mean:
            found.append(series)
    return tuple(found)


def _about_mean(covariance: Array) -> Array:
    """Return the covariance ``(k, k)`` of the deviations from the mean, plus the variance of the mean.

    The variance of the mean is that of ``k`` independent values with the average variance of the deviations.
    """
    k = len(covariance)
    centring = np.eye(k) - 1 / k
    about = centring @ covariance @ centring
    return np.asarray(about + float(np.trace(about)) / max(k - 1, 1) / k)


@dataclass(frozen=True)
class _Eliminated:
    """Equations of a bag after the elimination of its own parameters.

    At shared parameters ``x``, the bag's own parameters are ``own - of_shared @ x``, and ``root`` is the root of their
    covariance. ``rest`` are the remaining equations of the shared parameters.
    """

    own: Array
    of_shared: Array
    root: Array
    rest: Array


def _eliminated(bag: BagInformation, about: Array, changing: np.ndarray, shared: np.ndarray, masses: Array,
        deviation: Array) -> _Eliminated:
    equations, k = bag.equations, len(deviation)
    columns = np.hstack([equations.R[:, changing], equations.R @ masses])
    residual = equations.z - equations.R @ about
    above = np.column_stack([columns, equations.R[:, shared], residual])
    below = np.column_stack([np.diag(1 / deviation), np.zeros((k, len(shared) + 1))])
    factor = r_factor(np.vstack([above, below]))
    root = solve_triangular(factor[:k, :k], np.eye(k))
    return _Eliminated(root @ factor[:k, -1], root @ factor[:k, k:-1], root, factor[k:, k:])
