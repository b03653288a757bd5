"""What recorded motion covered of a robot's range, and what to move next."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.torque_confidence import TorqueConfidence
from inertid_ros.robot.model import RobotModel

_MODERATE = 0.3  # of a limit: less leaves room for more motion
_WELL_KNOWN = 0.05  # of a joint's torque: what is known better needs no further motion
_ADVISED = 3  # joints that are named
_WAYS = ("through more of its range", "faster", "with more acceleration")


@dataclass(frozen=True)
class JointCoverage:
    """Motion of one joint over all recordings that were fitted.

    Attributes
    ----------
    joint : str
        Its name.
    lowest, highest : float
        Positions [rad or m].
    fastest, sharpest : float
        Largest speed and acceleration after the low-pass [rad/s or m/s, per s].
    range_used, velocity_used : float
        Shares of the limits of position and velocity; NaN where the URDF has none.
    reversals : int
        Changes of the direction of motion, which separate dry from viscous friction.
    torque_deviation : float
        Standard deviation of predicted torque over the robot's range as a share of torque; NaN on a free base.
    advice : str
        What to move next; empty where nothing is to be gained, or others come first.
    """

    joint: str
    lowest: float
    highest: float
    fastest: float
    sharpest: float
    range_used: float
    velocity_used: float
    reversals: int
    torque_deviation: float
    advice: str = ""


def motion_coverage(
    model: RobotModel, recordings: Sequence[Samples], confidence: TorqueConfidence | None
) -> tuple[JointCoverage, ...]:
    """Coverage of every joint by recordings that were fitted, with advice for the joints whose torque is known least.

    Parameters
    ----------
    confidence : TorqueConfidence or None
        Of what was fitted; None on a free base.
    """
    position, velocity, acceleration, reversals = _motion(model, recordings)
    span = np.ptp(position, axis=0)
    fastest, sharpest = np.abs(velocity).max(axis=0), np.abs(acceleration).max(axis=0)
    used = np.stack([_share(span, model.limits.upper - model.limits.lower), _share(fastest, model.limits.velocity)])
    open_torque = np.full(model.joints, np.nan) if confidence is None else confidence.shares
    advice = _advice(open_torque, used)
    return tuple(
        JointCoverage(
            name, float(position[:, i].min()), float(position[:, i].max()), float(fastest[i]), float(sharpest[i]),
            float(used[0, i]), float(used[1, i]), int(reversals[i]), float(open_torque[i]), advice[i],
        )
        for i, name in enumerate(model.joint_names)
    )  # fmt: skip


def _motion(model: RobotModel, recordings: Sequence[Samples]) -> tuple[Array, Array, Array, Array]:
    """Positions, velocities and accelerations ``(N, n)`` of usable samples, and changes of direction ``(n,)``."""
    signals: list[list[Array]] = [[], [], []]
    reversals = np.zeros(model.joints)
    for samples in recordings:
        for kept, values in zip(signals, (samples.q, samples.v, samples.a), strict=True):
            kept.append(values[samples.usable][:, values.shape[1] - model.joints :])
        direction = np.sign(signals[1][-1])
        reversals += np.sum(direction[1:] * direction[:-1] < 0, axis=0)
    position, velocity, acceleration = (np.concatenate(each) for each in signals)
    return position, velocity, acceleration, reversals


def _share(values: Array, limits: Array) -> Array:
    bounded = np.isfinite(limits) & (limits > 0)
    return np.where(bounded, values / np.where(bounded, limits, 1.0), np.nan)


def _advice(open_torque: Array, used: Array) -> list[str]:
    """What to do per joint ``(n,)``: for those least known, the ways in which they hardly moved."""
    advice = [""] * len(open_torque)
    known = np.nan_to_num(open_torque)
    for joint in np.argsort(-known)[:_ADVISED]:
        if known[joint] > _WELL_KNOWN:
            ways = [way for way, share in zip(_WAYS, used[:, joint], strict=False) if share < _MODERATE]
            advice[joint] = f"move it {' and '.join(ways or [_WAYS[2]])}"
    return advice
