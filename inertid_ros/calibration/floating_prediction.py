"""Errors of the predicted motion of a floating base and of predicted joint torques ([Naveen2019]_ sec. 6.4, eq. 42)."""

from collections.abc import Sequence

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.data.preparation.filtering import low_pass
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.validation import PredictionError
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.floating_base_motion import BaseMotion, wheel_force
from inertid_ros.robot.model import RobotModel

_BASE = (("linear velocity of the base", "m/s", slice(0, 3)), ("angular velocity of the base", "rad/s", slice(3, 6)))


def prediction_errors(
    model: RobotModel, prior: Array, calibrated: Array, recordings: Sequence[Recording], samples: Sequence[Samples]
) -> tuple[PredictionError, ...]:
    """Errors of bodies ``(nb, 10)`` of the URDF and of the result, on samples for equations of momentum.

    The rates of joints and wheels predict the twist of the base, and the motion of base, joints and wheels predicts the
    torque of the joints, without friction. Torque is compared if the recordings have efforts.
    """
    twist = np.concatenate([part.v[part.usable, :6] for part in samples])
    twists = [np.concatenate([_twist(model, bodies, part)[part.usable] for part in samples])
        for bodies in (prior, calibrated)]
    errors = [PredictionError(name, unit, _rms(twist[:, axes]), *(_rms((twist - each)[:, axes]) for each in twists))
        for name, unit, axes in _BASE]
    if all(np.isfinite(recording.effort).all() and recording.effort.any() for recording in recordings):
        pairs = list(zip(recordings, samples, strict=True))
        torque = np.concatenate([_torque(model, recording, part)[part.usable] for recording, part in pairs])
        of_wheels = [_torque_of_wheels(model, recording, part) for recording, part in pairs]
        torques = [np.concatenate([(_torque_of_bodies(model, bodies, part) + wheels)[part.usable]
            for part, wheels in zip(samples, of_wheels, strict=True)]) for bodies in (prior, calibrated)]
        for joint, name in enumerate(model.joint_names):
            unit = "N" if model.slides[joint] else "N m"
            both = (_rms(torque[:, joint] - each[:, joint]) for each in torques)
            errors.append(PredictionError(f"torque of {name}", unit, _rms(torque[:, joint]), *both))
    return tuple(errors)


def _twist(model: RobotModel, bodies: Array, samples: Samples) -> Array:
    """Twist ``(N, 6)`` of the base at zero total momentum; ``samples.tau`` is minus the momentum of the wheels."""
    standing = np.zeros((len(samples.q), len(model.wheels.names)))
    return BaseMotion(model.tree, bodies, model.wheels).twist(samples.q[:, 7:], samples.v[:, 6:], standing, samples.tau)


def _torque_of_bodies(model: RobotModel, bodies: Array, samples: Samples) -> Array:
    return rigid_torque(model, bodies, samples.q, samples.v, samples.a)[:, 6:]


def _torque_of_wheels(model: RobotModel, recording: Recording, samples: Samples) -> Array:
    """Torque ``(N, n)`` of the joints that turns the momentum of wheels, which need not be on the base."""
    if not any(model.wheels.bodies):
        return np.zeros((len(samples.q), model.joints))
    even, speed = _smooth(recording, _speed(recording)[:, recording.columns(model.wheels.names)], samples)
    both = (_interpolated(samples.time, even, each) for each in (speed, np.gradient(speed, even, axis=0)))
    return wheel_force(model, samples.q[:, 7:], samples.v, *both)[:, 6:]


def _speed(recording: Recording) -> Array:
    if recording.velocity is not None and np.isfinite(recording.velocity).any(axis=0).all():
        return recording.velocity
    return np.asarray(np.gradient(recording.position, recording.time, axis=0))


def _torque(model: RobotModel, recording: Recording, samples: Samples) -> Array:
    """Measured torque ``(N, n)`` at the samples, below their cutoff."""
    effort = recording.effort[:, recording.columns(model.joint_names)] * model.effort_scale
    return _interpolated(samples.time, *_smooth(recording, effort, samples))


def _smooth(recording: Recording, values: Array, samples: Samples) -> tuple[Array, Array]:
    """Even times, and values of a recording at these times, below the cutoff of the samples."""
    even = np.arange(recording.time[0], recording.time[-1], recording.period)
    return even, low_pass(_interpolated(even, recording.time, values), recording.period, samples.cutoff_hz)


def _interpolated(time: Array, known: Array, values: Array) -> Array:
    pairs = zip(np.isfinite(values.T), values.T, strict=True)
    return np.column_stack([np.interp(time, known[finite], column[finite]) for finite, column in pairs])


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))
