"""Measured and predicted torque along a recording, with the deviation that is expected of their difference."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.regressors.equations import dense_equations

POINTS, FEWEST = 300, 60  # per curve: about what a page resolves, and what still shows the motion
_TOTAL = 2100  # of all channels and recordings, so that the page of a humanoid does not become large


@dataclass(frozen=True)
class PredictionCurves:
    """Curves of one recording, at some of its usable samples.

    Attributes
    ----------
    name : str
        Of the recording.
    time : ndarray, shape (K,)
        [s].
    measured, given, calibrated : ndarray, shape (K, c)
        Measured, predicted by the URDF as given, predicted by the estimate; NaN where nothing was measured.
    deviation : ndarray, shape (K, c)
        Standard deviation of calibrated less measured that residual and covariance of the estimate make expect.
    """

    name: str
    time: Array
    measured: Array
    given: Array
    calibrated: Array
    deviation: Array


def prediction_curves(estimate: Estimate, recordings: Sequence[Samples]) -> tuple[PredictionCurves, ...]:
    """Curves of recordings whose delay of effort has been removed; the fewer points, the more there are of them."""
    curves = max(1, len(recordings) * estimate.equations.count)
    points = int(np.clip(_TOTAL / curves, FEWEST, POINTS))
    return tuple(_of_recording(estimate, samples, points) for samples in recordings)


def _of_recording(estimate: Estimate, samples: Samples, points: int) -> PredictionCurves:
    equations, usable = estimate.equations, np.flatnonzero(samples.usable)
    rows = usable[:: max(1, -(-len(usable) // points))]
    valid = samples.valid[rows]
    predicted = [equations.predict(values, samples)[rows] for values in (estimate.prior, estimate.parameters)]
    chosen = replace(samples.select(rows), mask=np.ones((len(rows), samples.channels), dtype=bool))
    variance = np.tile(estimate.residual_deviation**2, (len(rows), 1))
    start = 0
    for chunk in dense_equations(equations, chosen):
        for channel, (regressor, _) in enumerate(chunk):
            columns = equations.columns[channel]
            covariance = estimate.covariance[np.ix_(columns, columns)]
            block = slice(start, start + len(regressor))
            variance[block, channel] += np.einsum("ki,ki->k", regressor @ covariance, regressor)
        start += len(chunk[0][0])
    measured, given, calibrated = (np.where(valid, each, np.nan) for each in (samples.tau[rows], *predicted))
    return PredictionCurves(samples.name, samples.time[rows], measured, given, calibrated, np.sqrt(variance))
