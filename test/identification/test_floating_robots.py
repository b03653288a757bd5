"""Robots that float, identified without torque or acceleration."""

import numpy as np
import pytest
from support.robots.floating_robots import diver, motion, satellite, with_prior
from support.robots.space_robot import OFFSET, TRUE, WHEEL_RANGE, bodies, space_robot

from inertid_ros.config.identification import ESTIMATORS
from inertid_ros.core.errors import IdentificationError
from inertid_ros.core.samples import Samples
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.excitation.planning.interval_motion import IntervalMotion, direction_combinations
from inertid_ros.identification.assessment.validation import validate
from inertid_ros.identification.base_parameters.closed_form import closed_form_base_parameters
from inertid_ros.identification.identify import IdentifyOptions, identify
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.information.information_file import information_bytes, information_from_bytes
from inertid_ros.identification.least_squares import least_squares
from inertid_ros.regressors.equations import equations_of
from inertid_ros.simulation.free_floating import RATE_NOISE, float_freely, measured


def exact(model, found):
    """Samples of the true motion."""
    every = np.ones((len(found.time), 6), dtype=bool)
    measured_side = np.zeros(every.shape)
    measured_side[:, 3:] = -found.speeds @ model.wheels.axes
    rates = np.hstack([found.twist, found.v])
    return Samples(
        found.time, np.hstack([found.pose, found.q]), rates, np.zeros_like(rates), measured_side, every, every[:, 0])


def test_all_52_values_of_the_space_robot_by_least_squares():
    """Without noise the estimates are the true values to 1e-9 of the largest ([Naveen2019]_ sec. 6.3)."""
    robot, guess = space_robot(TRUE), space_robot(OFFSET)
    rng = np.random.default_rng(0)
    run = IntervalMotion(
        direction_combinations([3, 0, 1, 5, 2, 4, 8, 6, 7], 64), np.concatenate([rng.uniform(-2, 2, 6), np.zeros(3)]),
        np.concatenate([np.full(6, 0.04), np.full(3, WHEEL_RANGE)]), 1.0)
    found = float_freely(robot, bodies(TRUE), run.trajectory, 20.0)
    for name in ("ols", "wls"):
        estimate = least_squares(equations_of(guess, "momentum"), [exact(robot, found)], ESTIMATORS[name])
        base = closed_form_base_parameters(robot)
        np.testing.assert_allclose(
            base.projection @ estimate.parameters, base.projection @ robot.prior, rtol=1e-9, atol=1e-9)
        assert estimate.base.count == 52


@pytest.mark.parametrize("make", [satellite, diver])
@pytest.mark.parametrize("equation_type", ["momentum", "momentum_change"])
def test_other_shapes_need_no_other_code(make, equation_type):
    """One arm of seven joints on a satellite; a diving vehicle with a sliding boom, a tail and a wheel on the boom."""
    model = make(np.random.default_rng(1))
    guess = with_prior(model, np.random.default_rng(2))
    start = np.array([0.2, 0.1, -0.3, 0.1, -0.05, 0.2]) if equation_type == "momentum_change" else None
    recordings = [
        measured(
            model, float_freely(model, model.body_prior, motion(model, 40, seed).trajectory, 50.0, start),
            (1e-4, 1e-4, 1e-4), np.random.default_rng(seed), f"flight {seed}")
        for seed in range(2)]
    train, held_out = (prepare(r, guess, equation_type=equation_type) for r in recordings)
    equations = equations_of(guess, equation_type)
    estimate = identify(equations, [train], IdentifyOptions(equations=equation_type))
    assert estimate.consistent
    base = closed_form_base_parameters(model)
    assert estimate.base.count == base.count
    true = base.projection @ model.prior
    error, before = (np.abs(base.projection @ x - true) / np.abs(true) for x in (estimate.parameters, guess.prior))
    assert np.median(error) < 0.03 < 3 * np.median(before)
    result = validate(estimate, [held_out])
    assert result.calibrated.relative_error < 0.1 * result.prior.relative_error


def test_information_of_momentum_survives_a_file():
    model = satellite(np.random.default_rng(0), 3)
    found = float_freely(model, model.body_prior, motion(model, 16).trajectory, 50.0)
    recording = measured(model, found, RATE_NOISE, np.random.default_rng(0), "flight")
    equations = equations_of(model, "momentum")
    information = compress(equations, [prepare(recording, model, equation_type="momentum")])
    again = information_from_bytes(information_bytes(information), "copy")
    np.testing.assert_array_equal(again.noise, information.noise)
    both = information + again
    np.testing.assert_allclose(both.noise, information.noise)
    np.testing.assert_allclose(both.deviation(model.prior), information.deviation(model.prior), rtol=1e-6)
    changes = prepare(recording, model, equation_type="momentum_change")
    with pytest.raises(IdentificationError, match="cannot be merged"):
        information + compress(equations_of(model, "momentum_change"), [changes])


def test_weights_do_not_run_away():
    """The residual of linear momentum, which is always zero, must not decide its weight: parameters would shrink."""
    model = satellite(np.random.default_rng(4), 4)
    found = float_freely(model, model.body_prior, motion(model, 40).trajectory, 50.0)
    recording = measured(model, found, (2e-3, 2e-3, 2e-3), np.random.default_rng(0), "noisy flight")
    samples = prepare(recording, model, equation_type="momentum")
    estimate = least_squares(equations_of(model, "momentum"), [samples], ESTIMATORS["wls"])
    base = closed_form_base_parameters(model)
    mass = int(np.flatnonzero(base.independent == 0)[0])
    ratio = (base.projection @ estimate.parameters)[mass] / (base.projection @ model.prior)[mass]
    assert 0.8 < ratio < 1.1


def test_wheels_that_stand_still_leave_the_scale_open():
    model = satellite(np.random.default_rng(0), 3)
    run = motion(model, 12)
    still = IntervalMotion(run.directions, run.start, run.range * np.repeat([1.0, 1e-12], 3), 1.0)
    found = float_freely(model, model.body_prior, still.trajectory, 50.0)
    recording = measured(model, found, (1e-6, 1e-6, 0.0), np.random.default_rng(0), "wheels off")
    samples = prepare(recording, model, equation_type="momentum")
    with pytest.raises(IdentificationError, match="wheels off: the reaction wheels hardly turn"):
        identify(equations_of(model, "momentum"), [samples])


def test_what_one_wheel_leaves_open_is_told():
    """A robot whose joints stand still: only what the base alone shows is identified, the rest stays at the prior."""
    model = satellite(np.random.default_rng(0), 2)
    run = motion(model, 12)
    held = IntervalMotion(run.directions, run.start, run.range * np.repeat([1e-9, 1.0], (2, 3)), 1.0)
    found = float_freely(model, model.body_prior, held.trajectory, 50.0)
    recording = measured(model, found, (1e-6, 1e-6, 0.0), np.random.default_rng(0), "arm still")
    samples = prepare(recording, model, equation_type="momentum")
    estimate = identify(equations_of(model, "momentum"), [samples], IdentifyOptions(estimator="ols"))
    assert estimate.base.count < closed_form_base_parameters(model).count
