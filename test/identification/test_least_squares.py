"""Classical estimators: exact without noise, efficient with it, and each as its source defines it."""

from dataclasses import replace

import attrs
import numpy as np
import pytest
import scipy.linalg
from support.robots.imperial_units import in_pounds_and_feet
from support.robots.random_robots import random_model, random_states

from inertid_ros.config.identification import ESTIMATORS, IdentifyOptions, LeastSquaresOptions
from inertid_ros.core.errors import ConfigurationError, IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.data.files.loading import load_recording
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.identification.assessment.estimate import COMBINED, IDENTIFIED
from inertid_ros.identification.assessment.validation import torque_errors, validate
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.least_squares import least_squares
from inertid_ros.identification.solvers.constraints import Constraints
from inertid_ros.identification.solvers.coordinates import prior_coordinates, scaling_matrix
from inertid_ros.regressors.equations import ForceEquations, dense_equations
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.layout import Coupling, UserTerm
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.rotors import Rotor

# Stribeck friction has a speed in it, which would change with the units.
TERMS = ("rotor_inertia", "viscous", "coulomb", "offset", "stiffness")


def _robot(seed: int, joints: int = 4, count: int = 400) -> tuple[RobotModel, Samples, np.ndarray, np.random.Generator]:
    """A robot whose URDF is wrong, and samples of what it really does, without noise."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, joints, branched=False, drive_terms=TERMS)
    truth = np.concatenate([perturb(model, rng).ravel(), rng.uniform(0.2, 1.0, model.layout.size - 10 * joints)])
    samples = random_states(rng, model, count)
    return model, replace(samples, tau=ForceEquations(model).predict(truth, samples)), truth, rng


def _noisy(samples: Samples, rng: np.random.Generator, deviation: float | np.ndarray) -> Samples:
    return replace(samples, tau=samples.tau + deviation * rng.normal(size=samples.tau.shape))


def _stacked(model: RobotModel, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """The whole regressor, which the estimators never build, and the torques, joint after joint."""
    columns, blocks, torques = ForceEquations(model).columns, [], []
    for equations in dense_equations(ForceEquations(model), samples, len(samples)):
        for used, (A, b) in zip(columns, equations, strict=True):
            block = np.zeros((len(b), model.layout.size))
            block[:, used] = A
            blocks.append(block)
            torques.append(b)
    return np.vstack(blocks), np.concatenate(torques)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("seed", range(2))
def test_base_parameters_are_exact_without_noise(name, seed):
    model, samples, truth, _ = _robot(seed)
    estimate = least_squares(model, [samples], ESTIMATORS[name])
    expected = estimate.base.projection @ truth
    found = estimate.base.projection @ estimate.parameters
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
    assert estimate.rank == estimate.base.count
    assert estimate.solution.status == "optimal"
    assert estimate.solution.solver == name
    assert estimate.solution.gap <= 1e-8 * (1 + estimate.solution.objective)


def test_rotors_and_couplings_are_parameters_like_others():
    """Bodies with gears and drives that turn with two joints: exact without noise, each with its identifiability."""
    rng = np.random.default_rng(21)
    rotor = Rotor("motor", "joint1", "link0", 12.0, 0.5, (1e-3, 0.0, 0.0, 1e-3, 0.0, 1.5e-3))
    coupling = Coupling("wrist", ("joint2", "joint3"), (1.0, 1.0))
    terms = ("viscous", "coulomb", "offset")
    model = random_model(rng, 4, branched=False, drive_terms=terms, rotors=(rotor,), couplings=(coupling,))
    truth = model.prior * rng.uniform(0.8, 1.2, model.layout.size)
    truth[model.layout.inertial_size :] = rng.uniform(0.2, 1.0, model.layout.size - model.layout.inertial_size)
    samples = random_states(rng, model, 400)
    exact = ForceEquations(model).predict(truth, samples)
    estimate = least_squares(model, [replace(samples, tau=exact)])
    expected = estimate.base.projection @ truth
    found = estimate.base.projection @ estimate.parameters
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
    noisy = replace(samples, tau=exact + 0.01 * rng.normal(size=exact.shape))
    verdicts = {entry.parameter: entry.verdict for entry in least_squares(model, [noisy]).identifiability}
    assert verdicts["wrist.coulomb"] == IDENTIFIED
    assert verdicts["motor.m"] == COMBINED


def test_masses_over_thirteen_decades_are_exact():
    rng = np.random.default_rng(2)
    model = random_model(rng, 3, branched=False, drive_terms=())
    bodies = model.body_prior * np.array([1e4, 1.0, 1e-9])[:, None]
    model = replace(model, body_prior=bodies)
    truth = (1.1 * bodies).ravel()
    samples = random_states(rng, model, 300)
    samples = replace(samples, tau=ForceEquations(model).predict(truth, samples))
    estimate = least_squares(model, [samples])
    B = estimate.base.projection
    assert {0, 1, 2} == {column // 10 for column in estimate.base.independent}
    size = np.abs(B) @ np.abs(truth)
    np.testing.assert_allclose(B @ estimate.parameters / size, B @ truth / size, atol=1e-6)


def test_ordinary_least_squares_is_the_pseudo_inverse():
    model, samples, _, rng = _robot(0)
    samples = _noisy(samples, rng, 0.5)
    A, b = _stacked(model, samples)
    options = LeastSquaresOptions(weighting="none", scaling="none", null_space="zero")
    estimate = least_squares(model, [samples], options)
    expected = np.linalg.lstsq(A, b, rcond=1e-11)[0]
    np.testing.assert_allclose(estimate.parameters, expected, atol=1e-8 * np.abs(expected).max())


def test_stated_deviations_of_the_sensors_are_the_weights():
    """[vanDerGaag2024]_ eq. 28, against the pseudo-inverse of the divided rows."""
    model, samples, _, rng = _robot(0)
    deviation = np.array([0.1, 2.0, 0.5, 1.0])
    samples = _noisy(samples, rng, deviation)
    A, b = _stacked(model, samples)
    rows = np.repeat(deviation, len(samples))
    stated = dict(zip(model.joint_names, deviation.tolist(), strict=True))
    options = LeastSquaresOptions(scaling="none", null_space="zero", sensor_deviation=stated)
    estimate = least_squares(model, [samples], options)
    expected = np.linalg.lstsq(A / rows[:, None], b / rows, rcond=1e-11)[0]
    np.testing.assert_allclose(estimate.parameters, expected, atol=1e-8 * np.abs(expected).max())
    np.testing.assert_allclose(estimate.weights, 1 / deviation)
    for wrong, message in (({"joint0": 1.0}, "joint1 is missing"), (stated | {"hand": 1.0}, "hand is not a channel")):
        with pytest.raises(IdentificationError, match=f"identify.sensor_deviation: {message}; give one value for each"):
            least_squares(model, [samples], attrs.evolve(options, sensor_deviation=wrong))


@pytest.mark.parametrize("scaling", ["none", "prior", "metric"])
def test_the_null_space_stays_at_the_prior(scaling):
    """The estimate does not move along any null direction, under the scaling ([vanDerGaag2024]_ eq. 22-23).

    The metric knows a body as a whole, so that a heavier one keeps its shape; the other scalings know columns, and one
    without effect keeps its value.
    """
    model, samples, _, rng = _robot(1)
    samples = _noisy(samples, rng, 0.3)
    estimate = least_squares(model, [samples], LeastSquaresOptions(scaling=scaling))
    prior = model.prior
    unseen = estimate.base.dependent[~estimate.base.regrouping.any(axis=0)]
    assert len(unseen)
    if scaling != "metric":
        np.testing.assert_allclose(estimate.parameters[unseen], prior[unseen], atol=1e-10 * np.abs(prior).max())
    coordinates = prior_coordinates(model, compress(model, [samples]))
    H = scaling_matrix(scaling, coordinates)
    move, null = np.linalg.solve(H, estimate.parameters - prior), np.linalg.solve(H, estimate.base.null_space)
    cosines = move @ null / np.linalg.norm(null, axis=0) / np.linalg.norm(move)
    np.testing.assert_allclose(cosines, 0.0, atol=1e-10)


def test_a_joint_that_stands_still_keeps_its_prior():
    model, samples, truth, rng = _robot(3)
    still = replace(samples, v=samples.v * [1, 0, 1, 1], a=samples.a * [1, 0, 1, 1])
    still = _noisy(replace(still, tau=ForceEquations(model).predict(truth, still)), rng, 0.1)
    estimate = least_squares(model, [still])
    for term in ("rotor_inertia", "viscous", "coulomb"):
        column = model.layout.drive(term).start + 1
        assert estimate.parameters[column] == pytest.approx(model.prior[column], abs=1e-10)


def test_weights_pay_where_joints_are_unequally_noisy():
    """Noise a hundred times larger at one joint: weighted estimates err less, and both know how much they err."""
    model, samples, truth, rng = _robot(4, count=150)
    deviation = np.array([10.0, 0.1, 1.0, 0.1])
    errors, scores = {"ols": [], "wls": []}, {"ols": [], "wls": []}
    levels = []
    for _ in range(12):
        measured = _noisy(samples, rng, deviation)
        for name in errors:
            estimate = least_squares(model, compress(model, [measured]), ESTIMATORS[name])
            B = estimate.base.projection
            miss = B @ (estimate.parameters - truth)
            covariance = B @ estimate.covariance @ B.T
            errors[name].append(miss @ np.linalg.solve(covariance, miss) / len(miss))
            scores[name].append(
                np.sum((ForceEquations(model).predict(estimate.parameters, samples) - samples.tau) ** 2, axis=0))
        levels.append(estimate.residual_deviation)
    quiet = [np.mean(scores[name], axis=0)[1:].sum() for name in ("ols", "wls")]
    assert quiet[1] < 0.5 * quiet[0]
    for name in errors:
        assert np.mean(errors[name]) == pytest.approx(1.0, abs=0.25), name
    np.testing.assert_allclose(np.sqrt(np.mean(np.square(levels), axis=0)), deviation, rtol=0.1)


def test_residual_deviation_counts_degrees_of_freedom():
    """Twenty samples a joint and two dozen parameters: without the correction noise would seem half its size."""
    model, samples, _, rng = _robot(5, joints=3, count=20)
    squares = [
        least_squares(model, compress(model, [_noisy(samples, rng, 1.0)]), ESTIMATORS["ols"]).residual_deviation ** 2
        for _ in range(40)]
    np.testing.assert_allclose(np.mean(squares), 1.0, atol=0.15)


def test_generalised_cross_validation_from_compressed_data_is_exact():
    """Scores equal N |(1 - H) b|^2 / tr(1 - H)^2 with the hat matrix of every rank on the whole regressor."""
    model, samples, _, rng = _robot(6, joints=3, count=80)
    samples = _noisy(samples, rng, 1.0)
    options = LeastSquaresOptions(weighting="none", rank="gcv", null_space="zero")
    estimate = least_squares(model, compress(model, [samples]), options)
    A, b = _stacked(model, samples)
    for rank in (0, 1, estimate.rank, estimate.spectrum.count):
        along = A @ estimate.spectrum.directions[:, :rank]
        hat = along @ np.linalg.pinv(along)
        residual = b - hat @ b
        score = len(b) * (residual @ residual) / (len(b) - np.trace(hat)) ** 2
        assert estimate.scores[rank] == pytest.approx(score, rel=1e-9)


@pytest.mark.parametrize("options", [LeastSquaresOptions(rank="gcv"), LeastSquaresOptions(rank="held_out")])
@pytest.mark.parametrize("seed", range(3))
def test_chosen_ranks_are_sensible(options, seed):
    """Few noisy samples: a part of the directions predicts the truth better than all. Hardly any noise: all count."""
    model, samples, truth, rng = _robot(seed, count=60)
    test = random_states(rng, model, 200)
    test = replace(test, tau=ForceEquations(model).predict(truth, test))
    noise = 2.0 * np.sqrt(np.mean(samples.tau**2, axis=0))
    noisy = _noisy(samples, rng, noise)
    chosen, full = least_squares(model, [noisy], options), least_squares(model, [noisy])
    assert chosen.rank < full.rank
    errors = [torque_errors(model, e.parameters, [test]).relative_error for e in (chosen, full)]
    assert errors[0] < errors[1]
    assert least_squares(model, [_noisy(samples, rng, 1e-7 * noise)], options).rank == full.rank


@pytest.mark.parametrize(("seed", "limit"), [(0, 0.01), (1, 0.01), (2, 0.01), (1, 0.002)])
def test_reduced_identification_is_the_closed_form_and_the_constrained_minimum(seed, limit):
    """[Lee2019]_ eq. 4.5.60 written out in base parameters, and its problem 4.5.58-59 by brute force."""
    model, samples, _, rng = _robot(seed, count=60)
    noise = 0.3 * np.sqrt(np.mean(samples.tau**2, axis=0))
    information = compress(model, [_noisy(samples, rng, noise)])
    options = IdentifyOptions(estimator="reduced", variance_limit=limit).least_squares
    estimate = least_squares(model, information, options)
    assert estimate.solution.solver == "reduced"
    kept = estimate.rank
    assert 0 < kept < estimate.base.count
    counted = IdentifyOptions(estimator="reduced", kept_parameters=kept).least_squares  # step b.4
    np.testing.assert_array_equal(least_squares(model, information, counted).parameters, estimate.parameters)
    R, z = information.whitened(1 / least_squares(model, information).residual_deviation)
    H = scaling_matrix("metric", prior_coordinates(model, information))
    sizes = np.linalg.norm(estimate.base.projection @ H, axis=1)  # any base parameters will do: those of like size
    B, A, prior = estimate.base.projection / sizes[:, None], R[:, estimate.base.independent] * sizes, model.prior
    metric = np.linalg.inv(B @ H @ H.T @ B.T)
    values, vectors = np.linalg.eigh(metric)
    root, inverse = (vectors * values**power @ vectors.T for power in (0.5, -0.5))
    variances, directions = np.linalg.eigh(root @ np.linalg.inv(A.T @ A) @ root)
    np.testing.assert_allclose(estimate.variances, variances, rtol=1e-5)
    assert variances[kept - 1] <= limit < variances[kept]
    V = inverse @ directions
    low, high = V[:, :kept], V[:, kept:]
    closed = low * variances[:kept] @ low.T @ A.T @ z + high @ high.T @ metric @ (B @ prior)
    free = scipy.linalg.null_space(high.T @ metric)
    brute = B @ prior + free @ np.linalg.lstsq(A @ free, z - A @ (B @ prior))[0]
    scale = np.abs(closed).max()
    np.testing.assert_allclose(B @ estimate.parameters, brute, atol=1e-6 * scale)
    np.testing.assert_allclose(B @ estimate.parameters, closed, atol=1e-5 * scale)  # which squares the condition number


def test_columns_scaled_by_the_prior_and_truncated():
    """Truncated singular values of the scaled regressor ([vanDerGaag2024]_ eq. 20-21, 27)."""
    model, samples, _, rng = _robot(8, count=60)
    samples = _noisy(samples, rng, 5.0)
    options = LeastSquaresOptions(weighting="none", scaling="prior", rank="gcv", null_space="zero")
    information = compress(model, [samples])
    estimate = least_squares(model, information, options)
    A, b = _stacked(model, samples)
    H = scaling_matrix("prior", prior_coordinates(model, information))
    U, s, Vt = np.linalg.svd(A @ H, full_matrices=False)
    count = estimate.rank
    assert 0 < count < estimate.spectrum.count
    expected = H @ (Vt[:count].T / s[:count] @ (U[:, :count].T @ b))
    np.testing.assert_allclose(estimate.parameters, expected, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize(
    "options",
    [
        ESTIMATORS["wls"], ESTIMATORS["truncated"], ESTIMATORS["reduced"], ESTIMATORS["huber"],
        LeastSquaresOptions(scaling="prior", rank="gcv"), LeastSquaresOptions(rank="held_out")],
    ids=lambda options: f"{options.loss}-{options.scaling}-{options.rank}")
def test_units_do_not_matter(options):
    model, samples, _, rng = _robot(9, joints=3, count=60)
    samples = _noisy(samples, rng, 0.3 * np.sqrt(np.mean(samples.tau**2, axis=0)))
    estimate = least_squares(model, [samples], options)
    other, converted, factors = in_pounds_and_feet(model, samples)
    again = least_squares(other, [converted], options)
    assert again.rank == estimate.rank
    assert (estimate.rank < estimate.spectrum.count) == (options.rank != "full")
    prediction = ForceEquations(model).predict(again.parameters / factors, samples)
    np.testing.assert_allclose(prediction, estimate.torque(samples), rtol=1e-6, atol=1e-6 * np.abs(samples.tau).max())
    scale = np.sqrt(np.diagonal(estimate.covariance))
    np.testing.assert_allclose(again.parameters / factors, estimate.parameters, atol=1e-5 * scale.max())
    np.testing.assert_allclose(again.standard_deviation / factors, scale, rtol=1e-5)


def test_information_and_recordings_agree():
    model, samples, _, rng = _robot(10)
    samples = _noisy(samples, rng, 0.3)
    options = LeastSquaresOptions(rank="gcv", independent=True)
    whole, compressed = (
        least_squares(model, [samples], options), least_squares(model, compress(model, [samples]), options))
    np.testing.assert_allclose(whole.parameters, compressed.parameters, rtol=1e-9)
    np.testing.assert_allclose(whole.effective_counts, len(samples))


def test_inconsistent_bodies_are_told_and_rejected():
    model, samples, truth, rng = _robot(11, count=40)
    held_out = random_states(rng, model, 100)
    held_out = replace(held_out, tau=ForceEquations(model).predict(truth, held_out))
    estimate = least_squares(model, [_noisy(samples, rng, 2.0)], ESTIMATORS["ols"])
    assert not estimate.consistent
    verdict = validate(estimate, [held_out])
    assert not verdict.passed
    assert "not physically consistent" in verdict.message


@pytest.mark.parametrize("name", ESTIMATORS)
def test_identify_takes_estimators_by_name(name):
    model, samples, _, rng = _robot(12, joints=2)
    samples = _noisy(samples, rng, 0.1)
    estimate = identify(model, [samples], IdentifyOptions(estimator=name))
    assert estimate.solution.solver == name
    np.testing.assert_array_equal(estimate.parameters, least_squares(model, [samples], ESTIMATORS[name]).parameters)
    with pytest.raises(IdentificationError, match="takes no constraints"):
        identify(model, [samples], IdentifyOptions(estimator=name), Constraints(total_mass=3.0))
    spring = UserTerm("spring", model.joint_names[0], ("q",), values=(2.0,))
    with pytest.raises(IdentificationError, match=r"robot.terms.spring.values: estimator .* cannot keep known"):
        identify(model.with_layout(terms=(spring,)), [samples], IdentifyOptions(estimator=name))


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda s: [], LeastSquaresOptions(), "no recordings"),
        (lambda s: [s.select(slice(1))], LeastSquaresOptions(), "to fit its parameters"),
        (lambda s: [s.select(slice(3))], LeastSquaresOptions(rank="held_out"), "to fit its parameters"),
        (lambda s: [replace(s, tau=0 * s.tau)], LeastSquaresOptions(), "effort is zero"),
        (lambda s: [replace(s, mask=s.mask & False)], LeastSquaresOptions(), "no usable sample")])
def test_useless_data_is_refused(change, options, message):
    model, samples, _, _ = _robot(13, joints=2, count=100)
    with pytest.raises(IdentificationError, match=message):
        least_squares(model, change(samples), options)


def test_what_needs_recordings_says_so():
    model, samples, _, _ = _robot(13, joints=2, count=100)
    information = compress(model, [samples])
    with pytest.raises(IdentificationError, match="give recordings"):
        least_squares(model, information, ESTIMATORS["huber"])
    with pytest.raises(IdentificationError, match="give recordings or use gcv"):
        least_squares(model, information, LeastSquaresOptions(rank="held_out"))
    with pytest.raises(ConfigurationError, match="choose from full, gcv"):
        LeastSquaresOptions(rank="best")


def test_constant_torque_of_a_robot_that_stands_still():
    """Only what holds the pose up is identified; all else stays at the prior."""
    model, samples, truth, rng = _robot(14, joints=3, count=200)
    still = replace(samples, q=0 * samples.q + 0.3, v=0 * samples.v, a=0 * samples.a)
    still = _noisy(replace(still, tau=ForceEquations(model).predict(truth, still)), rng, 0.01)
    estimate = least_squares(model, [still])
    assert estimate.base.count == 3
    assert torque_errors(model, estimate.parameters, [still]).rms_error.max() < 0.015
    assert estimate.standard_deviation[0] > 0.1 * model.prior[0]


def test_real_arm(datasets):
    """KUKA LWR4: fewer directions help where runs 1 and 2, which are one motion, leave least squares at a loss."""
    folder = datasets / "kuka_lwr4"
    model = load_model(folder / "kuka_lwr4.urdf")
    *fitted, tested = (prepare(load_recording(folder / f"{name}.npz"), model) for name in ("run1", "run2", "run3"))
    errors = {
        name: validate(least_squares(model, fitted, options), [tested]).calibrated.relative_error
        for name, options in ESTIMATORS.items()
        if name in ("ols", "wls", "reduced", "truncated", "wls_rc")}
    assert errors["reduced"] < 0.6 * errors["ols"]
    assert min(errors.values()) > validate(identify(model, fitted), [tested]).calibrated.relative_error


def test_a_motion_that_excites_little_is_fitted_in_few_directions_and_it_is_said(caplog):
    model, samples, _, rng = _robot(3)
    rich, poor = _noisy(samples, rng, 1e-4), _noisy(samples, rng, 30.0)
    automatic = LeastSquaresOptions(rank="auto")
    for given, option in ((rich, LeastSquaresOptions()), (poor, LeastSquaresOptions(rank="variance"))):
        expected, found = least_squares(model, [given], option), least_squares(model, [given], automatic)
        np.testing.assert_allclose(found.parameters, expected.parameters, rtol=1e-12, atol=1e-12)
    assert "directions are excited enough and fitted" in caplog.text
    assert found.rank < found.spectrum.count
