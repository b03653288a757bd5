"""Bags of different noise and friction, together and alone: against the joint problem written out densely."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic_calibration import COULOMB, synthetic_case

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.fleet.jobs import BagInformation, bag_effects, joint_information
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information import compress
from inertid_ros.regressors.equations import load_torque
from inertid_ros.robot.model import load_model

BAGS, STEP = 6, 0.12  # N m of Coulomb friction more from the fourth bag on
HEAVIER, LINK = 0.3, 2  # share of a link's mass in the last bag


@pytest.fixture(scope="module")
def bags():
    """Three bags of different noise, and the columns of friction."""
    case = synthetic_case(1, joints=2, recordings=3, duration=5.0)
    model = load_model(case.given.urdf, RobotOptions(drive_terms=("viscous", "coulomb")))
    made = []
    for index, recording in enumerate(case.recordings):
        information = compress(model, [prepare(recording, model)])
        deviation = np.array([0.02, 0.03]) * (index + 1)
        made.append(BagInformation(index, information, deviation, 0.5 * information.counts))
    layout = model.layout
    return made, np.r_[layout.drive("viscous"), layout.drive("coulomb")]


def gram(R):
    return R.T @ R


def test_bags_weigh_by_their_own_noise_and_independent_samples(bags):
    bags, changing = bags
    joint = joint_information(bags, changing, np.zeros(len(changing)))
    deviation = np.median([bag.deviation for bag in bags], axis=0)
    expected = sum(gram(bag.equations.rows) for bag in bags)
    R, z = joint.whitened(1 / deviation)
    size = R.shape[1]
    np.testing.assert_allclose(gram(R), expected[:size, :size], rtol=1e-8, atol=1e-6 * np.abs(expected).max())
    np.testing.assert_allclose(R.T @ z, expected[:size, size], rtol=1e-6, atol=1e-8 * np.abs(expected).max())
    assert joint.counts.sum() == sum(np.round(bag.effective_counts).sum() for bag in bags)


@pytest.mark.parametrize("scatter", [0.01, 0.3, 1e4])
def test_scatter_is_marginalised_out(bags, scatter):
    bags, changing = bags
    joint = joint_information(bags, changing, np.full(len(changing), scatter))
    deviation = np.median([bag.deviation for bag in bags], axis=0)
    R, z = joint.whitened(1 / deviation)
    size, k = R.shape[1], len(changing)
    # all unknowns at once: the parameters, and the differences of every bag's friction
    whole = np.zeros((size + k * len(bags), size + k * len(bags)))
    right = np.zeros(len(whole))
    for index, bag in enumerate(bags):
        own = np.zeros((len(bag.equations.R), len(whole)))
        own[:, :size] = bag.equations.R
        span = slice(size + k * index, size + k * (index + 1))
        own[:, span] = bag.equations.R[:, changing]
        whole += gram(own)
        whole[span, span] += np.eye(k) / scatter**2
        right += own.T @ bag.equations.z
    rest = np.linalg.inv(whole[size:, size:])
    expected = whole[:size, :size] - whole[:size, size:] @ rest @ whole[size:, :size]
    expected_right = right[:size] - whole[:size, size:] @ rest @ right[size:]
    scale = np.abs(whole).max()
    np.testing.assert_allclose(gram(R), expected, rtol=1e-5, atol=1e-9 * scale)
    np.testing.assert_allclose(R.T @ z, expected_right, rtol=1e-5, atol=1e-9 * scale)


@pytest.fixture(scope="module")
def effects():
    case = synthetic_case(1, joints=3, recordings=BAGS, duration=6.0)
    model = load_model(case.given.urdf, RobotOptions(drive_terms=("rotor_inertia", "viscous", "coulomb")))
    bags = []
    for index, recording in enumerate(case.recordings):
        samples = prepare(recording, model)
        tau = samples.tau + (index >= 3) * STEP * np.sign(samples.v) * [0, 1, 0]
        if index == BAGS - 1:
            load = np.zeros((3, BODY_PARAMETERS))
            load[LINK] = HEAVIER * case.truth.body_prior[LINK]
            tau = tau + load_torque(model, load, samples)
        estimate = identify(model, [replace(samples, tau=tau)])
        bags.append(BagInformation(30.0 * index, estimate.information, estimate.residual_deviation,
            estimate.effective_counts))
    layout = model.layout
    changing = np.r_[layout.drive("viscous"), layout.drive("coulomb")]
    joint = identify(model, joint_information(bags, changing, np.zeros(len(changing))))
    return case, {series.name: series for series in bag_effects(bags, joint, changing)}


def test_friction_of_every_bag_is_the_true_one(effects):
    _, found = effects
    for joint in range(3):
        series = found[f"joint{joint}.coulomb"]
        truth = COULOMB + STEP * (joint == 1) * (np.arange(BAGS) >= 3)
        assert (np.abs(series.values - truth) < 4 * series.deviation).all()
        assert series.deviation.max() < 0.02


def test_a_heavier_link_is_that_link_in_that_bag(effects):
    case, found = effects
    series = found[f"link{LINK}.m"]
    added = HEAVIER * case.truth.body_prior[LINK, 0]
    change = series.values[-1] - series.values[:-1].mean()
    assert change == pytest.approx(added, rel=0.05)
    # The shape of the link is known but for a little, and the rest of the change is taken for one of its neighbour.
    for link in set(range(LINK)) & {int(name[4]) for name in found if name.endswith(".m")}:
        neighbour = found[f"link{link}.m"].values
        assert abs(neighbour[-1] - neighbour[:-1].mean()) < added / 3


def test_covariances_are_symmetric_and_errors_of_shared_bodies_are_common(effects):
    _, found = effects
    covariance = found["joint0.viscous"].covariance
    np.testing.assert_allclose(covariance, covariance.T, atol=1e-15)
    assert np.linalg.eigvalsh(covariance).min() > 0.0
    assert np.abs(covariance - np.diag(np.diagonal(covariance))).max() > 0.0
