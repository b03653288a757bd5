"""Settings of the low-pass that all channels of a recording go through: cutoff, pieces, edges and stride."""

import logging

import numpy as np
from numpy.typing import NDArray

from inertid_ros.config.preparation import PrepareOptions
from inertid_ros.core.errors import RecordingError

from .filters import Spectrum, automatic_cutoff
from .resampling import Segment

_log = logging.getLogger(__name__)
_MIN_SAMPLES = 16
_MIN_CUTOFF_PERIODS = 4.0  # a shorter piece is all filter transient


def chosen_cutoff(
    name: str, options: PrepareOptions, period: float, joints: Spectrum, base: Spectrum | None = None
) -> float:
    """Cutoff of the low-pass [Hz]: the configured one, or one that suits the motion.

    Parameters
    ----------
    name : str
        Name of the recording, for messages.
    options : PrepareOptions
        Holds ``cutoff_hz``; 0 is automatic, see :func:`.filters.automatic_cutoff`.
    period : float
        Sample period [s].
    joints, base : Spectrum
        Spectra of the joint positions and of the motion of a free base.

    Raises
    ------
    RecordingError
        The configured cutoff is not below half the sample rate.
    """
    if options.cutoff_hz == 0.0:
        if not joints.motion_hz.any():
            _log.warning("%s: no joint moves; filtering at a tenth of the sample rate", name)
            return 0.1 / period
        return automatic_cutoff(joints, period, base)
    if options.cutoff_hz >= 0.5 / period:
        raise RecordingError(
            f"{name}: prepare.cutoff_hz is {options.cutoff_hz:g} but the sample rate is {1 / period:.1f} Hz;"
            f" choose it below {0.4 / period:.1f}, or 0 for automatic"
        )
    return options.cutoff_hz


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


def sample_stride(period: float, cutoff: float, rate_hz: float) -> int:
    """Every how many samples one is kept: ``rate_hz``, or where it is 0, 20 samples per period of the cutoff."""
    rate = rate_hz or 20.0 * cutoff
    return max(1, int(np.floor(1.0 / (period * rate) + 1e-9)))
