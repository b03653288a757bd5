"""Equations of force: their rows, columns of drives and couplings."""

import numpy as np
import pytest
from support.robots.random_robots import random_bodies, random_model, random_states

from inertid_ros.config.robot import DRIVE_TERMS
from inertid_ros.regressors.drives import DriveMotion, drive_columns
from inertid_ros.regressors.equations import ForceEquations, dense_equations
from inertid_ros.regressors.rigid_body_regressor import joint_torque_regressor, moved_bodies
from inertid_ros.robot.layout import Coupling


@pytest.mark.parametrize("seed", range(4))
def test_channel_equations_are_the_whole_prediction(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, joints=5)
    samples = random_states(rng, model, 50)
    parameters = np.concatenate([random_bodies(rng, 5).ravel(), rng.normal(size=model.layout.size - 50)])
    torque = ForceEquations(model).predict(parameters, samples)
    columns = ForceEquations(model).columns
    chunks = list(dense_equations(ForceEquations(model), samples, chunk=17))
    for joint in range(5):
        predicted = np.concatenate([chunk[joint][0] @ parameters[columns[joint]] for chunk in chunks])
        np.testing.assert_allclose(predicted, torque[:, joint], atol=1e-10 * np.abs(torque).max())


def test_rows_are_zero_outside_the_carried_bodies():
    rng = np.random.default_rng(3)
    model = random_model(rng, joints=7)
    samples = random_states(rng, model, 5)
    regressor = joint_torque_regressor(model, samples.q, samples.v, samples.a).reshape(5, 7, 7, 10)
    for joint, bodies in enumerate(moved_bodies(model)):
        outside = np.setdiff1d(np.arange(7), bodies)
        assert not regressor[:, joint, outside].any()
        assert joint in bodies


def test_masked_rows_are_left_out():
    rng = np.random.default_rng(0)
    model = random_model(rng, joints=3)
    samples = random_states(rng, model, 10)
    samples.mask[::2, 1] = False
    (chunk,) = dense_equations(ForceEquations(model), samples)
    assert [len(tau) for _, tau in chunk] == [10, 5, 10]


def test_drive_columns_follow_their_definition():
    motion = DriveMotion(*np.array([[0.3], [-2.0], [5.0], [-0.9], [-0.8]]))
    np.testing.assert_allclose(drive_columns(DRIVE_TERMS, motion), [[5.0, -2.0, -0.9, 1.0, 0.3, -0.8]])
    assert drive_columns((), motion).shape == (1, 0)


def test_a_coupling_acts_on_each_of_its_joints():
    """A coupling of ratios (1, -2) is a joint's own drive after the change of variables s = v0 - 2 v1."""
    rng = np.random.default_rng(1)
    coupling = Coupling("wrist", ("joint0", "joint1"), (1.0, -2.0))
    model = random_model(rng, joints=3, branched=False, couplings=(coupling,), drive_terms=())
    samples = random_states(rng, model, 20)
    parameters = np.concatenate([np.zeros(30), [0.5, 2.0, 3.0]])
    speed, acceleration = (x[:, 0] - 2 * x[:, 1] for x in (samples.v, samples.a))
    torque = 0.5 * acceleration + 2.0 * speed + 3.0 * np.sign(speed)
    expected = np.column_stack([torque, -2 * torque, 0 * torque])
    np.testing.assert_allclose(ForceEquations(model).predict(parameters, samples), expected, atol=1e-12)
    assert model.layout.names[-3:] == ("wrist.rotor_inertia", "wrist.viscous", "wrist.coulomb")
