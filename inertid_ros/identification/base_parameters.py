"""Base parameters: the combinations of parameters that motion can reveal at all, found numerically."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg

from ..data.samples import Samples
from ..robot.layout import ParameterLayout
from ..robot.model import RobotModel
from ..robot.parameters import Array
from .information import compress
from .triangular import triangle

_INDEPENDENT = 3e-5  # part of a unit column that earlier columns must leave for it to be kept


@dataclass(frozen=True)
class BaseParameters:
    """Independent columns of a regressor and how the others depend on them.

    Attributes
    ----------
    layout: of the full parameter vector.
    independent: ``(r,)`` columns kept, ascending.
    dependent: ``(p - r,)`` columns regrouped, ascending.
    regrouping: ``(r, p - r)``; ``Y[:, dependent] = Y[:, independent] @ regrouping``.
    condition_number: of the kept columns, each scaled to unit norm.
    """

    layout: ParameterLayout
    independent: np.ndarray
    dependent: np.ndarray
    regrouping: Array
    condition_number: float

    @property
    def count(self) -> int:
        return len(self.independent)

    @cached_property
    def projection(self) -> Array:
        """``(r, p)`` matrix from the parameter vector to the base parameters."""
        matrix = np.zeros((self.count, self.layout.size))
        matrix[np.arange(self.count), self.independent] = 1.0
        matrix[:, self.dependent] = self.regrouping
        return matrix

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A readable combination per base parameter, such as ``arm.mcx + 0.4 hand.m``."""
        names = self.layout.names
        readable = []
        for row, column in enumerate(self.independent):
            terms = [names[column]]
            for factor, other in zip(self.regrouping[row], self.dependent, strict=True):
                if abs(factor) > 1e-6:
                    sign = "-" if factor < 0 else "+"
                    size = "" if abs(abs(factor) - 1) < 1e-6 else f"{abs(factor):.4g} "
                    terms.append(f"{sign} {size}{names[other]}")
            readable.append(" ".join(terms))
        return tuple(readable)


def base_parameters(layout: ParameterLayout, R: Array) -> BaseParameters:
    """Base parameters of the regressor whose QR triangle is ``(k, p)``.

    Columns are visited from the last body to the first and kept where they add a direction to those kept before, so
    that what a child shares with its parent is regrouped into the parent, as closed-form rules do.
    """
    norms = np.linalg.norm(R, axis=0)
    scale = np.where(norms > 1e-12 * norms.max(initial=0.0), norms, np.inf)
    scaled = R / scale
    order = _order(layout)
    independent = np.sort(order[_independent(triangle(scaled[:, order]))])
    dependent = np.setdiff1d(np.arange(layout.size), independent)
    if len(independent) == 0:
        return BaseParameters(layout, independent, dependent, np.zeros((0, len(dependent))), float("inf"))
    regrouping = scipy.linalg.lstsq(scaled[:, independent], scaled[:, dependent])[0]
    regrouping = regrouping / scale[independent][:, None] * np.where(np.isfinite(scale), scale, 0.0)[dependent]
    regrouping[np.abs(regrouping) < 1e-9 * max(1.0, np.abs(regrouping).max(initial=0.0))] = 0.0
    singular = np.linalg.svd(scaled[:, independent], compute_uv=False)
    return BaseParameters(layout, independent, dependent, regrouping, float(singular[0] / singular[-1]))


def _independent(R: Array) -> list[int]:
    """Columns of ``R`` that are not combinations of earlier ones (Gram-Schmidt, twice for accuracy)."""
    kept: list[int] = []
    basis = np.zeros((len(R), 0))
    for position, column in enumerate(R.T):
        remainder = column - basis @ (basis.T @ column)
        remainder -= basis @ (basis.T @ remainder)
        length = np.linalg.norm(remainder)
        if length > _INDEPENDENT:
            kept.append(position)
            basis = np.column_stack([basis, remainder / length])
    return kept


def structural_base_parameters(model: RobotModel, states: int = 0, seed: int = 0) -> BaseParameters:
    """Base parameters of the robot itself, from random states rather than from a recording."""
    generator, n = np.random.default_rng(seed), model.joints
    states = states or 40 * n
    q, v, a = generator.uniform(-np.pi, np.pi, (states, n)), *generator.normal(size=(2, states, n))
    every = np.ones((states, n), dtype=bool)
    samples = Samples(np.arange(states, dtype=float), q, v, a, np.zeros_like(q), every, every[:, 0], "random states")
    R, _ = compress(model, [samples]).whitened(np.ones(n))
    return base_parameters(model.layout, R)


def _order(layout: ParameterLayout) -> np.ndarray:
    """Columns in the order of preference: bodies from tip to base, then drives."""
    bodies = [np.arange(layout.size)[layout.body(i)] for i in reversed(range(len(layout.links)))]
    return np.concatenate([*bodies, np.arange(layout.body_size, layout.size)])
