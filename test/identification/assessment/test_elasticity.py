"""Intervals of robots with elastic joints, whose encoders measure the position of the motor, not of the link."""

from functools import cache

import numpy as np
import pytest
from support.recordings.synthetic import inverse_dynamics, random_motion
from support.robots.random_robots import random_urdf

from inertid_ros.core.findings import Severity
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.recording import Recording
from inertid_ros.identification import map_fit
from inertid_ros.identification.assessment.elasticity import check_elasticity, joint_elasticity
from inertid_ros.identification.assessment.estimate import NORMAL_95, Estimate
from inertid_ros.identification.identify import identify
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.urdf_writing import write_urdf

DRAWS = 12
VISCOUS, COULOMB = 0.4, 0.3


@cache
def estimated(seed: int, deflection: float) -> tuple[RobotModel, Estimate]:
    """True robot, and its estimate from a recording of joints that deflect by ``deflection`` [rad] at RMS torque."""
    rng = np.random.default_rng(seed)
    truth = load_model(random_urdf(rng, 4, branched=False))
    given = load_model(write_urdf(truth, perturb(truth, rng)))
    time = np.arange(0.0, 20.0, 0.005)
    q, v, a = random_motion(rng, truth.joints).sample(time)
    torque = inverse_dynamics(truth, q, v, a)
    size = np.sqrt(np.mean(torque**2, axis=0))
    compliance = deflection * rng.uniform(0.3, 1.5, truth.joints) / size
    motor, speed = (x + compliance * y for x, y in ((q, torque), (v, np.gradient(torque, time, axis=0))))
    effort = torque + VISCOUS * speed + COULOMB * np.sign(speed) + 0.005 * size * rng.normal(size=q.shape)
    motor = motor + 1e-5 * rng.normal(size=q.shape)
    return truth, identify(given, [prepare(Recording(truth.joint_names, time, motor, effort), given)])


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
        truth, estimate = estimated(seed, 3e-3)
        error = estimate.parameters - truth.prior
        error[truth.layout.body_size :] = estimate.parameters[truth.layout.body_size :] - _drives(estimate)
        projection, covariances = estimate.base.projection, (estimate.covariance, estimate.elasticity.covariance)
        variance, elastic = (np.diagonal(projection @ each @ projection.T) for each in covariances)
        held.append(np.abs(projection @ error) < NORMAL_95 * np.sqrt(variance))
        rigid.append(np.abs(projection @ error) < NORMAL_95 * np.sqrt(np.maximum(variance - elastic, 0.0)))
    assert np.mean(np.concatenate(held)) > 0.9
    assert np.mean(np.concatenate(rigid)) < 0.85, "the draws do not show elasticity"


def test_intervals_of_rigid_joints_hardly_change(monkeypatch: pytest.MonkeyPatch) -> None:
    _, wide = estimated(0, 0.0)
    monkeypatch.setattr(map_fit, "joint_elasticity", lambda *_: None)
    _, narrow = estimated.__wrapped__(0, 0.0)
    np.testing.assert_allclose(wide.parameters, narrow.parameters)
    projection = wide.base.projection
    ratio = [np.diagonal(projection @ each.covariance @ projection.T) for each in (wide, narrow)]
    assert np.median(np.sqrt(ratio[0] / ratio[1])) < 1.3


def test_samples_without_a_filter_say_nothing() -> None:
    _, estimate = estimated(0, 0.0)
    assert joint_elasticity(estimate.equations, estimate.parameters, (), estimate.weights, estimate.covariance, 1.0
    ) is None


def test_the_deflection_is_reported_with_its_size() -> None:
    found = []
    for seed in range(4):
        _, estimate = estimated(seed, 3e-3)
        elasticity, model = estimate.elasticity, estimate.model
        assert elasticity is not None
        for finding in check_elasticity(elasticity, model):
            assert finding.severity is Severity.NOTICE
            found += [elasticity.deflection[model.joint_names.index(joint)] for joint in finding.subjects]
        rigid = estimated(seed, 0.0)[1]
        assert not list(check_elasticity(rigid.elasticity, rigid.model))
    assert len(found) >= 4 and 1e-3 < np.median(found) < 4e-3
