"""The relative regularizer: every parameter known up to some per cent of its size, bodies kept in the cone."""

from dataclasses import replace

import attrs
import numpy as np
import pytest
from support.robots.free_base import free_model, random_flight

from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.identification.identify import IdentifyOptions, identify
from inertid_ros.regressors.force_equations import predict_torque

SIZE = 0.3


def _case(seed: int):
    """A robot whose every parameter is off by up to a share, some beyond what a body can have; few noisy samples."""
    rng, truth = np.random.default_rng(seed), free_model(seed, 4, drive_terms=())
    samples = random_flight(rng, truth, 30)
    tau = predict_torque(truth, truth.prior, samples)
    samples = replace(samples, tau=tau + 0.3 * tau.std(axis=0) * rng.normal(size=tau.shape))
    prior = truth.body_prior * (1 + rng.uniform(-SIZE, SIZE, truth.body_prior.shape))
    return truth, replace(truth, body_prior=prior), samples


def _error(bodies: np.ndarray, truth: np.ndarray) -> float:
    given = truth != 0
    return float(np.mean(np.abs(bodies[given] / truth[given] - 1)))


@pytest.mark.parametrize("seed", range(3))
def test_it_comes_nearer_to_the_truth_in_every_parameter(seed):
    truth, given, samples = _case(seed)
    prior_spread = SIZE / np.sqrt(3)
    relative = identify(given, [samples], IdentifyOptions(regularizer="relative", prior_spread=prior_spread))
    entropic = identify(given, [samples])
    assert relative.consistent and relative.solution.status == "optimal"
    errors = [_error(bodies, truth.body_prior) for bodies in (relative.bodies, given.body_prior, entropic.bodies)]
    assert errors[0] < min(errors[1:])


def test_both_solvers_agree():
    _, given, samples = _case(1)
    assert not is_consistent(given.body_prior).all()
    options = IdentifyOptions(regularizer="relative", prior_spread=0.2)
    ours = identify(given, [samples], options)
    theirs = identify(given, [samples], attrs.evolve(options, solver="clarabel"))
    np.testing.assert_allclose(ours.parameters, theirs.parameters, rtol=2e-3, atol=2e-4 * np.abs(ours.parameters).max())
