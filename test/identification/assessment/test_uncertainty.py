"""Uncertainty and intervals of estimates."""

from dataclasses import replace

import numpy as np
import pytest
import scipy
from support.recordings.synthetic_calibration import calibrated_case
from support.robots.imperial_units import in_pounds_and_inches
from support.robots.random_robots import random_model, random_states

from inertid_ros.config.least_squares import LeastSquaresOptions
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
    log_normal_interval,
)
from inertid_ros.identification.assessment.uncertainty import Uncertainty, uncertainty
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.least_squares import least_squares
from inertid_ros.identification.prior.coordinates import prior_coordinates, prior_covariance_root
from inertid_ros.regressors.force_equations import predict_torque
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
    exact = predict_torque(model, truth, samples)
    level = noise * np.sqrt(np.mean(exact**2, axis=0))
    return model, replace(samples, tau=exact + level * rng.normal(size=exact.shape)), truth


def _known(model: RobotModel, samples: Samples) -> Uncertainty:
    return uncertainty(least_squares(model, [samples], PLAIN), compress(model, [samples]))


@pytest.mark.parametrize("seed", range(4))
def test_base_covariance_is_that_of_weighted_least_squares(seed):
    model, samples, _ = _robot(seed, 200, 0.1)
    estimate = least_squares(model, [samples], PLAIN)
    known = uncertainty(estimate, compress(model, [samples]))
    B = estimate.base.projection
    expected = B @ estimate.covariance @ B.T
    scale = np.sqrt(np.diagonal(expected))
    np.testing.assert_allclose(
        known.base_covariance / np.outer(scale, scale), expected / np.outer(scale, scale), atol=1e-6
    )
    np.testing.assert_allclose(known.values, B @ estimate.parameters)
    np.testing.assert_allclose(known.standard_deviation, scale, rtol=1e-6)


def test_errors_have_the_size_that_is_stated():
    scores = []
    for seed in range(12):
        model, samples, truth = _robot(seed, 150, 0.2)
        known = _known(model, samples)
        scores.append((known.values - known.base.projection @ truth) / known.standard_deviation)
    inside = np.mean(np.abs(np.concatenate(scores)) < 1.96)
    assert 0.92 <= inside <= 0.98


def test_rows_are_what_papers_print():
    model, samples, _ = _robot(1, 200, 0.1)
    known = _known(model, samples)
    assert [row[0] for row in known.rows] == list(known.base.names)
    for _, value, deviation, percent in known.rows:
        assert percent == pytest.approx(100 * deviation / abs(value))


@pytest.mark.parametrize("seed", range(4))
def test_data_never_raises_a_variance(seed):
    """Posterior below prior in every direction; more data, less variance."""
    model, samples, _ = _robot(seed, 200, 0.5)
    estimate, information = least_squares(model, [samples], PLAIN), compress(model, [samples])
    once = uncertainty(estimate, information)
    counts = 4 * estimate.effective_counts
    fourfold = uncertainty(replace(estimate, effective_counts=counts), information)
    scale = np.sqrt(np.diagonal(once.prior))
    for more, less in ((once.prior, once.posterior), (once.posterior, fourfold.posterior)):
        assert np.linalg.eigvalsh((more - less) / np.outer(scale, scale)).min() > -1e-9
    assert (fourfold.base_shares >= once.base_shares).all()
    np.testing.assert_allclose(fourfold.base_covariance, once.base_covariance / 4, rtol=1e-6, atol=1e-12 * scale.max())


@pytest.mark.parametrize("seed", range(4))
def test_identifiability_follows_the_structure_where_data_is_good(seed):
    """Hardly any noise: a parameter is identified if and only if it is a base parameter by itself."""
    model, samples, _ = _robot(seed, 400, 1e-6)
    known = _known(model, samples)
    base, identifiability = known.base, known.identifiability
    assert (known.base_shares > 0.99).all()
    for column, entry in enumerate(identifiability):
        assert entry.parameter == model.layout.names[column]
        if column in base.alone:
            assert entry.verdict == IDENTIFIED
            assert entry.combinations == (entry.parameter,)
        elif column in base.without_effect:
            assert (entry.verdict, entry.combinations, entry.share) == (PRIOR, (), 0.0)
        else:
            assert entry.verdict == (COMBINED if entry.combinations else PRIOR)
            assert all(entry.parameter in combination for combination in entry.combinations)
    combined = [s for s in identifiability if s.verdict == COMBINED]
    assert combined
    assert str(combined[0]) == f"{combined[0].parameter}: {COMBINED} {combined[0].combinations[0]}"


def test_hopeless_noise_leaves_everything_at_the_prior():
    model, samples, _ = _robot(2, 60, 300.0)
    known = _known(model, samples)
    terms = [
        s for s in known.identifiability if not s.parameter.endswith("offset")
    ]  # the prior leaves offsets of any size
    assert {entry.verdict for entry in terms} == {PRIOR}
    ratio = np.diagonal(known.posterior) / np.diagonal(known.prior)
    assert np.median(ratio) > 0.9


def test_a_drive_that_stands_still_is_left_at_the_prior():
    model, samples, truth = _robot(3, 400, 0.0)
    still = replace(samples, v=samples.v * [1, 1, 0], a=samples.a * [1, 1, 0])
    noise = np.random.default_rng(3).normal(size=still.tau.shape)
    still = replace(still, tau=predict_torque(model, truth, still) + 1e-3 * noise)
    verdicts = {s.parameter: s.verdict for s in _known(model, still).identifiability}
    for term in ("rotor_inertia", "viscous", "coulomb"):
        assert verdicts[f"joint2.{term}"] == PRIOR
    assert verdicts["joint1.viscous"] == IDENTIFIED


@pytest.mark.parametrize(("share", "verdict"), [(0.95, IDENTIFIED), (0.89, PARTLY), (0.51, PARTLY), (0.49, PRIOR)])
def test_identified_means_that_data_carries_nine_tenths(share, verdict):
    model, samples, _ = _robot(1, 200, 0.1)
    known = _known(model, samples)
    column = known.base.alone[0]
    row = int(np.flatnonzero(known.base.independent == column)[0])
    shares = np.zeros(known.base.count)
    shares[row] = share
    found = replace(known, base_shares=shares, moved=0.0 * known.moved).identifiability[column]
    assert (found.verdict, found.share) == (verdict, share)
    assert found.relative_deviation == known.relative_deviation[column]


def test_what_moved_far_is_not_left_at_the_prior():
    """A body drawn ten prior deviations away is named so, however little of it the data determines."""
    model, samples, _ = _robot(2, 60, 300.0)
    known = _known(model, samples)
    moved = np.zeros(len(known.moved))
    moved[0] = -10.0
    assert known.identifiability[0].verdict == PRIOR
    found = replace(known, moved=moved).identifiability[0]
    assert found.verdict == PARTLY
    assert str(found) == f"{found.parameter}: {PARTLY} (10 prior deviations off the prior)"


def test_moves_are_counted_in_prior_deviations():
    model, samples, _ = _robot(0, 400, 1e-4)
    heavy = replace(samples, tau=3.0 * samples.tau)
    known = identify(model, [heavy]).identifiability
    assert max(abs(parameter.moved) for parameter in known if parameter.parameter.startswith("link")) > 4.0
    assert all(parameter.verdict != PRIOR for parameter in known if abs(parameter.moved) >= 3.0)


@pytest.mark.parametrize("seed", range(3))
def test_units_change_no_entry(seed):
    model, samples, _ = _robot(seed, 100, 0.5)
    other, converted, factors = in_pounds_and_inches(model, samples)
    known, again = _known(model, samples), _known(other, converted)
    assert [s.verdict for s in again.identifiability] == [s.verdict for s in known.identifiability]
    np.testing.assert_allclose(again.base_shares, known.base_shares, atol=1e-6)
    scale = np.sqrt(np.diagonal(known.posterior))
    np.testing.assert_allclose(np.sqrt(np.diagonal(again.posterior)) / factors, scale, rtol=1e-5)
    np.testing.assert_allclose(again.relative_standard_deviation, known.relative_standard_deviation, rtol=1e-4)


def test_real_arm(datasets):
    """KUKA LWR4: the first link turns about the vertical; gravity shows first moments; motion is too alike for all."""
    folder = datasets / "kuka_lwr4"
    model = load_model(folder / "kuka_lwr4.urdf")
    samples = [prepare(load_recording(folder / f"run{run}.npz"), model) for run in (1, 3)]
    known = uncertainty(identify(model, samples), compress(model, samples))
    verdicts = {s.parameter: s.verdict for s in known.identifiability}
    assert all(verdicts[f"lwr_1_link.{name}"] == PRIOR for name in ("m", "mcx", "mcy", "mcz", "Ixx", "Iyy"))
    assert verdicts["lwr_2_link.mcz"] == COMBINED
    assert verdicts["lwr_7_link.mcy"] == verdicts["lwr_0_joint.offset"] == IDENTIFIED
    assert {verdicts["lwr_4_link.mcx"], verdicts["lwr_0_joint.coulomb"]} <= {PARTLY, IDENTIFIED}
    assert verdicts["lwr_3_link.Ixy"] == PRIOR
    gravity = next(row for row in known.rows if row[0].startswith("lwr_4_link.mcz"))
    assert gravity[3] < 3


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
