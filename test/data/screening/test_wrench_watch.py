"""Live wrenches: zero, load with hysteresis, and what is no zero."""

import numpy as np
import pytest

from inertid_ros.core.errors import RecordingError
from inertid_ros.data.screening.live_watch import WrenchWatch

MS = 1_000_000


def fed(force_of, count=300):
    watch, rng = WrenchWatch(window_s=0.5, limit_n=50.0, on_n=20.0, off_n=10.0), np.random.default_rng(0)
    for k in range(count):
        wrench = np.array([0.0, 0.0, force_of(k), 1.0, 2.0, 3.0]) + 0.1 * rng.standard_normal(6)
        watch.add("plate", k * 5 * MS, wrench)
    return watch


def test_the_mean_of_an_empty_plate_is_subtracted_from_then_on():
    watch = fed(lambda k: 7.0)
    assert "tared plate by" in watch.tare(["plate"])
    np.testing.assert_allclose(watch.zeros["plate"], [0, 0, 7, 1, 2, 3], atol=0.05)
    rest = watch.add("plate", 10**12, np.array([0.0, 0.0, 107.0, 1.0, 2.0, 3.0]))
    np.testing.assert_allclose(rest, [0, 0, 100, 0, 0, 0], atol=0.1)
    assert watch.loaded == ["plate"]


@pytest.mark.parametrize(("force_of", "message"),
    [(lambda k: 200.0, "measures 200 N, which is a load"), (lambda k: 30.0 * (k % 2), "varies by 15")])
def test_what_is_no_zero_is_refused_and_changes_nothing(force_of, message):
    watch = fed(force_of)
    with pytest.raises(RecordingError, match=message):
        watch.tare(["plate"])
    assert not watch.zeros


def test_silent_topics_cannot_be_tared():
    with pytest.raises(RecordingError, match="other: 0 recent wrenches"):
        fed(lambda k: 0.0).tare(["plate", "other"])
    stale = fed(lambda k: 0.0)
    for k in range(200):
        stale.add("other", 10**11 + k * MS, np.zeros(6))
    with pytest.raises(RecordingError, match="plate: 0 recent wrenches"):
        stale.tare(["other", "plate"])


def test_load_has_hysteresis_and_garbage_changes_nothing():
    watch = WrenchWatch(1.0, 50.0, 20.0, 10.0)
    seen = []
    for k, force in enumerate([0, 15, 25, 15, 5, 15, np.nan, 25]):
        watch.add("plate", k * MS, np.array([0, 0, force, 0, 0, 0.0]))
        seen.append(bool(watch.loaded))
    assert seen == [False, False, True, True, False, False, False, True]


def test_stamps_that_stand_still_fill_no_memory():
    watch = WrenchWatch(window_s=0.5, limit_n=50.0, on_n=20.0, off_n=10.0)
    for _ in range(1000):
        watch.add("plate", 0, np.ones(6))
    with pytest.raises(RecordingError, match="plate: 1 recent wrenches"):
        watch.tare(["plate"])
