"""Masses and stiffness of a result against those that such a robot can have."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic_calibration import synthetic_case
from support.robots.random_robots import random_model, random_states

from inertid_ros.core.findings import Severity
from inertid_ros.core.inertial_parameters import transform
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.identification.assessment.plausibility import plausibility
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.delay import Delay
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.model import load_model


@pytest.fixture(scope="module")
def estimate():
    case = synthetic_case(3)
    return identify(case.given, [prepare(case.recordings[0], case.given)])


def _counted(findings):
    return [finding for finding in findings if finding.severity > Severity.NOTICE]


@pytest.mark.parametrize("seed", range(4))
def test_a_mass_that_no_torque_shows_never_counts(seed):
    """A cable's torque at the first joint makes the first link heavy by way of its first moment.

    Its mass enters no torque on a revolute joint, however small the deviation that the prior gives it.
    """
    case = synthetic_case(seed, recordings=1, duration=12.0)
    samples = prepare(case.recordings[0], case.given)
    size = 5 * np.sqrt(np.mean(samples.tau[:, 0] ** 2))
    spoilt = samples.tau.copy()
    spoilt[:, 0] += size * np.cos(samples.q[:, 0] + 0.3 * seed)
    estimate = identify(case.given, [replace(samples, tau=spoilt)])
    findings, first = tuple(plausibility(estimate)), estimate.layout.links[0]
    assert all(first not in finding.subjects for finding in _counted(findings))
    heavier = estimate.bodies[0, 0] / case.given.consistent_body_prior[0, 0]
    if seed in (1, 6, 7):
        assert heavier > 50
        (finding,) = [finding for finding in findings if finding.subjects == (first,)]
        assert finding.cause == "mass_open" and finding.severity is Severity.NOTICE and "deviation" in finding.evidence
        assert not any(finding.subjects for finding in _counted(findings))  # gravity's whole torque is far off


@pytest.mark.parametrize(("seed", "severity"), [(1, Severity.REJECT), (3, Severity.REJECT), (4, Severity.CARE)])
def test_a_mass_that_the_data_show_counts(seed, severity):
    """The last link of the URDF has a thirtieth of its mass."""
    case = synthetic_case(seed, recordings=1, duration=12.0)
    bodies = case.given.consistent_body_prior.copy()
    bodies[-1] /= 30
    model = case.given.with_prior_bodies(bodies)
    findings = tuple(plausibility(identify(model, [prepare(case.recordings[0], model)])))
    last = model.link_names[-1]
    assert severity in [finding.severity for finding in findings if finding.subjects == (last,)]
    assert all(finding.subjects in ((), (last,)) for finding in _counted(findings))


@pytest.mark.parametrize(("deviation", "cause"), [(9.1, "mass_open"), (0.5, "mass_implausible")])
def test_a_mass_counts_by_its_interval(estimate, deviation, cause):
    """The same mass with a large and with a small deviation."""
    heaviest = int(np.argmax(estimate.bodies[:, 0]))
    column = estimate.layout.body(heaviest).start
    given = estimate.model.consistent_body_prior[heaviest, 0]
    parameters, covariance = np.array(estimate.parameters), estimate.covariance.copy()
    parameters[column] = 30 * given
    covariance[column] = covariance[:, column] = 0.0
    covariance[column, column] = (deviation * given) ** 2 * (30 / 19.57) ** 2
    findings = tuple(plausibility(replace(estimate, parameters=parameters, covariance=covariance)))
    (finding,) = [finding for finding in findings if finding.subjects]
    assert finding.cause == cause and (finding.severity is Severity.REJECT) == (cause == "mass_implausible")


def _heavier(estimate, link, factor):
    parameters = np.array(estimate.parameters)
    parameters[estimate.layout.body(link)] *= factor
    return replace(estimate, parameters=parameters)


def test_a_good_result_has_no_finding(estimate):
    assert tuple(plausibility(estimate)) == ()


def test_a_link_that_no_description_is_wrong_by(estimate):
    heaviest = int(np.argmax(estimate.bodies[:, 0]))
    mild, *_ = tuple(plausibility(_heavier(estimate, heaviest, 5.0)))
    found = tuple(plausibility(_heavier(estimate, heaviest, 500.0)))
    assert {finding.cause for finding in (mild, *found)} == {"mass_implausible"}
    assert any(finding.subjects == (estimate.layout.links[heaviest],) for finding in found)
    assert max(finding.severity for finding in found) is Severity.REJECT
    assert any(finding.subjects == () for finding in found)  # the robot as a whole
    assert "robot.effort_scale" in found[0].remedy


@pytest.mark.parametrize("seed", range(6))
def test_a_body_far_from_its_link_is_told_unless_its_shape_is_there(seed):
    """The mass of the last link is far away; a URDF that has a long tool there is right."""
    rng = np.random.default_rng(seed)
    model = next(model for model in iter(lambda: random_model(rng, 3, branched=False), None) if not model.slides.any())
    urdf, direction = model.urdf, rng.normal(size=3)  # slides do not show where the mass on them is
    place = 2.0 * direction / np.linalg.norm(direction)
    bodies = perturb(model, rng)
    bodies[-1] = transform(bodies[-1], np.eye(3), place)
    found = [_of_places(load_model(text), bodies) for text in (urdf, _with_shape(urdf, "link2", place))]
    assert found == [[("link2",)], []]
    assert _of_places(model, perturb(model, rng)) == []


def _with_shape(urdf, link, place):
    shape = f'<origin xyz="{" ".join(map(str, place))}"/><geometry><sphere radius="0.7"/></geometry>'
    return urdf.replace(f'<link name="{link}">', f'<link name="{link}"><collision>{shape}</collision>')


def _of_places(model, bodies):
    """Subjects of findings on the place of mass, of a fit to random states of a robot with these bodies."""
    samples = random_states(np.random.default_rng(5), model, 2000)
    tau = rigid_torque(model, bodies, samples.q, samples.v, samples.a)
    noise = 0.01 * tau.std(axis=0) * np.random.default_rng(7).normal(size=tau.shape)
    found = plausibility(identify(model, [replace(samples, tau=tau + noise)]))
    return [finding.subjects for finding in found if finding.cause == "mass_outside" and finding.severity]


@pytest.mark.parametrize(("factor", "severity"), [(2.0, None), (4.0, Severity.CARE), (60.0, Severity.REJECT)])
def test_the_total_mass_counts_from_three_and_from_thirty_times_on(estimate, factor, severity):
    shown = estimate.shown_by_data[[estimate.layout.body(body).start for body in range(len(estimate.layout.links))]]
    prior = estimate.model.consistent_body_prior
    parameters, total = np.array(estimate.parameters), prior[:, 0].sum()
    # A mass that the data leave open counts as in the URDF, so that the others make all of the change.
    scale = 1 + (factor - 1) * total / prior[shown, 0].sum()
    for body in np.flatnonzero(shown).tolist():
        parameters[estimate.layout.body(body)] = scale * prior[body]
    found = plausibility(replace(estimate, parameters=parameters, covariance=0 * estimate.covariance))
    totals = [finding.severity for finding in found if not finding.subjects and finding.cause == "mass_implausible"]
    assert totals == ([] if severity is None else [severity])


@pytest.mark.parametrize("share, told", [(0.0, True), (0.01, False), (0.3, False)])
def test_efforts_of_a_robot_without_friction_may_be_computed(share, told):
    """A hundredth of the torque, as sensors behind the gears may show it, is friction."""
    model = random_model(np.random.default_rng(4), 3, branched=False, drive_terms=("viscous", "coulomb", "offset"))
    samples = random_states(np.random.default_rng(5), model, 3000)
    bodies = perturb(model, np.random.default_rng(6)).ravel()
    rms = np.sqrt(np.mean(rigid_torque(model, bodies.reshape(-1, 10), samples.q, samples.v, samples.a) ** 2, axis=0))
    truth = np.concatenate([bodies, np.zeros(3), share * rms, np.zeros(3)])
    noise = 1e-3 * rms * np.random.default_rng(7).normal(size=samples.tau.shape)
    samples = replace(samples, tau=ForceEquations(model).predict(truth, samples) + noise)
    found = tuple(plausibility(identify(model, [samples])))
    assert ("effort_without_friction" in [finding.cause for finding in found]) == told


@pytest.mark.parametrize(("gain", "count"), [(0.0, 0), (0.3, 1)])
def test_a_delay_at_the_border_counts_if_it_predicts_better(estimate, gain, count):
    at_border = replace(estimate, delay_found=Delay(0.05, float("inf"), gain))
    assert [finding.severity for finding in plausibility(at_border)] == count * [Severity.CARE]


def test_a_spring_that_holds_a_joint_is_told(estimate):
    parameters = np.array(estimate.parameters)
    parameters[estimate.layout.drive("stiffness").start] = 1e3
    (finding,) = plausibility(replace(estimate, parameters=parameters))
    assert finding.cause == "parameter_implausible" and finding.severity is Severity.NOTICE
    covariance = estimate.covariance.copy()
    column = estimate.layout.drive("stiffness").start
    covariance[column, column] = 1e6
    assert tuple(plausibility(replace(estimate, parameters=parameters, covariance=covariance))) == ()
