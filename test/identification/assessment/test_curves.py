"""Curves of predictions and friction."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic_calibration import COULOMB, VISCOUS, calibrated_case

from inertid_ros.identification.assessment.curves import (
    MAX_CURVE_POINTS,
    MIN_CURVE_POINTS,
    friction_curves,
    prediction_curves,
)


@pytest.fixture(scope="module")
def outcome():
    return calibrated_case()[1]


def test_curves_are_what_the_estimate_predicts(outcome):
    samples, estimate = outcome.held_out[0], outcome.estimate
    (curves,) = prediction_curves(estimate, [samples])
    rows = np.searchsorted(samples.time - samples.time[0], curves.time)
    assert MIN_CURVE_POINTS <= len(rows) <= MAX_CURVE_POINTS and samples.usable[rows].all()
    np.testing.assert_array_equal(curves.measured, samples.tau[rows])
    np.testing.assert_allclose(curves.calibrated, estimate.torque(samples)[rows])
    np.testing.assert_allclose(curves.given, estimate.equations.predict(estimate.prior, samples)[rows])


def test_stamps_of_the_clock_keep_their_digits(outcome):
    samples = outcome.held_out[0]
    (curves,) = prediction_curves(outcome.estimate, [samples])
    (later,) = prediction_curves(outcome.estimate, [replace(samples, time=samples.time + 1.7e9)])
    np.testing.assert_allclose(later.time, curves.time, atol=1e-6)


def test_the_band_holds_the_residual(outcome):
    (curves,) = prediction_curves(outcome.estimate, outcome.held_out)
    assert (curves.deviation >= outcome.estimate.residual_deviation).all()
    within = np.abs(curves.calibrated - curves.measured) <= 3 * curves.deviation
    assert within.mean() > 0.97


def test_what_was_not_measured_is_left_out(outcome):
    samples = outcome.held_out[0]
    measured = np.ones(samples.tau.shape, dtype=bool)
    measured[:, 1] = False
    (curves,) = prediction_curves(outcome.estimate, [replace(samples, measured=measured)])
    assert np.isnan(curves.measured[:, 1]).all() and np.isfinite(curves.measured[:, 0]).all()


def test_friction_is_found_beside_its_data(outcome):
    curves = friction_curves(outcome.estimate, outcome.train)
    assert [curve.joint for curve in curves] == list(outcome.estimate.model.joint_names)
    for curve, residual in zip(curves, outcome.estimate.residual_deviation, strict=True):
        true = VISCOUS * curve.speeds + COULOMB * np.sign(curve.speeds)
        moving = np.abs(curve.speeds) > 0.1
        assert np.abs(curve.friction - true)[moving].max() < 0.1
        assert (np.abs(curve.friction - true) < 4 * curve.deviation + 0.01)[moving].all()
        shown = np.isfinite(curve.torque)
        off = curve.torque[shown] - np.interp(curve.velocity[shown], curve.speeds, curve.friction)
        assert shown.any() and np.sqrt(np.mean(off**2)) < 2 * residual


def test_without_friction_there_are_no_curves(outcome):
    model = outcome.estimate.model.with_layout(drive_terms=(), couplings=(), terms=())
    equations = type(outcome.estimate.equations)(model)
    assert friction_curves(replace(outcome.estimate, equations=equations), outcome.train) == ()
