"""Bandwidth of recorded motion: where it ends, where noise begins, and the cutoff that lies between."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.spectral_window import LITTLE_LEAKAGE

HIGHEST_CUTOFF = 0.4  # times the sample rate; the filter still falls below half of that
_MOTION_POWER = 0.99  # share of the velocity power that counts as motion
_MOST_POWER, _BROAD = 0.95, 10.0  # share of it, and how many times higher the rest of a motion ends at most
_ABOVE_NOISE = 10.0  # times the noise floor: a smaller density may be its scatter
_BINS_PER_OCTAVE = 8  # for densities that scatter less than single frequencies do
_NOISE = 0.01  # of the acceleration, root mean square
_REVERSAL = 74.0  # times the frequency of a motion: the band of its reversals
_PRODUCTS = 5.0  # times the frequency of a motion: the band of products of velocities, and of gravity
_BASE = 3.0  # times the frequency of a motion: the least of a noisy free base
_FLAT = -1.0  # powers of two per octave: the density of noise falls more slowly, the tail of a motion faster
_TAIL = 0.05  # of the acceleration's power; noise of that power makes inertias five per cent too small
_LINEAR = 0.02  # rad or m, root mean square; of a smaller motion torque is linear, and passes the filter as it is
_FEWEST = 16  # samples of a piece whose spectrum says anything
_WINDOW_S = 1.0  # over which accelerations are compared with those of the rest
_LAG_S = 0.05  # of the second differences that stand for them: noise of encoders hardly matters then
_TRAVEL = 0.05  # of the farthest way in a window, from which on a joint moves in another
_LEAP, _ABRUPT = 5.0, 2.0  # times what three quarters of the windows with motion stay below; of others beside a leap
_RARE = 0.15  # share of the windows with motion, at most


@dataclass(frozen=True)
class Spectrum:
    """Motion and noise of positions, or of what is measured of a free base, in all pieces together.

    Attributes
    ----------
    motion_hz : ndarray, shape (n,)
        Below it lie 99 % of the velocity power above the noise [Hz], 95 % where the rest lies ten times higher; 0 where
        a joint rests.
    amplitude : ndarray, shape (n,)
        Root mean square of the position above the noise, without its mean and trend [rad or m].
    noise_hz : ndarray, shape (n,)
        Where the spectrum falls to the noise floor [Hz].
    noise_density : ndarray, shape (n,)
        One-sided noise floor of the position [rad^2/Hz], taken as white below the cutoff.
    acceleration_power : ndarray, shape (n,)
        Mean square of the acceleration up to ``noise_hz`` [rad^2/s^4].
    power_hz : ndarray, shape (n,)
        Below it lie 99 % of the acceleration power beyond the motion [Hz]: the band that is left of a recording that
        was low-passed before, and all of it otherwise.
    tail_hz : ndarray, shape (n,)
        Up to here the acceleration beyond five times the motion has a twentieth of the power of that below [Hz].
    rate_hz : float
        Lowest sample rate of the pieces [Hz].
    """

    motion_hz: Array
    amplitude: Array
    noise_hz: Array
    noise_density: Array
    acceleration_power: Array
    power_hz: Array
    tail_hz: Array
    rate_hz: float


@dataclass(frozen=True)
class _Periodogram:
    """Power per frequency of one piece, each times the duration of the piece, and density ``(n,)`` of white noise."""

    frequency: Array
    width: float
    energy: Array
    floor: Array
    seconds: float

    @classmethod
    def of(cls, values: Array, period: float) -> "_Periodogram":
        # One window over the whole piece: slow motion needs the resolution, and sums over frequencies do not scatter.
        frequency, density = scipy.signal.periodogram(values, 1.0 / period, "hann", detrend="linear", axis=0)
        seconds = len(values) * period
        energy = density * frequency[1] * seconds
        return cls(frequency, float(frequency[1]), energy, _white_noise(values, period), seconds)


def _white_noise(values: Array, period: float) -> Array:
    """``(n,)`` density of white noise: the median of the upper half of the band, which holds nothing else.

    Single frequencies of noise have an exponential distribution, whose median is ln 2 of its mean.
    """
    frequency, density = scipy.signal.periodogram(values, 1.0 / period, LITTLE_LEAKAGE, detrend="linear", axis=0)
    return np.asarray(np.median(density[frequency > 0.5 * frequency[-1]], axis=0) / np.log(2))


def spectrum(*pieces: tuple[Array, float]) -> Spectrum:
    """Spectrum of evenly spaced pieces together.

    Parameters
    ----------
    pieces : tuple of ndarray, shape (N, n), and float
        Positions [rad or m] and their period [s], of one or of several recordings.
    """
    long = [piece for piece in pieces if len(piece[0]) >= _FEWEST] or [max(pieces, key=lambda piece: len(piece[0]))]
    periodograms = [_Periodogram.of(*piece) for piece in long]
    seconds = sum(each.seconds for each in periodograms)
    floor = np.sum([each.floor * each.seconds for each in periodograms], axis=0) / seconds
    frequency = np.concatenate([each.frequency for each in periodograms])
    order = np.argsort(frequency, kind="stable")
    frequency = frequency[order]
    width = np.concatenate([np.full(len(each.frequency), each.width * each.seconds) for each in periodograms])[order]
    energy = np.concatenate([each.energy for each in periodograms])[order]
    joints = [_of_joint(frequency, width, energy[:, joint], floor[joint], seconds) for joint in range(energy.shape[1])]
    motion, amplitude, crossing, noise, acceleration, end, tail = np.array(joints).T
    rate = 1 / max(period for _, period in pieces)
    return Spectrum(motion, amplitude, crossing, noise, acceleration, end, tail, rate)


def without_rare_leaps(pieces: Sequence[tuple[Array, float]]) -> list[tuple[Array, float]]:
    """Pieces without the few seconds in which a joint that moves accelerates far more than it usually does.

    A controller that was held up and leaps after its trajectory moves so fast that tenths of a second of it outweigh
    the spectrum of a minute; the bandwidth is that of the motion. What happens often is the motion itself.

    Parameters
    ----------
    pieces : sequence of tuple of ndarray, shape (N, n), and float
        Positions [rad or m] and their period [s].
    """
    windows = [
        (piece, slice(begin, begin + length))
        for piece, (values, period) in enumerate(pieces)
        for length in [max(round(_WINDOW_S / period), _FEWEST)]
        for begin in range(0, len(values), length)
    ]
    travel = np.array([np.ptp(pieces[piece][0][span], axis=0) for piece, span in windows])
    acceleration = np.array([_acceleration(pieces[piece][0][span], pieces[piece][1]) for piece, span in windows])
    moves = travel >= _TRAVEL * travel.max(axis=0)
    usual = np.nanquantile(np.where(moves, acceleration, np.nan), 0.75, axis=0)
    ratio = np.where(moves, acceleration / np.maximum(usual, 1e-300), 0.0).max(axis=1)
    count = int(_RARE * np.count_nonzero(moves.any(axis=1)))
    if not 0 < np.count_nonzero(ratio > _LEAP) <= count:
        return list(pieces)
    abrupt = ratio > max(_ABRUPT, np.sort(ratio)[-count - 1])
    calm = [np.ones(len(values), dtype=bool) for values, _ in pieces]
    for (piece, span), leaps in zip(windows, abrupt, strict=True):
        calm[piece][span] = not leaps
    runs = []
    for (values, period), kept in zip(pieces, calm, strict=True):
        edges = np.flatnonzero(np.diff(kept)) + 1
        parts = zip(np.split(values, edges), np.split(kept, edges), strict=True)
        runs += [(run, period) for run, flags in parts if flags[0]]
    return runs


def _acceleration(values: Array, period: float) -> Array:
    """``(n,)`` root mean square of second differences [rad/s^2 or m/s^2]; 0 where there are too few values."""
    lag = max(round(_LAG_S / period), 1)
    second = values[2 * lag :] - 2 * values[lag:-lag] + values[: -2 * lag]
    if not len(second):
        return np.zeros(values.shape[1])
    return np.asarray(np.sqrt(np.mean(second**2, axis=0)) / (lag * period) ** 2)


def _of_joint(frequency: Array, width: Array, energy: Array, floor: float, seconds: float) -> tuple[float, ...]:
    """What :class:`Spectrum` holds of one joint."""
    positive = frequency > 0
    bins = np.zeros(len(frequency), dtype=int)
    bins[positive] = 1 + np.round(_BINS_PER_OCTAVE * np.log2(frequency[positive] / frequency[positive][0])).astype(int)
    density = np.bincount(bins, energy) / np.maximum(np.bincount(bins, width), 1e-300)
    if not (density[bins] > _ABOVE_NOISE * floor)[positive].any():
        return 0.0, 0.0, 0.0, floor, 0.0, float(frequency[-1]), float(frequency[-1])
    motion = _motion_end(frequency, np.maximum(energy - floor * width, 0.0) * (density[bins] > _ABOVE_NOISE * floor))
    own = np.unique(bins[frequency > _PRODUCTS * motion])
    floor = max(floor, _first_plateau(density[own]))
    above = density[bins] > _ABOVE_NOISE * floor
    signal = np.where(above, np.maximum(energy - floor * width, 0.0), 0.0)
    # From the motion on, the first time that the density falls to the noise.
    beyond = np.flatnonzero(~above & (frequency > motion))
    crossing = frequency[beyond[0]] if len(beyond) else frequency[-1]
    inside = frequency <= crossing
    acceleration = float(np.sum(signal[inside] * (2 * np.pi * frequency[inside]) ** 4)) / seconds
    amplitude, power = float(np.sqrt(signal[inside].sum() / seconds)), energy * frequency**4  # of the acceleration
    beyond_motion = np.cumsum(np.where(frequency > 2 * motion, power, 0.0))
    end = frequency[np.searchsorted(beyond_motion, _MOTION_POWER * beyond_motion[-1])]
    tail = np.cumsum(np.where(frequency > _PRODUCTS * motion, power, 0.0))
    much = np.searchsorted(tail, _TAIL * power[frequency <= _PRODUCTS * motion].sum())
    long = frequency[min(much, len(frequency) - 1)]
    return motion, amplitude, float(crossing), floor, acceleration, float(end), float(long)


def _motion_end(frequency: Array, signal: Array) -> float:
    """Frequency below which the motion's share of the velocity power lies.

    Where the last few per cent lie far above the rest, they are noise that is not white, such as that of stamps.
    """
    velocity = np.cumsum(signal * frequency**2)
    most, end = frequency[np.searchsorted(velocity, np.array([_MOST_POWER, _MOTION_POWER]) * velocity[-1])]
    return float(end if end <= _BROAD * most else most)


def _first_plateau(density: Array) -> float:
    """Density where it first hardly falls over two octaves, of bins beyond the motion; 0 where it never does.

    Noise that was low-passed is white up to some frequency and nothing beyond; what lies below a cutoff is the plateau.
    """
    count = 2 * _BINS_PER_OCTAVE + 1
    octaves = np.arange(count) / _BINS_PER_OCTAVE
    for start in range(len(density) - count + 1):
        window = density[start : start + count]
        if np.polyfit(octaves, np.log2(np.maximum(window, 1e-300)), 1)[0] > _FLAT:
            return float(np.median(window))
    return 0.0


def automatic_cutoff(joints: Spectrum, base: Spectrum | None = None) -> float:
    """Cutoff that passes what the motion excites and little of the noise.

    Noise of the regressor makes least squares underestimate parameters by its share of the power. White noise of
    density ``S`` in the position leaves the variance ``(2 pi)^4 S f^5 / 5`` in the acceleration below a cutoff ``f``,
    whose root stays below 1 % of the acceleration, for the middle one of the joints that move.

    The cutoff need not exceed 74 times the frequency ``f`` of the motion, either. Of all that is modelled, reversals
    of friction take the widest band: a drive that swings with ``f`` passes the speeds below 3 % of its fastest, where
    its equations are left out, in ``2 * 0.03 / (2 pi f)``, and the rise time of a low-pass, 0.35 over its cutoff, is
    half of that then. Nor does it exceed the band in which the recording has power, where it was low-passed before, nor
    for the middle joint that in which the acceleration beyond the motion has a twentieth of the power, whatever it is:
    noise that a driver low-passed is not white. It is at least five times the motion's frequency, so that products of
    velocities and gravity pass, at most 0.4 times the sample rate, and never below 1 Hz (or a tenth of the rate where
    that is less). The frequency is of joints that move far: the torque of one that is held and trembles is linear in
    its motion, which the filter takes from both.

    A free base is measured with far more noise than joints: where ``base``, the spectrum of what is measured of it,
    falls to the noise sooner, the cutoff follows it down to three times the motion.

    Parameters
    ----------
    joints, base : Spectrum
        Of the joint positions, and of the measured motion of a free base.

    Returns
    -------
    float
        Cutoff [Hz]; a tenth of the sample rate where no joint moves.
    """
    rate, moves = joints.rate_hz, joints.motion_hz > 0
    if not moves.any():
        return 0.1 * rate
    far = joints.amplitude > _LINEAR
    far = far if far.any() else moves
    fastest = float(joints.motion_hz[far].max())
    noise = np.maximum((2 * np.pi) ** 4 * joints.noise_density[moves], 1e-300)
    little_noise = float(np.median((5 * _NOISE**2 * joints.acceleration_power[moves] / noise) ** 0.2))
    tail = float(np.median(joints.tail_hz[far]))
    wanted = min(little_noise, _REVERSAL * fastest, float(joints.power_hz[moves].max()), tail)
    if base is None:
        wanted = max(wanted, _PRODUCTS * fastest)
    else:
        wanted = max(min(wanted, float(base.noise_hz.max())), _BASE * fastest)
    return float(np.clip(wanted, min(1.0, 0.1 * rate), HIGHEST_CUTOFF * rate))
