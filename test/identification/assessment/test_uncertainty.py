"""Uncertainty and intervals of estimates."""

from dataclasses import replace

import numpy as np
import pytest
import scipy
from support.recordings.synthetic_calibration import calibrated_case
from support.robots.imperial_units import in_pounds_and_feet
from support.robots.random_robots import random_model, random_states

from inertid_ros.config.identification import LeastSquaresOptions
from inertid_ros.core.inertial_parameters import from_pseudo_inertia, pseudo_inertia
from inertid_ros.core.samples import Samples
from inertid_ros.data.files.loading import load_recording
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.identification.assessment.estimate import (
    COMBINED,
    IDENTIFIED,
    NORMAL_95,
    PARTLY,
    PRIOR,
    Estimate,
    identifiability,
    log_normal_interval,
    with_identifiability,
)
from inertid_ros.identification.identify import identify
from inertid_ros.identification.least_squares import least_squares
from inertid_ros.identification.solvers.coordinates import prior_coordinates, prior_covariance_root
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.model import RobotModel, load_model

TERMS = ("rotor_inertia", "viscous", "coulomb", "offset", "stiffness")
PLAIN = LeastSquaresOptions(independent=True)


def _robot(seed: int, count: int, noise: float, joints: int = 3) -> tuple[RobotModel, Samples, np.ndarray]:
    """A robot and samples of it with noise relative to each joint's torque."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, joints, branched=False, drive_terms=TERMS)
    truth = np.concatenate([perturb(model, rng).ravel(), rng.uniform(0.2, 1.0, model.layout.size - 10 * joints)])
    samples = random_states(rng, model, count)
    exact = ForceEquations(model).predict(truth, samples)
    level = noise * np.sqrt(np.mean(exact**2, axis=0))
    return model, replace(samples, tau=exact + level * rng.normal(size=exact.shape)), truth


def _estimate(model: RobotModel, samples: Samples) -> Estimate:
    return least_squares(model, [samples], PLAIN)


@pytest.mark.parametrize("seed", range(4))
def test_more_data_never_lower_a_share(seed):
    model, samples, _ = _robot(seed, 200, 0.5)
    once = _estimate(model, samples)
    fourfold = with_identifiability(replace(once, effective_counts=4 * once.effective_counts))
    for more, less in zip(fourfold.identifiability, once.identifiability, strict=True):
        assert more.share >= less.share


@pytest.mark.parametrize("seed", range(4))
def test_identifiability_follows_the_structure_where_data_is_good(seed):
    """Hardly any noise: a parameter is identified if and only if it is a base parameter by itself."""
    model, samples, _ = _robot(seed, 400, 1e-6)
    estimate = _estimate(model, samples)
    base = estimate.base
    for column, entry in enumerate(estimate.identifiability):
        assert entry.parameter == model.layout.names[column]
        if column in base.alone:
            assert entry.verdict == IDENTIFIED and entry.share > 0.99
            assert entry.combinations == (entry.parameter,)
        elif column in base.dependent[~base.regrouping.any(axis=0)]:
            assert (entry.verdict, entry.combinations, entry.share) == (PRIOR, (), 0.0)
        else:
            assert entry.verdict == (COMBINED if entry.combinations else PRIOR)
            assert all(entry.parameter in combination for combination in entry.combinations)
    combined = [s for s in estimate.identifiability if s.verdict == COMBINED]
    assert combined
    assert str(combined[0]) == f"{combined[0].parameter}: {COMBINED} {combined[0].combinations[0]}"


def test_hopeless_noise_leaves_everything_at_the_prior():
    model, samples, _ = _robot(2, 60, 300.0)
    terms = [
        s for s in _estimate(model, samples).identifiability if not s.parameter.endswith("offset")
    ]  # the prior leaves offsets of any size
    assert {entry.verdict for entry in terms} == {PRIOR}


def test_a_drive_that_stands_still_is_left_at_the_prior():
    model, samples, truth = _robot(3, 400, 0.0)
    still = replace(samples, v=samples.v * [1, 1, 0], a=samples.a * [1, 1, 0])
    noise = np.random.default_rng(3).normal(size=still.tau.shape)
    still = replace(still, tau=ForceEquations(model).predict(truth, still) + 1e-3 * noise)
    verdicts = {s.parameter: s.verdict for s in _estimate(model, still).identifiability}
    for term in ("rotor_inertia", "viscous", "coulomb"):
        assert verdicts[f"joint2.{term}"] == PRIOR
    assert verdicts["joint1.viscous"] == IDENTIFIED


@pytest.mark.parametrize(("share", "verdict"), [(0.95, IDENTIFIED), (0.89, PARTLY), (0.51, PARTLY), (0.49, PRIOR)])
def test_identified_means_that_data_carries_nine_tenths(share, verdict):
    model, samples, _ = _robot(1, 200, 0.1)
    base = _estimate(model, samples).base
    column, ones = base.alone[0], np.ones(model.layout.size)
    shares = np.where(base.independent == column, share, 0.0)
    found = identifiability(base, shares, ones, 0.2 * ones, 0.0 * ones)[column]
    assert (found.verdict, found.share, found.relative_deviation) == (verdict, share, 0.2)


def test_what_moved_far_is_not_left_at_the_prior():
    """A body drawn ten prior deviations away is named so, however little of it the data determines."""
    model, samples, _ = _robot(2, 60, 300.0)
    base, ones = _estimate(model, samples).base, np.ones(model.layout.size)
    moved = np.zeros(model.layout.size)
    moved[base.alone[0]] = -10.0
    found = identifiability(base, np.zeros(base.count), ones, ones, moved)[base.alone[0]]
    assert found.verdict == PARTLY
    assert str(found) == f"{found.parameter}: {PARTLY} (10 prior deviations from the prior)"


def test_moves_are_counted_in_prior_deviations():
    model, samples, _ = _robot(0, 400, 1e-4)
    heavy = replace(samples, tau=3.0 * samples.tau)
    known = identify(model, [heavy]).identifiability
    assert max(abs(parameter.moved) for parameter in known if parameter.parameter.startswith("link")) > 4.0
    assert all(parameter.verdict != PRIOR for parameter in known if abs(parameter.moved) >= 3.0)


@pytest.mark.parametrize("seed", range(3))
def test_units_change_no_entry(seed):
    model, samples, _ = _robot(seed, 100, 0.5)
    other, converted, _ = in_pounds_and_feet(model, samples)
    entries, again = _estimate(model, samples).identifiability, _estimate(other, converted).identifiability
    assert [s.verdict for s in again] == [s.verdict for s in entries]
    np.testing.assert_allclose([s.share for s in again], [s.share for s in entries], atol=1e-6)


def test_real_arm(datasets):
    """KUKA LWR4: the first link turns about the vertical; gravity shows first moments; motion is too alike for all."""
    folder = datasets / "kuka_lwr4"
    model = load_model(folder / "kuka_lwr4.urdf")
    samples = [prepare(load_recording(folder / f"run{run}.npz"), model) for run in (1, 3)]
    verdicts = {s.parameter: s.verdict for s in identify(model, samples).identifiability}
    assert all(verdicts[f"lwr_1_link.{name}"] == PRIOR for name in ("m", "mcx", "mcy", "mcz", "Ixx", "Iyy"))
    assert verdicts["lwr_2_link.mcz"] == COMBINED
    assert verdicts["lwr_7_link.mcy"] == verdicts["lwr_0_joint.offset"] == IDENTIFIED
    assert {verdicts["lwr_4_link.mcx"], verdicts["lwr_0_joint.coulomb"]} <= {PARTLY, IDENTIFIED}
    assert verdicts["lwr_3_link.Ixy"] == PRIOR


def drawn_from_prior(bodies, prior_spread, rng):
    """Bodies whose geodesic distance to the given ones is normal in every direction."""
    direction = rng.normal(size=(len(bodies), 4, 4))
    direction = np.triu(direction, 1) + np.triu(direction, 1).swapaxes(1, 2) + np.sqrt(2) * (np.eye(4) * direction)
    root = np.linalg.cholesky(pseudo_inertia(bodies))
    return from_pseudo_inertia(root @ scipy.linalg.expm(prior_spread * direction) @ root.swapaxes(1, 2))


@pytest.mark.parametrize("prior_spread", [0.1, 0.3])
def test_bodies_that_the_data_leave_open_are_within_their_intervals(prior_spread):
    estimate = calibrated_case()[1].estimate
    coordinates = prior_coordinates(estimate.model, estimate.information)
    root = prior_covariance_root(coordinates, prior_spread)
    prior = coordinates.physical(coordinates.prior)
    unknown = replace(estimate, parameters=prior, covariance=root @ root.T)
    positive = estimate.layout.positive_of_bodies
    low, high = unknown.interval[positive].T
    rng = np.random.default_rng(0)
    true = np.array([drawn_from_prior(estimate.layout.bodies(prior), prior_spread, rng) for _ in range(400)])
    true = true.reshape(400, -1)[:, positive]
    outside = np.mean((true < low) | (true > high))
    assert 0.03 < outside < 0.09
    # Of a normal distribution more are, and all of them above.
    half = NORMAL_95 * unknown.standard_deviation[positive]
    assert np.mean(np.abs(true - prior[positive]) > half) > 1.1 * outside


def test_small_deviations_make_the_normal_interval():
    value, deviation = np.array([2.0, 0.3]), np.array([2e-3, 3e-5])
    normal = value[:, None] + NORMAL_95 * deviation[:, None] * [-1, 1]
    np.testing.assert_allclose(log_normal_interval(value, deviation), normal, rtol=1e-5)


def test_what_is_positive_has_a_positive_interval():
    assert (log_normal_interval(np.full(4, 0.1), np.array([0.01, 0.1, 1.0, 10.0])) > 0).all()
