"""Normal distributions cut off by bounds, against samples drawn from them."""

import numpy as np
import pytest

from inertid_ros.identification.assessment.posterior import truncated_normal


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


@pytest.mark.parametrize("centre", [-1.0, 0.5, 2.5])
def test_a_quantity_that_may_be_zero_is_zero_in_some_of_the_samples(centre):
    """Two quantities; the first is zero with even odds before the data, else of an exponential prior."""
    rng, density = np.random.default_rng(0), 0.7
    covariance, mean = np.array([[1.0, -0.8], [-0.8, 1.3]]), np.array([centre, 4.0])
    within = truncated_normal(mean, covariance, np.eye(2)[:1], np.zeros(1), np.array([density]))
    drawn = rng.multivariate_normal(mean, covariance, 400_000)
    above = drawn[drawn[:, 0] >= 0]
    present, absent = density * len(above) / len(drawn), np.exp(-0.5 * centre**2) / np.sqrt(2 * np.pi)
    probability = present / (present + absent)
    assert within.present[0] == pytest.approx(probability, abs=0.005)
    zeros = rng.random(len(above)) > probability
    free = mean[1] - 0.8 * (0 - centre) + np.sqrt(1.3 - 0.64) * rng.normal(size=len(above))
    mixed = np.where(zeros[:, None], np.column_stack([np.zeros(len(above)), free]), above)
    np.testing.assert_allclose(within.mean, mixed.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(within.covariance, np.cov(mixed.T), atol=0.02)
    low, high = within.intervals[0]
    assert low == 0 and np.mean(mixed[:, 0] <= high) == pytest.approx(0.95, abs=0.006)


def test_a_quantity_that_is_surely_zero_has_a_known_value():
    within = truncated_normal(
        np.array([-1.0, 1.0]), np.array([[1e-4, 5e-3], [5e-3, 1.0]]), np.eye(2)[:1], np.zeros(1), np.ones(1)
    )
    assert within.present[0] < 1e-3 and within.covariance[0, 0] < 1e-7
    assert within.covariance[1, 1] == pytest.approx(1 - 5e-3**2 / 1e-4, rel=1e-3)
    assert within.intervals.tolist() == [[0.0, 0.0]]
