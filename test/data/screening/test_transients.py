"""Ends of a recording that move unlike the rest of it are left out, and nothing else is."""

import numpy as np

from inertid_ros.data.preparation.filtered_motion import without_transients

TIME = np.arange(0.0, 20.0, 0.01)


def acceleration() -> np.ndarray:
    """Two joints that swing for the whole time, and one that rests."""
    return np.stack([np.sin(2 * TIME), 0.5 * np.cos(3 * TIME), np.zeros_like(TIME)], axis=1)


def test_even_motion_loses_nothing():
    assert without_transients(TIME, acceleration()).all()


def test_a_jerk_at_either_end_is_cut_up_to_its_last_sample():
    jerked = acceleration()
    jerked[30:35, 0] += 20.0
    jerked[-80:-75, 1] -= 8.0
    usable = without_transients(TIME, jerked)
    assert not usable[:35].any() and usable[35:-80].all() and not usable[-80:].any()


def test_nothing_in_the_centre_is_cut():
    jerked = acceleration()
    jerked[1000:1005, 0] += 20.0
    assert without_transients(TIME, jerked).all()


def test_a_joint_that_rests_in_the_centre_says_nothing():
    moved = acceleration()
    moved[:50, 2] = 1.0
    assert without_transients(TIME, moved).all()


def test_a_recording_without_a_centre_stays():
    time = np.array([0.0, 1.0])
    assert without_transients(time, np.ones((2, 1))).all()
