"""A robot among obstacles: distances of collision objects, and their gradient with respect to the pose."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.excitation.constraints.collision_objects import FLOOR, CollisionObject, Indices, Pair
from inertid_ros.excitation.constraints.exact_distances import Closest, ExactDistances
from inertid_ros.robot.kinematics import TreeKinematics, lever_arm_bounds
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.urdf.shapes import Capsule

_DISTANCES_AT_ONCE = 20_000  # keeps arrays in the processor's cache
_AVOID_ZERO = 1e-12  # divisor for segments that are points

Ends = tuple[Array, Array]


class _CapsuleSet:
    """The C capsules of many objects as arrays; those of one object are adjacent, and ``owner`` is its index."""

    def __init__(self, objects: Sequence[CollisionObject]) -> None:
        capsules = [(index, item.body, capsule) for index, item in enumerate(objects) for capsule in item.capsules]
        self.owner = np.array([index for index, _, _ in capsules])
        self._body = np.array([body for _, body, _ in capsules])
        self._start = np.array([capsule.start for _, _, capsule in capsules])
        self._end = np.array([capsule.end for _, _, capsule in capsules])
        self.radius = np.array([capsule.radius for _, _, capsule in capsules])
        self.half = 0.5 * np.linalg.norm(self._end - self._start, axis=1)

    def ends(self, placements: Array) -> Ends:
        """``(3, N, C)`` both ends in the root frame, from ``(N, n, 4, 4)`` placements of the bodies."""
        whole = _with_root(placements)[:, self._body]
        points = np.stack([self._start, self._end], axis=-1)  # (C, 3, 2)
        moved = whole[..., :3, :3] @ points + whole[..., :3, 3, None]
        start, end = np.ascontiguousarray(moved.transpose(3, 2, 0, 1))
        return start, end


def _with_root(placements: Array) -> Array:
    """``(N, n + 1, 4, 4)``: the root itself follows the bodies, at index -1."""
    root = np.broadcast_to(np.eye(4), (len(placements), 1, 4, 4))
    return np.concatenate([placements, root], axis=1)


def _lever_arms(model: RobotModel, item: CollisionObject) -> Array:
    """``(n,)`` bound of how far a point of an object moves per radian (metre) of each joint, in any pose [m]."""
    farthest = [
        np.linalg.norm(end) + capsule.radius for capsule in item.capsules for end in (capsule.start, capsule.end)
    ]
    return lever_arm_bounds(model, item.body, float(max(farthest)))


def closest_points(start_1: Array, end_1: Array, start_2: Array, end_2: Array) -> Closest:
    """Closest points of segments given by their ends, ``(3, K)`` each; a segment may be a point.

    The square of the distance is a convex quadratic of the two positions along the segments: where its minimum lies
    outside the unit square, one is clipped and the other follows, twice.
    """
    d1, d2, r = end_1 - start_1, end_2 - start_2, start_1 - start_2
    a, e, b = _dot(d1, d1), _dot(d2, d2), _dot(d1, d2)
    c, f = _dot(d1, r), _dot(d2, r)
    determinant = a * e - b * b
    regular = determinant > 1e-9 * a * e
    s = np.clip(np.where(regular, b * f - c * e, 0.0) / np.where(regular, determinant, 1.0), 0.0, 1.0)
    t = np.clip((b * s + f) / np.maximum(e, _AVOID_ZERO), 0.0, 1.0)
    s = np.clip((b * t - c) / np.maximum(a, _AVOID_ZERO), 0.0, 1.0)
    t = np.clip((b * s + f) / np.maximum(e, _AVOID_ZERO), 0.0, 1.0)
    points = np.stack([start_1 + s * d1, start_2 + t * d2])
    between = points[0] - points[1]
    distance = np.sqrt(_dot(between, between))
    return Closest(distance, points, between / np.maximum(distance, _AVOID_ZERO))


def _dot(a: Array, b: Array) -> Array:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@dataclass(frozen=True)
class ClosePairs:
    """K pairs of objects that are close to each other: index of pose and of pair ``(K,)``, and closest points."""

    row: Indices
    pair: Indices
    closest: Closest


class Scene:
    """Collision objects, and the pairs of them to keep apart.

    Parameters
    ----------
    pairs : sequence of Pair
        Indices of objects; -1 is the floor, always the second.
    height : float
        Height of the floor in the root frame [m].
    """

    def __init__(
        self, model: RobotModel, objects: Sequence[CollisionObject], pairs: Sequence[Pair], height: float
    ) -> None:
        self.height, self.chain = height, TreeKinematics.of(model)
        self.objects = (*objects, CollisionObject(FLOOR, -1, (Capsule(np.zeros(3), np.zeros(3), 0.0),)))
        self.pairs = np.array(pairs, dtype=int).reshape(-1, 2)
        self._capsules, self._exact = _CapsuleSet(self.objects), ExactDistances(objects, height)
        self._solid = np.array([bool(item.shapes) for item in self.objects])[self.pairs[:, 0]]
        self._bodies = np.array([item.body for item in self.objects])[self.pairs]
        # Joints that move each body; the root, which does not move, is last.
        self._moving_joints = np.vstack([self.chain.ancestry.T, np.zeros((1, model.joints), dtype=bool)])
        lever_arms = np.array([_lever_arms(model, item) for item in self.objects])
        first, second = (self._moving_joints[bodies] for bodies in self._bodies.T)
        arms = (first & ~second) * lever_arms[self.pairs[:, 0]], (second & ~first) * lever_arms[self.pairs[:, 1]]
        self.lever_arms = arms[0] + arms[1]
        self._first_capsule, self._capsule_pairs = self._capsules_of_pairs()

    def names(self, pair: int) -> tuple[str, str]:
        first, second = self.pairs[pair]
        return self.objects[first].name, self.objects[second].name

    def _capsules_of_pairs(self) -> tuple[Indices, Indices]:
        """Begin of each pair, ``(P + 1,)``, in the indices ``(2, sum)`` of capsules of all pairs; -1 is the floor."""
        owner = self._capsules.owner
        capsules = [*(np.flatnonzero(owner == index) for index in range(len(self.objects) - 1)), np.array([-1])]
        blocks = [np.array(np.meshgrid(capsules[a], capsules[b])).reshape(2, -1) for a, b in self.pairs]
        starts = np.cumsum([0, *(block.shape[1] for block in blocks)])
        return starts, np.hstack([np.zeros((2, 0), dtype=int), *blocks])

    def capsule_distances(self, placements: Array) -> Array:
        """``(N, P)`` distances of the capsules around each pair [m], from ``(N, n, 4, 4)`` placements: lower bounds."""
        rows, pairs = np.indices((len(placements), len(self.pairs))).reshape(2, -1)
        return self.capsule_distances_of(placements, rows, pairs).reshape(len(placements), -1)

    def capsule_distances_of(self, placements: Array, rows: Indices, pairs: Indices) -> Array:
        """``(K,)`` distances of the capsules of one pair each in one of the poses [m]."""
        out = np.empty(len(rows))
        ends = self._capsules.ends(placements)
        for begin in range(0, len(rows), _DISTANCES_AT_ONCE):
            part = slice(begin, begin + _DISTANCES_AT_ONCE)
            row, _, first, second, starts = self._expanded(rows[part], pairs[part])
            out[part] = np.minimum.reduceat(self._closest_points(ends, row, first, second).distance, starts)
        return out

    def ball_distances(self, placements: Array) -> Array:
        """``(N, P)`` lower bounds of the distances, from one ball around each object [m]."""
        start, end = self._capsules.ends(placements)
        radius = self._capsules.radius[:-1]
        first = np.searchsorted(self._capsules.owner, np.arange(len(self.objects) - 1))
        low = np.minimum.reduceat(np.minimum(start, end)[:, :, :-1] - radius, first, axis=2)
        high = np.maximum.reduceat(np.maximum(start, end)[:, :, :-1] + radius, first, axis=2)
        centre, around = 0.5 * (low + high), 0.5 * np.sqrt(((high - low) ** 2).sum(axis=0))
        a, b = self.pairs.T
        gap = np.sqrt(((centre[:, :, a] - centre[:, :, b]) ** 2).sum(axis=0)) - around[:, a] - around[:, b]
        return np.asarray(np.where(b < 0, low[2][:, a] - self.height, gap), dtype=float)

    def close_capsules(self, placements: Array, limit: Array) -> ClosePairs:
        """Every two capsules of a pair that are closer than ``limit (P,)`` [m]."""
        ends = self._capsules.ends(placements)
        row, pair, first, second, _ = self._expanded(*np.nonzero(self.ball_distances(placements) < limit))
        keep = self._balls_close(ends, row, first, second, limit[pair])
        row, pair, first, second = (values[keep] for values in (row, pair, first, second))
        nearest = self._closest_points(ends, row, first, second)
        close = np.flatnonzero(nearest.distance < limit[pair])
        return ClosePairs(row[close], pair[close], nearest[close])

    def close_hulls(self, placements: Array, limit: Array, margin: Array) -> ClosePairs:
        """Convex hulls of the objects of each pair that are closer than ``limit (P,)`` [m], one per pose and pair.

        Their distance changes smoothly with the pose, as that of capsules does, and they fit the shapes much closer.
        Capsules replace the hulls of lines between joints. Capsules lie at least ``margin (P,)`` [m] outside hulls:
        hulls are measured if capsules are closer than ``limit - margin``.
        """
        rough = self.close_capsules(placements, limit - margin)
        bare = ~self._solid[rough.pair]
        rows, pairs = np.unique(np.array([rough.row, rough.pair])[:, ~bare], axis=1)
        hulls = self._exact.closest(self.pairs[pairs], rows, self._bodies[pairs], _with_root(placements), limit[pairs])
        close = np.flatnonzero(hulls.distance < limit[pairs])
        lines, hulls = rough.closest[bare], hulls[close]
        closest = Closest(
            np.concatenate([lines.distance, hulls.distance]),
            np.concatenate([lines.points, hulls.points], axis=2),
            np.hstack([lines.normal, hulls.normal]),
        )
        row, pair = np.concatenate([rough.row[bare], rows[close]]), np.concatenate([rough.pair[bare], pairs[close]])
        return ClosePairs(row, pair, closest)

    def distances(self, placements: Array, pairs: Indices, enough: Array) -> Array:
        """``(K,)`` distances of the shapes themselves, of one pair each in poses ``(K, n, 4, 4)`` [m].

        Distances of ``enough (K,)`` or more may be lower bounds only. For lines between joints, capsules replace the
        shapes.
        """
        bodies, out = _with_root(placements), np.empty(len(pairs))
        for index in np.flatnonzero(self._solid[pairs]):
            pair = pairs[index]
            first, second = self.pairs[pair].tolist()
            out[index] = self._exact.distance(first, second, bodies[index, self._bodies[pair]], float(enough[index]))
        bare = np.flatnonzero(~self._solid[pairs])
        out[bare] = self.capsule_distances_of(placements[bare], np.arange(len(bare)), pairs[bare])
        return out

    def gradient(self, near: ClosePairs, screws: Array, weights: Array) -> Array:
        """``(N, n)`` derivative of the sum of ``(K,)`` weighted distances with respect to the poses."""
        S, normal = screws[near.row], near.closest.normal
        out = np.zeros(screws.shape[:2])
        for side, sign in ((0, 1.0), (1, -1.0)):
            # A point x moves by v + w x x with its joints; along n that is n . v + w . (x x n).
            arm = np.cross(near.closest.points[side], normal, axis=0)
            along = np.einsum("kji,ik->kj", S[..., :3], normal) + np.einsum("kji,ik->kj", S[..., 3:], arm)
            moving = self._moving_joints[self._bodies[near.pair, side]]
            np.add.at(out, near.row, sign * weights[:, None] * along * moving)
        return out

    def _expanded(self, rows: Indices, pairs: Indices) -> tuple[Indices, Indices, Indices, Indices, Indices]:
        """Row, pair and both capsules of every pair of capsules of pairs of objects, and index of the first of each."""
        counts = np.diff(self._first_capsule)[pairs]
        starts = np.cumsum(counts) - counts
        within = np.arange(counts.sum()) - np.repeat(starts, counts)
        pair = np.repeat(pairs, counts)
        first, second = self._capsule_pairs[:, self._first_capsule[pair] + within]
        return np.repeat(rows, counts), pair, first, second, starts

    def _balls_close(self, ends: Ends, row: Indices, first: Indices, second: Indices, limit: Array) -> Array:
        middle = 0.5 * (ends[0] + ends[1])
        apart = middle[:, row, first] - middle[:, row, second]
        size = self._capsules.half + self._capsules.radius
        limit = limit + size[first] + size[second]
        return np.asarray((second < 0) | ((apart**2).sum(axis=0) < limit * np.abs(limit)), dtype=bool)

    def _closest_points(self, ends: Ends, row: Indices, first: Indices, second: Indices) -> Closest:
        """Closest points on the axes of capsules, and the gap between their surfaces; capsule -1 is the floor."""
        start, end = ends
        sides = ((row, first), (row, second))
        nearest = closest_points(*(points[:, rows, capsules] for rows, capsules in sides for points in ends))
        distance, points, normal = nearest.distance, nearest.points, nearest.normal
        floor = np.flatnonzero(second < 0)
        if len(floor):
            low, high = start[:, row[floor], first[floor]], end[:, row[floor], first[floor]]
            low = np.where(low[2] < high[2], low, high)
            points[:, :, floor] = low
            points[1, 2, floor] = self.height
            distance[floor] = low[2] - self.height
            normal[:, floor] = [[0.0], [0.0], [1.0]]
        return Closest(distance - self._capsules.radius[first] - self._capsules.radius[second], points, normal)
