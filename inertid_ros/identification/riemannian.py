"""Riemannian regularizer: squared geodesic distance to the prior (C 3.5.53), around the interior point method.

The distance is not convex where an eigenvalue of a normalised pseudo-inertia exceeds e, so that a minimum is local.
Each step minimises a convex model, with the distance's own Hessian where that is positive and a little curvature
where it is not, under all constraints, and searches along the line to that minimum.
"""

from dataclasses import replace

import numpy as np

from ..errors import IdentificationError
from ..robot.parameters import BODY_PARAMETERS, Array
from .distances import Riemannian
from .interior_point import solve
from .program import Program, Solution

_ITERATIONS = 60
_HALVINGS = 40
_SUFFICIENT = 1e-4  # share of the decrease that the slope promises which a step must bring
_FLOOR = 0.05


def solve_riemannian(program: Program, weight: float, start: Array, tolerance: float = 1e-9) -> Solution:
    """Local minimum of a program plus ``weight`` times the squared geodesic distance of its bodies.

    Parameters
    ----------
    program: without any distance of the bodies, see :func:`~.regularizers.regularized`.
    start: ``(p,)`` inside every cone, such as the solution with the log-det divergence.
    tolerance: on the gap to the minimum of the last convex model, relative to one plus the objective.

    Raises
    ------
    IdentificationError: constraints contradict one another, or no minimum is reached.
    """
    objective = _Objective(program, weight)
    x, value, seconds, iterations = start, objective(start), 0.0, 0
    for _ in range(_ITERATIONS):
        model = objective.model(x)
        solution = solve(model, x, tolerance)
        seconds, iterations = seconds + solution.seconds, iterations + solution.iterations
        step = solution.x - x
        decrement = 0.5 * float(step @ solution.hessian @ step)
        reached = objective(solution.x)
        if decrement <= tolerance * (1 + abs(value)) and np.isfinite(reached):
            return replace(
                solution,
                objective=reached,
                gap=solution.gap + decrement,
                solver="interior_point, successive convex models",
                iterations=iterations,
                seconds=seconds,
            )
        x, value = _searched(objective, x, value, step, -objective.slope(model, x, step))
    raise IdentificationError(
        f"riemannian regularizer: no minimum after {_ITERATIONS} steps (decrement {decrement:.1e});"
        " use the entropic regularizer"
    )


def _searched(objective: "_Objective", x: Array, value: float, step: Array, promised: float) -> tuple[Array, float]:
    """The first point of enough decrease, halving the step."""
    length = 1.0
    for _ in range(_HALVINGS):
        candidate = x + length * step
        reached = objective(candidate)
        if reached <= value - _SUFFICIENT * length * max(promised, 0.0) + 1e-12 * (1 + abs(value)):
            return candidate, reached
        length *= 0.5
    raise IdentificationError("riemannian regularizer: no step leads down; use the entropic regularizer")


class _Objective:
    """The whole objective, and convex models of it."""

    def __init__(self, program: Program, weight: float) -> None:
        self.program, self.weight = program, weight
        self.bodies = len(program.body_weights)
        self.size = BODY_PARAMETERS * self.bodies
        self.distance = Riemannian(_FLOOR)

    def __call__(self, x: Array) -> float:
        return self.program.objective(x) + self.weight * self.distance.value(self._bodies(x))

    def model(self, x: Array) -> Program:
        """Second-order model at ``x``."""
        bodies = self._bodies(x)
        rows, weights = self.distance.rows(bodies)
        rows = np.sqrt(self.weight * weights)[:, :, None] * rows
        extra = np.zeros((rows.shape[0] * rows.shape[1], len(x)))
        for index, block in enumerate(rows):
            extra[16 * index : 16 * (index + 1), BODY_PARAMETERS * index : BODY_PARAMETERS * (index + 1)] = block
        slope = self.program.slope.copy()
        slope[: self.size] += self.weight * self.distance.gradient(bodies).ravel()
        return replace(
            self.program,
            R=np.vstack([self.program.R, extra]),
            z=np.concatenate([self.program.z, extra @ x]),
            slope=slope,
        )

    def slope(self, model: Program, x: Array, step: Array) -> float:
        """Derivative of the objective along a step."""
        along = float(model.gradient(x) @ step)
        soft = self.program.positive_weights > 0
        columns = self.program.positive[soft]
        return along - float(np.sum(self.program.positive_weights[soft] * step[columns] / x[columns]))

    def _bodies(self, x: Array) -> Array:
        return x[: self.size].reshape(self.bodies, BODY_PARAMETERS)
