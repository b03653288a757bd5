"""One cutoff per result, stored with it, and errors in bands that do not depend on it."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic_calibration import synthetic_case

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.calibration.dataset import Dataset
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.recordings import PrepareOptions
from inertid_ros.report.report_content import report_content


@pytest.fixture(scope="module")
def case():
    return synthetic_case(3, joints=3, recordings=3)


@pytest.fixture(scope="module")
def clean(case):
    """Outcome of the recordings as they are; not to be changed."""
    return calibrate(case.given, case.recordings[:2], case.recordings[2:])


def findings(outcome):
    return (*outcome.gate.reasons, *outcome.gate.notices)


def test_recordings_of_one_result_share_the_cutoff_and_the_report_holds_it(case):
    slower = replace(case.recordings[1], time=2 * case.recordings[1].time, velocity=None)
    outcome = calibrate(case.given, [case.recordings[0], slower], case.recordings[2:])
    (cutoff,) = {samples.cutoff_hz for samples in (*outcome.train, *outcome.held_out)}
    report = report_content(outcome)
    assert report["provenance"]["cutoff_hz"] == cutoff == outcome.provenance.cutoff_hz
    bands = {band["cutoff_hz"]: band for band in report["bands"]}
    assert list(bands) == [2.0, 5.0, 10.0]
    for band in bands.values():
        assert band["calibrated"]["relative_error"] < 0.5 * band["prior"]["relative_error"]
        assert band["calibrated"]["recordings"] == ["recording 2"]


def test_a_configured_cutoff_and_that_of_a_result_go_before_the_automatic_one(case):
    configured = Configuration(prepare=PrepareOptions(cutoff_hz=3.0))
    assert Dataset.screened(case.given, configured, case.recordings).cutoff(7.0) == 3.0
    assert Dataset.screened(case.given, Configuration(), case.recordings).cutoff(7.0) == 7.0
    rows = slice(None, None, 12)
    coarse = replace(case.recordings[2], time=case.recordings[2].time[rows], position=case.recordings[2].position[rows],
        effort=case.recordings[2].effort[rows], velocity=None)
    slow = Dataset.screened(case.given, Configuration(), case.recordings[:2], [coarse]).cutoff()
    assert slow <= 0.4 / np.median(np.diff(coarse.time))


def test_spoilt_recordings_give_nearly_the_same_result(case, clean):
    """Spikes, NaN and gaps in what is fitted: the error on a clean recording stays within a tenth."""
    rng = np.random.default_rng(0)

    def spoilt(recording):
        keep = rng.random(len(recording)) > 0.01
        keep[700:703] = False
        effort = recording.effort + np.where(rng.random(recording.effort.shape) < 0.01, 10 * recording.effort.std(), 0)
        effort[rng.random(effort.shape) < 0.01] = np.nan
        return replace(recording, time=recording.time[keep], position=recording.position[keep], effort=effort[keep],
            velocity=np.full_like(effort[keep], np.nan))

    rough = calibrate(case.given, [spoilt(each) for each in case.recordings[:2]], case.recordings[2:])
    errors = [outcome.validation.calibrated.relative_error for outcome in (clean, rough)]
    assert errors[1] < 1.1 * errors[0]
    assert {"spikes", "dropouts"} <= {finding.cause for finding in findings(rough)}
    assert not {"spikes", "dropouts"} & {finding.cause for finding in findings(clean)}


def test_a_joint_without_effort_leaves_its_own_link_at_the_prior_and_the_others_no_worse(case, clean):
    """The last joint reports nothing; the joints before it are fitted as well as with it."""
    silent = [replace(each, effort=np.where(np.arange(3) == 2, np.nan, each.effort)) for each in case.recordings[:2]]
    without = calibrate(case.given, silent, case.recordings[2:])
    assert [finding.subjects for finding in findings(without) if finding.cause == "no_effort"] == [("joint2",)] * 2
    errors = [outcome.validation.calibrated.rms_error for outcome in (without, clean)]
    assert (errors[0][:2] < 1.1 * errors[1][:2]).all()
    assert without.estimate.drive("coulomb")[2] == pytest.approx(0.0, abs=0.01)
