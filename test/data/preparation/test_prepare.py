"""From raw recordings to samples."""

import logging
from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic import Motion, inverse_dynamics, jittered_time, random_motion, record
from support.robots.random_robots import random_model

from inertid_ros.config.recordings import PrepareOptions, WrenchOptions
from inertid_ros.core.errors import ModelError, RecordingError
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.recording import Recording
from inertid_ros.robot.contacts import Contact, Plate
from inertid_ros.robot.layout import Coupling


@pytest.fixture(scope="module")
def model():
    return random_model(np.random.default_rng(5), 3)


def _relative(estimate, truth, usable):
    return np.linalg.norm((estimate - truth)[usable]) / np.linalg.norm(truth[usable])


@pytest.mark.parametrize("rate, noise, jitter", [(100.0, 1e-5, 0.5), (500.0, 1e-4, 0.0), (1000.0, 2e-5, 0.8)])
def test_derivatives_and_torque_are_true_with_noise_and_jitter(model, rate, noise, jitter):
    rng = np.random.default_rng(int(rate))
    motion, time = random_motion(rng, 3), jittered_time(rng, rate, 20.0, jitter)
    samples = prepare(record(model, motion, time, noise, rng), model)
    q, v, a = motion.sample(samples.time)
    assert _relative(samples.q, q, samples.usable) < 1e-3
    assert _relative(samples.v, v, samples.usable) < 1e-3
    assert _relative(samples.a, a, samples.usable) < 1.2e-2  # the cutoff lets 1 % of noise pass
    assert _relative(samples.tau, inverse_dynamics(model, q, v, a), samples.usable) < 5e-3


def test_torque_and_acceleration_are_in_phase(model):
    rng = np.random.default_rng(6)
    motion = random_motion(rng, 3)
    samples = prepare(record(model, motion, np.arange(0, 30, 0.005), 1e-5, rng), model)
    _, _, truth = motion.sample(samples.time)
    step = samples.time[1] - samples.time[0]
    for estimate in (samples.a, samples.tau):
        reference = truth if estimate is samples.a else inverse_dynamics(model, *motion.sample(samples.time))
        delay = [np.sum(np.roll(reference, lag, axis=0) * estimate) for lag in range(-20, 21)]
        parabola = np.polyfit(step * np.arange(-20, 21), delay, 2)
        assert abs(-parabola[1] / (2 * parabola[0])) < 2e-3


def test_samples_keep_ten_to_a_period_of_the_cutoff_and_end_within_the_recording(model):
    rng = np.random.default_rng(7)
    recording = record(model, random_motion(rng, 3), np.arange(0, 20, 0.001))
    samples = prepare(recording, model)
    assert 10 * samples.cutoff_hz <= 1 / np.diff(samples.time).mean() <= 20 * samples.cutoff_hz
    assert samples.time[0] >= recording.time[0] and samples.time[-1] <= recording.time[-1]
    dense = prepare(recording, model, PrepareOptions(rate_hz=1000.0))
    assert len(dense) == len(recording)


def test_a_gap_is_excised_and_its_sides_are_filtered_apart(model):
    rng = np.random.default_rng(8)
    motion, time = random_motion(rng, 3), np.arange(0, 30, 0.005)
    time = time[(time < 12.0) | (time > 13.0)]
    samples = prepare(record(model, motion, time, 1e-5, rng), model)
    assert not ((samples.time > 12.0) & (samples.time < 13.0)).any()
    edge = 1 / samples.cutoff_hz
    near = np.abs(samples.time - 12.5) < 0.5 + 0.9 * edge
    assert not samples.usable[near].any()
    _, _, a = motion.sample(samples.time)
    assert _relative(samples.a, a, samples.usable) < 1e-2


@pytest.mark.parametrize("noise", [1e-5, 1e-4])
def test_jitter_and_short_gaps_at_one_kilohertz_change_neither_pieces_nor_cutoff(model, noise):
    rng = np.random.default_rng(18)
    motion, even = random_motion(rng, 3, base_hz=0.16), np.arange(0, 10, 0.001)
    time = jittered_time(rng, 1000.0, 10.0, 0.9)
    time = time[~(((time > 3.0) & (time < 3.008)) | ((time > 7.0) & (time < 7.008)))]
    rough, clean = (prepare(record(model, motion, stamps, noise, rng), model) for stamps in (time, even))
    assert np.allclose(np.diff(rough.time), np.diff(rough.time)[0]), "one piece"
    assert rough.cutoff_hz == pytest.approx(clean.cutoff_hz, rel=0.2)
    assert rough.usable.mean() > 0.95
    _, _, a = motion.sample(rough.time)
    assert _relative(rough.a, a, rough.usable) < 1.5e-2
    (gaps,) = rough.findings
    assert gaps.cause == "gaps" and "gaps between stamps: 2, up to 0.0" in gaps.evidence and not clean.findings


def test_a_joint_without_effort_is_unmeasured_and_the_others_are_as_they_were(model):
    rng = np.random.default_rng(19)
    recording = record(model, random_motion(rng, 3), np.arange(0, 20, 0.005), 1e-5, rng)
    silent = replace(recording, effort=np.where(np.arange(3) == 1, np.nan, recording.effort))
    samples, whole = prepare(silent, model), prepare(recording, model)
    assert not samples.mask[:, 1].any() and not samples.measured[:, 1].any()
    assert np.array_equal(samples.mask[:, [0, 2]], whole.mask[:, [0, 2]])
    assert [finding.cause for finding in samples.findings] == ["no_effort"]


def test_low_speed_is_masked_per_joint_where_coulomb_friction_is_sought(model):
    rng = np.random.default_rng(9)
    motion = random_motion(rng, 3)
    recording = record(model, motion, np.arange(0, 20, 0.005))
    samples = prepare(recording, model)
    _, v, _ = motion.sample(samples.time)
    assert 0.95 < samples.mask[samples.usable].mean() < 1.0, "all but the slowest is fitted"
    assert not samples.mask[~samples.usable].any()
    slow = prepare(recording, model, PrepareOptions(low_speed_fraction=0.3))
    resting = np.abs(v) < 0.1 * np.percentile(np.abs(v), 99, axis=0)
    assert resting.any() and slow.mask[resting].mean() < 0.1
    assert (slow.mask != slow.mask[:, :1]).any(), "joints reverse at different times"
    assert np.array_equal(slow.mask, slow.usable[:, None] & slow.sliding)
    frictionless = random_model(np.random.default_rng(5), 3, drive_terms=("viscous",))
    assert np.array_equal(prepare(recording, frictionless).mask.all(axis=1), samples.usable)


def test_friction_reverses_in_the_samples_as_in_the_filtered_torque(model):
    """Coulomb friction alone, filtered: the direction of the samples explains it also at reversals."""
    motion, time = random_motion(np.random.default_rng(9), 3), np.arange(0, 20, 0.005)
    q, v, _ = motion.sample(time)
    recording = Recording(model.joint_names, time, q, 2.0 * np.sign(v))
    samples = prepare(recording, model, PrepareOptions(cutoff_hz=5.0))
    with_sign = samples.tau - 2.0 * np.sign(samples.v)
    explained = samples.tau - 2.0 * samples.undecimated.filtered(np.sign)
    assert np.abs(explained[samples.usable]).std() < 0.1 * np.abs(with_sign[samples.usable]).std()


def test_where_a_coupled_drive_rests_the_equations_of_all_its_joints_are_masked():
    wrist = Coupling("wrist", ("joint1", "joint2"), (1.0, -0.5))
    coupled = random_model(np.random.default_rng(5), 3, couplings=(wrist,))
    motion = random_motion(np.random.default_rng(9), 3)
    recording, options = record(coupled, motion, np.arange(0, 20, 0.005)), PrepareOptions(low_speed_fraction=0.3)
    robots = coupled, random_model(np.random.default_rng(5), 3)
    samples, plain = (prepare(recording, robot, options) for robot in robots)
    _, v, _ = motion.sample(samples.time)
    speed = v[:, 1] - 0.5 * v[:, 2]
    slow = np.abs(speed) < 0.1 * np.percentile(np.abs(speed), 99)
    assert slow.any() and samples.mask[slow, 1:].mean() < 0.1
    assert np.array_equal(samples.mask[:, 0], plain.mask[:, 0])
    assert (samples.mask <= plain.mask).all()


def test_a_joint_at_rest_is_masked_altogether_and_named(model, caplog):
    rng = np.random.default_rng(10)
    motion = random_motion(rng, 3)
    motion = Motion(motion.frequency, motion.amplitude * np.array([1.0, 0.0, 1.0]), motion.phase)
    recording = record(model, motion, np.arange(0, 20, 0.005), 1e-4, rng)
    with caplog.at_level(logging.WARNING, logger="inertid_ros"):
        samples = prepare(recording, model)
    assert not samples.mask[:, 1].any() and samples.mask[:, 0].any()
    assert f"no usable sample of {model.joint_names[1]}" in caplog.text


def test_joints_are_matched_by_name_and_extra_ones_noticed(model, caplog):
    rng = np.random.default_rng(11)
    plain = record(model, random_motion(rng, 3), np.arange(0, 10, 0.01))
    order = [2, 0, 1]
    extra = np.zeros((len(plain), 1))
    shuffled = Recording((*(plain.joint_names[i] for i in order), "gripper"), plain.time,
        np.hstack([plain.position[:, order], extra]), np.hstack([plain.effort[:, order], extra]), name="shuffled")
    with caplog.at_level(logging.INFO, logger="inertid_ros"):
        samples = prepare(shuffled, model)
    assert np.array_equal(samples.q, prepare(plain, model).q)
    assert "shuffled: ignoring joints that are not in the model: gripper" in caplog.text


def test_a_missing_joint_is_named_with_the_remedy(model):
    zeros = np.zeros((100, 2))
    recording = Recording(("joint0", "other"), np.arange(100) * 0.01, zeros, zeros, name="f.npz")
    with pytest.raises(RecordingError, match=r"^f.npz: joint_names lacks joint1, joint2 .*--lock") as caught:
        prepare(recording, model)
    assert "\n" not in str(caught.value)


def test_measured_channels_are_used_when_asked(model):
    rng = np.random.default_rng(12)
    motion = random_motion(rng, 3)
    recording = record(model, motion, np.arange(0, 20, 0.005), 1e-3, rng)
    measured = prepare(recording, model, PrepareOptions(motion_from="velocity"))
    _, v, a = motion.sample(measured.time)
    assert _relative(measured.v, v, measured.usable) < 1e-3
    assert _relative(measured.a, a, measured.usable) < 1e-2
    with pytest.raises(RecordingError, match="synthetic: acceleration was not recorded; set prepare.motion_from"):
        prepare(recording, model, PrepareOptions(motion_from="acceleration"))
    with pytest.raises(RecordingError, match="velocity was not recorded"):
        prepare(replace(recording, velocity=None), model, PrepareOptions(motion_from="velocity"))


def test_a_cutoff_above_the_nyquist_rate_is_refused(model):
    recording = record(model, random_motion(np.random.default_rng(13), 3), np.arange(0, 10, 0.01))
    with pytest.raises(RecordingError, match=r"prepare.cutoff_hz is 60 but the sample rate is 100.0 Hz.*below 40.0"):
        prepare(recording, model, PrepareOptions(cutoff_hz=60.0))


@pytest.mark.parametrize("samples", [4, 10, 40])
def test_a_recording_too_short_to_filter_is_refused(model, samples):
    recording = record(model, random_motion(np.random.default_rng(14), 3), 0.005 * np.arange(samples))
    with pytest.raises(RecordingError, match="synthetic: time has no piece longer than"):
        prepare(recording, model, PrepareOptions(cutoff_hz=5.0))


def test_short_pieces_between_gaps_are_dropped_with_a_notice(model, caplog):
    rng = np.random.default_rng(15)
    time = np.arange(0, 30, 0.005)
    time = time[(time < 20.0) | ((time > 20.5) & (time < 20.6)) | (time > 21.0)]
    with caplog.at_level(logging.INFO, logger="inertid_ros"):
        samples = prepare(record(model, random_motion(rng, 3), time), model)
    assert not ((samples.time > 20.2) & (samples.time < 20.9)).any()
    assert "dropped" in caplog.text


def test_real_recordings_prepare_alike_from_stamps_of_any_jitter(datasets):
    from inertid_ros.data.files.loading import read_npz
    from inertid_ros.robot.model import load_model

    model = load_model(datasets / "kuka_lwr4" / "kuka_lwr4.urdf")
    for run in (1, 2, 3):
        recording = read_npz(datasets / "kuka_lwr4" / f"run{run}.npz")
        samples = prepare(recording, model)
        inside = samples.usable
        measured = np.column_stack([np.interp(samples.time, recording.time, v) for v in recording.velocity.T])
        assert _relative(samples.v, measured, inside) < 0.03
        assert 1.0 <= samples.cutoff_hz <= 10.0
        assert inside.mean() > 0.8


def test_a_long_rest_before_a_gap_does_not_set_the_cutoff(model):
    rng = np.random.default_rng(12)
    motion, time = random_motion(rng, 3), np.arange(0, 20, 0.005)
    recording = record(model, motion, time, 1e-5, rng)
    rest = np.arange(-60, -1, 0.005)
    still = np.repeat(recording.position[:1], len(rest), axis=0) + 1e-5 * rng.normal(size=(len(rest), 3))
    longer = Recording(recording.joint_names, np.concatenate([rest, recording.time]),
        np.concatenate([still, recording.position]),
        np.concatenate([np.repeat(recording.effort[:1], len(rest), axis=0), recording.effort]))
    assert prepare(longer, model).cutoff_hz == pytest.approx(prepare(recording, model).cutoff_hz, rel=0.25)


@pytest.mark.parametrize(("plate", "key"), [(None, "robot.contacts.under"), (Plate(), "robot.plates.under")])
def test_a_wrench_that_enters_no_equation_is_refused(model, plate, key):
    """A force plate under an arm measures what the equations of a fixed base do not hold."""
    rng = np.random.default_rng(3)
    recording = record(model, random_motion(rng, 3), np.arange(0, 10, 0.005))
    recording = replace(recording, wrenches={"under": rng.normal(size=(len(recording), 6))})
    with pytest.raises(RecordingError, match="wrench/under was recorded, but the robot has no contact or plate"):
        prepare(recording, model)
    ignored = PrepareOptions(wrenches=WrenchOptions(ignored=("under",)))
    samples = prepare(recording, model, ignored)
    assert np.array_equal(samples.tau, prepare(replace(recording, wrenches={}), model).tau)
    frames = {frame.parentJoint: frame.name for frame in model.pinocchio.frames}
    for joint, frame in frames.items():
        held = replace(model, contacts=(Contact("under", frame, plate),))
        if joint:
            assert not np.array_equal(prepare(recording, held).tau, samples.tau)
            continue
        with pytest.raises(ModelError, match=f"^{key}: its frame '{frame}' does not move while robot.base is fixed"):
            prepare(recording, held)
