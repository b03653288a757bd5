"""Simulation of robots that float: momentum, poses, sensors."""

import numpy as np
import pinocchio as pin
import pytest
from support.robots.floating_robots import diver, motion, satellite

from inertid_ros.core.errors import ModelError
from inertid_ros.data.preparation.whole_body_samples import dead_reckoning, fine_dead_reckoning
from inertid_ros.robot.floating_base_motion import REST_POSE
from inertid_ros.simulation.free_floating import GravityGradient, float_freely, measured


@pytest.mark.parametrize("make", [satellite, diver])
@pytest.mark.parametrize("momentum", [None, (0.3, -0.2, 0.1, 0.05, 0.2, -0.1)])
def test_momentum_is_conserved(make, momentum):
    """Of links by Pinocchio, of wheels by their speeds; pose and twist belong together."""
    model = make(np.random.default_rng(1))
    run = motion(model, 4)
    start = None if momentum is None else np.array(momentum)
    found = float_freely(model, model.body_prior, run.trajectory, 50.0, start)
    expected = np.zeros(6) if start is None else start
    np.testing.assert_allclose(found.momentum, np.tile(expected, (len(found.time), 1)), atol=1e-10)
    data = model.pinocchio.createData()
    for row in (0, 37, 120, -1):
        q, v = np.concatenate([found.pose[row], found.q[row]]), np.concatenate([found.twist[row], found.v[row]])
        pin.computeCentroidalMomentum(model.pinocchio, data, q, v)
        total = data.hg.vector.copy()
        total[3:] += np.cross(data.com[0], total[:3])
        for body, axis, speed in zip(model.wheels.bodies, model.wheels.axes, found.speeds[row], strict=True):
            total[3:] += data.oMi[body + 1].rotation @ axis * speed
        np.testing.assert_allclose(total, expected, atol=1e-9)
    step = found.time[1]
    for row in (50, 111):
        before, after = (pin.XYZQUATToSE3(found.pose[row + k]) for k in (-1, 1))
        twist = pin.log6(before.actInv(after)).vector / (2 * step)
        np.testing.assert_allclose(twist, found.twist[row], atol=0.02 * np.abs(found.twist).max())


def test_poses_do_not_depend_on_the_step():
    model = satellite(np.random.default_rng(2), 4)
    run = motion(model, 4)
    coarse, fine = (float_freely(model, model.body_prior, run.trajectory, rate) for rate in (50.0, 200.0))
    np.testing.assert_allclose(coarse.pose, fine.pose[::4], atol=2e-8)


def test_centre_of_mass_stays_where_it_is():
    model = diver(np.random.default_rng(3))
    found = float_freely(model, model.body_prior, motion(model, 4).trajectory, 50.0)
    data = model.pinocchio.createData()
    centres = [
        pin.centerOfMass(model.pinocchio, data, np.concatenate(pair)).copy()
        for pair in zip(found.pose, found.q, strict=True)
    ]
    np.testing.assert_allclose(centres, np.tile(centres[0], (len(centres), 1)), atol=1e-7)
    assert np.ptp(found.pose[:, :3], axis=0).max() > 0.01


def test_gravity_gradient_turns_the_robot_slowly():
    """Against its torque, integrated over time, on a robot that hardly moves."""
    model = satellite(np.random.default_rng(4), 3)
    run = motion(model, 4, speed=1e-6)
    still = run.__class__(run.directions, run.start, 1e-9 * np.ones(6), run.interval)
    gradient = GravityGradient(0.01)
    found = float_freely(model, model.body_prior, still.trajectory, 50.0, torque=gradient)
    data = model.pinocchio.createData()
    q = np.concatenate([found.pose[0], found.q[0]])
    pin.ccrba(model.pinocchio, data, q, np.zeros(model.velocities))
    torque = gradient(found.time, np.tile(data.Ig.inertia, (len(found.time), 1, 1)))
    expected = np.concatenate([[np.zeros(3)], np.cumsum(0.5 * (torque[1:] + torque[:-1]), axis=0) * found.time[1]])
    np.testing.assert_allclose(found.momentum[:, 3:], expected, atol=1e-2 * np.abs(expected).max())
    assert np.abs(expected[-1]).max() > 1e-6
    np.testing.assert_allclose(found.momentum[:, :3], 0.0, atol=1e-12)


def test_sensors_measure_rates_and_nothing_else():
    model = satellite(np.random.default_rng(5), 3)
    found = float_freely(model, model.body_prior, motion(model, 6).trajectory, 100.0)
    clean = measured(model, found, (0, 0, 0), np.random.default_rng(0), "clean")
    assert clean.joint_names == (*model.joint_names, "wheel_x", "wheel_y", "wheel_z")
    np.testing.assert_allclose(clean.position[:, :3], found.q, atol=1e-4)
    np.testing.assert_allclose(clean.base_pose, found.pose, atol=1e-4)
    noise = (1e-3, 2e-3, 3e-3)
    noisy = measured(model, found, noise, np.random.default_rng(0), "noisy")
    error = np.hstack([noisy.base_twist - found.twist, noisy.velocity[:, :3] - found.v])
    np.testing.assert_allclose(np.std(error, axis=0), np.repeat([1e-3, 2e-3, 3e-3], 3), rtol=0.15)
    drift = np.abs(noisy.base_pose - found.pose).max()
    assert 1e-6 < drift < 1e-2  # the pose is integrated from these rates


def test_dead_reckoning_of_a_screw():
    """A constant twist is one exponential, whatever the steps."""
    time, twist = np.linspace(0, 2, 41), np.array([0.3, -0.1, 0.2, 0.5, -0.7, 0.4])
    end = pin.SE3ToXYZQUAT(pin.exp6(pin.Motion(2 * twist)))
    np.testing.assert_allclose(dead_reckoning(time, np.tile(twist, (41, 1)), REST_POSE)[-1], end, atol=1e-12)
    np.testing.assert_allclose(fine_dead_reckoning(0.05, np.tile(twist, (81, 1)), REST_POSE)[-1], end, atol=1e-12)


def test_wrong_trajectory_is_refused():
    model = satellite(np.random.default_rng(6), 3)
    run = motion(model, 4)
    with pytest.raises(ModelError, match="moves 5 axes, robot 'satellite' has 3 joints and 3 wheels"):
        float_freely(
            model, model.body_prior,
            run.__class__(run.directions[:, :5], run.start[:5], run.range[:5], 1.0).trajectory,
        )
