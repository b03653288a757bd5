"""Details of bodies for reports: intervals, margins, ellipsoids of inertia, and correlated base parameters."""

from dataclasses import dataclass

import numpy as np
import scipy

from inertid_ros.core import inertial_parameters as inertial
from inertid_ros.core.arrays import Array
from inertid_ros.robot.kinematics import TreeKinematics
from inertid_ros.robot.model import RobotModel

from .estimate import NORMAL_95, PRIOR, Estimate, log_normal_interval

_INERTIA_DIAGONAL = np.array([3, 5, 8])  # rows of the inertia's diagonal, after the centre of mass
# Second moments about the centre of mass (xx, xy, yy, xz, yz, zz) from the inertias: half the trace minus the inertia.
_HALF_TRACE = np.outer([1, 0, 1, 0, 0, 1], [0.5, 0, 0.5, 0, 0, 0.5])
_ELEMENT_INDEX = np.array([[0, 1, 3], [1, 2, 4], [3, 4, 5]])
_MIN_CORRELATION = 0.9  # a smaller correlation increases deviations by a factor of about two at most
_MAX_PAIRS = 10


@dataclass(frozen=True)
class BodyIntervals:
    """95 % intervals of one body.

    Attributes
    ----------
    com_interval : (3, 2), centre of mass x, y, z in the joint frame [m]; NaN for a body without mass
    inertia_interval : ndarray, shape (6, 2)
        xx, xy, yy, xz, yz, zz about the centre of mass in the axes of the joint frame [kg m^2]; NaN for a body without
        mass.
    determined : dict
        Identifiability verdicts by the keys ``mass`` (one), ``com`` (three) and ``inertia`` (six, in the order of
        ``inertia_interval``). A verdict refers to the corresponding parameter about the joint frame.
    """

    mass_interval: Array
    com_interval: Array
    inertia_interval: Array
    determined: dict[str, str | tuple[str, ...]]


def body_intervals(estimate: Estimate) -> tuple[BodyIntervals, ...]:
    """Intervals of every moving body of an estimate, in the order of the model.

    The covariance of an estimate refers to the ten parameters about the joint frame; a report lists masses, centres of
    mass and inertias about the centres of mass. First-order propagation converts the covariance, by ``c = h / m`` and
    ``I_c = I_o - (|h|^2 1 - h h^T) / m`` with ``h = m c``.
    """
    layout = estimate.layout
    return tuple(_of_body(estimate, layout.body(index)) for index in range(len(layout.links)))


def _of_body(estimate: Estimate, columns: slice) -> BodyIntervals:
    pi, covariance = estimate.parameters[columns], estimate.covariance[columns, columns]
    verdicts = [parameter.verdict for parameter in estimate.identifiability[columns]] or [PRIOR] * len(pi)
    determined: dict[str, str | tuple[str, ...]] = {
        "mass": verdicts[0], "com": tuple(verdicts[1:4]), "inertia": tuple(verdicts[4:])}
    interval = np.full((9, 2), np.nan)
    if pi[0] > 0:
        slopes = com_inertia_slopes(pi)
        deviation = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", slopes, covariance, slopes), 0.0))
        _, com, inertia = inertial.mass_com_inertia(pi)
        values = np.concatenate([com, [inertia[element] for element in inertial.INERTIA_ELEMENTS]])
        interval = values[:, None] + NORMAL_95 * deviation[:, None] * [-1.0, 1.0]
        positive = _INERTIA_DIAGONAL[values[_INERTIA_DIAGONAL] > 0.0]
        interval[positive] = log_normal_interval(values[positive], deviation[positive])
    return BodyIntervals(estimate.interval[columns][0], interval[:3], interval[3:], determined)


def com_inertia_slopes(pi: Array) -> Array:
    """``(9, 10)`` derivatives of centre of mass and central inertia (xx, xy, yy, xz, yz, zz)."""
    mass, com, eye = pi[0], pi[1:4] / pi[0], np.eye(3)
    slopes = np.zeros((9, 10))
    slopes[:3, 0], slopes[:3, 1:4] = -com / mass, eye / mass
    for row, (first, second) in enumerate(inertial.INERTIA_ELEMENTS, start=3):
        slopes[row, 1 + row] = 1.0
        slopes[row, 0] = eye[first, second] * (com @ com) - com[first] * com[second]
        slopes[row, 1:4] = com[first] * eye[second] + com[second] * eye[first] - 2 * eye[first, second] * com
    return slopes


@dataclass(frozen=True)
class FeasibilityMargin:
    """Margins of one body; all margins are positive if and only if the body is physically consistent.

    Attributes
    ----------
    smallest_eigenvalue : smallest eigenvalue of the pseudo-inertia; its unit depends on the frame
    relative_eigenvalue : float
        Smallest generalised eigenvalue of the pseudo-inertia with respect to the pseudo-inertia of the URDF as given
        (repaired if inconsistent). The value does not depend on units and frames; it is 1 for an unchanged body.
    triangle : float
        Sum of the two smaller principal moments of inertia minus the largest, over the largest: 0 for a flat plate, 1
        for a ball.
    """

    link: str
    smallest_eigenvalue: float
    relative_eigenvalue: float
    triangle: float
    consistent: bool


def feasibility_margins(estimate: Estimate) -> tuple[FeasibilityMargin, ...]:
    """Margins of every moving body, in the order of the model."""
    calibrated, prior = map(inertial.pseudo_inertia, (estimate.bodies, estimate.model.consistent_body_prior))
    moments = np.linalg.eigvalsh(inertial.mass_com_inertia(estimate.bodies).inertia)
    largest = np.where(moments[:, 2] != 0, moments[:, 2], np.nan)
    triangle = (moments[:, 0] + moments[:, 1] - moments[:, 2]) / largest
    consistent = inertial.is_consistent(estimate.bodies)
    return tuple(
        FeasibilityMargin(
            name, float(estimate.min_eigenvalues[i]),
            float(scipy.linalg.eigh(calibrated[i], prior[i], eigvals_only=True)[0]), float(triangle[i]),
            bool(consistent[i]))
        for i, name in enumerate(estimate.model.link_names))


@dataclass(frozen=True)
class PlacedEllipsoid:
    """Solid ellipsoid of uniform density with the inertia of a body, in the root frame.

    Attributes
    ----------
    axes : (3, 3), semi-axes as columns [m]
    """

    centre: Array
    axes: Array


@dataclass(frozen=True)
class InertiaEllipsoids:
    """Inertia ellipsoids of one body, before and after the calibration.

    Attributes
    ----------
    origin : (3,), origin of the body's joint frame in the root frame [m]
    given, calibrated : ellipsoids of URDF and estimate; None if the body is not physically consistent
    axes_interval : (3, 2), 95 % interval of the calibrated semi-axes as shares of their lengths, not below zero
    centre_deviation : (3, 3), covariance of the calibrated centre of mass in the root frame [m^2]
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
    ellipsoids_of_bodies = []
    for index, (name, placement, parent, calibrated, given) in enumerate(bodies):
        columns = estimate.layout.body(index)
        covariance, placed = estimate.covariance[columns, columns], _placed(calibrated, placement)
        interval, centre = np.ones((3, 2)), np.zeros((3, 3))
        if placed is not None:
            interval = _axes_interval(calibrated, covariance)
            turn = placement[:3, :3] @ com_inertia_slopes(calibrated)[:3]
            centre = turn @ covariance @ turn.T
        ellipsoids = _placed(given, placement), placed
        ellipsoids_of_bodies.append(InertiaEllipsoids(name, placement[:3, 3], parent, *ellipsoids, interval, centre))
    return tuple(ellipsoids_of_bodies)


def shown_pose(model: RobotModel) -> Array:
    """Joint positions ``(n,)`` for drawing ellipsoids: zero, or the nearest position within the limits [rad or m]."""
    return np.clip(np.zeros(model.joints), model.limits.lower, model.limits.upper)


def _placed(pi: Array, placement: Array) -> PlacedEllipsoid | None:
    if not inertial.is_consistent(pi):
        return None
    centre, rotation, semi_axes = inertial.uniform_ellipsoid(pi)
    turn = placement[:3, :3]
    return PlacedEllipsoid(placement[:3, 3] + turn @ centre, turn @ rotation * semi_axes)


def _axes_interval(pi: Array, covariance: Array) -> Array:
    """95 % intervals ``(3, 2)`` of semi-axes as shares of their lengths, from deviations of squared semi-axes."""
    _, rotation, semi_axes = inertial.uniform_ellipsoid(pi)
    moments = (_HALF_TRACE - np.eye(6)) @ com_inertia_slopes(pi)[3:]
    second = inertial.pseudo_inertia(pi)[:3, :3] - np.outer(pi[1:4], pi[1:4]) / pi[0]
    squares = 5.0 * moments[_ELEMENT_INDEX] / pi[0]  # (3, 3, 10): slopes of the squared semi-axes as a matrix
    squares[:, :, 0] -= 5.0 * second / pi[0] ** 2
    slopes = np.einsum("ia,ijk,ja->ak", rotation, squares, rotation)
    deviation = np.sqrt(np.maximum(np.einsum("ai,ij,aj->a", slopes, covariance, slopes), 0.0))
    share = deviation / np.maximum(semi_axes**2, np.finfo(float).tiny)
    return np.sqrt(np.maximum(1.0 + NORMAL_95 * share[:, None] * [-1.0, 1.0], 0.0))


@dataclass(frozen=True)
class CorrelatedPair:
    """Two base parameters whose combination is better determined than each parameter alone."""

    first: str
    second: str
    correlation: float


def correlated_pairs(estimate: Estimate) -> tuple[CorrelatedPair, ...]:
    """The most correlated pairs of base parameters, at most ten, the strongest first."""
    base = estimate.base
    covariance = base.projection @ estimate.covariance @ base.projection.T
    deviation = np.sqrt(np.maximum(np.diagonal(covariance), np.finfo(float).tiny))
    correlation = np.clip(covariance / np.outer(deviation, deviation), -1.0, 1.0)
    rows, columns = np.triu_indices(base.count, 1)
    values = correlation[rows, columns]
    order = np.argsort(-np.abs(values), kind="stable")[:_MAX_PAIRS]
    return tuple(
        CorrelatedPair(base.names[rows[k]], base.names[columns[k]], float(values[k]))
        for k in order
        if abs(values[k]) >= _MIN_CORRELATION)
