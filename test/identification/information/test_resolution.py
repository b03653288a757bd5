"""Resolution of channels: what the preparation leaves where model and sensors are perfect."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots.random_robots import random_urdf

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.samples import Samples
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.recording import Recording
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.data_checks import resolution
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.solvers.coordinates import prior_coordinates, prior_covariance_root
from inertid_ros.regressors.equations import ForceEquations, equations_of
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.model import load_model

RATE_HZ = 250.0


@pytest.fixture(scope="module")
def recorded():
    """A robot, what it really is, and 12 s of exact positions and torques."""
    rng = np.random.default_rng(2)
    model = load_model(random_urdf(rng, 3, branched=False), RobotOptions(drive_terms=("viscous", "coulomb", "offset")))
    parameters = np.concatenate([perturb(model, rng).ravel(), np.zeros(9)])
    time = np.arange(0.0, 12.0, 1 / RATE_HZ)
    omega = 2 * np.pi * rng.uniform(0.1, 0.6, (4, 3))
    angle = time[:, None, None] * omega + rng.uniform(0, 6, (4, 3))
    q, v, a = np.sin(angle).sum(1), (omega * np.cos(angle)).sum(1), -(omega**2 * np.sin(angle)).sum(1)
    every = np.ones(q.shape, dtype=bool)
    tau = ForceEquations(model).predict(parameters, Samples(time, q, v, a, np.zeros_like(q), every, every[:, 0]))
    return model, parameters, Recording(model.joint_names, time, q, tau)


def test_exact_data_resolve_a_millionth(recorded):
    model, _, recording = recorded
    samples = prepare(recording, model)
    least = resolution(equations_of(model), [samples])
    assert (least > 0).all()
    assert (least < 1e-4 * samples.tau.std(axis=0)).all()


def test_rounded_positions_are_the_torque_of_their_accelerations(recorded):
    """About half the residual of the true parameters, which is what is sure of it."""
    model, parameters, recording = recorded
    samples = prepare(replace(recording, position=np.round(recording.position, 3)), model)
    residual = (samples.tau - ForceEquations(model).predict(parameters, samples))[samples.mask.all(axis=1)]
    ratio = resolution(equations_of(model), [samples]) / np.sqrt(np.mean(residual**2, axis=0))
    assert (ratio > 0.2).all()
    assert (ratio < 1.0).all()


def test_noise_of_efforts_counts_by_itself(recorded):
    model, _, recording = recorded
    samples = replace(prepare(recording, model), effort_noise=np.array([6.0, 0.0, 1.0]))
    assert resolution(equations_of(model), [samples])[[0, 2]] == pytest.approx([3.0, 0.5], rel=1e-3)


def test_the_strongest_joint_says_nothing_of_the_others(recorded):
    """A channel's least deviation does not depend on how strong others are."""
    model, _, recording = recorded
    samples = prepare(recording, model)
    effort_noise = np.array([100.0, 0.0, 0.0])
    alone, beside = (
        resolution(equations_of(model), [each]) for each in (samples, replace(samples, effort_noise=effort_noise)))
    np.testing.assert_allclose(alone[1:], beside[1:])


def test_samples_that_were_not_filtered_have_none(recorded):
    model, _, recording = recorded
    samples = replace(prepare(recording, model), cutoff_hz=0.0)
    assert not resolution(equations_of(model), [samples]).any()


def test_data_without_noise_end_at_the_truth(recorded):
    model, parameters, recording = recorded
    samples = prepare(recording, model)
    estimate = identify(model, [samples])
    equations = ForceEquations(model)
    error = equations.predict(estimate.parameters, samples) - equations.predict(parameters, samples)
    assert np.linalg.norm(error) < 1e-5 * np.linalg.norm(samples.tau)
    base = estimate.base.projection
    sizes = np.linalg.norm(prior_covariance_root(prior_coordinates(model, compress(model, [samples])), 1.0), axis=1)
    scale = np.sqrt(base**2 @ sizes**2)
    assert (np.abs(base @ (estimate.parameters - parameters)) < 1e-5 * scale).all()
