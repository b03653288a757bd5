"""Joint states of a small arm that is known but for a little, and that changes at given times."""

from dataclasses import replace

import numpy as np
from support.recordings.synthetic import inverse_dynamics, random_motion
from support.robots.random_robots import random_urdf

from inertid_ros.payload.equations import CalibratedRobot
from inertid_ros.regressors.equations import equations_of
from inertid_ros.robot.model import load_model

PERIOD, NOISE, COULOMB = 0.005, 0.02, 0.3


def known_arm() -> CalibratedRobot:
    """A robot, known but for a little."""
    rng = np.random.default_rng(5)
    model = load_model(random_urdf(rng, 3, branched=False))
    layout, parameters = model.layout, model.prior.copy()
    parameters[layout.drive("coulomb")] = COULOMB
    covariance = np.diag((1e-3 * np.abs(parameters) + 1e-9) ** 2)
    return CalibratedRobot(equations_of(model), parameters, covariance, np.full(3, NOISE), np.full(3, 500.0))


def states(arm: CalibratedRobot, seconds: float, seed: int = 1, changes=()):
    """Joint states of a motion; each of ``changes`` is a time, what its bodies are then, and their Coulomb friction."""
    rng, model = np.random.default_rng(seed), arm.equations.model
    time = np.arange(0.0, seconds, PERIOD)
    q, v, a = random_motion(rng, model.joints).sample(time)
    effort = inverse_dynamics(model, q, v, a) + COULOMB * np.sign(v)
    for at, bodies, coulomb in changes:
        other = inverse_dynamics(replace(model, pinocchio=model.with_bodies(bodies)), q, v, a) + coulomb * np.sign(v)
        effort = np.where(time[:, None] >= at, other, effort)
    return time, q, v, effort + NOISE * 3 * rng.normal(size=q.shape)
