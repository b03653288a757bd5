"""Simulation of a free-floating robot with joints and reaction wheels.

Joints and wheels follow their rates, as with good velocity loops ([Naveen2019]_ sec. 6.3). The momentum of robot and
wheels then determines the motion of the base; without external wrenches it is conserved.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.config.simulation import SensorOptions
from inertid_ros.core.arrays import Array, cross, rotate, rotation_matrices
from inertid_ros.core.errors import ModelError
from inertid_ros.data.preparation.whole_body_samples import dead_reckoning, fine_dead_reckoning
from inertid_ros.data.recording import Recording
from inertid_ros.excitation.motions import Trajectory
from inertid_ros.regressors.whole_body_equations import momentum_regressor
from inertid_ros.robot.floating_base_motion import REST_POSE, BaseMotion
from inertid_ros.robot.model import RobotModel

_SENSORS = SensorOptions()
# Of the base's velocity [m/s] and rate [rad/s], and of the rates of joints and wheels ([Naveen2019]_ sec. 6.3).
RATE_NOISE = (_SENSORS.base_velocity_noise, _SENSORS.base_rate_noise, 5e-5)
_MAX_POSE_ITERATIONS, _POSE_TOLERANCE = 30, 1e-12

ExternalTorque = Callable[[Array, Array], Array]
"""Torque ``(M, 3)`` from times ``(M,)`` [s] and inertia ``(M, 3, 3)``, both about the centre of mass in world axes."""


@dataclass(frozen=True)
class GravityGradient:
    """Torque of gravity in a circular orbit at rate ``n`` [rad/s]: ``3 n^2 r x (I r)``, ``r`` away from the planet."""

    rate: float = 1.1e-3  # in low Earth orbit

    def __call__(self, time: Array, inertia: Array) -> Array:
        angle = self.rate * time
        away = np.stack([np.cos(angle), np.zeros_like(angle), np.sin(angle)], axis=-1)
        return np.asarray(3 * self.rate**2 * np.cross(away, (inertia @ away[..., None])[..., 0]))


@dataclass(frozen=True)
class FreeMotion:
    """True motion of the robot.

    Attributes
    ----------
    pose : (N, 7), pose of the base in the world (position, quaternion x y z w).
    twist : (N, 6), twist of the base in its own frame.
    q, v : (N, n), positions and velocities of the joints.
    angles, speeds : (N, w), angles and speeds of the wheels [rad], [rad/s].
    momentum : (N, 6), momentum of robot and wheels about the world's origin, in world axes [N s], [N m s].
    """

    time: Array
    pose: Array
    twist: Array
    q: Array
    v: Array
    angles: Array
    speeds: Array
    momentum: Array


def float_freely(
        model: RobotModel, bodies: Array, trajectory: Trajectory, rate_hz: float = 100.0, momentum: Array | None = None,
        torque: ExternalTorque | None = None) -> FreeMotion:
    """Simulate the motion of the base from the world's origin, at zero or given momentum, along a trajectory.

    Parameters
    ----------
    bodies : (nb, 10), true parameters; the model's parameters are not used.
    trajectory : trajectory of joints, then wheels.
    momentum : (6,), total momentum at the start, about the world's origin; default zero.
    torque : external torque about the centre of mass.

    Raises
    ------
    ModelError
        The base is fixed, or the trajectory does not have one axis per joint and wheel.
    """
    if not model.free:
        raise ModelError(f"robot '{model.name}': its base is fixed and cannot float; load it with robot.base: free")
    count = int(round(trajectory.duration * rate_hz)) + 1
    period = float(trajectory.duration) / (count - 1)
    time: Array = 0.5 * period * np.arange(2 * count - 1, dtype=float)  # samples and instants midway
    both, rates, _ = trajectory.sample(time)
    if both.shape[1] != model.joints + len(model.wheels.names):
        raise ModelError(
            f"trajectory: moves {both.shape[1]} axes, robot '{model.name}' has {model.joints} joints and"
            f" {len(model.wheels.names)} wheels; give a trajectory of all axes, wheels last")
    q, v, speeds = both[:, : model.joints], rates[:, : model.joints], rates[:, model.joints :]
    base = BaseMotion(model.tree, bodies, model.wheels)
    inertia, joint_momentum = base.momentum(q, v, speeds)
    start = np.zeros(6) if momentum is None else np.asarray(momentum, dtype=float)
    total = np.tile(start, (len(time), 1))
    pose = np.tile(REST_POSE, (len(time), 1))
    # Fixed-point iteration: the pose gives the momentum in the base frame, which gives the twist and again the pose.
    for _ in range(_MAX_POSE_ITERATIONS):
        local = _to_base(total, pose)
        twist: Array = np.asarray(np.linalg.solve(inertia, (local - joint_momentum)[..., None])[..., 0], dtype=float)
        updated = _between(fine_dead_reckoning(period, twist, REST_POSE), twist, period)
        change, pose = float(np.abs(updated - pose).max()), updated
        if torque is not None:
            total = start + _impulse(torque(time, _central_inertia(inertia, pose)), period)
        if change < _POSE_TOLERANCE or (not start.any() and torque is None):
            break
    samples = slice(None, None, 2)
    regressor = momentum_regressor(model.tree, twist[samples], q[samples], v[samples], pose[samples])
    total_momentum = regressor @ np.ravel(bodies)
    spin = base.wheel_momentum(q[samples], speeds[samples])
    total_momentum[:, 3:] += rotate(pose[samples, 3:], spin)
    return FreeMotion(
        time[samples], pose[samples], twist[samples], q[samples], v[samples], both[samples, model.joints :],
        speeds[samples], total_momentum)


def measured(model: RobotModel, motion: FreeMotion, noise: Sequence[float], rng: np.random.Generator,
        name: str) -> Recording:
    """Record a motion with rate sensors; positions and poses are integrated from the rates ([Naveen2019]_ sec. 7.3).

    Only the initial joint positions, wheel angles and base pose come from the true motion. ``noise (3,)`` are standard
    deviations of white noise on the base's velocity [m/s] and rate [rad/s], and on the rates of joints and wheels.
    """
    twist = motion.twist + rng.normal(size=motion.twist.shape) * np.repeat(noise[:2], 3)
    rates = np.hstack([motion.v, motion.speeds])
    rates = rates + noise[2] * rng.normal(size=rates.shape)
    step = np.diff(motion.time)[:, None]
    start = np.hstack([motion.q[0], motion.angles[0]])
    position = start + np.vstack([np.zeros_like(start), np.cumsum(0.5 * (rates[1:] + rates[:-1]) * step, axis=0)])
    return Recording(
        joint_names=model.joint_names + model.wheels.names, time=motion.time, position=position, velocity=rates,
        effort=np.zeros_like(position), base_pose=dead_reckoning(motion.time, twist, motion.pose[0]), base_twist=twist,
        name=name)


def _to_base(momentum: Array, pose: Array) -> Array:
    """Convert momentum ``(M, 6)`` about the world's origin to momentum about the base's origin, in base coordinates."""
    angular = momentum[:, 3:] - cross(pose[:, :3], momentum[:, :3])
    both = np.stack([momentum[:, :3], angular], axis=1)
    return (both @ rotation_matrices(pose[:, 3:])).reshape(-1, 6)  # rows, so that R^T applies to each


def _between(poses: Array, twist: Array, period: float) -> Array:
    """Return poses at samples and midway between samples, from poses at samples."""
    out = np.empty((2 * len(poses) - 1, 7))
    out[::2] = poses
    first, middle, last = twist[:-1:2], twist[1::2], twist[2::2]
    half = period / 24 * (5 * first + 8 * middle - last)
    out[1::2, :3] = poses[:-1, :3] + rotate(poses[:-1, 3:], half[:, :3])
    x, y, z = (0.5 * half[:, 3:]).T
    qx, qy, qz, qw = poses[:-1, 3:].T
    out[1::2, 3:] = np.stack(
        [qx + qw * x + qy * z - qz * y, qy + qw * y + qz * x - qx * z, qz + qw * z + qx * y - qy * x,
         qw - qx * x - qy * y - qz * z], axis=-1)
    return out


def _central_inertia(inertia: Array, pose: Array) -> Array:
    """Return inertia ``(M, 3, 3)`` about the centre of mass in world axes, from ``(M, 6, 6)`` in the base frame."""
    mass = inertia[:, :1, :1]
    lever = inertia[:, 3:, :3] / mass
    turn = rotation_matrices(pose[:, 3:])
    return turn @ (inertia[:, 3:, 3:] + mass * (lever @ lever)) @ turn.transpose(0, 2, 1)


def _impulse(torque: Array, period: float) -> Array:
    """Return the momentum ``(M, 6)`` that a torque ``(M, 3)`` adds, at samples and midway between samples."""
    first, middle, last = torque[:-1:2], torque[1::2], torque[2::2]
    out = np.zeros((len(torque), 6))
    out[2::2, 3:] = np.cumsum(period / 6 * (first + 4 * middle + last), axis=0)
    out[1::2, 3:] = out[:-1:2, 3:] + period / 24 * (5 * first + 8 * middle - last)
    return out
