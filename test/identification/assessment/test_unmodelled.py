"""Effects that the equations leave out: elastic joints, encoders with play, and friction that depends on position."""

from functools import cache

import numpy as np
import pytest
from support.recordings.synthetic import inverse_dynamics, random_motion
from support.robots.random_robots import random_urdf

from inertid_ros.core.findings import Severity
from inertid_ros.core.samples import Samples
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.recording import Recording
from inertid_ros.identification import map_fit
from inertid_ros.identification.assessment.estimate import NORMAL_95, Estimate
from inertid_ros.identification.assessment.unmodelled import (
    _determined,
    check_gear_play,
    check_unmodelled,
    unmodelled_effects,
)
from inertid_ros.identification.identify import identify
from inertid_ros.robot.body_changes import perturb, write_urdf
from inertid_ros.robot.model import RobotModel, load_model

DRAWS = 12
VISCOUS, COULOMB = 0.4, 0.3


@cache
def estimated(
    seed: int, deflection: float = 0.0, play: float = 0.0, ripple: float = 0.0, gear_play: float = 0.0
) -> tuple[RobotModel, Estimate, Samples]:
    """True robot, its estimate from a recording, and the samples.

    Joints deflect by ``deflection`` at RMS torque, encoders have ``play`` and gears ``gear_play`` to either side [rad],
    and Coulomb friction changes by the share ``ripple`` along the range.
    """
    rng = np.random.default_rng(seed)
    truth = load_model(random_urdf(rng, 4, branched=False))
    given = load_model(write_urdf(truth, perturb(truth, rng)))
    time = np.arange(0.0, 20.0, 0.005)
    q, v, a = random_motion(rng, truth.joints).sample(time)
    torque = inverse_dynamics(truth, q, v, a)
    size = np.sqrt(np.mean(torque**2, axis=0))
    compliance = deflection * rng.uniform(0.3, 1.5, truth.joints) / size
    motor, speed = (x + compliance * y for x, y in ((q, torque), (v, np.gradient(torque, time, axis=0))))
    coulomb = COULOMB * (1 + ripple * np.sin(3 * q + np.arange(truth.joints)))
    effort = torque + VISCOUS * speed + coulomb * np.sign(speed) + 0.005 * size * rng.normal(size=q.shape)
    encoder = motor + _lag(motor, play) + gear_play * np.sign(torque) + 1e-5 * rng.normal(size=q.shape)
    samples = prepare(Recording(truth.joint_names, time, encoder, effort), given)
    return truth, identify(given, [samples]), samples


def _lag(position: np.ndarray, play: float) -> np.ndarray:
    """Position of encoders that rest until their play is crossed, minus the position of the joints."""
    lag = np.zeros_like(position)
    for row, step in enumerate(np.diff(position, axis=0)):
        lag[row + 1] = np.clip(lag[row] - step, -play, play)
    return lag


def found(estimate: Estimate, cause: str) -> list[float]:
    """Sizes that findings of a cause report; no other cause is reported."""
    assert estimate.unmodelled is not None
    findings = list(check_unmodelled(estimate.unmodelled, estimate.model))
    assert {finding.cause for finding in findings} <= {cause}
    names, sizes = estimate.model.joint_names, estimate.unmodelled.sizes[cause][:, 0]
    return [float(sizes[names.index(joint)]) for finding in findings for joint in finding.subjects]


def _drives(estimate: Estimate) -> np.ndarray:
    layout = estimate.model.layout
    true = np.zeros(layout.size)
    for term, value in (("viscous", VISCOUS), ("coulomb", COULOMB)):
        true[layout.drive(term)] = value
    return true[layout.body_size :]


def test_intervals_hold_for_elastic_joints() -> None:
    """Of base parameters; a deflection changes the covariance of an estimate and not its parameters."""
    held, rigid = [], []
    for seed in range(DRAWS):
        truth, estimate, _ = estimated(seed, 3e-3)
        error = estimate.parameters - truth.prior
        error[truth.layout.body_size :] = estimate.parameters[truth.layout.body_size :] - _drives(estimate)
        projection, covariances = estimate.base.projection, (estimate.covariance, estimate.unmodelled.covariance)
        variance, elastic = (np.diagonal(projection @ each @ projection.T) for each in covariances)
        held.append(np.abs(projection @ error) < NORMAL_95 * np.sqrt(variance))
        rigid.append(np.abs(projection @ error) < NORMAL_95 * np.sqrt(np.maximum(variance - elastic, 0.0)))
    assert np.mean(np.concatenate(held)) > 0.9
    assert np.mean(np.concatenate(rigid)) < 0.85, "the draws do not show elasticity"


def test_intervals_of_rigid_joints_hardly_change(monkeypatch: pytest.MonkeyPatch) -> None:
    _, wide, _ = estimated(0)
    monkeypatch.setattr(map_fit, "unmodelled_effects", lambda *_: None)
    _, narrow, _ = estimated.__wrapped__(0)
    np.testing.assert_allclose(wide.parameters, narrow.parameters)
    projection = wide.base.projection
    ratio = [np.diagonal(projection @ each.covariance @ projection.T) for each in (wide, narrow)]
    assert np.median(np.sqrt(ratio[0] / ratio[1])) < 1.3


def test_samples_without_a_filter_say_nothing() -> None:
    _, estimate, _ = estimated(0)
    assert unmodelled_effects(
        estimate.equations, estimate.parameters, (), estimate.weights, estimate.covariance) is None


def test_the_deflection_is_reported_with_its_size() -> None:
    sizes = [size for seed in range(4) for size in found(estimated(seed, 3e-3)[1], "elastic_joints")]
    assert len(sizes) >= 4 and 1e-3 < np.median(sizes) < 4e-3


def test_play_of_encoders_is_reported_with_its_size_and_with_care() -> None:
    estimates = [estimated(seed, play=1e-3)[1] for seed in range(4)]
    sizes = [size for estimate in estimates for size in found(estimate, "encoder_play")]
    assert len(sizes) >= 6 and 5e-4 < np.median(sizes) < 1.5e-3
    findings = check_unmodelled(estimates[0].unmodelled, estimates[0].model)
    assert {finding.severity for finding in findings} == {Severity.CARE}


def test_small_play_of_encoders_is_only_noticed() -> None:
    estimates = [estimated(seed, play=4e-4)[1] for seed in range(4)]
    findings = [each for estimate in estimates for each in check_unmodelled(estimate.unmodelled, estimate.model)]
    assert {(finding.cause, finding.severity) for finding in findings} == {("encoder_play", Severity.NOTICE)}


def test_play_of_gears_is_reported() -> None:
    for seed in range(2):
        truth, estimate, samples = estimated(seed, gear_play=1e-3)
        findings = list(check_gear_play(estimate.unmodelled, estimate.equations, estimate.parameters, [samples]))
        assert [(finding.cause, finding.severity) for finding in findings] == [("gear_play", Severity.NOTICE)]


def test_friction_that_changes_with_the_position_is_reported_with_its_size() -> None:
    sizes = [size for seed in range(4) for size in found(estimated(seed, ripple=0.5)[1], "friction_by_position")]
    assert len(sizes) >= 4 and 0.5 < np.median(sizes) / (0.5 * COULOMB / np.sqrt(2)) < 1.2


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_reported_of_other_robots(seed: int) -> None:
    _, estimate, samples = estimated(seed)
    assert not list(check_unmodelled(estimate.unmodelled, estimate.model))
    assert not list(check_gear_play(estimate.unmodelled, estimate.equations, estimate.parameters, [samples]))


def test_directions_of_negative_precision_count_as_undetermined():
    axes, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))
    precision, slopes = _determined(axes * [-6.0, 4.0, 50.0, 1e-6, 80.0] @ axes.T, np.ones(5))
    np.testing.assert_allclose(axes.T @ precision @ axes, np.diag([0.0, 0.0, 50.0, 0.0, 80.0]), atol=1e-9)
    np.testing.assert_allclose(slopes @ axes, [0, 0, 1, 0, 1] * (np.ones(5) @ axes), atol=1e-9)
