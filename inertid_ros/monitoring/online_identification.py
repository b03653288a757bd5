"""Parameters that follow a robot: information of a stream, solved again from the last optimum by Newton's method.

With the entropic regularizer every bound is a barrier of fixed weight, so that the objective is smooth inside, and a
start near the optimum needs few steps; each of them stays inside, whatever the data.
"""

import time
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ConvergenceError, IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, PSEUDO_INERTIA_BASIS
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import Information
from inertid_ros.identification.prior.convex_program import ConvexProgram
from inertid_ros.identification.prior.coordinates import ENERGY_SHARE, Coordinates, prior_coordinates
from inertid_ros.identification.prior.regularizers import Regularization, regularized
from inertid_ros.identification.solvers.map_problem import MapProblem
from inertid_ros.monitoring.online_information import Forgetting, OnlineInformation
from inertid_ros.payload.equations import CalibratedRobot
from inertid_ros.regressors.equations import equations_of
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import RobotModel

_MOST_STEPS = 60
_DONE = 1e-12  # squared Newton decrement before the last step: squared distance from the optimum in standard deviations
_TO_BORDER = 0.9
_FAR, _BEGIN = 0.98, 0.03  # share of the barrier's gradient that is left, and where to begin instead, of the scale
_SUFFICIENT = 1e-4  # share of the predicted decrease
_ROUNDING = 1e-13


@dataclass(frozen=True)
class OnlineOptions:
    """How parameters follow a robot.

    Attributes
    ----------
    prior_spread : float
        How far bodies may be from the calibration: standard deviation of their geodesic distance.
    forgetting : Forgetting
        How old samples lose weight.
    independent_fraction : float
        Independent share of the samples: two per period of the cutoff.
    """

    prior_spread: float = 0.3
    forgetting: Forgetting = Forgetting()
    independent_fraction: float = 1.0


@dataclass(frozen=True)
class OnlineEstimate:
    """Parameters at one instant.

    Attributes
    ----------
    time : float
        Of the newest sample that counts [s].
    parameters : ndarray, shape (p,)
        In the order of the layout; every body is physically consistent.
    coordinates : Coordinates
        In which they were found.
    hessian : ndarray, shape (p, p)
        Of the objective in these coordinates.
    steps : int
        Newton steps from the last estimate.
    seconds : float
        That it took to solve.
    """

    time: float
    parameters: Array
    coordinates: Coordinates
    hessian: Array
    steps: int
    seconds: float

    @cached_property
    def covariance(self) -> Array:
        """``(p, p)`` of the parameters, of data and prior together."""
        root = solve_triangular(np.linalg.cholesky(self.hessian), self.coordinates.matrix.T, lower=True)
        return np.asarray(root.T @ root)


class OnlineIdentification:
    """Follows the parameters of a robot from blocks of samples.

    Parameters
    ----------
    robot : CalibratedRobot
        Where it begins: its parameters are the prior, its residuals the weights.
    options : OnlineOptions, optional
        Prior spread and forgetting.
    """

    def __init__(self, robot: CalibratedRobot, options: OnlineOptions | None = None) -> None:
        self.options = options or OnlineOptions()
        model, layout = robot.equations.model, robot.layout
        drives = {term: robot.parameters[layout.drive(term)] for term in layout.drive_terms}
        self._model: RobotModel = replace(
            model.with_prior_bodies(layout.bodies(robot.parameters)), drive_prior={**model.drive_prior, **drives}
        )
        self.equations = equations_of(self._model, robot.equations.equation_type)
        self.weights: Array = np.sqrt(self.options.independent_fraction) / robot.deviation
        self.stream = OnlineInformation(self.equations, self.options.forgetting)
        self._parameters, self._time = _inside(layout, robot.parameters), -np.inf

    def add(self, samples: Samples) -> None:
        """Take a block, in the order of time."""
        self.stream.add(samples)
        self._time = float(samples.time[-1])

    def solve(self) -> OnlineEstimate:
        """Parameters for all that is not forgotten, from those of the last call.

        Raises
        ------
        IdentificationError
            No joint has moved yet, or there is no optimum.
        """
        if self.stream.empty:
            raise IdentificationError("online: no joint has moved yet; move the robot")
        information = self.stream.information
        coordinates, regularization = self.map_problem(information)
        size = coordinates.layout.size
        prior = regularized(np.zeros((0, size)), np.zeros(0), coordinates.layout, regularization)
        objective = StreamObjective(information, self.weights, coordinates, prior)
        start: Array = np.linalg.solve(coordinates.matrix, self._parameters - coordinates.offset).astype(float)
        try:
            found = solve_warm(objective, start)
        except ConvergenceError:
            R, z = coordinates.normalise(*information.whitened(self.weights))
            cold = MapProblem(coordinates, self._model.prior).solve(R, z, regularization)
            found = solve_warm(objective, cold.x)
        self._parameters = coordinates.physical(found.x)
        return OnlineEstimate(self._time, self._parameters, coordinates, found.hessian, found.steps, found.seconds)

    def map_problem(self, information: Information) -> tuple[Coordinates, Regularization]:
        """Coordinates and regularization of the fit of some information."""
        regularization = Regularization("entropic", self.options.prior_spread, 1.0, 1 / ENERGY_SHARE)
        return prior_coordinates(self._model, information), regularization


def _inside(layout: ParameterLayout, parameters: Array) -> Array:
    """Parameters with those that cannot be negative above zero."""
    started = parameters.copy()
    started[layout.non_negative] = np.maximum(started[layout.non_negative], 1e-6)
    return started


@dataclass(frozen=True)
class WarmSolution:
    """Minimiser in normalised coordinates.

    Attributes
    ----------
    x : ndarray, shape (p,)
        Minimiser.
    hessian : ndarray, shape (p, p)
        Of the objective there.
    steps : int
        Newton steps.
    seconds : float
        Time that it took.
    """

    x: Array
    hessian: Array
    steps: int
    seconds: float


class StreamObjective:
    """Weighted equations of all channels in normalised coordinates, and the regularizer.

    Gradients come from the R factors, never from their squares; the Hessian may be of squares, which only sets the
    speed of convergence.

    Parameters
    ----------
    information : Information
        Equations.
    weights : ndarray, shape (c,)
        Of the residuals.
    coordinates : Coordinates
        Normalised ones.
    prior : ConvexProgram
        Of the regularizer alone.
    """

    def __init__(
        self, information: Information, weights: Array, coordinates: Coordinates, prior: ConvexProgram
    ) -> None:
        self._prior, size = prior, coordinates.layout.size
        self._rows: list[tuple[np.ndarray, Array, Array]] = []
        self._gram = prior.gram.copy()
        for channel, weight in zip(information.channels, weights, strict=True):
            own = channel.columns
            A = weight * channel.r_factor[:, :-1]
            b = weight * channel.r_factor[:, -1] - A @ coordinates.offset[own]
            A = A @ coordinates.matrix[np.ix_(own, own)]
            self._rows.append((own, A, b))
            self._gram[np.ix_(own, own)] += A.T @ A
        self._size = size

    def value(self, x: Array) -> float:
        """Objective; infinite outside."""
        data = sum(0.5 * float(np.sum((A @ x[own] - b) ** 2)) for own, A, b in self._rows)
        return data + self._prior.objective(x)

    def derivatives(self, x: Array) -> tuple[Array, Array]:
        """Gradient ``(p,)`` and Hessian ``(p, p)``."""
        prior = self._prior
        gradient, hessian = prior.gradient(x), self._gram.copy()
        for own, A, b in self._rows:
            gradient[own] += A.T @ (A @ x[own] - b)
        inverse = np.linalg.inv(prior.matrices(x))
        turned = inverse[:, None] @ PSEUDO_INERTIA_BASIS  # (nb, 10, 4, 4)
        for body, (weight, own) in enumerate(zip(prior.body_weights, turned, strict=True)):
            span = slice(BODY_PARAMETERS * body, BODY_PARAMETERS * (body + 1))
            gradient[span] -= weight * np.trace(own, axis1=1, axis2=2)
            flat = own.reshape(BODY_PARAMETERS, 16)
            hessian[span, span] += weight * flat @ own.swapaxes(1, 2).reshape(BODY_PARAMETERS, 16).T
        positive = prior.positive
        gradient[positive] -= prior.positive_weights / x[positive]
        hessian[positive, positive] += prior.positive_weights / x[positive] ** 2
        return gradient, hessian

    def lifted(self, x: Array) -> Array:
        """A start whose bounded parameters are not far below their optimum, from where steps could only double them.

        There the barrier is the whole gradient.
        """
        prior = self._prior
        gradient, _ = self.derivatives(x)
        own = x[prior.positive]
        far = gradient[prior.positive] * own < -_FAR * prior.positive_weights
        started = x.copy()
        started[prior.positive] = np.where(far, np.maximum(own, _BEGIN), own)
        return started

    def inside(self, x: Array, step: Array) -> float:
        """Largest share of a step, at most one, that stays inside by a margin."""
        falling = step[self._prior.positive] / x[self._prior.positive]
        share = min(1.0, _TO_BORDER / max(-float(falling.min(initial=0.0)), 1e-300))
        S = self._prior.matrices(x)
        lower = np.linalg.inv(np.linalg.cholesky(S))
        change = lower @ self._prior.matrices(step) @ lower.swapaxes(1, 2)
        least = float(np.linalg.eigvalsh(change)[:, 0].min(initial=0.0))
        return min(share, _TO_BORDER / max(-least, 1e-300))


def solve_warm(objective: StreamObjective, start: Array) -> WarmSolution:
    """Minimise from a start inside.

    Parameters
    ----------
    objective : StreamObjective
        What is minimised.
    start : ndarray, shape (p,)
        Inside.

    Raises
    ------
    ConvergenceError
        No optimum within the steps; a method for any start finds it.
    """
    begun, x = time.perf_counter(), objective.lifted(start)
    value = objective.value(x)
    for count in range(_MOST_STEPS):
        gradient, hessian = objective.derivatives(x)
        try:
            step = -cho_solve(cho_factor(hessian, check_finite=False), gradient, check_finite=False)
        except LinAlgError:
            break
        decrement = -float(gradient @ step)
        share = objective.inside(x, step)
        while True:
            moved = objective.value(x + share * step)
            rounding = _ROUNDING * (1 + abs(value))
            if moved <= value - _SUFFICIENT * share * decrement + rounding or share < 1e-10:
                break
            share *= 0.5
        x, value = x + share * step, moved
        if decrement <= _DONE:
            return WarmSolution(x, hessian, count + 1, time.perf_counter() - begun)
    raise ConvergenceError(f"online: no optimum after {_MOST_STEPS} steps; start anew")
