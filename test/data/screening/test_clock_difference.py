"""How far a clock is ahead of the steady one, whatever interrupts the reading."""

import time

import pytest

from inertid_ros.data.screening.live_watch import ahead_of_steady

AHEAD_S = 1000.0


@pytest.mark.parametrize("interrupted", [(0,), (0, 1, 2), (1,)])
def test_a_reader_that_is_held_up_sees_no_step(interrupted):
    calls = iter(range(100))

    def clock() -> float:
        held_up = next(calls) in interrupted
        if held_up:
            time.sleep(0.002)
        now = time.monotonic() + AHEAD_S
        if held_up:
            time.sleep(0.004)
        return now

    assert ahead_of_steady(clock) == pytest.approx(AHEAD_S, abs=2e-4)


def test_a_slow_clock_is_read_some_times_only():
    calls = []

    def clock() -> float:
        calls.append(0)
        time.sleep(0.001)
        return time.monotonic() + AHEAD_S

    assert ahead_of_steady(clock) == pytest.approx(AHEAD_S, abs=2e-3)
    assert len(calls) < 10
