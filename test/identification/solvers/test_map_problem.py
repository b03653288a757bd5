"""Every regularizer's solution: against CVXPY, as a minimum of its own objective, and at equal training residual."""

import sys
from dataclasses import replace

import attrs
import numpy as np
import pytest
from scipy.linalg import block_diag
from support.robots.random_robots import random_bodies, random_model, random_states

from inertid_ros.config.identification import REGULARIZERS, IdentifyOptions
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import (
    Ellipsoid,
    from_pseudo_inertia,
    geodesic_distance,
    is_consistent,
    mass_com_inertia,
    pseudo_inertia,
)
from inertid_ros.identification.assessment.validation import validate
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.solvers.constraints import Constraints
from inertid_ros.identification.solvers.coordinates import prior_coordinates
from inertid_ros.identification.solvers.geodesic import geodesic_least_squares
from inertid_ros.identification.solvers.map_problem import MapProblem, project_onto_residual
from inertid_ros.identification.solvers.regularizers import Regularization
from inertid_ros.identification.solvers.third_party import point_masses
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.body_changes import perturb

CONVEX = ("entropic", "pullback", "euclidean", "point_mass")


def _experiment(seed: int, joints: int = 3, count: int = 30, noise: float = 0.3):
    rng = np.random.default_rng(seed)
    model = random_model(rng, joints, branched=False)
    drives = rng.uniform(0.2, 1.0, model.layout.size - 10 * joints)
    truth = np.concatenate([perturb(model, rng).ravel(), drives])

    def measure(samples):
        tau = ForceEquations(model).predict(truth, samples)
        return replace(samples, tau=tau + noise * rng.normal(size=tau.shape))

    return model, measure(random_states(rng, model, count)), measure(random_states(rng, model, 200))


def _problem(seed: int, regularizer: str, constraints: Constraints | None = None, prior_spread: float = 0.3):
    model, samples, _ = _experiment(seed)
    information = compress(model, [samples])
    coordinates = prior_coordinates(model, information)
    map_problem = MapProblem(coordinates, model.prior, constraints or Constraints())
    equations = coordinates.normalise(*information.whitened(np.full(3, 1 / 0.3)))
    regularization = map_problem.completed(
        Regularization(regularizer, prior_spread, 1.0, 20.0), model.consistent_prior - model.inertial_locked)
    return map_problem, equations, regularization


@pytest.mark.parametrize("regularizer", ["entropic", "pullback", "euclidean", "riemannian"])
def test_rotor_inertias_have_the_distance_of_positive_numbers(regularizer):
    """Its form is that of [Lee2019]_ eq. 3.6.60, in the unit of the data sheet; the other terms stay as they are."""
    rng, weight = np.random.default_rng(3), 0.5 / 0.3**2
    _, _, plain = _problem(3, regularizer)
    model, samples, _ = _experiment(3)
    column, given = model.layout.drive("rotor_inertia").start, 0.4
    prior = model.prior.copy()
    prior[column] = given
    rotors = {**model.drive_prior, "rotor_inertia": prior[model.layout.drive("rotor_inertia")]}
    coordinates = prior_coordinates(replace(model, drive_prior=rotors), compress(model, [samples]))
    map_problem = MapProblem(coordinates, prior)
    regularization = map_problem.completed(plain, model.consistent_prior - model.inertial_locked)
    assert regularization.rotors == (column,) and not plain.rotors
    rows = np.zeros((1, model.layout.size)), np.zeros(1)
    with_rotor, without = (
        map_problem.convex_program(*rows, each) for each in (regularization, replace(regularization, rotors=())))
    for factor in rng.uniform(0.1, 4.0, 5):
        x = coordinates.prior + 0.1
        x[column] = factor * given / coordinates.matrix[column, column]
        shrunk = without.objective(x) - x[column] + 0.05 * np.log(x[column])
        if regularizer in ("pullback", "euclidean"):
            expected = weight * (factor - 1) ** 2 / 2 - 0.05 * np.log(x[column])
        else:
            expected = weight * (factor - np.log(factor) - 1)
        assert with_rotor.objective(x) - shrunk == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_euclidean_agrees_with_clarabel(seed):
    map_problem, equations, regularization = _problem(seed, "euclidean")
    ours, reference = (
        map_problem.solve(*equations, regularization),
        replace(map_problem, solver="clarabel").solve(*equations, regularization))
    assert ours.objective == pytest.approx(reference.objective, rel=1e-6)


def _point_mass_objective(map_problem, equations, regularization):
    """Objective as CVXPY sees it, over masses and drives."""
    cp = pytest.importorskip("cvxpy")
    (R, z), points, layout = equations, regularization.points, map_problem.coordinates.layout
    masses, drives = cp.Variable(len(points.prior), nonneg=True), cp.Variable(layout.size - layout.inertial_size)
    x = cp.hstack([block_diag(*points.blocks) @ masses, drives])
    offsets = np.arange(layout.size)[layout.drive("offset")]
    objective = 0.5 * cp.sum_squares(R @ x - z) + regularization.drive_weight * cp.sum(x[layout.non_negative])
    objective += 0.5 * cp.sum_squares(x[offsets]) / regularization.offset_deviation**2
    objective += regularization.weight * points.scale * cp.sum_squares(masses - points.prior)
    return cp, objective, [x[layout.non_negative] >= 0], x


@pytest.mark.parametrize("seed", range(2))
def test_point_masses_agree_with_clarabel(seed):
    map_problem, equations, regularization = _problem(seed, "point_mass")
    solution = map_problem.solve(*equations, regularization)
    cp, objective, constraints, _ = _point_mass_objective(map_problem, equations, regularization)
    reference = cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL)
    assert solution.objective == pytest.approx(reference, rel=1e-6)
    assert is_consistent(map_problem.coordinates.layout.bodies(solution.x)).all()


def test_point_masses_take_linear_constraints():
    total = Constraints(total_mass=9.0, mass={"link1": (0.5, 0.6)})
    map_problem, equations, regularization = _problem(3, "point_mass", total)
    layout = map_problem.coordinates.layout
    masses = layout.bodies(map_problem.coordinates.physical(map_problem.solve(*equations, regularization).x))[:, 0]
    assert masses.sum() == pytest.approx(9.0, rel=1e-6)
    assert 0.5 - 1e-6 <= masses[1] <= 0.6 + 1e-6
    impossible = replace(map_problem, constraints=Constraints(total_mass=1.0, mass={"link1": (2.0, 3.0)}))
    with pytest.raises(IdentificationError, match=r"contradict.*total mass 1 kg"):
        impossible.solve(*equations, regularization)


def test_points_make_up_the_prior_inside_their_region():
    rng = np.random.default_rng(0)
    bodies = random_bodies(rng, 4)
    regions = []
    for index, pi in enumerate(bodies[:3]):
        mass, com, inertia = mass_com_inertia(pi)
        covariance = (0.5 * np.trace(inertia) * np.eye(3) - inertia) / mass
        # the first is wide enough for [Wensing2018]_ eq. 23, which needs three times the covariance
        shapes = Ellipsoid(com, 3.1 * covariance), Ellipsoid(com + 1.0, covariance)
        regions.append((f"link{index}", shapes))
    points = point_masses(bodies, [np.eye(10)] * 4, [*regions, ("free", ())], rng, 60)
    assert (points.prior >= 0).all()
    np.testing.assert_allclose((block_diag(*points.blocks) @ points.prior).reshape(4, 10), bodies, rtol=1e-6, atol=1e-6)
    for positions, (_, region) in zip(points.positions, regions, strict=False):
        offsets = [(positions - ellipsoid.centre, np.linalg.inv(ellipsoid.shape)) for ellipsoid in region]
        levels = [np.einsum("ki,ij,kj->k", offset, quadric, offset) for offset, quadric in offsets]
        assert np.min(levels, axis=0).max() < 1 + 1e-6


def test_a_prior_outside_its_region_is_named(caplog):
    rng = np.random.default_rng(1)
    pi = random_bodies(rng, 1)
    point_masses(pi, [np.eye(10)], [("hand", (Ellipsoid(np.ones(3), 1e-2 * np.eye(3)),))], rng, 30)
    assert "prior of 'hand' does not fit into the ellipsoids" in caplog.text


@pytest.mark.parametrize("seed", range(2))
def test_solutions_that_are_not_convex_are_minima(seed):
    """No step in any direction lowers the objective."""
    map_problem, equations, regularization = _problem(seed, "riemannian", prior_spread=0.6)
    solution = map_problem.solve(*equations, regularization)
    layout, rng = map_problem.coordinates.layout, np.random.default_rng(seed)
    assert is_consistent(layout.bodies(solution.x)).all()
    convex_program = map_problem.convex_program(*equations, regularization)

    def objective(x):
        return convex_program.objective(x) + regularization.weight * regularization.distance.value(layout.bodies(x))

    assert objective(solution.x) == pytest.approx(solution.objective, rel=1e-9)
    for direction in rng.normal(size=(20, layout.size)):
        step = 1e-2 * direction / np.sqrt(direction @ solution.hessian @ direction)
        assert objective(solution.x + step) >= solution.objective - 1e-6
    entropic = map_problem.solve(*equations, replace(regularization, regularizer="entropic"))
    assert solution.objective <= objective(entropic.x)
    inside = slice(0, layout.inertial_size)
    curvature = block_diag(*(regularization.weight * regularization.distance.hessian(layout.bodies(solution.x))))
    exact = convex_program.gram[inside, inside] + curvature
    np.testing.assert_allclose(solution.hessian[inside, inside], exact, atol=1e-4 * np.abs(curvature).max())


@pytest.mark.parametrize("regularizer", CONVEX)
def test_equal_residuals_are_the_nearest_points_of_a_ball(regularizer):
    """The search meets the bound, and no parameters within it are nearer to the prior ([Lee2019]_ eq. 3.5.52)."""
    cp = pytest.importorskip("cvxpy")
    map_problem, (R, z), regularization = _problem(2, regularizer)
    quiet = replace(regularization, drive_weight=1e-6, offset_deviation=1e6)  # the distance alone decides
    bound = 2.0 * float(np.sum((R @ map_problem.solve(R, z, quiet).x - z) ** 2))
    solution, weighted = project_onto_residual(map_problem, (R, z), quiet, bound)
    assert np.sum((R @ solution.x - z) ** 2) == pytest.approx(bound, rel=1e-5)
    layout = map_problem.coordinates.layout
    if regularizer == "point_mass":
        _, _, constraints, x = _point_mass_objective(map_problem, (R, z), quiet)
        masses = x.args[0].args[1]
        distance = quiet.points.scale * cp.sum_squares(masses - quiet.points.prior)
        ours = solution.objective - 0.5 * bound
        constraints = [*constraints, cp.sum_squares(R @ x - z) <= bound]
        assert cp.Problem(cp.Minimize(distance), constraints).solve(solver=cp.CLARABEL) == pytest.approx(
            ours / weighted.weight, rel=1e-3)
        return
    x = cp.Variable(layout.size)
    blocks = [sum(x[10 * b + k] * E for k, E in enumerate(pseudo_inertia(np.eye(10)))) for b in range(3)]
    identity = from_pseudo_inertia(np.eye(4))
    if regularizer == "entropic":
        distance = sum(cp.trace(block) - cp.log_det(block) - 4 for block in blocks)
    else:
        distance = sum(
            cp.sum_squares(np.linalg.cholesky(g).T @ (x[10 * b : 10 * b + 10] - identity))
            for b, g in enumerate(np.broadcast_to(quiet.distance.metric, (3, 10, 10))))
    constraints = [cp.sum_squares(R @ x - z) <= bound, x[layout.non_negative] >= 0, *(block >> 0 for block in blocks)]
    least = cp.Problem(cp.Minimize(distance), constraints).solve(solver=cp.CLARABEL)
    assert weighted.distance.value(layout.bodies(solution.x)) == pytest.approx(least, rel=3e-3)


def test_bounds_that_cannot_be_met_are_refused():
    map_problem, (R, z), regularization = _problem(2, "entropic")
    with pytest.raises(IdentificationError, match="the smallest squared residual"):
        project_onto_residual(map_problem, (R, z), regularization, 1e-9)
    with pytest.raises(IdentificationError, match="the squared residual of the prior"):
        project_onto_residual(map_problem, (R, z), regularization, 1e12)
    with pytest.raises(IdentificationError, match="set it above zero"):
        project_onto_residual(map_problem, (R, z), regularization, 0.0)


@pytest.mark.parametrize("regularizer", REGULARIZERS)
def test_identify_with_every_regularizer(regularizer):
    model, train, held_out = _experiment(5, count=400)
    estimate = identify(model, [train], IdentifyOptions(regularizer=regularizer))
    assert estimate.consistent
    assert validate(estimate, [held_out]).passed
    assert (np.delete(estimate.standard_deviation, estimate.layout.absent) > 0).all()
    assert 0.05 <= estimate.prior_spread <= 5.0


def test_geodesic_fits_the_hyperplanes_of_samples():
    """Bodies are those of geodesic least squares on the equations of single samples, not on compressed equations."""
    model, train, _ = _experiment(5, count=100)
    options = IdentifyOptions(prior_spread=0.3)
    estimate, entropic = (
        identify(model, [train], attrs.evolve(options, regularizer=name)) for name in ("geodesic", "entropic"))
    equations, size = ForceEquations(model), model.layout.inertial_size
    columns = [equations.predict(unit, train) for unit in np.eye(model.layout.size)]  # (p, N, n)
    drives = np.where(np.arange(model.layout.size) < size, 0.0, estimate.parameters)
    A = np.moveaxis(columns, 0, -1)[train.mask] * estimate.weights[np.nonzero(train.mask)[1], None]
    b = (train.tau - equations.predict(drives, train))[train.mask] * estimate.weights[np.nonzero(train.mask)[1]]
    coordinates = prior_coordinates(model, compress(model, [train]))
    weight = 0.5 / 0.3**2
    of_bodies = coordinates.matrix[:size, :size]
    start = np.linalg.solve(of_bodies, entropic.parameters[:size]).reshape(-1, 10)
    expected = of_bodies @ geodesic_least_squares(A[:, :size] @ of_bodies, b, weight, start).x
    assert geodesic_distance(estimate.bodies, expected.reshape(-1, 10)).max() < 1e-5
    assert "of 300 equations discarded" in estimate.solution.solver


def test_geodesic_refuses_constraints():
    model, train, _ = _experiment(5)
    with pytest.raises(IdentificationError, match="needs every sample"):
        identify(model, compress(model, [train]), IdentifyOptions(regularizer="geodesic"))
    with pytest.raises(IdentificationError, match="takes no constraints"):
        identify(model, [train], IdentifyOptions(regularizer="geodesic"), Constraints(total_mass=3.0))


def test_point_masses_keep_a_centre_of_mass_inside_its_ellipsoid():
    model, train, _ = _experiment(5)
    options = IdentifyOptions(regularizer="point_mass")
    free = identify(model, [train], options)
    centre = free.bodies[1, 1:4] / free.bodies[1, 0] + [0.05, 0.0, 0.0]
    bounded = identify(model, [train], options, Constraints(com_inside={"link1": Ellipsoid(centre, 1e-4 * np.eye(3))}))
    distance = np.linalg.norm(bounded.bodies[1, 1:4] / bounded.bodies[1, 0] - centre)
    assert distance == pytest.approx(0.01, abs=1e-5)  # on the border of the ellipsoid that excludes the free optimum


def test_cvxpy_is_only_needed_for_point_masses(monkeypatch):
    model, train, _ = _experiment(5)
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    identify(model, [train], IdentifyOptions(regularizer="riemannian"))
    with pytest.raises(IdentificationError, match="need CVXPY, which is not installed; pip install cvxpy"):
        identify(model, [train], IdentifyOptions(regularizer="point_mass"))
