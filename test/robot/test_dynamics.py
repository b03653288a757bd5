"""Torques of single parameters against inverse dynamics."""

import numpy as np
import pytest
from support.robots.free_base import free_model, random_flight
from support.robots.random_robots import random_model, random_states

from inertid_ros.robot.dynamics import body_torques, rigid_torque


@pytest.mark.parametrize("seed", range(3))
def test_parameters_add_up_to_inverse_dynamics(seed):
    rng = np.random.default_rng(seed)
    for model in (random_model(rng, 5), free_model(seed, 4)):
        samples = random_flight(rng, model, 7) if model.free else random_states(rng, model, 7)
        motion = samples.q, samples.v, samples.a
        each = body_torques(model, np.array(model.options.gravity), motion)
        wanted = rigid_torque(model, model.body_prior, *motion)
        total = np.einsum("jnbp,bp->nj", each, model.body_prior)
        np.testing.assert_allclose(total, wanted, atol=1e-9 * abs(wanted).max())
