"""Recordings of floating robots: what is prepared, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots.floating_robots import diver, motion, satellite

from inertid_ros.config.recordings import RecordingTopics
from inertid_ros.core.errors import ConfigurationError, RecordingError
from inertid_ros.data.files.bag_backends import write_bag
from inertid_ros.data.files.loading import load_recording
from inertid_ros.data.preparation.prepare import prepare
from inertid_ros.simulation.free_floating import float_freely, measured


@pytest.fixture(scope="module")
def robot():
    return satellite(np.random.default_rng(0), 3)


def recorded(model, momentum=None, torque=None, noise=None, intervals=8):
    found = float_freely(model, model.body_prior, motion(model, intervals).trajectory, 100.0, momentum, torque)
    return measured(model, found, noise or (1e-5, 1e-5, 1e-5), np.random.default_rng(0), "flight")


def test_samples_hold_the_momentum_of_the_wheels(robot):
    recording = recorded(robot)
    samples = prepare(recording, robot, equation_type="momentum")
    expected = -0.1 * np.interp(samples.time, recording.time, recording.velocity[:, 3])
    np.testing.assert_allclose(samples.tau[samples.usable, 3], expected[samples.usable], atol=2e-3)
    assert not samples.tau[:, :3].any()
    assert samples.q.shape[1] == 10
    assert samples.v.shape[1] == 9
    noisy = prepare(recorded(robot, noise=(1e-3, 1e-3, 1e-3)), robot, equation_type="momentum")
    np.testing.assert_allclose(noisy.noise, 1e-3 * np.sqrt(2 * noisy.cutoff_hz * 0.01), rtol=0.3)


def test_wheels_on_a_moving_link_turn_with_it():
    model = diver(np.random.default_rng(1))
    samples = prepare(recorded(model), model, equation_type="momentum")
    assert np.linalg.norm(samples.tau[:, 3:], axis=1).max() > 0.05


def test_without_a_recorded_pose_or_velocity(robot):
    recording = replace(recorded(robot), base_pose=None)
    samples = prepare(recording, robot, equation_type="momentum")
    known = prepare(recorded(robot), robot, equation_type="momentum")
    np.testing.assert_allclose(samples.q[:, :7], known.q[:, :7], atol=1e-3)
    differentiated = prepare(replace(recording, velocity=None), robot, equation_type="momentum")
    usable = samples.usable
    np.testing.assert_allclose(differentiated.v[usable], samples.v[usable], atol=0.02)


def test_missing_channels_are_named(robot):
    recording = recorded(robot)
    with pytest.raises(RecordingError, match="base_twist is missing; record the base's odometry or twist"):
        prepare(replace(recording, base_twist=None), robot, equation_type="momentum")
    names = ("J1", "J2", "J3", "wheel_x", "wheel_y", "other")
    with pytest.raises(RecordingError, match="lacks the speed of wheel wheel_z"):
        prepare(replace(recording, joint_names=names), robot, equation_type="momentum")


def test_external_torque_is_detected(robot):
    """Momentum that comes from outside shows at rest, whatever the parameters are."""
    def push(time, inertia):
        return np.outer((time > 3) * (time < 4), [0.0, 0.3, 0.0])

    with pytest.raises(RecordingError, match=r"not conserved, or not zero: the base \w+ at 0\.\d+ \w+/s at"):
        prepare(recorded(robot, torque=push), robot, equation_type="momentum")


def test_drift_from_the_start_is_detected_and_has_a_remedy(robot):
    recording = recorded(robot, np.array([0.5, 0, 0, 0, 0.3, 0]))
    with pytest.raises(RecordingError, match="if it drifted from the start, set identify.equations"):
        prepare(recording, robot, equation_type="momentum")
    assert np.abs(prepare(recording, robot, equation_type="momentum_change").tau.mean(axis=0)).max() < 0.1


def test_pose_that_drifts_too_far_is_refused(robot):
    """A biased rate sensor, against a pose that does not follow it."""
    recording = recorded(robot, np.array([0.5, 0, 0, 0, 0.3, 0]))
    biased = replace(recording, base_twist=recording.base_twist + [0, 0, 0, 0, 0, 0.03])
    with pytest.raises(RecordingError, match=r"drift apart by 0\.\d+ (rad|m) within 8 s, \d+ % of the"):
        prepare(biased, robot, equation_type="momentum_change")


@pytest.mark.parametrize("topic", ["odometry", "twist"])
def test_bags_of_floating_robots(robot, tmp_path, topic):
    """Odometry, or a twist alone; wheels are joints of the joint states; nothing measures effort."""
    recording = recorded(robot, intervals=4)
    if topic == "twist":
        recording = replace(recording, base_pose=None)
    silent = replace(recording, effort=np.full(recording.effort.shape, np.nan))
    write_bag(silent, tmp_path / "flight")
    again = load_recording(tmp_path / "flight", RecordingTopics(**{topic: f"/{topic}"}), robot.recorded_joints)
    assert again.joint_names == recording.joint_names
    one, two = prepare(recording, robot, equation_type="momentum"), prepare(again, robot, equation_type="momentum")
    np.testing.assert_allclose(two.tau, one.tau, atol=1e-4)
    np.testing.assert_allclose(two.v, one.v, atol=1e-4)


def test_twist_is_given_once():
    with pytest.raises(ConfigurationError, match="odometry and twist both give the twist"):
        RecordingTopics(odometry="/odometry", twist="/twist")
