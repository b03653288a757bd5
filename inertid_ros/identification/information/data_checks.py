"""Quality of data: sufficiency for a fit, the error of the preparation alone, and gross outliers."""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.core.arrays import MAD_TO_DEVIATION, Array, Mask, column_counts
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.data.preparation.filtering import derivatives, low_pass
from inertid_ros.regressors.equations import Equations

from .information import Channel, Information, compress

_MIN_MOMENTUM_SHARE = 1e-3  # of the momentum that the prior predicts: less wheel momentum does not set a scale
_EXCITED_SHARE = 1e-9  # of the largest singular value; smaller values are directions that motion does not excite

_log = logging.getLogger(__name__)
_MAX_EVEN_SAMPLES = 4096  # of an evaluated piece
_SETTLING_CUTOFF_PERIODS = 5.0  # in periods of the cutoff; both ends of a piece are left out while filters settle
_SURE_NOISE_SHARE = 0.5  # certain share of a noise level: spectra scatter, and noise may not be white
_DERIVED_TOLERANCE = 0.01  # of the acceleration: if it differs more from the derivative of velocity, it was measured
_MEDIAN_SAMPLES = 20_000  # give a median absolute deviation within one per cent
MAX_OUTLIER_SHARE = 0.02  # a larger share is a deficiency of the model, not outliers


def checked_data(equations: Equations, data: Sequence[Samples] | Information,
        task: str) -> tuple[tuple[Samples, ...], Information]:
    """Check data; return recordings (empty if only information is given) and their information."""
    if isinstance(data, Information):
        _check_usable(equations, data, "information", np.zeros(len(data.channels), dtype=bool))
        return (), data
    recordings = tuple(data)
    if not recordings:
        raise IdentificationError(f"{task}: no recordings given; give at least one")
    information = compress(equations, recordings)
    measured = np.any([column_counts(samples.valid | samples.mask) for samples in recordings], axis=0)
    _check_usable(equations, information, ", ".join(samples.name for samples in recordings), ~measured)
    return recordings, information


def _check_usable(equations: Equations, information: Information, names: str, unmeasured: Mask) -> None:
    """Check that every channel has more samples than parameters, and that effort is not zero throughout.

    A channel without samples is skipped if it is optional, or ``unmeasured`` ``(c,)`` in all recordings, and if other
    channels have samples.

    Raises
    ------
    IdentificationError
        A channel has no usable sample, or so few samples that its parameters fit them exactly; or all effort is zero.
    """
    empty = [name for name, count in zip(information.names, information.counts, strict=True) if count == 0]
    counts: Counter[bytes] = Counter()  # equations of all channels with equal columns
    for channel in information.channels:
        counts[channel.columns.tobytes()] += channel.count
    channels = zip(information.names, information.channels, unmeasured | equations.optional, strict=True)
    for name, channel, optional in channels:
        is_joint = name in information.layout.joints
        what = f"joint '{name}'" if is_joint else f"'{name}'"
        if channel.count == 0:
            if optional and len(empty) < len(information.names):
                continue
            remedy = ("record a motion of this joint, or lock it (--lock JOINT=POSITION)" if is_joint
                else "check its measurement")
            raise IdentificationError(f"{names}: no usable sample of {what}; {remedy}")
        if (count := counts[channel.columns.tobytes()]) <= _unknowns(channel):
            raise IdentificationError(
                f"{names}: too few usable samples of {what} ({count}) to fit its parameters; record for at least a few"
                " seconds")
    if empty:
        _log.info("%s: no measurement of %s; the other channels are fitted", names, ", ".join(empty))
    if information.noise is not None:
        level = information.rms_error(equations.model.prior).max()
        if information.rms_measured.max() <= _MIN_MOMENTUM_SHARE * level:
            raise IdentificationError(
                f"{names}: the reaction wheels hardly turn, so momentum has no scale and all parameters are determined"
                " up to one common factor; spin the wheels")
    if not information.rms_measured.any():
        raise IdentificationError(f"{names}: effort is zero throughout; the robot does not report torque")


def check_effort_varies(equations: Equations, recordings: Sequence[Samples]) -> None:
    """Check that no moving joint reports a constant effort."""
    model = equations.model
    first = model.velocities - model.joints
    for joint, channel in enumerate(range(equations.count)[equations.joint_channels]):
        joint_name = model.joint_names[joint]
        effort = np.concatenate([samples.tau[samples.mask[:, channel], channel] for samples in recordings])
        if len(effort) < 2 or not 0 < np.abs(effort).max() >= 1e9 * np.ptp(effort):
            continue
        if any(samples.v[samples.mask[:, channel], first + joint].any() for samples in recordings):
            names = ", ".join(samples.name for samples in recordings)
            raise IdentificationError(
                f"{names}: effort of joint '{joint_name}' is {effort[0]:.6g} throughout while it moves; its driver does"
                " not report torque: correct it, or lock the joint (robot.locked_joints)")


def _unknowns(channel: Channel) -> int:
    """Number of directions of a channel's parameters that its data excites, with columns scaled to equal length."""
    R = channel.r_factor[:-1, :-1]
    size = np.linalg.norm(R, axis=0)
    values = np.linalg.svd(R[:, size > 0] / size[size > 0], compute_uv=False)
    return int((values > _EXCITED_SHARE * values.max(initial=0.0)).sum())


def resolution(equations: Equations, recordings: Sequence[Samples]) -> Array:
    """Standard deviation ``(c,)`` of each channel's error from the preparation alone, under a perfect model [N m or N].

    Weights of channels use at least this deviation: a smaller residual, as without noise, means that parameters absorb
    the error of the preparation. The parts of the error, computed with the bodies of the prior:

    - half the noise and rounding of the effort sensor below the cutoff (``Samples.effort_noise``), the certain part;
    - the torque of the acceleration that half the noise and rounding of the encoders leaves below the cutoff;
    - the torque of the difference between the acceleration and the derivative of the velocity;
    - the effect of the filter on products: torque of the filtered motion differs from filtered torque of the motion.

    The deviation is zero for equations other than force, and for unfiltered samples.
    """
    variance, counts = np.zeros(equations.count), np.zeros(equations.count)
    for samples in recordings:
        if equations.equation_type == "force" and samples.cutoff_hz > 0:
            for rows in samples.even_rows():
                cut = max(0, (rows.stop - rows.start - _MAX_EVEN_SAMPLES) // 2)  # only the middle of a long piece
                piece = samples.select(slice(rows.start + cut, rows.stop - cut))
                count = piece.mask.sum(axis=0)
                counts += count
                variance += count * _variance(equations, piece)
    return np.sqrt(variance / np.maximum(counts, 1))


def _variance(equations: Equations, samples: Samples) -> Array:
    """Error variance ``(c,)`` of one piece."""
    model, samples = equations.model, replace(samples, undecimated=None)
    bodies = np.zeros(model.layout.size)
    bodies[: model.layout.inertial_size] = model.consistent_prior.ravel()

    period = samples.period
    settled = samples.mask.copy()
    edge = min(int(np.ceil(_SETTLING_CUTOFF_PERIODS / (samples.cutoff_hz * period))), len(samples) // 3)
    settled[:edge] = settled[len(samples) - edge :] = False

    def mean_square(error: Array) -> Array:
        return np.sum(np.where(settled, error, 0.0) ** 2, axis=0) / np.maximum(settled.sum(axis=0), 1)

    predicted = equations.predict(bodies, samples)
    variance = np.zeros(equations.count)
    if samples.effort_noise is not None:
        variance[equations.joint_channels] += (_SURE_NOISE_SHARE * samples.effort_noise) ** 2
    if samples.noise is not None:
        # White noise of the position: S (2 pi)^2 f^3 / 3 in velocity, S (2 pi)^4 f^5 / 5 in acceleration.
        noise = _SURE_NOISE_SHARE * samples.noise * 2 * np.pi * samples.cutoff_hz * np.sqrt(3 / 5)
        drawn = noise * np.random.default_rng(0).normal(size=samples.a.shape)
        variance += mean_square(equations.predict(bodies, replace(samples, a=samples.a + drawn)) - predicted)
    difference = derivatives(samples.v, period, (1,))[0] - samples.a
    difference[:, np.std(difference, axis=0) > _DERIVED_TOLERANCE * np.std(samples.a, axis=0)] = 0.0
    variance += mean_square(equations.predict(bodies, replace(samples, a=samples.a + difference)) - predicted)
    q, v, a = (low_pass(values, period, samples.cutoff_hz) for values in (samples.q, samples.v, samples.a))
    again = equations.predict(bodies, replace(samples, q=q, v=v, a=a))
    return variance + mean_square(low_pass(predicted, period, samples.cutoff_hz) - again)


@dataclass(frozen=True)
class OutlierLimits:
    """Limits beyond which residuals are gross outliers, such as after a dropped bit or a collision.

    Attributes
    ----------
    middle, distance : ndarray, shape (c,)
        Median of each channel's residual, and distance from the median beyond which a residual is an outlier; infinite
        if all samples stay.
    """

    middle: Array
    distance: Array

    @classmethod
    def from_residuals(cls, channels: Sequence[str], recordings: Sequence[Samples], residuals: Sequence[Array],
            threshold: float) -> "OutlierLimits":
        """Limits from the residuals of recordings, with the arguments of :func:`without_outliers`."""
        middles, distances = np.zeros(len(channels)), np.full(len(channels), np.inf)
        for channel, name in enumerate(channels if threshold else ()):
            pairs = zip(residuals, recordings, strict=True)
            values = np.concatenate([r[s.mask[:, channel], channel] for r, s in pairs])
            if len(values) == 0:
                continue
            every = -(-len(values) // _MEDIAN_SAMPLES)
            middle = np.median(values[::every])
            away = np.abs(values - middle)
            limit = threshold * MAD_TO_DEVIATION * np.median(away[::every])
            if limit == 0:
                continue
            share = np.mean(away > limit)
            if share > MAX_OUTLIER_SHARE:
                _log.info("%s: %.1f %% of samples fit badly; too many to be outliers, all are kept", name, 100 * share)
                continue
            middles[channel], distances[channel] = middle, limit
        return cls(middles, distances)

    def masked(self, samples: Samples, residual: Array, most: float = 1.0) -> tuple[Samples, np.ndarray]:
        """Mask outliers by the residual ``(N, c)``, and count them per channel.

        A channel keeps all its samples if the share of outliers exceeds ``most``.
        """
        beyond = samples.mask & (np.abs(residual - self.middle) > self.distance)
        beyond &= column_counts(beyond) <= most * column_counts(samples.mask)
        return replace(samples, mask=samples.mask & ~beyond), column_counts(beyond)


def without_outliers(channels: Sequence[str], recordings: Sequence[Samples], residuals: Sequence[Array],
        threshold: float) -> tuple[list[Samples], np.ndarray]:
    """Mask outliers of recordings, and count them per channel.

    A residual counts as an outlier beyond ``threshold`` robust standard deviations (by the median absolute deviation)
    of its channel. If more than a fiftieth of the channel's samples are outliers, all samples stay: so many outliers
    show a deficiency of the model, and leaving them out would hide the deficiency.

    Parameters
    ----------
    residuals : sequence of ndarray, shape (N, c)
        Residuals of a first fit, per recording.
    """
    limits = OutlierLimits.from_residuals(channels, recordings, residuals, threshold)
    masked = [limits.masked(*pair) for pair in zip(recordings, residuals, strict=True)]
    counts = np.sum([outliers for _, outliers in masked], axis=0) if masked else np.zeros(len(channels), dtype=int)
    return [samples for samples, _ in masked], counts
