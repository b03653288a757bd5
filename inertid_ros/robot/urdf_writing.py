"""Write estimated parameters back into the URDF that they were identified for."""

from collections.abc import Mapping

import numpy as np
from lxml import etree

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.robot.bodies.inertial_parameters import is_consistent
from inertid_ros.robot.urdf import parsing, xml_edits

from .model import RobotModel


def write_urdf(model: RobotModel, bodies: Array, friction: Mapping[str, Array] | None = None) -> str:
    """The given URDF with other inertial parameters; everything else stays byte for byte.

    A moving link gets the inertia of its whole body, and links fixed to it an inertia of zero: not none, as MuJoCo
    would compute one from their collision shapes. Links behind locked joints keep theirs
    (:attr:`RobotModel.body_locked`), which is taken off the body. The base is left alone. Inertial origins have
    ``rpy="0 0 0"``, and numbers are written so that they read back exactly.

    Parameters
    ----------
    bodies : ndarray, shape (nb, 10)
        Parameters of the moving bodies about their joint frames.
    friction : mapping of str to ndarray, optional
        ``viscous`` [N m s/rad or N s/m] and ``coulomb`` [N m or N] to ``(n,)``; written as ``<dynamics damping
        friction>`` where they are not NaN.

    Raises
    ------
    ModelError
        A body has impossible parameters, or is less than what its links behind locked joints have.
    """
    own = np.asarray(bodies, dtype=float) - model.body_locked
    _check(model, bodies, own)
    text = model.urdf.encode("utf-8")
    robot = xml_edits.locate(text)
    links = {link.attributes["name"]: link for link in robot.all("link")}
    edits: list[xml_edits.Edit] = []
    for name, pi in zip(model.link_names, own, strict=True):
        edits += _set_child(text, links[name], "inertial", xml_edits.inertial_lines(pi))
    for name in _lumped_links(model):
        edits += _set_child(text, links[name], "inertial", xml_edits.inertial_lines(np.zeros(10)))
    if friction is not None:
        joints = {joint.attributes["name"]: joint for joint in robot.all("joint")}
        for index, name in enumerate(model.joint_names):
            values = [float(friction[term][index]) for term in ("viscous", "coulomb")]
            if not all(np.isfinite(values)):
                continue
            content = ['<dynamics damping="{!r}" friction="{!r}"/>'.format(*values)]
            edits += _set_child(text, joints[name], "dynamics", content)
    return xml_edits.apply(text, edits).decode("utf-8")


def _lumped_links(model: RobotModel) -> list[str]:
    """Links fixed to a moving link that have an inertia, or a collision shape from which MuJoCo would compute one."""
    root = parsing.parse_description(model.urdf)
    fixed: dict[str, list[str]] = {}
    for joint in root.findall("joint"):
        if joint.get("type") == "fixed":
            fixed.setdefault(joint.find("parent").get("link"), []).append(joint.find("child").get("link"))
    found: list[str] = []
    waiting = list(model.link_names)
    while waiting:
        children = fixed.get(waiting.pop(), [])
        found += children
        waiting += children
    massive = {link.get("name") for link in root.findall("link") if _has_inertia(link)}
    return [name for name in found if name in massive]


def _has_inertia(link: etree._Element) -> bool:
    if link.find("inertial") is None:
        return link.find("collision") is not None
    values = [float(value) for part in link.iterfind("inertial/*") if part.tag != "origin" for value in part.values()]
    return any(values)


def _check(model: RobotModel, bodies: Array, own: Array) -> None:
    if own.shape != model.body_prior.shape:
        raise ModelError(f"bodies have shape {own.shape}, the model needs {model.body_prior.shape}")
    for name, whole, pi in zip(model.link_names, bodies, own, strict=True):
        if not is_consistent(whole):
            raise ModelError(f"link '{name}': parameters are not physically consistent; they are not written to a URDF")
        if pi.any() and not is_consistent(pi):
            raise ModelError(
                f"link '{name}': parameters are less than those of its links behind locked joints;"
                " lock fewer joints or correct those links"
            )


def _set_child(text: bytes, parent: xml_edits.Element, tag: str, content: list[str]) -> list[xml_edits.Edit]:
    """Edits that give ``parent`` one child of a tag."""
    present = parent.all(tag)
    if present:
        first, *others = present
        lines = f"\n{xml_edits.indentation(text, first.start).decode()}".join(content).encode()
        return [xml_edits.Edit(first.start, first.end, lines), *(xml_edits.remove(text, element) for element in others)]
    margin = xml_edits.indentation(text, parent.start).decode() + "  "
    return [xml_edits.insert_first(text, parent, f"\n{margin}".join(content).encode())]
