"""A robot among obstacles: distances of collision objects, and their gradient with respect to the pose."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.excitation.constraints.collision_objects import FLOOR, CollisionObject, Indices, Pair
from inertid_ros.excitation.constraints.exact_distances import ExactDistances, available
from inertid_ros.robot.kinematics import TreeKinematics, lever_arm_bounds
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.urdf.shapes import Capsule

_DISTANCES_AT_ONCE = 20_000  # keeps arrays in the processor's cache
_AVOID_ZERO = 1e-12  # divisor for segments that are points

Ends = tuple[Array, Array]


class _CapsuleSet:
    """The capsules of many objects as arrays.

    Attributes
    ----------
    owner : ndarray of int, shape (C,)
        Index of the object of each; capsules of one object are adjacent. The last one is a point for the floor.
    radius, half : ndarray, shape (C,)
        Radius, and half the length of the axis [m].
    """

    def __init__(self, objects: Sequence[CollisionObject]) -> None:
        capsules = [(index, item.body, capsule) for index, item in enumerate(objects) for capsule in item.capsules]
        capsules.append((len(objects), -1, Capsule(np.zeros(3), np.zeros(3), 0.0)))
        self.owner = np.array([index for index, _, _ in capsules])
        self._body = np.array([body for _, body, _ in capsules])
        self._start = np.array([capsule.start for _, _, capsule in capsules]).reshape(-1, 3)
        self._end = np.array([capsule.end for _, _, capsule in capsules]).reshape(-1, 3)
        self.radius = np.array([capsule.radius for _, _, capsule in capsules])
        self.half = 0.5 * np.linalg.norm(self._end - self._start, axis=1)

    def ends(self, placements: Array) -> tuple[Array, Array]:
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


def _moving_joints(chain: TreeKinematics) -> Array:
    """``(n + 1, n)`` bool: joints that move each body; the root, which does not move, is last."""
    return np.vstack([chain.ancestry.T, np.zeros((1, len(chain.parents)), dtype=bool)])


def _lever_arms(model: RobotModel, item: CollisionObject) -> Array:
    """``(n,)`` bound of how far a point of an object moves per radian (metre) of each joint, in any pose [m]."""
    farthest = [
        np.linalg.norm(end) + capsule.radius for capsule in item.capsules for end in (capsule.start, capsule.end)
    ]
    return lever_arm_bounds(model, item.body, float(max(farthest)))


@dataclass(frozen=True)
class _ClosestPoints:
    """Closest points ``(3, ...)`` of pairs of segments, their distance, and the unit vector from second to first."""

    first: Array
    second: Array
    gap: Array
    normal: Array


def closest_points(start_1: Array, end_1: Array, start_2: Array, end_2: Array) -> _ClosestPoints:
    """Closest points of segments given by their ends, ``(3, ...)`` each; a segment may be a point.

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
    first, second = start_1 + s * d1, start_2 + t * d2
    between = first - second
    gap = np.sqrt(_dot(between, between))
    return _ClosestPoints(first, second, gap, between / np.maximum(gap, _AVOID_ZERO))


def _dot(a: Array, b: Array) -> Array:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@dataclass(frozen=True)
class ClosePairs:
    """K pairs of capsules or hulls that are close to each other, each in one of several poses.

    Attributes
    ----------
    row, pair : ndarray of int, shape (K,)
        Pose, and pair of objects.
    bodies : ndarray of int, shape (2, K)
        Moving bodies of the objects; -1 for the root and the floor.
    points : ndarray, shape (2, 3, K)
        Closest points in the root frame [m].
    distance : ndarray, shape (K,)
        Distance of the surfaces, negative where they overlap [m].
    normal : ndarray, shape (3, K)
        Unit vector from the second to the first.
    """

    row: Indices
    pair: Indices
    bodies: Indices
    points: Array
    distance: Array
    normal: Array


class Scene:
    """Collision objects, and the pairs of them to keep apart.

    Parameters
    ----------
    pairs : sequence of Pair
        Indices of objects; -1 in place of the second is the floor.
    height : float
        Height of the floor in the root frame [m].
    """

    def __init__(
        self, model: RobotModel, objects: Sequence[CollisionObject], pairs: Sequence[Pair], height: float
    ) -> None:
        self.objects, self.height, self.chain = tuple(objects), height, TreeKinematics.of(model)
        self.pairs = np.array(pairs, dtype=int).reshape(-1, 2)
        self._capsules, self._moving_joints = _CapsuleSet(self.objects), _moving_joints(self.chain)
        self._exact = ExactDistances(self.objects) if available() else None
        bodies = np.array([item.body for item in self.objects])
        self._bodies = np.where(self.pairs < 0, -1, bodies[self.pairs])
        lever_arms = np.vstack([*(_lever_arms(model, item) for item in self.objects), np.zeros(model.joints)])
        first, second = self._bodies.T
        of_first, of_second = self._moving_joints[first], self._moving_joints[second]
        alone = of_first & ~of_second, of_second & ~of_first
        self.lever_arms = alone[0] * lever_arms[self.pairs[:, 0]] + alone[1] * lever_arms[self.pairs[:, 1]]
        self._first_capsule, self._capsule_pairs = self._capsules_of_pairs()

    def names(self, pair: int) -> tuple[str, str]:
        first, second = self.pairs[pair]
        return self.objects[first].name, FLOOR if second < 0 else self.objects[second].name

    def _capsules_of_pairs(self) -> tuple[Indices, Indices]:
        """Begin of each pair, ``(P + 1,)``, in the indices ``(2, sum)`` of capsules of all pairs; -1 is the floor."""
        owner = self._capsules.owner
        capsules = [np.flatnonzero(owner == index) for index in range(len(self.objects))] + [np.array([-1])]
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
            out[part] = np.minimum.reduceat(self._closest_points(ends, row, first, second).gap, starts)
        return out

    def ball_distances(self, placements: Array) -> Array:
        """``(N, P)`` lower bounds of the distances, from one ball around each object [m]."""
        start, end = self._capsules.ends(placements)
        radius = self._capsules.radius[:-1]
        first = np.searchsorted(self._capsules.owner, np.arange(len(self.objects)))
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
        close = np.flatnonzero(nearest.gap < limit[pair])
        return ClosePairs(
            row[close],
            pair[close],
            self._bodies[pair[close]].T,
            np.array([nearest.first[:, close], nearest.second[:, close]]),
            nearest.gap[close],
            nearest.normal[:, close],
        )

    def close_hulls(self, placements: Array, limit: Array, margin: Array) -> ClosePairs:
        """Convex hulls of the objects of each pair that are closer than ``limit (P,)`` [m], one per pose and pair.

        Their distance changes smoothly with the pose, as that of capsules does, and they fit the shapes much closer.
        Without a library to measure them, or without a shape, capsules replace them. Capsules lie at least
        ``margin (P,)`` [m] outside hulls: hulls are measured if capsules are closer than ``limit - margin``.
        """
        rough = self.close_capsules(placements, limit - margin)
        exact = self._exact
        if exact is None:
            return rough
        solid = np.array([bool(item.shapes) for item in self.objects])[self.pairs[:, 0]]
        bare = ~solid[rough.pair]
        rows, pairs = np.unique(np.array([rough.row, rough.pair])[:, ~bare], axis=1)
        bodies, enough = self._bodies[pairs], limit[pairs]
        hulls = exact.closest(self.pairs[pairs], rows, bodies, _with_root(placements), self.height, enough)
        close = np.flatnonzero(hulls.distance < enough)
        return ClosePairs(
            np.concatenate([rough.row[bare], rows[close]]),
            np.concatenate([rough.pair[bare], pairs[close]]),
            np.hstack([rough.bodies[:, bare], self._bodies[pairs[close]].T]),
            np.concatenate([rough.points[:, :, bare], hulls.points[:, :, close]], axis=2),
            np.concatenate([rough.distance[bare], hulls.distance[close]]),
            np.hstack([rough.normal[:, bare], hulls.normal[:, close]]),
        )

    def distances(self, placements: Array, pairs: Indices, enough: Array) -> Array:
        """``(K,)`` distances of the shapes themselves, of one pair each in poses ``(K, n, 4, 4)`` [m].

        Distances of ``enough (K,)`` or more may be lower bounds only. Without a library of exact distances, and for
        lines between joints, capsules replace the shapes.
        """
        if self._exact is None:
            return self.capsule_distances_of(placements, np.arange(len(pairs)), pairs)
        bodies = _with_root(placements)
        out = np.empty(len(pairs))
        for index, pair in enumerate(pairs):
            first, second = self.pairs[pair]
            if not self.objects[first].shapes:
                here = slice(index, index + 1)
                out[index] = self.capsule_distances_of(placements[here], np.zeros(1, dtype=int), pairs[here])[0]
                continue
            at = bodies[index, self._bodies[pair]]
            out[index] = (
                self._exact.above(first, at[0], self.height)
                if second < 0
                else self._exact.distance(first, second, at, float(enough[index]))
            )
        return out

    def gradient(self, near: ClosePairs, screws: Array, weights: Array) -> Array:
        """``(N, n)`` derivative of the sum of ``(K,)`` weighted distances with respect to the poses."""
        S = screws[near.row]
        out = np.zeros(screws.shape[:2])
        for side, sign in ((0, 1.0), (1, -1.0)):
            # A point x moves by v + w x x with its joints; along n that is n . v + w . (x x n).
            arm = np.cross(near.points[side], near.normal, axis=0)
            along = np.einsum("kji,ik->kj", S[..., :3], near.normal) + np.einsum("kji,ik->kj", S[..., 3:], arm)
            np.add.at(out, near.row, sign * weights[:, None] * along * self._moving_joints[near.bodies[side]])
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

    def _closest_points(self, ends: Ends, row: Indices, first: Indices, second: Indices) -> _ClosestPoints:
        """Closest points on the axes of capsules, and the gap between their surfaces; capsule -1 is the floor."""
        start, end = ends
        sides = ((row, first), (row, second))
        nearest = closest_points(*(points[:, rows, capsules] for rows, capsules in sides for points in ends))
        floor = np.flatnonzero(second < 0)
        if len(floor):
            low, high = start[:, row[floor], first[floor]], end[:, row[floor], first[floor]]
            low = np.where(low[2] < high[2], low, high)
            nearest.first[:, floor] = nearest.second[:, floor] = low
            nearest.second[2, floor] = self.height
            nearest.gap[floor] = low[2] - self.height
            nearest.normal[:, floor] = [[0.0], [0.0], [1.0]]
        gap = nearest.gap - self._capsules.radius[first] - self._capsules.radius[second]
        return replace(nearest, gap=gap)
