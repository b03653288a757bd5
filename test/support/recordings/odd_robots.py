"""Robots that suffer mistakes of their own kind: an axis driven by a relay, mimic joints whose leaders are recorded."""

from collections.abc import Callable, Mapping

import numpy as np
from lxml import etree
from support.recordings.spoiling import Case, Mistake, Rng
from support.robots.drawn_robots import SECONDS, drawn_motion
from support.robots.random_robots import random_urdf

from inertid_ros.core.arrays import Array
from inertid_ros.data.recording import Recording
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.model import load_model

_RELAY_S = 1e-3  # of its simulation


def relay_torque(rng: Rng) -> tuple[Case, Mistake]:
    """No mistake: an axis without gravity goes to and fro by torques of two values."""
    given = load_model(_vertical_axis(rng))
    body = perturb(given, rng)
    inertia, torque = float(rigid_torque(given, body, *np.array([[[0.0]], [[0.0]], [[1.0]]]))[0, 0]), 0.0
    largest = inertia * rng.uniform(3.0, 10.0)
    viscous, coulomb = largest * rng.uniform(0.3, 1.0), largest * rng.uniform(0.03, 0.15)
    recordings = []
    for name in ("relay 1", "relay 2"):
        low, high = np.sort(rng.uniform(-1.0, 1.0, 2)) + [-0.2, 0.2]
        q, v, torque, rows = 0.5 * (low + high), 0.0, largest, []
        for _ in range(int(SECONDS / _RELAY_S)):
            torque = -largest if q > high else largest if q < low else torque
            rows.append((q, torque))
            v += (torque - viscous * v - coulomb * np.tanh(v / 5e-3)) / inertia * _RELAY_S
            q += v * _RELAY_S
        position, effort = np.array(rows).T[:, ::2, None]
        recordings.append(Recording(given.joint_names, 2 * _RELAY_S * np.arange(len(position)), position, effort,
                                    name=name))  # fmt: skip
    case = Case("relay", given, body, (recordings[0],), (recordings[1],), given.joint_names)
    return case, Mistake(f"{largest:.2g} N m", case)


def mimic_linkage(rng: Rng) -> tuple[Case, Mistake]:
    """No mistake: joints of a linkage follow the main joints, which alone are recorded, and whose efforts carry all."""
    count, mimics = int(rng.integers(3, 6)), int(rng.integers(1, 3))
    text = etree.fromstring(random_urdf(rng, count + mimics))
    joints = text.findall("joint")
    leaders, factors = rng.integers(0, count, mimics), rng.choice([-1.0, 1.0, 0.5, -0.5], mimics)
    whole = load_model(etree.tostring(text, encoding="unicode"))
    names = [str(joint.get("name")) for joint in joints]
    for joint, leader, factor in zip(joints[count:], leaders, factors, strict=True):
        etree.SubElement(joint, "mimic", joint=names[leader], multiplier=str(factor))
    given = load_model(etree.tostring(text, encoding="unicode"))
    follows = np.vstack([np.eye(count), np.zeros((mimics, count))])
    follows[range(count, count + mimics), leaders] = factors
    follows = follows[[names.index(name) for name in whole.joint_names]]
    main = [whole.joint_names.index(name) for name in names[:count]]
    bodies, friction = perturb(whole, rng), list[Array]()

    def recorded(name: str) -> Recording:
        time = np.arange(0.0, SECONDS, 0.005)
        q, v, a = (x[:, main] for x in drawn_motion(whole, time, rng))
        torque = rigid_torque(whole, bodies, *(x @ follows.T for x in (q, v, a))) @ follows
        q += 1e-5 * rng.normal(size=q.shape)
        friction.append(np.sqrt(np.mean(torque**2, axis=0)))  # the first recording sets the size for both
        torque += friction[0] * (0.1 * np.sign(v) + 0.1 * v + 0.01 * rng.normal(size=v.shape))
        return Recording(tuple(names[:count]), time, q, torque, name=name)

    recordings = (recorded("linkage 1"),), (recorded("linkage 2"),)
    case = Case("linkage", given, bodies, *recordings, tuple(names[:count]))
    drawn = ", ".join(f"{factor:g} of {names[leader]}" for leader, factor in zip(leaders, factors, strict=True))
    return case, Mistake(drawn, case)


def _vertical_axis(rng: Rng) -> str:
    """URDF of a chain of one turning joint whose axis is vertical."""
    text = etree.fromstring(random_urdf(rng, 1))
    joint = text.find("joint")
    joint.set("type", "revolute")
    joint.find("axis").set("xyz", "0 0 1")
    joint.find("origin").set("rpy", "0 0 0")
    return str(etree.tostring(text, encoding="unicode"))


ODD_ROBOTS: Mapping[str, Callable[[Rng], tuple[Case, Mistake]]] = {
    "torque of a relay": relay_torque,
    "mimic linkage": mimic_linkage,
}
