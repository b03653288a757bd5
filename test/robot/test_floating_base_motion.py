"""Predictions of robots that float, against Pinocchio with the wheels as bodies and joints of their own."""

import numpy as np
import pinocchio as pin
import pytest
from support.robots.floating_robots import diver, motion
from support.robots.random_robots import random_model

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import ModelError
from inertid_ros.identification.base_parameters.closed_form import closed_form_base_parameters
from inertid_ros.robot.floating_base_motion import predict_floating
from inertid_ros.robot.model import load_model


@pytest.mark.parametrize("link", ["boom", "lower"])
def test_torques_and_accelerations_are_those_of_the_whole_robot(link):
    """Nothing acts on the base from outside, and joints take what inverse dynamics says; wheels may be anywhere."""
    model = diver(np.random.default_rng(0))
    urdf = model.urdf.replace('"boom"/><child link="spin_d', f'"{link}"/><child link="spin_d')
    model = load_model(urdf, model.options)
    assert model.link_names[model.wheels.bodies[3]] == link
    whole = load_model(model.urdf, RobotOptions(base="free", gravity=(0.0, 0.0, 0.0)))
    q, v, a = motion(model, 3).sample(np.linspace(0.05, 0.95, 7))
    found = predict_floating(model, model.body_prior, q, v, a)
    names = [*model.joint_names, *model.wheels.names]
    order = [names.index(name) for name in whole.joint_names]
    data = whole.pinocchio.createData()
    for row in range(len(q)):
        position = np.concatenate([[0, 0, 0, 0, 0, 0, 1], q[row, order]])
        velocity = np.concatenate([found.twist[row], v[row, order]])
        tau = pin.rnea(whole.pinocchio, data, position, velocity,
                       np.concatenate([found.acceleration[row], a[row, order]]))
        np.testing.assert_allclose(tau[:6], 0.0, atol=1e-9)
        own = [6 + whole.joint_names.index(name) for name in model.joint_names]
        np.testing.assert_allclose(found.torque[row], tau[own], atol=1e-9)
        pin.computeCentroidalMomentum(whole.pinocchio, data, position, velocity)
        np.testing.assert_allclose(data.hg.vector, 0.0, atol=1e-9)


def test_base_parameters_decide_the_prediction():
    model = diver(np.random.default_rng(1))
    base, rng = closed_form_base_parameters(model), np.random.default_rng(2)
    other = model.prior + base.null_space @ rng.normal(size=base.null_space.shape[1])
    q, v, a = motion(model, 3).sample(np.linspace(0.05, 0.95, 7))
    one, two = (predict_floating(model, x.reshape(-1, 10), q, v, a) for x in (model.prior, other))
    np.testing.assert_allclose(two.torque, one.torque, atol=1e-8)
    np.testing.assert_allclose(two.twist, one.twist, atol=1e-10)


def test_gravity_does_not_matter_in_free_fall():
    model = diver(np.random.default_rng(3))
    falling = load_model(model.urdf, RobotOptions(base="free", wheels=model.options.wheels))
    motions = motion(model, 3).sample(np.linspace(0.05, 0.95, 7))
    one, two = (predict_floating(robot, model.body_prior, *motions) for robot in (model, falling))
    np.testing.assert_allclose(two.torque, one.torque, atol=1e-9)


def test_fixed_base_is_refused():
    model = random_model(np.random.default_rng(0), 2)
    with pytest.raises(ModelError, match=r"cannot float; load it with robot\.base: free"):
        predict_floating(model, model.body_prior, *np.zeros((3, 1, 2)))
