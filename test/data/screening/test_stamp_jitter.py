"""Stamps of arrival are made even; those of measurement stay, however uneven they are."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.arrival_stamps import burst_stamps, late_stamps
from support.recordings.synthetic import random_motion
from support.recordings.synthetic_calibration import synthetic_case

from inertid_ros.calibration.dataset import ScreenedRecording
from inertid_ros.config.configuration import Configuration
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.findings import Severity
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.stamp_checks import without_stamp_jitter

PERIOD = 0.004


def recording(time: np.ndarray, stamps: np.ndarray | None = None, noise: float = 1e-5) -> Recording:
    """Two joints that were measured at some instants, and what they were stamped with."""
    rng = np.random.default_rng(0)
    position, *_ = random_motion(rng, 2).sample(time)
    position = position + noise * rng.normal(size=position.shape)
    return Recording(("one", "two"), time if stamps is None else stamps, position, np.sin(position))


def late(time: np.ndarray, periods: float) -> np.ndarray:
    return late_stamps(time, periods * PERIOD, np.random.default_rng(0))


EVEN = PERIOD * np.arange(5000)


@pytest.mark.parametrize(
    "stamps", [late(EVEN, 1.0), late(EVEN, 4.0), burst_stamps(EVEN, 2), burst_stamps(EVEN, 3), burst_stamps(EVEN, 15)])
def test_stamps_of_arrival_are_made_even(stamps):
    made = without_stamp_jitter(recording(EVEN, stamps))
    assert made.repairs.scatter > 0.2 and (np.diff(made.time) > 0).all()
    assert np.std(np.diff(made.time)) < 0.1 * PERIOD < 0.11 * np.std(np.diff(stamps))
    assert np.std(made.time - EVEN) < 0.7 * np.std(stamps - EVEN)


def test_stamps_of_measurement_stay_however_uneven_they_are():
    rng = np.random.default_rng(1)
    for time in (EVEN, EVEN + PERIOD * rng.uniform(-0.45, 0.45, len(EVEN)), EVEN[rng.random(len(EVEN)) < 0.4],
        np.sort(rng.uniform(0, 20, 5000)) + 1e-7 * np.arange(5000)):
        measured = recording(time)
        assert without_stamp_jitter(measured) is measured


def test_noise_that_hides_the_motion_decides_nothing():
    noisy = recording(EVEN, late(EVEN, 1.0), noise=1.0)
    assert without_stamp_jitter(noisy) is noisy


def test_lost_samples_and_pauses_leave_their_steps():
    kept = np.ones(len(EVEN), dtype=bool)
    kept[2000:2050] = False
    instants = EVEN[kept] + np.where(np.arange(kept.sum()) > 3500, 3.0, 0.0)
    made = without_stamp_jitter(recording(instants, late(instants, 2.0)))
    assert made.repairs.scatter > 0
    error = made.time - instants
    error -= np.median(error)
    far = np.abs(np.arange(len(error)) - 2000) > 100  # within its window the mean delay is of both sides
    assert np.abs(error[far]).max() < 2.0 * PERIOD
    assert np.diff(made.time).max() == pytest.approx(3.0, abs=0.05)


def test_a_recording_at_rest_and_a_short_one_stay():
    resting = replace(recording(EVEN, late(EVEN, 2.0)), position=np.zeros((len(EVEN), 2)))
    assert without_stamp_jitter(resting) is resting
    assert len(without_stamp_jitter(recording(EVEN[:10], late(EVEN[:10], 2.0)))) == 10


def test_samples_are_those_of_even_stamps_and_it_is_told():
    case = synthetic_case(3, 3, 1)
    regular = case.recordings[0]
    period = float(np.median(np.diff(regular.time)))
    stamps = late_stamps(regular.time, 2 * period, np.random.default_rng(0))
    scattered = replace(regular, time=stamps, velocity=None)
    expected, samples = prepare(regular, case.given), prepare(scattered, case.given)
    np.testing.assert_allclose(samples.a.std(axis=0), expected.a.std(axis=0), rtol=0.1)
    findings = ScreenedRecording.of(scattered, case.given, Configuration()).samples().findings
    (told,) = (finding for finding in findings if finding.cause == "arrival_times")
    assert told.severity is Severity.NOTICE and "stamps scatter by" in told.evidence


def test_stamps_that_are_none_of_measurements_end_in_one_line():
    case = synthetic_case(3, 3, 1)
    resting = case.recordings[0]
    steps = np.where(np.arange(len(resting)) % 50 == 0, 0.4, 1e-9)
    impossible = replace(resting, time=np.cumsum(steps), position=np.zeros_like(resting.position), velocity=None)
    with pytest.raises(RecordingError, match="let the publisher stamp each state when it is measured"):
        prepare(impossible, case.given)
