"""Parameters that follow a robot: information of a stream, solved again from the last optimum by Newton's method.

Forgetting scales R factors: unlike updates of a covariance, this loses no digits, and directions without excitation do
not grow. With the entropic regularizer every bound is a barrier of fixed weight: the objective is smooth inside, a
start near the optimum needs few steps, and each of them stays inside.
"""

import time
from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve_triangular

from inertid_ros.config.nodes import OnlineNodeOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ConvergenceError, IdentificationError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS, PSEUDO_INERTIA_BASIS
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import (
    Channel,
    Compressor,
    Information,
    fingerprint,
    information_so_far,
    merged,
)
from inertid_ros.identification.prior.convex_program import ConvexProgram
from inertid_ros.identification.prior.coordinates import ENERGY_SHARE, Coordinates, prior_coordinates
from inertid_ros.identification.prior.regularizers import Regularization, regularized
from inertid_ros.identification.solvers.map_problem import MapProblem
from inertid_ros.payload.equations import CalibratedRobot
from inertid_ros.regressors.equations import Equations, equations_of
from inertid_ros.robot.model import RobotModel

_MAX_WARM_STEPS = 60
_MAX_DECREMENT = 1e-12  # squared, before the last step: squared distance from the optimum in standard deviations
_MAX_BORDER_SHARE = 0.9  # of the way to the border, in one step
_BARRIER_SHARE, _LIFTED_START = 0.98, 0.03  # gradient share that shows a start too low, and the start used instead
_ARMIJO_SHARE = 1e-4  # of the predicted decrease
_ROUNDING = 1e-13
_WINDOW_SEGMENTS = 10  # a window slides by one of them
NOTHING_FORGOTTEN = OnlineNodeOptions(time_constant_s=0.0)


class OnlineInformation:
    """Information of the blocks of a stream, with exponential forgetting or a sliding window.

    Parameters
    ----------
    options : OnlineNodeOptions
        Its ``window_s``, to a tenth of it, or else ``time_constant_s``; zero forgets nothing.
    """

    def __init__(self, equations: Equations, options: OnlineNodeOptions = NOTHING_FORGOTTEN) -> None:
        self._equations, self._robot, self._window_s = equations, fingerprint(equations), options.window_s
        self._time_constant_s = 0.0 if options.window_s else options.time_constant_s
        self._current, self._begin, self._newest = Compressor(equations), np.inf, -np.inf
        self._segments: deque[tuple[float, Information]] = deque()  # of a window, by their newest sample
        self._older: Information | None = None  # of all segments

    def add(self, samples: Samples) -> None:
        """Append a block, in the order of time."""
        end = float(samples.time[-1])
        if self._time_constant_s and np.isfinite(self._newest):
            self._current.forget(np.exp(-(end - self._newest) / self._time_constant_s))
        self._newest, self._begin = end, min(self._begin, float(samples.time[0]))
        self._current.add(samples)
        if self._window_s:
            self._slide(end, float(np.median(np.diff(samples.time))) if len(samples) > 1 else 0.0)

    @property
    def empty(self) -> bool:
        """Whether no joint has moved yet."""
        return not (self._current.counts.any() or (self._older is not None and self._older.counts.any()))

    @property
    def information(self) -> Information:
        """Information so far."""
        equations = self._equations
        compressed = zip(equations.columns, self._current.r_factors(), self._current.counts, strict=True)
        channels = tuple(Channel(columns, rows, round(count)) for columns, rows, count in compressed)  # not triangular
        current = Information(equations.model.layout, channels, self._robot, equations.channels)
        return current if self._older is None else self._older + current

    def _slide(self, end: float, period: float) -> None:
        """Close the current segment if it is long enough, and drop those that have left the window."""
        count = len(self._segments)
        if end + period - self._begin >= self._window_s / _WINDOW_SEGMENTS * (1 - 1e-9):
            self._segments.append((end, information_so_far(self._equations, self._current)))
            self._current, self._begin = Compressor(self._equations), np.inf
        while self._segments and self._segments[0][0] < end - self._window_s:
            self._segments.popleft()
            count = -1
        if len(self._segments) != count:
            segments = [information for _, information in self._segments]
            self._older = merged(segments) if segments else None


@dataclass(frozen=True)
class OnlineEstimate:
    """Parameters at one instant.

    Attributes
    ----------
    time : float
        Newest sample [s].
    parameters : ndarray, shape (p,)
        Physically consistent.
    hessian : ndarray, shape (p, p)
        Hessian of the objective in the normalised ``coordinates``.
    steps : int
        Newton steps from the last estimate.
    seconds : float
        Solution time.
    """

    time: float
    parameters: Array
    coordinates: Coordinates
    hessian: Array
    steps: int
    seconds: float

    @cached_property
    def covariance(self) -> Array:
        """Posterior covariance ``(p, p)`` of the parameters."""
        root = solve_triangular(np.linalg.cholesky(self.hessian), self.coordinates.matrix.T, lower=True)
        return np.asarray(root.T @ root)


class OnlineIdentification:
    """Follow the parameters of a robot from blocks of samples.

    Parameters
    ----------
    robot : CalibratedRobot
        Its parameters are the prior, its residuals the weights.
    independent_share : float
        Independent share of the samples.
    """

    def __init__(
        self, robot: CalibratedRobot, options: OnlineNodeOptions = NOTHING_FORGOTTEN, independent_share: float = 1.0
    ) -> None:
        self._prior_spread = options.prior_spread
        model, layout = robot.equations.model, robot.layout
        drives = {term: robot.parameters[layout.drive(term)] for term in layout.drive_terms}
        self._model: RobotModel = replace(
            model.with_prior_bodies(layout.bodies(robot.parameters)), drive_prior={**model.drive_prior, **drives}
        )
        self.equations = equations_of(self._model, robot.equations.equation_type)
        self.weights: Array = np.sqrt(independent_share) / robot.deviation
        self.stream = OnlineInformation(self.equations, options)
        self._parameters, self._time = robot.parameters.copy(), -np.inf
        start = self._parameters[layout.non_negative]
        self._parameters[layout.non_negative] = np.maximum(start, 1e-6)  # inside the bounds

    def add(self, samples: Samples) -> None:
        """Take a block, in the order of time."""
        self.stream.add(samples)
        self._time = float(samples.time[-1])

    def solve(self) -> OnlineEstimate:
        """Estimate the parameters from the information so far, starting from the last estimate.

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
        begun = time.perf_counter()
        try:
            x, hessian, steps = _newton(objective, start)
        except ConvergenceError:
            # The last estimate is too far away: the batch solver gives the start.
            R, z = coordinates.normalise(*information.whitened(self.weights))
            cold = MapProblem(coordinates, self._model.prior).solve(R, z, regularization)
            begun = time.perf_counter()
            x, hessian, steps = _newton(objective, cold.x)
        self._parameters, seconds = coordinates.physical(x), time.perf_counter() - begun
        return OnlineEstimate(self._time, self._parameters, coordinates, hessian, steps, seconds)

    def map_problem(self, information: Information) -> tuple[Coordinates, Regularization]:
        """Coordinates and regularization of a fit to some information."""
        regularization = Regularization("entropic", self._prior_spread, 1.0, 1 / ENERGY_SHARE)
        return prior_coordinates(self._model, information), regularization


class StreamObjective:
    """Weighted equations of all channels in normalised coordinates, and the regularizer.

    Gradients use the R factors, never their squares; the Hessian may use squares, as it only sets the speed of
    convergence. ``prior`` is the program of the regularizer alone.
    """

    def __init__(
        self, information: Information, weights: Array, coordinates: Coordinates, prior: ConvexProgram
    ) -> None:
        self._prior = prior
        self._rows: list[tuple[np.ndarray, Array, Array]] = []
        self._gram = prior.gram.copy()
        for channel, weight in zip(information.channels, weights, strict=True):
            columns = channel.columns
            A = weight * channel.r_factor[:, :-1]
            b = weight * channel.r_factor[:, -1] - A @ coordinates.offset[columns]
            A = A @ coordinates.matrix[np.ix_(columns, columns)]
            self._rows.append((columns, A, b))
            self._gram[np.ix_(columns, columns)] += A.T @ A

    def value(self, x: Array) -> float:
        """Objective; infinite outside the bounds."""
        data = sum(0.5 * float(np.sum((A @ x[columns] - b) ** 2)) for columns, A, b in self._rows)
        return data + self._prior.objective(x)

    def derivatives(self, x: Array) -> tuple[Array, Array]:
        """Gradient ``(p,)`` and Hessian ``(p, p)``."""
        prior = self._prior
        gradient, hessian = prior.gradient(x), self._gram.copy()
        for columns, A, b in self._rows:
            gradient[columns] += A.T @ (A @ x[columns] - b)
        # Barrier -log det of every body's pseudo-inertia.
        inverse = np.linalg.inv(prior.matrices(x))
        turned = inverse[:, None] @ PSEUDO_INERTIA_BASIS  # (nb, 10, 4, 4)
        for body, (weight, basis) in enumerate(zip(prior.body_weights, turned, strict=True)):
            span = slice(BODY_PARAMETERS * body, BODY_PARAMETERS * (body + 1))
            gradient[span] -= weight * np.trace(basis, axis1=1, axis2=2)
            flat = basis.reshape(BODY_PARAMETERS, 16)
            hessian[span, span] += weight * flat @ basis.swapaxes(1, 2).reshape(BODY_PARAMETERS, 16).T
        positive = prior.positive
        gradient[positive] -= prior.positive_weights / x[positive]
        hessian[positive, positive] += prior.positive_weights / x[positive] ** 2
        return gradient, hessian

    def lifted(self, x: Array) -> Array:
        """Raise bounded parameters that are far below their optimum, where steps could only double them."""
        prior = self._prior
        gradient, _ = self.derivatives(x)
        bounded = x[prior.positive]
        far = gradient[prior.positive] * bounded < -_BARRIER_SHARE * prior.positive_weights
        start = x.copy()
        start[prior.positive] = np.where(far, np.maximum(bounded, _LIFTED_START), bounded)
        return start

    def inside(self, x: Array, step: Array) -> float:
        """Largest share of a step, at most one, that stays inside the bounds by a margin."""
        falling = step[self._prior.positive] / x[self._prior.positive]
        share = min(1.0, _MAX_BORDER_SHARE / max(-float(falling.min(initial=0.0)), 1e-300))
        S = self._prior.matrices(x)
        lower = np.linalg.inv(np.linalg.cholesky(S))
        change = lower @ self._prior.matrices(step) @ lower.swapaxes(1, 2)
        least = float(np.linalg.eigvalsh(change)[:, 0].min(initial=0.0))
        return min(share, _MAX_BORDER_SHARE / max(-least, 1e-300))


def _newton(objective: StreamObjective, start: Array) -> tuple[Array, Array, int]:
    """Minimiser ``(p,)`` from a start inside the bounds, Hessian ``(p, p)`` there, and number of steps."""
    x = objective.lifted(start)
    value = objective.value(x)
    for count in range(_MAX_WARM_STEPS):
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
            if moved <= value - _ARMIJO_SHARE * share * decrement + rounding or share < 1e-10:
                break
            share *= 0.5
        x, value = x + share * step, moved
        if decrement <= _MAX_DECREMENT:
            return x, hessian, count + 1
    raise ConvergenceError(f"online: no optimum after {_MAX_WARM_STEPS} steps; start anew")
