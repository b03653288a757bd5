"""Errors of the predicted motion of a floating base and of predicted joint torques ([Naveen2019]_ sec. 6.4, eq. 42)."""

from collections.abc import Sequence

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.data.preparation.filtering import low_pass
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.validation import PredictionError
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.floating_base_motion import BaseMotion
from inertid_ros.robot.model import RobotModel

_BASE = (("linear velocity of the base", "m/s", slice(0, 3)), ("angular velocity of the base", "rad/s", slice(3, 6)))


def prediction_errors(
    model: RobotModel, prior: Array, calibrated: Array, recordings: Sequence[Recording], samples: Sequence[Samples]
) -> tuple[PredictionError, ...]:
    """Errors of bodies ``(nb, 10)`` of the URDF and of the result, on samples for equations of momentum.

    The rates of joints and wheels predict the twist of the base, and the motion of base and joints predicts the torque
    of the joints, without friction. Torque is compared if the recordings have efforts.
    """
    twist = np.concatenate([part.v[part.usable, :6] for part in samples])
    twists = [np.concatenate([_twist(model, bodies, part)[part.usable] for part in samples])
        for bodies in (prior, calibrated)]
    errors = [PredictionError(name, unit, _rms(twist[:, axes]), *(_rms((twist - each)[:, axes]) for each in twists))
        for name, unit, axes in _BASE]
    if all(np.isfinite(recording.effort).all() and recording.effort.any() for recording in recordings):
        pairs = zip(recordings, samples, strict=True)
        torque = np.concatenate([_torque(model, recording, part)[part.usable] for recording, part in pairs])
        torques = [np.concatenate([_predicted_torque(model, bodies, part)[part.usable] for part in samples])
            for bodies in (prior, calibrated)]
        for joint, name in enumerate(model.joint_names):
            unit = "N" if model.slides[joint] else "N m"
            both = (_rms(torque[:, joint] - each[:, joint]) for each in torques)
            errors.append(PredictionError(f"torque of {name}", unit, _rms(torque[:, joint]), *both))
    return tuple(errors)


def _twist(model: RobotModel, bodies: Array, samples: Samples) -> Array:
    """Twist ``(N, 6)`` of the base at zero total momentum; ``samples.tau`` is minus the momentum of the wheels."""
    standing = np.zeros((len(samples.q), len(model.wheels.names)))
    return BaseMotion(model.tree, bodies, model.wheels).twist(samples.q[:, 7:], samples.v[:, 6:], standing, samples.tau)


def _predicted_torque(model: RobotModel, bodies: Array, samples: Samples) -> Array:
    return rigid_torque(model, bodies, samples.q, samples.v, samples.a)[:, 6:]


def _torque(model: RobotModel, recording: Recording, samples: Samples) -> Array:
    """Measured torque ``(N, n)`` at the samples, below their cutoff."""
    period = float(np.median(np.diff(recording.time)))
    even = np.arange(recording.time[0], recording.time[-1], period)
    columns = [recording.joint_names.index(name) for name in model.joint_names]
    effort = recording.effort[:, columns] * model.effort_scale
    smooth = low_pass(_interpolated(even, recording.time, effort), period, samples.cutoff_hz)
    return _interpolated(samples.time, even, smooth)


def _interpolated(time: Array, known: Array, values: Array) -> Array:
    return np.column_stack([np.interp(time, known, column) for column in values.T])


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))
