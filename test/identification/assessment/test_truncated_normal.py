"""Normal distributions cut off by bounds, against samples drawn from them."""

import numpy as np
import pytest

from inertid_ros.identification.assessment.truncated_normal import truncated_normal


@pytest.mark.parametrize("seed", range(4))
def test_moments_and_intervals_are_those_of_samples(seed):
    rng, size = np.random.default_rng(seed), 4
    factor = rng.normal(size=(size, size))
    covariance, mean = factor @ factor.T + 0.1 * np.eye(size), 1.5 * rng.normal(size=size)
    rows, shift = np.eye(size)[:2], np.array([0.0, 0.3])
    within = truncated_normal(mean, covariance, rows, shift)
    drawn = rng.multivariate_normal(mean, covariance, 400_000)
    drawn = drawn[(drawn @ rows.T + shift >= 0).all(axis=1)]
    scale = np.sqrt(np.diagonal(covariance))
    np.testing.assert_allclose(within.mean / scale, drawn.mean(axis=0) / scale, atol=0.02)
    np.testing.assert_allclose(
        within.covariance / np.outer(scale, scale), np.cov(drawn.T) / np.outer(scale, scale), atol=0.02
    )
    values = drawn @ rows.T + shift
    inside = (values >= within.intervals[:, 0]) & (values <= within.intervals[:, 1])
    np.testing.assert_allclose(inside.mean(axis=0), 0.95, atol=0.006)


def test_far_from_bounds_nothing_changes():
    covariance = np.array([[1.0, 0.5], [0.5, 2.0]])
    within = truncated_normal(np.array([30.0, -3.0]), covariance, np.eye(2)[:1], np.zeros(1))
    np.testing.assert_allclose(within.covariance, covariance)
    np.testing.assert_allclose(within.intervals, [[30 - 1.96, 30 + 1.96]], atol=1e-3)


@pytest.mark.parametrize("depth", [40.0, 60.0, 1e3, 1e6])
def test_deep_below_a_bound_it_is_exponential(depth):
    """Where the slope of the density is all that is left of it."""
    within = truncated_normal(np.array([-depth]), np.eye(1), np.eye(1), np.zeros(1))
    assert within.mean[0] * depth == pytest.approx(1, rel=2e-3)
    assert within.covariance[0, 0] * depth**2 == pytest.approx(1, rel=5e-3)
    assert within.intervals[0, 0] == 0 and within.intervals[0, 1] * depth == pytest.approx(np.log(20), rel=2e-3)


def test_a_quantity_that_is_fixed_stays():
    within = truncated_normal(np.array([0.2, 1.0]), np.diag([0.0, 1.0]), np.eye(2), np.zeros(2))
    assert within.mean[0] == 0.2 and within.covariance[0, 0] == 0
    np.testing.assert_allclose(within.intervals[0], 0.2)
