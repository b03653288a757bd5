"""Torque of known loads, which is taken off what was measured, and gains of drives, by which efforts are multiplied."""

from dataclasses import replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.dynamics.contact_wrenches import on_ground
from inertid_ros.dynamics.newton_euler import rigid_torque
from inertid_ros.robot.model import RobotModel


def without_load(model: RobotModel, load: Array, samples: Samples) -> Samples:
    """Samples of force as they would have been without a load.

    Parameters
    ----------
    load : ndarray, shape (nb, 10)
        What it adds to the links, see :func:`~inertid_ros.robot.loads.load_bodies`.
    """
    if not load.any():
        return samples
    return replace(samples, tau=samples.tau - load_torque(model, load, samples))


def with_gains(model: RobotModel, gains: Array, load: Array, samples: Samples) -> Samples:
    """Samples of joint torque, less that of a load, with efforts multiplied by the gains ``(n,)`` of the drives."""
    torque = load_torque(model, load, samples) if load.any() else 0.0
    noise = None if samples.effort_noise is None else np.abs(gains) * samples.effort_noise
    return replace(samples, tau=gains * (samples.tau + torque) - torque, effort_noise=noise)


def load_torque(model: RobotModel, load: Array, samples: Samples) -> Array:
    """``(N, c)`` generalized force that moves a load ``(nb, 10)`` along samples."""
    force = rigid_torque(model, load, samples.q, samples.v, samples.a)
    return np.asarray(on_ground(model, samples.q, force))
