"""Point-mass perturbation of a robot's bodies."""

import numpy as np
import pinocchio as pin
import pytest
from support.robots.example_robots import load_with_locks
from support.robots.random_robots import random_bodies, random_model

from inertid_ros.config.simulation import PerturbationOptions
from inertid_ros.core.inertial_parameters import is_consistent, mass_com_inertia, pseudo_inertia
from inertid_ros.robot.body_changes import perturb, perturb_body, write_urdf
from inertid_ros.robot.model import load_model


@pytest.mark.parametrize("uncertainty", [0.1, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("points", [1, 4, 30])
def test_every_body_stays_possible_and_within_its_mass_bound(uncertainty, points):
    rng = np.random.default_rng(points)
    options = PerturbationOptions(points, uncertainty)
    for pi in random_bodies(rng, 40):
        perturbed = perturb_body(pi, rng, options)
        assert is_consistent(perturbed)
        assert abs(perturbed[0] / pi[0] - 1) <= uncertainty


def test_what_is_added_lies_in_the_ellipsoid_of_the_body():
    rng = np.random.default_rng(0)
    pi = random_bodies(rng, 1)[0]
    mass, com, inertia = mass_com_inertia(pi)
    shape = np.linalg.inv(5 * (0.5 * np.trace(inertia) * np.eye(3) - inertia) / mass)
    radii = []
    for _ in range(400):
        change = pseudo_inertia(perturb_body(pi, rng, PerturbationOptions(1, 0.3)) - pi)
        offset = change[:3, 3] / change[3, 3] - com
        radii.append(np.sqrt(offset @ shape @ offset))
    assert max(radii) <= 1 + 1e-6
    # Uniform in the volume: the mean radius of a ball is 3/4.
    assert np.mean(radii) == pytest.approx(0.75, abs=0.04)


def test_the_mass_change_is_uniform():
    rng = np.random.default_rng(1)
    pi = random_bodies(rng, 1)[0]
    change = [perturb_body(pi, rng, PerturbationOptions(8, 0.2))[0] / pi[0] - 1 for _ in range(500)]
    assert np.mean(change) == pytest.approx(0.0, abs=0.02)
    assert np.std(change) == pytest.approx(0.2 / np.sqrt(3), rel=0.1)


def test_the_same_seed_gives_the_same_bodies_and_another_seed_others():
    model = random_model(np.random.default_rng(2), 5)
    first, again, other = (perturb(model, np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert np.array_equal(first, again) and not np.allclose(first, other)


def test_a_robot_with_locked_fingers_can_be_written(robots):
    model = load_with_locks(robots / "panda_description" / "urdf" / "panda.urdf", 0.02)
    for seed in range(10):
        bodies = perturb(model, np.random.default_rng(seed), PerturbationOptions(mass_uncertainty=0.9))
        again = load_model(write_urdf(model, bodies), model.options)
        assert np.allclose(again.body_prior, bodies, rtol=1e-12, atol=1e-15)


def test_no_uncertainty_changes_nothing():
    model = random_model(np.random.default_rng(5), 3)
    bodies = perturb(model, np.random.default_rng(0), PerturbationOptions(mass_uncertainty=0.0))
    assert np.allclose(bodies, model.body_prior, rtol=0, atol=1e-12)


def test_gravity_torque_changes_noticeably():
    model = random_model(np.random.default_rng(6), 6)
    changed = model.with_bodies(perturb(model, np.random.default_rng(7)))
    q = np.random.default_rng(8).uniform(-2, 2, 6)
    before = pin.computeGeneralizedGravity(model.pinocchio, model.pinocchio.createData(), q)
    after = pin.computeGeneralizedGravity(changed, changed.createData(), q)
    assert np.linalg.norm(after - before) > 0.02 * np.linalg.norm(before)
