"""Published robots that are simulated by inverse dynamics, and first recordings of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import attrs
import numpy as np
import scipy

from inertid_ros.config.robot import ContactOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.solvers.coordinates import prior_coordinates, prior_covariance_root
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.simulation.example_robots import example_urdf

from .coverage_cases import bodies_from_prior

RATE_HZ, SECONDS = 250.0, 20.0
PRIOR_SPREAD = 0.3  # spread of the true bodies around the URDF's bodies
NOISE, ROUNDED, WEAK = 0.02, 0.01, 1e-4  # relative to a channel's RMS, to its range, to the other joints' torque
FLOATING = ("a1", "anymal", "b1", "bolt", "go1", "go2", "g1", "hyq", "laikago", "solo", "talos_full", "quadruped")
SENSOR = "root"  # name of the measured wrench
_BASE = 6
_RESTS = 1e-12


def collection() -> Path:
    """Folder of example-robot-data's robots."""
    return Path(example_urdf()).parents[2]


def published_robot(urdf: Path) -> RobotModel:
    """The robot as a new user loads it; walking robots float."""
    model = load_model(urdf)
    if not urdf.stem.startswith(FLOATING):
        return model
    options = attrs.evolve(model.options, base="free")
    root = load_model(urdf, options).link_names[0]
    return load_model(urdf, attrs.evolve(options, contacts={SENSOR: ContactOptions(root)}))


@dataclass(frozen=True)
class Trial:
    """A simulated robot, its true parameters, and recordings of two motions.

    Attributes
    ----------
    model : RobotModel
        Model from the URDF.
    parameters : ndarray, shape (p,)
        True parameters.
    train, held_out : Recording
        Recordings with the faults of the case.
    exact : Samples
        The held-out motion and its torque without faults.
    """

    model: RobotModel
    parameters: Array
    train: Recording
    held_out: Recording
    exact: Samples


def _as_it_is(effort: Array, rng: np.random.Generator) -> Array:
    return effort


def _coloured(effort: Array, rng: np.random.Generator) -> Array:
    """Add noise with samples correlated over a tenth of a second."""
    decay = np.exp(-10.0 / RATE_HZ)
    noise = scipy.signal.lfilter([np.sqrt(1 - decay**2)], [1, -decay], rng.normal(size=effort.shape), axis=0)
    return effort + NOISE * np.sqrt(np.mean(effort**2, axis=0)) * noise


def _rounded(effort: Array, rng: np.random.Generator) -> Array:
    step = np.maximum(ROUNDED * np.ptp(effort, axis=0), _RESTS)
    return step * np.round(effort / step)


CASES: Mapping[str, Callable[[Array, np.random.Generator], Array]] = {
    "noise-free": _as_it_is,
    "2 % coloured noise": _coloured,
    "one weak joint": _coloured,
    "efforts rounded to 1 %": _rounded,
}


def trial(model: RobotModel, case: str, seed: int) -> Trial:
    """Draw a robot with bodies that differ from the URDF, without friction, in one of :data:`CASES`."""
    rng = np.random.default_rng([seed, *model.name.encode()])
    bodies = bodies_from_prior(model, rng, PRIOR_SPREAD)
    drives = np.zeros(model.layout.size - model.layout.inertial_size)
    parameters = np.concatenate([bodies.ravel(), drives])
    motions = [_motion(model, rng) for _ in range(2)]
    if case == "one weak joint":
        model, parameters = _with_weak_joint(model, parameters, motions[0])
    exact = [replace(motion, tau=ForceEquations(model).predict(parameters, motion)) for motion in motions]
    train, held_out = (_recording(model, motion, CASES[case](motion.tau, rng)) for motion in exact)
    return Trial(model, parameters, train, held_out, exact[1])


def _with_weak_joint(model: RobotModel, parameters: Array, motion: Samples) -> tuple[RobotModel, Array]:
    """Robot and true parameters with a light last link: its joint has 1e-4 of the torque of the other joints."""
    tau = ForceEquations(model).predict(parameters, motion)
    level = np.sqrt(np.mean(tau**2, axis=0))
    joint = model.joints - 1
    factor = WEAK * np.median(level) / max(level[-1], _RESTS)
    body = len(model.link_names) - 1 if model.free else joint
    prior, parameters = model.body_prior.copy(), parameters.copy()
    prior[body] *= factor
    parameters[model.layout.body(body)] *= factor
    return replace(model, body_prior=prior, body_locked=_scaled(model.body_locked, body, factor)), parameters


def _scaled(bodies: Array, body: int, factor: float) -> Array:
    scaled = bodies.copy()
    scaled[body] *= factor
    return scaled


def _motion(model: RobotModel, rng: np.random.Generator) -> Samples:
    """Sums of five sines per joint below 0.6 Hz, within its limits; a free base sways by some tenths of m and rad."""
    time = np.arange(0.0, SECONDS, 1 / RATE_HZ)
    lower, upper = model.limits.lower, model.limits.upper
    bounded = (upper > lower) & (upper - lower < 2 * np.pi)
    lower, upper = np.where(bounded, lower, -np.pi), np.where(bounded, upper, np.pi)
    centre, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    q, v, a = (values * half for values in _sines(time, model.joints, rng))
    q += centre
    if model.free:
        pose, twist, acceleration = _base_motion(time, rng)
        q, v, a = np.hstack([pose, q]), np.hstack([twist, v]), np.hstack([acceleration, a])
    every = np.ones(v.shape, dtype=bool)
    return Samples(time, q, v, a, np.zeros_like(v), every, every[:, 0])


def _sines(time: Array, count: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Position within one, velocity and acceleration, ``(N, count)`` each."""
    omega, size = 2 * np.pi * rng.uniform(0.1, 0.6, (5, count)), rng.uniform(0.2, 1.0, (5, count))
    size /= size.sum(axis=0)
    angle = time[:, None, None] * omega + rng.uniform(0, 2 * np.pi, (5, count))
    return (
        np.sum(size * np.sin(angle), axis=1),
        np.sum(size * omega * np.cos(angle), axis=1),
        -np.sum(size * omega**2 * np.sin(angle), axis=1),
    )


def _base_motion(time: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Pose, twist and its derivative of a base that is turned about three axes one after another."""
    (p, dp, ddp), (e, de, dde) = ([0.3 * part for part in _sines(time, 3, rng)] for _ in range(2))
    turned = scipy.spatial.transform.Rotation.from_euler("ZYX", e)
    to_base = turned.inv()
    # Map from rates of the angles about z, y and x to the angular velocity in the base frame, and its derivative.
    (_, y, x), (_, dy, dx) = e.T, de.T
    sy, cy, sx, cx, zero = np.sin(y), np.cos(y), np.sin(x), np.cos(x), np.zeros_like(x)
    one = np.ones_like(x)
    E = np.array([[-sy, zero, one], [cy * sx, cx, zero], [cy * cx, -sx, zero]])
    dE = np.array(
        [
            [-cy * dy, zero, zero],
            [-sy * dy * sx + cy * cx * dx, -sx * dx, zero],
            [-sy * dy * cx - cy * sx * dx, -cx * dx, zero],
        ]
    )
    omega = np.einsum("ijn,nj->ni", E, de)
    alpha = np.einsum("ijn,nj->ni", E, dde) + np.einsum("ijn,nj->ni", dE, de)
    velocity = to_base.apply(dp)
    acceleration = to_base.apply(ddp) - np.cross(omega, velocity)
    pose = np.hstack([p, turned.as_quat()])
    return pose, np.hstack([velocity, omega]), np.hstack([acceleration, alpha])


def _recording(model: RobotModel, motion: Samples, measured: Array) -> Recording:
    """Positions and efforts, and the pose of a free base and the wrench on it."""
    joints = slice(-model.joints, None)
    wrench = {SENSOR: measured[:, :_BASE]} if model.free else {}
    pose = motion.q[:, : -model.joints] if model.free else None
    return Recording(
        model.joint_names, motion.time, motion.q[:, joints], measured[:, joints], wrenches=wrench, base_pose=pose
    )


def natural_sizes(trial: Trial) -> Array:
    """Natural sizes ``(p,)``: bodies by the pullback metric at the URDF, drives by the held-out torque."""
    model, information = trial.model, compress(trial.model, [trial.exact])
    return np.linalg.norm(prior_covariance_root(prior_coordinates(model, information), 1.0), axis=1)
