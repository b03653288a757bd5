"""What recorded motion covered of a robot's range, and what to move next."""

import functools
import operator
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


@dataclass(frozen=True)
class MotionExtent:
    """How far and how fast joints moved; ``|`` joins that of more samples.

    Attributes
    ----------
    lowest, highest, fastest, sharpest : ndarray, shape (n,)
        Positions, largest speed and acceleration [rad or m, per s, per s^2].
    reversals : ndarray, shape (n,)
        Changes of the direction of motion.
    """

    lowest: Array
    highest: Array
    fastest: Array
    sharpest: Array
    reversals: Array

    @classmethod
    def from_samples(cls, model: RobotModel, samples: Samples) -> "MotionExtent":
        """Extent of the usable samples; those of a free base have more columns than joints."""
        used, joints = samples.usable, model.joints
        q, v, a = (values[used][:, values.shape[1] - joints :] for values in (samples.q, samples.v, samples.a))
        direction = np.sign(v)
        return cls(
            q.min(axis=0, initial=np.inf),
            q.max(axis=0, initial=-np.inf),
            np.abs(v).max(axis=0, initial=0.0),
            np.abs(a).max(axis=0, initial=0.0),
            np.sum(direction[1:] * direction[:-1] < 0, axis=0),
        )

    def __or__(self, other: "MotionExtent") -> "MotionExtent":
        return MotionExtent(
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
            np.maximum(self.fastest, other.fastest),
            np.maximum(self.sharpest, other.sharpest),
            self.reversals + other.reversals,
        )


def motion_coverage(
    model: RobotModel, recordings: Sequence[Samples], confidence: TorqueConfidence | None
) -> tuple[JointCoverage, ...]:
    """Coverage of every joint by recordings that were fitted, see :func:`coverage_of_extent`."""
    extents = (MotionExtent.from_samples(model, samples) for samples in recordings)
    return coverage_of_extent(model, functools.reduce(operator.or_, extents), confidence)


def coverage_of_extent(
    model: RobotModel, extent: MotionExtent, confidence: TorqueConfidence | None
) -> tuple[JointCoverage, ...]:
    """Coverage of every joint, with advice for the joints whose torque is known least.

    Parameters
    ----------
    confidence : TorqueConfidence or None
        Of what was fitted; None on a free base.
    """
    span = extent.highest - extent.lowest
    used = np.stack(
        [_share(span, model.limits.upper - model.limits.lower), _share(extent.fastest, model.limits.velocity)]
    )
    open_torque = np.full(model.joints, np.nan) if confidence is None else confidence.shares
    advice = _advice(open_torque, used)
    return tuple(
        JointCoverage(
            name, float(extent.lowest[i]), float(extent.highest[i]), float(extent.fastest[i]),
            float(extent.sharpest[i]), float(used[0, i]), float(used[1, i]), int(extent.reversals[i]),
            float(open_torque[i]), advice[i],
        )
        for i, name in enumerate(model.joint_names)
    )  # fmt: skip


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
