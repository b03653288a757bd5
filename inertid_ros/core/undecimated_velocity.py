"""Joint velocity at the rate of the recording, for what is not linear in it."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from .arrays import Array

_MOST_KNOWN = 4  # functions; each takes the memory of a few channels


@dataclass(frozen=True, eq=False)
class UndecimatedVelocity:
    """Joint velocity at the rate of the recording, and the low-pass that the torque went through.

    The measured torque is friction, then low-passed. Friction is not linear in velocity, so that the friction of a
    low-passed velocity is something else at every reversal: a model of it has to be evaluated first and low-passed
    afterwards, both at the rate of the recording, and decimated last. Indexing selects samples, as of an array with one
    row per sample.

    Attributes
    ----------
    pieces : tuple of ndarray, shape (N_i, n)
        Velocity of each piece without gaps [rad/s or m/s].
    low_pass : callable
        ``(N_i, k)`` to the same, low-passed as the torque.
    rows : ndarray of int, shape (N,)
        Which rows of the pieces, one after the other, are the samples.
    """

    pieces: tuple[Array, ...]
    low_pass: Callable[[Array], Array]
    rows: NDArray[np.intp]
    _known: dict[Hashable, tuple[NDArray[np.intp], Array]] = field(default_factory=dict, repr=False)

    @property
    def shape(self) -> tuple[int]:
        """Number of samples, as an array has it."""
        return (len(self.rows),)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice | NDArray) -> "UndecimatedVelocity":
        return replace(self, rows=self.rows[rows])

    def filtered(self, function: Callable[[Array], Array], key: Hashable = None) -> Array:
        """``(N, k)`` low-passed values of a function of velocity, ``(N_i, n)`` to ``(N_i, k)``, at the samples.

        Values of the same ``key``, where one is given, are worked out once for these samples and selections of them.
        """
        rows, values = self._known.get(key, (np.zeros(0, dtype=np.intp), np.zeros(0)))
        place = np.searchsorted(rows, self.rows)
        if len(rows) and (rows[np.minimum(place, len(rows) - 1)] == self.rows).all():
            return np.asarray(values[place])
        values = np.concatenate([self.low_pass(function(piece)) for piece in self.pieces])[self.rows]
        if key is not None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.pop(next(iter(self._known)))
            self._known[key] = self.rows, values
        return np.asarray(values)
