"""Health of one recording in figures: stamps, lost values, spikes, saturation, noise, spectrum of its efforts."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.data.cleaning.lost_values import held
from inertid_ros.data.cleaning.spikes import joint_spikes
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.sensor_faults import saturated
from inertid_ros.robot.model import RobotModel

from .effort_spectrum import EffortSpectrum, effort_spectrum

_LOST = 2.0  # periods: in a longer step samples were lost
_CHANNELS = ("position", "velocity", "effort")


@dataclass(frozen=True)
class RecordingHealth:
    """Figures of one recording.

    Attributes
    ----------
    name : str
        Of the recording, with its span where it is a part of a longer one.
    rate_hz : float
        Of the median step [Hz].
    jitter : float
        Standard deviation of steps without gaps over the median step.
    gaps : int
        Steps in which samples were lost.
    longest_gap_s : float
        The longest of them; 0 without [s].
    lost_share : float
        Share of the time that gaps take.
    reordered, repeated, other_clock : int
        Stamps that were put in order, and samples left out because their stamp was there already or is of another
        clock.
    joints : tuple of str
        The ``n`` joints of the figures that follow.
    not_finite, spikes, held, saturated : mapping of str to ndarray of int, shape (n,)
        Samples by channel (``position``, ``velocity``, ``effort``, as far as recorded); ``saturated`` of effort only.
    effort_noise : ndarray, shape (n,)
        Standard deviation of the noise of effort below the cutoff [N m or N]; NaN where it is not known.
    spectrum : EffortSpectrum or None
        Of the efforts; None where none was recorded.
    """

    name: str
    rate_hz: float
    jitter: float
    gaps: int
    longest_gap_s: float
    lost_share: float
    reordered: int
    repeated: int
    other_clock: int
    joints: tuple[str, ...]
    not_finite: Mapping[str, NDArray[np.int64]]
    spikes: Mapping[str, NDArray[np.int64]]
    held: Mapping[str, NDArray[np.int64]]
    saturated: Mapping[str, NDArray[np.int64]]
    effort_noise: Array
    spectrum: EffortSpectrum | None


def recording_health(recording: Recording, samples: Samples, model: RobotModel) -> RecordingHealth:
    """Health of a recording of a robot.

    Parameters
    ----------
    samples : Samples
        Prepared from it, for the cutoff and the noise of its efforts.
    """
    joints = tuple(name for name in model.joint_names if name in recording.joint_names)
    columns = [recording.joint_names.index(name) for name in joints]
    steps = np.diff(recording.time)
    usual = float(np.median(steps))
    gaps = steps[steps > _LOST * usual]
    channels = {name: values[:, columns] for name in _CHANNELS if (values := getattr(recording, name)) is not None}
    finite = {name: np.nan_to_num(values, posinf=0.0, neginf=0.0) for name, values in channels.items()}
    effort, noise, repairs = finite["effort"], samples.effort_noise, recording.repairs
    known = noise is not None and len(noise) == len(joints)
    own = recording.time[recording.own_rows]
    span = f", {own[0]:.0f} s to {own[-1]:.0f} s" if any(recording.continued) else ""
    name = recording.name + span
    return RecordingHealth(
        name,
        1.0 / usual,
        float(np.std(steps[steps <= _LOST * usual]) / usual),
        len(gaps),
        float(gaps.max(initial=0.0)),
        float((gaps.sum() - len(gaps) * usual) / recording.duration),
        repairs.late,
        repairs.repeated,
        repairs.elsewhere,
        joints,
        {name: np.sum(~np.isfinite(values), axis=0) for name, values in channels.items()},
        {name: joint_spikes(recording.time, name, values).sum(axis=0) for name, values in finite.items()},
        {name: held(values, steps=name == "effort").sum(axis=0) for name, values in finite.items()},
        {"effort": saturated(effort).sum(axis=0)},
        noise if known and noise is not None else np.full(len(joints), np.nan),
        effort_spectrum(name, recording.time, effort, samples.cutoff_hz) if effort.any() else None,
    )
