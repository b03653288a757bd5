"""How drives follow their command: commanded minus measured position as a function of what is commanded."""

import numpy as np

from inertid_ros.core.arrays import Array

# Of velocity (lag) [s], acceleration [s^2], a constant (weight, offset of the sensor) and the direction (friction,
# play) [rad or m]: standard deviations before anything is known, and of what each changes by in a second.
_UNKNOWN = np.array([0.1, 0.01, 0.05, 0.005])
_DRIFT = np.array([1e-3, 2e-4, 1e-3, 1e-3])
_SLOW = 0.05  # rad/s or m/s; slower, friction has no direction yet
_NOISE = 1e-3  # rad or m; of single positions


class DriveResponse:
    """A linear model of the error of each joint, learned as by a Kalman filter whose coefficients drift.

    Drives of any order that lag by some tens of milliseconds are nearly linear in velocity and acceleration.

    Parameters
    ----------
    joints : int
        ``n``.
    """

    def __init__(self, joints: int) -> None:
        self._mean = np.zeros((joints, len(_UNKNOWN)))
        self._covariance = np.tile(np.diag(_UNKNOWN**2), (joints, 1, 1))

    def expected(self, velocity: Array, acceleration: Array) -> Array:
        """Return the error ``(m, n)`` [rad or m] that is expected where these ``(m, n)`` are commanded."""
        return np.einsum("mnk,nk->mn", _features(velocity, acceleration), self._mean)

    def deviation_of_change(self, velocity: Array, acceleration: Array) -> Array:
        """Return the standard deviation ``(n,)`` of the change of the expected error between two commands."""
        change = np.diff(_features(velocity, acceleration), axis=0)[0]
        return np.sqrt(np.einsum("nk,nkl,nl->n", change, self._covariance, change))

    def learn(self, error: Array, velocity: Array, acceleration: Array, elapsed: float) -> None:
        """Take commanded minus measured position ``(m, n)`` at ``m`` times within ``elapsed`` seconds."""
        features = _features(velocity, acceleration) / _NOISE
        before = np.linalg.inv(self._covariance + np.diag(_DRIFT**2) * elapsed)
        information = before + np.einsum("mnk,mnl->nkl", features, features)
        vector = np.einsum("nkl,nl->nk", before, self._mean) + np.einsum("mnk,mn->nk", features, error / _NOISE)
        self._covariance = np.linalg.inv(information)
        self._mean = np.einsum("nkl,nl->nk", self._covariance, vector)


def _features(velocity: Array, acceleration: Array) -> Array:
    """``(m, n, 4)``"""
    return np.stack([velocity, acceleration, np.ones_like(velocity), np.tanh(velocity / _SLOW)], axis=-1)
