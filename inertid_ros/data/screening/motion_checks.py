"""Check that motions are long and rich enough to be fitted, and that held-out motions are new.

Errors on a fitted motion do not predict errors on other motions, even if the fitted motion is recorded again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import fft

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import RobotModel

# A motion to be fitted.
_MIN_MOTION_S = 2.0  # arms need longer to cross their range and return at speeds at which friction has a sign
_MIN_TRAVERSES = 1.2  # traverses of a joint's range: two if the joint came back, one if it went one way
_LITTLE_MOTION_SHARE = 0.01  # share of the range between limits (or of a turn); repeatability is a hundredth of it
_PLANAR_JOINTS = 2  # with more, a motion on one line excites few parameters of the bodies
_LOCKSTEP_POWER_SHARE = 0.98  # share of a joint's velocity power that another joint's velocity predicts
# A motion that repeats another motion.
_WINDOW_COUNT = 8  # windows of the held-out recording, compared one by one: a part may contain another motion
_SAME_MOTION_DIFFERENCE = 0.1  # errors invisible in training would appear at a tenth of their size at most
_MOVING_SHARE = 0.01  # share of the largest deviation of position; smaller motion is only noise
_REPEATED_SHARE = 0.5  # share of a recording's samples or motion; with more it is a repetition
_SAME_RECORDING_SHARE = 0.9  # share of its samples; slow sweeps with coarse numbers have some samples in common
_SAMPLES_PER_CUTOFF_PERIOD = 10.0  # a shift between two samples changes the difference by 0.002


def check_motion(recordings: Sequence[Samples], model: RobotModel) -> tuple[Finding, ...]:
    """Findings ``short_recording``, ``little_motion`` and ``lockstep`` on all recordings that are fitted together.

    A free base is not checked: its own motion also excites the bodies.
    """
    if model.free or not any(samples.usable.any() for samples in recordings):
        return ()
    positions = [samples.q[samples.usable] for samples in recordings]
    velocities = [samples.v[samples.usable] for samples in recordings]
    steps = [samples.period for samples in recordings]
    # Repeating a short piece does not add motion: the longest travel of all recordings counts.
    travelled = np.max([np.abs(v).sum(axis=0) * step for v, step in zip(velocities, steps, strict=True)], axis=0)
    duration = sum(len(v) * step for v, step in zip(velocities, steps, strict=True))
    ranges, names = np.ptp(np.concatenate(positions), axis=0), np.array(model.joint_names)
    traverses = travelled / np.maximum(ranges, 1e-12)
    span = model.limits.upper - model.limits.lower
    span = np.where(np.isfinite(span) & (span > 0), np.minimum(span, 2 * np.pi), 2 * np.pi)
    still = ranges < _LITTLE_MOTION_SHARE * span
    findings = []
    name = recordings[0].name if len(recordings) == 1 else ""
    if duration < _MIN_MOTION_S or len(recordings) == 1 and (~still).any() and traverses[~still].max() < _MIN_TRAVERSES:
        evidence = f"{duration:.2g} s of motion, in which joints go through their range at most"
        evidence += f" {traverses[~still].max(initial=0.0):.1f} times"
        findings.append(Finding.with_remedy("short_recording", Severity.REFUSE, evidence, recording=name))
    if still.any():
        joints = tuple(map(str, names[still]))
        evidence = ", ".join(f"{one} moves by {x:.2g} rad or m" for one, x in zip(joints, ranges[still], strict=True))
        findings.append(Finding.with_remedy("little_motion", Severity.CARE, evidence, *joints, recording=name))
    return (*findings, *_lockstep(np.concatenate(velocities)[:, ~still], names[~still], name))


def _lockstep(v: Array, names: np.ndarray, recording: str) -> list[Finding]:
    """Finding on moving joints whose velocities ``(N, m)`` are proportional to one another, if any."""
    moving = v - v.mean(axis=0)
    power = np.sqrt(np.sum(moving**2, axis=0))
    scaled = moving / np.where(power > 0, power, 1.0)
    alike = np.abs(scaled.T @ scaled)
    np.fill_diagonal(alike, 0.0)
    proportional = alike**2 > _LOCKSTEP_POWER_SHARE
    together = proportional.any(axis=1) if len(alike) else np.zeros(0, dtype=bool)
    if not together.any():
        return []
    joints = tuple(map(str, names[together]))
    one_line = len(together) > 1 and bool(proportional[0, 1:].all())
    where = ", so that the whole motion lies on one line" if one_line else ""
    evidence = f"velocities of {', '.join(joints)} are proportional to one another{where}"
    severity = Severity.CARE if one_line and len(together) > _PLANAR_JOINTS else Severity.NOTICE
    return [Finding.with_remedy("lockstep", severity, evidence, *joints, recording=recording)]


@dataclass(frozen=True)
class RepeatedMotion:
    """Share of a recording's motion that other recordings also contain.

    Attributes
    ----------
    share : share of the motion's energy, 0 to 1, in windows that another recording repeats.
    difference : root mean square of the difference in position and velocity after the best shifts, over all moving
        joints, as a share of the motion: 0 for a repetition, 1 or more for unrelated motions.
    by : indices of the other recordings that repeat half of the motion or more, else of the one that repeats most.
    """

    share: float
    difference: float
    by: tuple[int, ...]

    @property
    def new(self) -> bool:
        """True if other recordings repeat less than half of the motion."""
        return self.share < _REPEATED_SHARE


def shared_samples(recording: Recording, other: Recording) -> float:
    """Share of a recording's distinct pairs of consecutive samples that another recording also has.

    Samples are positions and efforts of the common joints, and the pose of the base.
    """
    names = [name for name in recording.joint_names if name in other.joint_names]
    if not names or (recording.base_pose is None) != (other.base_pose is None):
        return 0.0
    own, others = (_distinct_rows(x, names) for x in (recording, other))
    return float(np.isin(own, others, assume_unique=True).mean()) if len(own) else 0.0


def _distinct_rows(recording: Recording, names: Sequence[str]) -> np.ndarray:
    """Bits of distinct pairs of consecutive samples; single samples of coarse numbers occur in many recordings."""
    columns = recording.columns(names)
    base = [] if recording.base_pose is None else [recording.base_pose]
    samples = np.hstack([recording.position[:, columns], recording.effort[:, columns], *base])
    rows = np.ascontiguousarray(np.hstack([samples[:-1], samples[1:]]))
    return np.unique(rows.view(np.dtype((np.void, rows.strides[0]))))


def check_different_samples(train: Sequence[Recording], held_out: Sequence[Recording]) -> None:
    """Raise RecordingError if a recording repeats most of another one; file names do not matter.

    The limits are 50 % of the samples of a held-out recording, and 90 % for two fitted recordings.
    """
    for recording, fitted in combinations(train, 2):
        if (share := shared_samples(fitted, recording)) >= _SAME_RECORDING_SHARE:
            raise RecordingError(
                f"{fitted.name}: holds the samples of {recording.name} ({100 * share:.0f} % of them), which would count"
                " twice; give one of the two")
    for recording in held_out:
        for fitted in train:
            share = shared_samples(recording, fitted)
            if share >= _REPEATED_SHARE:
                raise RecordingError(
                    f"{recording.name}: holds the samples of {fitted.name} ({100 * share:.0f} % of them), which is"
                    " fitted and cannot validate the fit too; --validate a recording of another motion")


def repeated_motion(samples: Samples, others: Sequence[Samples]) -> RepeatedMotion:
    """Share of the motion of samples that other samples repeat, at any shift of time.

    An FFT compares windows of the recording with every stretch of the other recordings.
    """
    rate = _SAMPLES_PER_CUTOFF_PERIOD * samples.cutoff_hz or 1 / np.median(np.diff(samples.time))
    position, velocity = _joint_motion(samples, rate)
    centre, size = position.mean(axis=0), position.std(axis=0)
    moving = size > _MOVING_SHARE * size.max()
    if not moving.any():
        return RepeatedMotion(0.0, 1.0, (0,))  # a recording at rest does not repeat motion

    def state(position: Array, velocity: Array) -> Array:
        """Positions about the centre, and velocities, of the moving joints ``(N, 2 m)``."""
        return np.hstack([(position - centre)[:, moving], velocity[:, moving]])

    motion = state(position, velocity)
    scale = np.sqrt(np.mean(motion**2, axis=0))
    motion /= scale
    other_motions = [state(*_joint_motion(other, rate)) / scale for other in others]
    windows = np.array_split(motion, _WINDOW_COUNT)
    energy = np.array([np.sum(window**2) for window in windows])
    left = np.array([[_least_difference(window, other) for other in other_motions] for window in windows])
    left = np.minimum(left, energy[:, None])  # at most the difference to rest
    same = left <= _SAME_MOTION_DIFFERENCE**2 * energy[:, None]  # per window and other recording
    shares = (energy / energy.sum()) @ same
    share = float(energy[same.any(axis=1)].sum() / energy.sum())
    by = np.flatnonzero(shares >= _REPEATED_SHARE).tolist() or [int(shares.argmax())]
    return RepeatedMotion(share, float(np.sqrt(left.min(axis=1).sum() / energy.sum())), tuple(by))


def _joint_motion(samples: Samples, rate: float) -> tuple[Array, Array]:
    """Positions and velocities ``(N, n)`` of the joints, or of the poses of segments, evenly spaced."""
    free = samples.q.shape[1] - samples.v.shape[1]  # 1 with a free base, which has 7 positions and 6 velocities
    time = np.arange(samples.time[0], samples.time[-1], 1 / rate)
    position, velocity = samples.q[:, 7 * free :], samples.v[:, 6 * free :]
    if not position.size:
        position, velocity = samples.q, np.gradient(samples.q, samples.time, axis=0)
    even = [np.stack([np.interp(time, samples.time, c) for c in x.T], axis=1) for x in (position, velocity)]
    return even[0], even[1]


def _least_difference(window: Array, other: Array) -> float:
    """Least sum of squared differences between a window ``(w, m)`` and any stretch of a motion ``(N, m)``."""
    width, count = len(window), len(other) - len(window) + 1
    if count < 1:
        return float("inf")
    size = fft.next_fast_len(len(other), real=True)
    spectra = np.conj(fft.rfft(window, size, axis=0)) * fft.rfft(other, size, axis=0)
    products = fft.irfft(spectra.sum(axis=1), size)[:count]
    energy = np.concatenate([[0.0], np.cumsum(np.sum(other**2, axis=1))])
    apart = np.sum(window**2) + (energy[width:] - energy[:-width]) - 2 * products
    best = int(np.argmin(apart))
    if 0 < best < count - 1:  # between samples the difference is a parabola of the shift
        before, at, after = apart[best - 1 : best + 2]
        bend = before - 2 * at + after
        return max(float(at - (after - before) ** 2 / (8 * bend)) if bend > 0 else float(at), 0.0)
    return max(float(apart[best]), 0.0)
