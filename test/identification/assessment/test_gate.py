"""The gate: which findings make which verdict, and which errors, borders and solutions make which findings."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from support.recordings.synthetic_calibration import synthetic_case

from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.identification.assessment.gate import (
    GateDecision,
    Verdict,
    check_borders,
    check_excitation,
    check_solution,
)
from inertid_ros.identification.assessment.torque_confidence import TorqueScale, torque_confidence
from inertid_ros.identification.assessment.validation import (
    TorqueErrors,
    Validation,
    check_errors,
    validate,
    without_refuted,
)
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.solvers.constraints import Constraints

SHOULDER, WRIST = 0, 1


def finding(severity: Severity, evidence: str = "x") -> Finding:
    return Finding("delay", severity, evidence, "do something")


def findings(relative=(0.05, 0.3), error=(5.0, 0.2), given=(30.0, 0.5), noise=(1.0, 0.05), sliding=(5.0, 0.2),
             scale=((100.0, 1.0), (80.0, 0.9))):  # fmt: skip
    """Findings on a shoulder with 100 N m and a wrist with 1 N m, both well explained by default."""

    def errors(share, rms):
        rest = dict.fromkeys(("rms_torque", "rms_error_sliding", "rms_error_resting", "r_squared"), np.zeros(2))
        return TorqueErrors(
            share, rms_error=np.array(rms), samples=1, recordings=(), quantity="torque", unit="N m or N",
            noise=np.array(noise), **rest)

    model = SimpleNamespace(prior_name="URDF as given")
    equations = SimpleNamespace(channels=("shoulder", "wrist"), count=2, model=model)
    prior = None if given is None else errors(relative[1], given)
    expected = None if sliding is None else (np.array(sliding), np.array([4.0, 0.15]))
    return check_errors(equations, errors(relative[0], error), prior, TorqueScale(*map(np.array, scale)), expected)


@pytest.mark.parametrize(
    ("severities", "verdict"),
    [
        ((), Verdict.USE), ((Severity.NOTICE,), Verdict.USE), ((Severity.NOTICE, Severity.CARE), Verdict.CARE),
        ((Severity.CARE, Severity.REJECT, Severity.NOTICE), Verdict.REJECT), ((Severity.REFUSE,), Verdict.REJECT)])
def test_the_gravest_finding_decides(severities, verdict):
    decision = GateDecision.from_findings(finding(severity) for severity in severities)
    assert decision.verdict is verdict
    assert len(decision.reasons) + len(decision.notices) == len(severities)
    assert [each.severity for each in decision.reasons] == sorted(
        (each for each in severities if each >= Severity.CARE), reverse=True)


def test_a_finding_made_twice_counts_once_and_the_summary_counts_the_others():
    decision = GateDecision.from_findings([finding(Severity.CARE), finding(Severity.CARE), finding(Severity.CARE, "y")])
    assert len(decision.reasons) == 2 and decision.summary.endswith("; and 1 further reason")
    assert GateDecision.from_findings([]).summary == ""
    content = decision.content()
    assert content["verdict"] == "use with care" and content["reasons"][0]["severity"] == "care"


def test_well_explained_torque_has_no_findings():
    assert findings() == ()
    assert findings(given=None, sliding=None) == ()


@pytest.mark.parametrize(
    ("changes", "cause", "subjects", "severity"),
    [
        ({"relative": (1.2, 3.0)}, "worse_than_nothing", (), Severity.REJECT),
        ({"relative": (0.4, 0.3)}, "worse_than_urdf", (), Severity.REJECT),
        ({"relative": (0.0205, 0.02)}, "worse_than_urdf", (), Severity.CARE),  # of a URDF that was right already
        ({"error": [5.0, 0.8], "given": [30.0, 0.9]}, "above_noise", ("wrist",), Severity.CARE),
        ({"error": [70.0, 0.2], "given": [80.0, 0.5]}, "above_noise", ("shoulder",), Severity.CARE),
        ({"error": [90.0, 0.2], "given": [95.0, 0.5]}, "above_noise", ("shoulder",), Severity.REJECT),
        # A joint with hardly any torque never makes the whole result useless.
        ({"error": [5.0, 3.0], "given": [30.0, 4.0]}, "above_noise", ("wrist",), Severity.CARE),
        ({"error": [10.0, 0.2], "given": [8.0, 0.5]}, "worse_than_urdf", ("shoulder",), Severity.NOTICE),
        ({"error": [20.0, 0.2], "given": [10.0, 0.5]}, "worse_than_urdf", ("shoulder",), Severity.CARE),
        ({"error": [45.0, 0.2], "given": [10.0, 0.5]}, "worse_than_urdf", ("shoulder",), Severity.REJECT),
        ({"error": [5.0, 0.45], "given": [30.0, 0.1]}, "worse_than_urdf", ("wrist",), Severity.CARE),
        ({"sliding": [30.0, 0.2]}, "does_not_generalise", ("shoulder",), Severity.CARE)])
def test_each_error_has_its_finding(changes, cause, subjects, severity):
    (found,) = findings(**changes)
    assert (found.cause, found.subjects, found.severity) == (cause, subjects, severity)
    assert all(name in str(found) for name in subjects)


@pytest.mark.parametrize(
    "changes",
    [
        {"error": [5.0, 0.8], "given": [30.0, 0.7], "noise": [1.0, 0.3]},  # the sensor's noise is as large
        {"sliding": [20.0, 0.2]},  # not expected, but small
        {"given": [4.9, 0.5]},  # hardly worse
        {"scale": ((100.0, 1.0), (5.0, 0.9))},  # nothing varies, and the error is small
        {"scale": ((100.0, 0.0), (80.0, 0.0)), "error": [5.0, 0.1]},  # not measured
    ])
def test_what_is_noise_or_small_is_no_finding(changes):
    assert findings(**changes) == ()


@pytest.fixture(scope="module")
def case():
    return synthetic_case(3, duration=10.0)


@pytest.fixture(scope="module")
def samples(case):
    return [prepare(recording, case.given) for recording in case.recordings]


@pytest.fixture(scope="module")
def estimate(case, samples):
    return identify(case.given, samples[:1])


def test_a_good_result_has_no_findings(estimate, samples):
    assert validate(estimate, samples[1:]).findings == ()
    assert tuple(check_borders(estimate, Constraints())) == ()


def test_bodies_that_cannot_exist_and_other_stops_are_rejected(estimate):
    wrong = replace(estimate, parameters=-estimate.parameters)
    (found,) = check_solution(wrong)
    assert found.cause == "inconsistent" and set(found.subjects) == set(estimate.model.link_names)
    stopped = replace(estimate, solution=replace(estimate.solution, status="inaccurate"))
    assert [each.cause for each in check_solution(stopped)] == ["not_optimal"]


def test_bodies_at_the_border_of_consistency_are_told(case, samples, estimate):
    """The Euclidean distance does not keep bodies away from the border, unlike the default."""
    assert not list(check_solution(estimate))
    found = list(check_solution(identify(case.given, samples[:1], IdentifyOptions(regularizer="euclidean"))))
    assert [(each.cause, each.severity) for each in found] == [("border_reached", Severity.CARE)]
    assert found[0].subjects and "identify.regularizer=entropic" in found[0].remedy


def test_borders_that_the_data_wants_to_cross_are_told(case, samples, estimate):
    link = case.given.link_names[-1]
    mass = estimate.bodies[-1, 0]
    names = dict(zip(estimate.layout.names, estimate.parameters, strict=True))
    friction = {"joint0.viscous": 0.5 * names["joint0.viscous"]}
    tight = Constraints(mass={link: (1.1 * mass, 2.0 * mass)}, at_most=friction)
    bounded = identify(case.given, samples[:1], constraints=tight)
    found = tuple(check_borders(bounded, tight))
    assert {each.subjects for each in found} == {("joint0",), (link,)}
    assert {each.severity for each in found} == {Severity.CARE}
    wide = Constraints(mass={link: (0.5 * mass, 2.0 * mass)}, at_most={"joint0.viscous": 10.0})
    assert tuple(check_borders(identify(case.given, samples[:1], constraints=wide), wide)) == ()


def test_a_border_that_only_the_prior_is_beyond_is_a_notice(case, samples, estimate):
    """No torque depends on the mass of the first link of an arm on a fixed base."""
    link, given = case.given.link_names[0], case.given.consistent_body_prior[0, 0]
    assert not estimate.shown_by_data[estimate.layout.body(0).start]
    tight = Constraints(mass={link: (2.0 * given, 3.0 * given)})
    (found,) = check_borders(identify(case.given, samples[:1], constraints=tight), tight)
    assert found.subjects == (link,) and found.severity is Severity.NOTICE and "constraints.mass" in found.remedy


def test_what_the_motion_left_open_is_told(case, samples, estimate):
    confidence = torque_confidence(estimate)
    assert tuple(check_excitation(estimate, confidence)) == ()
    vague = replace(confidence, deviation=confidence.torque * [0.1, 0.7, 0.2])
    (found,) = check_excitation(estimate, vague)
    assert found.cause == "little_excited" and found.subjects == ("joint1",) and found.severity is Severity.CARE
    unknown = replace(confidence, deviation=1.5 * confidence.torque)
    assert [finding.severity for finding in check_excitation(estimate, unknown)].count(Severity.REJECT) == 1
    still = [replace(each, q=each.q * [1, 1, 0], v=each.v * [1, 1, 0], a=each.a * [1, 1, 0]) for each in samples[:1]]
    resting = identify(case.given, still)
    (found,) = check_excitation(resting, None)
    assert found.severity is Severity.NOTICE and "of the bodies' 13 base parameters; not" in found.evidence


def test_bodies_that_came_out_too_heavy_excuse_no_error(case, samples, estimate):
    """The scale of errors is the torque of the bodies as given."""
    size = estimate.layout.inertial_size
    heavy = replace(estimate, parameters=np.concatenate([100 * estimate.parameters[:size], estimate.parameters[size:]]))
    found = {(each.cause, each.subjects) for each in validate(heavy, samples[1:]).findings}
    assert {("above_noise", (joint,)) for joint in case.given.joint_names} <= found


def test_the_sign_of_one_effort_is_rejected(case, samples):
    """Of the training data: no bodies explain it, and the joint is told."""
    flipped = [replace(each, tau=each.tau * [1.0, -1.0, 1.0]) for each in samples]
    result = validate(identify(case.given, flipped[:1], IdentifyOptions()), flipped[1:])
    assert "joint1" in {name for each in result.findings if each.severity >= Severity.CARE for name in each.subjects}


def test_a_constant_that_an_offset_explains_does_not_hide_the_rest():
    """A joint that is all offset in root mean square, and whose variation is not explained at all."""
    (found,) = findings(scale=((100.0, 1.0), (80.0, 0.2)), error=(5.0, 0.3))
    assert found.cause == "above_noise" and found.subjects == ("wrist",)


def test_the_scale_of_torque_is_the_same_from_samples_and_information(estimate, samples):
    plain = [replace(each, mask=each.valid) for each in samples[:1]]
    found = TorqueScale.of_information(compress(estimate.equations, plain))
    expected = TorqueScale.of_samples(plain)
    np.testing.assert_allclose(found.torque, expected.torque, rtol=1e-6)
    np.testing.assert_allclose(found.variation, expected.variation, rtol=1e-6)


def test_causes_that_only_a_well_predicted_held_out_recording_shows_do_not_reject():
    zero = np.zeros(1)
    errors = TorqueErrors(0.03, zero, zero, zero, zero, 10, ("held out",), "torque", "N m", zero, zero)
    tested = Validation(errors, errors, "URDF as given")
    shown = [replace(finding(Severity.REJECT), cause=cause, recording=name) for name, cause in (
        ("held out", "delay"), ("fitted", "effort_sign"), ("held out", "effort_sign"), ("held out", "gaps"))]
    limited = without_refuted(shown, tested)
    assert [each.severity for each in limited] == [Severity.CARE, *[Severity.REJECT] * 3]
    assert "yet the result predicts these recordings: held-out torque error 3.00 %" in limited[0].evidence
    for other in (None, replace(tested, blocks=5), replace(tested, calibrated=replace(errors, relative_error=0.06))):
        assert without_refuted(shown, other) == shown
