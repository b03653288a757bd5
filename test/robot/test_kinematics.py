"""Kinematics of a tree in the root frame against Pinocchio, on fixed and free bases; spatial products."""

import numpy as np
import pinocchio as pin
import pytest
from support.robots.free_base import free_model
from support.robots.random_robots import random_model, random_states

from inertid_ros.core.arrays import cross
from inertid_ros.robot.kinematics import TreeKinematics, force_cross, motion_cross, turned_forces


@pytest.mark.parametrize("seed", range(8))
def test_agrees_with_pinocchio(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, joints=int(rng.integers(1, 9)))
    samples = random_states(rng, model, 4)
    q, v, a = samples.q, samples.v, samples.a
    state = TreeKinematics.of(model).state(q, v, a)
    data = model.pinocchio.createData()
    for row in range(len(q)):
        pin.forwardKinematics(model.pinocchio, data, q[row], v[row], a[row])
        pin.computeJointJacobians(model.pinocchio, data, q[row])
        assert pytest.approx(data.J, abs=1e-10) == state.screws[row].T
        for joint in range(model.joints):
            placement = data.oMi[joint + 1]
            assert state.placements[row, joint] == pytest.approx(placement.homogeneous, abs=1e-10)
            assert state.velocity[row, joint] == pytest.approx(placement.act(data.v[joint + 1]).vector, abs=1e-9)
            acceleration = placement.act(data.a[joint + 1]).vector
            acceleration[:3] += (0, 0, 9.81)
            assert state.acceleration[row, joint] == pytest.approx(acceleration, abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_a_free_base_is_seen_from_itself(seed):
    model, rng = free_model(seed, 5), np.random.default_rng(seed)
    q, v, twist = rng.normal(size=(4, 5)), rng.normal(size=(4, 5)), rng.normal(size=(4, 6))
    placements, screws, velocity = TreeKinematics(model.tree).motion(q, v)
    data, rest = model.pinocchio.createData(), np.array([0.0, 0, 0, 0, 0, 0, 1])
    for row in range(4):
        configuration = np.concatenate([rest, q[row]])
        pin.forwardKinematics(model.pinocchio, data, configuration, np.concatenate([twist[row], v[row]]))
        pin.computeJointJacobians(model.pinocchio, data, configuration)
        assert screws[row, 0] == pytest.approx(np.zeros(6))
        assert pytest.approx(data.J[:, 6:], abs=1e-10) == screws[row, 1:].T
        for body in range(6):
            placement = data.oMi[body + 1]
            assert placements[row, body] == pytest.approx(placement.homogeneous, abs=1e-10)
            of_body = twist[row] + velocity[row, body]
            assert of_body == pytest.approx(placement.act(data.v[body + 1]).vector, abs=1e-9)


def test_no_samples():
    model = random_model(np.random.default_rng(0), 3)
    nothing = np.zeros((0, 3))
    assert TreeKinematics.of(model).state(nothing, nothing, nothing).acceleration.shape == (0, 3, 6)


def test_spatial_products():
    rng = np.random.default_rng(0)
    V, M, F = rng.normal(size=(3, 20, 6))
    assert cross(V[:, :3], M[:, :3]) == pytest.approx(np.cross(V[:, :3], M[:, :3]))
    for row in range(20):
        motion, other, force = pin.Motion(V[row]), pin.Motion(M[row]), pin.Force(F[row])
        assert motion_cross(V, M)[row] == pytest.approx(motion.cross(other).vector)
        assert force_cross(V, F)[row] == pytest.approx(motion.cross(force).vector)
        placement = pin.SE3.Random()
        turned = turned_forces(placement.homogeneous, F[row, :, None])[:, 0]
        assert turned == pytest.approx(placement.act(force).vector)
