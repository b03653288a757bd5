"""Planning: exact gradients, motions that keep their limits, better than chance, the same for the same seed."""

import warnings
from dataclasses import replace

import attrs
import numpy as np
import pytest
import scipy.optimize
from support.robots.quick_plans import PANDA_START, panda, panda_limits, simple_limits
from support.robots.random_robots import random_model

from inertid_ros.config.excitation import MOTION_TYPES, CollisionOptions, ExcitationOptions
from inertid_ros.core.errors import InertidError
from inertid_ros.excitation.constraints.motion_constraints import motion_constraints
from inertid_ros.excitation.execution.plan_check import check_plan, check_start
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.planning.descent import finish_plan, improve_shape
from inertid_ros.excitation.planning.planner import plan_excitation, random_shapes
from inertid_ros.excitation.planning.planning_problem import PlanningProblem
from inertid_ros.robot.layout import ParameterLayout

QUICK = ExcitationOptions(
    duration_s=10.0, starts=12, improved=1, iterations=25, criterion_samples=80, constraint_samples=150
)
CYCLOIDAL = attrs.evolve(QUICK, kind="cycloidal", intervals=10)
SPLINE = attrs.evolve(QUICK, kind="bspline", intervals=16)
# Where it does not matter how good the motion is.
FEW = attrs.evolve(QUICK, starts=3, iterations=5, collision=CollisionOptions(self_collision=False))


@pytest.fixture(scope="module")
def model(robots):
    return panda(robots)


@pytest.fixture(scope="module")
def limits(model):
    return panda_limits(model)


def differences(function, at, direction, step):
    weights = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))
    return sum(weight * function(at + offset * step * direction) for offset, weight in weights) / step


@pytest.mark.parametrize("options", [QUICK, CYCLOIDAL, SPLINE], ids=MOTION_TYPES[:3])
def test_objective_is_differentiated_exactly(model, limits, options):
    # Weak joints and a high floor, so that both penalties are at work.
    model = replace(model, layout=ParameterLayout(model.layout.links, model.layout.joints, ("viscous", "offset")))
    weak = replace(limits, effort=np.array([40.0, 30.0, 25, 25, 5, 5, 5]))
    problem = PlanningProblem(model, weak, PANDA_START, attrs.evolve(options, floor_m=0.25))
    shape = random_shapes(problem, attrs.evolve(options, starts=1))[0]
    value, gradient = problem.gradient(shape)
    assert value == pytest.approx(problem.value(shape), rel=1e-12)
    for seed in range(3):
        direction = np.random.default_rng(seed).normal(size=shape.shape)
        difference = differences(problem.value, shape, direction, 1e-5)
        assert (gradient * direction).sum() == pytest.approx(difference, rel=2e-5, abs=1e-6)
    # The size of a shape does not matter once it is too large for the limits, nor at all where these alone confine it.
    assert problem.value(1e4 * shape) == pytest.approx(problem.value(1e5 * shape), rel=1e-9)
    alone = attrs.evolve(options, mounting="none", collision=CollisionOptions(self_collision=False))
    free = PlanningProblem(model, weak, PANDA_START, alone)
    value, gradient = free.gradient(shape)
    assert free.value(3.7 * shape) == pytest.approx(value, rel=1e-9)
    assert (gradient * shape).sum() == pytest.approx(0.0, abs=1e-6 * np.abs(gradient).max())


@pytest.mark.parametrize("options", [QUICK, CYCLOIDAL, SPLINE], ids=MOTION_TYPES[:3])
def test_plan_keeps_every_limit_and_beats_chance(model, limits, options):
    options = attrs.evolve(options, floor_m=0.1, starts=8, iterations=15)
    reports = []
    plan = plan_excitation(model, limits, PANDA_START, options, reports.append)
    constraints = motion_constraints(model, limits, options)
    check_plan(plan, model, limits, constraints)
    check_start(plan, PANDA_START, 1e-9)
    q, v, a = plan.sample(np.arange(0, plan.duration, 1e-3))
    assert (q >= limits.lower).all() and (q <= limits.upper).all()
    assert (np.abs(v) <= 0.95 * limits.velocity * (1 + 1e-9)).all()
    assert (np.abs(a) <= 0.95 * limits.acceleration * (1 + 1e-9)).all()
    assert plan.position[-1] == pytest.approx(PANDA_START, abs=1e-9)
    assert plan.model_hash == model.hash
    problem = PlanningProblem(model, limits, PANDA_START, options)
    shapes = random_shapes(problem, attrs.evolve(options, starts=3))
    chance = [finish_plan(problem, shape).plan.condition_number for shape in shapes]
    assert plan.condition_number < 0.4 * np.median(chance)
    assert plan.condition_number == pytest.approx(problem.comparison.value(problem.comparison.along(plan)), rel=1e-3)
    assert reports[-1].fraction == 1.0
    assert reports[-1].condition_number == plan.condition_number
    fractions = [report.fraction for report in reports]
    assert fractions == sorted(fractions)


def test_a_line_search_that_goes_far_out_warns_of_nothing(monkeypatch):
    """Penalties overflow there; lines of NumPy came to the user of a humanoid."""
    model = random_model(np.random.default_rng(1), joints=2)
    limits = replace(simple_limits(2), joint_names=model.joint_names)
    options = attrs.evolve(FEW, starts=1, floor_m=-2.0)
    problem = PlanningProblem(model, limits, np.zeros(2), options)
    shape, values = random_shapes(problem, options)[0], []

    def go_far_out(objective, begin, **_):
        values.append(objective(1e200 * begin)[0])

    monkeypatch.setattr(scipy.optimize, "minimize", go_far_out)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(improve_shape(problem, shape), shape)
        with pytest.raises(RuntimeWarning, match="overflow"):
            problem.gradient(1e200 * shape)
    assert values and np.isfinite(values).all()


def test_same_seed_same_motion(model, limits):
    first, second = (plan_excitation(model, limits, PANDA_START, FEW) for _ in range(2))
    assert (first.position == second.position).all()
    other = plan_excitation(model, limits, PANDA_START, attrs.evolve(FEW, seed=1))
    assert np.abs(first.position - other.position).max() > 0.1


def test_time_limit_ends_planning_with_a_good_plan(model, limits):
    options = attrs.evolve(QUICK, starts=100_000, iterations=10_000, improved=1000, time_limit_s=0.3)
    plan = plan_excitation(model, limits, PANDA_START, options)  # without the limit it would take hours
    check_plan(plan, model, limits)


def test_raising_from_progress_gives_up(model, limits):
    class GaveUpError(Exception):
        pass

    def give_up(report):
        raise GaveUpError

    with pytest.raises(GaveUpError):
        plan_excitation(model, limits, PANDA_START, FEW, give_up)


def test_effort_limits_make_the_motion_smaller(model, limits):
    still = np.abs(PlanningProblem(model, limits, PANDA_START, QUICK).limits.effort)
    weak = replace(limits, effort=np.where(np.arange(7) == 1, 24.0, still))
    plan = plan_excitation(model, weak, PANDA_START, attrs.evolve(FEW, improved=0))
    check_plan(plan, model, weak)
    full = plan_excitation(model, limits, PANDA_START, attrs.evolve(FEW, improved=0))
    assert np.ptp(plan.position, axis=0).sum() < np.ptp(full.position, axis=0).sum()


def test_a_box_restricts_the_motion(model, limits):
    box = replace(
        limits, lower=np.maximum(limits.lower, PANDA_START - 0.2), upper=np.minimum(limits.upper, PANDA_START + 0.3)
    )
    plan = plan_excitation(model, box, PANDA_START, FEW)
    assert (plan.position >= PANDA_START - 0.2 - 1e-9).all()
    assert (plan.position <= PANDA_START + 0.3 + 1e-9).all()


def test_a_start_on_the_limit_is_allowed(model, limits):
    start = PANDA_START.copy()
    start[1] = limits.lower[1]
    plan = plan_excitation(model, limits, start, FEW)
    check_plan(plan, model, limits)
    check_start(plan, start, 1e-9)


@pytest.mark.parametrize(
    ("change", "options", "start", "words"),
    [
        ({}, {}, {3: 0.5}, "joint 'panda_joint4': the start pose 0.5 is outside its range"),
        ({}, {}, {0: np.nan}, "is not 7 finite numbers"),
        ({"effort": 5.0}, {}, {}, "joint 'panda_joint4': needs"),
        ({}, {"floor_m": 1.0}, {}, "from the floor at 1.000 m"),
    ],
)
def test_impossible_requests_are_refused_at_once(model, limits, change, options, start, words):
    pose = PANDA_START.copy()
    for joint, value in start.items():
        pose[joint] = value
    changed = replace(limits, **{name: np.full(7, value) for name, value in change.items()})
    with pytest.raises(InertidError) as caught:
        plan_excitation(model, changed, pose, attrs.evolve(QUICK, **options))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("seed", range(5))
def test_random_robots_get_feasible_motions(seed):
    rng = np.random.default_rng(seed)
    robot = random_model(rng, joints=int(rng.integers(1, 6)))
    n = robot.joints
    free = simple_limits(n)
    limits = MotionLimits(robot.joint_names, free.lower, free.upper, free.velocity, free.acceleration, np.full(n, 1e4))
    start = rng.uniform(-1, 1, n)
    kind = ("fourier", "cycloidal")[seed % 2]
    options = attrs.evolve(QUICK, kind=kind, duration_s=5.0, base_frequency_hz=0.2, starts=4)
    plan = plan_excitation(robot, limits, start, attrs.evolve(options, iterations=5))
    check_plan(plan, robot, limits)
    check_start(plan, start, 1e-9)
