"""States that were published again are left out, and recordings without such are left as they are."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic_calibration import synthetic_case

from inertid_ros.calibration.dataset import ScreenedRecording
from inertid_ros.config.configuration import Configuration
from inertid_ros.core.findings import Severity
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.channel_faults import samples_held
from inertid_ros.data.screening.recording_health import recording_content
from inertid_ros.data.screening.stamp_checks import without_repeated_states


@pytest.fixture(scope="module")
def case():
    return synthetic_case(3, 3, 1)


def published_again(recording: Recording, times: np.ndarray) -> Recording:
    """The recording by a publisher that sends every state so many times ``(N,)``, at even stamps."""
    rows = np.repeat(np.arange(len(recording)), times)
    channels = {name: values[rows] for name, values in recording.channels.items()}
    time = np.linspace(recording.time[0], recording.time[-1], len(rows))
    return replace(recording, **channels | {"time": time})


@pytest.mark.parametrize("every", [2, 3, 7])
def test_states_sent_again_are_left_out(case, every):
    fresh = case.recordings[0]
    stairs = published_again(fresh, np.full(len(fresh), every))
    found = without_repeated_states(stairs)
    for name in ("position", "effort"):
        np.testing.assert_array_equal(getattr(found, name), getattr(fresh, name))
    assert found.repairs.stale == (every - 1) * len(fresh) and found.repairs.total == every * len(fresh)
    np.testing.assert_allclose(np.diff(found.time), found.time[1] - found.time[0], rtol=1e-9)


def test_velocities_that_are_differences_of_stairs_and_efforts_that_are_missing_do_not_matter(case):
    fresh = case.recordings[0]
    stairs = published_again(fresh, np.full(len(fresh), 3))
    effort = stairs.effort.copy()
    effort[:, 0] = np.nan
    velocity = np.diff(stairs.position, axis=0, prepend=stairs.position[:1]) / np.median(np.diff(stairs.time))
    assert len(without_repeated_states(replace(stairs, velocity=velocity, effort=effort))) == len(fresh)


def test_hardware_that_is_late_at_random_is_no_gap(case):
    fresh, rng = case.recordings[0], np.random.default_rng(0)
    times = np.where(rng.random(len(fresh)) < 0.4, 2, 1)
    found = without_repeated_states(published_again(fresh, times))
    assert len(found) == len(fresh) and found.repairs.stale == (times == 2).sum()
    steps = np.diff(found.time)
    assert steps.max() < 2.01 * np.median(steps)


def test_a_rest_without_noise_keeps_the_rate_of_the_motion(case):
    fresh = case.recordings[0]
    middle = len(fresh) // 2
    rest = np.r_[np.arange(middle), np.full(600, middle), np.arange(middle, len(fresh))]
    resting = published_again(replace(fresh, **_rows(fresh, rest)), np.full(len(rest), 3))
    found = without_repeated_states(resting)
    steps = np.diff(found.time)
    assert steps.max() < 2.01 * np.median(steps) and found.duration == pytest.approx(resting.duration, abs=0.05)


def _rows(recording: Recording, rows: np.ndarray) -> dict:
    channels = {name: values[rows] for name, values in recording.channels.items()}
    return channels | {"time": recording.time[0] + np.arange(len(rows)) * np.median(np.diff(recording.time))}


def test_recordings_without_repeated_states_stay_as_they_are(case):
    fresh = case.recordings[0]
    assert without_repeated_states(fresh) is fresh
    few = published_again(fresh, np.where(np.arange(len(fresh)) % 10 == 0, 2, 1))
    assert without_repeated_states(few) is few
    first = {name: np.tile(getattr(fresh, name)[:1], (len(fresh), 1)) for name in ("position", "effort")}
    still = replace(fresh, **first)
    assert without_repeated_states(still) is still


def test_parts_keep_their_own_samples(case):
    fresh = case.recordings[0]
    stairs = replace(published_again(fresh, np.full(len(fresh), 3)), context=(30, 60))
    found = without_repeated_states(stairs)
    assert found.context == (10, 20)
    np.testing.assert_array_equal(found.position[found.own_rows], fresh.position[10:-20])


def test_samples_are_those_of_the_new_states_and_it_is_told(case):
    fresh, model = case.recordings[0], case.given
    stairs = published_again(fresh, np.full(len(fresh), 4))
    of_fresh, of_stairs = prepare(fresh, model), prepare(stairs, model)
    assert of_stairs.cutoff_hz == pytest.approx(of_fresh.cutoff_hz, rel=0.05)
    np.testing.assert_allclose(of_stairs.a.std(axis=0), of_fresh.a.std(axis=0), rtol=0.02)
    findings = ScreenedRecording.of(stairs, model, Configuration()).samples().findings
    (told,) = (finding for finding in findings if finding.cause == "repeated_states")
    assert told.severity is Severity.NOTICE and f"{3 * len(fresh)} of {4 * len(fresh)}" in told.evidence


@pytest.mark.parametrize("every", [1, 2, 3])
def test_positions_alone_that_are_held_are_told_and_take_no_cutoff_up(case, every):
    fresh, model = case.recordings[0], case.given
    rows = np.arange(len(fresh)) // every * every
    held = replace(fresh, position=fresh.position[rows], velocity=None)
    assert without_repeated_states(held) is held
    assert (samples_held(held.position) == every).all()
    samples = ScreenedRecording.of(held, model, Configuration()).samples()
    expected = prepare(fresh, model)
    assert samples.cutoff_hz == pytest.approx(expected.cutoff_hz, rel=0.3)
    np.testing.assert_allclose(samples.a.std(axis=0), expected.a.std(axis=0), rtol=0.25)
    told = [finding.evidence for finding in samples.findings if finding.cause == "repeated_states"]
    assert told == ([f"in motion, positions keep each value for {every} samples"] if every > 1 else [])


@pytest.mark.parametrize("quantum", [1e-5, 1e-3, 1e-2])
def test_coarse_positions_are_not_held(case, quantum):
    position = np.round(case.recordings[0].position / quantum) * quantum
    assert (samples_held(position) == 1).all()
    assert (samples_held(np.zeros((500, 2))) == 1).all()


def test_new_states_that_come_unevenly_are_filtered_as_they_are(case):
    fresh, model = case.recordings[0], case.given
    rng = np.random.default_rng(0)
    rows = np.maximum.accumulate(np.where(rng.random(len(fresh)) < 0.3, np.arange(len(fresh)), 0))
    uneven = replace(fresh, position=fresh.position[rows], effort=fresh.effort[rows], velocity=None)
    assert without_repeated_states(uneven) is uneven and (samples_held(uneven.position) > 5).all()
    assert prepare(uneven, model).cutoff_hz < 2 * prepare(fresh, model).cutoff_hz


def test_what_a_recording_holds_tells_it_too(case):
    fresh = case.recordings[0]
    (told,) = recording_content([published_again(fresh, np.full(len(fresh), 3))])["notices"]
    assert f"{2 * len(fresh)} of {3 * len(fresh)} samples repeat" in told
