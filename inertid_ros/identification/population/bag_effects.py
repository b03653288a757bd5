"""Friction and masses of every bag of a robot, beside bodies that all bags share.

Every bag has its own changing terms (friction, offsets) and its own factor on the mass of every link, at the centre of
mass and shape that the bags share. The bags' own parameters are eliminated from their equations one bag after another;
what is left determines what is shared, which gives back the parameters of all bags with the covariance between them:
errors of shared bodies are errors of every bag.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from inertid_ros.core.arrays import Array
from inertid_ros.core.qr import inverse_root, r_factor
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.prior.coordinates import prior_coordinates, prior_covariance_root

from .bag_information import BagInformation
from .random_effects import Series

MASS = "m"  # name of a link's mass in the layout
_ANY_MASS = 3.0  # standard deviation of the factor on a link's mass before the data, beyond all that happens
_VAGUE = 1e2  # times its natural size: standard deviation of a changing term before the data
_KNOWN = 0.3  # of a link's mass: the largest standard deviation of a mass that is followed over time


@dataclass(frozen=True)
class BagEffects:
    """Parameters of every bag of a robot.

    Attributes
    ----------
    names : tuple of str
        Of ``m`` parameters: changing terms as in the layout, then ``<link>.m``.
    days : ndarray, shape (k,)
        Dates of the bags, ascending.
    values : ndarray, shape (k, m)
        Of the bags; masses about those of the robot.
    covariances : ndarray, shape (m, k, k)
        Of each parameter between the bags.
    """

    names: tuple[str, ...]
    days: Array
    values: Array
    covariances: Array

    def series(self) -> tuple[Series, ...]:
        """One per parameter; masses that the bags hardly show are left out."""
        found = []
        for index, name in enumerate(self.names):
            series = Series(name, self.days, self.values[:, index], self.covariances[index])
            mass = name.rpartition(".")[2] == MASS
            if not mass or np.median(series.deviation) < _KNOWN * abs(float(np.mean(series.values))):
                found.append(series)
        return tuple(found)


def bag_effects(bags: Sequence[BagInformation], estimate: Estimate, changing: np.ndarray) -> BagEffects:
    """Parameters of the bags around the joint estimate of a robot.

    Parameters
    ----------
    bags : sequence of BagInformation
        In order of their dates.
    estimate : Estimate
        Of the robot, from all its bags.
    changing : ndarray of int, shape (k,)
        Columns of parameters that differ from bag to bag.
    """
    layout, size = estimate.layout, estimate.layout.size
    shared = np.setdiff1d(np.arange(size), changing)
    prior_root = prior_covariance_root(prior_coordinates(estimate.model, estimate.information), estimate.prior_spreads)
    masses = np.zeros((size, len(layout.links)))
    for link in range(len(layout.links)):
        masses[layout.body(link), link] = estimate.parameters[layout.body(link)]
    own_deviation = np.concatenate(
        [_VAGUE * np.linalg.norm(prior_root[changing], axis=1), np.full(masses.shape[1], _ANY_MASS)]
    )
    solved = [_eliminated(bag, estimate.parameters, changing, shared, masses, own_deviation) for bag in bags]
    held = np.linalg.inv(prior_root[np.ix_(shared, shared)])
    rows = [np.column_stack([held, held @ (_prior(estimate)[shared] - estimate.parameters[shared])])]
    whole = r_factor(np.vstack([*rows, *(bag.rest for bag in solved)]))
    root = inverse_root(whole[: len(shared), :-1])
    common = root @ (root.T @ (whole[: len(shared), :-1].T @ whole[: len(shared), -1]))
    values = np.array([bag.own - bag.of_shared @ common for bag in solved])
    scale = np.concatenate([np.ones(len(changing)), layout.bodies(estimate.parameters)[:, 0]])
    covariances = []
    for index in range(values.shape[1]):
        loading = np.array([bag.of_shared[index] for bag in solved]) @ root
        alone = np.array([np.sum(bag.root[index] ** 2) for bag in solved])
        covariances.append(scale[index] ** 2 * (loading @ loading.T + np.diag(alone)))
    values, covariance = values * scale, np.array(covariances)
    values[:, : len(changing)] += estimate.parameters[changing]
    first = len(changing)
    values[:, first:] += scale[first:] - values[:, first:].mean(axis=0)
    covariance[first:] = [_about_mean(each) for each in covariance[first:]]
    names = tuple(layout.names[c] for c in changing) + tuple(f"{link}.{MASS}" for link in layout.links)
    return BagEffects(names, np.array([bag.day for bag in bags]), values, covariance)


def _about_mean(covariance: Array) -> Array:
    """Covariance ``(k, k)`` of values less their mean; that of the mean, which has no error then, is as that of others.

    The level of masses is that of the bodies that all bags share.
    """
    k = len(covariance)
    centring = np.eye(k) - 1 / k
    about = centring @ covariance @ centring
    return np.asarray(about + float(np.trace(about)) / max(k - 1, 1) / k)


@dataclass(frozen=True)
class _Eliminated:
    """A bag's own parameters as a function of the shared ones: ``own - of_shared @ x``, with the root of the covariance
    by its own data, and the equations ``rest`` that it leaves to the shared ones."""

    own: Array
    of_shared: Array
    root: Array
    rest: Array


def _eliminated(
    bag: BagInformation, about: Array, changing: np.ndarray, shared: np.ndarray, masses: Array, deviation: Array
) -> _Eliminated:
    equations, k = bag.equations, len(deviation)
    own = np.hstack([equations.R[:, changing], equations.R @ masses])
    residual = equations.z - equations.R @ about
    above = np.column_stack([own, equations.R[:, shared], residual])
    below = np.column_stack([np.diag(1 / deviation), np.zeros((k, len(shared) + 1))])
    factor = r_factor(np.vstack([above, below]))
    root = solve_triangular(factor[:k, :k], np.eye(k))
    return _Eliminated(root @ factor[:k, -1], root @ factor[:k, k:-1], root, factor[k:, k:])


def _prior(estimate: Estimate) -> Array:
    """Prior that the prior's covariance is about, ``(p,)``."""
    coordinates = prior_coordinates(estimate.model, estimate.information)
    return coordinates.physical(coordinates.prior)
