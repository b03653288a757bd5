"""Seeds and combinations that excite best: optimise all, prune, optimise what is left (B §5.1).

The problem has two variables per joint, linear constraints and a smooth cost whose derivatives would need those of the
base's motion; at some tens of milliseconds per cost, differences over a dozen variables are cheap. Sequential quadratic
programming as in B is SciPy's SLSQP: it takes linear constraints exactly, keeps its iterates within them, and such a
small dense problem gains nothing from the sparse interior point of a larger library.
"""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from inertid_ros.config.direction_combinations import CombinationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.excitation.limits.motion_limits import MotionLimits

from .directions import Directions, direction_combinations
from .interval_motion import IntervalMotion, SeedLimits
from .motion_rows import MotionRows
from .pruning import Worth, pruned_to, spread

Penalty = Callable[[Array, Array, Array], float]
"""Of samples that break a constraint; the cost is multiplied by one and this."""


@dataclass(frozen=True)
class IntervalPlan:
    """A planned motion and how it was come by.

    Attributes
    ----------
    motion : IntervalMotion
        Of all planned joints.
    condition_number, significant : float
        Of its equations under the prior.
    whole : IntervalMotion
        The motion of all combinations that was pruned.
    whole_condition : float
        Its condition number.
    """

    motion: IntervalMotion
    condition_number: float
    significant: int
    whole: IntervalMotion
    whole_condition: float


@dataclass(frozen=True)
class IntervalProblem:
    """What stays the same while orders, combinations and seeds change.

    Attributes
    ----------
    rows : MotionRows
        Equations along a motion.
    limits : MotionLimits
        Of all planned joints.
    given : ndarray
        Range of joints whose seeds are given, NaN where they are to be found; a given joint starts at zero and has no
        limits of position.
    penalty : Penalty
        Of constraints beside the limits.
    unit_columns : bool
        The condition number is that of columns of unit norm; B's is not.
    """

    rows: MotionRows
    limits: MotionLimits
    given: Array
    options: CombinationOptions
    penalty: Penalty = lambda q, v, a: 0.0
    unit_columns: bool = False

    @property
    def free(self) -> np.ndarray:
        """``(n,)`` joints whose seeds are to be found."""
        return np.isnan(self.given)

    def motion(self, directions: Directions, start: Array, ranges: Array) -> IntervalMotion:
        """Motion of all joints from the seeds of those to be found."""
        whole = np.zeros(len(self.given)), np.where(self.free, 0.0, self.given)
        for values, own in zip(whole, (start, ranges), strict=True):
            values[self.free] = own
        return IntervalMotion(directions, *whole, self.options.interval_s)

    def evaluate(self, motion: IntervalMotion) -> tuple[Array, float]:
        """``(K, s r, p)`` equations of every interval, columns scaled, and the cost of the motion (B 32)."""
        count = self.options.samples
        q, v, a = motion.sample((np.arange(count) + 0.5) / count)
        rows, rates = self.rows.rows(q, v, a)
        blocks = rows.reshape(len(motion.directions), -1, rows.shape[-1])
        if self.unit_columns:
            blocks = blocks / np.maximum(np.sqrt(np.sum(blocks**2, axis=(0, 1))), 1e-300)
        values = np.linalg.eigvalsh(np.einsum("krp,krc->pc", blocks, blocks, optimize=True))
        condition = np.sqrt(values[-1] / max(values[0], 1e-15 * values[-1]))
        cost = condition + self.options.velocity_reward * rates.size / max(float(np.sum(rates**2)), 1e-12)
        return blocks, float(cost * (1 + self.penalty(q, v, a)))

    def seed_limits(self, directions: Directions) -> SeedLimits:
        """Of the joints whose seeds are to be found."""
        own, free = self.limits, self.free
        chosen = MotionLimits(
            tuple(name for name, wanted in zip(own.joint_names, free, strict=True) if wanted),
            own.lower[free], own.upper[free], own.velocity[free], own.acceleration[free], own.effort[free],
        )
        return SeedLimits.of(directions[:, free], chosen, self.options.interval_s)


def plan_intervals(
    problem: IntervalProblem,
    seed: int,
    deadline: float = np.inf,
    report: Callable[[float, float], None] = lambda fraction, condition: None,
) -> IntervalPlan:
    """Plan with several orders of the combinations, and take the best.

    Parameters
    ----------
    seed : int
        Of orders and random starts; the same one gives the same motion unless the deadline strikes.
    deadline : float, optional
        On the monotonic clock [s]; at least one order is tried.
    report : callable, optional
        Called with the fraction done and the best condition number so far.
    """
    options, rng = problem.options, np.random.default_rng(seed)
    best: IntervalPlan | None = None
    for index in range(options.orders):
        plan = _with_order(problem, _slowness(problem.free, rng), rng, deadline)
        if best is None or plan.condition_number < best.condition_number:
            best = plan
        report((index + 1) / options.orders, best.condition_number)
        if time.monotonic() > deadline:
            break
    assert best is not None  # orders is at least one
    return best


def _slowness(free: np.ndarray, rng: np.random.Generator) -> list[int]:
    """A random order in which given joints, which need no room, turn back most often."""
    joints = np.arange(len(free))
    return [*rng.permutation(joints[free]).tolist(), *rng.permutation(joints[~free]).tolist()]


def _with_order(
    problem: IntervalProblem, slowness: Sequence[int], rng: np.random.Generator, deadline: float
) -> IntervalPlan:
    """The three steps of B §5.1."""
    options = problem.options
    directions = direction_combinations(slowness, options.offered)
    whole = improved(problem, _best_start(problem, directions, rng), options.iterations // 4, deadline)
    blocks, _ = problem.evaluate(whole)
    worth = Worth(options.significant, options.neutral)
    kept = whole.only(pruned_to(blocks, worth, options.most or len(blocks)).kept)
    motion = improved(problem, _best_start(problem, kept.directions, rng, kept), options.iterations, deadline)
    rows = _stacked(problem.evaluate(motion)[0])
    count, condition = spread(rows, options.significant)
    return IntervalPlan(motion, condition, count, whole, spread(_stacked(blocks), options.significant)[1])


def _stacked(blocks: Array) -> Array:
    return blocks.reshape(-1, blocks.shape[-1])


def _best_start(
    problem: IntervalProblem, directions: Directions, rng: np.random.Generator, known: IntervalMotion | None = None
) -> IntervalMotion:
    """The best of random seeds, and of known ones as far as they fit."""
    limits, free = problem.seed_limits(directions), problem.free
    seeds = [limits.random(rng) for _ in range(problem.options.starts)]
    if known is not None:
        seeds.append(limits.fit(known.start[free], known.range[free]))
    motions = [problem.motion(directions, *pair) for pair in seeds]
    costs = [problem.evaluate(motion)[1] for motion in motions]
    return motions[int(np.argmin(costs))]


class _OutOfTimeError(Exception):
    """The deadline struck inside the optimiser."""


def improved(problem: IntervalProblem, motion: IntervalMotion, iterations: int, deadline: float) -> IntervalMotion:
    """The best motion that sequential quadratic programming meets from a motion, with the same combinations."""
    limits, free = problem.seed_limits(motion.directions), problem.free
    count = int(free.sum())
    unit = np.concatenate([np.full(count, 1.0), limits.largest])
    best, best_cost = motion, np.inf

    def cost(scaled: Array) -> float:
        nonlocal best, best_cost
        if time.monotonic() > deadline:
            raise _OutOfTimeError
        start, ranges = limits.fit(*np.split(scaled * unit, 2))
        here = problem.motion(motion.directions, start, ranges)
        value = problem.evaluate(here)[1]
        if value < best_cost:
            best, best_cost = here, value
        return value

    begin = np.concatenate([motion.start[free], motion.range[free]]) / unit
    bounds = [*zip(limits.lower, limits.upper, strict=True), *[(_LEAST_RANGE, 1.0)] * count]
    linear = scipy.optimize.LinearConstraint(limits.matrix * unit, ub=limits.bound)
    settings = {"maxiter": iterations, "ftol": 1e-4}
    if iterations:
        with contextlib.suppress(_OutOfTimeError):
            scipy.optimize.minimize(
                cost, begin, method="SLSQP", bounds=bounds, constraints=[linear], options=settings
            )
    return replace(best)


_LEAST_RANGE = 1e-3  # of the largest range
