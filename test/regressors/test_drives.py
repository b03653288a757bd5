"""Friction is one formula: of the regressor, of validation and of controllers."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots.random_robots import random_model, random_states

from inertid_ros.regressors.drives import dry_friction, friction_direction, friction_torque
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.layout import Coupling

TERMS = ("viscous", "coulomb", "stribeck")


def test_the_direction_turns_within_the_transition_speed():
    speed = np.array([[0.0, 0.0], [0.1, 0.1], [-5.0, -5.0]])
    direction = friction_direction(speed, np.array([0.0, 0.1]))
    assert direction.tolist() == [[0.0, 0.0], [1.0, np.tanh(1.0)], [-1.0, -1.0]]


def test_stribeck_friction_fades_with_speed():
    speed = np.array([0.0, 0.2, -0.2, 100.0])
    dry = dry_friction(speed, np.array(1.0), np.array(0.5), np.array(0.2))
    assert dry == pytest.approx([1.5, 1 + 0.5 / np.e, 1 + 0.5 / np.e, 1.0])


def test_the_regressor_predicts_what_controllers_compute():
    rng = np.random.default_rng(0)
    coupling = Coupling("wrist", ("joint0", "joint2"), (1.0, -0.5))
    model = random_model(rng, 3, drive_terms=TERMS, couplings=(coupling,))
    model = model.with_layout(stribeck_speeds=(0.1, 0.5, 2.0), without_stribeck=model.joint_names[1:2])
    model = model.with_layout(transition_speeds=(0.3, 0.0, 0.4))
    terms = {term: rng.uniform(1.0, 2.0, 3) for term in TERMS}
    wrist = {"rotor_inertia": 0.0, "viscous": 0.7, "coulomb": 0.9}
    parameters = np.concatenate([np.zeros(30), *terms.values(), list(wrist.values())])
    samples = random_states(rng, model, 50)
    terms["stribeck"] = terms["stribeck"] * [1.0, 0.0, 1.0]
    layout = model.layout
    expected = friction_torque(samples.v, terms, layout.stribeck_speed, layout.transition_speed[:3])
    speed = samples.v @ layout.coupling_ratios[0]
    coupled = 0.7 * speed + 0.9 * np.tanh(speed / np.hypot(0.3, 0.5 * 0.4))
    expected += np.outer(coupled, layout.coupling_ratios[0])
    equations = ForceEquations(model)
    assert equations.predict(parameters, samples) == pytest.approx(expected, abs=1e-12)
    assert equations.predict(parameters, replace(samples, v=-samples.v)) == pytest.approx(-expected, abs=1e-12)
