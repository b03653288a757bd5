"""Physically consistent parameters drawn from the posterior of a result, for domain randomisation."""

from collections.abc import Callable

import numpy as np
import scipy

from inertid_ros.core.arrays import Array, r_factor, semidefinite_root
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, is_consistent
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

from .torque_confidence import StateTorques

_SHOWN_SHARE = 1e-3  # of the largest effect on torque; torque hardly shows directions with less
_HIDDEN_STEPS = (1.0, 0.7, 0.5, 0.3, 0.2, 0.1, 0.0)  # shares of the drawn change along directions that are not shown
_MIN_DRAWS, _FIRST_BATCHES, _BATCHES = 1000, 4, 50  # of a batch; batches before the first and the last selection
_TOLERANCE, _MULTIPLIERS = 0.02, (-10.0, 10.0)  # of mean squares, and for them


def sample_parameters(
        model: RobotModel, parameters: Array, covariance: Array, count: int, rng: np.random.Generator) -> Array:
    """Draw ``(count, p)`` parameter vectors with consistent bodies and without negative friction.

    Torque over random states spreads about the torque of ``parameters (p,)`` as ``covariance (p, p)`` states for every
    joint, as root mean square. Along directions that torque does not show, a draw without consistent bodies is
    shortened; if this does not suffice, it is discarded. Draws are then selected so that the spread is the stated one.

    Raises IdentificationError: the base is free, or too few draws are consistent with this spread.
    """
    layout, batch = model.layout, max(count, _MIN_DRAWS)
    root = semidefinite_root(covariance)
    torques = np.array([r_factor(rows) for rows in StateTorques(model).coefficients])
    stated = np.sum((torques @ root.T) ** 2, axis=(1, 2))
    draw, pool = _drawing(layout, parameters, root, torques.reshape(-1, layout.size)), np.empty((0, layout.size))
    for done in range(1, _BATCHES + 1):
        pool = np.concatenate([pool, draw(rng.normal(size=(batch, layout.size)))])
        if done < _FIRST_BATCHES or len(pool) < count:
            continue
        spread = np.sum(((pool - parameters) @ torques.transpose(0, 2, 1)) ** 2, axis=2).T
        squares = spread[:, stated > 0] / stated[stated > 0]
        weights = _weights(squares)
        selected = pool[rng.random(len(pool)) * weights.max() < weights]
        if len(selected) >= count and np.abs(weights @ squares / weights.sum() - 1).max(initial=0) < _TOLERANCE:
            return selected[:count]
    raise IdentificationError(
        f"samples: {len(pool)} of {_BATCHES * batch} draws from the posterior are physically consistent, too few with"
        " the spread of the covariance; identify again with more motion, and with identify.estimator: consistent")


def _drawing(layout: ParameterLayout, parameters: Array, root: Array, torques: Array) -> Callable[[Array], Array]:
    """Return a function from standard normal draws ``(k, p)`` to consistent parameters ``(m, p)``.

    Parameters that cannot be negative come first in the Cholesky factor, those near zero before others. The sign of a
    draw is changed if it would make one negative: its square stays, and so do correlations with later parameters.
    """
    bounded = np.unique(layout.non_negative)
    deviation = np.maximum(np.linalg.norm(root, axis=0), np.finfo(float).tiny)
    bounded = bounded[np.argsort(parameters[bounded] / deviation[bounded], kind="stable")]
    order = np.concatenate([bounded, np.setdiff1d(np.arange(layout.size), bounded)])
    lower, centre = r_factor(root[:, order]).T, parameters[order]
    lower *= np.where(np.diagonal(lower) < 0, -1.0, 1.0)
    _, effects, directions = np.linalg.svd(r_factor(torques[:, order]) @ lower)
    shown = directions[effects > _SHOWN_SHARE * effects.max()]

    def draw(normal: Array) -> Array:
        for k in range(len(bounded)):
            negative = centre[k] + normal[:, : k + 1] @ lower[k, : k + 1] < 0
            normal[negative, k] = np.abs(normal[negative, k])
        visible = normal @ shown.T @ shown
        samples, left = np.empty_like(normal), np.arange(len(normal))
        for step in _HIDDEN_STEPS:
            samples[np.ix_(left, order)] = centre + (visible + step * (normal - visible))[left] @ lower.T
            bodies = samples[left, : layout.inertial_size].reshape(len(left), len(layout.body_names), BODY_PARAMETERS)
            left = left[(samples[left][:, bounded] < 0).any(axis=1) | ~is_consistent(bodies).all(axis=1)]
        return np.delete(samples, left, axis=0)

    return draw


def _weights(squares: Array) -> Array:
    """Weights ``(k,)`` with weighted mean 1 of each column of ``squares (k, n)``, as equal as possible."""

    def weigh(multipliers: Array) -> tuple[float, Array]:
        exponents = squares @ multipliers
        return float(exponents.max()), np.exp(exponents - exponents.max())

    def dual(multipliers: Array) -> tuple[float, Array]:
        largest, weights = weigh(multipliers)
        return largest + np.log(weights.mean()) - multipliers.sum(), weights @ squares / weights.sum() - 1.0

    bounds = [_MULTIPLIERS] * squares.shape[1]
    return weigh(scipy.optimize.minimize(dual, np.zeros(len(bounds)), jac=True, bounds=bounds).x)[1]
