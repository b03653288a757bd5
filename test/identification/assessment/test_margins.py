"""Coverage, correlated pairs, margins of feasibility, next action, and comparison of results."""

import shlex
from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic_calibration import calibrated_case

from inertid_ros.cli.main import command_parser
from inertid_ros.core.findings import CAUSES, Finding, Severity
from inertid_ros.core.inertial_parameters import from_mass_com_inertia
from inertid_ros.identification.assessment.bodies import correlated_pairs, feasibility_margins
from inertid_ros.identification.assessment.curves import motion_coverage
from inertid_ros.identification.assessment.gate import GateDecision, next_action
from inertid_ros.identification.assessment.torque_confidence import ParameterSet, compare_results


@pytest.fixture(scope="module")
def outcome():
    return calibrated_case()[1]


def test_coverage_is_that_of_the_samples(outcome):
    samples = outcome.train[0]
    confidence = outcome.assessment.confidence
    for joint, found in enumerate(motion_coverage(outcome.estimate.model, outcome.train, confidence)):
        positions, speeds = samples.q[samples.usable, joint], np.abs(samples.v[samples.usable, joint])
        assert (found.lowest, found.highest, found.fastest) == (positions.min(), positions.max(), speeds.max())
        limits = outcome.estimate.model.limits
        assert found.range_used == pytest.approx(np.ptp(positions) / (limits.upper - limits.lower)[joint])
        assert found.reversals > 2 and found.torque_deviation == confidence.shares[joint]
        assert found.advice == ""  # torque is known to a per mille


def test_advice_names_the_joints_whose_torque_is_known_least(outcome):
    confidence = outcome.assessment.confidence
    confidence = replace(confidence, deviation=confidence.torque * [0.5, 0.01, 0.2])
    slow = [replace(samples, v=0.01 * samples.v) for samples in outcome.train]
    advice = [found.advice for found in motion_coverage(outcome.estimate.model, slow, confidence)]
    assert "faster" in advice[0] and advice[1] == "" and "faster" in advice[2]


def test_correlated_pairs_are_those_of_the_covariance(outcome):
    estimate = outcome.estimate
    covariance = np.diag(np.diagonal(estimate.covariance))
    first, second = estimate.base.alone[:2]
    covariance[first, second] = covariance[second, first] = -0.95 * np.sqrt(
        covariance[first, first] * covariance[second, second])
    (pair,) = [pair for pair in correlated_pairs(replace(estimate, covariance=covariance)) if pair.correlation < -0.9][
        :1]
    names = estimate.layout.names
    assert {pair.first, pair.second} == {names[first], names[second]} and pair.correlation == pytest.approx(-0.95)


def test_margins_of_a_ball_a_plate_and_an_impossible_body(outcome):
    estimate, parameters = outcome.estimate, outcome.estimate.parameters.copy()
    at = np.array([0.1, 0.0, 0.0])
    for index, moments in enumerate([(1.0, 1.0, 1.0), (1.0, 1.0, 2.0), (1.0, 1.0, 3.0)]):
        parameters[10 * index : 10 * index + 10] = from_mass_com_inertia(2.0, at, np.diag(moments))
    ball, plate, impossible = feasibility_margins(replace(estimate, parameters=parameters))
    assert ball.triangle == pytest.approx(1.0) and ball.consistent and ball.relative_eigenvalue > 0
    assert plate.triangle == pytest.approx(0.0, abs=1e-9)
    assert impossible.triangle < 0 and not impossible.consistent and impossible.relative_eigenvalue < 0
    same = feasibility_margins(replace(estimate, parameters=estimate.prior))
    assert [each.relative_eigenvalue for each in same] == pytest.approx([1.0] * 3)


@pytest.mark.parametrize("cause", CAUSES)
def test_every_reason_has_a_next_action_with_a_command(cause):
    gate = GateDecision.from_findings([Finding(cause, Severity.REJECT, "joint0: much", "do this", ("joint0",))])
    action = next_action(gate, {"URDF": "robot.urdf"})
    assert action.text == "do this" and action.command.startswith("inertid ") and " URDF" not in action.command
    assert command_parser().parse_args(shlex.split(action.command)[1:])


def test_the_next_command_keeps_the_settings_of_the_last():
    gate = GateDecision.from_findings([Finding("little_excited", Severity.REJECT, "joint0: much", "plan")])
    command = "inertid identify a b --urdf r.urdf --lock finger=0 --config my.yaml --set prepare.stamps=x --output out"
    names = replace(calibrated_case()[1].provenance, command=command).names_in_commands
    planned = "inertid excite --urdf r.urdf --config my.yaml --lock finger=0 --prior out --output plan"
    assert next_action(gate, names).command == planned
    command = "inertid identify --set prepare.stamps=x a --urdf r.urdf --prior one two -q --output out"
    names = replace(calibrated_case()[1].provenance, command=command).names_in_commands
    assert names["OPTIONS"] == "--set prepare.stamps=x --prior one two"


def test_a_result_to_use_is_to_be_used():
    assert "calibrated.urdf" in next_action(GateDecision.from_findings([]), {}).text


def test_results_differ_by_what_was_changed(outcome):
    estimate = outcome.estimate
    own = ParameterSet(estimate.model, estimate.parameters, estimate.covariance)
    changed = estimate.parameters.copy()
    column = estimate.layout.names.index("joint1.viscous")
    changed[column] += 10 * estimate.standard_deviation[column]
    distances, torque_difference, changes = compare_results(own, replace(own, parameters=changed))
    assert changes[0].name == "joint1.viscous"
    assert changes[0].deviations == pytest.approx(10 / np.sqrt(2))
    assert all(change.deviations == 0 for change in changes[1:])
    assert np.all(distances < 1e-6) and [value > 1e-9 for value in torque_difference.values()] == [False, True, False]
