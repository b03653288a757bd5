"""Errors of a MAP fit: intervals by data, prior and bounds, and the normal distribution within bounds."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots.random_robots import random_model, random_states

from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.posterior import truncated_normal
from inertid_ros.identification.identify import identify
from inertid_ros.identification.solvers.constraints import Constraints
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.model import RobotModel

TERMS = ("rotor_inertia", "viscous", "coulomb", "offset")


def experiment(
        seed: int, noise: float, friction: float = 0.5, joints: int = 3) -> tuple[RobotModel, Samples, np.ndarray]:
    """A robot, samples of it with noise [N m], and its true parameters; friction as given, or zero in part."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, joints, branched=False, drive_terms=TERMS)
    drives = friction * rng.uniform(0.2, 1.0, (len(TERMS), joints))
    truth = np.concatenate([perturb(model, rng).ravel(), drives.ravel()])
    samples = random_states(rng, model, 400)
    exact = ForceEquations(model).predict(truth, samples)
    return model, replace(samples, tau=exact + noise * rng.normal(size=exact.shape)), truth


def inside(estimate: Estimate, truth: np.ndarray) -> np.ndarray:
    return (estimate.interval[:, 0] <= truth) & (truth <= estimate.interval[:, 1])


@pytest.mark.parametrize("noise", [1e-3, 0.1, 3.0])
def test_intervals_of_single_parameters_hold_at_all_noise_levels(noise):
    drives, bodies = [], []
    for seed in range(12):
        model, samples, truth = experiment(seed, noise)
        held = inside(identify(model, [samples]), truth)
        bodies.append(held[: model.layout.body_size])
        drives.append(held[model.layout.body_size :])
    assert np.mean(drives) >= 0.9
    assert np.mean(bodies) >= 0.92


def test_friction_that_is_not_there_has_an_upper_bound():
    """From zero, and as far as the noise lets it; not symmetric about an estimate near zero."""
    upper = []
    for seed in range(6):
        model, samples, truth = experiment(seed, 0.5, friction=0.0)
        estimate = identify(model, [samples])
        rows = estimate.interval[estimate.layout.drive("viscous")]
        assert (rows[:, 0] >= 0).all() and (rows[:, 1] > estimate.drive("viscous")).all()
        upper.append(rows[:, 1])
        assert np.mean(inside(estimate, truth)[estimate.layout.drive("viscous")]) > 0.6
    assert np.median(upper) < 0.5


def test_more_noise_more_uncertainty_at_a_bound():
    few, many = (identify(*_data(experiment(1, noise, friction=0.0))) for noise in (0.05, 0.5))
    columns = few.layout.drive("coulomb")
    assert (few.interval[columns, 1] < many.interval[columns, 1]).all()


def _data(made: tuple[RobotModel, Samples, np.ndarray]) -> tuple[RobotModel, list[Samples]]:
    return made[0], [made[1]]


def test_what_is_fixed_or_equal_has_no_error_of_its_own():
    model, samples, _ = experiment(2, 0.2)
    first, second = model.link_names[:2]
    constraints = Constraints(fixed=(f"{second}.m",), equal={f"{first}.mcx": f"{second}.mcx"})
    estimate = identify(model, [samples], constraints=constraints)
    column = {name: index for index, name in enumerate(model.layout.names)}
    assert estimate.standard_deviation[column[f"{second}.m"]] < 1e-6
    one, two = column[f"{first}.mcx"], column[f"{second}.mcx"]
    covariance = estimate.covariance
    assert covariance[one, one] - 2 * covariance[one, two] + covariance[two, two] < 1e-9 * covariance[one, one]


def test_a_bound_that_holds_a_parameter_leaves_it_on_one_side():
    """The data wants more Coulomb friction than is allowed: it is near the bound, with little deviation."""
    model, samples, truth = experiment(3, 0.02)
    name = f"{model.joint_names[1]}.coulomb"
    column = model.layout.names.index(name)
    free = identify(model, [samples])
    held = identify(model, [samples], constraints=Constraints(at_most={name: 0.5 * truth[column]}))
    assert held.parameters[column] == pytest.approx(0.5 * truth[column], rel=1e-3)
    assert held.standard_deviation[column] < free.standard_deviation[column]
    everything = identify(model, [samples], constraints=Constraints(at_most={name: 10 * truth[column]}))
    np.testing.assert_allclose(everything.standard_deviation, free.standard_deviation, rtol=0.05)


@pytest.mark.parametrize("seed", [0, 2])
def test_friction_on_a_bound_without_barrier_is_as_certain_as_under_a_barrier(seed):
    """Point masses are found by a quadratic program, whose friction may be exactly zero."""
    pytest.importorskip("cvxpy")
    model, samples, _ = experiment(seed, 0.1, friction=0.0)
    points, barrier = (
        identify(model, [samples], IdentifyOptions(regularizer=name)) for name in ("point_mass", "pullback"))
    positive = model.layout.non_negative
    assert points.parameters[positive].min() == 0.0
    ratio = points.standard_deviation[positive] / barrier.standard_deviation[positive]
    assert ratio.min() > 0.5 and ratio.max() < 5.0


def repeating_motion(model: RobotModel, rng: np.random.Generator) -> Samples:
    """Forty seconds of a motion with a period of five."""
    time = np.arange(0.0, 40.0, 0.02)
    omega, phase = 2 * np.pi * np.array([[0.2], [0.4], [0.8]]), rng.uniform(0, 6, (3, model.joints))
    size, angle = rng.uniform(0.1, 0.5, phase.shape), time[:, None, None] * omega + phase
    q, v = np.sum(size * np.sin(angle), axis=1), np.sum(size * omega * np.cos(angle), axis=1)
    every = np.ones(q.shape, dtype=bool)
    a = -np.sum(size * omega**2 * np.sin(angle), axis=1)
    return Samples(time, q, v, a, np.zeros_like(q), every, every[:, 0])


def test_friction_that_the_model_lacks_widens_intervals():
    """Friction that depends on position, along a motion that repeats: residuals alike in every period."""
    model = random_model(np.random.default_rng(5), 3, branched=False, drive_terms=TERMS)
    covered = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        truth = np.concatenate([perturb(model, rng).ravel(), np.full(4 * model.joints, 0.5)])
        samples = repeating_motion(model, rng)
        exact = ForceEquations(model).predict(truth, samples) + 0.1 * rng.normal(size=samples.q.shape)
        friction = 0.3 * np.sin(3 * samples.q) * np.sign(samples.v)
        estimates = [identify(model, [replace(samples, tau=exact + more)]) for more in (0 * friction, friction)]
        assert (estimates[1].effective_counts < 0.1 * estimates[0].effective_counts).all()
        for estimate in estimates:
            B = estimate.base.projection
            deviation = np.sqrt(np.diagonal(B @ estimate.covariance @ B.T))
            covered.append(np.abs(B @ (estimate.parameters - truth)) < 1.96 * deviation)
    assert np.mean(covered[0::2]) >= 0.9 and np.mean(covered[1::2]) >= 0.85


@pytest.mark.parametrize("seed", range(4))
def test_moments_and_intervals_are_those_of_samples(seed):
    rng, size = np.random.default_rng(seed), 4
    factor = rng.normal(size=(size, size))
    covariance, mean = factor @ factor.T + 0.1 * np.eye(size), 1.5 * rng.normal(size=size)
    rows, shift = np.eye(size)[:2], np.array([0.0, 0.3])
    within = truncated_normal(mean, covariance, rows, shift)
    drawn = rng.multivariate_normal(mean, covariance, 400_000)
    drawn = drawn[(drawn @ rows.T + shift >= 0).all(axis=1)]
    scale = np.sqrt(np.diagonal(covariance))
    np.testing.assert_allclose(within.mean / scale, drawn.mean(axis=0) / scale, atol=0.02)
    np.testing.assert_allclose(
        within.covariance / np.outer(scale, scale), np.cov(drawn.T) / np.outer(scale, scale), atol=0.02)
    values = drawn @ rows.T + shift
    inside = (values >= within.intervals[:, 0]) & (values <= within.intervals[:, 1])
    np.testing.assert_allclose(inside.mean(axis=0), 0.95, atol=0.006)


def test_far_from_bounds_nothing_changes():
    covariance = np.array([[1.0, 0.5], [0.5, 2.0]])
    within = truncated_normal(np.array([30.0, -3.0]), covariance, np.eye(2)[:1], np.zeros(1))
    np.testing.assert_allclose(within.covariance, covariance)
    np.testing.assert_allclose(within.intervals, [[30 - 1.96, 30 + 1.96]], atol=1e-3)


@pytest.mark.parametrize("depth", [40.0, 60.0, 1e3, 1e6])
def test_deep_below_a_bound_it_is_exponential(depth):
    """Where the slope of the density is all that is left of it."""
    within = truncated_normal(np.array([-depth]), np.eye(1), np.eye(1), np.zeros(1))
    assert within.mean[0] * depth == pytest.approx(1, rel=2e-3)
    assert within.covariance[0, 0] * depth**2 == pytest.approx(1, rel=5e-3)
    assert within.intervals[0, 0] == 0 and within.intervals[0, 1] * depth == pytest.approx(np.log(20), rel=2e-3)


def test_a_quantity_that_is_fixed_stays():
    within = truncated_normal(np.array([0.2, 1.0]), np.diag([0.0, 1.0]), np.eye(2), np.zeros(2))
    assert within.mean[0] == 0.2 and within.covariance[0, 0] == 0
    np.testing.assert_allclose(within.intervals[0], 0.2)


@pytest.mark.parametrize("centre", [-1.0, 0.5, 2.5])
def test_a_quantity_that_may_be_zero_is_zero_in_some_of_the_samples(centre):
    """Two quantities; the first is zero with even odds before the data, else of an exponential prior."""
    rng, density = np.random.default_rng(0), 0.7
    covariance, mean = np.array([[1.0, -0.8], [-0.8, 1.3]]), np.array([centre, 4.0])
    within = truncated_normal(mean, covariance, np.eye(2)[:1], np.zeros(1), np.array([density]))
    drawn = rng.multivariate_normal(mean, covariance, 400_000)
    above = drawn[drawn[:, 0] >= 0]
    present, absent = density * len(above) / len(drawn), np.exp(-0.5 * centre**2) / np.sqrt(2 * np.pi)
    probability = present / (present + absent)
    assert within.present[0] == pytest.approx(probability, abs=0.005)
    zeros = rng.random(len(above)) > probability
    free = mean[1] - 0.8 * (0 - centre) + np.sqrt(1.3 - 0.64) * rng.normal(size=len(above))
    mixed = np.where(zeros[:, None], np.column_stack([np.zeros(len(above)), free]), above)
    np.testing.assert_allclose(within.mean, mixed.mean(axis=0), atol=0.02)
    np.testing.assert_allclose(within.covariance, np.cov(mixed.T), atol=0.02)
    low, high = within.intervals[0]
    assert low == 0 and np.mean(mixed[:, 0] <= high) == pytest.approx(0.95, abs=0.006)


def test_a_quantity_that_is_surely_zero_has_a_known_value():
    within = truncated_normal(
        np.array([-1.0, 1.0]), np.array([[1e-4, 5e-3], [5e-3, 1.0]]), np.eye(2)[:1], np.zeros(1), np.ones(1))
    assert within.present[0] < 1e-3 and within.covariance[0, 0] < 1e-7
    assert within.covariance[1, 1] == pytest.approx(1 - 5e-3**2 / 1e-4, rel=1e-3)
    assert within.intervals.tolist() == [[0.0, 0.0]]
