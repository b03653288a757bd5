"""Collision shapes of a URDF, placed in the frames of the moving bodies, and capsules around the shapes.

Distances between capsules are fast to compute and smooth ([Ayusawa2017]_ eq. 53). Links without inertia get an inertia
from their shapes and an assumed density.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pinocchio as pin
import scipy
from lxml import etree

from inertid_ros.core.arrays import Array, Mask
from inertid_ros.core.errors import ModelError, log_once, one_line
from inertid_ros.core.inertial_parameters import from_mass_com_inertia, from_pseudo_inertia, mass_com_inertia
from inertid_ros.robot.urdf import parsing, text as markup
from inertid_ros.robot.urdf.joints import rigidly_joined
from inertid_ros.robot.urdf.meshes import Mesh, locate_mesh, mesh_file, read_meshes

_SIZES = {"sphere": ("radius",), "cylinder": ("radius", "length"), "capsule": ("radius", "length")}
_CYLINDER_CORNERS = 16  # of the polygon around a cylinder
_MAX_MEAN_EXCESS = 0.006  # m; a shape is cut in two if its capsule is farther out on average
_MAX_CUTS = 3  # at most 2**_MAX_CUTS capsules for one shape
_CENTRING_STEPS = 12
DENSITY = 1200.0  # kg/m^3; median of mass over volume of convex hulls of 946 links of example-robot-data is 1190
_SAME_INERTIA, _MIN_PLACEHOLDERS = 1e-6, 3  # relative difference of placeholders, their least number
_BAR_WIDTH_RATIO = 0.2  # width over length of the bar that replaces a link without shape
_MIN_BAR_SIZE = 0.04  # m; width and length
_MIN_HALF_THICKNESS = 1e-3  # m; added to flat shapes
_CUBE = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T  # corners (8, 3)


@dataclass(frozen=True)
class CollisionShape:
    """One ``<collision>`` of a link.

    Attributes
    ----------
    body : moving body that the link belongs to; -1 for the fixed root.
    placement : (4, 4), pose of the shape in the frame of the body (for -1, of the root link).
    geometry : ``box``, ``sphere``, ``cylinder`` or ``capsule`` along z (length without caps), or ``mesh``.
    size : [m], edges of a box; radius of a sphere; radius and length of a cylinder or capsule; empty for a mesh.
    scale : factors of a mesh along its axes.
    """

    link: str
    body: int
    placement: Array
    geometry: str
    size: tuple[float, ...] = ()
    mesh: Path | None = None
    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)
    surface: Mesh | None = None


def collision_shape(element: etree._Element, link: str, frame: tuple[int, pin.SE3],
        folders: tuple[Sequence[str], Path | None]) -> CollisionShape:
    """Shape of a ``<collision>`` or ``<visual>``; ModelError if the geometry is not supported or its mesh is missing.

    Parameters
    ----------
    frame : index of the moving body of the link, and the placement of the link in this body.
    folders : folders of packages, and folder of the URDF, see :func:`~.meshes.locate_mesh`.
    """
    where = parsing.place(element)
    body, link_placement = frame
    placement = (link_placement * parsing.placement(element)).homogeneous
    container = element.find("geometry")
    shape = next(container.iterchildren("*"), None) if container is not None else None
    if shape is None:
        raise ModelError(f"{where}: has no geometry; fix the URDF")
    geometry = str(shape.tag)
    if geometry in _SIZES:
        size = tuple(parsing.number(container, geometry, key) for key in _SIZES[geometry])
    elif geometry == "box":
        size = tuple(float(edge) for edge in parsing.vector(container, geometry, "size", (0, 0, 0)))
    elif geometry == "mesh":
        x, y, z = (float(factor) for factor in parsing.vector(container, geometry, "scale", (1, 1, 1)))
        path = locate_mesh(str(shape.get("filename")), where, *folders)
        return CollisionShape(link, body, placement, geometry, mesh=path, scale=(x, y, z))
    else:
        raise ModelError(f"{where}: geometry is <{geometry}>, which is not supported; use box, cylinder, sphere, mesh")
    if min(size) < 0:
        raise ModelError(f"{where}: {geometry} has the negative size {min(size):g} m; fix the URDF")
    return CollisionShape(link, body, placement, geometry, size)


def read_shapes(root: etree._Element, frames: Mapping[str, tuple[int, pin.SE3]],
        folders: tuple[Sequence[str], Path | None],
        visual: bool = False) -> tuple[list[CollisionShape], dict[str, str], dict[str, str]]:
    """Shapes of links, and two maps from links to problems: with mesh files, and with geometries and mesh paths.

    Parameters
    ----------
    frames : map from links to frames as in :func:`collision_shape`; shapes of other links are left out.
    visual : whether links without ``<collision>`` use the shapes of their ``<visual>``.
    """
    placed: list[CollisionShape] = []
    unusable: dict[str, str] = {}
    for link in root.findall("link"):
        name = str(link.get("name"))
        elements = link.findall("collision") or (link.findall("visual") if visual else [])
        for element in elements if name in frames else ():
            try:
                placed.append(collision_shape(element, name, frames[name], folders))
            except ModelError as error:
                unusable.setdefault(name, str(error))
    shapes, unreadable = with_surfaces(placed)
    return shapes, unreadable, unusable


def with_surfaces(shapes: Sequence[CollisionShape]) -> tuple[list[CollisionShape], dict[str, str]]:
    """Shapes with their meshes, all read together; by link, the reason why a mesh is unreadable."""
    files = {id(shape): mesh_file(shape.mesh, shape.scale) for shape in shapes if shape.mesh is not None}
    meshes, usable, problems = read_meshes(files.values()), list[CollisionShape](), dict[str, str]()
    for shape in shapes:
        mesh = meshes[files[id(shape)]] if shape.mesh is not None else None
        if mesh is None or isinstance(mesh, Mesh):
            usable.append(replace(shape, surface=mesh))
            continue
        where = f"URDF link '{shape.link}' collision: cannot read mesh '{shape.mesh}'"
        problems.setdefault(shape.link, one_line(f"{where} ({mesh.reason}); {mesh.remedy}"))
    return usable, problems


@dataclass(frozen=True)
class Capsule:
    """Points within ``radius`` of a segment."""

    start: Array
    end: Array
    radius: float

    @property
    def volume(self) -> float:
        length = float(np.linalg.norm(self.end - self.start))
        return np.pi * self.radius**2 * (length + 4 / 3 * self.radius)

    @property
    def surface(self) -> float:
        return float(2 * np.pi * self.radius * (np.linalg.norm(self.end - self.start) + 2 * self.radius))

    def placed(self, placement: Array) -> "Capsule":
        """Capsule moved by the transform ``placement (4, 4)``."""
        R, p = placement[:3, :3], placement[:3, 3]
        return Capsule(R @ self.start + p, R @ self.end + p, self.radius)


def shape_capsules(shape: CollisionShape) -> tuple[Capsule, ...]:
    """Capsules whose union contains a shape, in the frame of its body.

    Spheres and capsules are exact. The convex hull of another shape is enclosed by one capsule, or by several if one is
    too wide.
    """
    if shape.geometry in ("sphere", "capsule"):
        half = np.array([0.0, 0.0, 0.5 * sum(shape.size[1:])])
        local: tuple[Capsule, ...] = (Capsule(-half, half, shape.size[0]),)
    else:
        local = _around(np.ascontiguousarray(corners(shape)).tobytes())
    return tuple(capsule.placed(shape.placement) for capsule in local)


def corners(shape: CollisionShape) -> Array:
    """``(V, 3)`` points [m], in the frame of a shape, whose convex hull contains the shape; hull corners for a mesh."""
    if shape.surface is not None:
        return shape.surface.hull_vertices
    if shape.geometry == "box":
        return 0.5 * _CUBE * np.array(shape.size)
    radius, length = shape.size[0], shape.size[-1]
    half = 0.5 * length + (radius if shape.geometry == "capsule" else 0.0)
    if shape.geometry == "sphere":
        half = radius
    angles = 2 * np.pi * np.arange(_CYLINDER_CORNERS) / _CYLINDER_CORNERS
    wide = radius / np.cos(np.pi / _CYLINDER_CORNERS)
    rim = np.column_stack([wide * np.cos(angles), wide * np.sin(angles), np.zeros(_CYLINDER_CORNERS)])
    return np.vstack([rim + [0, 0, half], rim - [0, 0, half]])


def corners_in_body(shape: CollisionShape) -> Array:
    """:func:`corners` in the frame of the body."""
    return np.asarray(corners(shape) @ shape.placement[:3, :3].T + shape.placement[:3, 3], dtype=float)


@lru_cache(maxsize=1024)
def _around(content: bytes) -> tuple[Capsule, ...]:
    return tuple(_cover(np.frombuffer(content).reshape(-1, 3), _MAX_CUTS))


def _cover(points: Array, cuts: int) -> list[Capsule]:
    """Capsules around the convex hull of points; the hull is cut if capsules around the parts are tighter."""
    capsule = enclosing_capsule(points)
    try:
        hull = scipy.spatial.ConvexHull(points)
    except scipy.spatial.QhullError:  # a flat hull: cuts do not help
        return [capsule]
    if not cuts or (capsule.volume - hull.volume) / capsule.surface < _MAX_MEAN_EXCESS:
        return [capsule]
    best, halves = capsule.volume, tuple[Array, ...]()
    middle = 0.5 * (points.max(axis=0) + points.min(axis=0))
    for axis in _axes(points)[3:]:
        candidate = _cut(points, hull.simplices, axis, float(axis @ middle))
        if not all(map(len, candidate)):  # one side is empty: a thin, long hull at an angle to the axes
            continue
        volume = sum(enclosing_capsule(_outermost(half)).volume for half in candidate)
        if volume < best:
            best, halves = volume, candidate
    return [piece for half in halves for piece in _cover(half, cuts - 1)] or [capsule]


def _cut(points: Array, triangles: Array, axis: Array, at: float) -> tuple[Array, Array]:
    """Points whose hulls are the two parts of a hull on either side of the plane ``axis @ x = at``."""
    height = points @ axis - at
    ends = np.vstack([triangles[:, pair] for pair in ([0, 1], [1, 2], [2, 0])])
    crossing = ends[height[ends[:, 0]] * height[ends[:, 1]] < 0]
    low, high = height[crossing[:, 0]], height[crossing[:, 1]]
    share = (low / (low - high))[:, None]
    on = (1 - share) * points[crossing[:, 0]] + share * points[crossing[:, 1]]
    return np.vstack([points[height <= 0], on]), np.vstack([points[height >= 0], on])


def _axes(points: Array) -> Sequence[Array]:
    """Candidate directions: the axes of the frame, along which parts are usually drawn, and the principal axes."""
    centred = points - points.mean(axis=0)
    return [*np.eye(3), *np.linalg.eigh(centred.T @ centred)[1].T]


def enclosing_capsule(points: Array) -> Capsule:
    """Small capsule that contains all points ``(V, 3)``: the smallest capsule along candidate axes."""
    return min((_along(points, axis) for axis in _axes(points)), key=lambda capsule: capsule.volume)


def _outermost(points: Array) -> Array:
    """Points that are the farthest out in one of many directions."""
    return points[np.unique(np.argmax(points @ _directions(128).T, axis=0))]


@lru_cache
def _directions(count: int) -> Array:
    """``(count, 3)`` unit vectors, evenly distributed (on a Fibonacci spiral)."""
    steps = np.arange(count) + 0.5
    height, turn = 1 - 2 * steps / count, np.pi * (1 + np.sqrt(5)) * steps
    around = np.sqrt(1 - height**2)
    return np.column_stack([around * np.cos(turn), around * np.sin(turn), height])


def _along(points: Array, axis: Array) -> Capsule:
    heights = points @ axis
    flat = points - np.outer(heights, axis)
    centre = flat.mean(axis=0)
    few = flat[np.unique(np.argmax(flat @ _directions(64).T, axis=0))]
    for step in range(1, _CENTRING_STEPS):  # towards the centre of the smallest circle around ``few``
        away = few - centre
        centre = centre + away[int(np.argmax((away**2).sum(axis=1)))] / (step + 1)
    squares = ((flat - centre) ** 2).sum(axis=1)
    radius = float(np.sqrt(squares.max())) * (1 + 1e-12) + 1e-12
    bulge = np.sqrt(np.maximum(radius**2 - squares, 0.0))
    low, high = float((heights + bulge).min()), float((heights - bulge).max())
    if low > high:
        low = high = 0.5 * (low + high)
    return Capsule(centre + low * axis, centre + high * axis, radius)


def with_inertias(text: str, root: etree._Element, bodies: Sequence[str], held: Mapping[str, float],
        folder: Path | None, shapes: bool = True) -> str:
    """Return the URDF with inertias for moving bodies without inertia in any of their links.

    If links of the body have shapes (``<collision>``, or else ``<visual>``), each gets the inertia of the convex hulls
    of its shapes. If not, the moving link gets the inertia of a bar to each joint behind it.

    Parameters
    ----------
    root : root element of ``text``.
    bodies : moving links without inertia.
    held : locked joints; links behind locked joints also belong to the body.
    folder : folder of the URDF, for its meshes.
    shapes : whether to use shapes; if not, all links become bars.
    """
    joined = {body: rigidly_joined(root, body, held) for body in bodies}
    every = parsing.by_name(root, "link")  # links behind locked joints may have inertias
    given = {name for name, link in every.items() if parsing.number(link, "inertial/mass", "value", 0.0) > 0}
    joined = {body: [name for name in links if name not in given] for body, links in joined.items()}
    names = {name for links in joined.values() for name in links} if shapes else set[str]()
    hulls = _hulls(root, names, folder)
    inertials = {}
    for body, links in joined.items():
        inertias = {name: hulls[name] for name in links if name in hulls} or {body: _bars(root, body)}
        for name, parameters in inertias.items():
            inertials["link", name, "inertial"] = markup.inertial_lines(parameters)
    return markup.with_children(text, inertials)


def _hulls(root: etree._Element, names: Collection[str], folder: Path | None) -> dict[str, Array]:
    """Parameters ``(10,)`` of the shapes of each link; unreadable meshes are logged, unusable shapes ignored."""
    frames = dict.fromkeys(names, (0, pin.SE3.Identity()))
    shapes, unreadable, _ = read_shapes(root, frames, ((), folder), visual=True)
    for problem in unreadable.values():
        log_once(problem)
    out: dict[str, Array] = {}
    for shape in shapes:
        out[shape.link] = out.get(shape.link, np.zeros(10)) + convex_hull(corners_in_body(shape), DENSITY)
    return out


def _bars(root: etree._Element, link: str) -> Array:
    """``(10,)`` parameters of bars from a link's joint to the joints behind the link; a cube if there are none."""
    ends = [parsing.origin(joint)[0] for joint in root.findall("joint") if parsing.ends(joint)[0] == link]
    far = [end for end in ends if np.linalg.norm(end) > _MIN_BAR_SIZE] or [np.zeros(3)]
    bodies = []
    for end in far:
        around = max(_BAR_WIDTH_RATIO * float(np.linalg.norm(end)), _MIN_BAR_SIZE) * (0.5 * _CUBE)
        bodies.append(convex_hull(np.vstack([around, around + end]), DENSITY))
    return np.sum(bodies, axis=0)


def placeholders(bodies: Array) -> Mask:
    """Flag bodies of ``(nb, 10)`` if half of them or more share an inertia that is equal about every axis."""
    inertia = mass_com_inertia(bodies).inertia
    size = float(np.median(np.trace(inertia, axis1=1, axis2=2))) / 3
    alike = np.abs(inertia - size * np.eye(3)).max(axis=(1, 2)) < _SAME_INERTIA * abs(size)
    return np.asarray(alike & (alike.sum() >= max(_MIN_PLACEHOLDERS, 0.5 * len(alike))))


def as_bars(robot: pin.Model, bodies: Array) -> Array:
    """Moving bodies ``(nb, 10)`` with their masses and centres, and the inertia of bars from these to the joints."""
    masses, centres, inertia = mass_com_inertia(bodies)
    for body, (mass, centre) in enumerate(zip(masses, centres, strict=True)):
        behind = [placement.translation for placement, parent in zip(robot.jointPlacements, robot.parents, strict=True)
            if parent == body + 1]
        ends = np.vstack([np.zeros(3), *behind]) - centre
        width = max(_BAR_WIDTH_RATIO * float(np.linalg.norm(ends, axis=1).max()), _MIN_BAR_SIZE)
        squares = mass / 3 * (ends.T @ ends / len(ends) + width**2 * np.eye(3))
        inertia[body] = np.trace(squares) * np.eye(3) - squares
    return from_mass_com_inertia(masses, centres, inertia)


def convex_hull(points: Array, density: float) -> Array:
    """``(10,)`` parameters of the convex hull of points ``(V, 3)`` [m], in their frame, at a density [kg/m^3].

    The hull is cut into tetrahedra, from its middle to each of its triangles, whose second moments are exact.
    """
    try:
        hull = scipy.spatial.ConvexHull(points)
    except scipy.spatial.QhullError:
        points = (points + _MIN_HALF_THICKNESS * _CUBE[:, None]).reshape(-1, 3)
        try:
            hull = scipy.spatial.ConvexHull(points)
        except scipy.spatial.QhullError:
            raise ModelError("URDF: a shape has no volume that can be computed; fix its size and origin") from None
    middle = points[hull.vertices].mean(axis=0)
    corners = points[hull.simplices]  # (T, 3, 3)
    volumes = np.abs(np.linalg.det(corners - middle)) / 6
    ends = np.concatenate([corners, np.broadcast_to(middle, (len(corners), 1, 3))], axis=1)
    total = ends.sum(axis=1)
    first = density * volumes @ total / 4
    # The integral of x x^T over a tetrahedron is V / 20 (sum of v v^T over its corners v + s s^T), with s = sum of v.
    second = density / 20 * (
        np.einsum("t,tki,tkj->ij", volumes, ends, ends) + np.einsum("t,ti,tj->ij", volumes, total, total))
    pseudo_inertia = np.block([[second, first[:, None]], [first[None], np.array([[density * volumes.sum()]])]])
    return from_pseudo_inertia(pseudo_inertia)
