"""Constraint that links keep clear of each other, of obstacles and of the floor."""

import logging
from collections.abc import Collection
from functools import cached_property

import numpy as np

from inertid_ros.config.excitation import CollisionOptions
from inertid_ros.core.arrays import Array, Indices, Mask
from inertid_ros.core.errors import ExcitationError, log_once
from inertid_ros.excitation.constraints import collision_objects as collision, constraint
from inertid_ros.excitation.constraints.scene import Scene
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.plan import Plan
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.robot.model import RobotModel

_CLEARANCE_PENALTY = 3000.0  # 1/m^2
_CLEARANCE_PENALTY_BEGINS_M = 0.01  # beyond the clearance
_RANDOM_POSES = 100
# Shares of the random poses. Links closer than the clearance in the first share are close by design. If they touch in
# the second share, their shapes overlap by design.
_ALWAYS_CLOSE_SHARE, _MOSTLY_TOUCHING_SHARE = 0.95, 0.5
_FIXED_DISTANCE_M = 1e-6  # a pair with a smaller range of distances has a fixed distance
_OVERLAP_RANGE_M = 0.03  # beyond the clearance; gaps between hulls and shapes are measured for shapes closer than this
_DISTANCE_TOLERANCE_M = 1e-5  # of computed distances
_DISTANCES_PER_ROUND = 256  # measured per round of the search for the closest approach


class ClearanceConstraint(constraint.Constraint):
    """Constraint that links of a robot keep a distance from each other, from obstacles and from the floor.

    Capsules around the links ([Ayusawa2017]_ eq. 53) bound distances quickly. If capsules are close, the search
    measures convex hulls. The proof of a plan uses the exact shapes.

    Parameters
    ----------
    limits : range of poses for the detection of pairs that cannot be kept apart.
    floor : height of the floor in the root frame [m]; -inf without a floor.

    Attributes
    ----------
    needed : (P,), required distance of each pair [m]; zero for pairs that are close by design.
    close_by_design : pairs of names (two links, or a link and the floor) for which only contact is prevented.

    Raises
    ------
    ExcitationError
        An option cannot be read or names an unknown link.
    """

    positions_only = True

    def __init__(
            self, model: RobotModel, limits: MotionLimits, options: CollisionOptions, floor: float = -np.inf) -> None:
        obstacles = collision.obstacle_objects(options.obstacles)
        objects = (*collision.robot_objects(model, options.mesh_folders), *obstacles)
        names = [item.name for item in objects]
        twice = sorted({name for name in names if names.count(name) > 1 or name == collision.FLOOR})
        if twice:
            raise ExcitationError(f"collision.obstacles: name '{twice[0]}' is in use; give the obstacle another name")
        skipped = collision.named_pairs(options.ignored, objects)
        if options.srdf:
            skipped |= collision.srdf_pairs(options.srdf)
        pairs = collision.candidate_pairs(model, objects, len(obstacles), options.self_collision)
        if np.isfinite(floor):
            pairs += [(index, -1) for index, item in enumerate(objects) if item.body >= 0]
        self._limits, self._obstacles = limits, {item.name for item in obstacles}
        whole = Scene(model, objects, pairs, floor)
        named = [frozenset(whole.names(index)) for index in range(len(pairs))]
        outside = np.array([bool(pair & (self._obstacles | {collision.FLOOR})) for pair in named], dtype=bool)
        needed = np.where(outside, options.obstacle_clearance_m, options.clearance_m)
        never, always, near = self._by_design(whole, needed)
        ignored = np.array([pair in skipped for pair in named], dtype=bool)
        checked = np.flatnonzero(~(never | always | ignored))
        self.needed = np.where(near, 0.0, needed)[checked]
        self.close_by_design = frozenset(named[index] for index in np.flatnonzero(near))
        self.scene = Scene(model, objects, [pairs[index] for index in checked], floor)

    def _by_design(self, scene: Scene, needed: Array) -> tuple[Mask, Mask, Mask]:
        """Masks ``(P,)`` of pairs that are never close, always close, and close by design.

        Pairs with a fixed distance of at least ``needed`` are never close. Links that are closer than ``needed`` in
        nearly all random poses are always close, unless they touch in some poses but not in most: then they are close
        by design, and only their contact is prevented. A link close to the floor in nearly all poses, such as the fork
        of a stacker, is close by design too. A link at a fixed distance from the floor counts as always close.
        """
        placements = self._random_placements(scene, 0)
        distances = scene.capsule_distances(placements)
        close = distances < needed
        fixed = np.ptp(distances, axis=0) < _FIXED_DISTANCE_M if len(scene.pairs) else np.zeros(0, dtype=bool)
        links = np.array([not self._obstacles & set(scene.names(pair)) for pair in range(len(scene.pairs))], dtype=bool)
        floor = scene.pairs[:, 1] < 0
        always, near = fixed & floor, np.zeros(len(scene.pairs), dtype=bool)
        for pair in np.flatnonzero((close.mean(axis=0) >= _ALWAYS_CLOSE_SHARE) & links & ~fixed):
            exact = scene.distances(placements, np.full(_RANDOM_POSES, pair), np.full(_RANDOM_POSES, needed[pair]))
            if (exact < needed[pair]).mean() >= _ALWAYS_CLOSE_SHARE:
                near[pair] = floor[pair] or 0 < (exact < _DISTANCE_TOLERANCE_M).mean() < _MOSTLY_TOUCHING_SHARE
                always[pair] = not near[pair]
        for which, notice in (
            (always & close.any(axis=0), "always close to each other, so their distance is not checked"),
            (near, "always closer than the clearance, so only their contact is prevented"),
        ):
            names = [scene.names(int(pair)) for pair in np.flatnonzero(which)]
            if names:
                log_once(f"{notice}: {', '.join(map(' and '.join, names))}", logging.INFO)
        return fixed & ~close.any(axis=0), always, near

    def _random_placements(self, scene: Scene, seed: int) -> Array:
        lower, upper = self._limits.lower, self._limits.upper
        return scene.chain.placements(np.random.default_rng(seed).uniform(lower, upper, (_RANDOM_POSES, len(lower))))

    def penalty(self, motion: constraint.MotionSamples) -> constraint.Penalty:
        begin = self.needed + _CLEARANCE_PENALTY_BEGINS_M - self._allowed_overlap
        rows, pairs, closest = self.scene.close_hulls(motion.state.placements, begin)
        lack = begin[pairs] - closest.distance
        if not len(lack):
            return constraint.Penalty(0.0)
        weights = -2 * _CLEARANCE_PENALTY * lack / len(motion)
        value = _CLEARANCE_PENALTY * float((lack**2).sum()) / len(motion)
        slope = self.scene.gradient(rows, pairs, closest, motion.state.screws, weights)
        return constraint.Penalty(value, position=slope)

    def refine(self, motion: constraint.MotionSamples) -> bool:
        """If a pair is too close in a pose, lower the allowed overlap of its hulls to the gap in this pose."""
        pairs, gap, slack = self._gaps(motion.state.placements)
        before = self._allowed_overlap.copy()
        np.minimum.at(self._allowed_overlap, pairs[slack < 0], np.maximum(gap[slack < 0], 0.0))
        return bool((self._allowed_overlap < before - _DISTANCE_TOLERANCE_M).any())

    def slack(self, q: Array, v: Array, a: Array) -> Array:
        placements = self.scene.chain.placements(q)
        slack = self.scene.capsule_distances(placements) - self.needed
        rows, pairs = np.nonzero(slack < 0)
        slack[rows, pairs] = self._slack(placements[rows], pairs)
        return slack

    def values(self, q: Array, v: Array, a: Array, channels: Indices) -> Array:
        return self._slack(self.scene.chain.placements(q), channels)

    def rates(self, bounds: constraint.DerivativeBounds) -> Array:
        return np.asarray(bounds.velocity @ self.scene.lever_arms.T, dtype=float)

    def undecided(self, curve: PiecewiseQuintic, rates: Array) -> tuple[Indices, Indices]:
        """Balls decide most pairs, and capsules most of the rest; only the remaining pairs are measured exactly."""
        placements, swept = self.scene.chain.placements(curve.position), rates * np.diff(curve.time)[:, None]
        bound = self.scene.ball_distances(placements)
        segments, pairs = np.nonzero(0.5 * (bound[:-1] + bound[1:] - swept) < self.needed)
        first, second = (self.scene.capsule_distances_of(placements, segments + side, pairs) for side in (0, 1))
        left = 0.5 * (first + second - swept[segments, pairs]) < self.needed[pairs]
        return segments[left], pairs[left]

    def usage(self, plan: Plan) -> constraint.ConstraintUsage:
        closest = self.closest_approach(plan)
        if closest is None:
            return constraint.ConstraintUsage(0.0, "distance")
        description = f"distance of '{closest.link}' from '{closest.other}'"
        option = self._option({closest.link, closest.other}) if closest.required_m else "excitation.collision.ignored"
        required = max(closest.required_m, 1e-3)
        return constraint.ConstraintUsage(required / max(closest.closest_m, required), description, option, closest)

    def closest_approach(self, plan: Plan) -> constraint.Clearance | None:
        """Closest approach of a motion relative to the required clearance; None without pairs."""
        placements = self.scene.chain.placements(plan.position)
        bounds = self.scene.ball_distances(placements) - self.needed
        order, smallest, where = np.argsort(bounds, axis=None), np.inf, (0, 0)
        for begin in range(0, len(order), _DISTANCES_PER_ROUND):
            rows, pairs = np.unravel_index(order[begin : begin + _DISTANCES_PER_ROUND], bounds.shape)
            if bounds[rows[0], pairs[0]] >= smallest:
                break
            close = self.scene.capsule_distances_of(placements, rows, pairs) - self.needed[pairs] < smallest
            rows, pairs = rows[close], pairs[close]
            slack = self.scene.distances(placements[rows], pairs, np.zeros(len(rows))) - self.needed[pairs]
            if slack.min(initial=np.inf) < smallest:
                worst = int(np.argmin(slack))
                smallest, where = float(slack[worst]), (int(rows[worst]), int(pairs[worst]))
        if not len(order):
            return None
        row, pair = where
        needed = float(self.needed[pair])
        return constraint.Clearance(smallest + needed, needed, *self.scene.names(pair), float(plan.time[row]))

    @cached_property
    def _allowed_overlap(self) -> Array:
        """Overlap ``(P,)`` of each pair's hulls that the search allows [m]: the gap between hulls and shapes.

        The median gap of random poses with close shapes is taken; :meth:`refine` lowers it if it is too large. Without
        allowed overlap, hulls of links that are close by design, such as a shoulder in the hollow of a trunk, would
        exclude good poses.
        """
        pairs, gap, slack = self._gaps(self._random_placements(self.scene, 1))
        out = np.zeros(len(self.scene.pairs))
        for pair in np.unique(pairs):
            of_pair = pairs == pair
            close = of_pair & (slack < _OVERLAP_RANGE_M)
            out[pair] = max(float(np.median(gap[close if close.any() else of_pair])), 0.0)
        return out

    def _gaps(self, placements: Array) -> tuple[Indices, Array, Array]:
        """Pairs with close hulls in a pose, distance of shapes minus distance of hulls, and slack [m], ``(K,)``."""
        capsules = self.scene.capsule_distances(placements)
        rows, pairs = np.nonzero(capsules < self.needed + _CLEARANCE_PENALTY_BEGINS_M)
        hulls = self.scene.distances(placements[rows], pairs, np.full(len(rows), -np.inf))
        close = hulls < self.needed[pairs] + _CLEARANCE_PENALTY_BEGINS_M
        rows, pairs, hulls = rows[close], pairs[close], hulls[close]
        slack = self._slack(placements[rows], pairs)
        return pairs, slack + self.needed[pairs] + _DISTANCE_TOLERANCE_M - hulls, slack

    def _slack(self, placements: Array, pairs: Indices) -> Array:
        needed = self.needed[pairs] + _DISTANCE_TOLERANCE_M
        return self.scene.distances(placements, pairs, needed) - needed

    def violation(self, state: constraint.State, channel: int, when: str, at_rest: bool) -> str:
        first, second = self.scene.names(channel)
        needed, height = float(self.needed[channel]), self.scene.height
        distance = needed + float(self.values(*state, np.array([channel]))[0])
        remedy = "start elsewhere" if at_rest else "move elsewhere or restrict limits.position"
        if second == collision.FLOOR:
            return (
                f"link '{first}': comes to {distance:.3f} m from the floor at {height:.3f} m {when}, closer than"
                f" the clearance {needed:.3f} m; {remedy}, or correct excitation.floor_m or {self._option([second])}")
        than = f"closer than the clearance {needed:.4f} m" if needed else "in contact with it"
        return (
            f"link '{first}': comes to {distance:.4f} m from '{second}' {when}, {than};"
            f" {remedy}, leave the pair out with excitation.collision.ignored: {{{first}: [{second}]}},"
            f" or correct {self._option({first, second})}")

    def _option(self, pair: Collection[str]) -> str:
        """Option that sets the clearance of a pair."""
        name = "obstacle_clearance_m" if (self._obstacles | {collision.FLOOR}) & set(pair) else "clearance_m"
        return f"excitation.collision.{name}"
