"""Confidence in torque, and when rounds of excitation and identification end."""

import json

import numpy as np
import pytest
from support.recordings.synthetic_calibration import synthetic_case

from inertid_ros.calibration.calibrate import IdentificationJob, identify_job
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import RoundsOptions
from inertid_ros.core.errors import ConfigurationError
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.identification.assessment.torque_confidence import TorqueConfidence, sample_states, torque_confidence
from inertid_ros.identification.identify import identify
from inertid_ros.identification.outcome import Round, decide
from inertid_ros.regressors.equations import ForceEquations


@pytest.fixture(scope="module")
def case():
    return synthetic_case(3, joints=3, recordings=3)


def test_probe_states_are_those_of_the_robot_and_always_the_same(case):
    states, limits = sample_states(case.given), case.given.limits
    assert (states.q >= limits.lower).all() and (states.q <= limits.upper).all()
    assert (np.abs(states.v) <= 0.5 * limits.velocity).all()
    np.testing.assert_array_equal(states.q, sample_states(case.given).q)


def test_deviation_is_that_of_parameters_drawn_from_the_covariance(case):
    """Monte Carlo through inverse dynamics, which knows nothing of regressors."""
    estimate = identify(case.given, [prepare(case.recordings[0], case.given)])
    states, rng = sample_states(case.given, 60), np.random.default_rng(0)
    confidence = torque_confidence(estimate, states)
    values, vectors = np.linalg.eigh(estimate.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    draws = estimate.parameters + (root @ rng.normal(size=(len(root), 1500))).T
    torque = np.array([ForceEquations(case.given).predict(draw, states) for draw in draws])
    expected = np.sqrt(torque.var(axis=0).mean(axis=0))
    np.testing.assert_allclose(confidence.deviation, expected, rtol=0.05)
    np.testing.assert_allclose(confidence.torque, np.sqrt(np.mean(torque.mean(axis=0) ** 2, axis=0)), rtol=0.02)


def test_more_data_lowers_the_deviation(case):
    samples = [prepare(recording, case.given) for recording in case.recordings]
    shares = [torque_confidence(identify(case.given, samples[: count + 1])).share for count in range(3)]
    assert shares[0] > shares[1] > shares[2]


def rounds(*deviations: float) -> list[Round]:
    return [Round((f"r{i}",), deviation, "elbow") for i, deviation in enumerate(deviations)]


@pytest.mark.parametrize(
    ("deviations", "options", "reason"),
    [
        ((0.03,), RoundsOptions(3), ""),
        ((0.03,), RoundsOptions(3, wanted_deviation=0.05), "confidence reached: predicted torque is uncertain by 3 %"),
        ((0.03, 0.02), RoundsOptions(3), ""),
        ((0.03, 0.029), RoundsOptions(3), "no further gain: predicted torque is uncertain by 2.9 % (elbow), compared"),
        ((0.03, 0.04), RoundsOptions(3), "no further gain"),
        ((0.03, 0.02, 0.01), RoundsOptions(3), "all rounds are done (3)"),
        ((0.03, 0.029, 0.01), RoundsOptions(3, wanted_deviation=0.01), "confidence reached"),
        ((0.03,), RoundsOptions(1), "all rounds are done (1)"),
        ((0.03, 0.0299), RoundsOptions(3, least_gain=0.0), "")])
def test_rounds_end_when_it_is_enough_or_nothing_comes(deviations, options, reason):
    found = decide(rounds(*deviations), options).reason
    assert found.startswith(reason) and bool(found) == bool(reason)


def test_gain_is_the_share_by_which_the_deviation_fell():
    assert decide(rounds(0.04, 0.03), RoundsOptions(5)).gain == pytest.approx(0.25)
    assert np.isnan(decide(rounds(0.04), RoundsOptions(5)).gain)


@pytest.mark.parametrize("values", [(0, 0.0, 0.1), (1, -1.0, 0.1), (1, 0.0, 1.0), (1, float("nan"), 0.1)])
def test_impossible_options_are_refused(values):
    with pytest.raises(ConfigurationError, match="must lie between"):
        RoundsOptions(*values)


def test_a_joint_without_torque_of_its_own_counts_by_the_others():
    confidence = TorqueConfidence(("a", "b"), np.array([0.1, 1e-9]), np.array([10.0, 0.0]))
    assert confidence.joint == "a" and confidence.share == pytest.approx(0.01)


def test_reports_tell_confidence_and_the_history_of_rounds(case, tmp_path):
    def job(count: int, previous: str = "") -> IdentificationJob:
        return IdentificationJob(
            urdf=case.given.urdf, configuration=Configuration(), train=case.recordings[:count],
            output=tmp_path / f"round_{count}", rounds=RoundsOptions(2, least_gain=0.0), previous=previous)

    first = identify_job(job(1), lambda report: None)
    second = identify_job(job(2, str(tmp_path / "round_1")), lambda report: None)
    assert [result.decision.reason[:10] for result in (first, second)] == ["", "all rounds"]
    report = json.loads((tmp_path / "round_2" / "report.json").read_text())
    assert [len(entry["recordings"]) for entry in report["rounds"]["done"]] == [1, 2]
    assert report["rounds"]["stopped"].startswith("all rounds are done")
    assert report["rounds"]["done"][1]["gain"] == pytest.approx(second.decision.gain)
    assert report["confidence"]["deviation"] == pytest.approx(second.history[-1].deviation)
