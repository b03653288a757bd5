"""Random-effects regression against textbook formulas; trends and change points on series whose truth is known."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from inertid_ros.fleet.mixed_models import Coefficient, Regression, Series, drift

TREND = 2.0  # per year


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


def random_series(rng, count=10, common=0.0, scatter=0.0, step=0.0, place=5):
    """Estimates with errors of different size, some of it common to all, and one step."""
    days = np.sort(rng.uniform(0, 300, count))
    covariance = np.diag(rng.uniform(0.2, 2.0, count)) + common
    values = TREND * days / 365.25 + np.linalg.cholesky(covariance) @ rng.normal(size=count)
    values += scatter * rng.normal(size=count) + step * (np.arange(count) >= place)
    return Series("joint.coulomb", days, values, covariance)


@pytest.mark.parametrize(("common", "scatter"), [(0.0, 0.0), (0.5, 0.5), (0.0, 2.0)])
def test_interval_of_the_trend_holds_the_truth_and_steps_are_hardly_ever_false(common, scatter):
    rng = np.random.default_rng(4)
    within, false, trials = 0, 0, 120
    for _ in range(trials):
        found = drift(random_series(rng, common=common, scatter=scatter))
        low, high = found.trend.interval
        within += low < TREND < high
        false += bool(found.changes)
    assert within / trials >= 0.89  # 95 % less three deviations of so many trials
    assert false / trials <= 0.04  # at a level of 1 %, and three deviations


def test_steps_are_found_where_they_are():
    rng = np.random.default_rng(5)
    right, within, trials = 0, 0, 60
    for _ in range(trials):
        place = int(rng.integers(3, 8))
        found = drift(random_series(rng, step=15.0, place=place))
        if [change.index for change in found.changes] == [place]:
            right += 1
            low, high = found.changes[0].step.interval
            within += low < 15.0 < high
    assert right >= 0.9 * trials
    assert within >= 0.85 * right


def test_two_steps_are_told_apart_from_a_trend():
    rng = np.random.default_rng(6)
    days = np.arange(0.0, 400.0, 10.0)
    values = 0.1 * rng.normal(size=40) + 3.0 * (days >= 100) - 3.0 * (days >= 250)
    found = drift(Series("link.m", days, values, 0.01 * np.eye(40)))
    assert [(change.first_day, change.last_day) for change in found.changes] == [(90.0, 100.0), (240.0, 250.0)]
    np.testing.assert_allclose([change.step.value for change in found.changes], [3.0, -3.0], atol=0.3)
    assert found.trend.interval[0] < 0.0 < found.trend.interval[1]


def test_bags_of_one_date_are_not_split():
    values = np.array([0.0, 0.0, 0.1, 5.0, 5.1, 5.0, 4.9, 5.0])
    days = np.array([0.0, 0.0, 1.0, 1.0, 2.0, 3.0, 4.0, 5.0])
    found = drift(Series("a", days, values, 0.01 * np.eye(8)))
    assert all(change.index != 3 for change in found.changes)


def test_too_few_bags_and_bags_of_one_day_show_no_trend():
    for days in ([0.0, 1.0, 2.0, 3.0], [0.0] * 6):
        assert drift(Series("a", np.array(days), np.zeros(len(days)), np.eye(len(days)))) is None


def test_scatter_about_the_mean():
    rng = np.random.default_rng(7)
    days, values = np.arange(50.0), 0.5 * rng.normal(size=50)
    found = Regression(Series("a", days, values, 0.04 * np.eye(50)), np.ones((50, 1))).scatter
    assert found**2 == pytest.approx(values.var(ddof=1) - 0.04, rel=1e-4)
    assert Regression(Series("a", days[:1], values[:1], np.eye(1)), np.ones((1, 1))).scatter == 0.0
