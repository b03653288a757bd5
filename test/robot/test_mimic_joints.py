"""Mimic joints that move with their leaders, against Pinocchio's model in which all joints move freely."""

import numpy as np
import pinocchio as pin
import pytest
from lxml import etree
from support.robots.random_robots import random_urdf

from inertid_ros.config.robot import RobotOptions
from inertid_ros.regressors.rigid_body_regressor import joint_torque_regressor
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.model import load_model


def mimicking(rng, count, mimics):
    """URDF of a random tree with random mimic joints, chains among them, and the names of their leaders."""
    root = etree.fromstring(random_urdf(rng, count))
    joints = root.findall("joint")
    joints = [joints[index] for index in rng.permutation(count)]
    for index in range(mimics):
        leader = joints[int(rng.integers(index + 1, count))].get("name")
        multiplier, offset = rng.uniform(-2, 2, 2)
        etree.SubElement(joints[index], "mimic", joint=leader, multiplier=str(multiplier), offset=str(offset))
    followers = {joint.get("name") for joint in joints[:mimics]}
    leaders = {joint.find("mimic").get("joint") for joint in joints[:mimics]} - followers
    return etree.tostring(root, encoding="unicode"), tuple(sorted(leaders))


def expansion(model):
    """Matrix ``(nb, n)`` and offsets ``(nb,)`` from positions of the joints to those of all bodies, from the URDF."""
    mimics = {joint.get("name"): joint.find("mimic") for joint in etree.fromstring(model.urdf).findall("joint")}

    def row(name):
        if mimics[name] is None:
            return np.eye(model.joints)[model.joint_names.index(name)], 0.0
        ratios, offset = row(mimics[name].get("joint"))
        factor = float(mimics[name].get("multiplier"))
        return factor * ratios, factor * offset + float(mimics[name].get("offset"))

    rows, offsets = zip(*(row(name) for name in list(model.pinocchio.names)[1:]), strict=True)
    return np.array(rows), np.array(offsets)


@pytest.mark.parametrize("seed", range(30))
def test_torque_and_regressor_equal_pinocchio_at_the_motion_of_all_joints(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 9))
    text, leaders = mimicking(rng, count, int(rng.integers(1, min(count - 1, 4))))
    model = load_model(text, RobotOptions(carried_joints=leaders))
    ratios, offsets = expansion(model)
    assert len(model.link_names) == count and model.joints == model.velocities == count - len(model.mimics)
    q, v, a = rng.normal(size=(3, 7, model.joints))
    data = model.pinocchio.createData()
    states = zip(q @ ratios.T + offsets, v @ ratios.T, a @ ratios.T, strict=True)
    expected = np.array([pin.rnea(model.pinocchio, data, *state) for state in states]) @ ratios
    scale = 1e-10 * np.abs(expected).max()
    assert np.abs(rigid_torque(model, model.body_prior, q, v, a) - expected).max() < scale
    regressor = joint_torque_regressor(model, q, v, a)
    assert np.abs(regressor @ model.body_prior.ravel() - expected).max() < scale
