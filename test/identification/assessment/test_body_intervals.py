"""Intervals of mass, centre of mass and inertia follow from the covariance of the ten parameters."""

import numpy as np
import pytest
from support.recordings.synthetic_calibration import calibrated_case
from support.robots.random_robots import random_bodies

from inertid_ros.core.inertial_parameters import INERTIA_ELEMENTS, mass_com_inertia
from inertid_ros.identification.assessment.bodies import body_intervals, com_inertia_slopes
from inertid_ros.identification.assessment.estimate import VERDICTS


def com_and_inertia(pi):
    _, com, inertia = mass_com_inertia(pi)
    return np.concatenate([com, [inertia[element] for element in INERTIA_ELEMENTS]])


def test_slopes_are_those_of_differences():
    pi = random_bodies(np.random.default_rng(0), 1)[0]
    steps = 1e-6 * np.eye(10)
    numeric = np.stack([(com_and_inertia(pi + step) - com_and_inertia(pi - step)) / 2e-6 for step in steps], axis=1)
    np.testing.assert_allclose(com_inertia_slopes(pi), numeric, atol=1e-7)


def test_intervals_hold_the_estimate_and_scale_with_its_deviation():
    _, outcome = calibrated_case()
    estimate = outcome.estimate
    for index, found in enumerate(body_intervals(estimate)):
        mass, com, inertia = mass_com_inertia(estimate.bodies[index])
        values = [inertia[element] for element in INERTIA_ELEMENTS]
        assert found.mass_interval == pytest.approx(estimate.interval[10 * index])
        for interval, value in zip([*found.com_interval, *found.inertia_interval], [*com, *values], strict=True):
            assert interval[0] < value < interval[1]
        for interval, value in zip(found.com_interval, com, strict=True):
            assert interval.mean() == pytest.approx(value)
        words = [found.determined["mass"], *found.determined["com"], *found.determined["inertia"]]
        assert len(words) == 10 and set(words) <= set(VERDICTS)
        assert words == [each.verdict for each in estimate.identifiability[10 * index : 10 * index + 10]]


def test_the_centre_of_mass_of_the_truth_is_within_its_interval():
    """Of 95 % intervals; the prior, from which the truth is drawn, is part of them."""
    case, outcome = calibrated_case()
    true = mass_com_inertia(case.truth.body_prior).com
    inside = [
        (found.com_interval[:, 0] <= com) & (com <= found.com_interval[:, 1])
        for found, com in zip(body_intervals(outcome.estimate), true, strict=True)
    ]
    assert np.mean(inside) >= 8 / 9
