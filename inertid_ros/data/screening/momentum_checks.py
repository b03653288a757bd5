"""Whether momentum is conserved, and whether pose and twist of the base agree."""

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError

_STILL = 0.01  # of an axis's fastest speed; slower counts as at rest
_SIGMA, _SHARE = 6.0, 0.05  # of noise, and of the base's usual speed: a larger speed of the base is not rest
_DRIFT = 0.1  # of the range of the base's motion; how far the integrated twist may end from the pose
_TWIST_PARTS = ((slice(0, 3), "moves", "m/s"), (slice(3, 6), "turns", "rad/s"))


def check_conservation(name: str, time: Array, twist: Array, rates: Array, noise: Array) -> None:
    """Refuse a recording in which the base moves although joints and wheels stand still.

    Momentum then came from outside, or was not zero to begin with. No parameters are needed to see that.

    Parameters
    ----------
    name : str
        Name of the recording, for messages.
    time : ndarray, shape (N,)
        Time [s].
    twist : ndarray, shape (N, 6)
        Twist of the base, linear then angular [m/s, rad/s].
    rates : ndarray, shape (N, n + w)
        Velocities of joints and wheels [rad/s or m/s].
    noise : ndarray, shape (6,)
        Standard deviation of the twist.

    Raises
    ------
    RecordingError
        The base moves at such a time; the message names time and speed.
    """
    fastest = np.abs(rates).max(axis=0, initial=0.0)
    still = (np.abs(rates) <= _STILL * fastest).all(axis=1) if len(rates) else np.zeros(0, dtype=bool)
    if not still.any() or not fastest.any():
        return
    for part, verb, unit in _TWIST_PARTS:
        speed = np.linalg.norm(twist[:, part], axis=1)
        allowed = max(_SIGMA * float(np.linalg.norm(noise[part])), _SHARE * float(np.sqrt(np.mean(speed**2))))
        at = int(np.argmax(np.where(still, speed, -1.0)))
        if speed[at] > allowed:
            raise RecordingError(
                f"{name}: momentum is not conserved, or not zero: the base {verb} at {speed[at]:.3g} {unit} at"
                f" {time[at] - time[0]:.1f} s while joints and wheels stand still; keep thrusters off and external"
                " torques away, or, if it drifted so from the start, set identify.equations to momentum_change"
            )


def check_pose(name: str, time: Array, pose: Array, integrated: Array) -> None:
    """Refuse a recording whose integrated twist drifts away from its pose, compared with how far the base moves.

    Parameters
    ----------
    name : str
        Name of the recording, for messages.
    time : ndarray, shape (N,)
        Time [s].
    pose, integrated : ndarray, shape (N, 7)
        Pose (x y z, qx qy qz qw) as recorded, and as integrated from the twist.

    Raises
    ------
    RecordingError
        They drift apart; the message names drift and range of the motion.
    """
    turn, other = (scipy.spatial.transform.Rotation.from_quat(motion[:, 3:]) for motion in (pose, integrated))
    moved, apart = (np.linalg.norm(pose[:, :3] - place, axis=1) for place in (pose[0, :3], integrated[:, :3]))
    for extent, drift, what, unit in (
        (_largest((turn[0].inv() * turn).magnitude()), float((turn.inv() * other).magnitude().max()), "turns", "rad"),
        (_largest(moved), float(apart.max()), "moves", "m"),
    ):
        if drift > _DRIFT * extent and drift > 1e-6:
            raise RecordingError(
                f"{name}: pose and twist of the base drift apart by {drift:.3g} {unit} within {time[-1] - time[0]:.0f}"
                f" s, {100 * drift / max(extent, 1e-12):.0f} % of the {extent:.3g} {unit} that it {what}; calibrate the"
                " rate sensor's bias, record shorter pieces, or start at zero momentum, where no pose is needed"
                " (identify.equations: momentum)"
            )


def _largest(values: Array) -> float:
    return float(values.max(initial=0.0))
