"""Even grids from jittered stamps, gaps and bursts."""

import numpy as np
import pytest
from support.recordings.synthetic import jittered_time, random_motion

from inertid_ros.core.errors import RecordingError
from inertid_ros.data.preparation.filtering import BRIDGED, resample
from inertid_ros.data.preparation.recorded_channels import CleanChannels


def _resample(time, values, skip_start=0.0, skip_end=0.0, max_gap=4.0):
    recorded = CleanChannels("rec", time, {"position": values}).without_ends(skip_start, skip_end)
    return resample(recorded, max_gap * recorded.period)


def test_even_stamps_are_taken_as_they_are():
    time = 3.0 + 0.005 * np.arange(1000)
    values = np.random.default_rng(0).normal(size=(1000, 2))
    (segment,) = _resample(time, values)
    assert segment.period == pytest.approx(0.005)
    assert np.array_equal(segment.channels["position"], values)
    assert np.allclose(segment.time, time)


@pytest.mark.parametrize("jitter", [0.2, 0.6, 0.95])
def test_jittered_stamps_come_out_even_and_true(jitter):
    rng = np.random.default_rng(2)
    time = jittered_time(rng, 200.0, 10.0, jitter)
    motion = random_motion(rng, 3)
    (segment,) = _resample(time, motion.sample(time)[0])
    assert np.allclose(np.diff(segment.time), segment.period)
    assert segment.time[0] == time[0] and segment.time[-1] <= time[-1] + 1e-9
    assert np.abs(segment.channels["position"] - motion.sample(segment.time)[0]).max() < 1e-6


def test_the_grid_does_not_drift_away_from_the_stamps():
    rng = np.random.default_rng(3)
    time = np.cumsum(rng.choice([0.004, 0.005, 0.0065], 20_000))  # median and mean differ
    (segment,) = _resample(time, time[:, None])
    assert np.abs(segment.channels["position"][:, 0] - segment.time).max() < 1e-9
    assert segment.time[-1] == pytest.approx(time[-1], abs=0.01)


def test_gaps_split_and_nothing_is_interpolated_across():
    time = 0.01 * np.arange(1000)
    keep = (time < 3.0) | (time > 3.5)
    keep &= (time < 7.0) | (time > 7.015)  # two samples lost: no gap
    values = np.where(time < 3.2, 0.0, 1.0)[:, None]
    segments = _resample(time[keep], values[keep])
    assert len(segments) == 2
    assert segments[0].time[-1] < 3.0 < 3.5 < segments[1].time[0]
    assert set(np.unique(segments[0].channels["position"])) == {0.0}
    assert np.allclose(segments[1].channels["position"], 1.0)


def test_bursts_of_nearly_equal_stamps_do_not_overshoot():
    rng = np.random.default_rng(4)
    time = 0.01 * np.arange(500)
    late = time.copy()
    late[100] = late[101] - 1e-6  # delayed, then two at once
    values = np.sin(time)[:, None] + 1e-3 * rng.normal(size=(500, 1))
    (segment,) = _resample(late, values)
    assert np.abs(segment.channels["position"][:, 0] - np.sin(segment.time)).max() < 0.02


def test_ends_are_cut_and_too_much_is_refused():
    time = 0.01 * np.arange(1000)
    (segment,) = _resample(time, time[:, None], skip_start=2.0, skip_end=1.0)
    assert segment.time[0] == pytest.approx(2.0) and segment.time[-1] == pytest.approx(8.99)
    with pytest.raises(RecordingError, match=r"rec: time spans 9.99 s, .*prepare.skip_start_s"):
        _resample(time, time[:, None], skip_start=20.0)


def test_short_gaps_are_bridged_without_overshoot_and_marked():
    time = 0.001 * np.arange(10_000)
    keep = ~((time > 3.0) & (time < 3.008)) & ~((time > 7.0) & (time < 7.008))
    values = np.sin(2 * np.pi * 0.8 * time)[:, None] + 1e-3 * np.random.default_rng(5).normal(size=(10_000, 1))
    (segment,) = _resample(time[keep], values[keep], max_gap=25)
    assert len(segment) == 10_000
    assert np.flatnonzero(segment.replaced[BRIDGED]).tolist() == [*range(3001, 3008), *range(7001, 7008)]
    inside = segment.channels["position"][3001:3008, 0]
    ends = sorted(values[[3000, 3008], 0])
    assert ends[0] <= inside.min() and inside.max() <= ends[1]


def test_values_that_were_replaced_stay_marked_and_long_runs_of_unknown_motion_are_gaps():
    time = 0.01 * np.arange(1000)
    unknown = ((time > 2.995) & (time < 3.015)) | ((time > 5.0) & (time < 5.5))
    recorded = CleanChannels("rec", time, {"position": time[:, None]}, {"position": unknown[:, None]})
    segments = resample(recorded, 0.04)
    assert len(segments) == 2
    marked = segments[0].time[segments[0].replaced["position"][:, 0]]
    assert marked == pytest.approx([3.0, 3.01])
    assert segments[0].time[-1] == pytest.approx(5.0) and segments[1].time[0] == pytest.approx(5.5)
