"""Ellipsoids of inertia: where they are, how large, and how certain."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from support.recordings.synthetic_calibration import calibrated_case

from inertid_ros.core.inertial_parameters import from_mass_com_inertia
from inertid_ros.identification.assessment.bodies import inertia_ellipsoids, shown_pose


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
