"""Free base on plates: motion from every source, and bad input that is masked with a notice or refused by name."""

import logging
from dataclasses import replace

import attrs
import numpy as np
import pinocchio as pin
import pytest
from support.recordings.biped import biped, com_error, prior, robot_options, truth
from support.robots.free_base import free_model

from inertid_ros.config.recordings import BaseMotionOptions, PrepareOptions, WrenchOptions
from inertid_ros.config.robot import PlateOptions
from inertid_ros.core.errors import InertidError, ModelError, RecordingError
from inertid_ros.data.preparation.filtered_motion import base_acceleration
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.data.preparation.wrenches import in_contact
from inertid_ros.data.screening.channel_faults import true_runs
from inertid_ros.identification.identify import identify
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.contacts import Contact, Plate
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.example_robots import legged_robot

pytest.importorskip("mujoco", reason="needs MuJoCo (pip install mujoco)")
pytestmark = pytest.mark.xdist_group("biped")  # whose simulation takes seconds

LEFT, RIGHT = "left_plate", "right_plate"


def options(source="twist", **changes):
    return PrepareOptions(base=BaseMotionOptions(motion_from=source, imu_frame="imu"), **changes)


def with_wrench(recording, name, change):
    """The recording with one wrench run through a function."""
    return replace(recording, wrenches={**recording.wrenches, name: change(recording.wrenches[name].copy())})


def residual(samples):
    error = samples.tau - ForceEquations(truth()).predict(truth().prior, samples)
    return [np.sqrt(np.mean(e[m] ** 2)) for e, m in zip(error.T, samples.mask.T, strict=True)]


@pytest.mark.parametrize("source", ["pose", "twist", "imu", "acceleration"])
def test_every_source_of_base_motion_satisfies_the_true_equations(source):
    samples = prepare(biped(movements=4, noise=False), truth(), options(source, cutoff_hz=15.0))
    errors = np.array(residual(samples))
    assert errors[:3].max() < 1.0 and errors[3:6].max() < 0.4 and errors[6:].max() < 0.3
    assert samples.mask.mean() > 0.9


@pytest.mark.parametrize("source", ["pose", "twist", "imu"])
def test_calibration_finds_the_centre_of_mass(source):
    given, held_out = prior(), prepare(biped(movements=4, seed=2), prior(), options(source))
    estimate = identify(given, [prepare(biped(), given, options(source))])
    configurations = held_out.q[held_out.usable][::20]
    before = com_error(given, given.body_prior, configurations)
    after = com_error(given, estimate.bodies, configurations)
    assert before > 5 * after, (before, after)
    assert estimate.bodies[:, 0].sum() == pytest.approx(41.05, rel=0.002)


def test_base_rows_need_no_joint_torque():
    recording = biped()
    silent = replace(recording, effort=np.full_like(recording.effort, np.nan))
    samples = prepare(silent, prior(), options())
    assert samples.mask[:, :6].mean() > 0.9 and not samples.mask[:, 6:].any()
    assert samples.measured is not None and not samples.measured[:, 6:].any()
    estimate = identify(prior(), [samples])
    assert estimate.bodies[:, 0].sum() == pytest.approx(41.05, rel=0.003)


def test_one_silent_torque_sensor_costs_its_rows_only():
    effort = biped().effort.copy()
    effort[:, 3] = np.nan
    samples = prepare(replace(biped(), effort=effort), prior(), options())
    silent = 6 + prior().joint_names.index(biped().joint_names[3])
    assert not samples.mask[:, silent].any() and np.delete(samples.mask, silent, axis=1).any(axis=0).all()


def test_a_plate_of_the_wrong_sign_is_named_with_the_negative_mass():
    recording = with_wrench(with_wrench(biped(), LEFT, np.negative), RIGHT, np.negative)
    with pytest.raises(RecordingError, match=r"a negative mass, -41\.\d kg; .*prepare\.wrenches\.reversed"):
        prepare(recording, prior(), options())
    turned = prepare(recording, prior(), options(wrenches=WrenchOptions(reversed=(LEFT, RIGHT))))
    np.testing.assert_allclose(turned.tau, prepare(biped(), prior(), options()).tau)
    with pytest.raises(RecordingError, match="plate 'left_plate' pulls the robot down"):
        prepare(with_wrench(biped(), LEFT, np.negative), prior(), options())


def test_exchanged_plates_are_named():
    wrenches = biped().wrenches
    recording = replace(biped(), wrenches={LEFT: wrenches[RIGHT], RIGHT: wrenches[LEFT]})
    with pytest.raises(RecordingError, match="are exchanged: the URDF predicts") as caught:
        prepare(recording, prior(), options())
    assert LEFT in str(caught.value) and RIGHT in str(caught.value)


def test_a_saturated_plate_is_masked(caplog):
    limit = np.percentile(np.abs(biped().wrenches[LEFT][:, 2]), 90)
    recording = with_wrench(biped(), LEFT, lambda w: np.where(np.arange(6) == 2, np.clip(w, -limit, limit), w))
    samples = prepare(recording, prior(), options())
    assert "wrench/left_plate is saturated" in caplog.text
    at = np.zeros(len(samples), dtype=bool)
    for start, end in true_runs(recording.wrenches[LEFT][:, 2] == -limit):
        if end - start >= 5:
            at |= (samples.time >= recording.time[start]) & (samples.time < recording.time[end])
    assert at.any() and not samples.mask[at][:, :6].any()
    left = [6 + i for i, name in enumerate(prior().joint_names) if name.startswith("left")]
    right = [6 + i for i, name in enumerate(prior().joint_names) if name.startswith("right")]
    assert not samples.mask[at][:, left].any(), "joints under load of the plate are masked as well"
    assert samples.mask[at][:, right].mean() > 0.9, "the other leg is not affected"


@pytest.mark.parametrize("value", ["frozen", "zero"])
def test_a_plate_that_is_dead_for_a_second_is_masked(caplog, value):
    span = (biped().time > 4.0) & (biped().time < 5.0)

    def die(wrench):
        wrench[span] = wrench[np.argmax(span)] if value == "frozen" else 0.0
        return wrench

    samples = prepare(with_wrench(biped(), RIGHT, die), prior(), options())
    assert "wrench/right_plate repeats itself" in caplog.text
    inside = (samples.time > 4.02) & (samples.time < 4.98)
    assert not samples.mask[inside][:, :6].any() and samples.mask[~inside][:, :6].mean() > 0.8


def test_a_plate_that_nobody_stands_on_may_report_zero(caplog):
    model = replace(truth(), contacts=(*truth().contacts, Contact("third", "left_foot", Plate((1.0, 0.0, 0.0)))))
    recording = replace(biped(), wrenches={**biped().wrenches, "third": np.zeros((len(biped()), 6))})
    caplog.set_level(logging.WARNING)
    samples = prepare(recording, model, options())
    assert samples.mask[:, :6].mean() > 0.9 and "third" not in caplog.text


def test_a_slipping_foot_is_masked(caplog):
    recording = biped()
    slide = np.clip((recording.time - 5.0) / 0.3, 0, 1) * 0.1
    pose = recording.base_pose.copy()
    pose[:, 0] += slide
    samples = prepare(replace(recording, base_pose=pose), prior(), options("pose", cutoff_hz=5.0))
    assert "slips, or the pose of the base drifts" in caplog.text
    assert not samples.mask[(samples.time > 5.1) & (samples.time < 5.2)][:, :6].any()


def test_quaternions_of_either_sign_are_the_same(caplog):
    flipped = biped().base_pose.copy()
    flipped[::7, 3:] *= -1
    again = prepare(replace(biped(), base_pose=flipped), prior(), options("pose"))
    np.testing.assert_allclose(again.tau, prepare(biped(), prior(), options("pose")).tau, atol=1e-9)
    broken = biped().base_pose.copy()
    broken[500:520, 3:] *= 0.2
    samples = prepare(replace(biped(), base_pose=broken), prior(), options("pose"))
    at = (samples.time > biped().time[500]) & (samples.time < biped().time[519])
    assert not samples.mask[at].any() and "20 quaternions that are not of length 1" in caplog.text
    with pytest.raises(RecordingError, match="length 0.2, not 1"):
        prepare(replace(biped(), base_pose=biped().base_pose * [1, 1, 1, 0.2, 0.2, 0.2, 0.2]), prior(), options())


@pytest.mark.parametrize(
    ("change", "source", "message"),
    [({"imu": None}, "imu", "imu was not recorded.*set prepare.base.motion_from to pose or twist"),
        ({"base_pose": None}, "twist", "base_pose was not recorded.*topics.odometry or topics.pose"),
        ({"base_twist": None}, "twist", "base_twist was not recorded"),
        ({"base_twist": np.zeros((1, 6))}, "twist", "base_twist is not the velocity of base_pose"),
        ({"wrenches": {LEFT: 1}}, "pose", r"wrench/right_plate was not recorded \(there is left_plate\)"),
        ({"wrenches": {LEFT: 1, RIGHT: 1, "stool": 1}}, "pose", "wrench/stool was recorded, but the robot has no")],
)
def test_what_is_missing_is_named(change, source, message):
    recording = biped()
    if "wrenches" in change:
        change = {"wrenches": {name: recording.wrenches.get(name, np.ones((len(recording), 6))) for name in
                               change["wrenches"]}}
    if change.get("base_twist") is not None:
        change = {"base_twist": np.zeros_like(recording.base_twist)}
    with pytest.raises(RecordingError, match=message):
        prepare(replace(recording, **change), prior(), options(source))


def test_frames_that_do_not_exist_are_named():
    robot = legged_robot("biped")
    lost = attrs.evolve(robot_options(robot), plates={"left_plate": PlateOptions("left_flipper")})
    with pytest.raises(ModelError, match="contact 'left_plate': the robot has no frame 'left_flipper'"):
        load_model(robot.urdf, lost)
    for frame, message in (("antenna", "is not in the URDF"), ("left_foot", "carried by joint 'left_ankle_ever")):
        with pytest.raises(InertidError, match=message):
            prepare(biped(), prior(), PrepareOptions(base=BaseMotionOptions(motion_from="imu", imu_frame=frame)))
    nothing = replace(truth(), contacts=())
    with pytest.raises(RecordingError, match="the force that supports the robot is unknown"):
        prepare(replace(biped(), wrenches={}), nothing, options())


def test_contact_state_has_hysteresis():
    load = np.array([0.0, 15.0, 25.0, 15.0, 12.0, 9.0, 15.0, 21.0, 11.0, 0.0])
    np.testing.assert_array_equal(in_contact(load, 20.0, 10.0), [0, 0, 1, 1, 1, 0, 0, 1, 1, 0])
    assert not in_contact(np.full(4, 15.0), 20.0, 10.0).any()


def test_the_acceleration_of_a_base_comes_from_an_inertial_unit_anywhere_on_it():
    rng, place = np.random.default_rng(0), np.array([0.1, -0.2, 0.35])
    model = free_model(0, 1).pinocchio
    frame = model.addFrame(pin.Frame("imu", 1, 0, pin.SE3(np.eye(3), place), pin.FrameType.OP_FRAME))
    data, q = model.createData(), pin.neutral(model)
    q[3:7] = rng.normal(size=4)
    q[3:7] /= np.linalg.norm(q[3:7])
    v, a = rng.normal(size=(2, model.nv))
    pin.forwardKinematics(model, data, q, v, a)
    pin.updateFramePlacements(model, data)
    at_unit = pin.getFrameClassicalAcceleration(model, data, frame, pin.ReferenceFrame.LOCAL).linear
    gravity = data.oMi[1].rotation.T @ model.gravity.linear
    found = base_acceleration(*(row[None] for row in (at_unit - gravity, v[3:6], a[3:6], v[:3])), place)
    np.testing.assert_allclose(found[0], np.concatenate([a[:3] - gravity, a[3:6]]), atol=1e-12)
