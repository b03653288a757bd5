"""Bandwidth of recorded motion, noise floor, and the cutoff of the low-pass between motion and noise."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import NoticeLogger, RecordingError
from inertid_ros.core.samples import LITTLE_LEAKAGE

from .filtering import resample
from .recorded_channels import CleanChannels

_log = NoticeLogger(__name__)
MAX_CUTOFF_PER_RATE = 0.4  # leaves room for the filter to fall off below half of the sample rate
# Spectra.
_MOTION_POWER_SHARE = 0.99  # share of the velocity power that counts as motion
_CORE_POWER_SHARE, _MAX_BAND_RATIO = 0.8, 10.0  # share of the velocity power; limit of 99 % over 80 % frequency
_SIGNAL_TO_NOISE = 10.0  # density over the noise floor; smaller ratios may be scatter of the noise
_BINS_PER_OCTAVE = 8  # densities of bins scatter less than densities of single frequencies
_PLATEAU_SLOPE = -1.0  # powers of two per octave: noise falls more slowly, the tail of a motion faster
_TAIL_POWER_SHARE = 0.05  # share of the acceleration's power; noise of this power makes inertias 5 % too small
_MIN_SPECTRUM_SAMPLES = 16  # shorter pieces have no meaningful spectrum
_SPECTRUM_GAP_S = 1.0  # gaps up to this length are bridged: power hardly depends on them, resolution does
# Leaps, see without_rare_leaps.
_LEAP_WINDOW_S = 1.0  # accelerations in this window are compared with the rest of the recording
_ACCELERATION_LAG_S = 0.05  # lag of second differences; encoder noise hardly matters at this lag
_MIN_TRAVEL_SHARE = 0.05  # travel in a window over the joint's largest; with less the joint rests
_LEAP_RATIO, _BESIDE_LEAP_RATIO = 5.0, 2.0  # leap, window next to it: RMS acceleration over its 75 % quantile
_MAX_LEAP_SHARE = 0.15  # share of the moving windows; with more, leaps belong to the motion
# Automatic cutoff, see automatic_cutoff.
_ACCELERATION_NOISE_SHARE = 0.01  # RMS noise over RMS acceleration
_MAX_NOISY_RATIO = 2.0  # cutoff over the cutoff of the noisiest joint; its noise is then 6 % of its acceleration
_REVERSAL_BAND_RATIO = 74.0  # band of friction reversals over the frequency of the motion
_MAX_FASTER_RATIO = 8.0  # frequency of a joint over the median frequency; a gripper that snaps is faster
_PRODUCT_BAND_RATIO = 5.0  # band of products of velocities, and of gravity, over the frequency of a motion
_BASE_BAND_RATIO = 3.0  # least band of a noisy free base over the frequency of its motion
_LINEAR_AMPLITUDE = 0.02  # rad or m, RMS; torque is linear in a smaller motion, and the filter removes both alike


class Spectrum(NamedTuple):
    """Motion and noise of positions, or of measurements of a free base, in all pieces together.

    Attributes
    ----------
    motion_hz : (n,), 99 % of the velocity power above the noise lies below it [Hz]; the 80 % frequency if the 99 %
        frequency is over ten times higher; 0 for a joint at rest.
    amplitude : (n,), root mean square of the position above the noise, without its mean and trend [rad or m].
    noise_hz : (n,), frequency at which the spectrum falls to the noise floor [Hz].
    noise_density : (n,), one-sided noise floor of the position [rad^2/Hz], assumed white below the cutoff.
    acceleration_power : (n,), mean square of the acceleration up to ``noise_hz`` [rad^2/s^4].
    power_hz : (n,), 99 % of the acceleration power beyond the motion lies below it [Hz]: the band of a recording that
        was low-passed before, otherwise the whole band.
    tail_hz : (n,), acceleration between ``5 motion_hz`` and this frequency has a twentieth of the power of
        acceleration below ``5 motion_hz`` [Hz].
    rate_hz : lowest sample rate of the pieces [Hz].
    new_hz : (n,), rate of new positions of joints that keep their values for longer than the other joints [Hz];
        infinite for the others.
    """

    motion_hz: Array
    amplitude: Array
    noise_hz: Array
    noise_density: Array
    acceleration_power: Array
    power_hz: Array
    tail_hz: Array
    rate_hz: float
    new_hz: Array = np.array(np.inf)  # noqa: RUF012


def _periodogram(values: Array, period: float) -> tuple[Array, Array, Array, Array, float]:
    """Periodogram of one piece of evenly spaced values ``(N, n)``.

    Returns frequencies ``(K,)`` [Hz]; widths ``(K,)`` of the frequency bins, power ``(K, n)`` and density of white
    noise ``(n,)``, each multiplied by the duration of the piece; and the duration [s].
    """
    # One window over the whole piece: slow motion needs the resolution, and sums over frequencies do not scatter.
    frequency, density = scipy.signal.periodogram(values, 1.0 / period, "hann", detrend="linear", axis=0)
    seconds = len(values) * period
    widths, noise = np.full(len(frequency), float(frequency[1]) * seconds), _white_noise(values, period) * seconds
    energy = density * frequency[1] * seconds
    # The trend is a sweep in one direction; count it as the slowest motion with this speed.
    slope = np.polyfit(period * np.arange(len(values)), values, 1)[0]
    energy[1] += (slope / (2 * np.pi * frequency[1])) ** 2 * seconds
    return frequency, widths, energy, noise, seconds


def _white_noise(values: Array, period: float) -> Array:
    """Density ``(n,)`` of white noise: the median of the upper half of the band, which contains only noise.

    The power of noise at one frequency has an exponential distribution; its median is ln 2 times its mean.
    """
    frequency, density = scipy.signal.periodogram(values, 1.0 / period, LITTLE_LEAKAGE, detrend="linear", axis=0)
    return np.asarray(np.median(density[frequency > 0.5 * frequency[-1]], axis=0) / np.log(2))


def spectrum(*pieces: tuple[Array, float]) -> Spectrum:
    """Common spectrum of pieces; each has evenly spaced positions ``(N, n)`` [rad or m] and their period [s]."""
    long = [piece for piece in pieces if len(piece[0]) >= _MIN_SPECTRUM_SAMPLES]
    long = long or [max(pieces, key=lambda piece: len(piece[0]))]
    frequencies, widths, energies, noise, durations = zip(*(_periodogram(*piece) for piece in long), strict=True)
    seconds = sum(durations)
    floor = np.sum(noise, axis=0) / seconds
    frequency, width, energy = map(np.concatenate, (frequencies, widths, energies))
    order = np.argsort(frequency, kind="stable")
    frequency, width, energy = frequency[order], width[order], energy[order]
    joints = [_of_joint(frequency, width, energy[:, joint], floor[joint], seconds) for joint in range(energy.shape[1])]
    return Spectrum._make([*np.array(joints).T, 1 / max(period for _, period in pieces), np.inf])


def without_rare_leaps(pieces: Sequence[tuple[Array, float]]) -> list[tuple[Array, float]]:
    """Cut out the few seconds in which a moving joint accelerates far more than usual.

    A delayed controller catches up with its trajectory in a leap. A leap of a few tenths of a second dominates the
    spectrum of a minute, but the bandwidth must describe the usual motion. Frequent leaps belong to the motion and
    stay. Pieces are positions ``(N, n)`` [rad or m] and their period [s].
    """
    windows = [
        (piece, slice(begin, begin + length))
        for piece, (values, period) in enumerate(pieces)
        for length in [max(round(_LEAP_WINDOW_S / period), _MIN_SPECTRUM_SAMPLES)]
        for begin in range(0, len(values), length)]
    travel = np.array([np.ptp(pieces[piece][0][span], axis=0) for piece, span in windows])
    acceleration = np.array([_acceleration(pieces[piece][0][span], pieces[piece][1]) for piece, span in windows])
    moves = travel >= _MIN_TRAVEL_SHARE * travel.max(axis=0)
    usual = np.nanquantile(np.where(moves, acceleration, np.nan), 0.75, axis=0)
    ratio = np.where(moves, acceleration / np.maximum(usual, 1e-300), 0.0).max(axis=1)
    count = int(_MAX_LEAP_SHARE * np.count_nonzero(moves.any(axis=1)))
    if not 0 < np.count_nonzero(ratio > _LEAP_RATIO) <= count:
        return list(pieces)
    abrupt = ratio > max(_BESIDE_LEAP_RATIO, np.sort(ratio)[-count - 1])
    calm = [np.ones(len(values), dtype=bool) for values, _ in pieces]
    for (piece, span), leaps in zip(windows, abrupt, strict=True):
        calm[piece][span] = not leaps
    runs = []
    for (values, period), usable in zip(pieces, calm, strict=True):
        edges = np.flatnonzero(np.diff(usable)) + 1
        parts = zip(np.split(values, edges), np.split(usable, edges), strict=True)
        runs += [(run, period) for run, flags in parts if flags[0]]
    return runs


def _acceleration(values: Array, period: float) -> Array:
    """RMS acceleration ``(n,)`` from second differences [rad/s^2 or m/s^2]; 0 for too few values."""
    lag = max(round(_ACCELERATION_LAG_S / period), 1)
    second = values[2 * lag :] - 2 * values[lag:-lag] + values[: -2 * lag]
    if not len(second):
        return np.zeros(values.shape[1])
    return np.asarray(np.sqrt(np.mean(second**2, axis=0)) / (lag * period) ** 2)


def _of_joint(frequency: Array, width: Array, energy: Array, floor: float, seconds: float) -> tuple[float, ...]:
    """Fields of :class:`Spectrum` for one joint."""
    positive = frequency > 0
    bins = np.zeros(len(frequency), dtype=int)
    bins[positive] = 1 + np.round(_BINS_PER_OCTAVE * np.log2(frequency[positive] / frequency[positive][0])).astype(int)
    density = np.bincount(bins, energy) / np.maximum(np.bincount(bins, width), 1e-300)
    if not (density[bins] > _SIGNAL_TO_NOISE * floor)[positive].any():
        return 0.0, 0.0, 0.0, floor, 0.0, float(frequency[-1]), float(frequency[-1])
    loud = density[bins] > _SIGNAL_TO_NOISE * floor
    motion = _motion_end(frequency, np.maximum(energy - floor * width, 0.0) * loud)
    # Noise that is not white has its own floor beyond the motion.
    tail_bins = np.unique(bins[frequency > _PRODUCT_BAND_RATIO * motion])
    floor = max(floor, _first_plateau(density[tail_bins]))
    above = density[bins] > _SIGNAL_TO_NOISE * floor
    signal = np.where(above, np.maximum(energy - floor * width, 0.0), 0.0)
    # First frequency above the motion at which the density falls to the noise.
    beyond = np.flatnonzero(~above & (frequency > motion))
    crossing = frequency[beyond[0]] if len(beyond) else frequency[-1]
    inside = frequency <= crossing
    acceleration = float(np.sum(signal[inside] * (2 * np.pi * frequency[inside]) ** 4)) / seconds
    amplitude, power = float(np.sqrt(signal[inside].sum() / seconds)), energy * frequency**4  # power of acceleration
    beyond_motion = np.cumsum(np.where(frequency > 2 * motion, power, 0.0))
    end = frequency[np.searchsorted(beyond_motion, _MOTION_POWER_SHARE * beyond_motion[-1])]
    tail = np.cumsum(np.where(frequency > _PRODUCT_BAND_RATIO * motion, power, 0.0))
    much = np.searchsorted(tail, _TAIL_POWER_SHARE * power[frequency <= _PRODUCT_BAND_RATIO * motion].sum())
    long = frequency[min(much, len(frequency) - 1)]
    return motion, amplitude, float(crossing), floor, acceleration, float(end), float(long)


def _motion_end(frequency: Array, signal: Array) -> float:
    """Frequency below which 99 % of the velocity power lies, or 80 % if the 99 % frequency is over ten times higher.

    Such a distant rest of the power is noise, for example from jitter of the stamps, or from a logger that stamps
    states at a rate of its own: stamps are late by a sawtooth at the difference of the rates.
    """
    velocity = np.cumsum(signal * frequency**2)
    most, end = frequency[np.searchsorted(velocity, np.array([_CORE_POWER_SHARE, _MOTION_POWER_SHARE]) * velocity[-1])]
    return float(end if end <= _MAX_BAND_RATIO * most else most)


def _first_plateau(density: Array) -> float:
    """Density in the first two octaves beyond the motion in which the density hardly falls; 0 if it always falls.

    Low-passed noise is white up to some frequency and absent beyond; below this frequency its density is a plateau.
    """
    count = 2 * _BINS_PER_OCTAVE + 1
    octaves = np.arange(count) / _BINS_PER_OCTAVE
    for start in range(len(density) - count + 1):
        window = density[start : start + count]
        if np.polyfit(octaves, np.log2(np.maximum(window, 1e-300)), 1)[0] > _PLATEAU_SLOPE:
            return float(np.median(window))
    return 0.0


def automatic_cutoff(joints: Spectrum, base: Spectrum | None = None) -> float:
    """Cutoff [Hz] that passes the excited motion and little of the noise; a tenth of the sample rate without motion.

    - Noise in the regressor makes least squares underestimate parameters by the noise's share of the power. White
      noise of density ``S`` in the position leaves the variance ``(2 pi)^4 S f^5 / 5`` in the acceleration below a
      cutoff ``f``. Among the joints that move far, the root of this variance is at most 1 % of the RMS acceleration
      for the median joint, and at most 6 % for every joint, because all torques depend on every joint.
    - At most 74 times the frequency ``f`` of the motion. Friction reversals have the widest band of all modelled
      effects. Speeds below 3 % of a drive's maximum are not fitted; a drive that swings at ``f`` passes through these
      speeds in ``2 * 0.03 / (2 pi f)``. At a cutoff of ``74 f``, the rise time of the low-pass (0.35 over the cutoff)
      is half as long.
    - At most ``power_hz``, the band of a recording that was low-passed before, and at most the median ``tail_hz`` of
      the joints that move far: noise that a driver has low-passed is not white.
    - At least five times the frequency of the motion, for products of velocities and gravity; at most 0.4 times the
      sample rate; at least 1 Hz (or a tenth of the sample rate, if lower).

    The frequency of the motion is the highest among the joints that move far, without unusually fast joints. Joints
    that are held and tremble do not count: their torque is linear in the motion, and the filter removes both alike. A
    free base is measured with far more noise than joints: if the spectrum ``base`` of its measurement falls to the
    noise at a lower frequency, the cutoff is lowered to that frequency, but not below three times the frequency of the
    motion.
    """
    rate, moves = joints.rate_hz, joints.motion_hz > 0
    if not moves.any():
        return 0.1 * rate
    far = joints.amplitude > _LINEAR_AMPLITUDE
    far = far if far.any() else moves
    fastest = _fastest(joints.motion_hz[far])
    timely = far & np.isinf(joints.new_hz)  # interpolation between new values hides their noise
    timely = timely if timely.any() else far
    noise = np.maximum((2 * np.pi) ** 4 * joints.noise_density[timely], 1e-300)
    power = joints.acceleration_power[timely]
    little = (5 * _ACCELERATION_NOISE_SHARE**2 * power / noise) ** 0.2
    little_noise = min(float(np.median(little)), _MAX_NOISY_RATIO * float(little.min()))
    tail = float(np.median(joints.tail_hz[far]))
    wanted = min(little_noise, _REVERSAL_BAND_RATIO * fastest, float(joints.power_hz[moves].max()), tail)
    wanted = min(wanted, MAX_CUTOFF_PER_RATE * float(np.min(joints.new_hz)))
    if base is None:
        wanted = max(wanted, _PRODUCT_BAND_RATIO * fastest)
    else:
        wanted = max(min(wanted, float(base.noise_hz.max())), _BASE_BAND_RATIO * fastest)
    return float(np.clip(wanted, min(1.0, 0.1 * rate), MAX_CUTOFF_PER_RATE * rate))


def _fastest(motion_hz: Array) -> float:
    """Highest frequency [Hz] of the joints' motions, without joints that snap or tremble."""
    usual = float(np.quantile(motion_hz, 0.5, method="lower"))
    return float(motion_hz[motion_hz <= _MAX_FASTER_RATIO * usual].max())


def spectra(recordings: Sequence[CleanChannels], base: str | None = None) -> tuple[Spectrum, Spectrum | None]:
    """Spectra of the joint positions, and of the channel ``base`` of a free base, over all recordings together.

    Positions that keep their values for several samples form stairs, and the steps would look like fast motion. So
    only one sample per new value enters the spectrum.
    """
    joints, bases = [], []
    for recorded in recordings:
        held = recorded.held * recorded.period
        for piece in resample(recorded, _SPECTRUM_GAP_S):
            stride = max(1, round(held / piece.period))
            joints.append((piece.channels["position"][::stride], stride * piece.period))
            if base is not None:
                bases.append((piece.channels[base], piece.period))
    whole, calm = spectrum(*joints), without_rare_leaps(joints)
    if len(calm) > len(joints):  # leave out leaps that raise the bandwidth
        whole = min(whole, spectrum(*calm), key=automatic_cutoff)
    whole = whole._replace(new_hz=np.min([recorded.new_hz for recorded in recordings], axis=0))
    return whole, spectrum(*bases) if bases else None


def checked_cutoff(name: str, wanted_hz: float, joints: Spectrum, base: Spectrum | None = None) -> float:
    """Cutoff of the low-pass [Hz]: ``wanted_hz``, or :func:`automatic_cutoff` if it is 0.

    Raises RecordingError: the wanted cutoff is not below half the sample rate; ``name`` is the recording's name.
    """
    if wanted_hz == 0.0:
        if not joints.motion_hz.any():
            _log.warning("%s: all joints rest; filtering at a tenth of the sample rate", name)
        return automatic_cutoff(joints, base)
    if wanted_hz >= 0.5 * joints.rate_hz:
        raise RecordingError(
            f"{name}: prepare.cutoff_hz is {wanted_hz:g} but the sample rate is {joints.rate_hz:.1f} Hz;"
            f" choose it below {MAX_CUTOFF_PER_RATE * joints.rate_hz:.1f}, or 0 for automatic")
    return wanted_hz
