"""Random-effects regression against the restricted likelihood and generalised least squares as textbooks write them."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from inertid_ros.fleet.drift import Coefficient, Regression, Series


def series(rng, count=12, scatter=0.5):
    root = rng.normal(size=(count, count)) / 3
    covariance = root @ root.T + 0.05 * np.eye(count)
    days = np.sort(rng.uniform(0, 400, count))
    values = 1.0 + np.linalg.cholesky(covariance) @ rng.normal(size=count) + scatter * rng.normal(size=count)
    return Series("joint.coulomb", days, values, covariance)


def restricted(series, X, variance):
    """Logarithm of the restricted likelihood: that of y with the coefficients integrated out."""
    V = series.covariance + variance * np.eye(len(X))
    inverse = np.linalg.inv(V)
    inner = X.T @ inverse @ X
    b = np.linalg.solve(inner, X.T @ inverse @ series.values)
    r = series.values - X @ b
    return -0.5 * (np.linalg.slogdet(V)[1] + np.linalg.slogdet(inner)[1] + r @ inverse @ r)


@pytest.mark.parametrize("seed", range(8))
def test_scatter_maximises_the_restricted_likelihood(seed):
    rng = np.random.default_rng(seed)
    given = series(rng, scatter=rng.choice([0.0, 0.3, 2.0]))
    X = np.column_stack([np.ones(12), given.days / 365])
    direct = minimize_scalar(lambda s: -restricted(given, X, s**2), bounds=(0, 20), method="bounded").x
    found = Regression(given, X).scatter
    assert restricted(given, X, found**2) >= restricted(given, X, direct**2) - 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_coefficients_are_generalised_least_squares(seed):
    given = series(np.random.default_rng(seed))
    X = np.column_stack([np.ones(12), given.days / 365, given.days > 200])
    regression = Regression(given, X)
    inverse = np.linalg.inv(given.covariance + regression.scatter**2 * np.eye(12))
    covariance = np.linalg.inv(X.T @ inverse @ X)
    values = covariance @ X.T @ inverse @ given.values
    r = given.values - X @ values
    scale = r @ inverse @ r / (12 - 3)
    found = regression.coefficients()
    np.testing.assert_allclose([each.value for each in found], values, rtol=1e-6)
    np.testing.assert_allclose([each.deviation**2 for each in found], scale * np.diagonal(covariance), rtol=1e-6)


def test_p_value_of_a_further_column_is_that_of_the_fit_with_it():
    given = series(np.random.default_rng(3), scatter=0.0)
    X = np.column_stack([np.ones(12), given.days / 365])
    steps = np.where(np.arange(12)[:, None] >= [4, 7], 0.5, -0.5)
    known = Regression(given, X)
    for column, p_value in zip(steps.T, known.p_values_of(steps), strict=True):
        larger = Regression(given, np.column_stack([X, column]))
        larger.__dict__["scatter"] = known.scatter
        assert larger.coefficients()[-1].p_value == pytest.approx(p_value, rel=1e-6)


def test_interval_is_that_of_students_distribution():
    low, high = Coefficient(1.0, 2.0, 10).interval
    assert (low, high) == pytest.approx((1 - 2 * 2.228139, 1 + 2 * 2.228139), rel=1e-6)
    assert Coefficient(2.228139, 1.0, 10).p_value == pytest.approx(0.05, rel=1e-5)


def test_wrong_shapes_and_dates_are_refused():
    with pytest.raises(ValueError, match=r"a: \(2,\) values, \(3, 3\) covariances, 3 dates"):
        Series("a", np.arange(3.0), np.zeros(2), np.eye(3))
    with pytest.raises(ValueError, match="dates go back"):
        Series("a", np.array([1.0, 0.0]), np.zeros(2), np.eye(2))
