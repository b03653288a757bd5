"""Distances of bodies to their prior, and the relative regularizer."""

from dataclasses import replace

import attrs
import numpy as np
import pytest
import scipy
from support.cyclic_projection import cyclic_step, nearest_points
from support.robots.free_base import free_model, random_flight

from inertid_ros.core.inertial_parameters import (
    from_pseudo_inertia,
    geodesic_distance,
    is_consistent,
    pseudo_inertia,
)
from inertid_ros.identification.identify import IdentifyOptions, identify
from inertid_ros.identification.solvers.coordinates import IDENTITY, PULLBACK, Entropic, Quadratic, Riemannian
from inertid_ros.identification.solvers.geodesic import (
    Hyperplanes,
    geodesic_least_squares,
    matrix_function,
    project,
)
from inertid_ros.regressors.equations import ForceEquations

COUNT = 3


def _metric(rng: np.random.Generator) -> np.ndarray:
    factor = rng.normal(size=(COUNT, 10, 10))
    return factor @ np.swapaxes(factor, 1, 2)


def _distances(rng: np.random.Generator):
    return {
        "pullback": Quadratic(PULLBACK), "euclidean or point masses": Quadratic(_metric(rng)), "entropic": Entropic(),
        "riemannian": Riemannian()}


def _near_bodies(rng: np.random.Generator, scale: float = 0.7) -> np.ndarray:
    """Bodies around the identity; at this scale some eigenvalues exceed e, where the geodesic distance is concave."""
    symmetric = scale * rng.normal(size=(COUNT, 4, 4))
    values, vectors = np.linalg.eigh(symmetric + np.swapaxes(symmetric, 1, 2))
    return from_pseudo_inertia((vectors * np.exp(values)[:, None]) @ np.swapaxes(vectors, 1, 2))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["pullback", "euclidean or point masses", "entropic", "riemannian"])
def test_gradient_and_hessian_are_those_of_the_value(name, seed):
    rng = np.random.default_rng(seed)
    distance, bodies = _distances(rng)[name], _near_bodies(rng)
    gradient, hessian = distance.gradient(bodies), distance.hessian(bodies)
    for _ in range(5):
        direction = rng.normal(size=bodies.shape)
        inner = np.linalg.solve(np.linalg.cholesky(pseudo_inertia(bodies)), pseudo_inertia(direction))
        step = 1e-4 / np.linalg.norm(inner, axis=(1, 2)).max() * direction  # small beside the smallest eigenvalue
        ahead, behind = distance.value(bodies + step), distance.value(bodies - step)
        change = distance.gradient(bodies + step) - distance.gradient(bodies - step)
        expected = np.einsum("bkl,bl->bk", hessian, 2 * step)
        assert ahead - behind == pytest.approx(2 * np.sum(gradient * step), rel=1e-6, abs=1e-10)
        np.testing.assert_allclose(change, expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(3))
def test_hessian_of_repeated_eigenvalues(seed):
    """At the prior itself, and where two eigenvalues are almost one, divided differences need care."""
    rng = np.random.default_rng(seed)
    np.testing.assert_allclose(Riemannian().hessian(IDENTITY[None])[0], 2 * PULLBACK, atol=1e-12)
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    close = from_pseudo_inertia(rotation @ np.diag([0.5, 0.5 + 1e-9, 2.0, 2.0]) @ rotation.T)
    same = from_pseudo_inertia(rotation @ np.diag([0.5, 0.5, 2.0, 2.0]) @ rotation.T)
    np.testing.assert_allclose(Riemannian().hessian(close[None]), Riemannian().hessian(same[None]), atol=1e-6)


def test_distances_agree_near_the_prior_and_with_the_geodesic_one():
    rng = np.random.default_rng(0)
    near = IDENTITY + 1e-3 * rng.normal(size=(COUNT, 10))
    values = [distance.value(near) for distance in (Quadratic(PULLBACK), Entropic(), Riemannian())]
    np.testing.assert_allclose(values, values[0], rtol=1e-2)
    bodies = _near_bodies(rng)
    assert Riemannian().value(bodies) == pytest.approx(np.sum(geodesic_distance(bodies, IDENTITY) ** 2))


def test_no_distance_is_finite_outside_the_cone():
    outside = from_pseudo_inertia(np.diag([1.0, 1.0, -1.0, -1.0]))[None]  # of positive determinant
    assert Entropic().value(outside) == Riemannian().value(outside) == np.inf


def _planes(rng: np.random.Generator, rows: int, through: np.ndarray):
    A = rng.normal(size=(rows, 10 * len(through))) * 10 ** rng.uniform(-2, 2, (rows, 1))
    return A, A @ through.ravel()


@pytest.mark.parametrize("seed", range(3))
def test_projection_is_the_nearest_point_of_a_hyperplane(seed):
    """It lies on the plane, at the distance returned, and no other point is nearer ([Lee2019]_ Prop. 3.2)."""
    rng = np.random.default_rng(seed)
    bodies = _near_bodies(rng, 0.3)
    A, b = _planes(rng, 12, _near_bodies(rng, 0.3))
    found = project(pseudo_inertia(bodies), Hyperplanes.from_equations(A, b))
    assert found.exists.sum() > 3
    points = from_pseudo_inertia(nearest_points(pseudo_inertia(bodies), found))[found.exists]
    A, b, distance = A[found.exists], b[found.exists], found.distance[found.exists]
    np.testing.assert_allclose(np.einsum("mk,mk->m", A, points.reshape(len(A), -1)), b, rtol=1e-9, atol=1e-11)
    with_identifiability = np.sqrt(np.sum(geodesic_distance(points, bodies) ** 2, axis=1))
    np.testing.assert_allclose(with_identifiability, np.abs(distance), rtol=1e-9)
    np.testing.assert_array_equal(np.sign(A @ bodies.ravel() - b), np.sign(distance))
    for row, point, nearest in zip(A, points, with_identifiability, strict=True):
        for _ in range(5):
            shift = 0.05 * rng.normal(size=row.shape) * np.abs(point).ravel()
            other = point + (shift - row * (row @ shift) / (row @ row)).reshape(point.shape)
            assert np.sqrt(np.sum(geodesic_distance(other, bodies) ** 2)) > nearest - 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_derivatives_of_the_distance_to_hyperplanes(seed):
    """Gradient and Hessian along geodesics agree with differences."""
    rng = np.random.default_rng(seed)
    bodies = _near_bodies(rng, 0.2)
    A, b = _planes(rng, 8, _near_bodies(rng, 0.2))
    planes, S = Hyperplanes.from_equations(A, b), pseudo_inertia(bodies)
    planes = planes.select(project(S, planes).exists)
    root = matrix_function(S, np.sqrt)
    tangent = rng.normal(size=S.shape)
    tangent = 1e-3 * (tangent + np.swapaxes(tangent, 1, 2))
    ahead, here, behind = (
        0.5 * project(root @ matrix_function(sign * tangent, np.exp) @ root, planes).distance ** 2
        for sign in (1, 0, -1))
    found, weights = project(S, planes), rng.uniform(1, 2, len(planes.b))
    basis = pseudo_inertia(np.eye(10))
    along = from_pseudo_inertia(tangent).ravel()
    np.testing.assert_allclose(found.gradient(basis) @ along, 0.5 * (ahead - behind), rtol=1e-4, atol=1e-8)
    bent = along @ found.hessian(basis, weights) @ along
    assert bent == pytest.approx(weights @ (ahead - 2 * here + behind), rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_cycles_of_projection_and_mean_find_the_same_minimum(seed):
    """The cyclic procedure of [Lee2019]_ sec. 3.4.2 and Newton's method find the same minimum."""
    rng = np.random.default_rng(seed)
    truth = _near_bodies(rng, 0.1)[:1]
    A = rng.normal(size=(8, 10))
    b = A @ truth.ravel() + 0.05 * rng.normal(size=8)
    fit = geodesic_least_squares(A, b, 5.0, IDENTITY[None])
    S, planes = np.eye(4)[None], Hyperplanes.from_equations(A, b)
    for _ in range(300):
        S = cyclic_step(S, planes, 5.0)
    assert geodesic_distance(from_pseudo_inertia(S), fit.x[None])[0] < 1e-5
    assert fit.iterations < 20


def test_gross_errors_hardly_move_geodesic_least_squares():
    """The minimum agrees with one by differences and bisection ([Lee2019]_ eqs. 3.4.37, 3.4.40).

    Of hyperplanes beyond the neighbourhood of a unique nearest point, most are of equations with gross errors. They
    are discarded, so that the fit stays nearer to the truth than the other regularizers.
    """
    rng = np.random.default_rng(3)
    truth = _near_bodies(rng, 0.2)[:1]
    A = rng.normal(size=(200, 10))
    b = A @ truth.ravel() + 0.05 * rng.normal(size=200)
    b[:8] += rng.choice([-1, 1], 8) * rng.uniform(20, 60, 8)
    fit = geodesic_least_squares(A, b, 5.0, IDENTITY[None])
    kept = project(np.eye(4)[None], Hyperplanes.from_equations(A, b)).exists
    assert not kept[:8].any() and fit.solver == f"geodesic least squares, {200 - kept.sum()} of 200 equations discarded"
    X = Hyperplanes.from_equations(A[kept], b[kept])

    def objective(tangent: np.ndarray) -> float:
        root = scipy.linalg.expm(0.5 * _symmetric(tangent))
        sigma = np.linalg.eigvalsh(root @ X.X[:, 0] @ root)
        low = np.where(sigma.max(axis=1) > 0, -np.exp(-1) / np.abs(sigma.max(axis=1)), -1e6)
        high = np.where(sigma.min(axis=1) < 0, np.exp(-1) / np.abs(sigma.min(axis=1)), 1e6)
        for _ in range(70):
            middle = 0.5 * (low + high)
            W = scipy.special.lambertw(np.maximum(middle[:, None] * sigma, -0.3678794)).real
            too_low = (sigma * np.exp(-W)).sum(axis=1) > X.b
            low, high = np.where(too_low, middle, low), np.where(too_low, high, middle)
        return 0.25 * float(X.weights @ (W**2).sum(axis=1)) + 2.5 * float(np.sum(_symmetric(tangent) ** 2))

    least = scipy.optimize.minimize(objective, np.zeros(10), bounds=[(-2, 2)] * 10, options={"ftol": 1e-13})
    assert fit.objective == pytest.approx(least.fun, rel=1e-6)
    found = from_pseudo_inertia(scipy.linalg.expm(_symmetric(least.x)))
    assert geodesic_distance(found, fit.x) < 1e-4
    straight = np.linalg.lstsq(A, b, rcond=None)[0]
    assert geodesic_distance(fit.x, truth[0]) < 0.2 * np.linalg.norm(straight - truth[0])


def _symmetric(tangent: np.ndarray) -> np.ndarray:
    matrix = np.zeros((4, 4))
    matrix[np.triu_indices(4)] = tangent
    return 0.5 * (matrix + matrix.T)


SIZE = 0.3


def _case(seed: int):
    """A robot whose every parameter is off by up to a share, some beyond what a body can have; few noisy samples."""
    rng, truth = np.random.default_rng(seed), free_model(seed, 4, drive_terms=())
    samples = random_flight(rng, truth, 30)
    tau = ForceEquations(truth).predict(truth.prior, samples)
    samples = replace(samples, tau=tau + 0.3 * tau.std(axis=0) * rng.normal(size=tau.shape))
    prior = truth.body_prior * (1 + rng.uniform(-SIZE, SIZE, truth.body_prior.shape))
    return truth, replace(truth, body_prior=prior), samples


def _error(bodies: np.ndarray, truth: np.ndarray) -> float:
    given = truth != 0
    return float(np.mean(np.abs(bodies[given] / truth[given] - 1)))


@pytest.mark.parametrize("seed", range(3))
def test_it_comes_nearer_to_the_truth_in_every_parameter(seed):
    truth, given, samples = _case(seed)
    prior_spread = SIZE / np.sqrt(3)
    relative = identify(given, [samples], IdentifyOptions(regularizer="relative", prior_spread=prior_spread))
    entropic = identify(given, [samples])
    assert relative.consistent and relative.solution.status == "optimal"
    errors = [_error(bodies, truth.body_prior) for bodies in (relative.bodies, given.body_prior, entropic.bodies)]
    assert errors[0] < min(errors[1:])


def test_both_solvers_agree():
    _, given, samples = _case(1)
    assert not is_consistent(given.body_prior).all()
    options = IdentifyOptions(regularizer="relative", prior_spread=0.2)
    ours = identify(given, [samples], options)
    theirs = identify(given, [samples], attrs.evolve(options, solver="clarabel"))
    np.testing.assert_allclose(ours.parameters, theirs.parameters, rtol=2e-3, atol=2e-4 * np.abs(ours.parameters).max())
