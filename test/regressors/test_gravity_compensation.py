"""Efforts from which a controller took off the gravity of its own model of the robot."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from support.robots.random_robots import random_model, random_states

from inertid_ros.identification.identify import identify
from inertid_ros.regressors.equations import ForceEquations, dense_equations, prediction_variance, without_load
from inertid_ros.robot.body_changes import perturb


def _robot(seed: int, joints: int = 5):
    rng = np.random.default_rng(seed)
    model = random_model(rng, joints).with_layout(compensation=True)
    return rng, model, random_states(rng, model, 300)


@pytest.mark.parametrize("seed", range(4))
def test_efforts_lack_the_gravity_of_the_other_bodies(seed):
    """Against Pinocchio: inverse dynamics of the robot, minus gravity torque of the controller's model."""
    rng, model, states = _robot(seed)
    layout = model.layout
    parameters = np.zeros(layout.size)
    parameters[: layout.inertial_size] = np.concatenate([perturb(model, rng), perturb(model, rng)]).ravel()
    robot, other = map(model.with_bodies, (layout.bodies(parameters), layout.further_bodies(parameters)))
    data, other_data = robot.createData(), other.createData()
    expected = [
        pin.rnea(robot, data, q, v, a) - pin.computeGeneralizedGravity(other, other_data, q)
        for q, v, a in zip(states.q, states.v, states.a, strict=True)]
    equations = ForceEquations(model)
    np.testing.assert_allclose(equations.predict(parameters, states), expected, rtol=1e-9, atol=1e-9)
    rows = next(dense_equations(equations, states, len(states)))
    for channel, (columns, (A, _)) in enumerate(zip(equations.columns, rows, strict=True)):
        np.testing.assert_allclose(A @ parameters[columns], np.array(expected)[:, channel], rtol=1e-9, atol=1e-9)


def test_the_controller_takes_off_the_gravity_of_a_known_load():
    rng, model, states = _robot(1)
    layout, equations = model.layout, ForceEquations(model)
    load = 0.3 * perturb(model, rng)
    loaded = model.prior.copy()
    for part in (layout.bodies(loaded), layout.further_bodies(loaded)):
        part += load
    with_load = replace(states, tau=equations.predict(loaded, states))
    np.testing.assert_allclose(
        without_load(model, load, with_load).tau, equations.predict(model.prior, states), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_masses_follow_from_accelerations(seed):
    """The torque of the robot is found with its gravity, as far as stated, whatever the controller takes off."""
    rng, model, states = _robot(seed)
    layout, equations = model.layout, ForceEquations(model)
    drives = rng.uniform(0.2, 1.0, layout.size - layout.inertial_size)
    truth = np.concatenate([perturb(model, rng).ravel(), perturb(model, rng).ravel(), drives])
    effort = equations.predict(truth, states)
    noise = 0.01 * np.sqrt(np.mean(effort**2, axis=0)) * rng.normal(size=effort.shape)
    estimate = identify(model, [replace(states, tau=effort + noise)])
    assert estimate.consistent
    held_out = random_states(rng, model, 200)
    found, true = (
        equations.predict(layout.without_compensation(values), held_out) for values in (estimate.parameters, truth))
    variance = prediction_variance(equations, layout.without_compensation(estimate.covariance), held_out)
    assert np.linalg.norm(found - true) < 1.5 * np.sqrt(variance.sum())
    given = equations.predict(layout.without_compensation(model.prior), held_out)
    assert np.linalg.norm(found - true) < 0.5 * np.linalg.norm(given - true)
    z = (estimate.bodies - layout.bodies(truth)) / estimate.standard_deviation[: layout.body_size].reshape(-1, 10)
    assert np.abs(z[:, 0]).max() < 4.0
