"""Samples: prepared motion and measured forces of one experiment, in the order of the model, for a regressor."""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from .arrays import Array
from .errors import RecordingError
from .findings import Finding
from .undecimated_velocity import UndecimatedVelocity

_OF_PRODUCTS = 4  # samples per period of the cutoff that show all of a product of two filtered signals


@dataclass(frozen=True)
class Samples:
    """Filtered, evenly spaced samples; columns in the order of the model.

    On a fixed base everything is per joint, ``nq = nv = c = n``. A free base comes before the joints, as in
    :class:`~inertid_ros.robot.model.RobotModel`: ``nq = 7 + n``, ``nv = 6 + n``.

    Attributes
    ----------
    time : ndarray, shape (N,)
        Time [s].
    q, v, a : ndarray, shape (N, nq), (N, nv), (N, nv)
        Position, velocity, acceleration [rad or m, per s, per s^2].
    tau : ndarray, shape (N, c)
        Measured side of the equations, one column per channel of
        :class:`~inertid_ros.regressors.equations.Equations`. Of forces: joint torque or force [N m or N], to which the
        external wrenches, by their contact Jacobians, have been added; before them, on a free base, the sum of the
        external wrenches on it, in its frame [N, N m]. What was not measured is zero, and masked.
    mask : ndarray of bool, shape (N, c)
        An equation enters the fit where it is true.
    usable : ndarray of bool, shape (N,)
        False at filter edges, gaps and transients. Torque errors are reported where it is true, however slow a joint
        is.
    name : str
        Recording that the samples come from.
    undecimated : UndecimatedVelocity, optional
        Joint velocity from which friction is worked out and then low-passed like the torque; None where it is worked
        out from ``v``.
    sliding : ndarray of bool, shape (N, c), optional
        Where all drives that act on a channel slide, so that friction has a direction; None: everywhere.
    cutoff_hz : float
        Cutoff of the low-pass that was applied [Hz]; 0 without a low-pass.
    measured : ndarray of bool, shape (N, c), optional
        Where ``tau`` was measured; None: everywhere.
    noise : ndarray, shape (nv,), optional
        Standard deviation of the noise of ``v``, where it was estimated.
    effort_noise : ndarray, shape (n,), optional
        Standard deviation of the noise of every joint's effort below the cutoff, where it was estimated [N m or N].
    findings : tuple of Finding
        What was found in the recording on the way.
    """

    time: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    mask: NDArray[np.bool_]
    usable: NDArray[np.bool_]
    name: str = "recording"
    undecimated: UndecimatedVelocity | None = None
    sliding: NDArray[np.bool_] | None = None
    cutoff_hz: float = 0.0
    measured: NDArray[np.bool_] | None = None
    noise: Array | None = None
    effort_noise: Array | None = None
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        self._check(("v", "a"), (len(self.q), self.v.shape[-1]))
        if self.q.shape[-1] < self.v.shape[-1]:
            raise RecordingError(
                f"{self.name}: q has shape {self.q.shape}, expected {self.v.shape}, or a column more for a free base"
            )
        self._check(("tau", "mask", "measured", "sliding"), (len(self.q), self.tau.shape[-1]))
        self._check(("time", "usable", "undecimated"), (len(self.q),))

    def __len__(self) -> int:
        return len(self.time)

    @property
    def channels(self) -> int:
        """Number of channels of the equations."""
        return self.tau.shape[1]

    @property
    def period(self) -> float:
        """Median step of time [s]."""
        return float(np.median(np.diff(self.time))) if len(self) > 1 else 1.0

    @property
    def stride_of_products(self) -> int:
        """Every how many samples show all of a product of two channels, whose band is twice that of the low-pass."""
        return max(1, int(1.0 / (_OF_PRODUCTS * self.cutoff_hz * self.period))) if self.cutoff_hz > 0 else 1

    @property
    def valid(self) -> NDArray[np.bool_]:
        """``(N, c)`` bool; where a prediction can be compared with a measurement, however slow a joint is."""
        usable = np.repeat(self.usable[:, None], self.channels, axis=1)
        return usable if self.measured is None else usable & self.measured

    def select(self, rows: slice | NDArray[np.intp]) -> "Samples":
        """Samples of some rows; every array that has one row per sample is cut."""
        cut = {
            field.name: getattr(self, field.name)[rows]
            for field in fields(self)
            if getattr(getattr(self, field.name), "shape", ())[:1] == (len(self),)
        }
        return replace(self, **cut)

    def block_rows(self, count: int) -> list[slice]:
        """Rows of contiguous blocks of about equal length; fewer than ``count`` where there are fewer samples."""
        edges = np.linspace(0, len(self), count + 1).astype(int).tolist()
        return [slice(start, end) for start, end in zip(edges[:-1], edges[1:], strict=True) if end > start]

    def blocks(self, count: int) -> list["Samples"]:
        """Samples of :meth:`block_rows`."""
        return [self.select(rows) for rows in self.block_rows(count)]

    def _check(self, channels: tuple[str, ...], expected: tuple[int, ...]) -> None:
        for channel in channels:
            values = getattr(self, channel)
            if values is not None and values.shape != expected:
                raise RecordingError(f"{self.name}: {channel} has shape {values.shape}, expected {expected}")
