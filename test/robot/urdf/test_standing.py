"""URDFs with another root are the same robot."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings, strategies as st
from support.robots.random_robots import random_urdf

from inertid_ros.core.errors import ModelError
from inertid_ros.robot.urdf.text import standing_on

GRAVITY = np.array([0.3, -1.0, -9.7])


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), joints=st.integers(2, 8))
def test_a_robot_that_stands_on_any_link_has_the_same_dynamics(seed: int, joints: int):
    """Mass matrix and gravity of the floating robot, for motions in which the link stands still."""
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, joints)
    floating = pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
    link = floating.frames[int(rng.choice([f for f in range(floating.nframes) if floating.frames[f].type == pin.BODY]))]
    rotation = pin.exp3(rng.uniform(-2, 2, 3))  # of the link in the axes of the ground
    standing = pin.buildModelFromXML(standing_on(text, link.name, rotation))
    q = rng.uniform(-2, 2, joints)

    data, frame = floating.createData(), floating.getFrameId(link.name)
    floating.gravity.linear = GRAVITY
    whole = np.concatenate([pin.neutral(floating)[:7], q])
    mass = pin.crba(floating, data, whole)
    mass = np.triu(mass) + np.triu(mass, 1).T
    pin.framesForwardKinematics(floating, data, whole)
    standing.gravity.linear = rotation @ data.oMf[frame].rotation.T @ GRAVITY
    jacobian = pin.computeFrameJacobian(floating, data, whole, frame, pin.LOCAL)
    held = np.vstack([-np.linalg.solve(jacobian[:, :6], jacobian[:, 6:]), np.eye(joints)])
    weight = held.T @ pin.computeGeneralizedGravity(floating, data, whole)

    own, order = standing.createData(), [list(standing.names)[1:].index(name) for name in list(floating.names)[2:]]
    position = np.empty(joints)
    position[order] = q
    found = pin.crba(standing, own, position)
    found = (np.triu(found) + np.triu(found, 1).T)[np.ix_(order, order)]
    np.testing.assert_allclose(found, held.T @ mass @ held, rtol=1e-9, atol=1e-9 * np.abs(mass).max())
    gravity = pin.computeGeneralizedGravity(standing, own, position)[order]
    np.testing.assert_allclose(gravity, weight, rtol=1e-9, atol=1e-9 * np.abs(mass).max())


def test_a_fixed_joint_on_the_way_to_the_foot_needs_no_axis():
    """Tools write `<axis xyz="0 0 0"/>` for fixed joints."""
    text = (
        '<robot name="r"><link name="base"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0"'
        ' izz="1"/></inertial></link><link name="sole"/><joint name="weld" type="fixed"><parent link="base"/>'
        '<child link="sole"/><origin xyz="0 0 -0.1"/><axis xyz="0 0 0"/></joint></robot>'
    )
    model = pin.buildModelFromXML(standing_on(text, "sole", np.eye(3)))
    np.testing.assert_allclose(model.inertias[0].lever, [0, 0, 0.1])


def test_a_robot_stands_on_a_link():
    with pytest.raises(ModelError, match="no link 'foot' to stand on; it has "):
        standing_on(random_urdf(np.random.default_rng(0), 2), "foot", np.eye(3))
