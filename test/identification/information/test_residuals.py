"""The independent share of samples, against sums that are written out."""

import numpy as np
import pytest

from inertid_ros.core.arrays import column_counts
from inertid_ros.identification.information.residuals import effective_fraction

LENGTHS = (1, 9, 2500, 6000)


def _moving_average(white: np.ndarray, width: int) -> np.ndarray:
    return np.apply_along_axis(lambda x: np.convolve(x, np.ones(width) / width, "same"), 0, white)


def _expected(residuals: list[np.ndarray], masks: list[np.ndarray]) -> float:
    """The same sums over all lags, without FFT."""
    longest = max(map(len, residuals))
    covariance, pairs = np.zeros(longest), np.zeros(longest)
    for residual, mask in zip(residuals, masks, strict=True):
        used, known = np.where(mask, residual, 0.0), mask.astype(float)
        covariance[: len(used)] += np.correlate(used, used, "full")[len(used) - 1 :]
        pairs[: len(used)] += np.correlate(known, known, "full")[len(used) - 1 :]
    correlation = np.divide(covariance, pairs, out=np.zeros(longest), where=pairs > 0.5)
    times = 2 * np.cumsum(correlation / correlation[0]) - 1
    for lag, time in enumerate(times):
        if lag >= 5 * max(time, 1.0):
            return 1 / max(time, 1.0)
    return 1 / max(times[-1], 1.0)


@pytest.mark.parametrize("width", [1, 10, 400])  # of the last one the first thousand lags are too few
@pytest.mark.parametrize("masked", [0.0, 0.3])
def test_share_is_that_of_sums_written_out(width, masked):
    rng = np.random.default_rng(width)
    residuals = [_moving_average(rng.normal(size=(count, 2)), width)[:count] for count in LENGTHS]
    masks = [rng.uniform(size=values.shape) >= masked for values in residuals]
    found = effective_fraction(residuals, masks)
    for joint in range(2):
        expected = _expected([r[:, joint] for r in residuals], [m[:, joint] for m in masks])
        assert found[joint] == pytest.approx(expected, rel=1e-9)


def test_without_residuals_all_count():
    every = np.ones((50, 1), dtype=bool)
    assert effective_fraction([np.zeros((50, 1))], [every]) == 1.0
    assert effective_fraction([np.ones((50, 1))], [~every]) == 1.0


@pytest.mark.parametrize("shape", [(0, 3), (7, 0), (1000, 3)])
def test_column_counts_are_sums(shape):
    mask = np.random.default_rng(0).uniform(size=shape) > 0.5
    np.testing.assert_array_equal(column_counts(mask), mask.sum(axis=0))
