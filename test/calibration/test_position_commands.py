"""Robots that report no effort: torque from recorded commands, with gains of the drives and a delay."""

from dataclasses import replace

import attrs
import numpy as np
import pytest
from support.recordings.synthetic import inverse_dynamics, random_motion
from support.robots.random_robots import random_urdf

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.calibration.dataset import Dataset
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.config.robot import LoadOptions, RobotOptions
from inertid_ros.core.errors import ConfigurationError, ModelError, RecordingError
from inertid_ros.data.files.foreign_files import write_table
from inertid_ros.data.files.loading import load_recording, write_npz
from inertid_ros.data.recording import Recording
from inertid_ros.identification.information.delay import without_delay
from inertid_ros.report.results import Result
from inertid_ros.robot.body_changes import load_bodies, perturb, write_urdf
from inertid_ros.robot.model import load_model

VISCOUS, COULOMB, DELAY_S, JOINTS = 0.4, 0.3, 0.02, 2


def options(truth, **gains):
    declared = {"command_kp": 60.0, "command_kd": 2.0} | gains
    names = {key: dict.fromkeys(truth.joint_names, gain) for key, gain in declared.items()}
    return RobotOptions(effort="position_command", **names)


def commanded(truth, rng, name, kp=60.0, kd=2.0, latency_s=0.0, duration=15.0, rate_hz=200.0):
    """Recording with the true torque as effort, and the commands that a drive with these gains needs for it.

    The drive acts on states that are older by a latency.
    """
    motion, time = random_motion(rng, truth.joints), np.arange(0.0, duration, 1 / rate_hz)
    q, v, a = motion.sample(time + DELAY_S)
    torque = inverse_dynamics(truth, q, v, a) + VISCOUS * v + COULOMB * np.sign(v)
    q, v, _ = motion.sample(time + DELAY_S - latency_s)
    desired = 0.7 * v
    command = q + (torque - kd * (desired - v)) / kp
    q, v, a = motion.sample(time)
    torque = inverse_dynamics(truth, q, v, a) + VISCOUS * v + COULOMB * np.sign(v)
    noisy = q + 2e-5 * rng.normal(size=q.shape), torque + 0.02 * rng.normal(size=q.shape)
    return Recording(truth.joint_names, time, *noisy, command_position=command, command_velocity=desired, name=name)


@pytest.fixture(scope="module")
def case():
    """True robot, the given URDF, and two recordings."""
    rng = np.random.default_rng(7)
    truth = load_model(random_urdf(rng, JOINTS, branched=False))
    given = write_urdf(truth, perturb(truth, rng))
    return truth, given, [commanded(truth, rng, name) for name in ("train", "held out")]


def without_effort(recording):
    return replace(recording, effort=np.full(recording.position.shape, np.nan))


def held_out_error(outcome, measured):
    """Relative error of predicted torque on prepared samples with measured torque."""
    estimate = outcome.estimate
    error = (estimate.equations.predict(estimate.parameters, measured) - measured.tau)[measured.mask]
    return np.linalg.norm(error) / np.linalg.norm(measured.tau[measured.mask])


def test_the_torque_is_found_without_measured_torque(case):
    truth, given, recordings = case
    plain = load_model(given)
    prepared = Dataset.screened(plain, Configuration(), recordings[1:])
    measured = prepared.prepared(prepared.cutoff()).samples()[0]
    with_torque = calibrate(plain, recordings[:1], recordings[1:])
    configuration = Configuration(robot=options(truth))
    silent = [without_effort(recording) for recording in recordings]
    outcome = calibrate(load_model(given, configuration.robot), silent[:1], silent[1:], configuration)
    assert outcome.estimate.delay == pytest.approx(-DELAY_S, abs=1e-3)
    assert held_out_error(outcome, measured) < 1.5 * held_out_error(with_torque, measured)
    assert "the drives follow commands" in str(outcome.report)


def test_a_motion_with_half_the_gains_determines_the_delay_of_a_stiff_drive(case):
    truth, given, _ = case
    rng, latency_s, kp, kd = np.random.default_rng(8), 0.001, 800.0, 20.0
    factors = {"stiff": 1.0, "soft_1": 0.5, "held out": 1.0}
    silent = [without_effort(commanded(truth, rng, name, f * kp, f * kd, latency_s)) for name, f in factors.items()]
    robot = attrs.evolve(options(truth, command_kp=kp, command_kd=kd), command_gain_factors={"soft_*": 0.5})
    outcome = calibrate(load_model(given, robot), silent[:2], silent[2:], Configuration(robot=robot))
    assert outcome.estimate.delay == pytest.approx(latency_s - DELAY_S, abs=5e-5)
    viscous = outcome.estimate.parameters[truth.layout.drive("viscous")]
    assert viscous == pytest.approx(VISCOUS, abs=0.1)


@pytest.mark.parametrize("loaded", [False, True])
def test_unknown_gains_are_found_up_to_the_scale_which_a_load_determines(case, loaded, tmp_path):
    truth, given, _ = case
    rng, kp, kd = np.random.default_rng(9), 200.0, 6.0
    load = LoadOptions(truth.link_names[-1], 4.0, ("loaded_*",), com=(0.1, 0.0, 0.05))
    bodies = truth.body_prior + load_bodies(truth, {"load": load}, "loaded_1")
    heavy = replace(truth, pinocchio=truth.with_bodies(bodies))
    recordings = [commanded(truth, rng, "stiff", kp, kd), commanded(truth, rng, "soft_1", 0.5 * kp, 0.5 * kd)]
    recordings += [commanded(heavy, rng, "loaded_1", kp, kd)] if loaded else []
    wrong = {joint: factor * kp for joint, factor in zip(truth.joint_names, (0.75, 1.2), strict=True)}
    robot = attrs.evolve(options(truth, command_kd=1.1 * kd), command_kp=wrong, command_gain_factors={"soft_*": 0.5},
        loads={"load": load} if loaded else {})
    configuration = Configuration(robot=robot, identify=IdentifyOptions(drive_gains=True))
    silent = [without_effort(recording) for recording in [*recordings, commanded(truth, rng, "held out", kp, kd)]]
    outcome = calibrate(load_model(given, robot), silent[:-1], silent[-1:], configuration)
    outcome.save(tmp_path / "result")
    found = list(Result.load(tmp_path / "result").model.options.command_kp.values())
    assert found[0] / found[1] == pytest.approx(1.0, abs=2e-3)
    assert (found[0] == pytest.approx(kp, rel=2e-3)) == loaded
    gains = outcome.report["drive_gains"]
    assert [gain["command_kp"] for gain in gains] == pytest.approx(found)
    assert all(gain["interval"][0] < kp / wrong[gain["joint"]] < gain["interval"][1] for gain in gains)
    mass = outcome.estimate.bodies[:, 0] - truth.body_prior[:, 0]
    assert (np.abs(mass) < 3 * outcome.estimate.standard_deviation[: 10 * len(mass) : 10]).all()


def test_efforts_of_shifted_commands_are_the_true_torque(case):
    truth, _, recordings = case
    model = load_model(truth.urdf, options(truth))
    dataset = Dataset.screened(model, Configuration(robot=model.options), recordings[:1])
    samples = without_delay(dataset.prepared(8.0).samples()[0], -DELAY_S)
    plain = Dataset.screened(truth, Configuration(), recordings[:1]).prepared(8.0).samples()[0]
    assert np.sqrt(np.mean((samples.tau - plain.tau)[samples.mask] ** 2)) < 0.01 * plain.tau.std()
    limit = float(np.quantile(np.abs(plain.tau[:, 0]), 0.9))
    clipping = without_delay(replace(samples, command_limits=np.array([limit, np.inf])), 0.0)
    assert not clipping.mask[np.abs(samples.tau[:, 0]) >= limit, 0].any()
    assert clipping.mask[:, 0].any() and (clipping.mask[:, 1] == samples.mask[:, 1]).all()


def test_commands_are_read_from_files(case, tmp_path):
    _, _, recordings = case
    write_npz(recordings[0], tmp_path / "run.npz")
    write_table(recordings[0], tmp_path / "run.csv", True)
    for path in (tmp_path / "run.npz", tmp_path / "run.csv"):
        read = load_recording(path)
        assert read.joint_names == recordings[0].joint_names
        assert np.allclose(read.command_position, recordings[0].command_position)
        assert np.allclose(read.command_velocity, recordings[0].command_velocity)


def test_a_known_delay_is_taken_and_saved(case, tmp_path):
    truth, given, recordings = case
    configuration = Configuration(robot=attrs.evolve(options(truth), command_delay_s=DELAY_S))
    outcome = calibrate(load_model(given, configuration.robot), recordings[:1], recordings[1:], configuration)
    assert outcome.estimate.delay == -DELAY_S
    outcome.save(tmp_path / "result")
    loaded = Result.load(tmp_path / "result")
    assert loaded.effort_delay_s == -DELAY_S
    assert loaded.model.options.command_kp == configuration.robot.command_kp
    assert loaded.model.options.command_delay_s == DELAY_S


def test_wrong_declarations_are_refused(case):
    truth, _, (recording, _) = case
    model = load_model(truth.urdf, options(truth))

    def screened(recording, model=model):
        return Dataset.screened(model, Configuration(robot=model.options), [recording])

    with pytest.raises(RecordingError, match="has no command_position.*robot.effort"):
        screened(replace(recording, command_position=None))
    exchanged = recording.command_position[:, ::-1]
    for wrong in (exchanged, -recording.command_position, 57.3 * recording.command_position, 0 * exchanged):
        with pytest.raises(RecordingError, match="does not follow command_position: they differ by .* rad"):
            screened(replace(recording, command_position=wrong))
    for useless in (np.nan, np.inf, 1e308):
        with pytest.raises(RecordingError, match="commands and positions give no finite effort; record both in rad"):
            screened(replace(recording, command_position=0 * exchanged + useless))
    lacking = load_model(truth.urdf, RobotOptions(effort="position_command"))
    with pytest.raises(ModelError, match=r"robot.command_kp: lacks the gain of .*; set robot.command_kp: \{"):
        screened(recording, lacking)
    robot = attrs.evolve(options(truth), command_gain_factors={"tr*": 0.5, "*in": 0.6})
    with pytest.raises(ModelError, match=r"train matches tr\* and \*in; leave one"):
        screened(recording, load_model(truth.urdf, robot))
    with pytest.raises(ModelError, match="command_kp of 'elsewhere': no such joint"):
        load_model(truth.urdf, RobotOptions(effort="position_command", command_kp={"elsewhere": 1.0}))
    with pytest.raises(ConfigurationError, match="which needs base fixed or free"):
        RobotOptions(effort="position_command", base="segments")
