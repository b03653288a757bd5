"""Samples: prepared motion and measured forces of one experiment, in the order of the model, for a regressor."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, fields, replace

import numpy as np

from .arrays import Array, Indices, Mask
from .findings import Finding

# The square of a Hann window. Its leakage falls by 30 dB per octave, so that the spectrum of a motion without noise is
# hardly above rounding errors in the upper half of the band.
LITTLE_LEAKAGE = ("general_cosine", (3 / 8, 1 / 2, 1 / 8))
_MAX_CACHED_FUNCTIONS = 4  # the values of each take the memory of a few channels
_PIECE_GAP_PERIODS = 1.5  # in sample periods; a longer gap ends a piece
_MIN_PIECE_SAMPLES = 16  # a shorter piece is only filter transient
_SAMPLES_PER_PERIOD_OF_PRODUCTS = 4  # per period of the cutoff, for a product of two filtered signals


@dataclass(frozen=True)
class JointSample:
    """One joint state ``(n,)`` in the order of a model, with its header stamp; values that were not reported are NaN.

    ``held`` ``(k,)`` are positions of the joints that the model holds (:attr:`.RobotOptions.locked_joints`) [rad or m].
    """

    stamp_ns: int
    position: Array
    velocity: Array
    effort: Array
    held: Array = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class StateSample:
    """Joint state ``(n,)`` at a time [s]."""

    time: float
    position: Array
    velocity: Array
    effort: Array


@dataclass(frozen=True, eq=False)
class UndecimatedVelocity:
    """Joint velocity at the rate of the recording, and the low-pass of the torque.

    Friction is not linear in velocity, so friction from a low-passed velocity is wrong at every reversal. Therefore
    friction is computed at the rate of the recording, then low-passed like the torque, and decimated last.
    Indexing selects samples, as in an array with one row per sample.

    Attributes
    ----------
    pieces : (N_i, n) each, velocity of every gap-free piece of the recording [rad/s or m/s].
    low_pass : ``(N_i, k)`` to ``(N_i, k)``, the filter of the torque.
    rows : int (N,), row of each sample in the concatenated pieces.
    """

    pieces: tuple[Array, ...]
    low_pass: Callable[[Array], Array]
    rows: Indices
    _cache: dict[Hashable, tuple[Indices, Array]] = field(default_factory=dict, repr=False)

    @property
    def shape(self) -> tuple[int]:
        return (len(self.rows),)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: slice | Indices | Mask) -> "UndecimatedVelocity":
        return replace(self, rows=self.rows[rows])

    def filtered(self, function: Callable[[Array], Array], key: Hashable = None) -> Array:
        """Low-passed values ``(N, k)`` at the samples, of a ``function`` of velocity: ``(N_i, n)`` to ``(N_i, k)``.

        Values with a ``key`` are cached for these samples and selections of them.
        """
        rows, values = self._cache.get(key, (np.zeros(0, dtype=np.intp), np.zeros(0)))
        place = np.searchsorted(rows, self.rows)
        if len(rows) and (rows[np.minimum(place, len(rows) - 1)] == self.rows).all():
            return np.asarray(values[place])
        values = np.concatenate([self.low_pass(function(piece)) for piece in self.pieces])[self.rows]
        if key is not None:
            if len(self._cache) >= _MAX_CACHED_FUNCTIONS:
                self._cache.pop(next(iter(self._cache)))
            self._cache[key] = self.rows, values
        return np.asarray(values)


@dataclass(frozen=True)
class Samples:
    """Filtered, evenly spaced samples; columns in the order of the model.

    On a fixed base all columns are per joint, ``nq = nv = c = n``. A free base comes before the joints, as in
    :class:`~inertid_ros.robot.model.RobotModel`: ``nq = 7 + n``, ``nv = 6 + n``.

    Attributes
    ----------
    time : (N,), time [s].
    q, v, a : (N, nq), (N, nv), (N, nv), position, velocity, acceleration [rad or m, per s, per s^2].
    tau : (N, c), measured side of the equations, one column per channel of
        :class:`~inertid_ros.regressors.equations.Equations`. For force equations: joint torque or force
        [N m or N] plus external wrenches, mapped by their contact Jacobians. On a free base, the sum of the external
        wrenches in the base frame [N, N m] comes first. Values that were not measured are zero and masked.
    mask : bool (N, c), whether an equation enters the fit.
    usable : bool (N,), false at filter edges, gaps and transients. Reported torque errors cover all usable samples, at
        any joint speed.
    name : recording that the samples come from.
    undecimated : joint velocity for friction; None: friction is computed from ``v``.
    sliding : bool (N, c), whether all drives that act on a channel slide, so that friction has a direction; None: they
        always slide.
    cutoff_hz : cutoff of the low-pass that was applied [Hz]; 0 without a low-pass.
    measured : bool (N, c), whether ``tau`` was measured; None: all of it.
    noise : (nv,), standard deviation of the noise of ``v``; None if not estimated.
    effort_noise : (n,), standard deviation of the noise of efforts below the cutoff [N m or N]; None if not estimated.
    findings : findings of the checks of the recording.
    command : (N, c), part of ``tau`` that follows from commands, and is delayed alone; None if ``tau`` was measured.
    command_limits : (c,), size of ``tau`` from which on drives clip it [N m or N]; None without limits.
    """

    time: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    mask: Mask
    usable: Mask
    name: str = "recording"
    undecimated: UndecimatedVelocity | None = None
    sliding: Mask | None = None
    cutoff_hz: float = 0.0
    measured: Mask | None = None
    noise: Array | None = None
    effort_noise: Array | None = None
    findings: tuple[Finding, ...] = ()
    command: Array | None = None
    command_limits: Array | None = None

    def __repr__(self) -> str:
        return f"Samples('{self.name}', {len(self)} samples of {self.channels} channels)"

    def __len__(self) -> int:
        return len(self.time)

    @property
    def channels(self) -> int:
        return self.tau.shape[1]

    @property
    def period(self) -> float:
        """Median step of time [s]."""
        return float(np.median(np.diff(self.time))) if len(self) > 1 else 1.0

    @property
    def stride_of_products(self) -> int:
        """Largest stride at which a product of two channels does not alias; its band is twice the low-pass band."""
        if self.cutoff_hz <= 0:
            return 1
        return max(1, int(1.0 / (_SAMPLES_PER_PERIOD_OF_PRODUCTS * self.cutoff_hz * self.period)))

    @property
    def valid(self) -> Mask:
        """``(N, c)`` bool: True if a prediction can be compared with a measurement, at any speed of the joint."""
        usable = np.repeat(self.usable[:, None], self.channels, axis=1)
        return usable if self.measured is None else usable & self.measured

    def select(self, rows: slice | Indices) -> "Samples":
        """Samples of some rows."""
        cut = {
            field.name: getattr(self, field.name)[rows]
            for field in fields(self)
            if getattr(getattr(self, field.name), "shape", ())[:1] == (len(self),)}
        return replace(self, **cut)

    def even_rows(self) -> list[slice]:
        """Rows of pieces without gaps that are long enough to filter."""
        breaks = np.flatnonzero(np.diff(self.time) > _PIECE_GAP_PERIODS * self.period) + 1
        edges = [0, *breaks.tolist(), len(self)]
        pieces = map(slice, edges[:-1], edges[1:])
        return [piece for piece in pieces if piece.stop - piece.start >= _MIN_PIECE_SAMPLES]

    def block_rows(self, count: int) -> list[slice]:
        """Rows of at most ``count`` contiguous, non-empty blocks of about equal length."""
        edges = np.linspace(0, len(self), count + 1).astype(int).tolist()
        return [slice(start, end) for start, end in zip(edges[:-1], edges[1:], strict=True) if end > start]

    def blocks(self, count: int) -> list["Samples"]:
        """Samples of each block of :meth:`block_rows`."""
        return [self.select(rows) for rows in self.block_rows(count)]
