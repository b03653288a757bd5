"""A result directory tells the planner what is known: the next motion asks for what was left open."""

import shutil
from dataclasses import replace

import attrs
import numpy as np
import pytest
from support.recordings.synthetic_calibration import synthetic_case
from support.without_blocks import without_blocks  # noqa: F401 - for all tests of this module

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.calibration.earlier_result import earlier_result
from inertid_ros.calibration.planning import ExcitationJob, prepare_motion
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import InertidError
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.planning.inspection import inspect_plan
from inertid_ros.excitation.planning.planner import plan_excitation
from inertid_ros.robot.model import load_model

OPTIONS = ExcitationOptions(duration_s=5.0, base_frequency_hz=0.2, starts=6, improved=1, iterations=15)


@pytest.fixture(scope="module")
def case():
    return synthetic_case(7, joints=3, recordings=1)


@pytest.fixture(scope="module")
def result(case, tmp_path_factory):
    outcome = calibrate(case.given, case.recordings)
    return outcome.save(tmp_path_factory.mktemp("result") / "result"), outcome


def test_known_information_is_that_of_the_fit(case, result):
    directory, outcome = result
    model, earlier = earlier_result(directory, case.given)
    estimate = outcome.estimate
    assert model.hash == case.given.hash
    np.testing.assert_allclose(model.body_prior, estimate.bodies, rtol=1e-6, atol=1e-9)
    # Equations of independent samples in units of their noise: their inverse is the covariance of base parameters.
    base = estimate.base
    information = earlier.root.T @ earlier.root
    expected = estimate.information.whitened(
        np.sqrt(estimate.effective_counts / estimate.information.counts) / estimate.residual_deviation)[0]
    np.testing.assert_allclose(information, expected.T @ expected, rtol=1e-9, atol=1e-9 * np.abs(information).max())
    assert np.linalg.matrix_rank(earlier.root[:, base.independent]) == base.count
    seconds = len(case.recordings[0].time) * 0.01
    np.testing.assert_allclose(earlier.weights**2 * seconds * estimate.residual_deviation**2,
                               estimate.effective_counts, rtol=0.1)


def test_the_next_motion_adds_more_than_one_that_knows_of_nothing(case, result):
    _, earlier = earlier_result(result[0], case.given)
    limits = motion_limits(case.given)
    start = 0.5 * (limits.lower + limits.upper)
    # What is least known may be anywhere; the largest deviation leads there from most starts, their ratio from some.
    thorough = attrs.evolve(OPTIONS, criterion="e", starts=24, improved=3, iterations=60, criterion_samples=60)
    alone = plan_excitation(case.given, limits, start, thorough)
    after = plan_excitation(case.given, limits, start, thorough, earlier=earlier)
    conditions = []
    for plan in (alone, after):
        seen = inspect_plan(plan, case.given, limits, earlier=earlier)
        assert seen.spectrum_before is not None and len(seen.spectrum_before) == len(seen.spectrum)
        # Data only adds to what is known, in every direction.
        assert (seen.spectrum >= seen.spectrum_before - 1e-9).all()
        conditions.append(seen.spectrum[0] / seen.spectrum[-1])
    assert conditions[1] < conditions[0]


def test_the_job_of_the_node_takes_a_prior(case, result):
    limits = motion_limits(case.given)
    pose = 0.5 * (limits.lower + limits.upper)
    job = ExcitationJob(case.given.urdf, pose, prior=str(result[0]), excitation=OPTIONS)
    with_prior = prepare_motion(job, lambda report: None).plan
    without = prepare_motion(ExcitationJob(case.given.urdf, pose, excitation=OPTIONS), lambda report: None).plan
    assert not np.array_equal(with_prior.position, without.position)


def test_results_that_do_not_fit_are_refused(case, result, tmp_path):
    other = synthetic_case(11, joints=3, recordings=0).given
    with pytest.raises(InertidError, match="another robot"):
        earlier_result(result[0], other)
    fewer = load_model(case.given.urdf, RobotOptions(drive_terms=("viscous",)))
    with pytest.raises(InertidError, match="other drive terms"):
        earlier_result(result[0], fewer)
    copy = tmp_path / "copy"
    shutil.copytree(result[0], copy)
    (copy / "information.npz").unlink()
    with pytest.raises(InertidError, match=r"information.npz: no such file"):
        earlier_result(copy, case.given)
    (copy / "information.npz").write_bytes(b"nothing")
    with pytest.raises(InertidError, match="is not an information file, or is damaged"):
        earlier_result(copy, case.given)


def test_fitted_speeds_of_friction_are_those_of_the_earlier_result(case, tmp_path):
    recording = case.recordings[0]
    dry = np.sign(recording.velocity) * np.exp(-np.abs(recording.velocity) / 0.1)
    fitted = Configuration(identify=IdentifyOptions(fit_stribeck_speed=True))
    outcome = calibrate(case.given, [replace(recording, effort=recording.effort + 3.0 * dry)], configuration=fitted)
    assert outcome.estimate.layout.with_stribeck.any()
    _, earlier = earlier_result(outcome.save(tmp_path / "result"), case.given)
    assert np.isfinite(earlier.root).all()
