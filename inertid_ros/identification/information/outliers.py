"""Gross outliers: single samples that neither noise nor friction explains, such as a dropped bit or a collision."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.core.arrays import Array, column_counts
from inertid_ros.core.samples import Samples

from .residuals import MAD_TO_DEVIATION

_log = logging.getLogger(__name__)
_ENOUGH = 20_000  # samples know a median absolute deviation to a per cent
MOST = 0.02  # a larger share is a deficiency of the model, not outliers


@dataclass(frozen=True)
class OutlierLimits:
    """Between which residuals are no outliers.

    Attributes
    ----------
    middle, distance : ndarray, shape (c,)
        Median of each channel's residual, and how far from it an outlier begins; infinite where all stay.
    """

    middle: Array
    distance: Array

    @classmethod
    def of(
        cls, channels: Sequence[str], recordings: Sequence[Samples], residuals: Sequence[Array], threshold: float
    ) -> "OutlierLimits":
        """Limits by the residuals of recordings; the arguments are those of :func:`without_outliers`."""
        middles, distances = np.zeros(len(channels)), np.full(len(channels), np.inf)
        for channel, name in enumerate(channels if threshold else ()):
            own = zip(residuals, recordings, strict=True)
            values = np.concatenate([r[s.mask[:, channel], channel] for r, s in own])
            if len(values) == 0:
                continue
            every = -(-len(values) // _ENOUGH)
            middle = np.median(values[::every])
            away = np.abs(values - middle)
            limit = threshold * MAD_TO_DEVIATION * np.median(away[::every])
            if limit == 0:
                continue
            share = np.mean(away > limit)
            if share > MOST:
                _log.info(
                    "%s: %.1f %% of samples fit badly; too many to be outliers, all are kept", name, 100 * share
                )
                continue
            middles[channel], distances[channel] = middle, limit
        return cls(middles, distances)

    def masked(self, samples: Samples, residual: Array, most: float = 1.0) -> tuple[Samples, np.ndarray]:
        """Samples with outliers masked by their residual ``(N, c)``, and their number per channel.

        Where they would be more than a share ``most`` of a channel's samples, all of it stay.
        """
        beyond = samples.mask & (np.abs(residual - self.middle) > self.distance)
        beyond &= column_counts(beyond) <= most * column_counts(samples.mask)
        return replace(samples, mask=samples.mask & ~beyond), column_counts(beyond)


def without_outliers(
    channels: Sequence[str], recordings: Sequence[Samples], residuals: Sequence[Array], threshold: float
) -> tuple[list[Samples], np.ndarray]:
    """Recordings with outliers masked, and their number per channel.

    A residual counts as an outlier beyond ``threshold`` robust standard deviations (by the median absolute
    deviation) of its channel. Where that would be more than a fiftieth of the channel's samples, all stay: what happens
    so often is a deficiency of the model, which leaving it out would hide.

    Parameters
    ----------
    channels : sequence of str
        ``c`` names, for messages.
    residuals : sequence of ndarray, shape (N, c)
        Per recording, of a first fit.
    threshold : float
        0 masks nothing.
    """
    limits = OutlierLimits.of(channels, recordings, residuals, threshold)
    masked = [limits.masked(*each) for each in zip(recordings, residuals, strict=True)]
    counts = np.sum([own for _, own in masked], axis=0) if masked else np.zeros(len(channels), dtype=int)
    return [samples for samples, _ in masked], counts
