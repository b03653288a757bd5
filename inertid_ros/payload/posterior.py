"""Posterior of a payload over physically consistent bodies, by an ensemble sampler.

Coordinates are the logarithm of the mass, the centre of mass, and the logarithm of the second moments per mass about
it: exactly the bodies that can exist. Gravity torques show mass and centre of mass; the inertia of a small payload is
below the noise, near the border of consistency, so that samples ([Goodman2010]_) replace a normal distribution.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import from_mass_com_inertia

from .equations import PayloadEquations

# Prior: root mean square extent per axis of what robots hold (1 to 20 cm), and distance from the tool frame.
SIZE, SIZE_FACTOR = 0.05, 2.0  # m and 1
COM_DEVIATION = 0.3  # m
_COORDINATES = 10
_WALKERS, _STEPS, _BURN_IN, _THINNING = 480, 800, 300, 5  # many walkers: overhead dominates the cost of a step
_MAX_COORDINATE = 50.0  # no overflow on the way to a rejection
_STRETCH = 2.0  # largest step of the stretch move
_MOMENT_ROWS, _MOMENT_COLUMNS = (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)  # in the coordinates


@dataclass(frozen=True)
class BodySamples:
    """Masses ``(k,)``, centres of mass ``(k, 3)`` and inertias ``(k, 3, 3)`` about them, in the tool frame (SI)."""

    mass: Array
    com: Array
    inertia: Array

    @property
    def parameters(self) -> Array:
        """``(k, 10)`` about the origin of the tool frame."""
        return from_mass_com_inertia(self.mass, self.com, self.inertia)


def sample_bodies(equations: PayloadEquations, seed: int = 0) -> BodySamples:
    """Draw from the posterior of a payload.

    The prior is flat in mass, normal about the tool frame in the centre of mass (:data:`COM_DEVIATION`), and log-normal
    in the second moments per mass, about :data:`SIZE` squared.
    """
    rng = np.random.default_rng(seed)
    best = scipy.optimize.minimize(lambda x: -_log_density(equations, x[None])[0], _start(equations), method="BFGS")
    values, vectors = np.linalg.eigh(best.hess_inv)
    root = vectors * np.sqrt(np.maximum(values, 1e-12))
    walkers = best.x + rng.standard_normal((_WALKERS, _COORDINATES)) @ root.T
    return _bodies(_ensemble(equations, walkers, rng))


def _start(equations: PayloadEquations) -> Array:
    mass = max(float(equations.payload[0]), 0.1)
    com = np.clip(equations.payload[1:4] / mass, -COM_DEVIATION, COM_DEVIATION)
    return np.concatenate([[np.log(mass)], com, np.full(3, 2 * np.log(SIZE)), np.zeros(3)])


def _ensemble(equations: PayloadEquations, walkers: Array, rng: np.random.Generator) -> Array:
    """Points of an ensemble of walkers by the stretch move, after a burn-in ([Goodman2010]_ sec. 2)."""
    half = len(walkers) // 2
    density = _log_density(equations, walkers)
    points = []
    for step in range(_STEPS):
        for moved, others in ((slice(0, half), slice(half, None)), (slice(half, None), slice(0, half))):
            scale = (1 + (_STRETCH - 1) * rng.random(half)) ** 2 / _STRETCH
            partner = walkers[others][rng.integers(half, size=half)]
            proposed = partner + scale[:, None] * (walkers[moved] - partner)
            new = _log_density(equations, proposed)
            ratio = (_COORDINATES - 1) * np.log(scale) + new - density[moved]
            accepted = np.log(rng.random(half)) < ratio
            walkers[moved] = np.where(accepted[:, None], proposed, walkers[moved])
            density[moved] = np.where(accepted, new, density[moved])
        if step >= _BURN_IN and step % _THINNING == 0:
            points.append(walkers.copy())
    return np.concatenate(points)


def _log_density(equations: PayloadEquations, x: Array) -> Array:
    """``(k,)`` of coordinates ``(k, 10)``, up to a constant."""
    x = np.clip(x, -_MAX_COORDINATE, _MAX_COORDINATE)
    bodies = _bodies(x).parameters
    misfit = np.sum((bodies @ equations.R.T - equations.z) ** 2, axis=1)
    logarithm = x[:, 4:] - np.array([2 * np.log(SIZE)] * 3 + [0.0] * 3)
    size = np.sum(logarithm[:, :3] ** 2, axis=1) + 2 * np.sum(logarithm[:, 3:] ** 2, axis=1)
    prior = size / (2 * np.log(SIZE_FACTOR)) ** 2 + np.sum(x[:, 1:4] ** 2, axis=1) / COM_DEVIATION**2
    return np.asarray(x[:, 0] - 0.5 * (misfit + prior))  # the first makes the prior flat in mass


def _bodies(x: Array) -> BodySamples:
    """Bodies of coordinates ``(k, 10)``."""
    logarithm = np.zeros((len(x), 3, 3))
    logarithm[:, _MOMENT_ROWS, _MOMENT_COLUMNS] = logarithm[:, _MOMENT_COLUMNS, _MOMENT_ROWS] = x[:, 4:]
    values, vectors = np.linalg.eigh(logarithm)
    moments = (vectors * np.exp(values)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    mass = np.exp(x[:, 0])
    trace = np.trace(moments, axis1=1, axis2=2)
    return BodySamples(mass, x[:, 1:4], mass[:, None, None] * (trace[:, None, None] * np.eye(3) - moments))


def shortest_interval(values: Array, share: float = 0.95, least: float = -np.inf) -> tuple[float, float]:
    """Shortest interval that holds a share of the samples ``(k,)``.

    If it begins at the smallest samples, it begins at ``least``, the bound of the quantity.
    """
    ordered = np.sort(values)
    inside = int(np.ceil(share * len(ordered)))
    widths = ordered[inside - 1 :] - ordered[: len(ordered) - inside + 1]
    first = int(np.argmin(widths))
    edge = first <= 0.005 * len(ordered)
    return (least if edge and np.isfinite(least) else float(ordered[first])), float(ordered[first + inside - 1])
