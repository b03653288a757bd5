"""Intervals of what is positive of a body, where the data leave it open."""

from dataclasses import replace

import numpy as np
import pytest
import scipy
from support.recordings.synthetic_calibration import calibrated_case

from inertid_ros.core.inertial_parameters import from_pseudo_inertia, pseudo_inertia
from inertid_ros.identification.assessment.estimate import NORMAL_95, log_normal_interval
from inertid_ros.identification.prior.coordinates import prior_coordinates, prior_covariance_root


def drawn_from_prior(bodies, prior_spread, rng):
    """Bodies whose geodesic distance to the given ones is normal in every direction."""
    direction = rng.normal(size=(len(bodies), 4, 4))
    direction = np.triu(direction, 1) + np.triu(direction, 1).swapaxes(1, 2) + np.sqrt(2) * (np.eye(4) * direction)
    root = np.linalg.cholesky(pseudo_inertia(bodies))
    return from_pseudo_inertia(root @ scipy.linalg.expm(prior_spread * direction) @ root.swapaxes(1, 2))


@pytest.mark.parametrize("prior_spread", [0.1, 0.3])
def test_bodies_that_the_data_leave_open_are_within_their_intervals(prior_spread):
    estimate = calibrated_case()[1].estimate
    coordinates = prior_coordinates(estimate.model, estimate.information)
    root = prior_covariance_root(coordinates, prior_spread)
    prior = coordinates.physical(coordinates.prior)
    unknown = replace(estimate, parameters=prior, covariance=root @ root.T)
    positive = estimate.layout.positive_of_bodies
    low, high = unknown.interval[positive].T
    rng = np.random.default_rng(0)
    true = np.array([drawn_from_prior(estimate.layout.bodies(prior), prior_spread, rng) for _ in range(400)])
    true = true.reshape(400, -1)[:, positive]
    outside = np.mean((true < low) | (true > high))
    assert 0.03 < outside < 0.09
    # Of a normal distribution more are, and all of them above.
    half = NORMAL_95 * unknown.standard_deviation[positive]
    assert np.mean(np.abs(true - prior[positive]) > half) > 1.1 * outside


def test_small_deviations_make_the_normal_interval():
    value, deviation = np.array([2.0, 0.3]), np.array([2e-3, 3e-5])
    normal = value[:, None] + NORMAL_95 * deviation[:, None] * [-1, 1]
    np.testing.assert_allclose(log_normal_interval(value, deviation), normal, rtol=1e-5)


def test_what_is_positive_has_a_positive_interval():
    assert (log_normal_interval(np.full(4, 0.1), np.array([0.01, 0.1, 1.0, 10.0])) > 0).all()
