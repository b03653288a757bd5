"""Joint velocity at the rate of the recording, for what is not linear in it."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .arrays import Array


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

    @property
    def shape(self) -> tuple[int]:
        """Number of samples, as an array has it."""
        return (len(self.rows),)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice | NDArray) -> "UndecimatedVelocity":
        return replace(self, rows=self.rows[rows])

    def filtered(self, function: Callable[[Array], Array]) -> Array:
        """``(N, k)`` low-passed values of a function of velocity, ``(N_i, n)`` to ``(N_i, k)``, at the samples."""
        return np.concatenate([self.low_pass(function(piece)) for piece in self.pieces])[self.rows]
