"""Joints of a parsed URDF: which can move or are held, their links, limits and friction."""

from collections.abc import Mapping
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
    for name, joint in joints.items():
        mimic = _mimic(joint)
        if mimic is not None and name not in locked and mimic.get("joint") in locked:
            where = f"URDF joint '{name}'"
            factor = parsing.number(mimic, "multiplier", where, "mimic", default=1.0)
            offset = parsing.number(mimic, "offset", where, "mimic", default=0.0)
            locked[name] = factor * locked[mimic.get("joint")] + offset
    return locked


def _mimic(joint: etree._Element) -> etree._Element | None:
    """The ``<mimic>`` of a joint that can move; simplified robots leave it behind on joints made fixed."""
    return joint.find("mimic") if joint.get("type") in parsing.MOVABLE else None


def check_supported(root: etree._Element, locked: Mapping[str, float]) -> None:
    """Raise ``ModelError`` for joints that are neither locked nor revolute, continuous, prismatic or fixed."""
    for joint in root.findall("joint"):
        name, joint_type = joint.get("name"), joint.get("type")
        if joint_type not in (*parsing.MOVABLE, "fixed"):
            raise ModelError(
                f"URDF joint '{name}': type '{joint_type}' is not supported;"
                " use revolute, continuous, prismatic or fixed"
            )
        mimic = _mimic(joint)
        if mimic is not None and name not in locked:
            leader = mimic.get("joint")
            raise ModelError(
                f"URDF joint '{name}': mimics '{leader}', which is not supported;"
                f" lock '{leader}' (for example locked_joints: {{{leader}: 0.0}})"
            )


def without_geometry(root: etree._Element) -> str:
    """URDF for Pinocchio: no meshes to look for, no friction, which is modelled here and which it may refuse, and
    continuous joints as unbounded revolute ones (one number each)."""
    copy = etree.fromstring(etree.tostring(root))
    etree.strip_elements(copy, "visual", "collision", "dynamics", with_tail=False)
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
        limit, joint_type = elements[name].find("limit"), elements[name].get("type")
        row = [-np.inf, np.inf, np.inf, np.inf]
        if limit is not None:
            where = f"URDF joint '{name}'"
            if joint_type != "continuous":
                row[:2] = [parsing.number(limit, key, where, "limit", default=0.0) for key in ("lower", "upper")]
            for column, key in ((2, "velocity"), (3, "effort")):
                value = parsing.number(limit, key, where, "limit", default=0.0)
                row[column] = value if value > 0 else np.inf
        rows.append(row)
    return JointLimits(*np.array(rows).reshape(-1, 4).T)
