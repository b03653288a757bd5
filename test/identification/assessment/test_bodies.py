"""Details of bodies: intervals of mass, centre of mass and inertia, and ellipsoids of inertia."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from support.recordings.synthetic_calibration import calibrated_case
from support.robots.random_robots import random_bodies

from inertid_ros.core.inertial_parameters import INERTIA_ELEMENTS, from_mass_com_inertia, mass_com_inertia
from inertid_ros.identification.assessment.bodies import (
    body_intervals,
    com_inertia_slopes,
    inertia_ellipsoids,
    shown_pose,
)
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
        for found, com in zip(body_intervals(outcome.estimate), true, strict=True)]
    assert np.mean(inside) >= 8 / 9


def test_they_stand_where_forward_kinematics_puts_them():
    estimate = calibrated_case()[1].estimate
    model = estimate.model
    data = model.pinocchio.createData()
    pin.forwardKinematics(model.pinocchio, data, shown_pose(model))
    for index, each in enumerate(inertia_ellipsoids(estimate)):
        placement = data.oMi[index + 1]
        np.testing.assert_allclose(each.origin, placement.translation, atol=1e-9)
        com = estimate.bodies[index, 1:4] / estimate.bodies[index, 0]
        np.testing.assert_allclose(each.calibrated.centre, placement.act(com), atol=1e-9)
        assert each.parent == model.pinocchio.parents[index + 1] - 1


def test_a_solid_ellipsoid_has_its_semi_axes_and_their_deviation():
    """Second moments of a solid ellipsoid are a fifth of the squared semi-axes; their slope gives the interval."""
    estimate = calibrated_case()[1].estimate
    semi_axes, mass = np.array([0.3, 0.2, 0.1]), 4.0
    inertia = mass / 5 * np.diag(semi_axes @ semi_axes - semi_axes**2)
    body = from_mass_com_inertia(mass, np.array([0.1, 0.0, -0.2]), inertia)
    parameters, covariance = estimate.parameters.copy(), np.zeros_like(estimate.covariance)
    parameters[:10] = body
    covariance[4, 4] = 1e-8  # of Ixx alone: squared semi-axes x by -5/2m, y and z by +5/2m
    found = inertia_ellipsoids(replace(estimate, parameters=parameters, covariance=covariance))[0]
    lengths = np.linalg.norm(found.calibrated.axes, axis=0)
    assert sorted(lengths) == pytest.approx(sorted(semi_axes))
    expected = 1.96 * 2.5 / mass * 1e-4 / lengths**2
    assert found.axes_interval[:, 1] ** 2 - 1 == pytest.approx(expected)
    assert 1 - found.axes_interval[:, 0] ** 2 == pytest.approx(expected)


def test_an_impossible_body_has_no_ellipsoid():
    estimate = calibrated_case()[1].estimate
    found = inertia_ellipsoids(replace(estimate, parameters=-estimate.parameters))
    assert all(each.calibrated is None and each.given is not None for each in found)
