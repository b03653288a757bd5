"""Criteria of excitation: exact gradients over random robots, ties, frames, earlier recordings, reduced sets."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots.random_robots import random_model

from inertid_ros.config.excitation import CRITERIA, CRITERION_SCALINGS, MEASURED, ExcitationOptions
from inertid_ros.core.errors import ConfigurationError, ExcitationError
from inertid_ros.excitation.constraints.constraint import MotionSamples
from inertid_ros.excitation.motion_limits import MotionLimits, motion_limits
from inertid_ros.excitation.planning.criterion import (
    OptimalityCriterion,
    Scaling,
    make_criterion,
    prior_scaling,
    pushforward_root,
)
from inertid_ros.excitation.planning.measurement_regressor import MeasurementRegressor, right_spectrum
from inertid_ros.identification.information.information import EarlierInformation
from inertid_ros.regressors.rigid_body_regressor import joint_torque_regressor
from inertid_ros.robot.layout import ParameterLayout, UserTerm

# Eighth-order central differences: their error is far below that of the gradients at any step that rounding allows.
STENCIL = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
SMOOTH = ("rotor_inertia", "viscous", "offset", "stiffness")  # Coulomb friction is steeper than finite steps resolve


def differences(function, at, direction, step):
    return sum(
        weight * (function(at + k * step * direction) - function(at - k * step * direction)) for k, weight in STENCIL
    ) / step


def robot(rng, joints, terms=SMOOTH):
    model = random_model(rng, joints=joints)
    return replace(model, layout=ParameterLayout(model.layout.links, model.layout.joints, terms))


def limits_of(model):
    one = np.ones(model.joints)
    return MotionLimits(model.joint_names, -one, one, 2 * one, 5 * one, np.linspace(20.0, 80.0, model.joints))


def motion_of(rng, criterion, samples=40):
    return MotionSamples(criterion.measured.chain, *rng.normal(size=(3, samples, criterion.measured.model.joints)), 0.1)


def known_of(rng, model):
    size = model.layout.size
    return EarlierInformation(rng.normal(size=(size, size)), rng.uniform(0.5, 2.0, model.joints))


@pytest.mark.parametrize("kind", CRITERIA)
@pytest.mark.parametrize("scaling", CRITERION_SCALINGS)
@pytest.mark.parametrize("measured", [MEASURED[:1], MEASURED[1:], MEASURED], ids="+".join)
def test_gradients_of_all_criteria_are_exact(kind, scaling, measured):
    seed = CRITERION_SCALINGS.index(scaling) + 10 * len(measured) + 100 * CRITERIA.index(kind)
    rng = np.random.default_rng(seed)
    model = robot(rng, joints=int(rng.integers(2, 6)))
    options = ExcitationOptions(criterion=kind, scaling=scaling, measured=measured)
    known = known_of(rng, model) if seed % 2 else None
    criterion = make_criterion(model, limits_of(model), options, known)
    motion = motion_of(rng, criterion)
    excitation = criterion.evaluate(motion)
    found = criterion.gradient(excitation)
    start = np.stack([motion.q, motion.v, motion.a])
    gradient = np.stack([found.position, found.velocity, found.acceleration])
    for part in range(3):
        direction = rng.normal(size=start.shape) * (np.arange(3) == part)[:, None, None]

        def value(x):
            return criterion.smooth(criterion.evaluate(MotionSamples(motion.chain, *x, motion.step)))

        difference = differences(value, start, direction, 1e-2)
        scale = np.linalg.norm(gradient[part]) * np.linalg.norm(direction[part])
        assert (gradient * direction).sum() == pytest.approx(difference, abs=1e-6 * scale / np.sqrt(direction[0].size))


@pytest.mark.parametrize("seed", range(3))
def test_values_are_those_of_the_regressor(seed):
    rng = np.random.default_rng(seed)
    model = robot(rng, 4, ("viscous",))
    limits = limits_of(model)
    criterion = make_criterion(model, limits)
    motion = motion_of(rng, criterion)
    excitation = criterion.evaluate(motion)
    rows = criterion.measured.regressor(motion, criterion.columns)
    whole, rows = rows, rows.reshape(-1, criterion.count)
    singular = np.linalg.svd(rows / np.linalg.norm(rows, axis=0), compute_uv=False)
    assert excitation.condition_number == pytest.approx(singular[0] / singular[-1], rel=1e-6)
    assert criterion.value(excitation) == excitation.condition_number
    full = joint_torque_regressor(model, motion.q, motion.v, motion.a) / limits.effort[:, None]
    assert np.linalg.matrix_rank(full.reshape(-1, full.shape[2]), tol=1e-9 * np.linalg.norm(full)) <= criterion.count
    # Base columns times B are all columns.
    every = criterion.measured.regressor(motion, np.arange(len(criterion.measured.columns)))
    assert whole @ criterion.base == pytest.approx(every, abs=1e-7 * np.abs(every).max())
    plain = make_criterion(model, limits, ExcitationOptions(scaling="none"))
    covariance = np.linalg.inv(0.1 * rows.T @ rows)
    deviations = np.sqrt(np.linalg.eigvalsh(covariance))
    expected = {
        "condition": deviations[-1] / deviations[0],
        "a": np.sqrt(np.trace(covariance) / len(covariance)),
        "d": np.exp(np.log(deviations).mean()),
        "e": deviations[-1],
    }
    for kind, value in expected.items():
        optimality = replace(plain, optimality=OptimalityCriterion(kind))
        assert optimality.value(optimality.evaluate(motion)) == pytest.approx(value, rel=1e-5)
        smooth = optimality.smooth(optimality.evaluate(motion))
        assert np.log(value) - 1e-9 <= smooth <= np.log(value) + np.log(criterion.count) / 4 + 1e-9


@pytest.mark.parametrize("kind", CRITERIA)
@pytest.mark.parametrize("kept", [0, 3])
def test_smooth_criteria_have_gradients_where_eigenvalues_meet(kind, kept):
    rng = np.random.default_rng(0)
    optimality = OptimalityCriterion(kind, kept)

    def smooth(gram):
        return optimality.smooth(np.linalg.eigvalsh(gram))[0]

    for values in ([1.0] * 4, [0.01, 0.01, 4.0, 4.0, 4.0], np.sort(rng.uniform(0.01, 5, 6))):
        values = np.array(values)
        turn = np.linalg.qr(rng.normal(size=(len(values), len(values))))[0]
        gram = turn @ np.diag(values) @ turn.T
        value, slopes = optimality.smooth(values)
        exact = np.log(optimality.value(values))
        assert exact - 1e-12 <= value <= exact + np.log(len(values)) / 4 + 1e-12
        if kept and len(set(values)) == 1:  # the cut goes through equal eigenvalues: a kink, whose middle is taken
            assert slopes == pytest.approx(slopes.mean() * np.ones(4), abs=1e-12)
            continue
        change = rng.normal(size=gram.shape)
        change += change.T
        difference = differences(smooth, gram, change, 1e-3 * np.min(values))
        slope = (turn * slopes) @ turn.T
        assert (slope * change).sum() == pytest.approx(difference, rel=1e-6, abs=1e-8)


def test_spectrum_is_found_where_the_square_matrix_hides_it():
    rng = np.random.default_rng(0)
    for smallest in (1e-2, 1e-4, 1e-6):
        left, right = (np.linalg.qr(rng.normal(size=(count, 12)))[0] for count in (100, 12))
        singular = np.geomspace(smallest, 1.0, 12)
        eigenvalues, vectors = right_spectrum((left * singular) @ right.T)
        assert np.sqrt(eigenvalues) == pytest.approx(singular, rel=1e-8)
        assert np.abs(np.sum(vectors * right, axis=0)) == pytest.approx(1.0, abs=1e-8)


def test_metric_criteria_do_not_depend_on_the_base():
    rng = np.random.default_rng(3)
    model = robot(rng, 4)
    limits = limits_of(model)
    criterion = make_criterion(model, limits, ExcitationOptions(criterion="a", scaling="metric"))
    motion = motion_of(rng, criterion)
    reference = criterion.evaluate(motion)
    # Base parameters turned and stretched: the pushforward metric makes up for it.
    turn = rng.normal(size=(criterion.count, criterion.count))
    other = Scaling(pushforward_root(criterion.scaling.root, turn))
    rows = reference.rows @ np.linalg.inv(turn)
    eigenvalues, _ = right_spectrum(other.scaled(rows))
    assert eigenvalues == pytest.approx(reference.eigenvalues, rel=1e-6)
    # D is invariant in any fixed scaling ([Lee2019]_ eq. 4.3.42): it differs by a constant.
    steps = []
    for scaling in ("metric", "none", "prior"):
        d = make_criterion(model, limits, ExcitationOptions(criterion="d", scaling=scaling))
        one, two = (d.smooth(d.evaluate(motion_of(np.random.default_rng(k), d))) for k in range(2))
        steps.append(two - one)
    assert steps == pytest.approx([steps[0]] * 3, abs=1e-8)


def test_known_information_is_added_and_weighs_by_deviations():
    rng = np.random.default_rng(5)
    model = robot(rng, 3)
    limits, options = limits_of(model), ExcitationOptions(criterion="e", scaling="metric")
    known = known_of(rng, model)
    alone = make_criterion(model, limits, options, replace(known, root=np.zeros_like(known.root)))
    both = make_criterion(model, limits, options, known)
    motion = motion_of(rng, alone)
    first, second = alone.evaluate(motion), both.evaluate(motion)
    chosen = known.root[:, both.measured.columns[both.columns]]
    assert second.rows.T @ second.rows - first.rows.T @ first.rows == pytest.approx(chosen.T @ chosen)
    assert both.value(second) <= alone.value(first)
    assert (both.measured.joints == known.weights).all()


def test_requests_that_make_no_sense_are_refused():
    model = robot(np.random.default_rng(0), 2)
    limits = limits_of(model)
    with pytest.raises(ExcitationError, match="measured is empty"):
        make_criterion(model, limits, ExcitationOptions(measured=()))
    with pytest.raises(ConfigurationError, match="criterion is 'f'; choose from condition"):
        ExcitationOptions(criterion="f")
    with pytest.raises(ExcitationError, match="kept_parameters is 1000"):
        make_criterion(model, limits, ExcitationOptions(kept_parameters=1000))
    with pytest.raises(ConfigurationError, match="base_deviation has 1"):
        ExcitationOptions(base_deviation=(1.0,))


@pytest.mark.parametrize("scaling", ["metric", "prior"])
def test_scalings_pass_over_user_terms(scaling):
    """Motions are planned for robots with user terms as for those without."""
    terms = (UserTerm("spring", "joint1", ("sin(q)", "cos(q)")), UserTerm("drag", "joint0", ("abs(v)*v",), True))
    model = random_model(np.random.default_rng(0), 3, branched=False, terms=terms)
    scales = []
    for robot in (model, model.with_layout(terms=())):
        columns = MeasurementRegressor(robot, np.ones(3), np.zeros(0)).columns
        base = np.eye(len(columns))
        scales.append(prior_scaling(scaling, robot, motion_limits(robot), columns, base).scaled(base[None]))
    np.testing.assert_allclose(*scales, rtol=1e-12)
