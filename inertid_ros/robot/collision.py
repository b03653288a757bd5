"""Ellipsoids around the collision geometry of each moving link: where its mass can be."""

import logging
from pathlib import Path

import numpy as np
import pinocchio as pin
from lxml import etree

from ..errors import ModelError
from . import description
from .ellipsoids import Ellipsoid
from .model import RobotModel

_log = logging.getLogger(__name__)


def collision_ellipsoids(
    model: RobotModel, packages: tuple[str, ...] = (), margin: float = 1.0
) -> dict[str, tuple[Ellipsoid, ...]]:
    """For each moving link, one ellipsoid around each of its collision shapes, lumped links included.

    Boxes, cylinders and spheres are enclosed tightly; a mesh by the ellipsoid around its bounding box. Links without
    collision geometry, or with a mesh that cannot be read, are left out with a notice.

    Parameters
    ----------
    packages: folders in which ``package://`` meshes are looked for.
    margin: factor on all semi-axes.
    """
    robot = model.pinocchio
    found: dict[str, list[Ellipsoid]] = {link: [] for link in model.link_names}
    unusable: set[str] = set()
    for link in description.parse_description(model.urdf).findall("link"):
        frame = robot.frames[robot.getFrameId(link.get("name"), pin.FrameType.BODY)]
        if frame.parentJoint == 0:
            continue
        carrier = model.link_names[frame.parentJoint - 1]
        for shape in link.findall("collision"):
            where = f"URDF link '{link.get('name')}' collision"
            try:
                found[carrier].append(_ellipsoid(shape, where, frame.placement, packages, margin))
            except ModelError as error:
                unusable.add(carrier)
                _log.warning("%s; '%s' is not bounded", error, carrier)
    return {link: tuple(shapes) for link, shapes in found.items() if shapes and link not in unusable}


def _ellipsoid(
    collision: etree._Element, where: str, frame: pin.SE3, packages: tuple[str, ...], margin: float
) -> Ellipsoid:
    xyz, rpy = description.origin(collision, where)
    placement = frame * pin.SE3(pin.rpy.rpyToMatrix(np.asarray(rpy, dtype=float)), xyz)
    geometry = collision.find("geometry")
    shape = next(geometry.iterchildren("*"), None) if geometry is not None else None
    if shape is None:
        raise ModelError(f"{where}: has no geometry; fix the URDF")
    tag = shape.tag
    centre, rotation = placement.translation, placement.rotation
    if tag == "sphere":
        radius = description.number(shape, "radius", where, "sphere")
        return Ellipsoid.from_axes(centre, rotation, margin * np.full(3, radius))
    if tag in ("cylinder", "capsule"):
        radius = description.number(shape, "radius", where, tag)
        length = description.number(shape, "length", where, tag) + (2 * radius if tag == "capsule" else 0.0)
        return Ellipsoid.around_cylinder(centre, rotation, margin * radius, margin * length)
    if tag == "box":
        half = 0.5 * description.vector(shape, "size", where, (0, 0, 0))
        return Ellipsoid.around_box(centre, rotation, margin * half)
    if tag == "mesh":
        low, high = _mesh_bounds(str(shape.get("filename")), where, packages)
        scale = description.vector(shape, "scale", where, (1, 1, 1))
        middle, half = 0.5 * (low + high) * scale, 0.5 * np.abs((high - low) * scale)
        return Ellipsoid.around_box(placement.act(middle), rotation, margin * np.maximum(half, 1e-3))
    raise ModelError(f"{where}: geometry is <{tag}>, which has no bound here; use box, cylinder, sphere or mesh")


def _mesh_bounds(filename: str, where: str, packages: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Corners of a mesh's bounding box, read by the collision library that comes with Pinocchio."""
    path = _locate(filename, where, packages)
    try:
        import coal
    except ImportError:
        raise ModelError(
            f"{where}: reading '{filename}' needs coal; install pinocchio with collision support"
        ) from None
    try:
        mesh = coal.MeshLoader().load(str(path), np.ones(3))
        mesh.computeLocalAABB()
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"{where}: cannot read mesh '{filename}' ({str(error).splitlines()[0]})") from None
    return np.array(mesh.aabb_local.min_), np.array(mesh.aabb_local.max_)


def _locate(filename: str, where: str, packages: tuple[str, ...]) -> Path:
    name = filename.removeprefix("file://")
    if name.startswith("package://"):
        inside = name.removeprefix("package://")
        candidates = [Path(folder) / inside for folder in packages]
        candidates += [Path(folder).parent / inside for folder in packages]
    else:
        candidates = [Path(name)]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise ModelError(f"{where}: mesh '{filename}' is not found; give the folder of its package")
