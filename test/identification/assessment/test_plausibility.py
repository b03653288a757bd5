"""Masses and stiffness of a result against those that such a robot can have."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic_calibration import synthetic_case
from support.robots.random_robots import random_model, random_states

from inertid_ros.core.findings import Severity
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.dynamics.newton_euler import rigid_torque
from inertid_ros.identification.assessment.plausibility import plausibility
from inertid_ros.identification.identify import identify
from inertid_ros.regressors.force_equations import predict_torque
from inertid_ros.robot.perturbation import perturb


@pytest.fixture(scope="module")
def estimate():
    case = synthetic_case(3)
    return identify(case.given, [prepare(case.recordings[0], case.given)])


def _heavier(estimate, link, factor):
    parameters = np.array(estimate.parameters)
    parameters[estimate.layout.body(link)] *= factor
    return replace(estimate, parameters=parameters)


def test_a_good_result_has_no_finding(estimate):
    assert plausibility(estimate) == ()


def test_a_link_that_no_description_is_wrong_by(estimate):
    heaviest = int(np.argmax(estimate.bodies[:, 0]))
    mild, *_ = plausibility(_heavier(estimate, heaviest, 5.0))
    found = plausibility(_heavier(estimate, heaviest, 500.0))
    assert {finding.cause for finding in (mild, *found)} == {"mass_implausible"}
    assert any(finding.subjects == (estimate.layout.links[heaviest],) for finding in found)
    assert max(finding.severity for finding in found) is Severity.REJECT
    assert any(finding.subjects == () for finding in found)  # the robot as a whole
    assert "robot.effort_scale" in found[0].remedy


@pytest.mark.parametrize("share, told", [(0.0, True), (0.01, False), (0.3, False)])
def test_efforts_of_a_robot_without_friction_may_be_computed(share, told):
    """A hundredth of the torque, as sensors behind the gears may show it, is friction."""
    model = random_model(np.random.default_rng(4), 3, branched=False, drive_terms=("viscous", "coulomb", "offset"))
    samples = random_states(np.random.default_rng(5), model, 3000)
    bodies = perturb(model, np.random.default_rng(6)).ravel()
    rms = np.sqrt(np.mean(rigid_torque(model, bodies.reshape(-1, 10), samples.q, samples.v, samples.a) ** 2, axis=0))
    truth = np.concatenate([bodies, np.zeros(3), share * rms, np.zeros(3)])
    noise = 1e-3 * rms * np.random.default_rng(7).normal(size=samples.tau.shape)
    samples = replace(samples, tau=predict_torque(model, truth, samples) + noise)
    found = plausibility(identify(model, [samples]))
    assert ("effort_without_friction" in [finding.cause for finding in found]) == told


def test_a_spring_that_holds_a_joint_is_told(estimate):
    parameters = np.array(estimate.parameters)
    parameters[estimate.layout.drive("stiffness").start] = 1e3
    (finding,) = plausibility(replace(estimate, parameters=parameters))
    assert finding.cause == "parameter_implausible" and finding.severity is Severity.NOTICE
