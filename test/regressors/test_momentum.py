"""Momentum of a tree that floats: regressor against Pinocchio, equations against least squares."""

import numpy as np
import pinocchio as pin
import pytest
from support.base_parameter_spans import angle_between
from support.robots.floating_robots import diver, satellite
from support.robots.random_robots import random_bodies, random_model

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import ModelError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.base_parameters.closed_form import closed_form_base_parameters
from inertid_ros.identification.base_parameters.numeric import base_parameters
from inertid_ros.identification.information.information import compress
from inertid_ros.regressors.equations import dense_equations, equations_of
from inertid_ros.regressors.whole_body_equations import MomentumEquations, momentum_regressor
from inertid_ros.robot.floating_base_motion import BaseMotion
from inertid_ros.robot.model import RobotModel, load_model


def free_model(seed: int, joints: int = 5) -> RobotModel:
    """A random tree whose root link moves."""
    rng = np.random.default_rng(seed)
    text = random_model(rng, joints).urdf.replace(
        '<link name="base"/>',
        '<link name="base"><inertial><mass value="5"/>'
        '<inertia ixx="1" ixy="0" ixz="0" iyy="1.2" iyz="0" izz="0.9"/></inertial></link>')


    return load_model(text, RobotOptions(base="free", drive_terms=(), gravity=(0.0, 0.0, 0.0)))


def states(model: RobotModel, rng: np.random.Generator, count: int) -> Samples:
    pose = np.hstack([rng.normal(size=(count, 3)), rng.normal(size=(count, 4))])
    pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
    q, v = rng.normal(size=(count, model.joints)), rng.normal(size=(count, model.velocities))
    every = np.ones((count, 6), dtype=bool)
    return Samples(np.arange(count) * 0.01, np.hstack([pose, q]), v, np.zeros_like(v), np.zeros((count, 6)), every,
                   every[:, 0])


@pytest.mark.parametrize("seed", range(3))
def test_equals_momentum_of_pinocchio(seed):
    model, rng = free_model(seed), np.random.default_rng(seed + 50)
    samples, bodies = states(model, rng, 20), random_bodies(rng, model.joints + 1)
    kinematics = model.with_bodies(bodies)
    data = kinematics.createData()
    in_base = momentum_regressor(model.tree, samples.v[:, :6], samples.q[:, 7:], samples.v[:, 6:])
    in_world = momentum_regressor(
        model.tree, samples.v[:, :6], samples.q[:, 7:], samples.v[:, 6:], samples.q[:, :7])
    for row, (q, v) in enumerate(zip(samples.q, samples.v, strict=True)):
        pin.computeCentroidalMomentum(kinematics, data, q, v)
        expected = data.hg.vector.copy()
        expected[3:] += np.cross(data.com[0], expected[:3])  # from the centre of mass to the world's origin
        np.testing.assert_allclose(in_world[row] @ bodies.ravel(), expected, atol=1e-10)
        at_base = data.oMi[1].actInv(pin.Force(expected)).vector
        np.testing.assert_allclose(in_base[row] @ bodies.ravel(), at_base, atol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_base_follows_from_momentum(seed):
    rng = np.random.default_rng(seed)
    model = satellite(rng, 4) if seed % 2 else diver(rng)
    q, v = rng.normal(size=(2, 30, model.joints))
    speeds, total = rng.normal(size=(30, len(model.wheels.names))), rng.normal(size=(30, 6))
    base = BaseMotion(model.tree, model.body_prior, model.wheels)
    twist = base.twist(q, v, speeds, total)
    found = momentum_regressor(model.tree, twist, q, v) @ model.body_prior.ravel()
    found[:, 3:] += base.wheel_momentum(q, speeds)
    np.testing.assert_allclose(found, total, atol=1e-10)


@pytest.mark.parametrize("equation_type", ["momentum", "momentum_change"])
def test_what_is_compressed_is_what_is_predicted(equation_type):
    rng = np.random.default_rng(3)
    model = free_model(3, 3)
    equations, samples = equations_of(model, equation_type), states(model, rng, 40)
    x = rng.normal(size=model.layout.size)
    predicted = equations.predict(x, samples)
    for channel, (A, _) in enumerate(next(dense_equations(equations, samples))):
        np.testing.assert_allclose(A @ x[equations.columns[channel]], predicted[:, channel], atol=1e-10)
    if equation_type == "momentum_change":
        np.testing.assert_allclose(predicted.mean(axis=0), 0.0, atol=1e-10)
    information = compress(equations, [samples])
    assert information.names == equations.channels
    errors = np.sqrt(np.mean(predicted**2, axis=0))
    np.testing.assert_allclose(information.rms_error(x), errors, rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_shows_the_base_parameters_of_the_closed_form(seed):
    rng = np.random.default_rng(seed)
    model = (satellite(rng, 5), diver(rng), free_model(seed))[seed]
    information = compress(equations_of(model, "momentum"), [states(model, rng, 60)])
    numeric = base_parameters(model.layout, information.whitened(np.ones(6))[0])
    closed = closed_form_base_parameters(model)
    turning = sum(bool(axis[3:].any()) for axis in model.axes[1:])
    assert closed.count == numeric.count == 10 + 7 * turning + 4 * (model.joints - turning)
    assert angle_between(closed, numeric) < 1e-8


def test_noise_of_rates_becomes_noise_of_momentum():
    rng = np.random.default_rng(0)
    model = diver(rng)
    samples, deviations = states(model, rng, 300), rng.uniform(1e-3, 1e-2, model.velocities)
    samples = Samples(samples.time, samples.q, samples.v, samples.a, samples.tau, samples.mask, samples.usable,
                      noise=deviations)
    equations, x = MomentumEquations(model), model.prior
    noisy = Samples(samples.time, samples.q, samples.v + deviations * rng.normal(size=samples.v.shape), samples.a,
                    samples.tau, samples.mask, samples.usable)
    error = equations.predict(x, noisy) - equations.predict(x, samples)
    np.testing.assert_allclose(np.std(error, axis=0), np.sqrt(equations.noise(samples)), rtol=0.15)


def test_fixed_base_is_refused():
    with pytest.raises(ModelError, match=r"set robot\.base to free"):
        MomentumEquations(random_model(np.random.default_rng(0), 3))
