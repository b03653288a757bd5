"""Levels of many tests together; outlying robots of random populations: false alarms at the stated rate."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from inertid_ros.fleet.mixed_models import Likelihoods
from inertid_ros.fleet.model_distribution import (
    BaseCoordinates,
    ModelDistribution,
    benjamini_hochberg,
    changes_of,
    holm,
    outlying_robots,
)
from inertid_ros.identification.base_parameters.numeric import BaseParameters
from inertid_ros.robot.layout import ParameterLayout

P_VALUES = st.lists(st.floats(0.0, 1.0), max_size=30).map(np.array)
SIZE = 6
LAYOUT = ParameterLayout((), tuple(f"joint{i}" for i in range(SIZE)), ("coulomb",))
COORDINATES = BaseCoordinates(
    BaseParameters(np.arange(SIZE), np.zeros(0, dtype=int), np.zeros((SIZE, 0)), np.inf, LAYOUT, 1.0),
    np.zeros(SIZE),
    np.ones(SIZE),
    np.eye(SIZE),
)
CHANGES = changes_of(LAYOUT, np.zeros(SIZE))


@given(P_VALUES)
def test_benjamini_hochberg_is_the_largest_set_of_its_definition(p_values):
    m = len(p_values)
    largest = max((k for k in range(m + 1) if k == 0 or (p_values <= 0.1 * k / m).sum() >= k), default=0)
    rejected = benjamini_hochberg(p_values, 0.1)
    assert rejected.sum() == largest
    assert p_values[rejected].max(initial=0.0) <= p_values[~rejected].min(initial=1.0)


@given(P_VALUES)
def test_holm_compares_the_next_p_value_with_those_that_are_left(p_values):
    left = list(np.sort(p_values))
    while left and left[0] <= 0.1 / len(left):
        left.pop(0)
    assert holm(p_values, 0.1).sum() == len(p_values) - len(left)


@pytest.mark.parametrize("tests", [1, 10, 200])
def test_holm_names_nothing_of_nothing(tests):
    rng = np.random.default_rng(tests)
    alarms = np.mean([holm(rng.uniform(size=tests), 0.05).any() for _ in range(2000)])
    assert alarms == pytest.approx(0.05, abs=0.02)


def population(rng, count):
    """Robots that differ along a few directions more than along others, each measured with errors of its own."""
    root = rng.normal(size=(SIZE, SIZE)) * 0.1
    truth = rng.normal(size=SIZE) * 0.3 + rng.normal(size=(count, SIZE)) @ root.T
    precision, product = [], []
    for each in truth:
        R = rng.normal(size=(2 * SIZE, SIZE)) * rng.uniform(5, 40)
        precision.append(R.T @ R)
        product.append(R.T @ (R @ each + rng.normal(size=len(R))))
    return Likelihoods(np.array(precision), np.array(product))


def shifted(likelihoods, robot, parameter, size):
    product = likelihoods.product.copy()
    product[robot] += size * likelihoods.precision[robot][:, parameter]
    return Likelihoods(likelihoods.precision, product)


@pytest.mark.parametrize(("count", "trials"), [(60, 40), (8, 60)])
def test_a_population_without_bad_robots_has_hardly_ever_one_named(count, trials):
    rng = np.random.default_rng(count)
    alarms = sum(
        bool(outlying_robots(COORDINATES, population(rng, count), CHANGES, level=0.05)[1]) for _ in range(trials)
    )
    assert alarms <= 0.05 * trials + 3 * np.sqrt(0.05 * 0.95 * trials)


def test_bad_robots_are_named_with_the_parameter_and_its_size():
    rng, right = np.random.default_rng(3), 0
    for _ in range(10):
        likelihoods = population(rng, 60)
        for robot, parameter in ((4, 2), (17, 0), (40, 5)):
            likelihoods = shifted(likelihoods, robot, parameter, 2.0)
        distribution, outliers = outlying_robots(COORDINATES, likelihoods, CHANGES)
        named = {(outlier.robot, outlier.parameter) for outlier in outliers}
        right += named == {(4, "joint2.coulomb"), (17, "joint0.coulomb"), (40, "joint5.coulomb")}
        assert all(abs(outlier.size - 2.0) < 4 * outlier.deviation for outlier in outliers)
        assert distribution.population.count == 60 - len(outliers)
    assert right >= 9


def test_the_data_of_a_robot_count_once():
    """The prior of a robot is of the other robots: equal robots know together what all their data say, and no more."""
    rng, truth = np.random.default_rng(7), np.full(SIZE, 0.3)
    roots = rng.normal(size=(4, 2 * SIZE, SIZE)) * 10
    precision = roots.transpose(0, 2, 1) @ roots
    likelihoods = Likelihoods(precision, precision @ truth)
    distribution = ModelDistribution.from_likelihoods(COORDINATES, likelihoods, np.arange(4))
    everything = COORDINATES.prior + precision.sum(axis=0)
    for robot in range(4):
        prior = distribution.prior_of(robot)
        counted = prior.R.T @ prior.R + precision[robot]
        assert np.linalg.eigvalsh(everything - counted)[0] > -1e-9 * np.linalg.eigvalsh(everything)[-1]


@pytest.mark.parametrize("robot", [0, 5])
def test_the_prior_of_a_robot_is_the_mean_of_the_others_with_the_scatter_of_all(robot):
    likelihoods = population(np.random.default_rng(8), 6)
    distribution = ModelDistribution.from_likelihoods(COORDINATES, likelihoods, np.arange(6))
    scatter, total, weighted = distribution.population.covariance, COORDINATES.prior, np.zeros(SIZE)
    for other in set(range(6)) - {robot}:
        inverse = np.linalg.inv(scatter + np.linalg.inv(likelihoods.precision[other]))
        estimate = np.linalg.solve(likelihoods.precision[other], likelihoods.product[other])
        total, weighted = total + inverse, weighted + inverse @ estimate
    precision = np.linalg.inv(scatter + np.linalg.inv(total))
    prior = distribution.prior_of(robot)
    np.testing.assert_allclose(prior.R.T @ prior.R, precision, rtol=1e-6, atol=1e-6 * precision.max())
    np.testing.assert_allclose(np.linalg.solve(prior.R, prior.z), np.linalg.solve(total, weighted), rtol=1e-6)


def test_a_change_that_shows_in_no_measurement_is_not_tried():
    likelihoods = population(np.random.default_rng(5), 30)
    _, outliers = outlying_robots(COORDINATES, shifted(likelihoods, 3, 1, 2.0), {**CHANGES, "hidden": np.zeros(SIZE)})
    assert [outlier.parameter for outlier in outliers] == ["joint1.coulomb"]


def test_changes_of_a_robot_are_of_its_links_and_drives():
    layout = ParameterLayout(("arm",), ("joint",), ("viscous", "coulomb"))
    parameters = np.array([2.0, 0.2, 0.0, 0.0, *np.ones(6), 0.1, 0.3])
    changes = changes_of(layout, parameters)
    assert set(changes) == {"arm.m", "arm.com_x", "arm.com_y", "arm.com_z", "joint.viscous", "joint.coulomb"}
    np.testing.assert_allclose(changes["arm.m"][:10], parameters[:10] / 2.0)
    assert changes["arm.com_y"][2] == 2.0
