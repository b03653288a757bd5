"""Curves of predicted torque and of friction, and the coverage of recorded motion."""

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.config.robot import FRICTION_TERMS
from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.regressors.drives import fading_direction, friction_direction
from inertid_ros.regressors.equations import ForceEquations, prediction_variance
from inertid_ros.robot.model import RobotModel

from .estimate import Estimate
from .torque_confidence import TorqueConfidence

MAX_CURVE_POINTS, MIN_CURVE_POINTS = 300, 60  # per curve: resolution of a page, and enough to draw the motion
_MAX_POINTS_PER_PAGE = 2100  # of all channels and recordings, so that the page of a humanoid does not become large
# Plotted samples per joint and of all joints, and points of a friction curve.
_FRICTION_POINTS_PER_JOINT, _MAX_FRICTION_POINTS, _CURVE_SPEEDS = 200, 1400, 41
_LITTLE_USED_SHARE = 0.3  # of a limit; a joint that uses less has room for more motion
_WELL_KNOWN_TORQUE = 0.05  # uncertainty over torque of a joint; below it, further motion is not needed
_MAX_ADVISED_JOINTS = 3  # joints with advice
_ADVICE = ("through more of its range", "faster", "with more acceleration")


@dataclass(frozen=True)
class PredictionCurves:
    """Measured and predicted torque of one recording, at some of its usable samples.

    Attributes
    ----------
    time : (K,), time since the first sample [s]
    measured, given, calibrated : ndarray, shape (K, c)
        Torque as measured, predicted by the URDF as given, and predicted by the estimate; NaN without measurement.
    deviation : (K, c), standard deviation of ``calibrated - measured``, from residual and covariance of the estimate
    """

    name: str
    time: Array
    measured: Array
    given: Array
    calibrated: Array
    deviation: Array


def prediction_curves(estimate: Estimate, recordings: Sequence[Samples]) -> tuple[PredictionCurves, ...]:
    """Curves of recordings with the delay of effort removed; the more curves, the fewer points each."""
    curves = max(1, len(recordings) * estimate.equations.count)
    points = int(np.clip(_MAX_POINTS_PER_PAGE / curves, MIN_CURVE_POINTS, MAX_CURVE_POINTS))
    return tuple(_of_recording(estimate, samples, points) for samples in recordings)


def _of_recording(estimate: Estimate, samples: Samples, points: int) -> PredictionCurves:
    equations, usable = estimate.equations, np.flatnonzero(samples.usable)
    rows = usable[:: max(1, -(-len(usable) // points))]
    valid = samples.valid[rows]
    predicted = [equations.predict(values, samples)[rows] for values in (estimate.prior, estimate.parameters)]
    of_parameters = prediction_variance(equations, estimate.covariance, samples.select(rows))
    measured, given, calibrated = (np.where(valid, torque, np.nan) for torque in (samples.tau[rows], *predicted))
    deviation = np.sqrt(estimate.residual_deviation**2 + of_parameters)
    time = samples.time[rows] - samples.time[0]
    return PredictionCurves(samples.name, time, measured, given, calibrated, deviation)


@dataclass(frozen=True)
class FrictionCurve:
    """Friction of one joint over its velocity, with the underlying data.

    Attributes
    ----------
    velocity, torque : ndarray, shape (K,)
        Velocity of some samples [rad/s or m/s], and measured torque minus all terms of the estimate except friction,
        that is, friction plus residual [N m or N]; NaN for samples at rest, whose friction has no direction.
    speeds, friction, deviation : (S,), friction of the estimate over velocity, and its standard deviation
    """

    joint: str
    velocity: Array
    torque: Array
    speeds: Array
    friction: Array
    deviation: Array


def friction_curves(estimate: Estimate, recordings: Sequence[Samples]) -> tuple[FrictionCurve, ...]:
    """Friction curve of every moving joint with measured torque; empty without force equations or friction terms."""
    layout, equations = estimate.layout, estimate.equations
    if not isinstance(equations, ForceEquations) or not set(FRICTION_TERMS) & set(layout.drive_terms) or not recordings:
        return ()
    joints, rest = estimate.model.joints, estimate.parameters.copy()
    for term in FRICTION_TERMS:
        rest[layout.drive(term)] = 0.0
    points = min(_FRICTION_POINTS_PER_JOINT, max(1, _MAX_FRICTION_POINTS // joints))
    velocity, torque = [], []
    for samples in recordings:
        rows = np.flatnonzero(samples.usable)
        rows = rows[:: max(1, -(-len(rows) * len(recordings) // points))]
        slides = samples.valid if samples.sliding is None else samples.valid & samples.sliding
        friction = np.where(slides, samples.tau - equations.predict(rest, samples), np.nan)
        velocity.append(samples.v[rows, -joints:])
        torque.append(friction[rows, equations.joint_channels])
    all_v, all_torque = np.concatenate(velocity), np.concatenate(torque)
    fastest = np.abs(all_v).max(axis=0, initial=0.0)
    even = np.linspace(-1.0, 1.0, _CURVE_SPEEDS)[:, None]
    speeds = even * np.abs(even) * fastest  # denser near zero, since friction changes sign there
    friction, deviation = _friction(estimate, speeds)
    fitted = equations.of_joints(estimate.effective_counts) > 0
    return tuple(
        FrictionCurve(name, all_v[:, i], all_torque[:, i], speeds[:, i], friction[:, i], deviation[:, i])
        for i, name in enumerate(estimate.model.joint_names)
        if fitted[i] and fastest[i] > 0)


def _friction(estimate: Estimate, speeds: Array) -> tuple[Array, Array]:
    """Friction ``(S, n)`` at speeds ``(S, n)``, and its standard deviation from the covariance of its terms."""
    layout = estimate.layout
    direction = friction_direction(speeds, layout.transition_speed[: speeds.shape[1]])
    fading = fading_direction(direction, speeds, layout.stribeck_speed)
    present = [term for term in FRICTION_TERMS if term in layout.drive_terms]
    values = {"viscous": speeds, "coulomb": direction, "stribeck": fading}
    slopes = np.stack([values[term] for term in present])  # (k, S, n)
    columns = np.array([np.arange(layout.size)[layout.drive(term)] for term in present])  # (k, n)
    covariance = estimate.covariance[columns[:, None, :], columns[None, :, :]]  # (k, k, n)
    variance = np.einsum("asn,abn,bsn->sn", slopes, covariance, slopes)
    return np.einsum("asn,an->sn", slopes, estimate.parameters[columns]), np.sqrt(np.maximum(variance, 0.0))


@dataclass(frozen=True)
class JointCoverage:
    """Motion of one joint over all fitted recordings.

    Attributes
    ----------
    range_used, velocity_used : shares of the limits of position and velocity; NaN without limits in the URDF
    reversals : changes of the direction of motion, which separate dry from viscous friction
    torque_deviation : float
        Standard deviation of predicted torque over the robot's range as a share of torque; NaN on a free base.
    advice : motion to record next; empty if further motion has no benefit, or if other joints come first
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
    """Range, speed and acceleration that joints covered; ``|`` merges two extents.

    Attributes
    ----------
    lowest, highest, fastest, sharpest : (n,), positions, largest speed and acceleration [rad or m, per s, per s^2]
    reversals : (n,), changes of the direction of motion
    """

    lowest: Array
    highest: Array
    fastest: Array
    sharpest: Array
    reversals: Array

    @classmethod
    def from_samples(cls, model: RobotModel, samples: Samples) -> "MotionExtent":
        """Extent of the usable samples; samples of a free base have more columns than joints."""
        used, joints = samples.usable, model.joints
        q, v, a = (values[used][:, values.shape[1] - joints :] for values in (samples.q, samples.v, samples.a))
        direction = np.sign(v)
        return cls(
            q.min(axis=0, initial=np.inf), q.max(axis=0, initial=-np.inf), np.abs(v).max(axis=0, initial=0.0),
            np.abs(a).max(axis=0, initial=0.0), np.sum(direction[1:] * direction[:-1] < 0, axis=0))

    def __or__(self, other: "MotionExtent") -> "MotionExtent":
        return MotionExtent(
            np.minimum(self.lowest, other.lowest), np.maximum(self.highest, other.highest),
            np.maximum(self.fastest, other.fastest), np.maximum(self.sharpest, other.sharpest),
            self.reversals + other.reversals)


def motion_coverage(
    model: RobotModel, recordings: Sequence[Samples], confidence: TorqueConfidence | None
) -> tuple[JointCoverage, ...]:
    """Coverage of every joint by fitted recordings, see :func:`coverage_of_extent`."""
    extents = (MotionExtent.from_samples(model, samples) for samples in recordings)
    return coverage_of_extent(model, functools.reduce(operator.or_, extents), confidence)


def coverage_of_extent(
        model: RobotModel, extent: MotionExtent, confidence: TorqueConfidence | None) -> tuple[JointCoverage, ...]:
    """Coverage of every joint, with advice for the joints of the most uncertain torque."""
    span = extent.highest - extent.lowest
    used = np.stack(
        [_share(span, model.limits.upper - model.limits.lower), _share(extent.fastest, model.limits.velocity)])
    open_torque = np.full(model.joints, np.nan) if confidence is None else confidence.shares
    advice = _advice(open_torque, used)
    return tuple(
        JointCoverage(
            name, float(extent.lowest[i]), float(extent.highest[i]), float(extent.fastest[i]),
            float(extent.sharpest[i]), float(used[0, i]), float(used[1, i]), int(extent.reversals[i]),
            float(open_torque[i]), advice[i])
        for i, name in enumerate(model.joint_names))


def _share(values: Array, limits: Array) -> Array:
    bounded = np.isfinite(limits) & (limits > 0)
    return np.where(bounded, values / np.where(bounded, limits, 1.0), np.nan)


def _advice(open_torque: Array, used: Array) -> list[str]:
    """Advice per joint ``(n,)``: kinds of motion that the joints with the most uncertain torque lack."""
    advice = [""] * len(open_torque)
    uncertainty = np.nan_to_num(open_torque)
    for joint in np.argsort(-uncertainty)[:_MAX_ADVISED_JOINTS]:
        if uncertainty[joint] > _WELL_KNOWN_TORQUE:
            ways = [way for way, share in zip(_ADVICE, used[:, joint], strict=False) if share < _LITTLE_USED_SHARE]
            advice[joint] = f"move it {' and '.join(ways or [_ADVICE[2]])}"
    return advice
