"""Inertias for links without inertia, from their shapes and an assumed density."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import pinocchio as pin
import scipy
from lxml import etree

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError, log_once
from inertid_ros.core.inertial_parameters import from_pseudo_inertia

from . import parsing, text as markup
from .joints import rigidly_joined
from .shapes import corners_in_body, read_shapes

DENSITY = 1200.0  # kg/m^3; median of mass over volume of convex hulls of 946 links of example-robot-data is 1190
_BAR_WIDTH_RATIO = 0.2  # width over length of the bar that replaces a link without shape
_MIN_BAR_SIZE = 0.04  # m; width and length
_MIN_HALF_THICKNESS = 1e-3  # m; added to flat shapes


def with_inertias(
    text: str, root: etree._Element, bodies: Sequence[str], held: Mapping[str, float], folder: Path | None,
    shapes: bool = True,
) -> str:
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
    """Link to inertial parameters ``(10,)`` of its shapes; unreadable meshes are logged, unusable shapes ignored."""
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
    cube = 0.5 * np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
    far = [end for end in ends if np.linalg.norm(end) > _MIN_BAR_SIZE] or [np.zeros(3)]
    bodies = []
    for end in far:
        around = max(_BAR_WIDTH_RATIO * float(np.linalg.norm(end)), _MIN_BAR_SIZE) * cube
        bodies.append(convex_hull(np.vstack([around, around + end]), DENSITY))
    return np.sum(bodies, axis=0)


def convex_hull(points: Array, density: float) -> Array:
    """``(10,)`` parameters of the convex hull of points ``(V, 3)`` [m], in their frame, at a density [kg/m^3].

    The hull is cut into tetrahedra, from its middle to each of its triangles, whose second moments are exact.
    """
    try:
        hull = scipy.spatial.ConvexHull(points)
    except scipy.spatial.QhullError:
        thick = _MIN_HALF_THICKNESS * np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, 1, 8).T
        points = (points + thick).reshape(-1, 3)
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
        np.einsum("t,tki,tkj->ij", volumes, ends, ends) + np.einsum("t,ti,tj->ij", volumes, total, total)
    )
    pseudo_inertia = np.block([[second, first[:, None]], [first[None], np.array([[density * volumes.sum()]])]])
    return from_pseudo_inertia(pseudo_inertia)
