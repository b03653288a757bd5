"""Wrenches of bodies and gradient of weighted regressor sums, over random robots."""

import numpy as np
import pinocchio as pin
import pytest
from support.robots.random_robots import random_model, random_states

from inertid_ros.regressors.regressor_gradient import BodyWrenches, moved_columns, regressor_product_gradient
from inertid_ros.regressors.rigid_body_regressor import joint_torque_regressor
from inertid_ros.robot.kinematics import TreeKinematics

STENCIL = ((-2, 1 / 12), (-1, -2 / 3), (1, 2 / 3), (2, -1 / 12))


def case(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, joints=int(rng.integers(1, 9)))
    samples = random_states(rng, model, 4)
    weights = rng.normal(size=(4, model.joints, model.layout.body_size))
    return model, (samples.q, samples.v, samples.a), weights


def reaction(model, q, v, a):
    """Wrench at the root (force, torque) about its origin, by Pinocchio."""
    data = model.pinocchio.createData()
    free = model.pinocchio
    pin.forwardKinematics(free, data, q)
    pin.rnea(free, data, q, v, a)
    total = np.zeros(6)
    for joint in range(model.joints):
        if free.parents[joint + 1] == 0:
            total += data.oMi[joint + 1].act(data.f[joint + 1]).vector
    return total


@pytest.mark.parametrize("seed", range(3))
def test_wrenches_give_joint_torques_and_the_reaction_at_the_root(seed):
    model, motion, _ = case(seed)
    kinematics = TreeKinematics.of(model)
    state = kinematics.state(*motion)
    wrenches = BodyWrenches.of(state)
    joint_rows = (state.screws @ wrenches.regressor) * moved_columns(kinematics)
    assert joint_rows == pytest.approx(joint_torque_regressor(model, *motion), abs=1e-9)
    for row in range(4):
        wrench = wrenches.regressor[row] @ model.body_prior.ravel()
        assert wrench == pytest.approx(reaction(model, *(x[row] for x in motion)), rel=1e-9, abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_gradient_of_reaction_and_torque_rows_together(seed):
    model, motion, weights = case(seed)
    kinematics, rng = TreeKinematics.of(model), np.random.default_rng(seed)
    base = rng.normal(size=(4, 6, model.layout.body_size))

    def value(moved):
        state = kinematics.state(*moved)
        wrenches = BodyWrenches.of(state)
        joint_rows = (state.screws @ wrenches.regressor) * moved_columns(kinematics)
        return float((weights * joint_rows).sum() + (base * wrenches.regressor).sum())

    gradient = regressor_product_gradient(kinematics, kinematics.state(*motion), weights, base)
    assert gradient.value == pytest.approx(value(motion), rel=1e-10, abs=1e-8)
    parts = (gradient.position, gradient.velocity, gradient.acceleration)
    for part, found in enumerate(parts):
        direction, step, difference = rng.normal(size=motion[0].shape), 1e-3, 0.0
        for offset, weight in STENCIL:
            moved = [x + offset * step * direction if k == part else x for k, x in enumerate(motion)]
            difference += weight * value(moved) / step
        scale = np.abs(found).max() * np.abs(direction).max()
        assert (found * direction).sum() == pytest.approx(difference, rel=1e-7, abs=1e-7 * scale + 1e-9)


def test_elements_of_bodies_that_a_joint_does_not_move_have_no_effect():
    model, motion, weights = case(5)
    kinematics = TreeKinematics.of(model)
    moved = np.repeat(kinematics.ancestry, 10, axis=1)
    state = kinematics.state(*motion)
    everything = regressor_product_gradient(kinematics, state, weights)
    only = regressor_product_gradient(kinematics, state, weights * moved)
    for one, other in zip(vars(everything).values(), vars(only).values(), strict=True):
        assert one == pytest.approx(other, abs=1e-9)
