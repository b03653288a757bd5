"""Simulated experiments with known truth, for the coverage of intervals: robots, motions and unmodelled effects."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from scipy.linalg import expm

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import from_pseudo_inertia, pseudo_inertia
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.layout import NON_NEGATIVE_TERMS
from inertid_ros.robot.model import RobotModel, load_model

CLASSIC = ("rotor_inertia", "viscous", "coulomb", "offset")
RATE_HZ, SECONDS, PERIOD_S = 200.0, 30.0, 6.0
EFFORT = np.array([3.0, 3.0, 2.0, 1.0, 0.5])  # N m, scale of the joints' friction
STIFFNESS = np.array([40e3, 30e3, 15e3, 8e3, 4e3])  # N m/rad
PLAY = 5e-4  # rad to either side
EFFORT_NOISE, POSITION_NOISE = 0.1, 2e-5  # relative to EFFORT; rad


def arm(drive_terms: tuple[str, ...] | None = None) -> RobotModel:
    """Five links of a tapering arm with skew axes."""
    links, joints = ['<link name="base"/>'], []
    for i, axis in enumerate(("0 0 1", "0 1 0", "1 0 0", "0 1 0", "0 0 1")):
        mass, side = 5 / (1 + i), 0.1
        moment = mass * (0.3**2 + side**2) / 12
        links.append(
            f'<link name="link{i}"><inertial><origin xyz="0.02 0.01 0.15"/><mass value="{mass}"/>'
            f'<inertia ixx="{moment}" iyy="{moment}" izz="{mass * side**2 / 6}" ixy="0" ixz="0" iyz="0"/>'
            "</inertial></link>"
        )
        joints.append(
            f'<joint name="joint{i}" type="revolute"><parent link="{f"link{i - 1}" if i else "base"}"/>'
            f'<child link="link{i}"/><origin xyz="0.05 0 0.3"/><axis xyz="{axis}"/>'
            '<limit lower="-3" upper="3" velocity="3" effort="100"/></joint>'
        )
    urdf = f'<robot name="arm">{"".join(links + joints)}</robot>'
    return load_model(urdf, None if drive_terms is None else RobotOptions(drive_terms=drive_terms))


def bodies_from_prior(model: RobotModel, rng: np.random.Generator, prior_spread: float) -> Array:
    """Bodies ``(nb, 10)`` with normal geodesic distances to the URDF's bodies in every direction.

    Links behind locked joints are known, and do not change.
    """
    drawn = []
    for J in pseudo_inertia(model.consistent_body_prior - model.body_locked):
        root, direction = np.linalg.cholesky(J), rng.normal(size=(4, 4))
        direction = np.triu(direction, 1) + np.triu(direction, 1).T + np.sqrt(2) * np.diag(np.diagonal(direction))
        drawn.append(from_pseudo_inertia(root @ expm(prior_spread * direction) @ root.T))
    return model.body_locked + np.array(drawn)


def truth(model: RobotModel, rng: np.random.Generator, bodies: Array) -> Array:
    """Parameters ``(p,)`` with given bodies and random drives."""
    drives = [
        EFFORT * (rng.uniform(0.1, 0.4, model.joints) if term in NON_NEGATIVE_TERMS else rng.normal(size=model.joints))
        for term in model.layout.drive_terms
    ]
    return np.concatenate([bodies.ravel(), *drives])


def states(model: RobotModel, parameters: Array, noise: float, rng: np.random.Generator, count: int = 1000) -> Samples:
    """Independent random states with white noise [N m]."""
    q, v, a = rng.uniform(-3, 3, (count, model.joints)), *rng.normal(size=(2, count, model.joints))
    every = np.ones(q.shape, dtype=bool)
    samples = Samples(0.01 * np.arange(count), q, v, a, np.zeros_like(q), every, every[:, 0])
    tau = ForceEquations(model).predict(parameters, samples)
    return replace(samples, tau=tau + noise * rng.normal(size=tau.shape))


def motion(model: RobotModel, rng: np.random.Generator, repeats: bool) -> Samples:
    """Sums of five sines per joint, with random frequencies up to 0.6 Hz or with a period of :data:`PERIOD_S`."""
    time, shape = np.arange(0.0, SECONDS, 1 / RATE_HZ), (5, model.joints)
    frequency = np.arange(1, 6)[:, None] / PERIOD_S * np.ones(shape) if repeats else rng.uniform(0.1, 0.6, shape)
    omega, size = 2 * np.pi * frequency, rng.uniform(0.1, 0.5, shape)
    angle = time[:, None, None] * omega + rng.uniform(0, 2 * np.pi, shape)
    q, v = np.sum(size * np.sin(angle), axis=1), np.sum(size * omega * np.cos(angle), axis=1)
    every = np.ones(q.shape, dtype=bool)
    return Samples(time, q, v, -np.sum(size * omega**2 * np.sin(angle), axis=1), np.zeros_like(q), every, every[:, 0])


def _by_position(model: RobotModel, parameters: Array, samples: Samples) -> Array:
    """Coulomb friction that changes by 40 % along the joint's range."""
    coulomb = parameters[model.layout.drive("coulomb")]
    return 0.4 * coulomb * np.sin(3 * samples.q + np.arange(model.joints)) * np.sign(samples.v)


def _warming(model: RobotModel, parameters: Array, samples: Samples) -> Array:
    """Viscous friction that falls by half while the drives warm up; its mean is the stated value."""
    return parameters[model.layout.drive("viscous")] * samples.v * (_friction_while_warming(samples.time) - 1)[:, None]


def _friction_while_warming(time: Array) -> Array:
    """Viscous friction over its mean ``(N,)``."""
    falling = np.exp(-time / (0.4 * SECONDS))
    return 1 + falling - falling.mean()


def warming_quarters() -> Array:
    """Viscous friction of drives that warm up: mean of each quarter of a recording over the whole mean ``(4,)``."""
    return _friction_while_warming(np.arange(0.0, SECONDS, 1 / RATE_HZ)).reshape(4, -1).mean(axis=1)


def _none(model: RobotModel, parameters: Array, samples: Samples) -> Array:
    return np.zeros_like(samples.q)


LACKING: Mapping[str, Callable[[RobotModel, Array, Samples], Array]] = {
    "nothing": _none,
    "friction by position": _by_position,
    "warming drives": _warming,
    "elastic joints": _none,
    "play in gears": _none,
    "play at encoders": _none,
}
"""Torque of each unmodelled effect, by name; elasticity and play change only the recorded positions."""


def _elastic(model: RobotModel, parameters: Array, samples: Samples, tau: Array) -> Array:
    return tau / STIFFNESS


def _loose_gears(model: RobotModel, parameters: Array, samples: Samples, tau: Array) -> Array:
    """Play between motors, which carry the encoders, and links, whose load selects the flank."""
    return PLAY * np.sign(rigid_torque(model, model.layout.bodies(parameters), samples.q, samples.v, samples.a))


def _loose_encoders(model: RobotModel, parameters: Array, samples: Samples, tau: Array) -> Array:
    """Encoders that rest until their play is crossed."""
    lag = np.zeros_like(samples.q)
    for row, step in enumerate(np.diff(samples.q, axis=0)):
        lag[row + 1] = np.clip(lag[row] - step, -PLAY, PLAY)
    return lag


DEFLECTIONS: Mapping[str, Callable[[RobotModel, Array, Samples, Array], Array]] = {
    "elastic joints": _elastic,
    "play in gears": _loose_gears,
    "play at encoders": _loose_encoders,
}
"""Recorded positions minus positions of the links, by the name of the unmodelled effect."""


def recording(
    model: RobotModel, parameters: Array, rng: np.random.Generator, lacking: str, repeats: bool
) -> Recording:
    """Recording of positions and efforts with noise, as a driver would publish it."""
    samples = motion(model, rng, repeats)
    tau = ForceEquations(model).predict(parameters, samples) + LACKING[lacking](model, parameters, samples)
    q = samples.q
    if lacking in DEFLECTIONS:
        q = q + DEFLECTIONS[lacking](model, parameters, samples, tau)
    effort = tau + EFFORT_NOISE * EFFORT * rng.normal(size=q.shape)
    return Recording(model.joint_names, samples.time, q + POSITION_NOISE * rng.normal(size=q.shape), effort)
