"""Online identification: Newton's method from the last optimum, with the information of a stream.

Forgetting scales R factors. Unlike updates of a covariance, scaling keeps full precision, and the covariance of
directions without excitation stays bounded. With the entropic regularizer, every bound is a barrier of fixed weight,
so the objective is smooth inside the bounds. Newton's method needs few steps from a start near the optimum, and every
step stays inside the bounds.
"""

import time
from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.linalg import LinAlgError, block_diag, cho_factor, cho_solve, solve_triangular

from inertid_ros.config.nodes import OnlineNodeOptions
from inertid_ros.core.arrays import Array, append_rows
from inertid_ros.core.errors import ConvergenceError, IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import Channel, Information, fingerprint
from inertid_ros.identification.solvers.constraints import Constraints
from inertid_ros.identification.solvers.convex_program import ConvexProgram
from inertid_ros.identification.solvers.coordinates import ENERGY_SHARE, Coordinates, prior_coordinates
from inertid_ros.identification.solvers.map_problem import MapProblem
from inertid_ros.identification.solvers.regularizers import Regularization, regularized
from inertid_ros.payload.equations import CalibratedRobot
from inertid_ros.regressors.equations import Equations, equations_of

_MAX_WARM_STEPS = 60
_MAX_DECREMENT = 1e-12  # squared Newton decrement before the last step, in squared standard deviations
_MAX_BORDER_SHARE = 0.9  # largest share of the way to the border in one step
_BARRIER_SHARE, _LIFTED_START = 0.98, 0.03  # barrier's share of gradient above which a start is raised; raised start
_ARMIJO_SHARE = 1e-4  # share of the predicted decrease
_ROUNDING = 1e-13
_KNOWN_WEIGHT = 1e5  # of parameters that the robot's description fixes, in normalised coordinates
_WINDOW_SEGMENTS = 10  # a window slides by one segment
NOTHING_FORGOTTEN = OnlineNodeOptions(time_constant_s=0.0)


class OnlineInformation:
    """Information of the blocks of a stream, with exponential forgetting or a sliding window.

    Parameters
    ----------
    options : ``window_s`` sets a sliding window, kept to a tenth of its length; if it is zero, ``time_constant_s`` sets
        the forgetting, and zero keeps all samples.
    """

    def __init__(self, equations: Equations, options: OnlineNodeOptions = NOTHING_FORGOTTEN) -> None:
        self._equations, self._window_s = equations, options.window_s
        self._time_constant_s = 0.0 if options.window_s else options.time_constant_s
        self._writer = equations.writer()
        self._expansions = [block_diag(expansion, np.eye(1)) for expansion in self._writer.expansions]
        self._robot = fingerprint(equations)
        self._newest = -np.inf
        self._current, self._older = self._empty(), self._empty()
        self._segments: deque[_Factors] = deque()

    def add(self, samples: Samples) -> None:
        """Add a block; blocks must come in the order of time."""
        end, period = float(samples.time[-1]), float(np.median(np.diff(samples.time))) if len(samples) > 1 else 0.0
        if self._time_constant_s and np.isfinite(self._newest):
            self._current.scale(np.exp(-(end - self._newest) / self._time_constant_s))
        self._newest = end
        self._current.first = min(self._current.first, float(samples.time[0]))
        self._append(samples)
        if self._window_s:
            self._slide(end, period)

    @property
    def empty(self) -> bool:
        """True before the first motion of a joint."""
        return not (self._current.counts.any() or self._older.counts.any())

    @property
    def information(self) -> Information:
        """Information of the samples so far."""
        factors = self._older.with_rows_of(self._current) if self._segments else self._current
        equations = self._equations
        parts = zip(equations.columns, factors.R, self._expansions, factors.counts, strict=True)
        channels = (Channel(columns, R @ expansion, int(round(count))) for columns, R, expansion, count in parts)
        return Information(equations.model.layout, tuple(channels), self._robot, tuple(equations.channels))

    def _append(self, samples: Samples) -> None:
        work = np.zeros((self._equations.count, self._writer.width, len(samples)))
        self._writer.write(samples, slice(0, len(samples)), work)
        for channel, span in enumerate(self._writer.spans):
            used = samples.mask[:, channel]
            if not used.any():
                continue
            work[channel, span.stop - 1] = samples.tau[:, channel]
            rows = np.ascontiguousarray(work[channel, span] if used.all() else work[channel, span][:, used])
            self._current.R[channel] = append_rows(self._current.R[channel], rows)
            self._current.counts[channel] += used.sum()

    def _slide(self, end: float, period: float) -> None:
        """Close the current segment if it is long enough, and drop segments that have left the window."""
        window, count = self._window_s, len(self._segments)
        if end + period - self._current.first >= window / _WINDOW_SEGMENTS * (1 - 1e-9):
            self._current.last = end
            self._segments.append(self._current)
            self._current = self._empty()
        while self._segments and self._segments[0].last < end - window:
            self._segments.popleft()
            count = -1
        if len(self._segments) != count:
            self._older = self._empty()
            for segment in self._segments:
                self._older = self._older.with_rows_of(segment)

    def _empty(self) -> "_Factors":
        sizes = [int(span.stop - span.start) for span in self._writer.spans]
        return _Factors([np.zeros((size, size), order="F") for size in sizes], np.zeros(len(sizes)))


@dataclass
class _Factors:
    """R factors and row counts of all channels, and the times of the first and last sample."""

    R: list[Array]
    counts: Array
    first: float = np.inf
    last: float = np.inf

    def scale(self, weight: float) -> None:
        for factor in self.R:
            factor *= np.sqrt(weight)
        self.counts *= weight

    def with_rows_of(self, other: "_Factors") -> "_Factors":
        merged = [
            append_rows(factor.copy(order="F"), np.array(added.T, order="C"))
            for factor, added in zip(self.R, other.R, strict=True)]
        return _Factors(merged, self.counts + other.counts)


@dataclass(frozen=True)
class OnlineEstimate:
    """Parameters at one instant.

    Attributes
    ----------
    time : time of the newest sample [s].
    parameters : (p,), physically consistent.
    hessian : (p, p), Hessian of the objective in the normalised ``coordinates``.
    steps : Newton steps from the last estimate.
    seconds : solution time.
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
    """Estimate the parameters of a moving robot from blocks of samples.

    Parameters
    ----------
    robot : its parameters are the prior; its residual deviations give the weights.
    independent_share : share of the samples that count as independent.

    Raises
    ------
    IdentificationError
        Efforts are not torques: without gravity, bodies of the robot and of its controller could drift together.
    """

    def __init__(
        self, robot: CalibratedRobot, options: OnlineNodeOptions = NOTHING_FORGOTTEN, independent_share: float = 1.0
    ) -> None:
        if robot.layout.compensation or robot.equations.model.options.effort == "position_command":
            raise IdentificationError(
                "robot.effort: efforts other than torque cannot be followed online; record motions, and run inertid"
                " identify")
        self._prior_spread = options.prior_spread
        model, layout = robot.equations.model, robot.layout
        drives = {term: robot.parameters[layout.drive(term)] for term in layout.drive_terms}
        self._model = replace(
            model.with_prior_bodies(layout.bodies(robot.parameters)), drive_prior={**model.drive_prior, **drives})
        self.equations = equations_of(self._model, robot.equations.equation_type)
        self.weights: Array = np.sqrt(independent_share) / robot.deviation
        self.stream = OnlineInformation(self.equations, options)
        self._parameters, self._time = robot.parameters.copy(), -np.inf
        start = self._parameters[layout.non_negative]
        self._parameters[layout.non_negative] = np.maximum(start, 1e-6)  # inside the bounds

    def add(self, samples: Samples) -> None:
        """Add a block; blocks must come in the order of time."""
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
        layout = coordinates.layout
        rows = _KNOWN_WEIGHT * np.eye(layout.size)[np.isin(layout.names, layout.known_terms)]
        given = np.linalg.solve(coordinates.matrix, self._model.prior - coordinates.offset)
        prior = regularized(rows, rows @ given, layout, regularization)
        objective = StreamObjective(information, self.weights, coordinates, prior)
        start: Array = np.linalg.solve(coordinates.matrix, self._parameters - coordinates.offset).astype(float)
        begun = time.perf_counter()
        try:
            x, hessian, steps = _newton(objective, start)
        except ConvergenceError:
            # The last estimate is too far away: the batch solver gives the start.
            R, z = coordinates.normalise(*information.whitened(self.weights))
            constraints = Constraints(fixed=layout.known_terms)
            cold = MapProblem(coordinates, self._model.prior, constraints).solve(R, z, regularization)
            begun = time.perf_counter()
            x, hessian, steps = _newton(objective, cold.x)
        self._parameters, seconds = coordinates.physical(x), time.perf_counter() - begun
        return OnlineEstimate(self._time, self._parameters, coordinates, hessian, steps, seconds)

    def map_problem(self, information: Information) -> tuple[Coordinates, Regularization]:
        """Return coordinates and regularization of a fit to ``information``."""
        regularization = Regularization("entropic", self._prior_spread, 1.0, 1 / ENERGY_SHARE)
        return prior_coordinates(self._model, information), regularization


class StreamObjective:
    """Weighted squared errors of all channels plus the regularizer, in normalised coordinates.

    Gradients use the R factors and not Gram matrices, to keep full precision. The Hessian may use Gram matrices, as it
    only affects the speed of convergence. ``prior`` is the convex program of the regularizer alone.
    """

    def __init__(
            self, information: Information, weights: Array, coordinates: Coordinates, prior: ConvexProgram) -> None:
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
        barrier, curvature = self._prior.barrier_derivatives(x)
        gradient, hessian = self._prior.gradient(x) + barrier, self._gram + curvature
        for columns, A, b in self._rows:
            gradient[columns] += A.T @ (A @ x[columns] - b)
        return gradient, hessian

    def lifted(self, x: Array) -> Array:
        """Raise bounded parameters that are far below their optimum, as one Newton step at most doubles them."""
        prior = self._prior
        gradient, _ = self.derivatives(x)
        bounded = x[prior.positive]
        far = gradient[prior.positive] * bounded < -_BARRIER_SHARE * prior.positive_weights
        start = x.copy()
        start[prior.positive] = np.where(far, np.maximum(bounded, _LIFTED_START), bounded)
        return start

    def inside(self, x: Array, step: Array) -> float:
        """Return the largest share of a step, at most one, that stays inside the bounds by a margin."""
        falling = step[self._prior.positive] / x[self._prior.positive]
        share = min(1.0, _MAX_BORDER_SHARE / max(-float(falling.min(initial=0.0)), 1e-300))
        S = self._prior.matrices(x)
        lower = np.linalg.inv(np.linalg.cholesky(S))
        change = lower @ self._prior.matrices(step) @ lower.swapaxes(1, 2)
        least = float(np.linalg.eigvalsh(change)[:, 0].min(initial=0.0))
        return min(share, _MAX_BORDER_SHARE / max(-least, 1e-300))


def _newton(objective: StreamObjective, start: Array) -> tuple[Array, Array, int]:
    """Minimise from a start inside the bounds; return minimiser ``(p,)``, Hessian ``(p, p)`` and number of steps."""
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
    raise ConvergenceError(f"online: no optimum after {_MAX_WARM_STEPS} steps; restart the online estimate")
