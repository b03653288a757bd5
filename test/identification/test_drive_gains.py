"""Gains of drives that are wrong by a third, from recordings with known loads; such recordings in ordinary fits."""

import re
from dataclasses import replace

import attrs
import numpy as np
import pytest
from support.recordings.synthetic import random_motion
from support.robots.random_robots import random_model

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.config.robot import LoadOptions, RobotOptions
from inertid_ros.core.errors import IdentificationError, ModelError
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.unmodelled import UnmodelledEffects
from inertid_ros.identification.drive_gains import DriveGains, drive_gains, effort_products
from inertid_ros.identification.identify import identify
from inertid_ros.regressors.equations import ForceEquations, equations_of, load_torque, without_load
from inertid_ros.report.report_content import report_content
from inertid_ros.report.results import Result
from inertid_ros.robot.body_changes import load_bodies, perturb

LOADS = {
    "disk": LoadOptions("link2", 4.0, ("disk*",), com=(0.05, 0.1, 0.2), inertia=(0.01, 0.0, 0.0, 0.01, 0.0, 0.02)),
    "bar": LoadOptions("link2", 2.0, ("bar.npz",), com=(0.0, -0.2, 0.1))}
NOISE = 0.05


@pytest.fixture(scope="module")
def robot():
    return random_model(np.random.default_rng(8), 3, branched=False)


def measured(model, gains, load, seed, count=2000):
    """Samples of a robot with another truth than its URDF, whose drives report ``torque / gain``."""
    truth_rng, rng = np.random.default_rng(1), np.random.default_rng(seed)
    truth = np.concatenate([perturb(model, truth_rng).ravel(), truth_rng.uniform(0.1, 0.5, model.layout.size - 30)])
    q, v, a = random_motion(rng, 3).sample(0.01 * np.arange(count))
    every = np.ones(q.shape, dtype=bool)
    samples = Samples(0.01 * np.arange(count), q, v, a, np.zeros_like(q), every, every[:, 0], f"motion {seed}")
    tau = ForceEquations(model).predict(truth, samples) + load_torque(model, load, samples)
    return replace(samples, tau=(tau + NOISE * rng.normal(size=tau.shape)) / gains)


def test_gains_wrong_by_a_third_are_found_to_a_per_cent_within_their_intervals(robot):
    ratios = []
    for seed in range(2):
        gains = 1 + np.random.default_rng(seed).uniform(-0.3, 0.3, 3)
        loads = [load_bodies(robot, LOADS, name) for name in ("empty", "disk 1", "path/bar.npz")]
        reported = [measured(robot, gains, load, 10 * seed + k) for k, load in enumerate(loads)]
        lessened = [without_load(robot, load, each) for load, each in zip(loads, reported, strict=True)]
        found = drive_gains(equations_of(robot), lessened, loads)
        assert all(found.identified)
        np.testing.assert_allclose(found.values, gains, rtol=0.01)
        ratios.append(np.log(found.values / gains) / found.relative_deviation)
    assert np.abs(ratios).max() < 3.5


def test_without_a_known_load_there_is_no_scale(robot):
    loads = [load_bodies(robot, {}, "empty")] * 2
    with pytest.raises(IdentificationError, match="gains are determined up to a common factor"):
        drive_gains(equations_of(robot), [measured(robot, np.ones(3), load, 0) for load in loads], loads)


def test_a_joint_that_no_load_shows_stays_at_its_gain(robot):
    """A load on the first link is not felt by the joints behind it."""
    near = {"near": LoadOptions("link0", 5.0, ("near",), com=(0.2, 0.2, 0.2))}
    loads = [load_bodies(robot, near, name) for name in ("far", "near")]
    reported = [measured(robot, np.ones(3), load, k, 300) for k, load in enumerate(loads)]
    lessened = [without_load(robot, *pair) for pair in zip(loads, reported, strict=True)]
    found = drive_gains(equations_of(robot), lessened, loads)
    assert found.relative_deviation[0] < found.relative_deviation[1:].min()


def test_gains_do_not_hang_on_the_unit_of_the_efforts():
    """Ampere and per mille of nominal torque: nothing known beforehand of bodies, friction or gains sets a scale."""
    terms = ("rotor_inertia", "viscous", "coulomb")
    model = random_model(np.random.default_rng(8), 3, branched=False, drive_terms=terms)
    gains, found = np.array([1.2, 0.8, 1.1]), []
    loads = [load_bodies(model, LOADS, name) for name in ("empty", "disk 1")]
    for unit in (1.0, 0.1, 40.0):
        reported = [measured(model, unit * gains, load, k) for k, load in enumerate(loads)]
        lessened = [without_load(model, *pair) for pair in zip(loads, reported, strict=True)]
        found.append(drive_gains(equations_of(model), lessened, loads))
        np.testing.assert_allclose(found[-1].values, unit * gains, rtol=0.02)
        assert all(found[-1].identified)
        np.testing.assert_allclose(found[-1].values, unit * found[0].values, rtol=1e-3)
        np.testing.assert_allclose(found[-1].relative_deviation, found[0].relative_deviation, rtol=0.01)


def test_a_gain_that_no_load_shows_is_near_the_factor_of_the_others(robot):
    """The first joint reports nothing that may be used."""
    loads = [load_bodies(robot, LOADS, name) for name in ("empty", "disk 1")]
    reported = [measured(robot, np.full(3, 10.0), load, k) for k, load in enumerate(loads)]
    lessened = [without_load(robot, *pair) for pair in zip(loads, reported, strict=True)]
    masked = [replace(each, mask=each.mask & [False, True, True]) for each in lessened]
    found = drive_gains(equations_of(robot), masked, loads)
    assert found.identified == (False, True, True)
    assert found.values[0] == pytest.approx(10.0, rel=0.1)


@pytest.mark.parametrize("away", [(0.0, 0.0, 0.0), (0.1, -0.1, 0.05)])
def test_a_load_that_was_declared_elsewhere_is_told_with_its_place(robot, away):
    """Nothing else shows it: gains are wrong, with narrow intervals."""
    true = [load_bodies(robot, LOADS, name) for name in ("empty", "disk 1", "disk 2")]
    disk = LOADS["disk"]
    declared = {"disk": attrs.evolve(disk, com=tuple(np.add(disk.com, away)))}
    loads = [load_bodies(robot, declared, name) for name in ("empty", "disk 1", "disk 2")]
    reported = [measured(robot, np.array([8.0, 12.0, 10.0]), load, k) for k, load in enumerate(true)]
    lessened = [without_load(robot, *pair) for pair in zip(loads, reported, strict=True)]
    found = drive_gains(equations_of(robot), lessened, loads)
    assert [finding.cause for finding in found.findings] == ["load_elsewhere"] * any(away)
    if any(away):
        body = np.flatnonzero(true[1][:, 0])[0]
        place = [float(number) for number in re.findall(r"\((.*)\) m in", str(found.findings[0]))[0].split(", ")]
        np.testing.assert_allclose(place, true[1][body, 1:4] / true[1][body, 0], atol=0.02)


def recording(model, gains, name, seed):
    samples = measured(model, gains, load_bodies(model, LOADS, name), seed)
    return Recording(model.joint_names, samples.time, samples.q, samples.tau, velocity=samples.v, name=name)


def test_calibration_with_loads_and_gains(robot, tmp_path):
    gains = np.array([0.75, 1.3, 1.1])
    train = [recording(robot, gains, name, seed) for seed, name in enumerate(("empty", "disk 1"))]
    held_out = [recording(robot, gains, "disk 2", 7)]
    configuration = Configuration(RobotOptions(loads=LOADS), identify=IdentifyOptions(drive_gains=True))
    outcome = calibrate(robot, train, held_out, configuration)
    report = report_content(outcome)
    assert [entry["identified"] for entry in report["drive_gains"]] == [True] * 3
    for entry, gain in zip(report["drive_gains"], gains, strict=True):
        assert entry["interval"][0] < entry["gain"] < entry["interval"][1]
        assert entry["gain"] == pytest.approx(gain, rel=0.01)
    assert outcome.validation.calibrated.relative_error < 0.3 * outcome.validation.prior.relative_error
    stored = Result.load(outcome.save(tmp_path / "result"))
    np.testing.assert_allclose(stored.model.effort_scale, gains, rtol=0.01)
    # The scale of the parameters is known no better than the gains.
    exact = calibrate(robot, [replace(each, effort=gains * each.effort) for each in train], (),
                      Configuration(RobotOptions(loads=LOADS)))
    assert (outcome.estimate.standard_deviation > 0.99 * exact.estimate.standard_deviation).all()
    np.testing.assert_allclose(outcome.estimate.parameters, exact.estimate.parameters,
                               atol=3 * outcome.estimate.standard_deviation.max())


def test_uncertainty_of_gains_adds_to_that_of_unmodelled_effects(robot):
    """The covariance by unmodelled effects is no sensitivity to the data."""
    samples = measured(robot, np.ones(3), np.zeros((3, 10)), 3)
    rigid = identify(robot, [samples])
    assert rigid.unmodelled is None  # samples without a cutoff
    efforts = effort_products(rigid.equations, [samples], [np.zeros((3, 10))])
    gains = DriveGains(robot.joint_names, np.ones(3), 1e-4 * np.eye(3), (True,) * 3)
    count, size = 24, robot.layout.size
    effects = UnmodelledEffects(
        np.ones(3), np.ones(3), np.eye(count), np.zeros(count), 0.3 * np.ones((size, count)), 1.0)
    wide = replace(rigid, covariance=rigid.covariance + effects.covariance, unmodelled=effects)
    added = [gains.widened(each, efforts).covariance - each.covariance for each in (rigid, wide)]
    np.testing.assert_allclose(*added, rtol=1e-6, atol=1e-9)


def test_loads_that_cannot_be_are_refused(robot):
    for load, reason in (
        (LoadOptions("hand", 1.0, ("*",)), "has no link 'hand'"), (LoadOptions("base", 1.0, ("*",)), "does not move"),
        (LoadOptions("link1", 1.0, ("*",), inertia=(1.0, 0.0, 0.0, 0.1, 0.0, 0.1)), "the inertia is impossible"),
    ):
        with pytest.raises(ModelError, match=reason):
            load_bodies(robot, {"load": load}, "anything")
