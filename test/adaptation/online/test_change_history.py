"""What is told of changes that a detector finds with every block."""

from dataclasses import replace

import numpy as np

from inertid_ros.core.samples import Samples
from inertid_ros.monitoring.change_detector import Cause, Change, ChangeHistory

PAYLOAD = Change(0.0, Cause.PAYLOAD, "hand", 2.0, 0.1, 100.0, 40.0, False)


def told(history, found, begin, tested=True):
    """Times at which something is told while a detector finds the same, in half a second or as long as given."""
    times, count = [], 5
    for index in range(count):
        time = begin + 0.1 * (index + np.linspace(0.0, 0.1, 3) / 0.1)
        empty, every = np.zeros((3, 1)), np.ones((3, 1), dtype=bool)
        block = Samples(time, empty, empty, empty, empty, every, every[:, 0])
        change = None if found is None else replace(found, time=float(time[-1]))
        if history.add(change, tested, block):
            times.append(round(float(time[-1]), 3))
    return times


def test_a_change_is_told_when_it_is_found_settled_and_over():
    history = ChangeHistory()
    assert told(history, None, 0.0) == [0.1] and history.current is None
    assert told(history, PAYLOAD, 1.0) == [1.1] and history.since == 1.1
    assert told(history, replace(PAYLOAD, settled=True), 1.5) == [1.6] and history.since == 1.1
    assert told(history, PAYLOAD, 2.0) == []
    assert [told(history, None, 2.5 + 0.5 * step) for step in range(4)] == [[], [], [], [4.5]]
    assert history.current is None


def test_a_robot_at_rest_shows_nothing():
    history = ChangeHistory()
    assert told(history, None, 0.0, tested=False) == []
    told(history, PAYLOAD, 1.0)
    for begin in np.arange(2.0, 10.0, 0.5):
        assert told(history, None, begin, tested=False) == []
    assert history.current is not None


def test_another_explanation_is_told_after_a_second():
    history = ChangeHistory()
    settled = replace(PAYLOAD, settled=True)
    told(history, settled, 0.0)
    other = replace(settled, cause=Cause.RISING_FRICTION, subject="wrist")
    assert told(history, other, 0.5) == [] and told(history, settled, 1.0) == []
    assert [told(history, other, 1.5 + 0.5 * step) for step in range(3)] == [[], [], [2.6]]
    assert history.current.subject == "wrist"
