"""Figures of the health of a recording are what was done to it."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic_calibration import synthetic_case

from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.screening.recording_health import effort_spectrum, recording_content, recording_health


@pytest.fixture(scope="module")
def case():
    return synthetic_case(1, recordings=1)


@pytest.fixture(scope="module")
def samples(case):
    return prepare(case.recordings[0], case.given)


def test_a_clean_recording(case, samples):
    found = recording_health(case.recordings[0], samples, case.given)
    figures = found.figures
    assert figures["rate_hz"] == pytest.approx(100.0) and figures["jitter"] < 1e-6
    for key in ("gaps", "longest_gap_s", "lost_share", "reordered", "repeated", "other_clock"):
        assert figures[key] == 0
    for fault in ("not_finite", "spikes", "held", "saturated"):
        assert not any(counts.any() for counts in figures[fault].values())
    assert figures["joints"] == case.given.joint_names and found.spectrum.cutoff_hz == samples.cutoff_hz


def test_faults_are_counted_where_they_are(case, samples):
    recording = case.recordings[0]
    effort, time = recording.effort.copy(), recording.time.copy()
    effort[300:900:100, 1] += 50.0
    effort[40:47, 0] = np.nan
    limit = np.quantile(effort[:, 2], 0.9)
    effort[:, 2] = np.minimum(effort[:, 2], limit)
    time[500:] += 0.5
    spoilt = replace(recording, effort=effort, time=time)
    found = recording_health(spoilt, samples, case.given).figures
    assert found["spikes"]["effort"][1] == 6 and found["not_finite"]["effort"].tolist() == [7, 0, 0]
    assert found["saturated"]["effort"][2] > 50 and not found["saturated"]["effort"][:2].any()
    assert found["gaps"] == 1 and found["longest_gap_s"] == pytest.approx(0.51)
    assert found["lost_share"] == pytest.approx(0.5 / spoilt.duration)


def test_jitter_is_that_of_the_stamps(case, samples):
    recording, rng = case.recordings[0], np.random.default_rng(0)
    moved = recording.time + 0.01 * rng.uniform(-0.2, 0.2, len(recording))
    found = recording_health(replace(recording, time=moved), samples, case.given).figures
    assert found["jitter"] == pytest.approx(0.2 * np.sqrt(2 / 3), rel=0.1) and found["gaps"] == 0


def test_a_spectrum_shows_amplitude_and_noise():
    time = np.arange(0.0, 40.0, 0.01)
    noise = 0.1 * np.random.default_rng(0).normal(size=(len(time), 1))
    found = effort_spectrum("sine", time, 3.0 * np.sin(2 * np.pi * 2.0 * time)[:, None] + noise, 5.0)
    assert found.frequency[np.argmax(found.density[:, 0])] == pytest.approx(2.0, rel=0.1)
    beyond = found.frequency > 10
    assert np.median(found.density[beyond]) == pytest.approx(0.1 / np.sqrt(50), rel=0.2)


def test_a_summary_leaves_out_values_that_are_not_finite(case):
    recording = case.recordings[0]
    effort, position = recording.effort.copy(), recording.position.copy()
    effort[0], position[3, 1] = np.nan, np.nan
    spoilt, whole = (recording_content([each])["joints"] for each in (
        replace(recording, effort=effort, position=position), recording))
    for found, expected in zip(spoilt, whole, strict=True):
        assert found["rms_effort"] == pytest.approx(expected["rms_effort"], rel=1e-2)
        assert (found["lowest"], found["highest"]) == pytest.approx((expected["lowest"], expected["highest"]), rel=1e-2)
