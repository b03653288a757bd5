"""Whether data show a drive term of all joints together: rotor inertia, which sensors behind gears do not see."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic import random_motion
from support.robots.random_robots import random_model

from inertid_ros.core.samples import Samples
from inertid_ros.identification.drive_terms import DriveTermFit, DriveTermTest
from inertid_ros.identification.identify import identify
from inertid_ros.identification.prior.constraints import Constraints
from inertid_ros.regressors.force_equations import predict_torque

JOINTS = 4


def _samples(seed: int, rotor: float, noise: float = 0.3, seconds: float = 20.0):
    """Torque behind gears, or before them with rotors of ``rotor`` times the inertia that the joint moves."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, JOINTS, branched=False)
    motion, time = random_motion(rng, JOINTS), np.arange(0, seconds, 0.01)
    q, v, a = motion.sample(time)
    every = np.ones(q.shape, dtype=bool)
    samples = Samples(time, q, v, a, np.zeros_like(q), every, every[:, 0], cutoff_hz=40.0)
    truth = model.prior.copy()
    truth[model.layout.drive("coulomb")] = truth[model.layout.drive("viscous")] = 0.5
    of_bodies = predict_torque(model, truth, samples)
    truth[model.layout.drive("rotor_inertia")] = rotor * of_bodies.std(axis=0) / a.std(axis=0)
    tau = predict_torque(model, truth, samples) + noise * of_bodies.std(axis=0) * rng.normal(size=q.shape)
    return model, replace(samples, tau=tau), truth


def test_noise_alone_passes_as_rarely_as_it_should():
    test, rng = DriveTermTest(np.ones(6), np.full(6, 1e3), np.ones(6)), np.random.default_rng(0)
    passed = [
        test.passed_together(DriveTermFit(np.zeros(0), np.diag(rng.uniform(0.1, 10, 6)), rng.normal(size=6)))
        for _ in range(4000)
    ]
    assert 0.006 < np.mean(passed) < 0.014


@pytest.mark.parametrize("seed", range(4))
def test_rotor_inertia_is_left_out_where_efforts_show_none(seed):
    model, samples, truth = _samples(seed, 0.0)
    estimate = identify(model, [samples])
    rotors = estimate.layout.drive("rotor_inertia")
    assert not estimate.parameters[rotors].any()
    # It may be there all the same.
    assert (estimate.standard_deviation[rotors] > 0).all()
    assert (estimate.bounded_interval[rotors][:, 1] > 0).all()
    held = identify(model, [samples], constraints=Constraints(fixed=model.layout.names[rotors]))
    np.testing.assert_allclose(estimate.bodies, held.bodies, rtol=0.02, atol=2e-3)


@pytest.mark.parametrize("seed", range(4))
def test_rotor_inertia_of_all_joints_stays_where_some_show_it(seed):
    model, samples, truth = _samples(seed, 0.3)
    estimate = identify(model, [samples])
    rotors = estimate.layout.drive("rotor_inertia")
    assert (estimate.parameters[rotors] > 0).all()
    low, high = estimate.bounded_interval[rotors].T
    assert np.mean((low <= truth[rotors]) & (truth[rotors] <= high)) >= 0.75


def test_rotor_inertia_that_a_robot_is_said_to_have_stays():
    model, samples, _ = _samples(0, 0.0, seconds=2.0)
    prior = {name: values.copy() for name, values in model.drive_prior.items()}
    prior["rotor_inertia"][1] = 1e-3
    estimate = identify(replace(model, drive_prior=prior), [samples])
    assert estimate.parameters[estimate.layout.drive("rotor_inertia")].any()
