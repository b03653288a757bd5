"""Write estimated parameters back into the URDF that they were identified for."""

from collections.abc import Mapping

import numpy as np
from lxml import etree

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.robot.urdf import parsing
from inertid_ros.robot.urdf import text as markup

from .model import RobotModel


def write_urdf(model: RobotModel, bodies: Array, friction: Mapping[str, Array] | None = None) -> str:
    """URDF with other inertial parameters; all other bytes stay.

    A moving link gets the inertia of its whole body, and links fixed to it get zero inertia: without an ``<inertial>``,
    MuJoCo would compute one from their collision shapes. Links behind locked joints keep theirs
    (:attr:`RobotModel.body_locked`), which is subtracted from the body. The base is left alone. Inertial origins have
    ``rpy="0 0 0"``, and numbers read back exactly.

    Parameters
    ----------
    bodies : (nb, 10), parameters of the moving bodies about their joint frames.
    friction : mapping of str to ndarray, optional
        ``viscous`` [N m s/rad or N s/m] and ``coulomb`` [N m or N] to ``(n,)``, for ``<dynamics damping friction>``;
        joints with NaN stay.

    Raises
    ------
    ModelError
        A body is not physically consistent, or is less than its links behind locked joints.
    """
    unlocked = np.asarray(bodies, dtype=float) - model.body_locked
    _check(model, bodies, unlocked)
    text = model.urdf.encode("utf-8")
    robot = markup.locate(text)
    links = {link.attributes["name"]: link for link in robot.all("link")}
    edits: list[markup.Edit] = []
    for name, pi in zip(model.link_names, unlocked, strict=True):
        edits += _set_child(text, links[name], "inertial", markup.inertial_lines(pi))
    for name in _lumped_links(model):
        edits += _set_child(text, links[name], "inertial", markup.inertial_lines(np.zeros(10)))
    if friction is not None:
        joints = {joint.attributes["name"]: joint for joint in robot.all("joint")}
        for index, name in enumerate(model.joint_names):
            values = [float(friction[term][index]) for term in ("viscous", "coulomb")]
            if not all(np.isfinite(values)):
                continue
            content = ['<dynamics damping="{!r}" friction="{!r}"/>'.format(*values)]
            edits += _set_child(text, joints[name], "dynamics", content)
    return markup.apply(text, edits).decode("utf-8")


def _lumped_links(model: RobotModel) -> list[str]:
    """Links fixed to a moving link that have an inertia, or a collision shape that MuJoCo would compute one from."""
    root = parsing.parse_description(model.urdf)
    fixed: dict[str, list[str]] = {}
    for joint in root.findall("joint"):
        if joint.get("type") == "fixed":
            fixed.setdefault(joint.find("parent").get("link"), []).append(joint.find("child").get("link"))
    lumped: list[str] = []
    waiting = list(model.link_names)
    while waiting:
        children = fixed.get(waiting.pop(), [])
        lumped += children
        waiting += children
    massive = {link.get("name") for link in root.findall("link") if _has_inertia(link)}
    return [name for name in lumped if name in massive]


def _has_inertia(link: etree._Element) -> bool:
    if link.find("inertial") is None:
        return link.find("collision") is not None
    values = [float(value) for part in link.iterfind("inertial/*") if part.tag != "origin" for value in part.values()]
    return any(values)


def _check(model: RobotModel, bodies: Array, unlocked: Array) -> None:
    if unlocked.shape != model.body_prior.shape:
        raise ModelError(f"bodies have shape {unlocked.shape}, the model needs {model.body_prior.shape}")
    for name, whole, pi in zip(model.link_names, bodies, unlocked, strict=True):
        if not is_consistent(whole):
            raise ModelError(f"link '{name}': parameters are not physically consistent; they are not written to a URDF")
        if pi.any() and not is_consistent(pi):
            raise ModelError(
                f"link '{name}': parameters are less than those of its links behind locked joints;"
                " lock fewer joints or correct those links"
            )


def _set_child(text: bytes, parent: markup.Element, tag: str, content: list[str]) -> list[markup.Edit]:
    """Edits that give ``parent`` exactly one child with a tag."""
    present = parent.all(tag)
    if present:
        first, *others = present
        lines = f"\n{markup.indentation(text, first.start).decode()}".join(content).encode()
        return [markup.Edit(first.start, first.end, lines), *(markup.remove(text, element) for element in others)]
    margin = markup.indentation(text, parent.start).decode() + "  "
    return [markup.insert_first(text, parent, f"\n{margin}".join(content).encode())]
