"""Batched recursions and compression against Pinocchio and plain QR, over random trees and real robots."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from support.robots.random_robots import random_bodies, random_model, random_states

from inertid_ros.core.arrays import r_factor
from inertid_ros.identification.information.information import Compressor, compress
from inertid_ros.regressors.equations import ForceEquations, dense_equations
from inertid_ros.regressors.rigid_body_regressor import RigidBodyRegressor, joint_torque_regressor, regroup_to_parents
from inertid_ros.robot.dynamics import WRENCH_TABLE, BodyRecursion, rigid_torque
from inertid_ros.robot.kinematics import BATCH
from inertid_ros.robot.model import RobotModel, load_model

ARMS = (
    "ur_description/urdf/ur10_robot.urdf", "kinova_description/robots/kinova.urdf",
    "double_pendulum_description/urdf/double_pendulum.urdf", "allegro_hand_description/urdf/allegro_left_hand.urdf",
    "hyq_description/robots/hyq_no_sensors.urdf")


def _pinocchio_regressor(model: RobotModel, samples) -> np.ndarray:
    robot = model.pinocchio
    data = robot.createData()
    states = zip(samples.q, samples.v, samples.a, strict=True)
    return np.array([pin.computeJointTorqueRegressor(robot, data, *state).copy() for state in states])


def _tree(seed: int, joints: int | None = None, **options) -> tuple[np.random.Generator, RobotModel]:
    rng = np.random.default_rng(seed)
    return rng, random_model(rng, joints or int(rng.integers(1, 10)), branched=bool(seed % 2), **options)


@pytest.mark.parametrize("seed", range(4))
def test_regressor_equals_pinocchio_entry_by_entry(seed):
    rng, model = _tree(seed)
    samples = random_states(rng, model, 30)
    expected = _pinocchio_regressor(model, samples)
    regressor = joint_torque_regressor(model, samples.q, samples.v, samples.a)
    np.testing.assert_allclose(regressor, expected, atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("arm", ARMS)
def test_regressor_and_inverse_dynamics_of_real_robots(robots, arm):
    model = load_model(robots / arm)
    rng = np.random.default_rng(0)
    samples = random_states(rng, model, 10)
    expected = _pinocchio_regressor(model, samples)
    regressor = joint_torque_regressor(model, samples.q, samples.v, samples.a)
    np.testing.assert_allclose(regressor, expected, atol=1e-12 * np.abs(expected).max())
    torque = rigid_torque(model, model.body_prior, samples.q, samples.v, samples.a)
    np.testing.assert_allclose(torque, expected @ model.body_prior.ravel(), atol=1e-12 * np.abs(expected).max())


def test_samples_beyond_one_batch():
    rng, model = _tree(2)
    samples = random_states(rng, model, BATCH + 3)
    regressor = joint_torque_regressor(model, samples.q, samples.v, samples.a)
    for rows in (slice(0, 2), slice(BATCH - 2, None)):
        part = joint_torque_regressor(model, samples.q[rows], samples.v[rows], samples.a[rows])
        np.testing.assert_allclose(regressor[rows], part, atol=1e-12 * np.abs(part).max())
    assert joint_torque_regressor(model, *np.zeros((3, 0, model.joints))).shape[0] == 0


@pytest.mark.parametrize("seed", range(4))
def test_inverse_dynamics_equals_pinocchio(seed):
    rng, model = _tree(seed, gravity=tuple(np.random.default_rng(seed).normal(size=3)))
    samples = random_states(rng, model, 20)
    bodies = random_bodies(rng, model.joints)
    robot = model.with_bodies(bodies)
    data = robot.createData()
    expected = [pin.rnea(robot, data, *state) for state in zip(samples.q, samples.v, samples.a, strict=True)]
    torque = rigid_torque(model, bodies, samples.q, samples.v, samples.a)
    np.testing.assert_allclose(torque, expected, atol=1e-12 * np.abs(expected).max())


def test_wrench_table_equals_pinocchio():
    rng = np.random.default_rng(0)
    velocity, acceleration = pin.Motion(rng.normal(size=6)), pin.Motion(rng.normal(size=6))
    motions = np.stack([velocity.vector, acceleration.vector], axis=1)[:, :, None]
    _, model = _tree(0, joints=1)
    sweep = BodyRecursion(model.tree, np.zeros(3), screws=0)
    sweep.start(*np.zeros((3, 1, 1)))
    regressor = WRENCH_TABLE @ sweep.products(motions)[:, 0]
    np.testing.assert_allclose(regressor, pin.bodyRegressor(velocity, acceleration), atol=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_regrouped_columns_span_all_of_them(seed):
    rng, model = _tree(seed)
    samples = random_states(rng, model, 20)
    grouping = regroup_to_parents(model.tree)
    regressor = RigidBodyRegressor(model.tree, model.pinocchio.gravity.linear, grouping.columns)
    kept = np.zeros((model.joints, regressor.width, 20))
    regressor.write(samples.q.T, samples.v.T, samples.a.T, kept)
    expected = _pinocchio_regressor(model, samples)
    regrouped = np.einsum("jcn,cp->njp", kept, grouping.matrix)
    np.testing.assert_allclose(regrouped, expected, atol=1e-12 * np.abs(expected).max())


def test_regrouping_keeps_seven_and_four_columns():
    for seed in range(6):
        _, model = _tree(seed, joints=6)
        for joint, kept in zip(model.tree, regroup_to_parents(model.tree).columns, strict=True):
            count = {(True, True): 1, (True, False): 3, (False, True): 4, (False, False): 7}
            assert len(kept) == count[joint.parent < 0, joint.prismatic]


def _measured(seed: int, count: int):
    rng, model = _tree(seed)
    samples = random_states(rng, model, count)
    mask = rng.random(samples.q.shape) > 0.2
    mask[:5] = True
    return model, replace(samples, tau=rng.normal(size=samples.q.shape), mask=mask)


def _plain(model: RobotModel, samples) -> list[np.ndarray]:
    """QR of all rows and columns of every channel at once."""
    chunks = list(dense_equations(ForceEquations(model), samples))
    joints = range(model.joints)
    return [r_factor(np.vstack([np.column_stack(chunk[joint]) for chunk in chunks])) for joint in joints]


@pytest.mark.parametrize("seed", range(4))
def test_compression_equals_qr_of_all_rows(seed):
    model, samples = _measured(seed, 700)
    information = compress(model, [samples])
    for channel, columns, expected in zip(
            information.channels, ForceEquations(model).columns, _plain(model, samples), strict=True):
        np.testing.assert_array_equal(channel.columns, columns)
        np.testing.assert_array_equal(channel.r_factor, np.triu(channel.r_factor))
        gram = expected.T @ expected
        np.testing.assert_allclose(channel.r_factor.T @ channel.r_factor, gram, atol=1e-12 * np.abs(gram).max())
    np.testing.assert_array_equal(information.counts, samples.mask.sum(axis=0))


def test_compression_over_batches_and_recordings():
    model, samples = _measured(3, 2 * BATCH + 17)
    names = ("time", "q", "v", "a", "tau", "mask", "usable")
    cuts = [0, 1, 40, BATCH + 50, len(samples)]
    parts = [
        replace(samples, **{name: getattr(samples, name)[start:end] for name in names})
        for start, end in zip(cuts[:-1], cuts[1:], strict=True)]
    whole, merged = compress(model, [samples]), compress(model, iter(parts))
    for first, second in zip(whole.channels, merged.channels, strict=True):
        gram = first.r_factor.T @ first.r_factor
        np.testing.assert_allclose(second.r_factor.T @ second.r_factor, gram, atol=1e-12 * np.abs(gram).max())
        assert first.count == second.count


def test_compression_keeps_what_normal_equations_lose():
    """Motion that barely shows some directions: they are there with nine digits fewer, not lost in rounding."""
    rng, model = _tree(1, joints=4, drive_terms=("viscous", "offset"))
    samples = random_states(rng, model, 600)
    shown = rng.random((600, 4)) * 1e-5
    samples = replace(samples, q=0.3 + shown, v=1e-4 * samples.v, a=1e-4 * samples.a, tau=rng.normal(size=(600, 4)))
    information = compress(model, [samples])
    for channel, expected in zip(information.channels, _plain(model, samples), strict=True):
        norms = np.maximum(np.linalg.norm(expected, axis=0), 1e-300)
        found = np.linalg.svd(channel.r_factor / norms, compute_uv=False)
        true = np.linalg.svd(expected / norms, compute_uv=False)
        above = true > 1e-9
        np.testing.assert_allclose(found[above], true[above], rtol=1e-4)


def test_compression_in_flat_memory():
    _, model = _tree(4, joints=6)
    sizes = []
    for parts in (2, 20):
        generator = np.random.default_rng(0)
        tracemalloc.start()
        compress(model, (random_states(generator, model, 500) for _ in range(parts)))
        sizes.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert sizes[1] < 1.05 * sizes[0]


def test_compressor_of_a_large_tree_stays_small():
    _, model = _tree(7, joints=30)
    compressor = Compressor(ForceEquations(model))
    assert sum(array.nbytes for array in vars(compressor).values() if isinstance(array, np.ndarray)) < 70e6
