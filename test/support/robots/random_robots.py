"""Random robots for property tests: trees of revolute and prismatic joints with bodies that could exist."""

from dataclasses import replace

import numpy as np

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.inertial_parameters import from_pseudo_inertia, mass_com_inertia
from inertid_ros.core.samples import Samples
from inertid_ros.robot.model import RobotModel, load_model


def random_bodies(rng: np.random.Generator, count: int) -> np.ndarray:
    """``(count, 10)`` physically consistent parameters, masses from 0.1 to 10 kg and sizes from 1 to 30 cm."""
    bodies = []
    for _ in range(count):
        mass, size = 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-2, -0.5, 3)
        rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        com = rng.normal(scale=0.1, size=3)
        covariance = mass * rotation @ np.diag(size**2) @ rotation.T
        J = np.block([[covariance + mass * np.outer(com, com), mass * com[:, None]], [mass * com[None], mass]])
        bodies.append(from_pseudo_inertia(J))
    return np.array(bodies)


def random_urdf(rng: np.random.Generator, joints: int, branched: bool = True) -> str:
    """URDF text of a random tree; every third joint or so is prismatic."""
    links, elements = _random_links(rng, joints), []
    for index in range(joints):
        parent = int(rng.integers(-1, index)) if branched and index else index - 1
        kind = "prismatic" if rng.random() < 0.3 else "revolute"
        axis = rng.normal(size=3)
        elements.append(_joint(index, parent, kind, axis, rng.normal(scale=0.4, size=3), rng.uniform(-3, 3, 3)))
    return f'<robot name="random">{"".join(links + elements)}</robot>'


def special_urdf(rng: np.random.Generator, joints: int) -> str:
    """URDF text of a tree as engineers build them: right angles, axes that are parallel or meet, planar mechanisms.

    Such robots have special cases of base parameters, which random axes never show.
    """
    links, elements = _random_links(rng, joints), []
    axes, planar = np.vstack([np.eye(3), -np.eye(3)]), rng.random() < 0.25
    for index in range(joints):
        parent = int(rng.integers(-1, index)) if index and rng.random() < 0.5 else index - 1
        kind = "prismatic" if rng.random() < 0.35 else "revolute"
        axis = axes[rng.integers(6)] if rng.random() < 0.9 else rng.normal(size=3)
        angles = rng.integers(-2, 3, 3) * np.pi / 2 * (rng.random(3) < 0.4)
        if rng.random() < 0.1:
            angles[2] += np.pi / 4
        if planar:
            axis, angles = axes[2 if rng.random() < 0.8 else 0], np.zeros(3)
        elements.append(
            _joint(index, parent, kind, axis, rng.normal(scale=0.4, size=3) * (rng.random(3) < 0.5), angles)
        )
    return f'<robot name="special">{"".join(links + elements)}</robot>'


def load_with(urdf: str, couplings=(), rotors=(), terms=(), **options) -> RobotModel:
    """Model with these drives, rotors and terms in its layout."""
    model = load_model(urdf, RobotOptions(**options))
    return replace(model, layout=replace(model.layout, couplings=couplings, rotors=rotors, terms=terms))


def special_model(rng: np.random.Generator, joints: int, **options) -> RobotModel:
    """Model of a tree with special geometry."""
    return load_with(special_urdf(rng, joints), **options)


def random_model(rng: np.random.Generator, joints: int, branched: bool = True, **options) -> RobotModel:
    """Model of a random tree."""
    return load_with(random_urdf(rng, joints, branched), **options)


def random_states(rng: np.random.Generator, model: RobotModel, count: int) -> Samples:
    """Samples at random states with zero torque."""
    q, v, a = rng.uniform(-3, 3, (count, model.joints)), *rng.normal(size=(2, count, model.joints))
    every = np.ones(q.shape, dtype=bool)
    return Samples(0.01 * np.arange(count), q, v, a, np.zeros_like(q), every, every[:, 0], "random states")


def _random_links(rng: np.random.Generator, count: int) -> list[str]:
    links = ['<link name="base"/>']
    for index, pi in enumerate(random_bodies(rng, count)):
        mass, com, inertia = mass_com_inertia(pi)
        links.append(
            f'<link name="link{index}"><inertial><origin xyz="{_text(com)}" rpy="0 0 0"/>'
            f'<mass value="{float(mass)!r}"/>'
            f'<inertia ixx="{inertia[0, 0]!s}" ixy="{inertia[0, 1]!s}" ixz="{inertia[0, 2]!s}" iyy="{inertia[1, 1]!s}"'
            f' iyz="{inertia[1, 2]!s}" izz="{inertia[2, 2]!s}"/></inertial></link>'
        )
    return links


def _joint(index: int, parent: int, kind: str, axis: np.ndarray, offset: np.ndarray, angles: np.ndarray) -> str:
    return (
        f'<joint name="joint{index}" type="{kind}"><parent link="{"base" if parent < 0 else f"link{parent}"}"/>'
        f'<child link="link{index}"/><origin xyz="{_text(offset)}" rpy="{_text(angles)}"/>'
        f'<axis xyz="{_text(axis / np.linalg.norm(axis))}"/>'
        '<limit lower="-3" upper="3" velocity="2" effort="100"/></joint>'
    )


def _text(vector: np.ndarray) -> str:
    return " ".join(repr(float(value)) for value in vector)
