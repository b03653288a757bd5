"""Inertial parameters of one body, over random bodies and against Pinocchio."""

import numpy as np
import pinocchio as pin
import pytest
import scipy
from support.robots.random_robots import random_bodies

from inertid_ros.core.arrays import skew
from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import (
    from_mass_com_inertia,
    from_pseudo_inertia,
    geodesic_distance,
    inertia_about_origin,
    is_consistent,
    karcher_mean,
    mass_com_inertia,
    min_eigenvalue,
    pseudo_inertia,
    transform,
)

SEEDS = range(5)


def _rotation(rng):
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return rotation * np.sign(np.linalg.det(rotation))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_order_is_that_of_pinocchio(seed):
    for pi in random_bodies(np.random.default_rng(seed), 20):
        body = pin.Inertia.FromDynamicParameters(pi)
        mass, com, inertia = mass_com_inertia(pi)
        assert mass == pytest.approx(body.mass)
        assert np.allclose(com, body.lever)
        assert np.allclose(inertia, body.inertia, atol=1e-12)
        assert np.allclose(pseudo_inertia(pi), pin.PseudoInertia.FromInertia(body).toMatrix(), atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_round_trips_over_any_leading_axes(seed):
    bodies = random_bodies(np.random.default_rng(seed), 24).reshape(2, 3, 4, 10)
    assert np.allclose(from_pseudo_inertia(pseudo_inertia(bodies)), bodies, rtol=0, atol=1e-13)
    assert np.allclose(from_mass_com_inertia(*mass_com_inertia(bodies)), bodies, rtol=0, atol=1e-13)
    assert inertia_about_origin(bodies).shape == (2, 3, 4, 3, 3)
    assert min_eigenvalue(bodies).shape == is_consistent(bodies).shape == (2, 3, 4)


def test_pseudo_inertia_is_the_second_moment_of_point_masses():
    rng = np.random.default_rng(0)
    masses, points = rng.uniform(0.1, 1, 7), rng.normal(size=(7, 3))
    homogeneous = np.column_stack([points, np.ones(7)])
    J = np.einsum("i,ij,ik->jk", masses, homogeneous, homogeneous)
    inertia = sum(m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in zip(masses, points, strict=True))
    assert np.allclose(inertia_about_origin(from_pseudo_inertia(J)), inertia)


@pytest.mark.parametrize("seed", SEEDS)
def test_consistency_is_positive_mass_and_the_triangle_inequality(seed):
    rng = np.random.default_rng(seed)
    for pi in random_bodies(rng, 50):
        pi = pi + rng.normal(scale=0.3, size=10) * np.abs(pi) * rng.integers(0, 2)
        mass, _, inertia = mass_com_inertia(pi)
        moments = np.linalg.eigvalsh(inertia)
        physical = mass > 0 and moments[0] > 0 and moments[0] + moments[1] > moments[2]
        assert bool(is_consistent(pi)) == bool(physical)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_not_consistent(bad):
    good = random_bodies(np.random.default_rng(1), 1)[0]
    for index in range(10):
        pi = good.copy()
        pi[index] = bad
        assert not is_consistent(pi)
        assert geodesic_distance(pi, good) == np.inf
    assert is_consistent(np.stack([good, np.full(10, bad)])).tolist() == [True, False]


def test_a_body_without_mass_has_its_centre_at_the_origin():
    mass, com, inertia = mass_com_inertia(np.zeros(10))
    assert mass == 0 and not com.any() and not inertia.any()
    assert not is_consistent(np.zeros(10))


@pytest.mark.parametrize("seed", SEEDS)
def test_change_of_frame_agrees_with_pinocchio(seed):
    rng = np.random.default_rng(seed)
    rotation, translation = _rotation(rng), rng.normal(size=3)
    bodies = random_bodies(rng, 10)
    moved = transform(bodies, rotation, translation)
    placement = pin.SE3(rotation, translation)
    for before, after in zip(bodies, moved, strict=True):
        expected = placement.act(pin.Inertia.FromDynamicParameters(before)).toDynamicParameters()
        assert np.allclose(after, expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("seed", SEEDS)
def test_geodesic_distance_is_a_metric_free_of_frames_and_units(seed):
    rng = np.random.default_rng(seed)
    a, b, c = random_bodies(rng, 3)
    distance = geodesic_distance(a, b)
    assert distance > 0
    assert geodesic_distance(a, a) == pytest.approx(0, abs=1e-6)
    assert geodesic_distance(b, a) == pytest.approx(distance, rel=1e-9)
    assert distance <= geodesic_distance(a, c) + geodesic_distance(c, b) + 1e-9
    rotation, translation = _rotation(rng), rng.normal(size=3)
    there = [transform(pi, rotation, translation) for pi in (a, b)]
    assert geodesic_distance(*there) == pytest.approx(distance, rel=1e-6)
    units = np.array([1] + 3 * [1e3] + 6 * [1e6])  # millimetres
    assert geodesic_distance(a * units, b * units) == pytest.approx(distance, rel=1e-6)


@pytest.mark.parametrize("factor", [0.1, 1.5, 20.0])
def test_geodesic_distance_of_a_scaled_body(factor):
    pi = random_bodies(np.random.default_rng(2), 1)[0]
    assert geodesic_distance(pi, factor * pi) == pytest.approx(abs(np.log(factor)) * np.sqrt(2), rel=1e-9)


def test_geodesic_distance_broadcasts():
    bodies = random_bodies(np.random.default_rng(3), 4)
    assert geodesic_distance(bodies[:, None], bodies[None]).shape == (4, 4)
    assert np.allclose(np.diag(geodesic_distance(bodies[:, None], bodies[None])), 0, atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_karcher_mean_is_what_an_independent_optimiser_finds(seed):
    """BFGS over Cholesky factors of the mean, with generalised eigenvalues for the distances."""
    rng = np.random.default_rng(seed)
    bodies, weights = random_bodies(rng, 4), rng.uniform(0.5, 2.0, 4)
    points, start, below = pseudo_inertia(bodies), np.linalg.cholesky(pseudo_inertia(bodies[0])), np.tril_indices(4)

    def matrix(x):
        factor = np.zeros((4, 4))
        factor[below] = x
        return start @ factor @ factor.T @ start.T

    def squares(x):
        logarithms = [np.log(scipy.linalg.eigh(point, matrix(x), eigvals_only=True)) for point in points]
        return weights @ np.sum(np.square(logarithms), axis=1)

    found = scipy.optimize.minimize(squares, np.eye(4)[below], jac="3-point", options={"gtol": 1e-9, "maxiter": 2000})
    mean = karcher_mean(bodies, weights)
    relative = scipy.linalg.eigh(pseudo_inertia(mean), matrix(found.x), eigvals_only=True)
    np.testing.assert_allclose(relative, 1.0, atol=1e-6)


def test_karcher_mean_of_two_bodies_is_midway_in_any_frame():
    rng = np.random.default_rng(1)
    pair, weights = random_bodies(rng, 2), [1.0, 3.0]
    mean = karcher_mean(pair, weights)
    np.testing.assert_allclose(geodesic_distance(mean, pair), geodesic_distance(*pair) * [0.75, 0.25], rtol=1e-6)
    rotation, shift = _rotation(rng), rng.normal(size=3)
    turned = karcher_mean(transform(pair, rotation, shift), weights)
    np.testing.assert_allclose(turned, transform(mean, rotation, shift), rtol=1e-6, atol=1e-9)
    both = karcher_mean([pair, pair[::-1]])
    np.testing.assert_allclose(both[0], both[1], rtol=1e-6, atol=1e-9)


def test_karcher_mean_of_impossible_bodies_is_refused():
    with pytest.raises(ModelError, match="not physically consistent"):
        karcher_mean([[1.0, *np.zeros(9)], *random_bodies(np.random.default_rng(0), 1)])


def test_skew_is_the_cross_product():
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, 6, 3))
    assert np.allclose(np.einsum("nij,nj->ni", skew(a), b), np.cross(a, b))
