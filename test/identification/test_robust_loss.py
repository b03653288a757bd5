"""Huber's loss: gross outliers do little, clean data loses little, and the minimum is a minimum."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots.random_robots import random_model, random_states

from inertid_ros.config.identification import ESTIMATORS, LeastSquaresOptions
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.least_squares import HUBER_TUNING, least_squares, robust_fit
from inertid_ros.identification.linear_fit import LinearProblem
from inertid_ros.regressors.equations import ForceEquations, dense_equations
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.model import RobotModel


def _robot(seed: int, count: int = 600) -> tuple[RobotModel, Samples, Samples, np.ndarray]:
    """A robot, samples of it with noise and the same with 5 % gross outliers, and the truth."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, 3, branched=False)
    truth = np.concatenate([perturb(model, rng).ravel(), rng.uniform(0.2, 1.0, model.layout.size - 30)])
    samples = random_states(rng, model, count)
    exact = ForceEquations(model).predict(truth, samples)
    level = 0.02 * np.sqrt(np.mean(exact**2, axis=0))
    clean = replace(samples, tau=exact + level * rng.normal(size=samples.q.shape))
    hit = rng.random(samples.q.shape) < 0.05
    spoiled = clean.tau + np.where(hit, 50 * level * (1 + rng.random(hit.shape)), 0.0)
    return model, clean, replace(clean, tau=spoiled), truth


def _error(model: RobotModel, samples: Samples, parameters: np.ndarray, truth: np.ndarray) -> float:
    equations = ForceEquations(model)
    miss = equations.predict(parameters, samples) - equations.predict(truth, samples)
    return float(np.linalg.norm(miss / np.sqrt(np.mean(samples.tau**2, axis=0))))


@pytest.mark.parametrize("seed", range(4))
def test_gross_outliers_do_little(seed):
    model, clean, spoiled, truth = _robot(seed)
    best = _error(model, clean, least_squares(model, [clean]).parameters, truth)
    robust = least_squares(model, [spoiled], ESTIMATORS["huber"])
    assert _error(model, clean, robust.parameters, truth) < 2.5 * best
    assert _error(model, clean, least_squares(model, [spoiled]).parameters, truth) > 8 * best
    assert ((robust.clipped > 0.04) & (robust.clipped < 0.35)).all()
    assert robust.solution.gap <= 1e-8 * (1 + robust.solution.objective)


@pytest.mark.parametrize("seed", range(4))
def test_clean_data_loses_little(seed):
    model, clean, _, truth = _robot(seed)
    best = _error(model, clean, least_squares(model, [clean]).parameters, truth)
    robust = least_squares(model, [clean], ESTIMATORS["huber"])
    assert _error(model, clean, robust.parameters, truth) < 1.3 * best
    np.testing.assert_allclose(robust.clipped, 0.18, atol=0.05)  # of normal noise, 1.345 deviations and beyond


@pytest.mark.parametrize("weighting", ["none", "residual"])
def test_the_minimum_is_where_reweighting_stands_still(weighting):
    """Weighted normal equations with Huber's weights ``min(1, limit / |e|)``, sample by sample, hold at the fit."""
    model, _, spoiled, _ = _robot(5, count=300)
    information = compress(model, [spoiled])
    options = LeastSquaresOptions(weighting=weighting, loss="huber")
    problem = LinearProblem.from_information(ForceEquations(model), information, options)
    fit = robust_fit(problem, [spoiled], information)
    weights = fit.weights**2 / (1 - fit.clipped)
    if weighting == "none":
        np.testing.assert_allclose(weights, 1.0)
    slope, size = np.zeros(model.layout.size), np.zeros(model.layout.size)
    (equations,) = dense_equations(ForceEquations(model), spoiled)
    for joint, (A, b) in enumerate(equations):
        used = information.channels[joint].columns
        residual = b - A @ fit.parameters[used]
        weight = np.minimum(1.0, HUBER_TUNING * fit.scale[joint] / np.abs(residual)) * weights[joint]
        slope[used] += A.T @ (weight * residual)
        size[used] += np.abs(A).T @ np.abs(weight * residual)
    seen = size > 0
    assert np.abs(slope[seen] / size[seen]).max() < 1e-5


def test_stated_deviations_hold_under_outliers():
    """Over repeats, errors of base parameters divided by their stated deviations have the size of one."""
    rng = np.random.default_rng(6)
    model, clean, _, truth = _robot(6, count=250)
    exact = ForceEquations(model).predict(truth, clean)
    level = 0.02 * np.sqrt(np.mean(exact**2, axis=0))
    squares = []
    for _ in range(15):
        noise = np.where(rng.random(exact.shape) < 0.05, 20.0, 1.0) * rng.normal(size=exact.shape)
        options = LeastSquaresOptions(loss="huber", independent=True)
        estimate = least_squares(model, [replace(clean, tau=exact + level * noise)], options)
        B = estimate.base.projection
        miss = B @ (estimate.parameters - truth)
        squares.append(miss @ np.linalg.solve(B @ estimate.covariance @ B.T, miss) / len(miss))
    assert np.mean(squares) == pytest.approx(1.0, abs=0.3)


def test_ranks_are_chosen_under_the_robust_loss():
    model, _, spoiled, truth = _robot(7, count=60)
    noisy = replace(spoiled, tau=spoiled.tau + 50 * (spoiled.tau - ForceEquations(model).predict(truth, spoiled)))
    for rank in ("gcv", "held_out", "variance"):
        estimate = least_squares(model, [noisy], LeastSquaresOptions(loss="huber", rank=rank))
        assert 0 < estimate.rank < estimate.spectrum.count
