"""Fits of the leg under nested constraints, and under several regularizers at equal training residual."""

import warnings
from typing import Any

import numpy as np
from support.robots.cheetah_leg import bounds

from inertid_ros.core.arrays import Array, skew
from inertid_ros.core.inertial_parameters import inertia_about_origin
from inertid_ros.identification.solvers.constraints import Constraints, constrained
from inertid_ros.identification.solvers.convex_program import ConvexProgram, LinearConstraints, MatrixInequalities
from inertid_ros.identification.solvers.coordinates import Coordinates, normalised_coordinates
from inertid_ros.identification.solvers.interior_point import solve
from inertid_ros.identification.solvers.map_problem import COMPARED_REGULARIZERS, MapProblem, fits_at_equal_residual
from inertid_ros.identification.solvers.regularizers import Regularization
from inertid_ros.regressors.whole_body_equations import MatrixEquations
from inertid_ros.robot.model import RobotModel

CONSTRAINTS = ("none", "semi-consistent", "LMI", "ellipsoid")
REGULARIZERS = COMPARED_REGULARIZERS
PRIOR_WEIGHT = 1e-6  # weight of the Euclidean prior of all constraint sets ([Wensing2018]_ eq. 25)


def leg_coordinates(model: RobotModel) -> Coordinates:
    """Normalised coordinates; drives keep their SI units."""
    drives = model.layout.size - model.layout.inertial_size
    return normalised_coordinates(
        model.layout, model.consistent_prior, model.inertial_locked, np.zeros(drives), np.ones(drives)
    )


class ConstrainedFits:
    """Minimize ``1/n |A x - b|^2 + w |x - prior|^2`` over bodies and friction, under different constraints."""

    def __init__(self, model: RobotModel, leg: dict[str, Any]) -> None:
        self.model, self.coordinates = model, leg_coordinates(model)
        self.inside = Constraints(inside=bounds(leg))

    def fit(self, A: Array, b: Array, constraints: str) -> Array:
        """Parameters in SI units ``(p,)``."""
        layout, count = self.model.layout, len(b)
        prior_rows = np.sqrt(PRIOR_WEIGHT) * np.eye(layout.inertial_size, layout.size)
        rows = np.vstack([A / np.sqrt(count), prior_rows])
        target = np.concatenate([b / np.sqrt(count), prior_rows @ self.model.prior])
        if constraints == "none":
            return np.asarray(np.linalg.lstsq(rows, target)[0])
        if constraints == "semi-consistent":
            return self._semi_consistent(rows, target)
        none, free = np.zeros(0, dtype=int), LinearConstraints.none(layout.size)
        bodies = len(layout.body_names)
        R, z = _compressed(*self.coordinates.normalise(rows, target))
        convex_program = ConvexProgram(
            R, z, np.zeros(layout.size), np.zeros(bodies), none, np.zeros(0), free, free,
            MatrixInequalities.none(layout.size))
        if constraints == "ellipsoid":
            convex_program = constrained(convex_program, self.inside, self.coordinates, self.model.prior)
        return self.coordinates.physical(solve(convex_program, self.coordinates.prior).x)

    def _semi_consistent(self, rows: Array, target: Array) -> Array:
        """Fit with ``[[I, S(h)], [S(h)^T, m 1]] >= 0`` for every body ([Wensing2018]_ eq. 13), by CVXPY."""
        import cvxpy as cp

        x = cp.Variable(rows.shape[1])
        R, z = _compressed(rows, target)
        unit = np.eye(10)
        basis = [np.block([[inertia_about_origin(e), skew(e[1:4])], [skew(e[1:4]).T, e[0] * np.eye(3)]]) for e in unit]
        bodies = len(self.model.layout.body_names)
        blocks = [sum(x[10 * b + k] * E for k, E in enumerate(basis)) >> 0 for b in range(bodies)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # inaccuracy beyond the sixth digit
            cp.Problem(cp.Minimize(cp.sum_squares(R @ x - z)), blocks).solve(solver=cp.CLARABEL)
        return np.asarray(x.value)


class RegularizedFits:
    """Bodies inside their ellipsoids, nearest to the prior by several distances ([Lee2019]_ eqs. 3.6.68-3.6.74)."""

    def __init__(self, model: RobotModel, leg: dict[str, Any], names: tuple[str, ...] = ()) -> None:
        self.model, self.inside, self.names = model, Constraints(inside=bounds(leg)), names or REGULARIZERS

    def entropic(self, A: Array, b: Array, gamma: float) -> tuple[Array, float]:
        """Parameters at ``|A x - b|^2 + gamma d^2``, and their squared residual."""
        coordinates = leg_coordinates(self.model)
        R, z = _compressed(*coordinates.normalise(A, b))
        regularization = Regularization("entropic", float(1 / np.sqrt(gamma)), 1.0, 1.0)
        x = MapProblem(coordinates, self.model.prior, self.inside).solve(R, z, regularization).x
        return coordinates.physical(x), float(np.sum((R @ x - z) ** 2))

    def at_residual(self, A: Array, b: Array, bound: float) -> dict[str, Array]:
        """Parameters by regularizer, all with the same squared residual ([Lee2019]_ eq. 3.5.52)."""
        equations, samples = MatrixEquations.from_matrix(A, b, self.model)
        fits = fits_at_equal_residual(equations, [samples], bound, self.names, self.inside)
        return {name: fit.parameters for name, fit in fits.items()}


def _compressed(R: Array, z: Array) -> tuple[Array, Array]:
    """Triangle of the equations, with the smallest possible residual as the last row."""
    whole = np.linalg.qr(np.column_stack([R, z]), mode="r")
    return whole[:, :-1], whole[:, -1]
