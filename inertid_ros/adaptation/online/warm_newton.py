"""Newton's method for the MAP problem of a stream, from the last optimum.

With the entropic regularizer every bound is a barrier of fixed weight, so that the objective is smooth inside, and a
start near the optimum needs few steps; each of them stays inside, whatever the data.
"""

import time
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ConvergenceError
from inertid_ros.identification.information.information import Information
from inertid_ros.identification.prior.convex_program import ConvexProgram
from inertid_ros.identification.prior.coordinates import Coordinates
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS, PSEUDO_INERTIA_BASIS

_MOST_STEPS = 60
_DONE = 1e-12  # squared Newton decrement before the last step: squared distance from the optimum in standard deviations
_TO_BORDER = 0.9
_FAR, _BEGIN = 0.98, 0.03  # share of the barrier's gradient that is left, and where to begin instead, of the scale
_SUFFICIENT = 1e-4  # share of the predicted decrease
_ROUNDING = 1e-13


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
