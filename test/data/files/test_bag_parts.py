"""Parts of a bag hold together what is read of it as a whole, to the bit, and of a long one only few are kept."""

from dataclasses import replace

import numpy as np
import pytest

from inertid_ros.config.recordings import RecordingTopics, WrenchTopic
from inertid_ros.data.files import loading
from inertid_ros.data.files.bag_backends import write_bag
from inertid_ros.data.files.bag_reading import OnlyWholeError, bag_parts, read_bag
from inertid_ros.data.files.loading import load_any_length, load_recording
from inertid_ros.data.long_recording import LongRecording, kept_parts
from inertid_ros.data.recording import Recording

COUNT = 4000
CHANNELS = ("time", "position", "velocity", "effort")


@pytest.fixture(scope="module")
def recording() -> Recording:
    rng = np.random.default_rng(0)
    time = np.arange(COUNT) / 500
    values = rng.normal(size=(3, COUNT, 2))
    return Recording(("a", "b"), time, values[0], values[1], values[2], wrenches={"tool": rng.normal(size=(COUNT, 6))})


@pytest.fixture(scope="module", params=["mcap", "sqlite3"])
def bag(request, recording, tmp_path_factory):
    return write_bag(recording, tmp_path_factory.mktemp(request.param) / "bag", request.param)


@pytest.mark.parametrize("wrenches", [{}, {"tool": WrenchTopic("/wrench/tool", "tool")}])
def test_parts_are_the_whole_to_the_bit(bag, wrenches):
    topics = RecordingTopics(wrenches=wrenches)
    whole, parts = read_bag(bag, topics), list(bag_parts(bag, topics, size=500))
    for channel in CHANNELS:
        joined = np.concatenate([getattr(part, channel) for part in parts])
        np.testing.assert_array_equal(joined, getattr(whole, channel))
    for frame in whole.wrenches:
        joined = np.concatenate([part.wrenches[frame] for part in parts])
        np.testing.assert_array_equal(joined, whole.wrenches[frame])
    begun, go_on = zip(*(part.continued for part in parts), strict=True)
    assert not begun[0] and all(begun[1:]) and all(go_on[:-1]) and not go_on[-1]
    assert {part.name for part in parts} == {whole.name}


def test_a_long_bag_is_held_in_part(bag, monkeypatch):
    monkeypatch.setattr(loading, "MAX_SAMPLES_AT_ONCE", 100)
    monkeypatch.setattr(loading, "bag_parts", lambda *given: bag_parts(*given, size=300))
    long = load_any_length(bag)
    assert isinstance(long, LongRecording) and len(long) == COUNT
    assert long.duration == pytest.approx((COUNT - 1) / 500)
    assert long.period == pytest.approx(1 / 500)
    others = list(long.others())
    own = [len(part.time[part.own_rows]) for part in (*others, *long.parts)]
    assert len(others) + len(long.kept) == long.count and sum(own) == COUNT
    assert kept_parts([long]) == list(long.parts)


def test_a_short_bag_is_one_recording(bag):
    assert isinstance(load_any_length(bag), Recording)


def test_a_bag_out_of_order_is_read_as_a_whole(recording, tmp_path, monkeypatch):
    bag = write_bag(replace(recording, wrenches={}), tmp_path / "bag")
    whole = load_recording(bag)
    monkeypatch.setattr(loading, "MAX_SAMPLES_AT_ONCE", 100)

    def crossed(*_):
        yield whole
        raise OnlyWholeError

    monkeypatch.setattr(loading, "bag_parts", crossed)
    again = load_any_length(bag)
    assert isinstance(again, Recording)
    np.testing.assert_array_equal(again.time, whole.time)


@pytest.mark.parametrize("count", [1, 3, 5, 6, 11, 23, 120, 1200])
def test_kept_parts_are_at_even_distances(count, recording):
    parts = [replace(recording, time=recording.time + 8 * index, continued=(True, True)) for index in range(3)]
    long = LongRecording.from_parts(lambda: (parts[index % 3] for index in range(count)), most=5)
    places = np.array(list(long.kept))
    assert long.count == count and len(places) == min(count, 5)
    assert places[0] == 0 and places[-1] >= 0.7 * (count - 1)
    if count > 5:
        assert np.diff(places).max() <= 2.01 * np.diff(places).min()
