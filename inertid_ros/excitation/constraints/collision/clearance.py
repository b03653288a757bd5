"""The constraint that links stay clear of one another, of obstacles and of the floor."""

import logging
from functools import cached_property, lru_cache

import numpy as np

from inertid_ros.config.collision import CollisionOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.limits.constraint import ConstraintUsage, MotionSamples, Penalty
from inertid_ros.excitation.limits.continuous_time import (
    DerivativeBounds,
    Violation,
    derivative_bounds,
    executed_curve,
    find_violation,
)
from inertid_ros.excitation.limits.motion_limits import MotionLimits
from inertid_ros.excitation.motions.trajectories import Trajectory
from inertid_ros.robot.model import RobotModel

from .collision_bodies import obstacle_thing, robot_things
from .obstacles import obstacles
from .pairs import FLOOR, Indices, candidate_pairs, named_pairs, srdf_pairs
from .scene import Scene

_log = logging.getLogger(__name__)
_PENALTY = 3000.0  # 1/m^2
_BEGINS = 0.01  # m beyond the clearance, where the penalty begins
_CHANCE = 100  # poses
_ALWAYS = 0.95  # of the chance poses; links that are close in as many are taken to be neighbours
_STILL = 1e-6  # m
_NEAR = 0.03  # m
_SURE = 0.7  # of the least gap between capsules and hulls in chance poses
_TOLERANCE = 1e-5  # m, to which distances are worked out
_PORTION = 256  # distances measured before looking whether any more can matter


class ClearanceConstraint:
    """Links of a robot keep a distance from one another, from obstacles and from the floor.

    Capsules around the links (A 53) tell quickly what is near. There the search measures convex hulls, and what is
    executed is proven with the shapes themselves.

    Parameters
    ----------
    model : RobotModel
        The robot.
    limits : MotionLimits
        Between which the pairs that can be kept apart are found out.
    options : CollisionOptions
        What to keep clear of, and how far.
    floor : float, optional
        Height of the floor in the root frame [m]; -inf for none.

    Raises
    ------
    ExcitationError
        An option cannot be read or names what there is not.
    """

    positions_only = True

    def __init__(
        self, model: RobotModel, limits: MotionLimits, options: CollisionOptions, floor: float = -np.inf
    ) -> None:
        around = tuple(obstacle_thing(shape) for shape in obstacles(options.obstacles))
        things = (*robot_things(model, options.mesh_folders), *around)
        names = [thing.name for thing in things]
        twice = sorted({name for name in names if names.count(name) > 1 or name == FLOOR})
        if twice:
            raise ExcitationError(f"collision.obstacles: '{twice[0]}' is taken; give the obstacle another name")
        skipped = named_pairs(options.ignored, things) | (srdf_pairs(options.srdf) if options.srdf else set())
        pairs = candidate_pairs(model, things, len(around), options.self_collision)
        if np.isfinite(floor):
            pairs += [(index, -1) for index, thing in enumerate(things) if thing.body >= 0]
        self.clearance, self._limits, self._around = options.clearance_m, limits, {thing.name for thing in around}
        whole = Scene(model, things, pairs, floor)
        self._joints = model.joints
        kept = self._separable(whole)
        self.scene = Scene(
            model,
            things,
            [pair for index, pair in enumerate(pairs) if kept[index] and frozenset(whole.names(index)) not in skipped],
            floor,
        )

    def _separable(self, scene: Scene) -> Array:
        """Which pairs can be kept apart: not those whose distance the joints do not change, nor links always close."""
        lower, upper = self._limits.lower, self._limits.upper
        poses = np.random.default_rng(0).uniform(lower, upper, (_CHANCE, len(lower)))
        placements = scene.chain.placements(poses)
        distances = scene.capsule_distances(placements)
        close = distances < self._needed(scene)
        still = np.ptp(distances, axis=0) < _STILL if len(scene.pairs) else np.zeros(0, dtype=bool)
        links = np.array([not self._around & set(scene.names(pair)) for pair in range(len(scene.pairs))], dtype=bool)
        floor = scene.pairs[:, 1] < 0
        never = still & ~close.any(axis=0)
        always = still & floor
        for pair in np.flatnonzero((close.mean(axis=0) >= _ALWAYS) & links & ~floor):
            needed = np.full(_CHANCE, self._needed(scene)[pair])
            exact = scene.distances(placements, np.full(_CHANCE, pair), needed)
            always[pair] = (exact < needed).mean() >= _ALWAYS
        told = [" and ".join(scene.names(int(pair))) for pair in np.flatnonzero(always & close.any(axis=0))]
        if told:
            _notice(f"always close to each other, and not kept apart: {', '.join(told)}")
        return ~(never | always)

    def _needed(self, scene: Scene) -> Array:
        """``(P,)`` distance that each pair must keep [m]; the floor may be touched."""
        return np.where(scene.pairs[:, 1] < 0, 0.0, self.clearance)

    @cached_property
    def needed(self) -> Array:
        """``(P,)`` distance that each pair must keep [m]."""
        return self._needed(self.scene)

    def check_start(self, pose: Array) -> None:
        """See :class:`Constraint`."""
        placements = self.scene.chain.placements(pose[None])
        pairs = np.flatnonzero(self.scene.capsule_distances(placements)[0] < self.needed)
        slack = self._slack(np.repeat(placements, len(pairs), axis=0), pairs)
        if (slack < 0).any():
            worst = int(np.argmin(slack))
            raise ExcitationError(self._words(int(pairs[worst]), slack[worst], "in the start pose", "start elsewhere"))

    def penalty(self, motion: MotionSamples) -> Penalty:
        """Mean over samples of the squares of what hulls lack in distance [m^2]."""
        begin = self.needed + _BEGINS - self._spare
        near = self.scene.hulls_near(motion.placements, begin, self._outside)
        lack = begin[near.pair] - near.distance
        if not len(lack):
            return Penalty(0.0)
        weights = -2 * _PENALTY * lack / len(motion)
        return Penalty(
            _PENALTY * float((lack**2).sum()) / len(motion),
            position=self.scene.gradient(near, motion.screws, weights),
        )

    def refine(self, motion: MotionSamples) -> bool:
        """See :class:`Constraint`: hulls of a pair that is too close may overlap by no more than there."""
        _, pairs, gap, slack = self._gaps(motion.placements)
        before = self._spare.copy()
        np.minimum.at(self._spare, pairs[slack < 0], np.maximum(gap[slack < 0], 0.0))
        return bool((self._spare < before - _TOLERANCE).any())

    def check(self, trajectory: Trajectory, limits: MotionLimits) -> None:
        """See :class:`Constraint`; speeds of the links bound their distances between samples."""
        curve = executed_curve(trajectory)
        speeds, placements = derivative_bounds(curve), self.scene.chain.placements(curve.position)
        swept = (speeds.velocity @ self.scene.travel.T) * np.diff(curve.time)[:, None]

        def undecided(first: Array, second: Array, pairs: Indices, swept: Array) -> Array:
            return np.asarray(0.5 * (first + second - swept) < self.needed[pairs], dtype=bool)

        # Balls decide most, capsules most of the rest, and only what is left is measured exactly.
        bound = self.scene.far_bound(placements)
        rows, pairs = np.nonzero(undecided(bound[:-1], bound[1:], np.arange(bound.shape[1]), swept))
        ends = [self.scene.capsule_distances_of(placements, rows + side, pairs) for side in (0, 1)]
        left = undecided(ends[0], ends[1], pairs, swept[rows, pairs])
        found = find_violation(curve, self, speeds, rows[left], pairs[left])
        if found is not None:
            raise ExcitationError(self._complaint(found))

    def values(self, q: Array, v: Array, a: Array, channels: Array) -> Array:
        """See :class:`~..proof.Slack`: what a pair's distance is above the one to keep [m]."""
        return self._slack(self.scene.chain.placements(q), channels)

    def rates(self, speeds: DerivativeBounds, channels: Array) -> Array:
        """See :class:`~..proof.Slack`."""
        return np.asarray((speeds.velocity * self.scene.travel[channels]).sum(axis=1), dtype=float)

    def usage(self, trajectory: Trajectory) -> ConstraintUsage:
        """See :class:`Constraint`."""
        found = self.smallest(trajectory)
        if found is None:
            return ConstraintUsage(0.0, "distance")
        words = "distance of '{}' from '{}'".format(*self.scene.names(found.channel))
        needed = max(float(self.needed[found.channel]), 1e-3)
        return ConstraintUsage(needed / max(found.value, needed), words)

    def smallest(self, trajectory: Trajectory) -> Violation | None:
        """Time, pair and distance [m] of the closest that any two come on the knots; ``None`` without pairs."""
        curve = executed_curve(trajectory)
        placements = self.scene.chain.placements(curve.position)
        bounds = self.scene.far_bound(placements)
        order, best = np.argsort(bounds, axis=None), None
        for begin in range(0, len(order), _PORTION):
            rows, pairs = np.unravel_index(order[begin : begin + _PORTION], bounds.shape)
            if best is not None and bounds[rows[0], pairs[0]] >= best.value:
                break
            close = self.scene.capsule_distances_of(placements, rows, pairs) < (np.inf if best is None else best.value)
            if not close.any():
                continue
            exact = self.scene.distances(placements[rows[close]], pairs[close], np.zeros(int(close.sum())))
            worst = int(np.argmin(exact))
            if best is None or exact[worst] < best.value:
                row, pair = rows[close][worst], pairs[close][worst]
                best = Violation(float(curve.time[row]), int(pair), float(exact[worst]))
        return best

    @cached_property
    def _spare(self) -> Array:
        """``(P,)`` how far hulls lie outside the shapes [m] where these come close, at the median of chance poses.

        The search lets hulls overlap by that much; else those of links that are close by build, such as a shoulder in
        the hollow of a trunk, would push the motion away from poses that are good. Where it is too much,
        :meth:`refine` takes it back.
        """
        rows, pairs, gap, slack = self._gaps(self._chance)
        out = np.zeros(len(self.scene.pairs))
        for pair in np.unique(pairs):
            own = pairs == pair
            close = own & (slack < _NEAR)
            out[pair] = max(float(np.median(gap[close if close.any() else own])), 0.0)
        return out

    @cached_property
    def _outside(self) -> Array:
        """``(P,)`` how far capsules lie outside hulls [m] at least, less some room for what chance does not show."""
        capsules = self.scene.capsule_distances(self._chance)
        rows, pairs = np.nonzero(capsules < self.needed + _BEGINS)
        gap = self.scene.distances(self._chance[rows], pairs, np.full(len(rows), -np.inf)) - capsules[rows, pairs]
        least = np.full(len(self.scene.pairs), np.inf)
        np.minimum.at(least, pairs, gap)
        return np.where(np.isfinite(least), np.maximum(_SURE * least, 0.0), 0.0)

    @cached_property
    def _chance(self) -> Array:
        """``(N, n, 4, 4)`` placements in random poses."""
        poses = np.random.default_rng(1).uniform(self._limits.lower, self._limits.upper, (_CHANCE, self._joints))
        return self.scene.chain.placements(poses)

    def _gaps(self, placements: Array) -> tuple[Indices, Indices, Array, Array]:
        """Poses and pairs whose hulls are close, how far these lie outside the shapes, what is left of the distance."""
        capsules = self.scene.capsule_distances(placements) + self._outside
        rows, pairs = np.nonzero(capsules < self.needed + _BEGINS)
        hulls = self.scene.distances(placements[rows], pairs, np.full(len(rows), -np.inf))
        close = hulls < self.needed[pairs] + _BEGINS
        rows, pairs, hulls = rows[close], pairs[close], hulls[close]
        slack = self._slack(placements[rows], pairs)
        return rows, pairs, slack + self.needed[pairs] + _TOLERANCE - hulls, slack

    def _slack(self, placements: Array, pairs: Indices) -> Array:
        needed = self.needed[pairs] + _TOLERANCE
        return self.scene.distances(placements, pairs, needed) - needed

    def _complaint(self, found: Violation) -> str:
        remedy = "move elsewhere or restrict limits.position"
        return self._words(found.channel, found.value, f"at {found.time:.3f} s", remedy)

    def _words(self, pair: int, slack: float, when: str, remedy: str) -> str:
        first, second = self.scene.names(pair)
        needed = float(self.needed[pair])
        if second == FLOOR:
            height = self.scene.height
            return (
                f"link '{first}': goes down to {height + slack:.3f} m {when}, below the floor at {height:.3f} m;"
                f" {remedy}, or correct floor_m"
            )
        return (
            f"link '{first}': comes to {slack + needed:.4f} m from '{second}' {when}, closer than the clearance"
            f" {needed:.4f} m; {remedy}, or correct collision.clearance_m"
        )


@lru_cache(maxsize=64)
def _notice(words: str) -> None:
    """Once for each robot, however often it is looked at."""
    _log.info("%s", words)
