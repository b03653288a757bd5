"""Whether momentum is conserved and pose and twist agree, before anything is fitted to it."""

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError

_STILL = 0.01  # of an axis's fastest speed; slower counts as standing still
_SIGMA, _SHARE = 6.0, 0.05  # of noise, and of the base's usual speed: how far off rest is off rest
_DRIFT = 0.1  # of the span of the base's motion; how far the integrated twist may end from the pose
_KINDS = ((slice(0, 3), "moves", "m/s"), (slice(3, 6), "turns", "rad/s"))


def check_conservation(name: str, time: Array, twist: Array, rates: Array, noise: Array) -> None:
    """Refuse a recording in which the base moves although joints and wheels stand still: momentum came from outside,
    or was not zero to begin with. No parameters are needed to see that.

    Parameters
    ----------
    time, twist, rates: ``(N,)``, ``(N, 6)`` of the base, ``(N, n + w)`` of joints and wheels.
    noise: ``(6,)`` standard deviation of the twist.

    Raises
    ------
    RecordingError: naming time and speed.
    """
    fastest = np.abs(rates).max(axis=0, initial=0.0)
    still = (np.abs(rates) <= _STILL * fastest).all(axis=1) if len(rates) else np.zeros(0, dtype=bool)
    if not still.any() or not fastest.any():
        return
    for part, verb, unit in _KINDS:
        speed = np.linalg.norm(twist[:, part], axis=1)
        allowed = max(_SIGMA * float(np.linalg.norm(noise[part])), _SHARE * float(np.sqrt(np.mean(speed**2))))
        at = int(np.argmax(np.where(still, speed, -1.0)))
        if speed[at] > allowed:
            raise RecordingError(
                f"{name}: momentum is not conserved, or not zero: the base {verb} at {speed[at]:.3g} {unit} at"
                f" {time[at] - time[0]:.1f} s while joints and wheels stand still; keep thrusters off and external"
                " torques away, or, if it drifted so from the start, set identify.equations to momentum_change"
            )


def check_pose(name: str, time: Array, pose: Array, reckoned: Array) -> None:
    """Refuse a recording whose integrated twist drifts away from its pose, compared with how far the base moves.

    Parameters
    ----------
    pose, reckoned: ``(N, 7)`` as recorded, and from the twist.

    Raises
    ------
    RecordingError: naming drift and span.
    """
    turn, other = (scipy.spatial.transform.Rotation.from_quat(motion[:, 3:]) for motion in (pose, reckoned))
    for span, drift, what, unit in (
        (_span((turn[0].inv() * turn).magnitude()), float((turn.inv() * other).magnitude().max()), "turns", "rad"),
        (
            _span(np.linalg.norm(pose[:, :3] - pose[0, :3], axis=1)),
            float(np.linalg.norm(pose[:, :3] - reckoned[:, :3], axis=1).max()),
            "moves",
            "m",
        ),
    ):
        if drift > _DRIFT * span and drift > 1e-6:
            raise RecordingError(
                f"{name}: pose and twist of the base drift apart by {drift:.3g} {unit} within {time[-1] - time[0]:.0f}"
                f" s, {100 * drift / max(span, 1e-12):.0f} % of the {span:.3g} {unit} that it {what}; calibrate the"
                " rate sensor's bias, record shorter pieces, or start at zero momentum, where no pose is needed"
                " (identify.equations: momentum)"
            )


def _span(values: Array) -> float:
    return float(values.max(initial=0.0))
