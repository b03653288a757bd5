"""Bags of different noise and friction together: the joint information is that of one problem written out densely."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic_calibration import synthetic_case

from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.fleet.bag_information import BagInformation, joint_information
from inertid_ros.identification.information.information import compress
from inertid_ros.robot.model import ModelOptions, load_model


@pytest.fixture(scope="module")
def bags():
    """Three bags of different noise, and the columns of friction."""
    case = synthetic_case(1, joints=2, recordings=3, duration=5.0)
    model = load_model(case.given.urdf, ModelOptions(drive_terms=("viscous", "coulomb")))
    made = []
    for index, recording in enumerate(case.recordings):
        information = compress(model, [prepare(recording, model)])
        deviation = np.array([0.02, 0.03]) * (index + 1)
        made.append(BagInformation(recording.name, index, information, deviation, 0.5 * information.counts))
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


def test_wrong_number_of_deviations_is_refused(bags):
    with pytest.raises(ValueError, match="expected 2 deviations"):
        replace(bags[0][0], deviation=np.ones(3))
