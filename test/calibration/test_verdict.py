"""The verdict on whole calibrations: what is held out, whether it is new, and what is done where nothing is."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.biped import biped, prior
from support.recordings.synthetic_calibration import Case, synthetic_case
from support.robots.floating_robots import motion, satellite, with_prior

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.config.robot import CouplingOptions, RobotOptions
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.findings import Severity
from inertid_ros.data.files.loading import load_recording
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.gate import Verdict
from inertid_ros.identification.outcome import IdentificationOutcome
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.free_floating import float_freely, measured


@pytest.fixture(scope="module")
def case() -> Case:
    return synthetic_case(3, recordings=3, duration=12.0)


def again(recording: Recording, name: str) -> Recording:
    """The same motion recorded once more, a second later."""
    rng = np.random.default_rng(8)
    effort = recording.effort + 0.02 * rng.normal(size=recording.effort.shape)
    kept = {key: getattr(recording, key)[100:] for key in ("time", "position", "velocity")}
    return replace(recording, name=name, effort=effort[100:], **kept)


def causes(outcome: IdentificationOutcome, least: Severity = Severity.CARE) -> set[str]:
    every = (*outcome.gate.reasons, *outcome.gate.notices)
    return {finding.cause for finding in every if finding.severity >= least}


def test_another_motion_gives_use(case):
    outcome = calibrate(case.given, case.recordings[:1], case.recordings[1:])
    assert outcome.gate.verdict is Verdict.USE, outcome.message
    assert outcome.status == "passed" and outcome.blocks is None


def test_an_error_without_a_known_cause_is_placed(case):
    """A torque that varies fast with the position of one joint, as of cogging, from a part of the range on."""
    name = case.given.joint_names[1]

    def cogging(recording: Recording) -> Recording:
        column, effort = recording.joint_names.index(name), recording.effort.copy()
        q = recording.position[:, column]
        effort[:, column] += 3 * effort[:, column].std() * np.cos(12 * q) * (q > np.median(q))
        return replace(recording, effort=effort)

    train, held_out = map(cogging, case.recordings[:2])
    outcome = calibrate(case.given, [train], [held_out])
    assert "above_noise" in causes(outcome), outcome.message
    (found,) = [finding for finding in outcome.gate.reasons if finding.cause == "unexplained"]
    assert found.subjects == (name,) and "positions from" in found.evidence


def test_samples_that_were_fitted_are_refused(case):
    copy = replace(case.recordings[0], name="copy")
    with pytest.raises(RecordingError, match=r"copy: holds the samples of recording 0"):
        calibrate(case.given, case.recordings[:2], [copy])


def test_the_same_motion_again_is_used_with_care(case):
    outcome = calibrate(case.given, case.recordings[:1], [again(case.recordings[0], "again")])
    assert outcome.gate.verdict is Verdict.CARE and causes(outcome) == {"held_out_not_new"}
    assert "again: 100 % of the motion repeats fitted motion of recording 0" in outcome.message


def test_a_fit_without_the_motion_held_out_decides_where_there_is_one(case):
    outcome = calibrate(case.given, case.recordings[:2], [again(case.recordings[0], "again")])
    assert outcome.gate.verdict is Verdict.USE, outcome.message
    (notice,) = [each for each in outcome.gate.notices if each.cause == "held_out_not_new"]
    assert "a fit without recording 0 predicts it with a torque error of" in notice.evidence


@pytest.mark.parametrize("estimator", ["consistent", "wls_r"])
def test_without_held_out_data_blocks_are_held_out(case, estimator):
    configuration = Configuration(identify=IdentifyOptions(estimator=estimator))
    outcome = calibrate(case.given, case.recordings[:2], (), configuration)
    assert outcome.status in ("not validated", "rejected") and "not_validated" in causes(outcome)
    blocks = outcome.blocks
    assert blocks.blocks >= 4
    assert blocks.calibrated.recordings == ("recording 0", "recording 1")
    # Not of the very samples that were fitted: gaps between blocks count for neither.
    assert 0.95 * outcome.assessment.train_errors.relative_error < blocks.calibrated.relative_error
    assert blocks.calibrated.relative_error < 0.2 * blocks.prior.relative_error
    held_out = calibrate(case.given, case.recordings[:2], case.recordings[2:], configuration).validation
    assert blocks.calibrated.relative_error == pytest.approx(held_out.calibrated.relative_error, rel=0.5)


def test_blocks_show_what_fits_the_noise_only(case):
    recording = case.recordings[0]
    noise = np.random.default_rng(0).normal(size=recording.effort.shape)
    outcome = calibrate(case.given, [replace(recording, effort=30 * noise)])
    assert outcome.gate.verdict is Verdict.REJECT


def test_a_short_recording_has_no_blocks(case):
    recording = case.recordings[0]
    short = {key: getattr(recording, key)[:260] for key in ("time", "position", "velocity", "effort")}
    outcome = calibrate(case.given, [replace(recording, **short)])
    assert outcome.blocks is None or outcome.blocks.blocks >= 2
    assert "not_validated" in causes(outcome)


@pytest.mark.xdist_group("biped")
def test_a_simulated_biped_gives_use():
    pytest.importorskip("mujoco", reason="needs MuJoCo (pip install mujoco)")
    outcome = calibrate(prior(), [biped()], [replace(biped(movements=4, seed=2), name="held out")])
    assert outcome.gate.verdict is Verdict.USE, outcome.message


def test_a_simulated_space_robot_gives_use():
    robot = satellite(np.random.default_rng(0), 3)
    recordings = []
    for seed in range(2):
        found = float_freely(robot, robot.body_prior, motion(robot, 24, seed, speed=0.25).trajectory, 50.0)
        recordings.append(measured(robot, found, (1e-4, 1e-4, 1e-4), np.random.default_rng(seed), str(seed)))
    options = Configuration(identify=IdentifyOptions(equations="momentum"))
    outcome = calibrate(with_prior(robot, np.random.default_rng(1)), recordings[:1], recordings[1:], options)
    assert outcome.gate.verdict is Verdict.USE, outcome.message


@pytest.mark.parametrize("coupled", [True, False])
def test_verdicts_on_the_staubli(datasets, coupled):
    """Without its coupled wrist, the fifth joint comes out worse than by the URDF."""
    folder = datasets / "staubli_tx40"
    wrist = {"wrist": CouplingOptions(("joint_5", "joint_6"), (1.0, 1.0))}
    model = load_model(folder / "tx40_mdh_modified.urdf", RobotOptions(couplings=wrist if coupled else {}))
    whole = load_recording(folder / "run1_5khz.npz")
    split = int(0.65 * len(whole))
    parts = [
        Recording(whole.joint_names, whole.time[rows], whole.position[rows], whole.effort[rows], name=name)
        for name, rows in (("first", slice(0, split)), ("rest", slice(split, None)))
    ]
    outcome = calibrate(model, parts[:1], parts[1:])
    errors = {"worse_than_nothing", "worse_than_urdf", "above_noise", "does_not_generalise"} & causes(outcome)
    assert (outcome.gate.verdict is not Verdict.REJECT) == coupled and bool(errors) != coupled, outcome.message
    if not coupled:
        assert "joint_5" in outcome.gate.reasons[0].subjects
