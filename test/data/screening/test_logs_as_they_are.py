"""Recordings as people log them: several logs in one, rows numbered on, two publishers of the same joints."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic import random_motion

from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.stamp_checks import as_measured, check_repairs

SEEDS = range(8)
PERIOD = 0.005


def moving(seed: int, seconds: float = 20.0, joints: int = 3, period: float = PERIOD) -> Recording:
    rng, time = np.random.default_rng(seed), np.arange(0.0, seconds, period)
    position = random_motion(rng, joints).sample(time)[0] + 1e-6 * rng.normal(size=(len(time), joints))
    names = tuple(f"joint_{index}" for index in range(joints))
    return Recording(names, time, position, rng.normal(size=position.shape), name="log")


def joined(*logs: Recording) -> Recording:
    position, effort = (np.concatenate([getattr(log, key) for log in logs]) for key in ("position", "effort"))
    return Recording(logs[0].joint_names, PERIOD * np.arange(len(position)), position, effort, name="log")


def causes(recording: Recording) -> list[str]:
    return [finding.cause for finding in check_repairs(as_measured(recording))]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_right_stays_as_it_is(seed: int):
    recording = moving(seed)
    assert as_measured(recording) == recording


@pytest.mark.parametrize("seed", SEEDS)
def test_joined_logs_are_moved_apart_where_they_join(seed: int):
    logs = [moving(10 * seed + index, seconds, joints=6) for index, seconds in enumerate((8.0, 5.0, 11.0))]
    recording = joined(*logs)
    measured = as_measured(recording)
    assert causes(recording) == ["joined_logs"]
    assert "13.00 s" in check_repairs(measured)[0].evidence and "8.00 s" in check_repairs(measured)[0].evidence
    (gaps,) = np.nonzero(np.diff(measured.time) > 1.0)
    assert gaps.tolist() == [len(logs[0]) - 1, len(logs[0]) + len(logs[1]) - 1]
    np.testing.assert_array_equal(measured.position, recording.position)


@pytest.mark.parametrize("joints", [1, 2, 5])
@pytest.mark.parametrize("seed", SEEDS)
def test_pauses_between_logs_are_found_with_any_number_of_joints(seed: int, joints: int):
    recording = moving(seed, joints=joints)
    share = recording.time / recording.duration
    kept = (share < 0.3) | (share > 0.34)
    assert causes(replace(recording.select(kept), time=PERIOD * np.arange(kept.sum()))) == ["joined_logs"]


def test_speeds_that_turn_round_at_once_are_no_joined_logs():
    time = PERIOD * np.arange(4000)
    position = np.abs((time[:, None] + [0.0, 0.3]) % 2.0 - 1.0) + 1e-6 * np.random.default_rng(0).normal(size=(4000, 2))
    assert not causes(Recording(("one", "other"), time, position, position, name="log"))


def test_a_joint_that_jumps_alone_and_spikes_of_all_are_no_joined_logs():
    recording = moving(0)
    alone, spike = recording.position.copy(), recording.position.copy()
    alone[2000:, 0] += 1.0
    spike[1000] += 1.0
    assert not causes(replace(recording, position=alone)) and not causes(replace(recording, position=spike))


@pytest.mark.parametrize("in_pairs", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_that_were_numbered_on_get_their_stamps_back(seed: int, in_pairs: bool):
    recording, rng = moving(seed, period=0.001), np.random.default_rng(seed)
    lost = rng.choice(len(recording) - 2, len(recording) // 50, replace=False)
    if in_pairs:
        lost = np.concatenate([lost[::2], lost[::2] + 2])
    kept = np.delete(np.arange(len(recording)), lost)
    numbered = replace(recording.select(kept), time=0.001 * np.arange(len(kept)))
    measured = as_measured(numbered)
    assert causes(numbered) == ["lost_rows"]
    wrong, left = (np.abs(time - time[0] - recording.time[kept] + recording.time[kept[0]]).max()
                   for time in (numbered.time, measured.time))  # fmt: skip
    assert left < 0.2 * wrong  # at reversals a lost sample does not show


@pytest.mark.parametrize("seed", SEEDS)
def test_a_single_row_that_was_lost_in_fast_motion_is_found(seed: int):
    recording, rng = moving(seed), np.random.default_rng(seed)
    fast = np.linalg.norm(np.diff(recording.position, axis=0), axis=1)
    row = int(rng.choice(np.flatnonzero(fast > np.median(fast))[5:-5]))
    numbered = replace(recording.select(np.arange(len(recording)) != row), time=recording.time[:-1])
    assert causes(numbered) == ["lost_rows"]
    np.testing.assert_allclose(as_measured(numbered).time, np.delete(recording.time, row), atol=1e-9)
    slipped = recording.position.copy()
    slipped[row:, 0] += 0.02
    assert not causes(replace(recording, position=slipped))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rate_hz", [10.0, 50.0, 200.0])
def test_a_publisher_of_one_position_is_left_out(seed: int, rate_hz: float):
    recording, rng = moving(seed), np.random.default_rng(seed)
    at = np.arange(0.0013, recording.time[-1], 1 / rate_hz)
    rest = np.tile(rng.choice([0.0, 0.7]), (len(at), 3))
    order = np.argsort(np.concatenate([recording.time, at]), kind="stable")
    mixed = Recording(recording.joint_names, np.concatenate([recording.time, at])[order],
        np.concatenate([recording.position, rest])[order], np.concatenate([recording.effort, 0 * rest])[order],
        name="log")
    assert causes(mixed) == ["second_publisher"]
    np.testing.assert_array_equal(as_measured(mixed).position, recording.position)


def test_a_robot_that_rests_between_motions_is_no_second_publisher():
    recording = moving(0)
    still = np.concatenate([np.tile(recording.position[:1], (3000, 1)), recording.position, recording.position[::-1]])
    resting = Recording(
        recording.joint_names, PERIOD * np.arange(len(still)), still, np.arange(len(still))[:, None] * np.ones(3))
    assert "second_publisher" not in causes(resting)


def test_full_turns_of_a_single_joint_are_no_joins():
    time = np.arange(0.0, 60.0, PERIOD)
    angle = (2.0 * time + 0.3 * np.sin(time) + np.pi) % (2 * np.pi) - np.pi
    recording = Recording(("turntable",), time, angle[:, None], np.sin(time)[:, None], name="log")
    assert "joined_logs" not in causes(recording)
