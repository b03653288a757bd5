"""The built-in solver against CVXPY with Clarabel and against the conditions of optimality."""

from dataclasses import replace

import numpy as np
import pytest

from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import PSEUDO_INERTIA_BASIS, from_pseudo_inertia
from inertid_ros.identification.solvers.convex_program import ConvexProgram, LinearConstraints, MatrixInequalities
from inertid_ros.identification.solvers.interior_point import keeps_inside, solve
from inertid_ros.identification.solvers.regularizers import Regularization, regularized
from inertid_ros.identification.solvers.third_party import solve_by_cvxpy
from inertid_ros.robot.layout import ParameterLayout

IDENTITY = from_pseudo_inertia(np.eye(4))


def _problem(seed: int, regularizer: str, bodies: int = 3, strength: float = 30.0):
    """Random, badly conditioned, contradictory equations that push bodies to the border of consistency."""
    rng = np.random.default_rng(seed)
    names = tuple(str(i) for i in range(bodies))
    layout = ParameterLayout(names, names)
    size = layout.size
    R = strength * rng.normal(size=(size, size)) * 10 ** rng.uniform(-4, 0, size)
    z = R @ np.concatenate([np.tile(IDENTITY, bodies), rng.normal(size=size - 10 * bodies)])
    z += 3 * strength * rng.normal(size=size)
    convex_program = regularized(R, z, layout, Regularization(regularizer, 0.5, 1.0, 10.0))
    start = np.concatenate([np.tile(IDENTITY, bodies), np.ones(size - 10 * bodies)])
    return convex_program, start


@pytest.mark.parametrize("regularizer", ["entropic", "pullback"])
@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_clarabel(seed, regularizer):
    convex_program, start = _problem(seed, regularizer)
    ours, reference = solve(convex_program, start), solve_by_cvxpy(convex_program)
    assert ours.objective == pytest.approx(reference.objective, rel=1e-6)
    assert ours.objective <= reference.objective + 1e-7 * abs(reference.objective)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("change", [1e-3, 0.05, 1.0])
def test_a_warm_start_finds_the_same_optimum(seed, change):
    """Of a convex program whose weights and data moved; sooner where they moved a little."""
    convex_program, start = _problem(seed, "entropic", strength=10.0 ** (seed % 5 - 1))
    near, rng = solve(convex_program, start).x, np.random.default_rng(seed)
    weights = 10 ** (change * rng.uniform(-0.5, 0.5, len(convex_program.z)))
    z = weights * (convex_program.z + 0.1 * change * rng.normal(size=len(convex_program.z)))
    moved = replace(convex_program, R=weights[:, None] * convex_program.R, z=z)
    warm, cold = solve(moved, near, warm=True), solve(moved, start)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-9)
    away = warm.x - cold.x
    assert 0.5 * away @ cold.hessian @ away < 2e-8 * (1 + cold.objective)  # the tolerance of either
    assert change > 0.1 or warm.iterations < cold.iterations


@pytest.mark.parametrize("seed", range(3))
def test_a_warm_start_at_the_border_is_as_a_cold_one(seed):
    """Bounds without a weight let the optimum lie at the border, where multipliers are not known."""
    convex_program, start = _problem(seed, "pullback")
    assert not keeps_inside(convex_program)
    assert solve(convex_program, start, warm=True).objective == solve(convex_program, start).objective


@pytest.mark.parametrize("seed", range(4))
def test_gradient_vanishes_at_a_soft_optimum(seed):
    convex_program, start = _problem(seed, "entropic", strength=10.0 ** (seed % 5 - 1))
    solution = solve(convex_program, start)
    assert solution.status == "optimal"
    for direction in np.random.default_rng(seed).normal(size=(5, len(start))):
        step = 1e-3 * direction / np.sqrt(direction @ solution.hessian @ direction)  # of unit size to the Hessian
        slope = (convex_program.objective(solution.x + step) - convex_program.objective(solution.x - step)) / 2e-3
        assert abs(slope) < 1e-4 * np.sqrt(1 + solution.objective)


@pytest.mark.parametrize("seed", range(3))
def test_hessian_is_the_curvature_of_the_objective(seed):
    convex_program, start = _problem(seed, "entropic", strength=0.3)
    solution = solve(convex_program, start)
    direction = np.random.default_rng(seed).normal(size=len(start))
    step = 1e-3 / np.sqrt(direction @ solution.hessian @ direction) * direction
    values = [convex_program.objective(solution.x + k * step) for k in (-1, 0, 1)]
    assert values[0] - 2 * values[1] + values[2] == pytest.approx(step @ solution.hessian @ step, rel=1e-2)


def test_hard_constraints_hold_and_are_tight():
    """A body pulled outside the cone ends on its border, where a projection would put it."""
    target = np.diag([1.0, 1.0, 1.0, -0.5])
    metric = np.linalg.cholesky(np.einsum("kij,lij->kl", PSEUDO_INERTIA_BASIS, PSEUDO_INERTIA_BASIS)).T
    none, free = np.zeros(0, dtype=int), LinearConstraints.none(10)
    convex_program = ConvexProgram(
        metric, metric @ from_pseudo_inertia(target), np.zeros(10), np.zeros(1), none, np.zeros(0), free, free,
        MatrixInequalities.none(10))
    solution = solve(convex_program, IDENTITY)
    np.testing.assert_allclose(convex_program.matrices(solution.x)[0], np.diag([1.0, 1.0, 1.0, 0.0]), atol=1e-4)
    assert np.linalg.eigvalsh(convex_program.matrices(solution.x)[0])[0] > 0


def test_a_start_outside_is_refused():
    convex_program, start = _problem(0, "entropic")
    with pytest.raises(IdentificationError, match="not physically consistent"):
        solve(convex_program, -start)


def test_divergences_are_zero_at_the_prior_and_agree_near_it():
    prior = np.tile(IDENTITY, (2, 1))
    step = 1e-3 * np.random.default_rng(0).normal(size=(2, 10))
    distances = [Regularization(name, 0.5, 1.0, 10.0).distance for name in ("entropic", "pullback")]
    for distance in distances:
        assert distance.value(prior) == pytest.approx(0.0, abs=1e-12)
    entropic, pullback = (distance.value(prior + step) for distance in distances)
    assert entropic == pytest.approx(pullback, rel=1e-2)


def test_linear_constraints_agree_with_clarabel():
    convex_program, start = _problem(3, "entropic")
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(4, len(start)))
    free = solve(convex_program, start).x
    held = replace(
        convex_program, inequalities=LinearConstraints(rows[:2], 0.5 - rows[:2] @ free - 1.0, ("first", "second")),
        equalities=LinearConstraints(rows[2:], 0.3 - rows[2:] @ free, ("third", "fourth")))
    ours, reference = solve(held, start), solve_by_cvxpy(held)
    assert ours.objective == pytest.approx(reference.objective, rel=1e-6)
    assert ours.objective > convex_program.objective(free)
    assert held.inequalities(ours.x).min() > -1e-7
    np.testing.assert_allclose(held.equalities(ours.x), 0.0, atol=1e-7)


def test_contradicting_constraints_are_named():
    convex_program, start = _problem(4, "entropic")
    mass = np.zeros((2, len(start)))
    mass[0, 0], mass[1, 0] = 1.0, -1.0
    impossible = replace(
        convex_program, inequalities=LinearConstraints(mass, np.array([-5.0, 2.0]), ("mass above 5", "mass below 2")))
    with pytest.raises(IdentificationError, match="mass (above 5|below 2)"):
        solve(impossible, start)
