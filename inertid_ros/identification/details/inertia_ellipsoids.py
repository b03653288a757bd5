"""Ellipsoids of inertia of every body, before and after, placed on the robot in one pose."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.identification.assessment.estimate import NORMAL_95, Estimate
from inertid_ros.kinematics.tree_kinematics import TreeKinematics
from inertid_ros.robot.bodies.inertial_parameters import is_consistent, pseudo_inertia
from inertid_ros.robot.bodies.uniform_ellipsoid import uniform_ellipsoid
from inertid_ros.robot.model import RobotModel

from .body_intervals import com_inertia_slopes

# Second moments about the centre of mass, xx, xy, yy, xz, yz, zz, by the inertias about it: half the trace less them.
_HALF_TRACE = np.outer([1, 0, 1, 0, 0, 1], [0.5, 0, 0.5, 0, 0, 0.5])
_ELEMENT_OF = np.array([[0, 1, 3], [1, 2, 4], [3, 4, 5]])


@dataclass(frozen=True)
class PlacedEllipsoid:
    """Solid ellipsoid of even density that has the inertia of a body, in the root frame.

    Attributes
    ----------
    centre : ndarray, shape (3,)
        Centre of mass [m].
    axes : ndarray, shape (3, 3)
        Semi-axes as columns [m].
    """

    centre: Array
    axes: Array


@dataclass(frozen=True)
class InertiaEllipsoids:
    """Ellipsoids of one body, before and after.

    Attributes
    ----------
    link : str
        Name of the link.
    origin : ndarray, shape (3,)
        Origin of its joint frame in the root frame [m].
    parent : int
        Index of the body before it; -1 for the root.
    given, calibrated : PlacedEllipsoid or None
        None where the body is not physically consistent.
    axes_interval : ndarray, shape (3, 2)
        Semi-axes of the calibrated ellipsoid, as shares of their lengths: 95 %, not below zero.
    centre_deviation : ndarray, shape (3, 3)
        Covariance of the calibrated centre of mass in the root frame [m^2].
    """

    link: str
    origin: Array
    parent: int
    given: PlacedEllipsoid | None
    calibrated: PlacedEllipsoid | None
    axes_interval: Array
    centre_deviation: Array


def inertia_ellipsoids(estimate: Estimate) -> tuple[InertiaEllipsoids, ...]:
    """Ellipsoids of every moving body, in the order of the model, at :func:`shown_pose`."""
    model = estimate.model
    kinematics = TreeKinematics.of(model)
    placements = kinematics.placements(shown_pose(model)[None])[0]
    bodies = zip(model.link_names, placements, kinematics.parents, estimate.bodies, model.body_prior, strict=True)
    found = []
    for index, (name, placement, parent, own, given) in enumerate(bodies):
        columns = estimate.layout.body(index)
        covariance, placed = estimate.covariance[columns, columns], _placed(own, placement)
        interval, centre = np.ones((3, 2)), np.zeros((3, 3))
        if placed is not None:
            interval = _axes_interval(own, covariance)
            turn = placement[:3, :3] @ com_inertia_slopes(own)[:3]
            centre = turn @ covariance @ turn.T
        ellipsoids = _placed(given, placement), placed
        found.append(InertiaEllipsoids(name, placement[:3, 3], parent, *ellipsoids, interval, centre))
    return tuple(found)


def shown_pose(model: RobotModel) -> Array:
    """Joint positions ``(n,)`` in which ellipsoids are shown: zero, or the nearest within the limits [rad or m]."""
    return np.clip(np.zeros(model.joints), model.limits.lower, model.limits.upper)


def _placed(pi: Array, placement: Array) -> PlacedEllipsoid | None:
    if not is_consistent(pi):
        return None
    centre, rotation, semi_axes = uniform_ellipsoid(pi)
    turn = placement[:3, :3]
    return PlacedEllipsoid(placement[:3, 3] + turn @ centre, turn @ rotation * semi_axes)


def _axes_interval(pi: Array, covariance: Array) -> Array:
    """``(3, 2)`` ends of the semi-axes' intervals as shares of their lengths, by the deviation of their squares."""
    _, rotation, semi_axes = uniform_ellipsoid(pi)
    moments = (_HALF_TRACE - np.eye(6)) @ com_inertia_slopes(pi)[3:]
    second = pseudo_inertia(pi)[:3, :3] - np.outer(pi[1:4], pi[1:4]) / pi[0]
    squares = 5.0 * moments[_ELEMENT_OF] / pi[0]  # (3, 3, 10): slopes of the squared semi-axes as a matrix
    squares[:, :, 0] -= 5.0 * second / pi[0] ** 2
    slopes = np.einsum("ia,ijk,ja->ak", rotation, squares, rotation)
    deviation = np.sqrt(np.maximum(np.einsum("ai,ij,aj->a", slopes, covariance, slopes), 0.0))
    share = deviation / np.maximum(semi_axes**2, np.finfo(float).tiny)
    return np.sqrt(np.maximum(1.0 + NORMAL_95 * share[:, None] * [-1.0, 1.0], 0.0))
