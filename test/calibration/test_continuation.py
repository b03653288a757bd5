"""Earlier results as the prior: the joint fit of both days, the bodies of another robot, or the mean of several."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic_calibration import synthetic_case
from support.without_blocks import without_blocks  # noqa: F401 - for all tests of this module

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.calibration.earlier_result import earlier_fit, given_prior
from inertid_ros.calibration.validation import validate
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.core.errors import InertidError
from inertid_ros.core.inertial_parameters import geodesic_distance, karcher_mean, transform
from inertid_ros.identification.information.information_file import information_bytes, information_from_bytes
from inertid_ros.report.results import Result
from inertid_ros.robot.body_changes import write_urdf

EVERY_TERM_SHARED = {"changing_terms": ()}


@pytest.fixture(scope="module")
def case():
    return synthetic_case(7, joints=3, recordings=3)


@pytest.fixture(scope="module")
def yesterday(case, tmp_path_factory):
    outcome = calibrate(case.given, case.recordings[:1])
    return outcome.save(tmp_path_factory.mktemp("earlier") / "yesterday")


@pytest.fixture(scope="module")
def sister(case, tmp_path_factory):
    """Result of another robot of this type."""
    outcome = calibrate(case.given, case.recordings[2:])
    return outcome.save(tmp_path_factory.mktemp("sister") / "sister")


def continued(case, directory, recordings, **options):
    configuration = Configuration(identify=IdentifyOptions(prior=str(directory), **options))
    return calibrate(case.given, recordings, configuration=configuration)


@pytest.fixture(scope="module")
def both_days(case, yesterday):
    """Yesterday's result continued with the next recording; not to be changed."""
    return continued(case, yesterday, case.recordings[1:2], **EVERY_TERM_SHARED)


def test_a_continued_result_is_the_joint_fit(case, both_days):
    joint = calibrate(case.given, case.recordings[:2]).estimate
    alone = calibrate(case.given, case.recordings[1:2]).estimate
    both = both_days.estimate
    # Weights of the first day are those of its own fit, so that it is not equal to the last digit.
    assert (np.abs(both.parameters - joint.parameters) <= 1.96 * joint.standard_deviation).all()
    # Each fit estimates the noise level of a channel from scores of its own blocks, of which there are few.
    # What was left out is known as well as the data say on which side of zero it would be.
    free = (joint.standard_deviation > 0) & (joint.parameters != 0)
    ratio = both.standard_deviation[free] / joint.standard_deviation[free]
    assert 0.8 < np.median(ratio) < 1.25 and ratio.min() > 0.5 and ratio.max() < 2
    gained = free & (joint.standard_deviation < 0.65 * alone.standard_deviation)
    assert gained.any() and (both.standard_deviation[gained] < 0.8 * alone.standard_deviation[gained]).all()


def test_a_chain_of_results_forgets_no_day(case, both_days, tmp_path):
    second = both_days.save(tmp_path / "second")
    third = continued(case, second, case.recordings[2:], **EVERY_TERM_SHARED)
    joint = calibrate(case.given, case.recordings).estimate
    assert (np.abs(third.estimate.parameters - joint.parameters) <= 1.96 * joint.standard_deviation).all()
    assert set(third.provenance.earlier.recordings.values()) == {"recording 0", "recording 1"}
    stored = Result.load(second).information
    copy = information_from_bytes(information_bytes(stored), "copy")
    np.testing.assert_array_equal(copy.earlier.rows, stored.earlier.rows)


def test_friction_of_another_day_is_found_anew_and_bodies_are_shared(case, yesterday):
    """The joints have become stiffer overnight; with friction shared, the fit would have to lie in between."""
    second = case.recordings[1]
    rough = replace(second, effort=second.effort + 0.4 * second.velocity + 0.5 * np.sign(second.velocity))
    estimate = continued(case, yesterday, [rough]).estimate
    alone = calibrate(case.given, [rough]).estimate
    bodies = slice(0, estimate.layout.inertial_size)
    for term in ("viscous", "coulomb"):
        np.testing.assert_allclose(estimate.drive(term), alone.drive(term), atol=0.05)
    assert (estimate.standard_deviation[bodies] < 1.1 * alone.standard_deviation[bodies]).all()
    assert np.min(estimate.standard_deviation[bodies] / alone.standard_deviation[bodies]) < 0.7


def test_a_link_that_changed_starts_at_the_earlier_one_with_a_prior_spread_of_its_own(case, yesterday):
    last = case.given.link_names[-1]
    earlier = Result.load(yesterday)
    estimate = continued(case, yesterday, case.recordings[1:2], spread={last: 3.0}).estimate
    assert estimate.prior_spreads[-1] >= 3.0 and (estimate.prior_spreads[:-1] < 1.0).all()
    np.testing.assert_allclose(estimate.model.body_prior[-1], earlier.model.layout.bodies(earlier.parameters)[-1])
    np.testing.assert_allclose(estimate.model.body_prior[:-1], case.given.body_prior[:-1], rtol=1e-6)
    sister = continued(case, yesterday, case.recordings[1:2], spread={"all": 0.05, last: 3.0}).estimate
    # Wherever yesterday's recording left a link open, so is its prior of today.
    assert ((sister.prior_spreads > 0.05) & (sister.prior_spreads[-1] >= sister.prior_spreads)).all()


def test_what_is_no_prior_is_refused(case, yesterday):
    with pytest.raises(InertidError, match="recording 0: is part of the earlier result already"):
        continued(case, yesterday, case.recordings[:2])
    with pytest.raises(InertidError, match=r"identify.spread: 'hand' is not a link"):
        continued(case, yesterday, case.recordings[1:2], spread={"hand": 1.0})
    with pytest.raises(InertidError, match="another robot"):
        continued(synthetic_case(11, joints=3, recordings=0), yesterday, case.recordings[1:2])
    with pytest.raises(InertidError, match="takes no earlier result"):
        continued(case, yesterday, case.recordings[1:2], estimator="ols")
    with pytest.raises(InertidError, match="one prior spread for all"):
        continued(case, yesterday, case.recordings[1:2], spread={"all": 1.0}, regularizer="riemannian")


def test_recordings_of_earlier_days_are_not_held_out(case, yesterday, tmp_path):
    second = continued(case, yesterday, case.recordings[1:2]).save(tmp_path / "second")
    found = validate(Result.load(second), case.recordings)
    told = [reason.recording for reason in found.gate.reasons if reason.cause == "held_out_not_new"]
    assert told == ["recording 0", "recording 1"]


def test_the_mean_of_several_results_is_the_prior(case, yesterday, sister, tmp_path):
    configuration = Configuration(identify=IdentifyOptions(prior=(str(yesterday), str(sister))))
    outcome = calibrate(case.given, case.recordings[1:2], configuration=configuration)
    results = [Result.load(directory) for directory in (yesterday, sister)]
    mean = karcher_mean([result.model.layout.bodies(result.parameters) for result in results])
    bodies = outcome.estimate.model.body_prior
    np.testing.assert_allclose(geodesic_distance(bodies, mean), 0.0, atol=1e-6)
    assert outcome.estimate.information.earlier is None
    report = outcome.report
    assert report["prior"]["name"] == f"mean of {yesterday}, {sister}" and report["provenance"]["earlier"] is None
    assert [source["directory"] for source in report["provenance"]["prior"]] == [str(yesterday), str(sister)]

    # Its continuation has the same prior, and nothing of the results counts twice.
    directory = outcome.save(tmp_path / "third")
    earlier, source = earlier_fit(directory, case.given, ())
    assert earlier.prior_name == report["prior"]["name"]
    np.testing.assert_allclose(earlier.prior[: bodies.size], bodies.ravel(), rtol=1e-9)
    assert set(source.recordings.values()) == {recording.name for recording in case.recordings}
    with pytest.raises(InertidError, match="recording 0: is part of the earlier result already"):
        earlier_fit(directory, case.given, case.recordings[:1])
    told = [reason.recording for reason in validate(Result.load(directory), case.recordings).gate.reasons]
    assert set(told) >= {recording.name for recording in case.recordings}


def test_a_urdf_is_a_prior(case, tmp_path):
    (tmp_path / "true.urdf").write_text(case.truth.urdf)
    robot, earlier, (source,) = given_prior((str(tmp_path / "true.urdf"),), case.given, case.recordings)
    np.testing.assert_allclose(robot.body_prior, case.truth.body_prior, rtol=1e-9, atol=1e-12)
    assert robot.prior_name == f"bodies of {tmp_path / 'true.urdf'}" and robot.urdf == case.given.urdf
    assert earlier is None and source.recordings == {}


@pytest.mark.parametrize("mistake", ["robot", "link", "shape", "rejected", "nothing", "file", "twice", "recording"])
def test_what_cannot_be_averaged_is_refused_in_one_line(case, yesterday, sister, tmp_path, mistake):
    (tmp_path / "other.urdf").write_text(synthetic_case(11, joints=3, recordings=0).given.urdf)
    (tmp_path / "renamed.urdf").write_text(case.given.urdf.replace('"link2"', '"hand"'))
    (tmp_path / "notes.yaml").write_text("mass: 1")
    (tmp_path / "far.urdf").write_text(
        write_urdf(case.given, transform(case.given.consistent_body_prior, np.eye(3), np.array([1.0, 0.0, 0.0]))))
    shutil.copytree(sister, tmp_path / "rejected")
    report = tmp_path / "rejected" / "report.json"
    report.write_text(json.dumps({**json.loads(report.read_text()), "status": "rejected"}))
    second, message = {
        "robot": ("other.urdf", r"other.urdf: belongs to another robot .*other places or axes.*; give a result or"),
        "link": ("renamed.urdf", r"renamed.urdf: belongs to another robot .*hand in place of link2"),
        "shape": ("far.urdf", r"'link0' weighs .* kg or more, but .* kg in the mean, .*; leave the odd one out"),
        "rejected": ("rejected", "rejected: was rejected and cannot be a prior .*; give a good result"),
        "nothing": ("absent", "absent: no such result directory; check the path"),
        "file": ("notes.yaml", r"notes.yaml: URDF: not XML .*; give a URDF"),
        "twice": (yesterday, "is given twice as a prior, and would count twice; give it once"),
        "recording": (sister, "recording 2: is part of the earlier result already .*; give new recordings"),
    }[mistake]
    recordings = case.recordings[2:] if mistake == "recording" else case.recordings[1:2]
    with pytest.raises(InertidError, match=message) as caught:
        given_prior((str(yesterday), str(tmp_path / second)), case.given, recordings)
    assert "\n" not in str(caught.value)
