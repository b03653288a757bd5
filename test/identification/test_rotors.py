"""Rotors as bodies are identified, bounded and reported beside the links."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots.cheetah_leg import JOINTS, LINKS, ROTORS, bodies, bounds, leg_model, read_leg
from support.robots.random_robots import random_states

from inertid_ros.identification.identify import identify
from inertid_ros.identification.solvers.constraints import Constraints
from inertid_ros.regressors.equations import ForceEquations


@pytest.fixture(scope="module")
def leg(datasets):
    return read_leg(datasets)


def _measured(leg, count: int = 2000, noise: float = 0.2):
    """The leg with its CAD prior, and noisy samples of the leg as it was published."""
    model, rng = leg_model(leg), np.random.default_rng(0)
    truth = np.concatenate([bodies(leg, "identified_cheetah_software").ravel(), [0.5, 0.4, 0.3], [3.1, 1.3, 0.9]])
    samples = random_states(rng, model, count)
    tau = ForceEquations(model).predict(truth, samples)
    return model, replace(samples, tau=tau + noise * rng.normal(size=tau.shape)), truth


def test_links_rotors_and_friction_are_identified_together(leg):
    model, samples, truth = _measured(leg)
    estimate = identify(model, [samples])
    rotors = model.layout.further_bodies(estimate.parameters)
    assert estimate.bodies.shape == rotors.shape == (3, 10)
    assert estimate.consistent
    tested = replace(random_states(np.random.default_rng(1), model, 200))
    expected = ForceEquations(model).predict(truth, tested)
    assert np.linalg.norm(estimate.torque(tested) - expected) < 0.01 * np.linalg.norm(expected)
    np.testing.assert_allclose(estimate.drive("coulomb"), [3.1, 1.3, 0.9], atol=0.05)
    gear = model.layout.rotors[0].ratio
    spin = rotors[0, 4], truth[30 + 4]  # about the axis of the first rotor, which rests on the base
    assert spin[0] * gear**2 == pytest.approx(spin[1] * gear**2, abs=0.02)


def test_rotors_take_constraints_like_links(leg):
    model, samples, _ = _measured(leg, count=300)
    inside = bounds(leg)
    constraints = Constraints(inside=inside, mass={"hip_rotor": (0.3, 0.45)}, fixed=("knee_rotor.m",))
    estimate = identify(model, [samples], constraints=constraints)
    rotors = model.layout.further_bodies(estimate.parameters)
    assert 0.3 - 1e-6 <= rotors[1, 0] <= 0.45 + 1e-6
    assert rotors[2, 0] == pytest.approx(0.5, rel=1e-7)
    every = model.layout.all_bodies(estimate.parameters)
    for name, pi in zip(model.layout.body_names, every, strict=True):
        assert inside[name][0].row @ pi > -1e-7


def test_names_say_what_is_what(leg):
    model, _, _ = _measured(leg, count=1)
    assert model.link_names == LINKS
    assert model.layout.body_names == LINKS + ROTORS
    assert model.joint_names == JOINTS
