"""Settings of the low-pass that all channels of a recording go through: cutoff, pieces, edges and stride."""

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.preparation import PrepareOptions
from inertid_ros.core.errors import RecordingError

from .bandwidth import HIGHEST_CUTOFF, Spectrum, automatic_cutoff, spectrum, without_rare_leaps
from .filters import low_pass
from .resampling import Segment, StampedChannels, resample

_log = logging.getLogger(__name__)
_MIN_SAMPLES = 16
_MIN_CUTOFF_PERIODS = 4.0  # a shorter piece is all filter transient
_INTERPOLATED = 0.1  # share of the weights of the filter
_BRIDGED_FOR_SPECTRUM = 1.0  # s; the power of a motion hardly depends on what is put in such a gap, its resolution does
_BRIDGED = 0.25  # of a period of the cutoff, over which what passes the filter is nearly straight
_STRAIGHT = 0.05  # of a period of the motion


def spectra(recordings: Sequence[StampedChannels], base: str | None = None) -> tuple[Spectrum, Spectrum | None]:
    """Spectra of the joint positions, and of the channel ``base`` of a free base, over all recordings together.

    Positions that keep their values go up in stairs, whose steps would be motion of a high frequency: their spectrum is
    that of samples as far apart as new values are.
    """
    joints, bases = [], []
    for recorded in recordings:
        held = recorded.held * recorded.period
        for piece in resample(recorded, _BRIDGED_FOR_SPECTRUM):
            stride = max(1, round(held / piece.period))
            joints.append((piece.channels["position"][::stride], stride * piece.period))
            if base is not None:
                bases.append((piece.channels[base], piece.period))
    whole, calm = spectrum(*joints), without_rare_leaps(joints)
    if len(calm) > len(joints):  # without those that raise the bandwidth
        whole = min(whole, spectrum(*calm), key=automatic_cutoff)
    return whole, spectrum(*bases) if bases else None


def checked_cutoff(name: str, wanted_hz: float, joints: Spectrum, base: Spectrum | None = None) -> float:
    """Cutoff of the low-pass [Hz]: the one that is wanted, or one that suits the motion.

    Parameters
    ----------
    name : str
        Name of the recording, for messages.
    wanted_hz : float
        As configured [Hz]; 0 is automatic, see :func:`.bandwidth.automatic_cutoff`.
    joints, base : Spectrum
        Spectra of the joint positions and of the motion of a free base.

    Raises
    ------
    RecordingError
        The wanted cutoff is not below half the sample rate.
    """
    if wanted_hz == 0.0:
        if not joints.motion_hz.any():
            _log.warning("%s: no joint moves; filtering at a tenth of the sample rate", name)
        return automatic_cutoff(joints, base)
    if wanted_hz >= 0.5 * joints.rate_hz:
        raise RecordingError(
            f"{name}: prepare.cutoff_hz is {wanted_hz:g} but the sample rate is {joints.rate_hz:.1f} Hz;"
            f" choose it below {HIGHEST_CUTOFF * joints.rate_hz:.1f}, or 0 for automatic"
        )
    return wanted_hz


def longest_gap(period: float, cutoff: float, joints: Spectrum, options: PrepareOptions) -> float:
    """Longest step of the stamps that is bridged [s].

    A quarter of a period of the cutoff, a twentieth of a period of the motion, from which a straight line differs by
    1 %, or some sample periods, whichever is longest.
    """
    fastest = float(joints.motion_hz.max())
    straight = _STRAIGHT / fastest if fastest > 0 else 0.0
    return max(options.max_gap_periods * period, _BRIDGED / cutoff, straight)


def long_enough(name: str, segments: list[Segment], cutoff: float) -> list[Segment]:
    """Pieces that are more than filter transient at ``cutoff`` [Hz].

    Raises
    ------
    RecordingError
        There is none.
    """
    period = segments[0].period
    shortest = max(_MIN_SAMPLES * period, _MIN_CUTOFF_PERIODS / cutoff)
    kept = [segment for segment in segments if len(segment) * period >= shortest]
    if not kept:
        raise RecordingError(
            f"{name}: time has no piece longer than {shortest:.2f} s without a gap;"
            " record without losses, or set prepare.cutoff_hz higher"
        )
    if len(kept) < len(segments):
        lost = sum(map(len, segments)) - sum(map(len, kept))
        _log.warning("%s: dropped %d samples in pieces too short to filter", name, lost)
    return kept


def away_from_edges(segment: Segment, cutoff: float, edge_periods: float) -> NDArray[np.bool_]:
    """``(N,)`` false at the ends of a piece, where the filter settles, for ``edge_periods`` periods of the cutoff."""
    edge = min(int(np.ceil(edge_periods / (cutoff * segment.period))), len(segment) // 3)
    usable = np.ones(len(segment), dtype=bool)
    usable[:edge] = usable[len(segment) - edge :] = False
    return usable


def hardly_interpolated(
    flags: NDArray[np.bool_], period: float, cutoff: float, order: int
) -> NDArray[np.bool_]:
    """``(N, n)`` where less than a tenth of what the low-pass mixes into a sample was interpolated.

    One spike among many samples is nothing once it is replaced; a gap as long as the filter remembers is.

    Parameters
    ----------
    flags : ndarray of bool, shape (N, n)
        Samples that were interpolated.
    period : float
        Sample period [s].
    cutoff : float
        Cutoff of the low-pass [Hz].
    order : int
        Order of the low-pass.
    """
    if not flags.any():
        return np.ones(flags.shape, dtype=bool)
    return np.abs(low_pass(flags.astype(float), period, cutoff, order)) < _INTERPOLATED


def sample_stride(period: float, cutoff: float, rate_hz: float) -> int:
    """Every how many samples one is kept: ``rate_hz``, or where it is 0, 10 samples per period of the cutoff,
    at half of whose rate the low-pass lets less than 1e-5 pass."""
    rate = rate_hz or 10.0 * cutoff
    return max(1, int(np.floor(1.0 / (period * rate) + 1e-9)))
