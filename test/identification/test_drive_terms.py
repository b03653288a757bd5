"""Drive terms that data show, transition speeds and Stribeck speeds."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic import inverse_dynamics, random_motion
from support.robots.random_robots import random_model, random_states

from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.recording import Recording
from inertid_ros.identification.identify import identify
from inertid_ros.identification.solvers.constraints import Constraints
from inertid_ros.identification.term_significance import DriveTermFit, DriveTermTest
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.model import load_model

TERMS = ("viscous", "coulomb", "stribeck", "offset")
FIT = IdentifyOptions(fit_stribeck_speed=True)


def _robot(speeds=(0.03, 0.4, 0.1), stribeck=2.0, noise=0.05):
    rng = np.random.default_rng(2)
    model = random_model(rng, 3, branched=False, drive_terms=TERMS)
    real = model.with_layout(stribeck_speeds=tuple(speeds), without_stribeck=())
    drives = {"viscous": 1.0, "coulomb": 1.5, "stribeck": stribeck, "offset": 0.2}
    truth = np.concatenate([1.2 * model.body_prior.ravel(), *[np.full(3, drives[term]) for term in TERMS]])
    states = random_states(rng, model, 3000)
    slow = replace(states, v=states.v * np.exp(rng.uniform(-4, 0.5, (3000, 1))))

    def measured(samples: Samples) -> Samples:
        tau = ForceEquations(real).predict(truth, samples)
        return replace(samples, tau=tau + noise * rng.normal(size=tau.shape))

    return model, measured(slow), measured(replace(slow, v=slow.v[::-1]))


def test_speeds_are_found_and_kept_with_the_estimate():
    model, train, held_out = _robot()
    fitted, given = identify(model, [train], FIT), identify(model, [train])
    assert fitted.layout.stribeck_speed == pytest.approx([0.03, 0.4, 0.1], rel=0.2)
    assert given.layout.stribeck_speed.tolist() == [0.2, 0.2, 0.2]
    assert fitted.drive("stribeck") == pytest.approx([2.0, 2.0, 2.0], abs=0.1)
    errors = [np.std(estimate.torque(held_out) - held_out.tau, axis=0) for estimate in (fitted, given)]
    assert (errors[0] < 0.06).all() and (errors[1][[0]] > 0.2).all()


def test_without_stribeck_friction_the_speed_stays():
    model, train, _ = _robot(stribeck=0.0)
    assert identify(model, [train], FIT).layout.stribeck_speed.tolist() == [0.2, 0.2, 0.2]


def test_friction_that_is_most_of_the_torque_is_not_taken_for_stribeck_friction():
    model, recording = _recorded(1.0, np.random.default_rng(1), size=10.0)
    estimate = identify(model, [prepare(recording, model)], FIT)
    assert estimate.layout.stribeck_speed == pytest.approx(np.full(3, 0.2), rel=0.1)
    for term, value in (("viscous", 8.0), ("coulomb", 15.0), ("stribeck", 10.0)):
        error = np.abs(estimate.drive(term) - value)
        assert (error < 0.05 * value).all()
        assert (error < 4 * estimate.standard_deviation[estimate.layout.drive(term)]).all()


def test_speeds_of_a_configuration_are_used_and_checked():
    model, *_ = _robot()
    options = RobotOptions(drive_terms=TERMS, stribeck_speeds={"joint1": 0.05})
    assert load_model(model.urdf, options).layout.stribeck_speed.tolist() == [0.2, 0.05, 0.2]
    for speeds, message in (({"joint9": 0.1}, "no such joint"), ({"joint1": 0.0}, "must lie between")):
        with pytest.raises(Exception, match=message):
            load_model(model.urdf, RobotOptions(stribeck_speeds=speeds))


def test_a_robot_without_the_term_says_so():
    rng = np.random.default_rng(0)
    model = random_model(rng, 2, drive_terms=("viscous",))
    samples = random_states(rng, model, 200)
    samples = replace(samples, tau=ForceEquations(model).predict(model.prior, samples))
    with pytest.raises(IdentificationError, match="no Stribeck friction"):
        identify(model, [samples], FIT)


def _recorded(stribeck, rng, size=1.0):
    """A robot with friction by the sign of its true velocity, recorded with noise on positions and torques."""
    model = random_model(rng, 3, branched=False, drive_terms=TERMS)
    q, v, a = random_motion(rng, 3).sample(np.arange(0.0, 30.0, 0.004))
    tau = inverse_dynamics(model, q, v, a)
    tau += size * (0.8 * v + (1.5 + stribeck * np.exp(-np.abs(v) / 0.2)) * np.sign(v))
    noisy = q + 2e-5 * rng.normal(size=q.shape), tau + 0.1 * rng.normal(size=tau.shape)
    return model, Recording(model.joint_names, np.arange(0.0, 30.0, 0.004), *noisy, name="friction")


@pytest.mark.parametrize("fit", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_friction_of_a_recording_is_neither_biased_nor_made_up(seed, fit):
    model, recording = _recorded(0.0, np.random.default_rng(seed))
    estimate = identify(model, [prepare(recording, model)], IdentifyOptions(fit_stribeck_speed=fit))
    assert not estimate.layout.with_stribeck.any() and not estimate.drive("stribeck").any()
    assert (estimate.layout.stribeck_speed == 0.2).all()
    assert estimate.drive("coulomb") == pytest.approx(np.full(3, 1.5), rel=0.02)
    assert estimate.drive("viscous") == pytest.approx(np.full(3, 0.8), rel=0.03)


def test_stribeck_friction_of_a_recording_is_found():
    model, recording = _recorded(1.0, np.random.default_rng(2))
    samples = prepare(recording, model)
    estimate = identify(model, [samples])
    assert estimate.layout.with_stribeck.all()
    for term, value in (("viscous", 0.8), ("coulomb", 1.5), ("stribeck", 1.0)):
        error = np.abs(estimate.drive(term) - value)
        assert (error < 0.1 * value).all()
        assert (error < 4 * estimate.standard_deviation[estimate.layout.drive(term)]).all()
    fitted = identify(model, [samples], IdentifyOptions(fit_stribeck_speed=True))
    assert fitted.layout.stribeck_speed == pytest.approx(np.full(3, 0.2), rel=0.25)
    ratio = fitted.standard_deviation / estimate.standard_deviation
    assert (ratio[estimate.layout.drive("stribeck")] > 1).all(), "a fitted speed makes friction less sure"


def test_the_direction_turns_within_the_noise_of_velocity():
    model, recording = _recorded(0.0, np.random.default_rng(3))
    rng = np.random.default_rng(4)
    noisy = replace(recording, position=recording.position + 2e-3 * rng.normal(size=recording.position.shape))
    quiet, disturbed = (identify(model, [prepare(each, model)]) for each in (recording, noisy))
    assert quiet.layout.transition_speed == pytest.approx(1e-3)
    samples = prepare(noisy, model)
    assert disturbed.layout.transition_speed == pytest.approx(np.sqrt(np.pi / 2) * samples.noise)
    assert (disturbed.layout.transition_speed > 2e-3).all()
    assert disturbed.drive("coulomb") == pytest.approx(np.full(3, 1.5), rel=0.05)
    known = model.with_layout(transition_speeds=(0.01,) * 3)
    assert (identify(known, [samples]).layout.transition_speed == 0.01).all(), "given ones stay"


def test_classical_estimators_take_the_speeds_that_were_found():
    model, train, _ = _robot()
    estimate = identify(model, [train], IdentifyOptions(estimator="ols", fit_stribeck_speed=True))
    assert estimate.layout.stribeck_speed == pytest.approx([0.03, 0.4, 0.1], rel=0.2)


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
    of_bodies = ForceEquations(model).predict(truth, samples)
    truth[model.layout.drive("rotor_inertia")] = rotor * of_bodies.std(axis=0) / a.std(axis=0)
    tau = ForceEquations(model).predict(truth, samples) + noise * of_bodies.std(axis=0) * rng.normal(size=q.shape)
    return model, replace(samples, tau=tau), truth


def test_noise_alone_passes_as_rarely_as_it_should():
    test, rng = DriveTermTest(np.ones(6), np.full(6, 1e3), np.ones(6)), np.random.default_rng(0)
    passed = [
        test.passed_together(DriveTermFit(np.zeros(0), np.diag(rng.uniform(0.1, 10, 6)), rng.normal(size=6)))
        for _ in range(4000)]
    assert 0.006 < np.mean(passed) < 0.014


@pytest.mark.parametrize("seed", range(2))
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


@pytest.mark.parametrize("seed", range(2))
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
