"""Joints of a parsed URDF: which can move or are held, their links, limits and friction."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from lxml import etree

from inertid_ros.config.robot import DRIVE_TERMS
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError

from . import parsing

_UNBOUNDED = 1e6  # rad; stands for the limits of a continuous joint, far beyond any multi-turn encoder


@dataclass(frozen=True)
class JointLimits:
    """Limits of every joint; infinite where the URDF gives none.

    Attributes
    ----------
    lower, upper : ndarray, shape (n,)
        Position [rad or m].
    velocity : ndarray, shape (n,)
        rad/s or m/s.
    effort : ndarray, shape (n,)
        N m or N.
    """

    lower: Array
    upper: Array
    velocity: Array
    effort: Array


def locked_joints(root: etree._Element, wanted: Mapping[str, float]) -> dict[str, float]:
    """Positions [rad or m] of joints to lock, with those of the joints that mimic them.

    Raises
    ------
    ModelError
        A joint does not exist or cannot move, or a position is not finite.
    """
    joints = {joint.get("name"): joint for joint in root.findall("joint")}
    locked = {}
    for name, position in wanted.items():
        if name not in joints or joints[name].get("type") not in parsing.MOVABLE:
            movable = [str(known) for known, joint in joints.items() if joint.get("type") in parsing.MOVABLE]
            raise ModelError(f"locked joint '{name}': the URDF has no such movable joint; it has {movable}")
        if not np.isfinite(position):
            raise ModelError(f"locked joint '{name}': position {position} is not finite; give rad or m")
        locked[name] = float(position)
    leaders = _leaders(root)
    for name in leaders:
        chain = {name: None}  # in order: the joint, the one that it mimics, and so on
        leader = leaders[name]
        while leader in leaders and leader not in locked and leader not in chain:
            chain[leader] = None
            leader = leaders[leader]
        for follower in reversed(chain):
            _follow(follower, joints, locked)
    return locked


def held_leaders(root: etree._Element, locked: Mapping[str, float]) -> dict[str, float]:
    """Joints that others mimic and that are not locked yet, with the position nearest to zero that they can have.

    They are held, and what mimics them with them: a joint that is driven by another one has no torque of its own to
    fit. Chains of mimic joints lead to the joint that leads them all; one whose leader does not exist is held itself.

    Raises
    ------
    ModelError
        Joints mimic one another in a circle.
    """
    joints = {joint.get("name"): joint for joint in root.findall("joint")}
    held, leaders = {}, _leaders(root)
    for name, leader in leaders.items():
        if name in locked:
            continue
        last, seen = name, {name}
        while leader in leaders and leader not in locked:
            if leader in seen:
                raise ModelError(f"URDF joint '{name}': mimics itself by way of '{leader}'; fix the URDF")
            seen.add(leader)
            last, leader = leader, leaders[leader]
        first = leader if leader in joints else last
        if first not in locked and joints[first].get("type") in parsing.MOVABLE:
            held[first] = float(np.clip(0.0, *position_range(joints[first])))
    return held


def followers(root: etree._Element, leaders: Collection[str]) -> tuple[str, ...]:
    """Joints that mimic any of these, or one that the URDF does not have."""
    names = {joint.get("name") for joint in root.findall("joint")}
    return tuple(name for name, leader in _leaders(root).items() if leader in leaders or leader not in names)


def position_range(joint: etree._Element) -> tuple[float, float]:
    """Lower and upper limit of a joint's position [rad or m]; infinite where it has none."""
    limit, where = joint.find("limit"), f"URDF joint '{joint.get('name')}'"
    if limit is None or joint.get("type") == "continuous":
        return -np.inf, np.inf
    lower, upper = (parsing.number(limit, key, where, "limit", default=0.0) for key in ("lower", "upper"))
    return lower, upper


def _leaders(root: etree._Element) -> dict[str, str]:
    """Joint to the one that it mimics."""
    found = ((str(joint.get("name")), _mimic(joint)) for joint in root.findall("joint"))
    return {name: str(mimic.get("joint")) for name, mimic in found if mimic is not None}


def _follow(name: str, joints: Mapping[str, etree._Element], locked: dict[str, float]) -> None:
    """Lock a joint where it mimics one that is locked or cannot move."""
    mimic = _mimic(joints[name])
    if name in locked or mimic is None:
        return
    leader = str(mimic.get("joint"))
    fixed = leader in joints and joints[leader].get("type") not in parsing.MOVABLE
    if leader in locked or fixed:
        where = f"URDF joint '{name}'"
        factor = parsing.number(mimic, "multiplier", where, "mimic", default=1.0)
        offset = parsing.number(mimic, "offset", where, "mimic", default=0.0)
        locked[name] = factor * locked.get(leader, 0.0) + offset


def _mimic(joint: etree._Element) -> etree._Element | None:
    """The ``<mimic>`` of a joint that can move; simplified robots leave it behind on joints made fixed."""
    return joint.find("mimic") if joint.get("type") in parsing.MOVABLE else None


def check_supported(root: etree._Element) -> None:
    """Raise ``ModelError`` for joints that are neither revolute, continuous, prismatic nor fixed."""
    for joint in root.findall("joint"):
        name, joint_type = joint.get("name"), joint.get("type")
        if joint_type not in (*parsing.MOVABLE, "fixed"):
            raise ModelError(
                f"URDF joint '{name}': type '{joint_type}' is not supported;"
                " use revolute, continuous, prismatic or fixed"
            )


def without_geometry(root: etree._Element) -> str:
    """URDF for Pinocchio: no meshes to look for, no friction, which is modelled here and which it may refuse, and
    continuous joints as unbounded revolute ones (one number each)."""
    copy = etree.fromstring(etree.tostring(root))
    etree.strip_elements(copy, "visual", "collision", "dynamics", with_tail=False)
    for limit in copy.iterfind("joint/limit"):
        for key in ("velocity", "effort"):  # Pinocchio refuses what lacks them
            limit.set(key, limit.get(key, "0"))
    for joint in copy.findall("joint"):
        if joint.get("type") == "continuous":
            joint.set("type", "revolute")
            limit = joint.find("limit")
            if limit is None:
                limit = etree.SubElement(joint, "limit", velocity="0", effort="0")
            limit.set("lower", str(-_UNBOUNDED))
            limit.set("upper", str(_UNBOUNDED))
    return etree.tostring(copy, encoding="unicode")


def moving_links(root: etree._Element, joints: tuple[str, ...], free: bool) -> tuple[str, ...]:
    """Links that move: the root of a base that moves freely, then the child of every joint."""
    children = {joint.get("name"): str(joint.find("child").get("link")) for joint in root.findall("joint")}
    names = [str(link.get("name")) for link in root.findall("link")]
    roots = [name for name in names if name not in children.values()]
    return (*roots[:free], *(children[joint] for joint in joints))


def drive_prior(root: etree._Element, joints: tuple[str, ...]) -> dict[str, Array]:
    """Drive term to ``(n,)`` values: friction from ``<dynamics>``, zero where absent.

    Raises
    ------
    ModelError
        Friction below zero.
    """
    prior = {term: np.zeros(len(joints)) for term in DRIVE_TERMS}
    elements = {joint.get("name"): joint for joint in root.findall("joint")}
    for index, name in enumerate(joints):
        dynamics = elements[name].find("dynamics")
        if dynamics is None:
            continue
        where = f"URDF joint '{name}'"
        for key, term in (("damping", "viscous"), ("friction", "coulomb")):
            value = parsing.number(dynamics, key, where, "dynamics", default=0.0)
            if value < 0:
                raise ModelError(f"{where}: dynamics {key} is {value:g}, below zero; fix the URDF")
            prior[term][index] = value
    return prior


def limits(root: etree._Element, joints: tuple[str, ...]) -> JointLimits:
    """Limits of joints; those of the position of continuous ones are infinite."""
    elements = {joint.get("name"): joint for joint in root.findall("joint")}
    rows = []
    for name in joints:
        limit = elements[name].find("limit")
        row = [-np.inf, np.inf, np.inf, np.inf]
        if limit is not None:
            where = f"URDF joint '{name}'"
            row[:2] = position_range(elements[name])
            for column, key in ((2, "velocity"), (3, "effort")):
                value = parsing.number(limit, key, where, "limit", default=0.0)
                row[column] = value if value > 0 else np.inf
        rows.append(row)
    return JointLimits(*np.array(rows).reshape(-1, 4).T)
