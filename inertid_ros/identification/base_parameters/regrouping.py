"""Carries what a body does not keep of its parameters to the body that carries it, and on to the base."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS

from .column_selection import Choice


class Carry:
    """Fills, body by body from the base to the tips, how every parameter regroups.

    Parameters
    ----------
    size: ``p``, number of parameters. parents: of every body, -1 for the world.
    at_zero: ``(nb, 10, 10)`` parameters of each body seen by its parent, at q = 0; any q would do as well.

    Attributes
    ----------
    projection: ``(p, p)``; column ``k`` is what a unit of parameter ``k`` is in those kept.
    regrouped: columns that are not kept.
    """

    def __init__(self, size: int, parents: tuple[int, ...], at_zero: Array) -> None:
        self.projection = np.eye(size)
        self.regrouped: list[int] = []
        self._parents, self._at_zero = parents, at_zero
        self._columns: list[np.ndarray] = []
        self._choices: list[Choice] = []

    def add(self, columns: np.ndarray, choice: Choice) -> None:
        """Enter the next body: its columns, the ten parameters first, and which of them it keeps."""
        self._columns.append(columns)
        self._choices.append(choice)
        local = np.zeros((len(self.projection), len(columns)))
        local[columns[choice.independent], choice.independent] = 1.0
        local[np.ix_(columns[choice.independent], choice.dependent)] = choice.mixing
        local[:, choice.dependent] += self._at_parent(len(self._columns) - 1, choice.null_space)
        self.projection[:, columns] = local
        self.regrouped += list(columns[choice.dependent])

    def spread(self, column: Array, body: int, amounts: Array) -> None:
        """Add to ``column`` ``(p,)`` amounts of what a body keeps, less what that is to those that carry it."""
        choice, columns = self._choices[body], self._columns[body]
        column[columns[choice.independent]] += amounts
        local = np.zeros(len(columns))
        local[choice.independent] = -amounts
        column += self._at_parent(body, local[:, None])[:, 0]

    def regroup(self, index: int, column: Array) -> None:
        """Enter a column of no body."""
        self.projection[:, index] = column
        self.regrouped.append(index)

    def add_spin(self, body: int, spin: Array, column: Array) -> None:
        """Add what a rotor's spin, ``(10,)`` of its parameters, is in those kept, ``column`` ``(p,)``."""
        choice, columns = self._choices[body], self._columns[body]
        self.projection[:, columns[choice.dependent]] += np.outer(column, spin @ choice.null_space)

    def _at_parent(self, body: int, local: Array) -> Array:
        """``(p, k)``: parameters of a body, ``(10 or more, k)``, as those of the body that carries it."""
        parent = self._parents[body]
        if parent < 0:
            return np.zeros((len(self.projection), local.shape[1]))
        inertial = self.projection[:, self._columns[parent][:BODY_PARAMETERS]]
        return np.asarray(inertial @ self._at_zero[body] @ local[:BODY_PARAMETERS])
