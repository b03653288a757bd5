"""Friction of every joint over its velocity, and the data that show it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.dynamics.friction import dry_friction, friction_direction, friction_torque
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.regressors.drive_regressor import DriveMotion
from inertid_ros.regressors.force_equations import ForceEquations

TERMS = ("viscous", "coulomb", "stribeck")
_POINTS, _TOTAL, _SPEEDS = 200, 1400, 41  # samples of a joint and of all joints, and points of a curve


@dataclass(frozen=True)
class FrictionCurve:
    """Friction of one joint.

    Attributes
    ----------
    joint : str
        Its name.
    velocity, torque : ndarray, shape (K,)
        Of some samples: velocity [rad/s or m/s], and measured torque less what all else of the estimate predicts, that
        is friction and residual [N m or N]; NaN of samples that rest, whose friction has no direction.
    speeds, friction, deviation : ndarray, shape (S,)
        Friction of the estimate over velocity, and its standard deviation.
    """

    joint: str
    velocity: Array
    torque: Array
    speeds: Array
    friction: Array
    deviation: Array


def friction_curves(estimate: Estimate, recordings: Sequence[Samples]) -> tuple[FrictionCurve, ...]:
    """Curve of every joint whose torque and friction were identified; none where equations are not those of force."""
    layout, equations = estimate.layout, estimate.equations
    if not isinstance(equations, ForceEquations) or not set(TERMS) & set(layout.drive_terms) or not recordings:
        return ()
    terms = {term: estimate.drive(term) for term in TERMS}
    joints = estimate.model.joints
    shape = layout.stribeck_speed, layout.transition_speed[:joints]
    velocity, torque = [], []
    for samples in recordings:
        motion = DriveMotion.of(layout, samples)
        columns = dict(zip(TERMS, (motion.v, motion.direction[:, :joints], motion.fading), strict=True))
        own = sum((terms[term] * column for term, column in columns.items()), np.zeros_like(motion.v))
        residual = (samples.tau - equations.predict(estimate.parameters, samples))[:, equations.joint_channels]
        slides = samples.valid if samples.sliding is None else samples.valid & samples.sliding
        rows = np.flatnonzero(samples.usable)
        rows = rows[:: max(1, -(-len(rows) * len(recordings) // min(_POINTS, max(1, _TOTAL // joints))))]
        velocity.append(motion.v[rows])
        torque.append(np.where(slides[rows][:, equations.joint_channels], (own + residual)[rows], np.nan))
    all_v, all_torque = np.concatenate(velocity), np.concatenate(torque)
    fastest = np.abs(all_v).max(axis=0, initial=0.0)
    even = np.linspace(-1.0, 1.0, _SPEEDS)[:, None]
    speeds = even * np.abs(even) * fastest  # denser near zero, where friction turns
    friction, deviation = friction_torque(speeds, terms, *shape), _deviation(estimate, speeds)
    fitted = equations.of_joints(estimate.effective_counts) > 0
    return tuple(
        FrictionCurve(name, all_v[:, i], all_torque[:, i], speeds[:, i], friction[:, i], deviation[:, i])
        for i, name in enumerate(estimate.model.joint_names)
        if fitted[i] and fastest[i] > 0
    )


def _deviation(estimate: Estimate, speeds: Array) -> Array:
    """``(S, n)`` standard deviation of friction at speeds ``(S, n)``, by the covariance of its terms."""
    layout = estimate.layout
    direction = friction_direction(speeds, layout.transition_speed[: speeds.shape[1]])
    fading = direction * dry_friction(speeds, np.zeros(()), np.ones(()), layout.stribeck_speed)
    present = [term for term in TERMS if term in layout.drive_terms]
    values = dict(zip(TERMS, (speeds, direction, fading), strict=True))
    slopes = np.stack([values[term] for term in present])  # (k, S, n)
    columns = np.array([np.arange(layout.size)[layout.drive(term)] for term in present])  # (k, n)
    covariance = estimate.covariance[columns[:, None, :], columns[None, :, :]]  # (k, k, n)
    return np.sqrt(np.maximum(np.einsum("asn,abn,bsn->sn", slopes, covariance, slopes), 0.0))
