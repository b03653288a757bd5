"""Quaternions of many samples against Pinocchio's, and checks of measured ones."""

import numpy as np
import pinocchio as pin
import pytest

from inertid_ros.core.arrays import (
    body_rate,
    checked_quaternions,
    continuous_quaternions,
    rotate,
    rotate_back,
    rotation_matrices,
)
from inertid_ros.core.errors import RecordingError


def test_quaternions_flip_and_turn():
    rng = np.random.default_rng(0)
    angle = np.linspace(0, 6, 500)[:, None]
    quaternions = np.hstack([np.sin(angle / 2) * [0.6, 0.0, 0.8], np.cos(angle / 2)])
    flipped = quaternions * rng.choice([-1.0, 1.0], 500)[:, None]
    again = continuous_quaternions(flipped)
    np.testing.assert_allclose(again * np.sign(again[0] @ quaternions[0]), quaternions, atol=1e-15)
    vectors = rng.normal(size=(500, 3))
    pinned = [pin.Quaternion(row).toRotationMatrix() @ v for row, v in zip(quaternions, vectors, strict=True)]
    np.testing.assert_allclose(rotate(quaternions, vectors), pinned, atol=1e-12)
    matrices = rotation_matrices(3.0 * quaternions)
    np.testing.assert_allclose((matrices @ vectors[..., None])[..., 0], pinned, atol=1e-12)
    np.testing.assert_allclose(rotate_back(quaternions, rotate(quaternions, vectors)), vectors, atol=1e-12)
    rate = body_rate(quaternions[1:-1], (quaternions[2:] - quaternions[:-2]) / (2 * (angle[1] - angle[0])))
    np.testing.assert_allclose(rate, np.tile([0.6, 0.0, 0.8], (498, 1)), atol=1e-4)


def test_invalid_quaternions_are_left_out_or_refused(caplog):
    quaternions = np.tile([0.0, 0.0, 0.0, 1.0], (100, 1))
    quaternions[40:50] *= 0.3
    unit, bad = checked_quaternions(quaternions, "walk")
    assert bad.sum() == 10 and bad[40:50].all() and "10 quaternions" in caplog.text
    np.testing.assert_allclose(unit, np.tile([0.0, 0.0, 0.0, 1.0], (100, 1)))
    with pytest.raises(RecordingError, match="length 0.3"):
        checked_quaternions(0.3 * np.tile([0.0, 0.0, 0.0, 1.0], (100, 1)), "walk")
