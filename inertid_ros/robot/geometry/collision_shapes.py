"""A collision shape of a URDF, placed in the moving body that it belongs to."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pinocchio as pin
from lxml import etree

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError, one_line
from inertid_ros.robot.urdf import parsing

from .mesh_files import locate_mesh
from .meshes import Mesh, mesh_file, read_meshes

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
    surface : Mesh, optional
        The mesh, once it has been read.
    """

    link: str
    body: int
    placement: Array
    geometry: str
    size: tuple[float, ...] = ()
    mesh: Path | None = None
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    surface: Mesh | None = None


def collision_shape(
    element: etree._Element, link: str, frame: tuple[int, pin.SE3], folders: tuple[Sequence[str], Path | None]
) -> CollisionShape:
    """The shape of a ``<collision>`` or ``<visual>`` of a link.

    Parameters
    ----------
    frame : tuple
        Index of the moving body that the link belongs to, and the placement of the link in it.
    folders : tuple
        Folders of packages and that of the URDF, see :func:`~.mesh_files.locate_mesh`.

    Raises
    ------
    ModelError
        It has no geometry that is supported, or its mesh is not found.
    """
    where = f"URDF link '{link}' collision"
    xyz, rpy = parsing.origin(element, where)
    body, link_placement = frame
    placement = (link_placement * pin.SE3(pin.rpy.rpyToMatrix(np.asarray(rpy, dtype=float)), xyz)).homogeneous
    described = element.find("geometry")
    shape = next(described.iterchildren("*"), None) if described is not None else None
    if shape is None:
        raise ModelError(f"{where}: has no geometry; fix the URDF")
    geometry = str(shape.tag)
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


def with_surfaces(shapes: Sequence[CollisionShape]) -> tuple[list[CollisionShape], dict[str, str]]:
    """Shapes with their meshes, all read together, and why another link's mesh cannot be read: link to reason."""
    files = {id(shape): mesh_file(shape.mesh, shape.scale) for shape in shapes if shape.mesh is not None}
    meshes, usable, problems = read_meshes(files.values()), list[CollisionShape](), dict[str, str]()
    for shape in shapes:
        found = meshes[files[id(shape)]] if shape.mesh is not None else None
        if found is None or isinstance(found, Mesh):
            usable.append(replace(shape, surface=found))
            continue
        where = f"URDF link '{shape.link}' collision: cannot read mesh '{shape.mesh}'"
        problems.setdefault(shape.link, one_line(f"{where} ({found.reason}); {found.remedy}"))
    return usable, problems
