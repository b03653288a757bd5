"""Collision shapes of the links of a robot, and ellipsoids that bound the mass of a link."""

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from inertid_ros.core.errors import log_once
from inertid_ros.core.inertial_parameters import Ellipsoid, uniform_ellipsoid
from inertid_ros.robot.urdf import parsing
from inertid_ros.robot.urdf.shapes import CollisionShape, corners, corners_in_body, read_shapes
from inertid_ros.robot.urdf.units import longest_chain

from .model import RobotModel

# Size of a mesh over the longest chain of joints. In example-robot-data it is at most 1.7 for meshes of moving links.
_MAX_MESH_SIZE_RATIO = 30.0
_MIN_HALF_WIDTH_SHARE = 0.05  # of the longest chain of joints


def collision_shapes(model: RobotModel,
        packages: Sequence[str] = ()) -> tuple[tuple[CollisionShape, ...], dict[str, str]]:
    """Usable collision shapes of all links, and, by link, the reason for each unusable shape.

    The folders ``packages`` are searched first for ``package://`` meshes, see :func:`.locate_mesh`.
    """
    root = parsing.parse_description(model.urdf)
    shapes, unreadable, unusable = read_shapes(root, _frames(model), (packages, model.folder))
    usable = [shape for shape in shapes if not _is_in_millimetres(model, shape, unreadable)]
    return tuple(usable), {**unreadable, **unusable}


def _frames(model: RobotModel) -> dict[str, tuple[int, pin.SE3]]:
    """Map from links to the index of its moving body (-1: fixed root) and the placement of the link in this body."""
    frames = [frame for frame in model.pinocchio.frames if frame.type == pin.FrameType.BODY]
    return {str(frame.name): (int(frame.parentJoint) - 1, frame.placement) for frame in frames}


def _is_in_millimetres(model: RobotModel, shape: CollisionShape, problems: dict[str, str]) -> bool:
    """True if a mesh of a moving link is far larger than the whole robot; if so, add a message to ``problems``."""
    length = longest_chain(model.pinocchio)
    if shape.surface is None or shape.body < 0 or not length:
        return False
    size = float(np.ptp(shape.surface.hull_vertices, axis=0).max())
    if size <= _MAX_MESH_SIZE_RATIO * length:
        return False
    scale = " ".join(f"{1e-3 * factor:g}" for factor in shape.scale)
    large = f"mesh '{shape.mesh}' is {size:.3g} m large, in a robot of {length:.2g} m"
    remedy = f'if it is in millimetres, write scale="{scale}" into its <mesh>'
    problems.setdefault(shape.link, f"URDF link '{shape.link}' collision: {large}; {remedy}")
    return True


def collision_ellipsoids(model: RobotModel, packages: tuple[str, ...] = (),
        margin: float = 1.0) -> dict[str, tuple[Ellipsoid, ...]]:
    """Ellipsoids of every moving link: one around each of its collision shapes, lumped links included.

    Boxes, cylinders and spheres are enclosed tightly; a mesh is enclosed by the ellipsoid around its bounding box.
    Links without collision geometry are left out; links with an unusable shape are left out with a warning.

    Parameters
    ----------
    packages : folders that are searched for ``package://`` meshes.
    margin : factor on all semi-axes.
    """
    shapes, problems = collision_shapes(model, packages)
    bodies = {link: body for link, (body, _) in _frames(model).items()}
    unbounded = {bodies[link] for link in problems}
    for link, problem in problems.items():
        if bodies[link] >= 0:
            log_once(f"{problem}; the mass of '{model.link_names[bodies[link]]}' is not bounded")
    ellipsoids: dict[str, tuple[Ellipsoid, ...]] = {}
    for body, link in enumerate(model.link_names):
        around = tuple(_ellipsoid(shape, margin) for shape in shapes if shape.body == body)
        if around and body not in unbounded:
            ellipsoids[link] = around
    return ellipsoids


def surrounding_ellipsoids(model: RobotModel, shapes: bool = False) -> tuple[Ellipsoid | None, ...]:
    """Ellipsoid of every moving body around the frames of its links and joints, and around its mass in the URDF.

    The ellipsoid encloses a box at least a tenth of the robot wide, because links have width around their frames.

    Parameters
    ----------
    shapes : whether to include the collision shapes; if so, bodies with an unusable shape have None.
    """
    robot = model.pinocchio
    placed, problems = collision_shapes(model) if shapes else ((), {})
    origins = [[np.zeros(3)] for _ in model.link_names]
    frames = _frames(model)
    joints = ((robot.parents[k] - 1, robot.jointPlacements[k]) for k in range(1, robot.njoints))
    for body, placement in (*frames.values(), *joints):
        if body >= 0:
            origins[body].append(placement.translation)
    ellipsoids: list[Ellipsoid | None] = []
    for body, pi in enumerate(model.consistent_body_prior):
        centre, axes, radii = uniform_ellipsoid(pi)
        half = np.abs(axes) @ radii
        corners_of_shapes = [corners_in_body(shape) for shape in placed if shape.body == body]
        points = np.vstack([*origins[body], centre - half, centre + half, *corners_of_shapes])
        low, high = points.min(axis=0), points.max(axis=0)
        wide = np.maximum(0.5 * (high - low), _MIN_HALF_WIDTH_SHARE * longest_chain(robot))
        ellipsoids.append(Ellipsoid.around_box(0.5 * (low + high), np.eye(3), wide))
    unknown = {frames[link][0] for link in problems}
    return tuple(None if body in unknown else ellipsoid for body, ellipsoid in enumerate(ellipsoids))


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
