"""How parameters that a body does not keep regroup: into the body that carries it, or into those of other drives.

The rules by energy are those of [Gautier1990]_.
"""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.robot.bodies.inertial_parameters import BODY_PARAMETERS
from inertid_ros.robot.bodies.layout import COUPLING_TERMS, ParameterLayout

from .column_selection import choose_columns
from .result import ColumnChoice


class ParentRegrouping:
    """Regrouping of every parameter, filled body by body from the base to the tips.

    Parameters
    ----------
    size : int
        Number ``p`` of parameters.
    parents : tuple of int
        Of every body, -1 for the world.
    at_zero : ndarray, shape (nb, 10, 10)
        Parameters of each body seen by its parent, at q = 0; any q would do as well.

    Attributes
    ----------
    projection : ndarray, shape (p, p)
        Column ``k`` is what a unit of parameter ``k`` is in those kept.
    regrouped : list of int
        Columns that are not kept.
    """

    def __init__(self, size: int, parents: tuple[int, ...], at_zero: Array) -> None:
        self.projection = np.eye(size)
        self.regrouped: list[int] = []
        self._parents, self._at_zero = parents, at_zero
        self._columns: list[np.ndarray] = []
        self._choices: list[ColumnChoice] = []

    def add_body(self, columns: np.ndarray, choice: ColumnChoice) -> None:
        """Add the next body: its columns, the ten parameters first, and which of them it keeps."""
        self._columns.append(columns)
        self._choices.append(choice)
        local = np.zeros((len(self.projection), len(columns)))
        local[columns[choice.independent], choice.independent] = 1.0
        local[np.ix_(columns[choice.independent], choice.dependent)] = choice.mixing
        local[:, choice.dependent] += self._at_parent(len(self._columns) - 1, choice.null_space)
        self.projection[:, columns] = local
        self.regrouped += list(columns[choice.dependent])

    def add_kept(self, column: Array, body: int, amounts: Array) -> None:
        """Add to ``column`` ``(p,)`` amounts of what a body keeps, less what that is to its ancestors."""
        choice, columns = self._choices[body], self._columns[body]
        column[columns[choice.independent]] += amounts
        local = np.zeros(len(columns))
        local[choice.independent] = -amounts
        column += self._at_parent(body, local[:, None])[:, 0]

    def set_column(self, index: int, column: Array) -> None:
        """Regroup the parameter ``index`` of no body into those kept, ``column`` ``(p,)``."""
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


def coupling_columns(layout: ParameterLayout, term: str) -> np.ndarray:
    """``(c,)`` columns of one term of the couplings."""
    first = layout.coupling_start + COUPLING_TERMS.index(term)
    return first + len(COUPLING_TERMS) * np.arange(len(layout.couplings))


def regroup_friction(layout: ParameterLayout, projection: Array) -> np.ndarray:
    """Write into ``projection`` ``(p, p)`` how friction of coupled drives regroups; returns the columns regrouped.

    Viscous friction of a drive with ratios ``r`` makes the torque ``r r^T v``, so that two drives on the same two
    joints repeat what these joints' own friction does. Coulomb friction repeats only where ratios are parallel.
    """
    regrouped = []
    for term, shape in (("viscous", _squares), ("coulomb", _directions)):
        ratios, columns = layout.coupling_ratios, coupling_columns(layout, term)
        if term in layout.drive_terms:
            ratios = np.vstack([np.eye(len(layout.joints)), ratios])
            columns = np.concatenate([np.arange(layout.size)[layout.drive(term)], columns])
        if not len(layout.couplings):
            continue
        choice = choose_columns(shape(ratios), list(reversed(range(len(columns)))))
        projection[np.ix_(columns[choice.independent], columns[choice.dependent])] = choice.mixing
        projection[columns[choice.dependent], columns[choice.dependent]] = 0.0
        regrouped.append(columns[choice.dependent])
    return np.concatenate([np.zeros(0, dtype=int), *regrouped])


def _squares(ratios: Array) -> Array:
    """``(n^2, k)`` elements of ``r r^T`` of each drive."""
    return np.asarray((ratios[:, :, None] * ratios[:, None, :]).reshape(len(ratios), -1).T)


def _directions(ratios: Array) -> Array:
    """``(k, k)`` size of each drive's ratios in the row of the first drive that has the same direction."""
    sizes = np.linalg.norm(ratios, axis=1)
    cosines = np.abs(ratios @ ratios.T) / np.outer(sizes, sizes)
    first = np.argmax(cosines > 1 - 1e-12, axis=0)
    matrix = np.zeros((len(ratios), len(ratios)))
    matrix[first, np.arange(len(ratios))] = sizes
    return matrix
