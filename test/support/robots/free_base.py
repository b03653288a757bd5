"""Random robots on a free base, and random states of them."""

import numpy as np
from support.robots.random_robots import load_with, random_bodies, random_urdf

from inertid_ros.core.samples import Samples
from inertid_ros.robot.model import RobotModel


def free_urdf(seed: int, joints: int) -> str:
    rng = np.random.default_rng(seed)
    m, _, _, _, xx, xy, yy, xz, yz, zz = random_bodies(rng, 1)[0]
    base = (
        f'<inertial><mass value="{m}"/><inertia ixx="{xx}" ixy="{xy}" ixz="{xz}" iyy="{yy}" iyz="{yz}" izz="{zz}"/>'
        "</inertial>"
    )
    return random_urdf(rng, joints).replace('<link name="base"/>', f'<link name="base">{base}</link>')


def free_model(seed: int, joints: int, **options) -> RobotModel:
    return load_with(free_urdf(seed, joints), base="free", **options)


def random_flight(rng: np.random.Generator, model: RobotModel, count: int) -> Samples:
    """Random states of a robot with a free base."""
    pose = np.hstack([rng.normal(size=(count, 3)), rng.normal(size=(count, 4))])
    pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
    q = np.hstack([pose, rng.uniform(-2, 2, (count, model.joints))])
    v, a = rng.normal(size=(2, count, model.velocities))
    every = np.ones(v.shape, dtype=bool)
    return Samples(np.arange(count, dtype=float), q, v, a, np.zeros_like(v), every, every[:, 0])
