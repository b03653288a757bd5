"""Bandwidth of recorded motion and the automatic cutoff."""

import numpy as np
import pytest
import scipy
from support.recordings.synthetic import random_motion

from inertid_ros.data.preparation.bandwidth import automatic_cutoff, spectra, spectrum, without_rare_leaps
from inertid_ros.data.preparation.filtering import derivatives, low_pass
from inertid_ros.data.preparation.recorded_channels import CleanChannels


@pytest.mark.parametrize("rate", [50.0, 200.0, 1000.0])
@pytest.mark.parametrize("noise", [0.0, 1e-6, 1e-4, 1e-3])
def test_automatic_cutoff_follows_the_motion_at_every_rate_and_noise(rate, noise):
    rng = np.random.default_rng(int(rate))
    time = np.arange(0, 20, 1 / rate)
    q, _, _ = random_motion(rng, 4).sample(time)  # up to 0.5 Hz
    cutoff = automatic_cutoff(spectrum((q + noise * rng.normal(size=q.shape), 1 / rate)))
    assert 2.0 <= cutoff <= 74 * 0.56


@pytest.mark.parametrize("frequency", [0.1, 0.3, 0.8, 2.0])
@pytest.mark.parametrize("noise", [0.0, 1e-4])
def test_ten_seconds_show_the_frequency_of_a_motion(frequency, noise):
    """Also with drift and offset."""
    rng = np.random.default_rng(0)
    time = np.arange(0, 10, 1e-3)
    q = 3.0 + 0.2 * time + np.sin(2 * np.pi * frequency * time) + noise * rng.normal(size=len(time))
    whole = spectrum((q[:, None], 1e-3))
    assert frequency - 0.11 <= whole.motion_hz[0] <= frequency + 0.25  # windowed, ten seconds resolve 0.2 Hz


@pytest.mark.parametrize("update_hz", [57.0, 60.0, 63.0, 85.0, 97.0])
@pytest.mark.parametrize("base_hz", [0.02, 0.05, 0.1])
def test_a_logger_that_stamps_states_at_a_rate_of_its_own_does_not_set_the_cutoff(update_hz, base_hz):
    """States of 57 to 97 Hz are stamped at 100 Hz, without repeated states."""
    rng = np.random.default_rng(int(update_hz))
    stamps = np.cumsum(0.01 + 0.001 * (rng.random(4000) < 0.1))
    updates = np.floor(stamps * update_hz) / update_hz
    new = np.diff(updates, prepend=-1.0) > 0
    positions = random_motion(rng, 5, base_hz=base_hz).sample(updates[new])[0]  # up to five times base_hz
    period = float(np.mean(np.diff(stamps[new])))
    even = np.arange(stamps[new][0], stamps[-1], period)
    recorded = scipy.interpolate.CubicSpline(stamps[new], positions)(even)
    assert 5 * base_hz <= automatic_cutoff(spectrum((recorded, period))) <= max(1.2, 50 * base_hz)


@pytest.mark.parametrize("every", [2, 5, 12])
@pytest.mark.parametrize("seed", range(3))
def test_a_joint_whose_values_are_held_does_not_raise_the_cutoff(every, seed):
    """Interpolation between new values hides their noise."""
    rng, time, joints = np.random.default_rng(seed), np.arange(0, 20, 0.004), np.arange(6)
    q = random_motion(rng, 6).sample(time)[0] + rng.uniform(5e-5, 2e-4, 6) * rng.normal(size=(len(time), 6))
    joint = int(rng.integers(6))
    late = q.copy()
    late[:, joint] = q[np.arange(len(time)) // every * every, joint]
    clean = CleanChannels("", time)
    clean.add_joints({"position": late}, list("abcdef"), np.ones(6, dtype=bool))
    assert clean.new_hz[joint] == pytest.approx(250 / every) and np.isinf(clean.new_hz[joints != joint]).all()
    assert automatic_cutoff(spectra([clean])[0]) <= automatic_cutoff(spectrum((q[:, joints != joint], 0.004)))


def test_spectrum_of_a_joint_at_rest_shows_no_motion():
    rng = np.random.default_rng(1)
    q = np.column_stack([1e-5 * rng.normal(size=2000), np.sin(np.arange(2000) * 0.01)])
    found = spectrum((q, 0.01))
    assert found.motion_hz[0] == 0.0
    assert found.motion_hz[1] == pytest.approx(0.16, abs=0.1)
    assert found.noise_density[0] == pytest.approx(2e-10 * 0.01, rel=0.3)


def test_a_rest_does_not_set_the_cutoff():
    rng = np.random.default_rng(2)
    time = np.arange(0, 20, 0.005)
    motion = random_motion(rng, 3).sample(time)[0] + 1e-5 * rng.normal(size=(len(time), 3))
    rest = motion[0] + 1e-5 * rng.normal(size=(12_000, 3))
    alone, together = spectrum((motion, 0.005)), spectrum((rest, 0.005), (motion, 0.005))
    assert automatic_cutoff(together) == pytest.approx(automatic_cutoff(alone), rel=0.3)


@pytest.mark.parametrize("frequency", [15.0, 40.0])
@pytest.mark.parametrize("size", [3e-5, 1e-3])
def test_a_held_joint_that_trembles_does_not_set_the_cutoff(frequency, size):
    """Drives hold the wrist while the rest of the arm moves, and hold it hardly ever still."""
    rng = np.random.default_rng(6)
    time = np.arange(0, 20, 2e-3)
    q, _, _ = random_motion(rng, 4).sample(time)
    noise = 2e-5 * rng.normal(size=q.shape)
    alone = automatic_cutoff(spectrum(((q + noise)[:, :3], 2e-3)))
    q[:, 3] = size * np.sin(2 * np.pi * frequency * time)
    assert automatic_cutoff(spectrum((q + noise, 2e-3))) == pytest.approx(alone, rel=0.2)


def test_where_all_joints_move_little_the_fastest_counts():
    time = np.arange(0, 20, 2e-3)
    q = 5e-3 * np.sin(2 * np.pi * np.array([1.0, 4.0]) * time[:, None])
    assert automatic_cutoff(spectrum((q + 1e-3 * np.random.default_rng(7).normal(size=q.shape), 2e-3))) >= 20.0


def test_noise_of_the_acceleration_below_the_cutoff_is_little():
    rng = np.random.default_rng(3)
    period, noise = 1e-3, 3e-4
    time = np.arange(0, 30, period)
    clean = random_motion(rng, 3, base_hz=0.16).sample(time)[0]
    cutoff = automatic_cutoff(spectrum((clean + noise * rng.normal(size=clean.shape), period)))
    (acceleration,) = derivatives(clean, period, (2,))
    (off,) = derivatives(low_pass(noise * rng.normal(size=clean.shape), period, cutoff), period, (2,))
    share = np.median(np.var(off, axis=0) / np.var(acceleration, axis=0))
    assert 2e-5 < share < 2e-4


def test_automatic_cutoff_stays_in_the_band_that_an_earlier_low_pass_left():
    rng = np.random.default_rng(4)
    time = np.arange(0, 30, 1e-3)
    noisy = np.sin(2 * np.pi * 0.8 * time)[:, None] + 1e-4 * rng.normal(size=(len(time), 1))
    assert automatic_cutoff(spectrum((low_pass(noisy, 1e-3, 4.0), 1e-3))) < 6.0
    assert automatic_cutoff(spectrum((noisy, 1e-3))) > 8.0


@pytest.mark.parametrize("corner", [20.0, 50.0, 100.0])
def test_noise_that_was_low_passed_before_counts_as_the_noise_below_the_cutoff(corner):
    rng = np.random.default_rng(5)
    time = np.arange(0, 20, 1e-3)
    q = random_motion(rng, 3, base_hz=0.16).sample(time)[0]
    noise = 3e-4 * rng.normal(size=q.shape)
    white = automatic_cutoff(spectrum((q + noise, 1e-3)))
    filtered = automatic_cutoff(spectrum((q + low_pass(noise, 1e-3, corner), 1e-3)))
    assert filtered == pytest.approx(white, rel=0.2)


def test_noise_that_a_driver_low_passed_softly_is_left_out():
    """It falls by two powers from 10 Hz on, so that its acceleration has no end, and is white nowhere for long."""
    rng, time = np.random.default_rng(8), np.arange(0, 20, 2e-3)
    q, _, a = random_motion(rng, 4, base_hz=0.2).sample(time)
    soft = scipy.signal.butter(2, 10.0, fs=500.0, output="sos")
    measured = scipy.signal.sosfilt(soft, q + 2e-3 * rng.normal(size=q.shape), axis=0)
    cutoff = automatic_cutoff(spectrum((measured[500:], 2e-3)))
    quiet = scipy.signal.sosfilt(soft, q, axis=0)
    (noise,) = derivatives(low_pass(measured - quiet, 2e-3, cutoff)[500:], 2e-3, (2,))
    assert (np.var(noise, axis=0) < 0.1 * np.var(a, axis=0)).all()


def test_automatic_cutoff_stays_below_the_nyquist_rate():
    time = np.arange(0, 20, 0.1)
    fast = np.sin(2 * np.pi * 3.0 * time)[:, None]
    assert automatic_cutoff(spectrum((fast, 0.1))) <= 4.0


@pytest.mark.parametrize(("noise", "cutoff"), [(0.0, (30.0, 45.0)), (1e-3, (1.5, 4.0))])
def test_cutoff_follows_a_free_base_down_to_its_noise_and_no_further(noise, cutoff):
    rng = np.random.default_rng(6)
    time = np.arange(0, 20, 4e-3)
    joints, base = (random_motion(rng, 3).sample(time)[0] for _ in range(2))
    noisy = base + noise * rng.normal(size=base.shape)
    lowest, highest = cutoff
    assert lowest < automatic_cutoff(spectrum((joints, 4e-3)), spectrum((noisy, 4e-3))) < highest


def test_a_motion_without_noise_does_not_leak_into_its_noise():
    time = np.arange(0, 20, 4e-3)
    assert spectrum((random_motion(np.random.default_rng(7), 3).sample(time)[0], 4e-3)).noise_density.max() < 1e-28


def test_noise_that_is_not_white_is_no_motion():
    """That of scattered stamps, which resampling took from the upper half of the band."""
    rng = np.random.default_rng(0)
    time = np.arange(0, 20, 1e-3)
    motion = np.sin(2 * np.pi * 0.5 * time)
    band = scipy.signal.butter(4, (10, 60), "bandpass", fs=1e3, output="sos")
    noise = scipy.signal.sosfiltfilt(band, rng.normal(size=len(time)))
    noise *= 0.15 * np.std(np.gradient(motion, time)) / np.std(np.gradient(noise, time))  # 2 % of the velocity power
    position = np.column_stack([motion + noise, motion]) + 1e-7 * rng.normal(size=(len(time), 2))
    found = spectrum((position, 1e-3))
    assert (found.motion_hz < 1.0).all()
    assert automatic_cutoff(found) < 45.0


@pytest.mark.parametrize("leaps", [1, 2, 3])
@pytest.mark.parametrize("joints", [slice(0, 1), slice(None)])
def test_a_robot_that_leaps_after_its_controller_does_not_set_the_cutoff(leaps, joints):
    """Held up for a third of a second, it catches up at several times its speed."""
    rng = np.random.default_rng(leaps)
    time = np.arange(0, 60, 2e-3)
    motion = random_motion(rng, 4)
    noise = 2e-5 * rng.normal(size=(len(time), 4))
    late = time.copy()
    for at in rng.choice(np.arange(2.0, 58.0, 2.0), leaps, replace=False):
        held = (time > at) & (time < at + 0.3)
        late[held] = at
        catches_up = (time >= at + 0.3) & (time < at + 0.38)
        late[catches_up] = np.interp(time[catches_up], [at + 0.3, at + 0.38], [at, at + 0.38])
    q = motion.sample(time)[0]
    usual = automatic_cutoff(spectrum((q + noise, 2e-3)))
    q[:, joints] = motion.sample(late)[0][:, joints]
    found = automatic_cutoff(spectrum(*without_rare_leaps([(q + noise, 2e-3)])))
    assert usual / 1.5 < found < 1.5 * usual


@pytest.mark.parametrize("moving_s", [6.0, 20.0, 300.0])
def test_a_motion_after_a_long_rest_is_no_leap(moving_s):
    rng = np.random.default_rng(3)
    time = np.arange(0, moving_s, 5e-3)
    motion = random_motion(rng, 3).sample(time)[0]
    q = np.vstack([np.repeat(motion[:1], 60_000, axis=0), motion])
    pieces = [(q + 1e-5 * rng.normal(size=q.shape), 5e-3)]
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(pieces, without_rare_leaps(pieces), strict=True))


def test_motions_from_point_to_point_are_no_leaps():
    time = np.arange(0, 60, 2e-3)
    step = np.clip(time % 6.0, 0.0, 0.5) / 0.5
    q = np.where((time // 6.0) % 2 == 0, step, 1 - step)[:, None]
    pieces = [(q, 2e-3)]
    assert len(without_rare_leaps(pieces)) == 1
