"""Geometric adaptation: steps on the manifold, bounds, projections, and tracking; torque of calibrated drives."""

import numpy as np
import pinocchio as pin
import pytest
from support.robots.random_robots import random_states, random_urdf

from inertid_ros.adaptive_control.controller import (
    AdaptationOptions,
    AdaptiveController,
    CalibratedDrives,
    ComputedTorque,
    Law,
    Reference,
    Tracking,
    TrackingState,
    slotine_li_regressor,
)
from inertid_ros.adaptive_control.inertial_manifold import (
    HalfSpaceProjection,
    HalfSpaces,
    Intervals,
    dual_matrix,
    geodesic_step,
    natural_gradient,
    straight_step,
)
from inertid_ros.config.robot import CouplingOptions, RobotOptions, TermOptions
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.inertial_parameters import PSEUDO_INERTIA_BASIS, geodesic_distance, is_consistent, pseudo_inertia
from inertid_ros.regressors.equations import equations_of
from inertid_ros.robot.model import load_model

MASS, EFFORT = np.eye(10)[0], 300.0  # kg; N m


def arm(seed=0):
    return load_model(random_urdf(np.random.default_rng(seed), 3, branched=False))


def metric(body):
    """By its definition ([Lee2019]_ eq. 5.3.24)."""
    turned = np.linalg.inv(pseudo_inertia(body)) @ PSEUDO_INERTIA_BASIS
    return np.einsum("iab,jba->ij", turned, turned)


@pytest.mark.parametrize("seed", range(5))
def test_the_natural_gradient_is_that_of_the_metric_without_its_inverse(seed):
    rng, bodies = np.random.default_rng(seed), arm(seed).body_prior
    b = rng.normal(size=bodies.shape)
    expected = [np.linalg.solve(metric(body), own) for body, own in zip(bodies, b, strict=True)]
    np.testing.assert_allclose(natural_gradient(bodies, b), expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(
        np.einsum("bij,bji->b", pseudo_inertia(bodies), dual_matrix(b)), np.sum(bodies * b, axis=1)
    )


@pytest.mark.parametrize("seed", range(5))
def test_a_step_follows_the_geodesic_and_stays_whatever_its_size(seed):
    rng, bodies = np.random.default_rng(seed), arm(seed).body_prior
    b, small = rng.normal(size=bodies.shape), 1e-7
    slope = (geodesic_step(bodies, b, small) - bodies) / small
    np.testing.assert_allclose(slope, -natural_gradient(bodies, b), rtol=1e-3, atol=1e-4 * np.abs(slope).max())
    # A geodesic has constant speed: its length is that of its first tangent (both distances have the factor 1/2).
    norms = np.sqrt(np.sum(b * natural_gradient(bodies, b), axis=1))
    size = 0.05 / norms.max()
    distances = geodesic_distance(bodies, geodesic_step(bodies, b, size))
    np.testing.assert_allclose(distances, size * norms / np.sqrt(2), rtol=1e-6)
    for size in (1e-3, 1.0, 1e3, 1e9):
        for stepped in (geodesic_step(bodies, b, size), straight_step(bodies, -size * b)):
            assert np.isfinite(stepped).all() and is_consistent(stepped).all()


def test_bounds_and_intervals_are_kept_whatever_the_step():
    rng, body = np.random.default_rng(1), arm(1).body_prior[0]
    bounds = HalfSpaces(np.array([MASS, -MASS]), np.array([0.8 * body[0], -1.2 * body[0]]), weight=0.7)
    b = rng.normal(size=10)
    barrier = sum(0.7 / s**2 * np.outer(a, a) for a, s in zip(bounds.normals, bounds.slack(body), strict=True))
    expected = np.linalg.solve(metric(body) + barrier, b)
    np.testing.assert_allclose(bounds.natural_gradient(body, b), expected, rtol=1e-6, atol=1e-9)
    current = body
    for size in (1e-2, 1.0, 1e3, 1e6):
        current = bounds.step(current, b, size)
        assert (bounds.slack(current) > 0).all() and is_consistent(current)
    with pytest.raises(IdentificationError, match="start inside"):
        bounds.step(2 * body, b, 1.0)
    drives = Intervals(np.array([0.0, 0.1]), np.array([np.inf, 0.5]))
    values = np.array([0.3, 0.2])
    np.testing.assert_allclose(drives.natural_gradient(values, np.ones(2)), [0.09, 1 / (1 / 0.01 + 1 / 0.09)])
    for size in (1e-2, 1.0, 1e6):
        for sign in (-1.0, 1.0):
            stepped = drives.step(values, sign * np.ones(2), size)
            assert (stepped > drives.lower).all() and (stepped < drives.upper).all()


def test_projections_keep_a_bound_and_are_nearest():
    body, rng = arm(2).body_prior[1], np.random.default_rng(0)
    limit = HalfSpaceProjection(MASS, 0.8 * body[0])
    nearest = limit.nearest(body)
    assert nearest[0] == pytest.approx(0.8 * body[0]) and is_consistent(nearest)
    inverse = np.linalg.inv(pseudo_inertia(body))

    def divergence(other):
        product = inverse @ pseudo_inertia(other)
        return np.trace(product) - np.linalg.slogdet(product)[1] - 4

    for _ in range(20):
        other = geodesic_step(nearest[None], rng.normal(size=(1, 10)), 0.01)[0]
        other *= nearest[0] / other[0]
        assert divergence(other) >= divergence(nearest) - 1e-9
    velocity = rng.normal(size=10)
    velocity[0] = 1.0
    along = limit.along(nearest + 1e-12 * MASS, velocity)
    assert along[0] == pytest.approx(0.0, abs=1e-12)
    assert (limit.along(0.5 * body, velocity) == velocity).all() and (limit.nearest(0.5 * body) == 0.5 * body).all()


def test_no_projection_leaves_its_half_space():
    """1,000 draws of body, bound and velocity; a velocity at the bound no longer points out of it."""
    rng, projected = np.random.default_rng(0), 0
    for seed in range(50):
        for body in np.repeat(arm(seed).body_prior, 7, axis=0)[:20]:
            normal = rng.normal(size=10) / np.abs(body)
            inside = geodesic_step(body[None], rng.normal(size=(1, 10)), 0.1)[0]
            limit = HalfSpaceProjection(normal, float(normal @ inside))
            nearest = limit.nearest(body)
            projected += nearest is not body
            assert normal @ nearest <= limit.offset + 1e-9 * np.abs(normal) @ np.abs(nearest)
            assert is_consistent(nearest)
            there = HalfSpaceProjection(normal, float(normal @ nearest))
            velocity = there.along(nearest, rng.normal(size=10) * np.abs(body))
            assert normal @ velocity <= 1e-9 * np.abs(normal) @ np.abs(velocity)
    assert projected > 300


@pytest.mark.parametrize("seed", range(3))
def test_the_regressor_is_that_of_christoffel_symbols(seed):
    rng, model = np.random.default_rng(seed), arm(seed)
    tree, data = model.pinocchio, model.pinocchio.createData()
    q, velocity, a, v = rng.normal(size=(4, 3))
    expected = pin.crba(tree, data, q) @ a + pin.computeGeneralizedGravity(tree, data, q)
    expected = expected + pin.computeCoriolisMatrix(tree, data, q, velocity) @ v
    found = slotine_li_regressor(tree, data, q, velocity, a, v) @ model.body_prior.ravel()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def track(law, speed=1.0, dt=1e-3, seconds=4.0, seed=4, tracking=Tracking.PASSIVITY):
    """Tracking error over the last second [rad], and whether estimates were always consistent."""
    rng, model = np.random.default_rng(seed), arm(seed)
    tree, data = model.pinocchio, model.pinocchio.createData()
    first = model.body_prior * (1 + rng.uniform(-0.4, 0.4, (3, 1)))
    options = AdaptationOptions(speed=speed, law=law, effort_limit=np.full(3, EFFORT), tracking=tracking)
    controller = AdaptiveController(model, first, options)
    omega, q, v = 2 * np.pi / 2.0, np.zeros(3), np.zeros(3)
    errors, consistent = [], True
    for step in range(int(seconds / dt)):
        t = step * dt
        reference = Reference(
            0.5 * (np.cos(omega * t) - 1) * np.ones(3), -0.5 * omega * np.sin(omega * t) * np.ones(3),
            -0.5 * omega**2 * np.cos(omega * t) * np.ones(3),
        )  # fmt: skip
        errors.append(q - reference.position)
        torque = controller.step(q, v, reference, dt)
        consistent &= bool(is_consistent(controller.bodies).all())
        for _ in range(max(1, int(dt / 1e-3))):
            v = v + min(dt, 1e-3) * pin.aba(tree, data, q, v, torque)
            q = q + min(dt, 1e-3) * v
    return float(np.sqrt(np.mean(np.array(errors[-int(1.0 / dt) :]) ** 2))), consistent


@pytest.mark.parametrize("tracking", Tracking)
def test_adaptation_tracks_better_and_stays_consistent(tracking):
    without, _ = track(Law.NONE, dt=4e-3, tracking=tracking)
    for law in (Law.NATURAL, Law.PULLBACK):
        error, consistent = track(law, dt=4e-3, tracking=tracking)
        assert consistent and error < 0.5 * without


@pytest.mark.parametrize(("tracking", "share"), [(Tracking.PASSIVITY, 0.5), (Tracking.COMPUTED_TORQUE, 1.5)])
def test_wrong_friction_adapts_and_spares_the_bodies(tracking, share):
    """Within its bounds, whatever the gain; without its adaptation the bodies take over what friction lacks."""
    model, dt = arm(4), 2e-3
    n, layout = model.joints, model.layout
    truth = np.array([np.full(n, 2.0), np.full(n, 4.0)])
    parameters = np.concatenate([model.body_prior.ravel(), np.zeros(layout.size - layout.body_size)])
    drives = CalibratedDrives(model, parameters).with_friction(share * truth)
    tree, data = model.pinocchio, model.pinocchio.createData()
    distance, friction = {}, {}
    for weight in (0.0, 0.05):
        options = AdaptationOptions(speed=2.0, friction_weight=weight, tracking=tracking, largest_factor=3.0)
        controller, q, v = AdaptiveController(model, model.body_prior, options, drives), np.zeros(n), np.zeros(n)
        for step in range(2000):
            angle, ones = np.pi * step * dt, np.ones(n)
            reference = Reference(
                0.5 * (np.cos(angle) - 1) * ones, -0.5 * np.pi * np.sin(angle) * ones,
                -0.5 * np.pi**2 * np.cos(angle) * ones)
            torque = controller.step(q, v, reference, dt)
            for _ in range(4):
                resisted = torque - truth[0] * v - truth[1] * np.tanh(v / 0.01)
                v = v + dt / 4 * pin.aba(tree, data, q, v, resisted)
                q = q + dt / 4 * v
            factors = controller.drives.friction / (share * truth)
            assert (factors > 1 / 3).all() and (factors < 3).all()
        distance[weight] = float(np.sum(geodesic_distance(controller.bodies, model.body_prior)))
        friction[weight] = np.abs(controller.drives.friction[1] / truth[1] - 1).mean()
    assert friction[0.0] == pytest.approx(0.5)
    assert distance[0.05] < 0.5 * distance[0.0] and friction[0.05] < 0.5 * friction[0.0]


def test_friction_that_cannot_adapt_is_told():
    model = load_model(random_urdf(np.random.default_rng(0), 3, branched=False), RobotOptions(drive_terms=("viscous",)))
    with pytest.raises(IdentificationError, match="friction cannot adapt without the drive terms coulomb"):
        AdaptiveController(model, model.body_prior, AdaptationOptions(friction_weight=0.5))


def test_the_mass_matrix_of_computed_torque_is_that_of_the_bodies():
    model, q = arm(2), np.array([0.3, -0.2, 0.4])
    expected = pin.crba(model.pinocchio, model.pinocchio.createData(), q)
    controller = ComputedTorque(model, model.body_prior, 10.0)
    np.testing.assert_allclose(controller.mass_matrix(q, model.body_prior), expected, rtol=1e-9, atol=1e-12)


def test_what_computed_torque_says_of_the_parameters_is_the_slope_of_its_lyapunov_function():
    """d/dt of e' P e is what it is with the true parameters plus twice (estimate - truth) . b ([Lee2019]_ 5.4.46)."""
    rng, model, dt, gain = np.random.default_rng(0), arm(1), 1e-5, 10.0
    tree, data = model.pinocchio, model.pinocchio.createData()
    q, v = rng.normal(size=(2, 3))
    zero = np.zeros(3)
    still = Reference(q + 0.01 * rng.normal(size=3), zero, zero)
    estimate = model.body_prior * 1.1
    controller = ComputedTorque(model, estimate, gain)
    torque = controller.regressor(TrackingState(q, v, still))[0] @ estimate.ravel()
    later = v + dt * pin.aba(tree, data, q, v, torque)
    controller.regressor(TrackingState(q + dt * (v + later) / 2, later, still))
    regressor, _, weights = controller.weights(estimate, dt, 0.0)
    b = regressor.T @ weights
    own = pin.aba(tree, data, q, v, torque) - (-2 * gain * v - gain**2 * (q - still.position))
    weight = np.diag(controller.mass_matrix(q, estimate))
    slope = (v + gain * (q - still.position)) @ (weight * own)
    np.testing.assert_allclose((estimate - model.body_prior).ravel() @ b, slope, rtol=1e-3)


def test_within_its_dead_zone_nothing_adapts():
    model, zero = arm(), np.zeros(3)
    controller = AdaptiveController(model, model.body_prior, AdaptationOptions(dead_zone=0.1))
    controller.step(np.full(3, 0.009), zero, Reference(zero, zero, zero), 1e-3)
    assert (controller.bodies == model.body_prior).all()
    controller.step(np.full(3, 0.02), zero, Reference(zero, zero, zero), 1e-3)
    assert (controller.bodies != model.body_prior).any()


@pytest.mark.parametrize("law", [Law.NATURAL, Law.PULLBACK])
@pytest.mark.parametrize("speed, dt", [(1.0, 1e-2), (100.0, 1e-3), (100.0, 1e-2)])
def test_no_gain_and_no_step_makes_parameters_infeasible(law, speed, dt):
    error, consistent = track(law, speed, dt, seconds=1.0)
    assert consistent and np.isfinite(error)


def test_nothing_winds_up_at_the_effort_limit():
    model, zero = arm(), np.zeros(3)
    options = AdaptationOptions(effort_limit=np.full(3, 1e-3))
    controller = AdaptiveController(model, model.body_prior, options)
    for _ in range(100):
        torque = controller.step(np.ones(3), zero, Reference(zero, zero, zero), 1e-3)
        assert (np.abs(torque) <= 1e-3).all()
    assert (controller.bodies == model.body_prior).all()


def test_states_that_are_none_are_refused():
    model = arm()
    controller, zero = AdaptiveController(model, model.body_prior), np.zeros(3)
    still = Reference(zero, zero, zero)
    for dt, position in ((-1e-3, zero), (1e-3, np.full(3, np.nan))):
        with pytest.raises(IdentificationError, match="keep the last torque"):
            controller.step(position, zero, still, dt)
    with pytest.raises(IdentificationError, match="not physically consistent"):
        AdaptiveController(model, -model.body_prior)


@pytest.mark.parametrize("seed", range(3))
def test_it_is_that_of_the_equations(seed):
    rng = np.random.default_rng(seed)
    plain = load_model(random_urdf(rng, 3))
    joints = plain.joint_names
    options = RobotOptions(
        couplings={"wrist": CouplingOptions(joints[1:], (1.0, -0.5))},
        terms={"spring": TermOptions(joints[0], expressions=("sin(q)", "direction"))},
    )
    model = load_model(plain.urdf, options).with_layout(transition_speeds=(0.1,) * 3)
    x = rng.uniform(0.1, 1.0, model.layout.size)
    x[: model.layout.inertial_size] = model.prior[: model.layout.inertial_size]
    samples = random_states(rng, model, 20)
    drives = CalibratedDrives(model, x)
    found = [drives.effort(q, v, a) for q, v, a in zip(samples.q, samples.v, samples.a, strict=True)]
    without = np.where(np.arange(len(x)) < model.layout.inertial_size, x, 0.0)
    equations = equations_of(model)
    expected = equations.predict(x, samples) - equations.predict(without, samples)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
