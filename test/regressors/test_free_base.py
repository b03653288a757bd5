"""Equations of force on a free base: against Pinocchio on random trees and on humanoids."""

import re
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from support.robots.free_base import free_model, free_urdf, random_flight
from support.robots.random_robots import random_bodies

from inertid_ros.config.robot import ContactOptions, RobotOptions
from inertid_ros.core.errors import ModelError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.base_parameters.closed_form import (
    closed_form_base_parameters,
    structural_base_parameters,
)
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information import compress
from inertid_ros.regressors.equations import ForceEquations, dense_equations
from inertid_ros.regressors.rigid_body_regressor import joint_torque_regressor
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.rotors import Rotor

HUMANOIDS = (
    "talos_data/robots/talos_full_v2.urdf", "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "anymal_b_simple_description/robots/anymal.urdf", "simple_humanoid_description/urdf/simple_humanoid.urdf",
    "human_description/robots/human.urdf")


def _rnea(model: RobotModel, bodies: np.ndarray, samples: Samples) -> np.ndarray:
    kinematics = model.with_bodies(bodies)
    data = kinematics.createData()
    return np.array([pin.rnea(kinematics, data, *row) for row in zip(samples.q, samples.v, samples.a, strict=True)])


@pytest.mark.parametrize("seed", range(3))
def test_generalized_force_of_random_trees_is_that_of_pinocchio(seed):
    rng, model = np.random.default_rng(seed), free_model(seed, 1 + 2 * seed)
    samples, bodies = random_flight(rng, model, 20), random_bodies(rng, len(model.link_names))
    expected = _rnea(model, bodies, samples)
    regressor = joint_torque_regressor(model, samples.q, samples.v, samples.a)
    np.testing.assert_allclose(regressor @ bodies.ravel(), expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
    parameters = np.zeros(model.layout.size)
    parameters[: model.layout.body_size] = bodies.ravel()
    np.testing.assert_allclose(ForceEquations(model).predict(parameters, samples), expected, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("name", HUMANOIDS)
def test_base_rows_and_all_rows_agree_with_pinocchio_on_humanoids(name, robots):
    held = {"gripper_left_joint": 0.0, "gripper_right_joint": 0.0} if "talos" in name else {}
    text = (robots / name).read_text()
    if "human_desc" in name:  # ball joints with massless links between their axes, to which it gives some mass
        inertial = '<inertial><mass value="0.2"/><inertia ixx="1e-3" ixy="0" ixz="0" iyy="1e-3" iyz="0" izz="1e-3"/>'
        text = re.sub(r'(<link name="\w*_virtual\w*")\s*/>', rf"\1>{inertial}</inertial></link>", text)
    model = load_model(text, RobotOptions(held, base="free"))
    samples = random_flight(np.random.default_rng(1), model, 8)
    expected = _rnea(model, model.body_prior, samples)
    regressor = joint_torque_regressor(model, samples.q, samples.v, samples.a)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(regressor @ model.body_prior.ravel() / scale, expected / scale, atol=1e-10)
    for row in (0, len(samples) - 1):
        data = model.pinocchio.createData()
        theirs = pin.computeJointTorqueRegressor(model.pinocchio, data, samples.q[row], samples.v[row], samples.a[row])
        np.testing.assert_allclose(regressor[row], theirs, rtol=1e-10, atol=1e-10 * np.abs(theirs).max())


@pytest.mark.parametrize("seed", range(3))
def test_a_channel_has_the_same_equations_dense_and_compressed(seed):
    rng = np.random.default_rng(seed)
    model = free_model(seed, 5, rotors=(Rotor("motor", "joint1", "base", 30.0, 0.2, (1e-4, 0, 0, 1e-4, 0, 1e-4)),))
    samples = random_flight(rng, model, 400)
    truth = rng.normal(size=model.layout.size)
    equations = ForceEquations(model)
    tau = equations.predict(truth, samples)
    mask = rng.random(tau.shape) < 0.8
    samples = replace(samples, tau=tau, mask=mask)
    for columns, (A, b) in zip(equations.columns, next(dense_equations(equations, samples)), strict=True):
        np.testing.assert_allclose(A @ truth[columns], b, rtol=1e-8, atol=1e-8 * np.abs(tau).max())
    information = compress(equations, [samples])
    np.testing.assert_array_equal(information.counts, mask.sum(axis=0))
    assert information.relative_error(truth) < 1e-10


@pytest.mark.parametrize("seed", range(3))
def test_base_parameters_in_closed_form_and_by_numbers_agree(seed):
    model = free_model(seed, 4)
    closed, numeric = closed_form_base_parameters(model), structural_base_parameters(model)
    assert closed.count == numeric.count
    np.testing.assert_array_equal(closed.independent, numeric.independent)


def test_base_rows_alone_identify_the_total_mass_and_leave_the_drives_alone():
    model = free_model(2, 4)
    rng = np.random.default_rng(2)
    samples = random_flight(rng, model, 500)
    truth = model.prior.copy()
    truth[: model.layout.body_size] = (1.3 * model.body_prior).ravel()
    tau = ForceEquations(model).predict(truth, samples)
    base_only = samples.mask.copy()
    base_only[:, 6:] = False
    tau[:, 6:] = 0.0
    samples = replace(samples, tau=tau + 1e-3 * base_only, mask=base_only, measured=base_only)
    estimate = identify(model, [samples])
    assert estimate.consistent
    assert estimate.bodies[:, 0].sum() == pytest.approx(truth[: model.layout.body_size : 10].sum(), rel=1e-3)
    assert estimate.train_relative_error < 1e-3


def test_a_free_base_has_another_hash_and_ten_parameters_of_its_own():
    fixed, free = load_model(free_urdf(1, 3)), free_model(1, 3)
    assert fixed.hash != free.hash and fixed.joint_names == free.joint_names
    assert free.link_names == ("base", *fixed.link_names)
    assert (free.positions, free.velocities) == (10, 9)


def test_a_contact_in_an_unknown_frame_is_refused():
    with pytest.raises(ModelError, match="the robot has no frame 'foot'; its links are base"):
        free_model(1, 3, contacts={"sole": ContactOptions("foot")})
