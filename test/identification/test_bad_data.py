"""Data from which nothing can be learnt, and numbers of absurd size: a clear error or a correct answer."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic_calibration import synthetic_case
from support.robots.random_robots import random_model, random_states

from inertid_ros.config.robot import CouplingOptions, RobotOptions
from inertid_ros.core.errors import ConfigurationError, IdentificationError
from inertid_ros.core.inertial_parameters import geodesic_distance, is_consistent
from inertid_ros.core.samples import Samples
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.identification.assessment.validation import torque_errors, validate
from inertid_ros.identification.identify import identify
from inertid_ros.identification.solvers.constraints import Constraints
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.body_changes import perturb, write_urdf
from inertid_ros.robot.model import load_model

JOINTS = 4


def _robot(scales=(1.0,) * JOINTS):
    """A robot with bodies scaled, what it is in truth, and samples of it."""
    rng = np.random.default_rng(3)
    model = random_model(rng, JOINTS, branched=False)
    model = load_model(write_urdf(model, model.body_prior * np.array(scales)[:, None]), model.options)
    drives = 1e-2 * rng.uniform(0.2, 1.0, model.layout.size - model.layout.body_size)
    truth = np.concatenate([perturb(model, rng).ravel(), drives])
    return model, truth, _measured(model, truth, rng, random_states(rng, model, 500))


def _measured(model, truth, rng, samples: Samples) -> Samples:
    tau = ForceEquations(model).predict(truth, samples)
    return replace(samples, tau=tau + 1e-3 * tau.std(axis=0) * rng.normal(size=tau.shape))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.select(slice(1)), r"too few usable samples of joint 'joint0' \(1\)"),
        (lambda s: s.select(slice(10)), r"too few usable samples of joint 'joint0' \(10\)"),
        (lambda s: replace(s, tau=np.full_like(s.tau, 3.0)), "effort of joint 'joint0' is 3 throughout while it moves"),
        (lambda s: replace(s, tau=0 * s.tau), "effort is zero throughout"),
        (lambda s: replace(s, tau=1e-12 * s.tau), "check units")])
def test_data_that_says_nothing_is_refused(change, message):
    model, _, samples = _robot()
    with pytest.raises(IdentificationError, match=message):
        identify(model, [change(samples)])


def test_a_robot_at_rest_keeps_what_rest_does_not_show():
    model, truth, samples = _robot()
    rng = np.random.default_rng(0)
    still = replace(samples, q=np.full_like(samples.q, 0.3), v=0 * samples.v, a=0 * samples.a)
    noisy = replace(still, tau=ForceEquations(model).predict(truth, still) + 0.05 * rng.normal(size=still.tau.shape))
    estimate = identify(model, [noisy])
    assert estimate.consistent
    assert (estimate.distance_to_prior < 1.0).all()
    moving = _measured(model, truth, rng, random_states(rng, model, 200))
    assert validate(estimate, [moving]).calibrated.relative_error < 1.0  # friction was not invented


@pytest.mark.parametrize("scales", [(1e-9, 1e4, 1, 1), (1e4, 1, 1, 1e-9), (1, 1, 1e-9, 1e4)])
def test_bodies_over_thirteen_decades(scales):
    model, truth, samples = _robot(scales)
    estimate = identify(model, [samples])
    assert estimate.consistent
    rng = np.random.default_rng(1)
    verdict = validate(estimate, [_measured(model, truth, rng, random_states(rng, model, 200))])
    assert verdict.passed
    assert (verdict.calibrated.rms_error < 2e-3 * verdict.calibrated.rms_torque).all()


def test_a_prior_that_no_body_has_is_repaired_with_a_notice(caplog):
    model, truth, samples = _robot()
    bodies = model.body_prior.copy()
    bodies[1, 4:] = 0.0
    bodies[1, 4] = 1.0  # a body that spreads along no axis but resists turning about one
    broken = load_model(_with_raw_inertia(model, bodies), model.options)
    assert "link1" in caplog.text
    estimate = identify(broken, [samples])
    assert is_consistent(estimate.bodies).all()
    assert validate(estimate, [samples]).calibrated.relative_error < 0.01


def _with_raw_inertia(model, bodies):
    """The URDF with inertia of one link written as it is: the writer of the package refuses it."""
    from lxml import etree

    root = etree.fromstring(model.urdf.encode())
    inertia = root.xpath("//link[@name='link1']/inertial/inertia")[0]
    for key, value in zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), (1.0, 0, 0, 0, 0, 0), strict=True):
        inertia.set(key, str(value))
    return etree.tostring(root, encoding="unicode")


def test_bounds_that_cannot_hold_are_named():
    model, _, samples = _robot()
    mass = {f"link{i}": (0.1, 1.0) for i in range(JOINTS)} | {"link2": (1e-12, 1e-11)}
    with pytest.raises(IdentificationError, match="mass"):
        identify(model, [samples], constraints=Constraints(mass=mass, total_mass=1e6))
    with pytest.raises(ConfigurationError, match="link2"):
        Constraints(mass=mass | {"link2": (5.0, 4.0)})


def test_a_joint_without_effort_leaves_its_bodies_and_the_others_alone():
    case = synthetic_case(1, 4, 1)
    model = load_model(
        case.given.urdf, RobotOptions(couplings={"wrist": CouplingOptions(("joint2", "joint3"), (1.0, 1.0))}))
    recording = case.recordings[0]
    speed = recording.velocity[:, 2] + recording.velocity[:, 3]
    effort = recording.effort + np.outer(2.0 * np.tanh(speed / 0.02) + 1.0 * speed, [0, 0, 1, 1])
    whole = prepare(replace(recording, effort=effort), model)
    silent = effort.copy()
    silent[np.arange(len(silent)) % 10 != 0, 3] = 0.0
    without = prepare(replace(recording, effort=silent), model)
    assert [finding.cause for finding in without.findings] == ["no_effort"] and not without.valid[:, 3].any()
    known, partial = identify(model, [whole]), identify(model, [without])
    others = [0, 1, 2]
    errors = [torque_errors(model, each.parameters, [whole]).rms_error[others] for each in (known, partial)]
    assert (errors[1] < 1.1 * errors[0] + 0.01).all()
    assert partial.parameters[-3:] == pytest.approx(known.parameters[-3:], rel=0.1, abs=0.1)
    assert geodesic_distance(partial.bodies[3], model.body_prior[3]) < 1.0
