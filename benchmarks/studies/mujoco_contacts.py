"""Penetration of links of a robot and the floor along a plan, by MuJoCo's collision engine.

The planner measures with Coal, so this is another engine; the tree of joints is from MuJoCo's own URDF reader.
MuJoCo measures convex bodies only: a mesh is its convex hull at first. If hulls meet, the meshes of both links are cut
into pieces; the hulls of the pieces contain the surface and are closer to it. Links whose hulls are apart never touch.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
import scipy
from scipy.spatial.transform import Rotation

from inertid_ros.core.arrays import Array
from inertid_ros.excitation.plan import Plan
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.urdf import parsing
from inertid_ros.robot.urdf.joints import locked_joints
from inertid_ros.robot.urdf.shapes import CollisionShape, read_shapes
from inertid_ros.simulation.mujoco_model import fix_joints, import_mujoco, joint_indices

STEP_S = 0.002
CUTS = (0, 4, 8, 12)  # a mesh has up to two to the power of this number of pieces
SMALLEST = 0.01  # m; smaller pieces are not cut
THICKNESS = 1e-5  # m added to hulls on all sides, since flat hulls are without volume
RESOLUTION = 1e-4  # m; a smaller overlap is a contact without penetration
MOSTLY, POSES = 0.5, 100  # share, of this number of random poses, with contact of links that overlap by design
FLOOR = "floor"
Pair = frozenset[str]


@dataclass(frozen=True)
class Contacts:
    """Contacts along a plan, by MuJoCo.

    Attributes
    ----------
    links, floor : float
        Deepest penetration of two links, and of a link and the floor [m]; zero without contact.
    where : str
        Links and instants of these penetrations; empty without contact.
    by_design : tuple of str
        Links that touch in most random poses, because their shapes overlap by design; they do not count.
    instants : int
        Number of checked instants.
    """

    links: float
    floor: float
    where: str
    by_design: tuple[str, ...]
    instants: int


def contacts_of(model: RobotModel, plan: Plan, floor: float, folders: Sequence[str] = ()) -> Contacts:
    """Check a plan every :data:`STEP_S`; links of one joint may touch, and so may links that joints do not move.

    Parameters
    ----------
    floor : float
        Height in the root frame [m]; -inf for none.
    """
    poses = plan.sample(np.arange(0.0, plan.duration, STEP_S))[0]
    shapes = _shapes(model, folders)
    found, rows = _deepest(_Scene(model, shapes, CUTS[0], floor), poses, np.arange(len(poses)))
    on_floor = {pair: depth for pair, depth in found.items() if FLOOR in pair}
    close = {pair: depth for pair, depth in found.items() if FLOOR not in pair}
    by_design = _by_design(_Scene(model, shapes, CUTS[0], -np.inf, list(close)), plan, close) if close else []
    if by_design:
        by_design = _by_design(_Scene(model, shapes, CUTS[-1], -np.inf, by_design), plan, by_design)
    for cuts in CUTS[1:]:
        left = [pair for pair in close if pair not in by_design]
        close, rows = _deepest(_Scene(model, shapes, cuts, -np.inf, left), poses, rows) if left else ({}, rows)
    worst = sorted({**close, **on_floor}.items(), key=lambda item: -item[1][0])
    where = [
        f"{' in '.join(sorted(pair))} by {1e3 * depth:.1f} mm at {row * STEP_S:.2f} s"
        for pair, (depth, row) in worst[:2]
    ]
    return Contacts(
        max((depth for depth, _ in close.values()), default=0.0),
        max((depth for depth, _ in on_floor.values()), default=0.0),
        "; ".join(where),
        tuple(" and ".join(sorted(pair)) for pair in by_design),
        len(poses),
    )


def _shapes(model: RobotModel, folders: Sequence[str]) -> list[CollisionShape]:
    """Shapes of all links, each placed in its own link; the planner reports unreadable shapes."""
    root = parsing.parse_description(model.urdf)
    frames = {str(link.get("name")): (-1, pin.SE3.Identity()) for link in root.findall("link")}
    usable, unreadable, unusable = read_shapes(root, frames, (folders, model.folder))
    for problem in (*unusable.values(), *unreadable.values()):  # the planner also leaves them out
        print(f"left out: {problem}")
    return usable


class _Scene:
    """A compiled MuJoCo model with the shapes of links; ``only`` limits the checks to some pairs."""

    def __init__(
        self, model: RobotModel, shapes: Iterable[CollisionShape], cuts: int, floor: float, only: Sequence[Pair] = ()
    ) -> None:
        self._mujoco = import_mujoco()
        root = parsing.parse_description(model.urdf)
        spec = self._mujoco.MjSpec.from_string(fix_joints(root, locked_joints(root, model.options.locked_joints)))
        spec.compiler.fusestatic, spec.compiler.balanceinertia, spec.compiler.boundmass = False, True, 1e-6
        spec.compiler.boundinertia, spec.memory = 1e-9, 2**28
        for body in spec.bodies[1:]:  # contacts do not depend on inertias; published ones may be invalid
            body.mass, body.inertia, body.explicitinertial = 1.0, np.ones(3), True
            body.fullinertia = np.full(6, np.nan)
        wanted = frozenset(itertools.chain.from_iterable(only))
        for number, shape in enumerate(shapes):
            if not only or shape.link in wanted:
                self._add(spec, shape, number, cuts)
        if np.isfinite(floor):
            plane = self._mujoco.mjtGeom.mjGEOM_PLANE
            spec.worldbody.add_geom(type=plane, size=[10, 10, 1], pos=[0, 0, floor])
        for pair in itertools.combinations(sorted(wanted), 2):
            if frozenset(pair) not in only:
                spec.add_exclude(bodyname1=pair[0], bodyname2=pair[1])
        self.model = spec.compile()
        self._data = self._mujoco.MjData(self.model)
        self._position = joint_indices(self.model, model.joint_names)[1]
        self._name = [self.model.body(index).name for index in range(self.model.nbody)]
        self._name[0] = FLOOR

    def _add(self, spec: Any, shape: CollisionShape, number: int, cuts: int) -> None:
        shapes, body = self._mujoco.mjtGeom, spec.body(shape.link)
        x, y, z, w = Rotation.from_matrix(shape.placement[:3, :3]).as_quat()
        at = {"pos": shape.placement[:3, 3], "quat": [w, x, y, z]}
        size = [*shape.size, 0.0, 0.0][:3]
        if shape.geometry == "box":
            body.add_geom(type=shapes.mjGEOM_BOX, size=[0.5 * edge for edge in size], **at)
        elif shape.geometry == "sphere":
            body.add_geom(type=shapes.mjGEOM_SPHERE, size=size, **at)
        elif shape.geometry in ("cylinder", "capsule"):
            geometry = shapes.mjGEOM_CYLINDER if shape.geometry == "cylinder" else shapes.mjGEOM_CAPSULE
            body.add_geom(type=geometry, size=[size[0], 0.5 * size[1], 0.0], **at)
        else:
            for piece, points in enumerate(_hulls(_triangles(shape), cuts)):
                name = f"mesh{number}_{piece}"
                spec.add_mesh(
                    name=name, uservert=points.ravel(), inertia=self._mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
                )
                # The compiler turns a mesh, and its geom, into its principal axes.
                body.add_geom(type=shapes.mjGEOM_MESH, meshname=name, **at)

    def depths(self, pose: Array) -> Mapping[Pair, float]:
        """Depth [m] of each pair of links, or of link and floor, with overlap in a pose ``(n,)``."""
        model, data = self.model, self._data
        data.qpos[self._position] = pose
        self._mujoco.mj_kinematics(model, data)
        self._mujoco.mj_comPos(model, data)
        self._mujoco.mj_collision(model, data)
        out: dict[Pair, float] = {}
        bodies = model.geom_bodyid[data.contact.geom].reshape(-1, 2)
        for (first, second), value in zip(bodies, -data.contact.dist, strict=True):
            pair = frozenset((self._name[first], self._name[second]))
            if value > RESOLUTION and not self._joined(first, second):
                out[pair] = max(out.get(pair, 0.0), float(value))
        return out

    def _joined(self, first: int, second: int) -> bool:
        """Whether bodies are rigidly connected or linked by one joint; MuJoCo does not exclude pairs with the floor."""
        weld, parent = self.model.body_weldid, self.model.body_parentid
        a, b = weld[first], weld[second]
        if first == 0 or second == 0:
            return bool(a == b)
        return bool(a == b or weld[parent[a]] == b or weld[parent[b]] == a)


def _deepest(scene: _Scene, poses: Array, rows: Array) -> tuple[dict[Pair, tuple[float, int]], Array]:
    """Largest depth [m] of each pair with its row of poses, and the rows with any pair."""
    out: dict[Pair, tuple[float, int]] = {}
    touched = []
    for row in rows.tolist():
        depths = scene.depths(poses[row])
        for pair, depth in depths.items():
            out[pair] = max(out.get(pair, (0.0, row)), (depth, row))
        if depths:
            touched.append(row)
    return out, np.array(touched, dtype=int)


def _by_design(scene: _Scene, plan: Plan, pairs: Iterable[Pair]) -> list[Pair]:
    """Pairs that touch in most random poses within the limits of the plan."""
    limits = plan.limits
    poses = np.random.default_rng(0).uniform(limits.lower, limits.upper, (POSES, len(limits.lower)))
    counts = dict.fromkeys(pairs, 0)
    for pose in poses:
        for pair in scene.depths(pose):
            counts[pair] = counts.get(pair, 0) + 1
    return [pair for pair, count in counts.items() if count >= MOSTLY * POSES]


def _triangles(shape: CollisionShape) -> Array:
    """Corners of the triangles of a mesh [m], ``(K, 3, 3)``."""
    assert shape.surface is not None
    return np.asarray(shape.surface.vertices[shape.surface.triangles])


def _hulls(triangles: Array, cuts: int) -> list[Array]:
    """Corners of the hulls of the pieces of a mesh [m], ``(V, 3)`` each."""
    points = triangles.reshape(-1, 3)
    size = np.ptp(points, axis=0)
    axis = int(np.argmax(size))
    if cuts and size[axis] > SMALLEST:
        halves = cut(triangles, axis, float(points[:, axis].min() + 0.5 * size[axis]))
        return [hull for half in halves if len(half) for hull in _hulls(half, cuts - 1)]
    thick = THICKNESS * np.vstack([np.eye(3), -np.eye(3)])
    points = (np.unique(points, axis=0)[:, None] + thick).reshape(-1, 3)
    return [points[scipy.spatial.ConvexHull(points).vertices]]


def cut(triangles: Array, axis: int, at: float) -> tuple[Array, Array]:
    """Cut triangles ``(K, 3, 3)`` into the parts below and above the plane with coordinate ``axis`` equal to ``at``."""
    height = triangles[:, :, axis] - at
    count = (height > 0).sum(axis=1)
    crossing = (count > 0) & (count < 3)
    lone = np.where(count == 1, np.argmax(height > 0, axis=1), np.argmin(height > 0, axis=1))[crossing]
    order = (lone[:, None] + np.arange(3)) % 3
    rows = np.arange(len(order))[:, None]
    a, b, c = triangles[crossing][rows, order].transpose(1, 0, 2)
    h = height[crossing][rows, order]
    on_b, on_c = (
        a + (h[:, 0] / (h[:, 0] - h[:, side]))[:, None] * (other - a) for side, other in ((1, b), (2, c))
    )
    tip = np.stack([a, on_b, on_c], axis=1)
    rest = np.concatenate([np.stack([on_b, b, c], axis=1), np.stack([on_b, c, on_c], axis=1)])
    tip_above = count[crossing] == 1
    above_rest = np.concatenate([~tip_above, ~tip_above])
    below = np.concatenate([triangles[count == 0], tip[~tip_above], rest[~above_rest]])
    above = np.concatenate([triangles[count == 3], tip[tip_above], rest[above_rest]])
    return below, above
