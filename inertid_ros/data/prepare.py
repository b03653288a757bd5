"""Raw recording to samples: joints in the model's order, even stamps, zero-phase filters, derivatives, masks."""

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import RecordingError
from ..options import option
from ..robot.model import RobotModel
from ..robot.parameters import Array
from .filters import Spectrum, automatic_cutoff, derivatives, low_pass, spectrum
from .recording import Recording
from .resample import Segment, resample
from .samples import Samples
from .saturation import near, saturated
from .sliding import Sliding
from .transients import settled

_log = logging.getLogger(__name__)
_MIN_SAMPLES = 16
_MIN_CUTOFF_PERIODS = 4.0  # a shorter piece is all filter transient


@dataclass(frozen=True)
class PrepareOptions:
    """How a recording becomes samples. The defaults suit recordings never seen before."""

    cutoff_hz: float = option(
        0.0, "cutoff of the low-pass on every channel [Hz]; 0 chooses it from the motion", minimum=0.0, maximum=1e4
    )
    filter_order: int = option(
        4, "order of the Butterworth low-pass, which runs forwards and backwards", minimum=1, maximum=10
    )
    rate_hz: float = option(
        0.0, "sample rate of the result [Hz]; 0 keeps 20 samples per period of the cutoff", minimum=0.0, maximum=1e5
    )
    motion_from: str = option(
        "position",
        "measured channel that velocity and acceleration come from: position differentiates twice, velocity once,"
        " acceleration takes both as measured",
        choices=("position", "velocity", "acceleration"),
    )
    skip_start_s: float = option(0.0, "cut from the start of every recording [s]", minimum=0.0, maximum=1e6)
    skip_end_s: float = option(0.0, "cut from the end of every recording [s]", minimum=0.0, maximum=1e6)
    max_gap_periods: float = option(
        4.0, "a longer break in the stamps splits the recording, in sample periods", minimum=1.5, maximum=1e3
    )
    edge_periods: float = option(
        1.0, "left out at the ends of each piece, where the filter settles, in periods of the cutoff",
        minimum=0.0, maximum=100.0,
    )
    trim_transients: bool = option(
        True, "leave out a jerk at start-up or stop: ends that accelerate several times harder than all the rest"
    )
    low_speed_fraction: float = option(
        0.03, "share of a joint's fast speed below which its friction has no sure sign and its equations are left out",
        minimum=0.0, maximum=1.0,
    )


@dataclass(frozen=True)
class _Motion:
    """One filtered segment: ``time`` and ``usable`` are ``(N,)``, the rest ``(N, n)``."""

    time: Array
    q: Array
    v: Array
    a: Array
    tau: Array
    usable: NDArray[np.bool_]


def prepare(recording: Recording, model: RobotModel, options: PrepareOptions | None = None) -> Samples:
    """Samples of ``model``'s joints from a recording.

    Position and effort pass the same zero-phase filter, so that they stay in phase and equally delayed; velocity and
    acceleration are derivatives of the filtered position (or of the channel that ``motion_from`` names).

    Raises
    ------
    RecordingError: a joint of the model or a chosen channel is missing, nothing is left after cutting, or the cutoff
        does not fit the sample rate.
    """
    options = options or PrepareOptions()
    columns = joint_columns(recording, model)
    channels = _channels(recording, columns, options)
    segments = resample(recording.name, recording.time, channels, options.skip_start_s, options.skip_end_s,
                        options.max_gap_periods)
    period = segments[0].period
    found = spectrum(max(segments, key=_motion).channels["position"], period)
    cutoff = _cutoff(recording, options, found, period)
    shortest = max(_MIN_SAMPLES * period, _MIN_CUTOFF_PERIODS / cutoff)
    long_enough = [segment for segment in segments if len(segment) * period >= shortest]
    if not long_enough:
        raise RecordingError(
            f"{recording.name}: time has no piece longer than {shortest:.2f} s without a gap;"
            " record without losses, or set prepare.cutoff_hz higher"
        )
    if len(long_enough) < len(segments):
        lost = sum(map(len, segments)) - sum(map(len, long_enough))
        _log.warning("%s: dropped %d samples in pieces too short to filter", recording.name, lost)
    motions = [_filter(segment, cutoff, options) for segment in long_enough]
    stride = _stride(period, cutoff, options)
    joined = {key: np.concatenate([getattr(m, key)[::stride] for m in motions]) for key in _Motion.__annotations__}
    if options.trim_transients:
        joined["usable"] &= _trim(recording.name, joined["time"], joined["a"])
    noise = np.sqrt(found.noise_density * (2 * np.pi) ** 2 * cutoff**3 / 3)  # of the velocity below the cutoff
    sliding = Sliding.of([m.v for m in motions], noise, options.low_speed_fraction, model.layout)
    slides = sliding.sure(joined["v"])
    joined["usable"] &= slides.any(axis=1)  # a robot at rest shows stiction, of which no model knows
    mask = joined["usable"][:, None] & slides
    mask &= ~_clipped(recording, columns, joined["time"], 1 / cutoff)
    directions = [low_pass(sliding.direction(m.v), period, cutoff, options.filter_order) for m in motions]
    direction = np.concatenate([piece[::stride] for piece in directions])
    _notice_unused(recording, model, mask)
    return Samples(**joined, mask=mask, name=recording.name, cutoff_hz=cutoff, direction=direction)


def _motion(segment: Segment) -> float:
    """How much a piece moves: long rests, such as before the start, say nothing of the motion's spectrum."""
    return float(np.var(segment.channels["position"], axis=0).sum() * len(segment))


def _trim(name: str, time: Array, acceleration: Array) -> NDArray[np.bool_]:
    usable = settled(time, acceleration)
    if not usable.all():
        kept = time[usable] - time[0]
        _log.warning("%s: start-up or stop left out, used from %.2f s to %.2f s", name, kept[0], kept[-1])
    return usable


def _clipped(recording: Recording, columns: list[int], instants: Array, reach: float) -> NDArray[np.bool_]:
    """Where the filter mixes saturated effort into a sample."""
    flags = saturated(recording.effort[:, columns])
    for joint, column in enumerate(columns):
        if flags[:, joint].any():
            _log.warning(
                "%s: effort of %s sticks to its limit in %d samples, which are left out",
                recording.name,
                recording.joint_names[column],
                flags[:, joint].sum(),
            )
    return near(flags, recording.time, instants, reach)


def joint_columns(recording: Recording, model: RobotModel) -> list[int]:
    """Index in the recording of each joint of the model, matched by exact name.

    Raises
    ------
    RecordingError: joints of the model that the recording does not have.
    """
    missing = [name for name in model.joint_names if name not in recording.joint_names]
    if missing:
        raise RecordingError(
            f"{recording.name}: joint_names lacks {', '.join(missing)} (it has {', '.join(recording.joint_names)});"
            " record these joints, or hold them with locked_joints (--lock JOINT=POSITION)"
        )
    extra = [name for name in recording.joint_names if name not in model.joint_names]
    if extra:
        _log.info("%s: ignoring joints that are not in the model: %s", recording.name, ", ".join(extra))
    return [recording.joint_names.index(name) for name in model.joint_names]


def _channels(recording: Recording, columns: list[int], options: PrepareOptions) -> dict[str, Array]:
    wanted = ["position", "effort"]
    if options.motion_from in ("velocity", "acceleration"):
        wanted.append("velocity")
    if options.motion_from == "acceleration":
        wanted.append("acceleration")
    channels = {}
    for name in wanted:
        values = getattr(recording, name)
        if values is None:
            raise RecordingError(f"{recording.name}: {name} was not recorded; set prepare.motion_from to 'position'")
        channels[name] = values[:, columns]
    return channels


def _cutoff(recording: Recording, options: PrepareOptions, found: Spectrum, period: float) -> float:
    if options.cutoff_hz == 0.0:
        if not found.motion_hz.any():
            _log.warning("%s: no joint moves; filtering at a tenth of the sample rate", recording.name)
            return 0.1 / period
        return automatic_cutoff(found, period)
    if options.cutoff_hz >= 0.5 / period:
        raise RecordingError(
            f"{recording.name}: prepare.cutoff_hz is {options.cutoff_hz:g} but the sample rate is {1 / period:.1f} Hz;"
            f" choose it below {0.4 / period:.1f}, or 0 for automatic"
        )
    return options.cutoff_hz


def _filter(segment: Segment, cutoff: float, options: PrepareOptions) -> _Motion:
    smooth = {
        channel: low_pass(values, segment.period, cutoff, options.filter_order)
        for channel, values in segment.channels.items()
    }
    q = smooth["position"]
    if options.motion_from == "position":
        v, a = derivatives(q, segment.period, (1, 2))
    elif options.motion_from == "velocity":
        v = smooth["velocity"]
        (a,) = derivatives(v, segment.period, (1,))
    else:
        v, a = smooth["velocity"], smooth["acceleration"]
    edge = min(int(np.ceil(options.edge_periods / (cutoff * segment.period))), len(segment) // 3)
    usable = np.ones(len(q), dtype=bool)
    usable[:edge] = usable[len(q) - edge :] = False
    return _Motion(segment.time, q, v, a, smooth["effort"], usable)


def _stride(period: float, cutoff: float, options: PrepareOptions) -> int:
    rate = options.rate_hz or 20.0 * cutoff
    return max(1, int(np.floor(1.0 / (period * rate) + 1e-9)))


def _notice_unused(recording: Recording, model: RobotModel, mask: NDArray[np.bool_]) -> None:
    unused = [name for name, column in zip(model.joint_names, mask.T, strict=True) if not column.any()]
    if unused:
        names = ", ".join(unused)
        _log.warning("%s: no usable sample of %s (it rests, or the recording is too short)", recording.name, names)
