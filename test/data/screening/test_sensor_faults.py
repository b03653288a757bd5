"""Saturated effort is found, counted and left out; noise, rest and dead sensors are something else."""

import logging

import numpy as np
import pytest
from support.recordings.synthetic import random_motion, record
from support.robots.random_robots import random_model

from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.channel_faults import flagged_within, saturated


def test_clipped_peaks_are_found_and_nothing_else():
    rng = np.random.default_rng(0)
    wave = np.sin(np.linspace(0, 20, 2000)) + 0.01 * rng.normal(size=2000)
    effort = np.column_stack([np.clip(wave, -0.8, 0.9), wave, np.full(2000, 3.0)])
    flags = saturated(effort)
    clipped = (wave > 0.9) | (wave < -0.8)
    assert flags[:, 0][clipped].mean() > 0.9
    assert not flags[:, 0][~clipped].any()
    assert not flags[:, 1:].any()


def test_neighbourhood_is_measured_in_time():
    time = np.arange(10) * 0.1
    flags = np.zeros((10, 2), dtype=bool)
    flags[5, 1] = True
    assert flagged_within(flags, time, np.array([0.3, 0.41, 0.59, 0.7]), 0.1).tolist() == [
        [False, False], [False, True], [False, True], [False, False]]


def test_saturated_samples_do_not_enter_the_fit(caplog):
    model = random_model(np.random.default_rng(5), 3)
    recording = record(model, random_motion(np.random.default_rng(9), 3), np.arange(0, 20, 0.005))
    effort = recording.effort.copy()
    limit = 0.7 * np.abs(effort[:, 1]).max()
    effort[:, 1] = np.clip(effort[:, 1], -limit, limit)
    with caplog.at_level(logging.WARNING):
        samples = prepare(Recording(recording.joint_names, recording.time, recording.position, effort), model)
    whole = prepare(recording, model)
    assert samples.mask[:, 1].sum() < whole.mask[:, 1].sum()
    assert np.array_equal(samples.mask[:, [0, 2]], whole.mask[:, [0, 2]])
    assert "effort is saturated for joint1 (468 of 4000 samples)" in caplog.text
    spoiled = np.abs(samples.tau[:, 1] - whole.tau[:, 1]) > 0.05 * limit
    assert spoiled.any() and not (samples.mask[:, 1] & spoiled).any()


@pytest.mark.parametrize("run", ["run1", "run2", "run3"])
def test_real_recordings_are_not_saturated(datasets, run):
    effort = np.load(datasets / "kuka_lwr4" / f"{run}.npz")["effort"]
    assert not saturated(effort).any()
