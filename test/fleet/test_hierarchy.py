"""The hierarchical model against direct maximisation of a likelihood that is written out densely."""

import numpy as np
import pytest
from scipy.optimize import minimize

from inertid_ros.fleet.mixed_models import Likelihoods, fit_population


def robots(rng, count, size, covariance, rows=None, noise=1.0):
    """Likelihoods of robots, and their true parameters."""
    mean = rng.normal(size=size)
    truth = rng.multivariate_normal(mean, covariance, size=count)
    precision, product = [], []
    for each in truth:
        R = rng.normal(size=(rows or 2 * size, size)) / noise
        z = R @ each + rng.normal(size=len(R))
        precision.append(R.T @ R)
        product.append(R.T @ z)
    return Likelihoods(np.array(precision), np.array(product)), mean


def dense_log_likelihood(likelihoods, covariance):
    """Likelihood of estimates ``beta_i ~ N(mu, Sigma + W_i)`` with ``mu`` integrated out, up to a constant."""
    inverses, total, weighted = [], 0.0, 0.0
    for precision, product in zip(likelihoods.precision, likelihoods.product, strict=True):
        W = np.linalg.inv(precision)
        inverse = np.linalg.inv(covariance + W)
        inverses.append((inverse, W @ product))
        total, weighted = total + inverse, weighted + inverse @ W @ product
    mean = np.linalg.solve(total, weighted)
    value = -0.5 * np.linalg.slogdet(total)[1]
    for inverse, estimate in inverses:
        value += 0.5 * np.linalg.slogdet(inverse)[1] - 0.5 * (estimate - mean) @ inverse @ (estimate - mean)
    return value


@pytest.mark.parametrize("seed", range(3))
def test_expectation_and_maximisation_ends_at_the_direct_maximum(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(2, 2))
    likelihoods, _ = robots(rng, 30, 2, root @ root.T + 0.2 * np.eye(2), noise=0.5)

    def loss(x):
        L = np.array([[np.exp(x[0]), 0.0], [x[1], np.exp(x[2])]])
        return -dense_log_likelihood(likelihoods, L @ L.T)

    best = minimize(loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10, "maxiter": 4000})
    L = np.array([[np.exp(best.x[0]), 0.0], [best.x[1], np.exp(best.x[2])]])
    found = fit_population(likelihoods, np.zeros((2, 2)), np.ones(2), pseudo_robots=0.0)
    np.testing.assert_allclose(found.covariance, L @ L.T, rtol=0.01, atol=1e-3)
    assert dense_log_likelihood(likelihoods, found.covariance) >= -best.fun - 1e-3


def test_mean_and_scatter_of_many_robots_are_the_true_ones():
    rng = np.random.default_rng(0)
    S = np.diag([0.04, 1.0, 0.25]) + 0.05
    likelihoods, mean = robots(rng, 400, 3, S, noise=0.3)
    found = fit_population(likelihoods, np.zeros((3, 3)), np.ones(3))
    np.testing.assert_allclose(found.covariance, S, atol=0.12)
    assert (np.abs(found.mean - mean) < 4 * np.sqrt(np.diagonal(found.mean_covariance))).all()


def test_few_robots_are_drawn_to_a_diagonal_covariance():
    likelihoods, _ = robots(np.random.default_rng(1), 5, 4, np.eye(4), noise=0.1)
    full = fit_population(likelihoods, np.zeros((4, 4)), np.ones(4), pseudo_robots=0.0).covariance
    drawn = fit_population(likelihoods, np.zeros((4, 4)), np.ones(4)).covariance

    def correlation(S):
        C = S / np.sqrt(np.outer(np.diagonal(S), np.diagonal(S)))
        return np.abs(C - np.eye(4)).max()

    assert correlation(drawn) < 0.7 * correlation(full)


def test_robots_whose_data_leave_parameters_open_are_no_problem():
    rng = np.random.default_rng(2)
    likelihoods, mean = robots(rng, 60, 4, 0.09 * np.eye(4), rows=2, noise=0.2)
    found = fit_population(likelihoods, 1e-4 * np.eye(4), np.ones(4))
    assert np.isfinite(found.covariance).all()
    assert (np.abs(found.mean - mean) < 4 * np.sqrt(np.diagonal(found.mean_covariance))).all()


def test_a_prior_holds_the_mean_where_no_robot_shows_it():
    precision = np.tile(np.diag([4.0, 0.0]), (6, 1, 1))
    likelihoods = Likelihoods(precision, np.tile([4.0, 0.0], (6, 1)))
    found = fit_population(likelihoods, np.diag([1e-6, 1.0]), np.ones(2))
    np.testing.assert_allclose(found.mean, [1.0, 0.0], atol=1e-4)
    assert found.mean_covariance[1, 1] == pytest.approx(1.0, rel=1e-6)
