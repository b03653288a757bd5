"""Ellipsoids around the collision geometry of each moving link: where its mass can be."""

import logging

import numpy as np
import pinocchio as pin

from inertid_ros.robot.bodies.ellipsoids import Ellipsoid
from inertid_ros.robot.geometry.capsules import corners
from inertid_ros.robot.geometry.collision_shapes import CollisionShape

from .link_shapes import collision_shapes
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
    packages : tuple of str
        Folders in which ``package://`` meshes are looked for.
    margin : float
        Factor on all semi-axes.
    """
    shapes, problems = collision_shapes(model, packages)
    found: dict[str, list[Ellipsoid]] = {link: [] for link in model.link_names}
    unusable: set[str] = set()
    owners = _link_bodies(model)
    for link, problem in problems.items():
        if owners[link] >= 0:
            _give_up(model.link_names[owners[link]], problem, unusable)
    for shape in shapes:
        if shape.body < 0:
            continue
        found[model.link_names[shape.body]].append(_ellipsoid(shape, margin))
    return {link: tuple(around) for link, around in found.items() if around and link not in unusable}


def _link_bodies(model: RobotModel) -> dict[str, int]:
    """Index of the moving body that each link belongs to, -1 for the root."""
    frames = [frame for frame in model.pinocchio.frames if frame.type == pin.FrameType.BODY]
    return {str(frame.name): int(frame.parentJoint) - 1 for frame in frames}


def _give_up(body: str, problem: str, unusable: set[str]) -> None:
    unusable.add(body)
    _log.warning("%s; '%s' is not bounded", problem, body)


def _ellipsoid(shape: CollisionShape, margin: float) -> Ellipsoid:
    rotation, centre = shape.placement[:3, :3], shape.placement[:3, 3]
    if shape.geometry == "sphere":
        return Ellipsoid.from_axes(centre, rotation, margin * np.full(3, shape.size[0]))
    if shape.geometry in ("cylinder", "capsule"):
        radius, length = shape.size
        length += 2 * radius if shape.geometry == "capsule" else 0.0
        return Ellipsoid.around_cylinder(centre, rotation, margin * radius, margin * length)
    if shape.geometry == "box":
        return Ellipsoid.around_box(centre, rotation, margin * 0.5 * np.array(shape.size))
    points = corners(shape)
    low, high = points.min(axis=0), points.max(axis=0)
    half = np.maximum(0.5 * (high - low), 1e-3)
    return Ellipsoid.around_box(centre + rotation @ (0.5 * (low + high)), rotation, margin * half)
