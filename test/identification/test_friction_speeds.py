"""The speed of Stribeck friction is found where motion shows it, and left alone where it does not."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots.random_robots import random_model, random_states

from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.identify import identify
from inertid_ros.regressors.force_equations import predict_torque
from inertid_ros.robot.model import ModelOptions, load_model

TERMS = ("viscous", "coulomb", "stribeck", "offset")
FIT = IdentifyOptions(fit_stribeck_speed=True)


def _robot(speeds=(0.03, 0.4, 0.1), stribeck=2.0, noise=0.05):
    rng = np.random.default_rng(2)
    model = random_model(rng, 3, branched=False, drive_terms=TERMS)
    real = model.with_stribeck_speeds(np.array(speeds))
    drives = {"viscous": 1.0, "coulomb": 1.5, "stribeck": stribeck, "offset": 0.2}
    truth = np.concatenate([1.2 * model.body_prior.ravel(), *[np.full(3, drives[term]) for term in TERMS]])
    states = random_states(rng, model, 3000)
    slow = replace(states, v=states.v * np.exp(rng.uniform(-4, 0.5, (3000, 1))))

    def measured(samples: Samples) -> Samples:
        tau = predict_torque(real, truth, samples)
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


def test_speeds_of_a_configuration_are_used_and_checked():
    model, *_ = _robot()
    options = ModelOptions(drive_terms=TERMS, stribeck_speeds={"joint1": 0.05})
    assert load_model(model.urdf, options).layout.stribeck_speed.tolist() == [0.2, 0.05, 0.2]
    for speeds, message in (({"joint9": 0.1}, "no such joint"), ({"joint1": 0.0}, "not a positive number")):
        with pytest.raises(Exception, match=message):
            load_model(model.urdf, ModelOptions(stribeck_speeds=speeds))


def test_a_robot_without_the_term_says_so():
    rng = np.random.default_rng(0)
    model = random_model(rng, 2, drive_terms=("viscous",))
    samples = random_states(rng, model, 200)
    samples = replace(samples, tau=predict_torque(model, model.prior, samples))
    with pytest.raises(IdentificationError, match="no Stribeck friction"):
        identify(model, [samples], FIT)
