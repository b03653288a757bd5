"""Figures of recordings for reports: content, stamps, faults of channels, noise and spectrum of efforts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import LITTLE_LEAKAGE, Samples
from inertid_ros.data.recording import LOST_SAMPLE_PERIODS, Recording
from inertid_ros.robot.model import RobotModel

from . import channel_faults
from .stamp_checks import as_measured, check_repairs

_GAP_PERIODS = 4.0  # a longer step is counted as a gap
_MAX_SPECTRUM_SEGMENT = 4096  # samples of a Welch segment: 4 s at 1 kHz, 40 s at 100 Hz
_SPECTRUM_POINTS = 60  # points of equal width on the logarithmic axis
_MAX_SPECTRUM_SAMPLES = 1 << 18  # samples from the start of a recording that enter its spectrum
_MIN_NOISE_SEGMENT, _MIN_NOISE_SEGMENTS = 256, 4  # samples of a Welch segment, and segments of the recording


def recording_content(parts: Iterable[Recording]) -> dict[str, object]:
    """Content of a recording, given as a whole or as consecutive parts; one part is in memory at a time.

    Returns
    -------
    dict
        Plain data, as ``inertid info --json`` prints it: positions in rad or m, efforts in N m or N, times in seconds.
    """
    remaining = iter(parts)
    first = next(remaining)
    samples, gaps, notices, measured = 0, 0, dict[str, None](), np.array(0)
    usual_steps: list[float] = []
    shortest, longest, lowest, highest, squares = np.inf, -np.inf, np.array(np.inf), np.array(-np.inf), np.array(0.0)
    last = first.time[0]
    for part in chain([first], remaining):
        steps = np.diff(part.time)
        usual_steps.append(float(np.median(steps)))
        if part is not first:
            steps = np.append(steps, part.time[0] - last)
        last, samples = part.time[-1], samples + len(part)
        shortest, longest = min(shortest, steps.min()), max(longest, steps.max())
        gaps += int((steps > _GAP_PERIODS * usual_steps[-1]).sum())
        lowest = np.fmin(lowest, np.fmin.reduce(part.position, axis=0))
        highest = np.fmax(highest, np.fmax.reduce(part.position, axis=0))
        squares = squares + np.nansum(part.effort**2, axis=0)
        measured = measured + np.isfinite(part.effort).sum(axis=0)
        notices.update(dict.fromkeys((*part.notices, *map(str, check_repairs(as_measured(part))))))
    effort = np.sqrt(squares / np.where(measured > 0, measured, np.nan))
    channels = [key for key in first.channels if key != "time" and not (key == "effort" and np.isnan(effort).all())]
    joints = [
        {"name": name, "lowest": low, "highest": high, "rms_effort": None if np.isnan(size) else size}
        for name, low, high, size in zip(first.joint_names, lowest, highest, effort, strict=True)
    ]
    return {"name": first.name, "samples": samples, "seconds": float(last) - float(first.time[0]),
        "rate_hz": 1.0 / float(np.median(usual_steps)), "shortest_step_s": shortest, "longest_step_s": longest,
        "gaps": gaps, "channels": channels, "notices": tuple(notices), "joints": joints}


@dataclass(frozen=True)
class EffortSpectrum:
    """Amplitude density of each joint's effort, at few frequencies.

    Attributes
    ----------
    frequency : (K,), ascending [Hz].
    density : (K, n), root of the mean power density around each frequency [N m/sqrt(Hz) or N/sqrt(Hz)].
    cutoff_hz : cutoff of the low-pass [Hz]; 0 without a low-pass.
    """

    name: str
    frequency: Array
    density: Array
    cutoff_hz: float


def effort_spectrum(name: str, time: Array, effort: Array, cutoff_hz: float) -> EffortSpectrum:
    """Spectrum of finite efforts ``(N, n)`` at stamps ``(N,)`` [s]."""
    time, effort = time[:_MAX_SPECTRUM_SAMPLES], effort[:_MAX_SPECTRUM_SAMPLES]
    frequency, power = _welch(time, effort, min(len(effort), _MAX_SPECTRUM_SEGMENT))
    frequency, power = frequency[1:], power[1:]
    edges = np.geomspace(frequency[0], frequency[-1] * (1 + 1e-9), _SPECTRUM_POINTS + 1)
    bins = np.digitize(frequency, edges)
    used = np.unique(bins)
    middle = np.array([np.exp(np.log(frequency[bins == index]).mean()) for index in used])
    density = np.array([power[bins == index].mean(axis=0) for index in used])
    return EffortSpectrum(name, middle, np.sqrt(density), cutoff_hz)


def _welch(time: Array, effort: Array, segment: int) -> tuple[Array, Array]:
    """Frequencies ``(K,)`` [Hz] and power density ``(K, n)`` from segments of ``segment`` samples."""
    rate = 1.0 / float(np.median(np.diff(time)))
    frequency, density = scipy.signal.welch(effort, rate, LITTLE_LEAKAGE, nperseg=segment, axis=0, detrend="linear")
    return frequency, density


@dataclass(frozen=True)
class EffortNoise:
    """White noise of each joint's effort, from the part of its spectrum that motion does not excite.

    Attributes
    ----------
    density : (n,), one-sided density of the upper half of the spectrum [(N m)^2/Hz or N^2/Hz]. Too small if a driver
        has filtered the effort, zero if the effort is NaN.
    rate_hz : sample rate [Hz].
    """

    density: Array
    rate_hz: float

    @classmethod
    def from_recording(cls, recording: Recording, model: RobotModel) -> "EffortNoise":
        """Noise of raw channels, in the order of the model's joints and with the scale of its efforts."""
        effort = np.nan_to_num(recording.effort[:, recording.columns(model.joint_names)]) * model.effort_scale
        rate = 1 / recording.period
        segment = min(len(effort), max(_MIN_NOISE_SEGMENT, len(effort) // _MIN_NOISE_SEGMENTS))
        frequency, density = _welch(recording.time, effort, segment)
        return cls(np.median(density[frequency > 0.25 * rate], axis=0), rate)

    def below(self, cutoff_hz: float) -> Array:
        """Standard deviation ``(n,)`` of the noise below a cutoff [N m or N]; a cutoff of 0 means no cutoff."""
        return np.asarray(np.sqrt(self.density * min(cutoff_hz or np.inf, 0.5 * self.rate_hz)))


@dataclass(frozen=True)
class RecordingHealth:
    """Figures of one recording (plain data as in ``report.json``), and the spectrum of its efforts, if recorded.

    ``jitter`` is the standard deviation of steps without gaps over the median step. ``not_finite``, ``spikes``,
    ``held`` and ``saturated`` count samples of the ``joints`` by channel (``position``, ``velocity``, ``effort``).
    ``effort_noise`` is the standard deviation below the cutoff [N m or N]; NaN if unknown.
    """

    figures: Mapping[str, object]
    spectrum: EffortSpectrum | None


def recording_health(recording: Recording, samples: Samples, model: RobotModel) -> RecordingHealth:
    """Health of a recording; ``samples`` prepared from the recording give the cutoff and the noise of efforts."""
    named = model.recorded_joints.joints if model.segmented else model.joint_names
    joints = tuple(name for name in named if name in recording.joint_names)
    columns = recording.columns(joints)
    steps = np.diff(recording.time)
    usual = float(np.median(steps))
    lossy = steps > LOST_SAMPLE_PERIODS * usual
    gaps = steps[lossy]
    recorded = {name: getattr(recording, name) for name in ("position", "velocity", "effort")}
    channels = {name: values[:, columns] for name, values in recorded.items() if values is not None}
    stamps = {"position": recording.time}  # a position moves by more than the error of a stale value
    finite = {name: np.nan_to_num(values, posinf=0.0, neginf=0.0) for name, values in channels.items()}
    effort, noise, repairs = finite["effort"], samples.effort_noise, recording.repairs
    time, name = recording.time[recording.own_rows], recording.name
    if any(recording.continued):
        name += f", {time[0]:.0f} s to {time[-1]:.0f} s"
    spectrum = effort_spectrum(name, recording.time, effort, samples.cutoff_hz) if effort.any() else None
    figures = {"name": name, "rate_hz": 1.0 / usual, "jitter": float(np.std(steps[~lossy]) / usual), "gaps": len(gaps),
        "longest_gap_s": float(gaps.max(initial=0.0)),
        "lost_share": float((gaps.sum() - len(gaps) * usual) / recording.duration), "reordered": repairs.late,
        "repeated": repairs.repeated, "other_clock": repairs.elsewhere, "joints": joints,
        "not_finite": {key: np.sum(~np.isfinite(values), axis=0) for key, values in channels.items()},
        "spikes": {key: channel_faults.spikes(x, None, stamps.get(key)).sum(axis=0) for key, x in finite.items()},
        "held": {key: channel_faults.held(x, steps=key == "effort").sum(axis=0) for key, x in finite.items()},
        "saturated": {"effort": channel_faults.saturated(effort).sum(axis=0)},
        "effort_noise": noise if noise is not None and len(noise) == len(joints) else np.full(len(joints), np.nan),
        "cutoff_hz": None if spectrum is None else spectrum.cutoff_hz}
    return RecordingHealth(figures, spectrum)
