"""Information of a stream: R factors of every channel, updated block by block, with forgetting."""

from collections import deque
from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.qr import append_rows
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import Channel, Information, fingerprint
from inertid_ros.regressors.equations import Equations

_WINDOW_SEGMENTS = 10  # a window slides by one of them


@dataclass(frozen=True)
class Forgetting:
    """Exponential forgetting or a sliding window; by default nothing is forgotten.

    Attributes
    ----------
    time_constant_s : float
        Time in which the weight of a sample falls to 1/e [s]; 0 for none.
    window_s : float
        Age at which a sample is dropped [s], to a tenth of it; 0 for none.

    Raises
    ------
    IdentificationError
        Both are given, or one is negative.
    """

    time_constant_s: float = 0.0
    window_s: float = 0.0

    def __post_init__(self) -> None:
        if min(self.time_constant_s, self.window_s) < 0 or self.time_constant_s > 0 < self.window_s:
            raise IdentificationError(
                f"forgetting: time constant {self.time_constant_s:g} s and window {self.window_s:g} s; give one of them"
                " above zero"
            )


class OnlineInformation:
    """Information of the blocks of a stream.

    Householder reflections append rows to R factors, and forgetting scales the factors: unlike updates of a covariance,
    this loses no digits, and directions without excitation do not grow.
    """

    def __init__(self, equations: Equations, forgetting: Forgetting | None = None) -> None:
        self._equations, self._forgetting = equations, forgetting or Forgetting()
        self._writer = equations.writer()
        self._expansions = [block_diag(expansion, np.eye(1)) for expansion in self._writer.expansions]
        self._robot = fingerprint(equations)
        self._newest = -np.inf
        self._current, self._older = self._empty(), self._empty()
        self._segments: deque[_Factors] = deque()

    def add(self, samples: Samples) -> None:
        """Append a block, in the order of time."""
        end, period = float(samples.time[-1]), float(np.median(np.diff(samples.time))) if len(samples) > 1 else 0.0
        if self._forgetting.time_constant_s and np.isfinite(self._newest):
            self._current.scale(np.exp(-(end - self._newest) / self._forgetting.time_constant_s))
        self._newest = end
        self._current.first = min(self._current.first, float(samples.time[0]))
        self._append(samples)
        if self._forgetting.window_s:
            self._slide(end, period)

    @property
    def empty(self) -> bool:
        """Whether no joint has moved yet."""
        return not (self._current.counts.any() or self._older.counts.any())

    @property
    def information(self) -> Information:
        """Information so far."""
        factors = self._older.with_rows_of(self._current) if self._segments else self._current
        channels = tuple(
            Channel(columns, R @ expansion, int(round(count)))
            for columns, R, expansion, count in zip(
                self._equations.columns, factors.R, self._expansions, factors.counts, strict=True
            )
        )
        equations = self._equations
        return Information(equations.model.layout, channels, self._robot, tuple(equations.channels))

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
        """Close the current segment if it is long enough, and drop those that have left the window."""
        window, count = self._forgetting.window_s, len(self._segments)
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
    """R factors of all channels, numbers of their rows, and the stamps of the first and last sample."""

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
            for factor, added in zip(self.R, other.R, strict=True)
        ]
        return _Factors(merged, self.counts + other.counts)
