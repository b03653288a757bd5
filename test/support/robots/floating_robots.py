"""Robots that float, of shapes that no code was written for, and motions that excite them."""

from dataclasses import replace

import numpy as np
from support.robots.random_robots import random_bodies

from inertid_ros.config.robot import RobotOptions, WheelOptions
from inertid_ros.core.inertial_parameters import transform
from inertid_ros.excitation.planning.interval_motion import IntervalMotion, direction_combinations
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.urdf.text import DhJoint, dh_urdf

UP = np.pi / 2


def floating(urdf: str, wheels: dict[str, WheelOptions]) -> RobotModel:
    """Model of a URDF on a free base without gravity."""
    return load_model(
        urdf, RobotOptions(drive_terms=(), gravity=(0.0, 0.0, 0.0), base="free", wheels=wheels)
    )


def satellite(rng: np.random.Generator, joints: int = 7) -> RobotModel:
    """One arm on a satellite, its axes crossing at right angles, and three wheels."""
    table = [DhJoint(0, mount=(0.5, 0.1, 0.4))]
    for index in range(1, joints):
        table.append(DhJoint(index, alpha=UP * (-1) ** index, d=0.4 * (index % 2), a=0.05))
    bodies = random_bodies(rng, joints + 1)
    bodies[0] *= 20 / bodies[0, 0]
    axes = zip("xyz", np.eye(3), strict=True)
    wheels = {f"wheel_{axis}": WheelOptions(0.1, "L0", tuple(row)) for axis, row in axes}
    return floating(dh_urdf("satellite", table, bodies), wheels)


def diver(rng: np.random.Generator) -> RobotModel:
    """A neutrally buoyant vehicle: a boom that slides, an arm behind it, a tail, and four wheels of the URDF, one of
    them on the boom."""
    bodies = random_bodies(rng, 5)
    bodies[0] *= 10 / bodies[0, 0]
    table = (
        DhJoint(0, mount=(0.3, 0.0, 0.1), alpha=0.4, prismatic=True),
        DhJoint(1, alpha=UP, a=0.2),
        DhJoint(2, a=0.3, alpha=-0.7),
        DhJoint(0, mount=(-0.4, 0.0, 0.0), alpha=UP),
    )
    text = dh_urdf("diver", table, bodies, ("hull", "boom", "upper", "lower", "tail"))
    wheels = (("spin_a", "hull", "1 0 0"), ("spin_b", "hull", "0 1 0"), ("spin_c", "hull", "0 0 1"),
              ("spin_d", "boom", "0 0.6 0.8"))
    for name, link, axis in wheels:
        text = text.replace("</robot>", wheel_urdf(name, link, axis) + "</robot>")
    return floating(text, {name: WheelOptions() for name, _, _ in wheels})


def wheel_urdf(name: str, link: str, axis: str, inertia: float = 0.05, across: float | None = None) -> str:
    """A wheel as link and joint; its own frame is turned so that its axis is z."""
    x, y, z = map(float, axis.split())
    pitch, yaw = float(np.arctan2(np.hypot(x, y), z)), float(np.arctan2(y, x))
    half = inertia / 2
    return (
        f'<link name="{name}_rotor"><inertial><mass value="1"/>'
        f'<inertia ixx="{half if across is None else across}" ixy="0" ixz="0" iyy="{half}" iyz="0" izz="{inertia}"/>'
        f'</inertial></link><joint name="{name}" type="continuous"><parent link="{link}"/>'
        f'<child link="{name}_rotor"/><origin rpy="0 {pitch!r} {yaw!r}"/><axis xyz="0 0 1"/>'
        '<limit velocity="20" effort="50"/></joint>'
    )


def motion(model: RobotModel, intervals: int = 24, seed: int = 0, speed: float = 0.5) -> IntervalMotion:
    """Direction combinations of joints and wheels."""
    rng = np.random.default_rng(seed)
    joints, wheels = model.joints, len(model.wheels.names)
    directions = direction_combinations(rng.permutation(joints + wheels).tolist(), intervals)
    ranges = np.concatenate([rng.uniform(0.7, 1.0, joints) * speed, np.full(wheels, 3 * np.pi)])
    return IntervalMotion(directions, np.concatenate([rng.uniform(-1, 1, joints), np.zeros(wheels)]), ranges, 1.0)


def with_prior(model, rng):
    """The robot with bodies that are wrong by a third or so, in size and place."""
    wrong = [
        transform(scale * body, np.eye(3), shift)
        for body, scale, shift in zip(
            model.body_prior, rng.uniform(0.7, 1.4, len(model.body_prior)),
            rng.normal(scale=0.03, size=(len(model.body_prior), 3)), strict=True,
        )
    ]
    return replace(model, body_prior=np.array(wrong))
