"""Posterior of a MAP fit: how far its parameters are from the truth, by data, prior and bounds together."""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.linalg import block_diag, null_space

from inertid_ros.core.arrays import Array
from inertid_ros.core.qr import inverse_root, semidefinite_root
from inertid_ros.identification.prior.convex_program import ConvexProgram, LinearConstraints, Solution
from inertid_ros.identification.prior.coordinates import Coordinates
from inertid_ros.identification.prior.regularizers import Regularization

from .truncated_normal import truncated_normal

_WIDE = 1e-3  # precision, in squared natural sizes, that a drive has which nothing but its bound and weight determines
_ACTIVE = 1e-4  # normalised slack below which an inequality pushes


@dataclass(frozen=True)
class Posterior:
    """Distribution of the true parameters around an estimate.

    Attributes
    ----------
    covariance : ndarray, shape (p, p)
        Expected products of the estimate's errors: about the estimate, which bounds may move away from the mean.
    bounded : ndarray of int, shape (k,)
        Parameters that cannot be negative.
    intervals : ndarray, shape (k, 2)
        Theirs of 95 %; one-sided where the bound is near.
    """

    covariance: Array
    bounded: np.ndarray
    intervals: Array


@dataclass(frozen=True)
class ErrorSources:
    """What makes an estimate differ from the truth.

    Attributes
    ----------
    equations : tuple of ndarray, shapes (p, p) and (p,)
        In normalised coordinates, whitened with the weights of the noise, which need not be those of the fit.
    covariance : ndarray or None, shape (p, p)
        Further covariance in normalised coordinates, of what the equations take as known.
    left_out : ndarray of bool, shape (p,)
        Parameters that the fit has left out; they may be there all the same.
    """

    equations: tuple[Array, Array]
    covariance: Array | None
    left_out: NDArray[np.bool_]


def posterior(
    fitted: tuple[Array, Array],
    sources: ErrorSources,
    solution: Solution,
    convex_program: ConvexProgram,
    coordinates: Coordinates,
    regularization: Regularization,
) -> Posterior:
    """Posterior under noise that need not be the one that the weights of the fit stand for.

    Normal about the optimum, with the curvature of data and regularizer there; bounds cut it off. With other weights
    than those of the fit the optimum moves, so that the estimate is not the mean: errors count from the estimate.
    Parameters that were left out are zero with even odds before the data, else of the prior's exponential density.

    Parameters
    ----------
    fitted : tuple of ndarray, shapes (p, p) and (p,)
        Whitened equations in normalised coordinates, with the weights of the fit.
    convex_program : ConvexProgram
        That was solved, for its bounds.
    """
    size, bounded = coordinates.layout.size, convex_program.positive
    x = np.where(sources.left_out, 0.0, solution.x)
    (R, z), (R_fit, z_fit) = sources.equations, fitted
    data_slope = R_fit.T @ (R_fit @ x - z_fit)
    curvature, prior_slope = _prior(x, coordinates, regularization)
    bound_pull = np.zeros(size)
    absent = sources.left_out[bounded]
    pull = convex_program.positive_weights / np.where(absent, 1.0, x[bounded])
    bound_pull[bounded] = np.where(absent, prior_slope[bounded], pull)  # as if at their optimum without data
    inequalities = _of_parameters(convex_program.inequalities, size)
    equalities = _of_parameters(convex_program.equalities, size).matrix
    pushing = inequalities.matrix[inequalities(x) < _ACTIVE]
    if len(pushing):
        columns = np.vstack([pushing, equalities, -equalities]).T
        bound_pull += pushing.T @ scipy.optimize.nnls(columns, data_slope + prior_slope - bound_pull)[0][: len(pushing)]
    free = null_space(equalities) if len(equalities) else np.eye(size)
    # Of rows and not of their squares, which lose the prior where data outweighs it by many orders.
    root = free @ inverse_root(np.vstack([R, semidefinite_root(curvature)]) @ free)
    covariance = root @ root.T
    mean = x - covariance @ (R.T @ (R @ x - z) - data_slope + bound_pull)
    if sources.covariance is not None:
        covariance = covariance + sources.covariance
    rows = np.vstack([np.eye(size)[bounded], inequalities.matrix])
    shift = np.concatenate([np.zeros(len(bounded)), inequalities.shift])
    density = np.full(len(rows), np.nan)
    density[: len(bounded)][absent] = regularization.drive_weight
    within = truncated_normal(mean, covariance, rows, shift, density)
    moved = coordinates.matrix @ (within.mean - x)
    scale = np.diagonal(coordinates.matrix)[bounded, None]
    return Posterior(
        coordinates.matrix @ within.covariance @ coordinates.matrix.T + np.outer(moved, moved),
        bounded,
        scale * within.intervals[: len(bounded)],
    )


def _prior(x: Array, coordinates: Coordinates, regularization: Regularization) -> tuple[Array, Array]:
    """Curvature ``(p, p)`` and slope ``(p,)`` of the regularizer, without bounds."""
    layout, distance = coordinates.layout, regularization.distance
    bodies = layout.all_bodies(x)
    weights = 0.5 / regularization.spreads(len(bodies)) ** 2
    curvature, slope = np.zeros((layout.size, layout.size)), np.zeros(layout.size)
    values, vectors = np.linalg.eigh(distance.hessian(bodies))
    convex = (vectors * (weights[:, None] * np.maximum(values, 0.0))[:, None]) @ vectors.swapaxes(1, 2)
    inside = slice(0, layout.inertial_size)
    curvature[inside, inside] = block_diag(*convex)
    slope[inside] = (weights[:, None] * distance.gradient(bodies)).ravel()
    free = layout.of_any_size
    curvature[free, free] = 1 / regularization.offset_deviation**2
    slope[free] = x[free] / regularization.offset_deviation**2
    positive = layout.non_negative
    curvature[positive, positive] = _WIDE * regularization.drive_weight**2
    slope[positive] = regularization.drive_weight
    return curvature, slope


def _of_parameters(linear: LinearConstraints, size: int) -> LinearConstraints:
    """Constraints on the parameters alone, without pieces of bodies in unions of ellipsoids."""
    own = ~linear.matrix[:, size:].any(axis=1)
    names = tuple(np.array(linear.names, dtype=object)[own])
    return LinearConstraints(linear.matrix[own, :size], linear.shift[own], names)
