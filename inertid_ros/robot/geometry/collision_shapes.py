"""The collision shapes of a URDF, each placed in the moving body that it belongs to."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.urdf import parsing

from .mesh_files import locate_mesh

_log = logging.getLogger(__name__)
_SIZES = {"sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}


@dataclass(frozen=True)
class CollisionShape:
    """One ``<collision>`` of a link.

    Attributes
    ----------
    link : str
        Link of the URDF that has it.
    body : int
        Index of the moving body that the link belongs to; -1 for the root, which does not move.
    placement : ndarray, shape (4, 4)
        Of the shape in the frame of that body (of the root link for -1).
    geometry : str
        ``box``, ``sphere``, ``cylinder``, ``capsule`` (both along z; a capsule's length is without its caps) or
        ``mesh``.
    size : tuple of float
        m; full edges of a box; radius; radius and length; nothing for a mesh.
    mesh : Path, optional
        File of a mesh.
    scale : tuple of float
        Factors of a mesh along its axes.
    """

    link: str
    body: int
    placement: Array
    geometry: str
    size: tuple[float, ...] = ()
    mesh: Path | None = None
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)


def collision_shapes(
    model: RobotModel, packages: Sequence[str] = ()
) -> tuple[tuple[CollisionShape, ...], dict[str, str]]:
    """Shapes of all links that can be used, and why another link's cannot: link to reason.

    Parameters
    ----------
    packages : sequence of str
        Folders in which ``package://`` meshes are looked for first, see :func:`~.mesh_files.locate_mesh`.
    """
    robot = model.pinocchio
    found: list[CollisionShape] = []
    unusable: dict[str, str] = {}
    for link in parsing.parse_description(model.urdf).findall("link"):
        name = str(link.get("name"))
        frame = robot.frames[robot.getFrameId(name, pin.FrameType.BODY)]
        for element in link.findall("collision"):
            try:
                found.append(_shape(element, name, frame, (packages, model.folder)))
            except ModelError as error:
                unusable.setdefault(name, str(error))
    return tuple(found), unusable


def _shape(
    element: etree._Element, link: str, frame: pin.Frame, folders: tuple[Sequence[str], Path | None]
) -> CollisionShape:
    where = f"URDF link '{link}' collision"
    xyz, rpy = parsing.origin(element, where)
    placement = (frame.placement * pin.SE3(pin.rpy.rpyToMatrix(np.asarray(rpy, dtype=float)), xyz)).homogeneous
    described = element.find("geometry")
    shape = next(described.iterchildren("*"), None) if described is not None else None
    if shape is None:
        raise ModelError(f"{where}: has no geometry; fix the URDF")
    body, geometry = int(frame.parentJoint) - 1, str(shape.tag)
    if geometry in _SIZES:
        size = tuple(parsing.number(shape, key, where, geometry) for key in _SIZES[geometry])
    elif geometry == "box":
        size = tuple(float(edge) for edge in parsing.vector(shape, "size", where, (0, 0, 0)))
    elif geometry == "mesh":
        x, y, z = (float(factor) for factor in parsing.vector(shape, "scale", where, (1, 1, 1)))
        path = locate_mesh(str(shape.get("filename")), where, *folders)
        return CollisionShape(link, body, placement, geometry, mesh=path, scale=(x, y, z))
    else:
        raise ModelError(f"{where}: geometry is <{geometry}>, which is not supported; use box, cylinder, sphere, mesh")
    if min(size) < 0:
        raise ModelError(f"{where}: {geometry} has the negative size {min(size):g} m; fix the URDF")
    return CollisionShape(link, body, placement, geometry, size)
