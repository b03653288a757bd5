"""Live messages whose arrival crossed are put in order, as in files; repeats and what is later are left out."""

import numpy as np
import pytest

from inertid_ros.data.assembly import RecordingAssembler
from inertid_ros.data.files.live_recording import LiveRecording
from inertid_ros.data.recording import LATE_MESSAGES

MS = 1_000_000


def _live(**keywords) -> LiveRecording:
    return LiveRecording(RecordingAssembler("live", late=LATE_MESSAGES, **keywords))


def _add(live: LiveRecording, stamp: int) -> bool:
    return live.add_joint_state(0, b"", ["a"], stamp * MS, ([float(stamp)], [], [1.0]))


def _taken(live: LiveRecording, final: bool = True) -> list[int]:
    taken = live.take(final)
    assert taken is not None
    np.testing.assert_array_equal(taken[0].channels["position"][:, 0] * MS, taken[0].stamps_ns)
    return [int(stamp) // MS for stamp in taken[0].stamps_ns]


@pytest.mark.parametrize("arrivals", [(2, 1, 3, 5, 4, 6), (1, 2, 4, 5, 6, 3), (3, 2, 1, 4, 6, 5)])
def test_crossed_joint_states_are_put_in_order(arrivals):
    live = _live()
    assert all(_add(live, stamp) for stamp in arrivals)
    assert live.counts.accepted == 6 and live.counts.out_of_order == 0 and not live.last_error
    assert _taken(live) == [1, 2, 3, 4, 5, 6]


def test_repeats_and_what_is_later_are_left_out():
    live = _live()
    for stamp in (1, 2, 3, 5, 6, 7, 8):
        assert _add(live, stamp)
    assert not _add(live, 7) and not _add(live, 4)
    assert live.counts.out_of_order == 2
    assert _taken(live) == [1, 2, 3, 5, 6, 7, 8]


def test_batches_hold_every_sample_once_and_in_order():
    live, found = _live(), []
    for stamp in (1, 2, 4, 3, 5, 7, 8, 6, 9, 10, 12, 11):
        assert _add(live, stamp)
        found += _taken(live, final=False)
    assert found == list(range(1, 10))
    assert found + _taken(live) == list(range(1, 13))


def test_crossed_wrenches_are_put_in_order():
    live = _live(channels=("wrench/plate",))
    for stamp in (10, 30, 20, 40, 50):
        _add(live, stamp)
    for stamp in (10, 30, 20, 50, 40):
        assert live.add(1, b"", stamp * MS, {"wrench/plate": np.full(6, float(stamp))})
    block, _ = live.take(final=True)
    np.testing.assert_array_equal(block.channels["wrench/plate"][:, 0] * MS, block.stamps_ns)
