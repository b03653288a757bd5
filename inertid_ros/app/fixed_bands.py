"""Torque errors in fixed bands, by which results are compared whose own cutoffs differ."""

from collections.abc import Sequence

import numpy as np

from inertid_ros.data.preparation.bandwidth import MAX_CUTOFF_PER_RATE
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.validation import BandErrors, torque_errors
from inertid_ros.identification.information.delay import without_delay

from .screened_samples import ScreenedRecording, without_notices

BANDS_HZ = (2.0, 5.0, 10.0)
_PERIODS = 20.0  # of a band's highest frequency in the shortest recording; less is all filter transient


def band_errors(estimate: Estimate, recordings: Sequence[ScreenedRecording]) -> tuple[BandErrors, ...]:
    """Errors of an estimate and of the URDF as given below 2, 5 and 10 Hz, as far as the sample rates allow.

    Parameters
    ----------
    estimate : Estimate
        Of equations of force; of others there are no such errors.
    recordings : sequence of ScreenedRecording
        Of the same robot; the cutoff with which they were prepared does not matter here.

    Returns
    -------
    tuple of BandErrors
        In ascending order.
    """
    if estimate.equations.equation_type != "force":
        return ()
    raw = [each.preparation.fresh for each in recordings]
    slowest = max(float(np.median(np.diff(recording.time))) for recording in raw)
    shortest = min(recording.duration for recording in raw)
    bands = [band for band in BANDS_HZ if _PERIODS / shortest < band < MAX_CUTOFF_PER_RATE / slowest]
    with without_notices():
        return tuple(_errors(estimate, recordings, band) for band in bands)


def _errors(estimate: Estimate, recordings: Sequence[ScreenedRecording], band: float) -> BandErrors:
    samples = [without_delay(recording.prepared(band), estimate.delay) for recording in recordings]
    own, given = (
        torque_errors(estimate.equations, parameters, samples) for parameters in (estimate.parameters, estimate.prior)
    )
    return BandErrors(band, own, given)
