"""Spikes, lost and held values, and wrapped angles are found, and motion, steps and coarse sensors are left alone."""

import numpy as np
import pytest
from support.recordings.synthetic import random_motion

from inertid_ros.core.errors import RecordingError
from inertid_ros.core.findings import Severity
from inertid_ros.data.preparation.recorded_channels import CleanChannels
from inertid_ros.data.screening.channel_faults import dropouts, held, saturated, spikes, unwrapped

TIME = np.arange(0, 20, 0.005)


def _signals(seed: int, noise: float) -> np.ndarray:
    """Position, and an effort of inertia, gravity and dry friction, with noise in proportion."""
    rng = np.random.default_rng(seed)
    q, v, a = random_motion(rng, 1).sample(TIME)
    effort = a + 5 * np.sin(q) + 2 * np.sign(v) + 0.5 * v
    both = np.hstack([q, effort])
    return both + noise * both.std(axis=0) * rng.normal(size=both.shape)


@pytest.mark.parametrize("noise", [0.0, 1e-4, 1e-2])
@pytest.mark.parametrize("deviations", [1.0, 10.0])
def test_spikes_are_found_and_hardly_anything_else(noise, deviations):
    rng = np.random.default_rng(1)
    clean = _signals(0, noise)
    wrong = rng.random(clean.shape) < 0.01
    spoilt = clean + np.where(wrong, deviations * clean.std(axis=0) * rng.choice([-1, 1], clean.shape), 0)
    found = spikes(spoilt)
    assert found[wrong].mean() > 0.99
    assert found[~wrong].mean() < 1e-3


@pytest.mark.parametrize("noise", [0.0, 1e-4, 1e-2])
@pytest.mark.parametrize("quantum", [0.0, 1e-4, 0.02, 0.2])
def test_clean_motion_steps_of_friction_saturation_and_quantisation_stay(noise, quantum):
    for seed in range(5):
        clean = _signals(seed, noise)
        limits = 0.6 * np.abs(clean).max(axis=0)
        for values in (clean, np.clip(clean, -limits, limits)):
            values = np.round(values / quantum) * quantum if quantum else values
            assert spikes(values).mean() < 2e-3
            assert spikes(values[:, :1], time=TIME).mean() < 2e-3
            assert not held(values[:, :1]).any() and not held(values, steps=True).any()
            assert not dropouts(values).any()


@pytest.mark.parametrize("levels", [10, 30, 100, 1000])
def test_extremes_of_coarse_efforts_are_no_limits(levels):
    for seed in range(5):
        effort = _signals(seed, 1e-3)[:, 1:]
        quantum = np.ptp(effort) / levels
        assert saturated(np.round(effort / quantum) * quantum).mean() < 0.01  # a single flat top at most
        limit = 0.7 * np.abs(effort).max()
        clipped = np.abs(effort) > limit
        found = saturated(np.clip(effort + 1e-6 * quantum, -limit, limit))
        assert found[clipped].mean() > 0.9 and found[~clipped].mean() < 0.02


def test_a_fast_motion_of_ten_samples_a_period_stays():
    rng = np.random.default_rng(2)
    fast = np.sin(2 * np.pi * TIME / 0.05)[:, None] * np.array([1.0, 0.01]) + 1e-3 * rng.normal(size=(len(TIME), 2))
    assert spikes(fast).mean() < 1e-3
    assert spikes(fast, time=TIME).mean() < 1e-3


@pytest.mark.parametrize("noise", [0.0, 1e-4])
def test_single_stale_positions_are_found_also_behind_a_gap(noise):
    """A driver that was held up for some periods publishes what it had read before."""
    rng = np.random.default_rng(4)
    keep = np.ones(len(TIME), dtype=bool)
    stale = np.sort(rng.choice(np.arange(50, len(TIME) - 50, 20), 60, replace=False))
    for row in stale[::2]:
        keep[row - 6 : row] = False
    clean = _signals(5, noise)[:, :1]
    spoilt = clean.copy()
    spoilt[stale] = clean[stale - 7]
    off = np.abs(spoilt - clean)[:, 0] > 0.02 * np.ptp(clean)
    found = spikes(spoilt[keep], time=TIME[keep])[:, 0]
    assert found[off[keep]].mean() > 0.95
    assert found[~np.isin(np.arange(len(TIME)), stale)[keep]].mean() < 2e-3


def test_coarse_positions_beside_fine_ones_are_no_spikes():
    """Without their slope, quanta of a steady motion lie exactly on a line, beside which the others look far off."""
    quantum, slow = 2e-3, TIME > 6.0  # it comes nearly to rest, and a filter makes steps there that are finer
    motion = np.cumsum(np.where(slow, 1e-6, 2.5 * quantum))
    mixed = np.where(slow, motion, np.round(motion / quantum) * quantum)
    assert spikes(mixed[:, None], time=TIME).mean() < 2e-3


def test_dropouts_to_zero_are_found_but_not_zero_crossings_or_rest():
    values = _signals(3, 1e-3)
    values[values[:, 1] < 1.0, 1] = 1.0
    values[700:720, 1] = 0.0
    values[1500, 1] = 0.0
    found = dropouts(values)
    assert np.flatnonzero(found[:, 1]).tolist() == [*range(700, 720), 1500]
    assert not found[:, 0].any()
    resting = np.where(np.abs(values - 2.0) < 0.5, 0.0, values - 2.0)  # a sensor with a dead zone
    assert dropouts(resting)[:, 0].mean() < 0.01


def test_held_values_are_found_where_the_channel_jumps_afterwards():
    values = _signals(4, 1e-5)
    spoilt = values.copy()
    spoilt[1000:1040] = spoilt[999]
    found = held(spoilt)
    assert np.flatnonzero(found[:, 0]).tolist() == [*range(1000, 1040)]
    resting = values[:, :1].copy()
    resting[:1500] = resting[1500]  # rests, then moves on from there
    assert not held(resting).any()


def test_turns_are_added_whatever_the_encoder_and_spikes_are_not_turns():
    time = np.arange(0, 20, 0.01)
    angle = np.column_stack([4 * np.sin(time), 0.5 * time, np.sin(time)])
    wrapped = (angle + np.pi) % (2 * np.pi) - np.pi
    positive = angle % (2 * np.pi)
    for measured in (wrapped, positive):
        out, counts = unwrapped(measured)
        np.testing.assert_allclose(out - out[0], angle - angle[0], atol=1e-9)
        assert (counts[:2] > 0).all()
    spiked = angle.copy()
    spiked[500:503] += [[4.0], [-3.5], [1.0]]
    out, counts = unwrapped(spiked)
    np.testing.assert_array_equal(out, spiked)
    assert not counts.any()


def _cleaned(**spoilt: np.ndarray) -> CleanChannels:
    values = _signals(5, 1e-4)
    raw = {"position": values[:, :1].repeat(2, 1), "effort": values[:, 1:].repeat(2, 1)} | spoilt
    clean = CleanChannels("file.npz", TIME)
    clean.add_joints(raw, ("a", "b"), np.ones(2, dtype=bool))
    clean.note_missing_efforts(("a", "b"))
    return clean


def test_what_was_replaced_is_marked_counted_and_close_to_what_was_lost():
    rng = np.random.default_rng(6)
    values = _signals(5, 1e-4)[:, 1:].repeat(2, 1)
    spoilt = values.copy()
    wrong = rng.random(spoilt.shape) < [0.01, 0.04]
    spoilt[wrong] = np.where(rng.random(wrong.sum()) < 0.5, np.nan, 100.0)
    clean = _cleaned(effort=spoilt)
    assert clean.replaced["effort"][wrong].all() and clean.replaced["effort"].mean() < 0.03
    assert np.sqrt(np.mean((clean.channels["effort"] - values) ** 2)) < 0.02 * values.std()
    found = {finding.cause: finding for finding in clean.findings}
    assert set(found) == {"spikes", "dropouts"} and found["spikes"].subjects == ("a", "b")
    assert found["dropouts"].severity is Severity.NOTICE or found["dropouts"].severity is Severity.CARE
    assert "effort lacks values of a (" in str(found["dropouts"])


@pytest.mark.parametrize("seed", range(3))
def test_efforts_of_a_motion_that_snaps_are_no_spikes(seed):
    """A gripper snaps in 22 samples, its encoder is coarse, and its effort is its inertia; the arm beside it moves."""
    rng, since = np.random.default_rng(seed), TIME % 2.0
    x = np.clip(since / 0.11, 0.0, 1.0)
    open_share = x**3 * (10 - 15 * x + 6 * x**2)
    way = np.where(TIME % 4.0 < 2.0, 1.0, -1.0)
    position = _signals(seed, 1e-5)[:, :1].repeat(2, 1)
    position[:, 1] = np.round((0.5 + way * (open_share - 0.5)) / 4e-4) * 4e-4
    effort = _signals(seed, 1e-5)[:, 1:].repeat(2, 1)
    effort[:, 1] = way * x * (1 - x) * (1 - 2 * x) + 1e-4 * rng.normal(size=len(TIME))
    wrong = np.flatnonzero((since > 0.5) & (rng.random(len(TIME)) < 0.01))
    rows = np.s_[::4]  # 50 Hz: a snap has five samples
    effort[wrong, 0] += 50.0
    clean = CleanChannels("file.npz", TIME[rows])
    clean.add_joints({"position": position[rows], "effort": effort[rows]}, ("a", "b"), np.ones(2, dtype=bool))
    assert not clean.replaced["effort"][:, 1].any()
    assert clean.replaced["effort"][wrong[wrong % 4 == 0] // 4, 0].all()


def test_a_clean_recording_has_no_findings():
    clean = _cleaned()
    assert not clean.findings and not clean.without_effort.any()
    assert not clean.replaced["position"].any() and not clean.replaced["effort"].any()


def test_joints_without_effort_are_named_and_a_position_that_is_missing_is_refused():
    effort = _signals(5, 1e-4)[:, 1:].repeat(2, 1)
    mostly_zero = effort.copy()
    mostly_zero[np.arange(len(effort)) % 10 != 0, 1] = 0.0
    silent = np.column_stack([effort[:, 0], np.full(len(effort), np.nan)])
    for spoilt in (mostly_zero, silent):
        clean = _cleaned(effort=spoilt)
        assert clean.without_effort.tolist() == [False, True] and not clean.channels["effort"][:, 1].any()
        (finding,) = clean.findings
        assert finding.cause == "no_effort" and finding.subjects == ("b",) and finding.severity is Severity.CARE
    with pytest.raises(RecordingError, match="file.npz: position of joint 'a' holds 100% NaN; record"):
        _cleaned(position=np.full_like(effort, np.nan))


def test_a_lost_value_at_a_full_turn_leaves_a_continuous_angle():
    angle = np.linspace(0.0, 9.0, len(TIME))[:, None]
    wrapped = (angle + np.pi) % (2 * np.pi) - np.pi
    turn = int(np.argmax(np.abs(np.diff(wrapped[:, 0])) > 3))
    wrapped[turn : turn + 2] = np.nan
    clean = CleanChannels("log", TIME)
    clean.add_joints({"position": wrapped}, ["a"], np.array([True]))
    np.testing.assert_allclose(clean.channels["position"], angle, atol=1e-9)


def test_a_plate_without_load_is_not_saturated():
    step = np.maximum(np.sin(2 * np.pi * 0.4 * TIME), 0.0) * np.random.default_rng(0).uniform(0.99, 1.0, len(TIME))
    force = np.round(step[:, None] * np.array([3.0, 1.0, 300.0, 9.0, 5.0, 1.0]), 6)
    clean = CleanChannels("walk", TIME)
    clean.add_wrench("plate", force)
    assert not clean.faulty["plate"].any()
