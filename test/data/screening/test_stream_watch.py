"""Rate, gaps, delay and saturation of a stream, from receipts at given times."""

import math

import numpy as np
import pytest

from inertid_ros.data.screening.live_watch import StreamWatch


def watched(times, delay: float = math.nan) -> StreamWatch:
    watch = StreamWatch()
    for time in times:
        watch.add(time, delay)
    return watch


def with_values(values: np.ndarray, step: float = 0.01) -> StreamWatch:
    watch = StreamWatch()
    for index, row in enumerate(values):
        watch.add_values(index * step, row)
    return watch


def test_nothing_has_come():
    report = StreamWatch().report(0.0)
    assert report.silent and report.messages == 0 and report.saturated == ()
    assert math.isnan(report.rate_hz) and math.isnan(report.delay_s)


def test_rate_and_delay_of_the_window():
    report = watched(np.arange(0.0, 10.0, 0.01), delay=0.002).report(10.0)
    assert report.messages == 1000 and not report.silent
    assert report.rate_hz == pytest.approx(100.0)
    assert report.delay_s == report.longest_delay_s == 0.002
    assert report.gaps == 0 and report.longest_step_s == pytest.approx(0.01)


def test_gap_is_told_while_it_is_in_the_window():
    watch = watched([*np.arange(0.0, 1.0, 0.01), *np.arange(1.2, 2.0, 0.01)])
    assert watch.report(2.0).gaps == 1 and watch.report(2.0).longest_step_s == pytest.approx(0.21)
    for time in np.arange(2.0, 4.0, 0.01):
        watch.add(time)
    assert watch.report(4.0).gaps == 0


def test_silence():
    watch = watched(np.arange(0.0, 1.0, 0.01))
    assert not watch.report(1.5).silent
    assert watch.report(2.5).silent


def test_a_channel_at_its_limit_is_saturated():
    phase = np.arange(0.0, 2.0, 0.01) * 2 * np.pi
    values = np.column_stack([np.sin(phase), np.clip(np.sin(phase), -1.0, 0.8), np.zeros(len(phase))])
    assert with_values(values).report(2.0).saturated == (1,)


def test_quantised_noise_at_rest_is_not_saturated():
    values = np.random.default_rng(1).integers(-1, 2, (200, 3)) * 0.1
    assert with_values(values).report(2.0).saturated == ()


def test_a_limit_is_one_of_all_that_was_measured():
    """A ramp from rest to rest has the extremes of the window, but not those of the sensor."""
    watch = with_values(10.0 * np.sin(np.arange(0.0, 2.0, 0.01) * 2 * np.pi)[:, None])
    assert watch.report(2.0).saturated == ()
    ramp = np.clip(np.arange(-50, 150) * 0.02, 0.0, 2.0)
    for index, value in enumerate(ramp):
        watch.add_values(2.0 + 0.01 * index, np.array([value]))
    assert watch.report(4.0).saturated == ()
    assert with_values(ramp[:, None]).report(2.0).saturated == (0,)


def test_values_without_effort_interface():
    values = np.column_stack([np.full(100, np.nan), np.full(100, np.inf)])
    assert with_values(values).report(1.0).saturated == ()
