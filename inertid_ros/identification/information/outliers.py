"""Gross outliers: single samples that neither noise nor friction explains, such as a dropped bit or a collision."""

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples

from .residuals import MAD_TO_DEVIATION

_log = logging.getLogger(__name__)
_MOST = 0.02  # a larger share is a deficiency of the model, not outliers


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
    counts, masks = np.zeros(len(channels), dtype=int), [samples.mask.copy() for samples in recordings]
    if threshold == 0:
        return list(recordings), counts
    for channel, name in enumerate(channels):
        values = np.concatenate([r[s.mask[:, channel], channel] for r, s in zip(residuals, recordings, strict=True)])
        if len(values) == 0:
            continue
        middle = np.median(values)
        limit = threshold * MAD_TO_DEVIATION * np.median(np.abs(values - middle))
        share = np.mean(np.abs(values - middle) > limit)
        if limit == 0 or share == 0:
            continue
        if share > _MOST:
            _log.info(
                "%s: %.1f %% of samples fit badly; too many to be outliers, all are kept", name, 100 * share
            )
            continue
        for mask, residual in zip(masks, residuals, strict=True):
            beyond = mask[:, channel] & (np.abs(residual[:, channel] - middle) > limit)
            mask[beyond, channel] = False
            counts[channel] += beyond.sum()
    return [replace(samples, mask=mask) for samples, mask in zip(recordings, masks, strict=True)], counts
