"""Results that no real robot can have: written in full, marked rejected, and kept from simulators."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic_calibration import synthetic_case

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.identification.assess import assess
from inertid_ros.identification.solvers.constraints import Constraints
from inertid_ros.report.report_content import report_content
from inertid_ros.report.results import CALIBRATED_URDF, Result


@pytest.mark.parametrize("held_out", [True, False])
def test_a_baseline_without_real_bodies_is_written_and_rejected(tmp_path, held_out):
    case = synthetic_case(0, duration=8.0)
    configuration = Configuration(identify=IdentifyOptions(estimator="ols"))
    recording, rng = case.recordings[0], np.random.default_rng(0)
    noisy = replace(recording, effort=recording.effort + 5.0 * rng.normal(size=recording.effort.shape))
    outcome = calibrate(case.given, [noisy], case.recordings[1:] if held_out else (), configuration)
    assert not outcome.estimate.consistent
    assert not outcome.passed
    assert report_content(outcome)["status"] == "rejected"
    assert report_content(outcome)["solver"]["name"] == "ols"
    assert "not physically consistent" in report_content(outcome)["message"]
    directory = outcome.save(tmp_path / "result")
    assert (directory / CALIBRATED_URDF).read_text(encoding="utf-8") == case.given.urdf
    stored = Result.load(directory)
    assert stored.parameters == pytest.approx(outcome.estimate.parameters)


def test_a_consistent_result_needs_no_held_out_data():
    case = synthetic_case(0, duration=8.0)
    outcome = calibrate(case.given, case.recordings)
    assert outcome.passed
    assert report_content(outcome)["status"] == "not validated"
    assert outcome.urdf != case.given.urdf
    estimate = replace(outcome.estimate, parameters=-outcome.estimate.parameters)
    assessment = assess(estimate, outcome.train, (), None, (), Constraints())
    assert report_content(replace(outcome, estimate=estimate, assessment=assessment))["status"] == "rejected"
