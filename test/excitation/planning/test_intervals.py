"""Direction combinations: their order, motions, limits, pruning and planning, on floating robots and fixed arms."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots.example_robots import load_with_locks
from support.robots.floating_robots import satellite
from support.robots.space_robot import OFFSET, TRUE, limits, space_robot

from inertid_ros.config.excitation import CollisionOptions, CombinationOptions, ExcitationOptions
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.constraints.motion_constraints import motion_constraints
from inertid_ros.excitation.execution.plan_check import check_plan
from inertid_ros.excitation.motion_limits import MotionLimits, motion_limits
from inertid_ros.excitation.planning.interval_motion import (
    IntervalLimits,
    IntervalMotion,
    direction_combinations,
    prune,
    rank_and_condition,
)
from inertid_ros.excitation.planning.interval_planner import (
    fixed_base_problem,
    floating_problem,
    improve_motion,
    plan_fixed_base,
    plan_intervals,
)
from inertid_ros.excitation.planning.planner import plan_excitation


def some_limits(joints, rng):
    wide, fast = rng.uniform(0.5, 2, joints), rng.uniform(0.2, 1, joints)
    names = tuple(f"J{k}" for k in range(1, joints + 1))
    return MotionLimits(names, -wide, 1.5 * wide, fast, 3 * fast, np.full(joints, 100.0))


def test_every_combination_comes_once():
    found = direction_combinations([2, 0, 3, 1], 100)
    assert found.shape == (8, 4)
    assert len({tuple(row) for row in found.tolist()}) == 8
    assert (found[:, 2] == 1).all()  # a combination and its reverse count once
    turned = np.abs(np.diff(found, axis=0)).sum(axis=0) // 2
    assert turned.tolist() == [1, 4, 0, 2]  # slow joints turn back seldom, one joint at a time
    assert (np.abs(np.diff(found, axis=0)).sum(axis=1) == 2).all()
    assert len(direction_combinations(range(30), 50)) == 50
    with pytest.raises(ValueError, match="give 0 to n - 1 once each, n <= 40 joints"):
        direction_combinations([0, 0], 4)


@pytest.mark.parametrize("seed", range(4))
def test_seeds_within_their_constraints_keep_the_limits(seed):
    """[Naveen2019]_ eqs. 33-37 on the whole motion, between samples too: a cycloid's peaks are known."""
    rng = np.random.default_rng(seed)
    joints = 4
    bounds, directions = some_limits(joints, rng), direction_combinations(rng.permutation(joints).tolist(), 8)
    seeds = IntervalLimits.from_directions(directions, bounds, 0.8)
    start, ranges = seeds.random(rng)
    assert (seeds.matrix @ np.concatenate([start, ranges]) <= seeds.bound + 1e-12).all()
    motion = IntervalMotion(directions, start, ranges, 0.8)
    q, v, a = motion.trajectory.sample(np.linspace(0, motion.trajectory.duration, 4001))
    for values, lower, upper in (
        (q, bounds.lower, bounds.upper), (v, -bounds.velocity, bounds.velocity),
        (a, -bounds.acceleration, bounds.acceleration),
    ):
        assert (values >= lower - 1e-9).all()
        assert (values <= upper + 1e-9).all()
    steps = np.diff(motion.waypoints, axis=0)
    np.testing.assert_allclose(steps, directions * ranges)
    phases = np.array([0.0, 0.3, 0.7])
    times = (np.arange(len(directions))[:, None] + phases).ravel() * 0.8
    for sampled, exact in zip(motion.sample(phases), motion.trajectory.sample(times), strict=True):
        np.testing.assert_allclose(sampled, exact, atol=1e-9)
    fitted = seeds.fit(start + 10, ranges * 10)
    assert (seeds.matrix @ np.concatenate(fitted) <= seeds.bound + 1e-9).all()


def test_pruning_keeps_what_adds():
    """Intervals that repeat others go, new or balancing ones stay ([Naveen2019]_ algorithm 1)."""
    one = np.eye(4)
    same, third, last = one[:2], one[[2, 2]] * [[1.0], [0.1]], one[[3, 2]]
    blocks = [same, third, same, same, last, same, one[[3, 3]] * [[1.0], [0.0]]]
    # The first ones are kept until there are more rows than columns.
    assert prune(blocks, neutral=0) == (0, 1, 2, 4, 6)
    assert rank_and_condition(np.vstack([blocks[k] for k in (0, 1, 2, 4, 6)]), 1 / 300)[0] == 4
    assert prune(blocks, neutral=2) == (0, 1, 2, 3, 4, 5, 6)
    with pytest.raises(ExcitationError, match="2 intervals have 4 equations for 4 parameters; raise"):
        prune(blocks[:2])


def test_space_robot_is_excited_with_a_quarter_of_the_intervals():
    """[Naveen2019]_ sec. 6.2 with less search: planned with the offset parameters, evaluated with the true ones."""
    options = CombinationOptions(orders=1, starts=6, iterations=4, samples=4)
    plan = plan_intervals(floating_problem(space_robot(OFFSET), limits(), options), seed=0)
    assert len(plan.whole.directions) == 256
    assert len(plan.motion.directions) <= 67
    assert plan.significant == 52
    truth = floating_problem(space_robot(TRUE), limits(), options)
    rows, *_ = truth.regressor(*plan.motion.sample(np.array([0.2, 0.4, 0.6, 0.8])))
    assert rank_and_condition(rows.reshape(-1, 52), 1 / 300)[1] < 500
    np.testing.assert_allclose(plan.motion.range[6:], 3 * np.pi)
    assert np.abs(plan.motion.waypoints[:, :6]).max() <= np.pi + 1e-9


def test_same_seed_same_motion():
    model = satellite(np.random.default_rng(0), 3)
    bounds = some_limits(3, np.random.default_rng(1))
    options = CombinationOptions(orders=2, starts=3, iterations=2, most=20)
    one, two, other = (plan_intervals(floating_problem(model, bounds, options), seed).motion for seed in (3, 3, 4))
    np.testing.assert_array_equal(one.waypoints, two.waypoints)
    assert not np.array_equal(one.directions, other.directions)


def test_floating_robot_without_wheels_is_refused():
    model = satellite(np.random.default_rng(0), 3)
    bare = replace(model, wheels=replace(model.wheels, names=(), bodies=(), axes=np.zeros((0, 3))))
    with pytest.raises(ExcitationError, match="floats without reaction wheels, so momentum determines"):
        floating_problem(bare, some_limits(3, np.random.default_rng(1)), CombinationOptions())


@pytest.fixture(scope="module")
def arm(robots):
    return load_with_locks(robots / "ur_description/urdf/ur10_robot.urdf")


def test_fixed_arm_needs_fewer_intervals_than_offered(arm):
    """Two variables per joint; fewer intervals at no worse condition number, both optimised alike.

    After 20 iterations rounding still decides which of the two is better (23 or 118 against 107), after 60 it does not.
    """
    bounds = motion_limits(arm)
    options = ExcitationOptions(
        kind="combinations", time_limit_s=600.0, mounting="none", collision=CollisionOptions(self_collision=False),
        combinations=CombinationOptions(orders=1, starts=10, iterations=60, most=24),
    )
    start = 0.5 * (bounds.lower + bounds.upper)
    plan, found = plan_fixed_base(arm, bounds, start, options)
    problem = fixed_base_problem(arm, bounds, options, motion_constraints(arm, bounds, options))
    whole = improve_motion(problem, found.whole, 60, np.inf)
    blocks, _ = problem.evaluate(whole)
    assert len(found.motion.directions) <= 24 < len(whole.directions) == 32
    assert found.condition_number <= rank_and_condition(blocks.reshape(-1, blocks.shape[-1]), 1 / 300)[1]
    check_plan(plan, arm, bounds, constraints=motion_constraints(arm, bounds, options))
    np.testing.assert_allclose(plan.position[[0, -1]], [start, start], atol=1e-9)
    assert plan.motion_type == "combinations"


def test_planner_knows_the_kind(arm):
    bounds = motion_limits(arm)
    options = ExcitationOptions(
        kind="combinations", combinations=CombinationOptions(orders=1, starts=1, iterations=0, samples=3),
        mounting="none", collision=CollisionOptions(self_collision=False),
    )  # fmt: skip
    told = []
    plan = plan_excitation(arm, bounds, np.zeros(6), options, told.append)
    assert np.isfinite(plan.condition_number)
    assert told[-1].fraction == 1.0
