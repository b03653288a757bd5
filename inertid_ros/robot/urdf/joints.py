"""Joints of a parsed URDF: movable and held joints, links, limits, friction, and the Pinocchio model."""

import os
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.config.robot import DRIVE_TERMS
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError

from . import parsing

_MAX_DRIVE_TERM = 1e9  # N m or N, per rad/s or m/s, and per rad/s^2 or m/s^2
_ASSUMED_RANGE, _ASSUMED_SPEED = np.pi, 1.0  # rad or m, per s; if the URDF has no limit
_CONTINUOUS_LIMIT = 1e6  # rad; far beyond any multi-turn encoder


@dataclass(frozen=True)
class Mimic:
    """Relation of a mimic joint: its position is ``multiplier * (position of leader) + offset`` [rad or m]."""

    leader: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True)
class JointLimits:
    """Limits of every joint; infinite if the URDF has none.

    ``(n,)`` each: lower and upper position [rad or m], velocity [rad/s or m/s], effort [N m or N].
    """

    lower: Array
    upper: Array
    velocity: Array
    effort: Array

    @property
    def range_to_sample(self) -> tuple[Array, Array, Array]:
        """Lower position, upper position and speed, ``(n,)`` each; assumed values for joints without limits."""
        bounded = np.isfinite(self.velocity) & (self.velocity > 0)
        return (
            np.where(np.isfinite(self.lower), self.lower, -_ASSUMED_RANGE),
            np.where(np.isfinite(self.upper), self.upper, _ASSUMED_RANGE),
            np.where(bounded, self.velocity, _ASSUMED_SPEED))


def locked_joints(root: etree._Element, wanted: Mapping[str, float]) -> dict[str, float]:
    """Positions [rad or m] of movable joints to lock, and of joints that mimic them."""
    joints = parsing.by_name(root, "joint")
    movable = [name for name, joint in joints.items() if joint.get("type") in parsing.MOVABLE]
    for name in wanted:
        if name not in movable:
            raise ModelError(f"locked joint '{name}': the URDF has no movable joint of this name; it has {movable}")
    locked = {name: float(position) for name, position in wanted.items()}
    still = {name: 0.0 for name in joints if name not in movable} | locked
    mimics = mimics_of(root, still)
    return locked | {name: x.multiplier * still[x.leader] + x.offset for name, x in mimics.items()}


def held_leaders(root: etree._Element, locked: Mapping[str, float]) -> dict[str, float]:
    """Leaders of mimic joints that are not locked yet, with the position nearest to zero within their limits.

    A chain of mimic joints leads to its first leader; a mimic joint whose leader does not exist is locked itself.
    ModelError if a joint mimics itself through other joints.
    """
    joints = parsing.by_name(root, "joint")
    held, leaders = {}, {name: str(mimic.get("joint")) for name, mimic in _mimics(root).items()}
    for name in leaders:
        first, followers_of_first = name, set[str]()
        while first in leaders and first not in locked and leaders[first] in joints:
            followers_of_first.add(first)
            first = leaders[first]
            if first in followers_of_first:
                raise ModelError(f"URDF joint '{name}': mimics itself through '{first}'; fix the URDF")
        if first not in locked and joints[first].get("type") in parsing.MOVABLE:
            held[first] = float(np.clip(0.0, *position_range(joints[first])))
    return held


def followers(root: etree._Element, leaders: Collection[str]) -> tuple[str, ...]:
    """Joints that mimic one of ``leaders``, or a joint that does not exist."""
    joints, mimicked = parsing.by_name(root, "joint"), {name: m.get("joint") for name, m in _mimics(root).items()}
    return tuple(name for name, leader in mimicked.items() if leader in leaders or leader not in joints)


def mimics_of(root: etree._Element, leaders: Collection[str]) -> dict[str, Mimic]:
    """Joints that mimic one of ``leaders``, directly or through other joints, with their relation to this leader."""
    joints, found, waiting = parsing.by_name(root, "joint"), {name: Mimic(name) for name in leaders}, _mimics(root)
    while ready := [name for name, mimic in waiting.items() if name not in found and mimic.get("joint") in found]:
        for name in ready:
            before = found[str(waiting[name].get("joint"))]
            factor = parsing.number(joints[name], "mimic", "multiplier", default=1.0)
            offset = parsing.number(joints[name], "mimic", "offset", default=0.0)
            found[name] = Mimic(before.leader, factor * before.multiplier, factor * before.offset + offset)
    return {name: mimic for name, mimic in found.items() if name not in leaders}


def position_range(joint: etree._Element) -> tuple[float, float]:
    """Lower and upper limit of a joint's position [rad or m]; infinite without a limit."""
    if joint.find("limit") is None or joint.get("type") == "continuous":
        return -np.inf, np.inf
    return parsing.number(joint, "limit", "lower", 0.0), parsing.number(joint, "limit", "upper", 0.0)


def _mimics(root: etree._Element) -> dict[str, etree._Element]:
    """Map from joints to their ``<mimic>``; a ``<mimic>`` on a fixed joint, as in simplified robots, is ignored."""
    joints = [joint for joint in root.findall("joint") if joint.get("type") in parsing.MOVABLE]
    return {str(joint.get("name")): joint.find("mimic") for joint in joints if joint.find("mimic") is not None}


def rigidly_joined(root: etree._Element, link: str, held: Collection[str] = ()) -> list[str]:
    """A link, and the links that fixed or ``held`` joints connect behind it."""
    rigid = [joint for joint in root.findall("joint") if joint.get("type") == "fixed" or joint.get("name") in held]
    links = [link]
    for parent in links:  # the loop extends it
        links += [parsing.ends(joint)[1] for joint in rigid if parsing.ends(joint)[0] == parent]
    return links


def check_supported(root: etree._Element) -> None:
    """Raise ``ModelError`` for joints that are neither revolute, continuous, prismatic nor fixed."""
    for name, joint in parsing.by_name(root, "joint").items():
        if joint.get("type") not in (*parsing.MOVABLE, "fixed"):
            kinds = "revolute, continuous, prismatic or fixed"
            raise ModelError(f"URDF joint '{name}': type '{joint.get('type')}' is not supported; use {kinds}")


def full_model(root: etree._Element, gravity: Sequence[float], free: bool) -> pin.Model:
    """Pinocchio's model of all joints, on a base that is fixed or moves freely."""
    base = (pin.JointModelFreeFlyer(),) if free else ()
    with _library_errors() as reasons:
        try:
            model = pin.buildModelFromXML(without_geometry(root), *base)
        except (ValueError, RuntimeError) as error:
            model, failure = None, str(error)
    if model is None:
        reason = (*reasons, *failure.splitlines())[0].removeprefix("Error:").strip()
        raise ModelError(f"URDF: Pinocchio refuses it ({reason}); fix the URDF")
    model.gravity.linear = np.array(gravity, dtype=float)
    return model


@contextmanager
def _library_errors() -> Iterator[list[str]]:
    """Yield a list that receives the lines that libraries write to stderr in this block, once it has ended."""
    lines: list[str] = []
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield lines
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            file.seek(0)
            lines += filter(None, file.read().decode(errors="replace").splitlines())


def reduced_model(full: pin.Model, locked: Mapping[str, float]) -> tuple[pin.Model, list[int]]:
    """Model without the locked joints, and the index in ``full`` of each joint that stays."""
    if not locked:
        return full, list(range(1, full.njoints))
    reference = pin.neutral(full)
    ids = [full.getJointId(name) for name in locked]
    for index, position in zip(ids, locked.values(), strict=True):
        reference[full.joints[index].idx_q] = position
    try:
        reduced = pin.buildReducedModel(full, ids, reference)
    except ValueError:
        raise ModelError("URDF: a joint and a link share a name, so joints cannot be locked; rename one") from None
    return reduced, [full.getJointId(name) for name in list(reduced.names)[1:]]


def without_geometry(root: etree._Element) -> str:
    """URDF without geometry and friction, which Pinocchio may refuse.

    Continuous joints become revolute joints with very wide limits, so that each has one position number.
    """
    copy = etree.fromstring(etree.tostring(root))
    etree.strip_elements(copy, "visual", "collision", "dynamics", with_tail=False)
    for limit in copy.iterfind("joint/limit"):
        for key in ("velocity", "effort"):  # Pinocchio refuses limits without them
            limit.set(key, limit.get(key, "0"))
    for joint in copy.findall("joint"):
        if joint.get("type") == "continuous":
            joint.set("type", "revolute")
            limit = joint.find("limit")
            if limit is None:
                limit = etree.SubElement(joint, "limit", velocity="0", effort="0")
            limit.set("lower", str(-_CONTINUOUS_LIMIT))
            limit.set("upper", str(_CONTINUOUS_LIMIT))
    return etree.tostring(copy, encoding="unicode")


def moving_links(root: etree._Element, joints: tuple[str, ...], free: bool) -> tuple[str, ...]:
    """Moving links: the root link if the base is free, then the child of every joint."""
    children = {name: parsing.ends(joint)[1] for name, joint in parsing.by_name(root, "joint").items()}
    roots = [name for name in parsing.by_name(root, "link") if name not in children.values()]
    return (*roots[:free], *(children[joint] for joint in joints))


def drive_prior(root: etree._Element, joints: tuple[str, ...]) -> dict[str, Array]:
    """Map drive terms to ``(n,)`` values: friction from ``<dynamics>``, rotor inertia from transmissions as in Drake.

    Values that are not stated are zero. ModelError for impossible values.
    """
    prior, elements = {term: np.zeros(len(joints)) for term in DRIVE_TERMS}, parsing.by_name(root, "joint")
    for index, name in enumerate(joints):
        for key, term in (("damping", "viscous"), ("friction", "coulomb")):
            prior[term][index] = parsing.number(elements[name], "dynamics", key, 0.0)
    for actuator in root.iterfind("transmission/actuator"):
        joint = actuator.getparent().find("joint")
        if joint is not None and joint.get("name") in joints:
            inertia, ratio = (parsing.number(actuator, f"{{{parsing.DRAKE}}}{key}", "value", default)
                for key, default in (("rotor_inertia", 0.0), ("gear_ratio", 1.0)))
            prior["rotor_inertia"][joints.index(joint.get("name"))] += inertia * ratio**2
    stated = {"dynamics damping": "viscous", "dynamics friction": "coulomb", "rotor_inertia": "rotor_inertia"}
    for what, term in stated.items():
        for name, value in zip(joints, prior[term], strict=True):
            if not 0 <= value <= _MAX_DRIVE_TERM:
                wrong = "below zero" if value < 0 else "more than any joint has"
                raise ModelError(f"URDF joint '{name}': {what} is {value:g}, {wrong}; fix the URDF")
    return prior


def limits(root: etree._Element, joints: tuple[str, ...]) -> JointLimits:
    """Limits of joints; position limits of continuous joints are infinite."""
    every = parsing.by_name(root, "joint")
    elements = [every[name] for name in joints]
    bounds = np.array([position_range(joint) for joint in elements]).reshape(-1, 2)
    peaks = [[parsing.number(joint, "limit", key, 0.0) for joint in elements] for key in ("velocity", "effort")]
    return JointLimits(*bounds.T, *np.where(np.array(peaks) > 0, peaks, np.inf))
