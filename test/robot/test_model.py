"""RobotModel: lumping, locking, limits, priors and the kinematic hash."""

import re

import numpy as np
import pinocchio as pin
import pytest
import yaml
from lxml import etree
from support.robots.example_robots import ARMS, all_locked, load_with_locks
from support.robots.random_robots import random_model, random_urdf

from inertid_ros.config.configuration import Configuration
from inertid_ros.config.robot import RobotOptions
from inertid_ros.config.structuring import structure
from inertid_ros.core.errors import ModelError, log_once
from inertid_ros.robot.link_shapes import surrounding_ellipsoids
from inertid_ros.robot.model import load_model
from inertid_ros.robot.urdf.joints import locked_joints
from inertid_ros.simulation.example_robots import example_urdf

LEADER = "panda_finger_joint1"


def _full_torque(urdf, values):
    """Torques of the plain Pinocchio model, by joint name, from joint name to (q, v, a)."""
    robot = pin.buildModelFromXML(urdf)
    data, q, v, a = robot.createData(), pin.neutral(robot), np.zeros(robot.nv), np.zeros(robot.nv)
    for name, (position, velocity, acceleration) in values.items():
        joint = robot.joints[robot.getJointId(name)]
        v[joint.idx_v], a[joint.idx_v] = velocity, acceleration
        q[joint.idx_q : joint.idx_q + joint.nq] = (
            position if joint.nq == 1 else (np.cos(position), np.sin(position))  # a continuous joint
        )
    tau = pin.rnea(robot, data, q, v, a)
    return {name: tau[robot.joints[robot.getJointId(name)].idx_v] for name in values}


def _own_torque(model, q, v, a):
    return dict(zip(model.joint_names, pin.rnea(model.pinocchio, model.pinocchio.createData(), q, v, a), strict=True))


@pytest.mark.parametrize("arm", ARMS)
def test_lumped_and_locked_arms_move_as_the_whole_robot_does(arm, robots):
    model, rng = load_with_locks(robots / arm, 0.02), np.random.default_rng(0)
    q, v, a = rng.uniform(-1, 1, model.joints), *rng.normal(size=(2, model.joints))
    values = {name: (position, 0.0, 0.0) for name, position in all_locked(model).items()}
    values |= {name: (q[i], v[i], a[i]) for i, name in enumerate(model.joint_names)}
    full, own = _full_torque(model.urdf, values), _own_torque(model, q, v, a)
    scale = max(map(abs, full.values()))
    for name, torque in own.items():
        assert torque == pytest.approx(full[name], abs=1e-9 * scale)


@pytest.mark.parametrize("seed", range(6))
def test_random_trees_keep_their_torques_when_joints_are_locked(seed):
    rng = np.random.default_rng(seed)
    text, locked = random_urdf(rng, 7), {"joint2": 0.7, "joint5": -0.4}
    model = load_model(text, RobotOptions(locked_joints=locked))
    assert not set(locked) & set(model.joint_names) and model.joints == 5
    q, v, a = rng.uniform(-1, 1, 5), *rng.normal(size=(2, 5))
    values = {name: (position, 0.0, 0.0) for name, position in locked.items()}
    values |= {name: (q[i], v[i], a[i]) for i, name in enumerate(model.joint_names)}
    full, own = _full_torque(text, values), _own_torque(model, q, v, a)
    assert [own[name] for name in own] == pytest.approx([full[name] for name in own], rel=1e-9)


def test_each_link_is_the_one_that_its_joint_moves(robots):
    model = load_with_locks(robots / ARMS[0])
    assert model.joint_names == tuple(f"panda_joint{k}" for k in range(1, 8))
    assert model.link_names == tuple(f"panda_link{k}" for k in range(1, 8))
    assert model.body_locked[-1, 0] > 0 and not model.body_locked[:-1].any()


def test_the_locked_part_is_what_lies_behind_the_locked_joint():
    rng = np.random.default_rng(1)
    text = random_urdf(rng, 4, branched=False)
    whole = load_model(text)
    model = load_model(text, RobotOptions(locked_joints={"joint3": 0.3}))
    assert model.body_locked[2, 0] == pytest.approx(whole.body_prior[3, 0])
    assert np.allclose((model.body_prior - model.body_locked)[2], whole.body_prior[2])
    assert not model.body_locked[:2].any()


def test_a_robot_of_one_joint_is_a_robot():
    model = random_model(np.random.default_rng(2), 1)
    assert model.joints == 1 and model.axes.shape == (1, 6) and len(model.hash) == 64
    assert model.prior.shape == (model.layout.size,)


def test_axes_are_the_motion_of_each_joint():
    model = random_model(np.random.default_rng(3), 6)
    data = model.pinocchio.createData()
    for index in range(6):
        v = np.zeros(6)
        v[index] = 1.0
        pin.forwardKinematics(model.pinocchio, data, np.random.default_rng(4).uniform(-1, 1, 6), v)
        assert np.allclose(data.v[index + 1].vector, model.axes[index], atol=1e-12)


def test_the_hash_knows_kinematics_and_nothing_else():
    text = random_urdf(np.random.default_rng(5), 3, branched=False)
    model = load_model(text)
    for same in (text.replace('effort="100"', 'effort="7"'), text.replace('name="random"', 'name="other"')):
        assert load_model(same).hash == model.hash
    straight = re.sub('(<joint name="joint1".*?)rpy="[^"]*"', r'\1rpy="0 0 0"', text)
    rounded = straight.replace('rpy="0 0 0"', 'rpy="-1e-12 1e-12 -1e-12"')  # zeros of another sign
    assert rounded != straight and load_model(rounded).hash == load_model(straight).hash
    heavier = text.replace('<mass value="', '<mass value="1')
    assert load_model(heavier).hash == model.hash and not np.allclose(load_model(heavier).prior, model.prior)
    for other in (
        text.replace("joint1", "elbow"),
        text.replace('type="revolute"', 'type="prismatic"', 1),
        text.replace('<axis xyz="', '<axis xyz="0.1 0.2 0.3" was="'),
        re.sub('(<joint name="joint1".*?)rpy="[^"]*"', r'\1rpy="0 0 1"', text),
    ):
        assert load_model(other).hash != model.hash
    locked = RobotOptions(locked_joints={"joint2": 0.1})
    assert load_model(text, locked).hash != model.hash


def test_limits_are_read_and_absent_ones_are_infinite():
    text = random_urdf(np.random.default_rng(6), 2, branched=False)
    limits = load_model(text).limits
    found = (limits.lower, limits.upper, limits.velocity, limits.effort)
    assert [values.tolist() for values in found] == [[-3, -3], [3, 3], [2, 2], [100, 100]]
    free = text.replace('type="revolute"', 'type="continuous"').replace('type="prismatic"', 'type="continuous"')
    limits = load_model(free).limits
    assert np.isinf(limits.lower).all() and np.isinf(limits.upper).all() and limits.velocity.tolist() == [2, 2]
    silent = free.replace('<limit lower="-3" upper="3" velocity="2" effort="100"/>', "")
    assert np.isinf(load_model(silent).limits.velocity).all()


def test_friction_of_the_urdf_is_the_prior_of_the_drives():
    text = random_urdf(np.random.default_rng(7), 2, branched=False)
    text = text.replace("</joint>", '<dynamics damping="0.5" friction="0.25"/></joint>', 1)
    model = load_model(text)
    assert model.drive_prior["viscous"].tolist() == [0.5, 0.0]
    assert model.drive_prior["coulomb"].tolist() == [0.25, 0.0]
    assert model.prior[model.layout.drive("viscous")].tolist() == [0.5, 0.0]


def test_mimic_joints_follow_a_locked_leader_which_is_held_by_default(robots, caplog):
    path = robots / ARMS[0]
    log_once.cache_clear()
    given, near, far = (load_model(path, RobotOptions(x)) for x in ({}, *({LEADER: x} for x in (0.0, 0.04))))
    assert given.joint_names == near.joint_names == far.joint_names
    assert np.array_equal(given.body_prior, near.body_prior) and given.options == near.options
    assert not np.allclose(near.body_prior[-1], far.body_prior[-1]), "the fingers' place counts"
    told = [record.getMessage() for record in caplog.records if "mimic" in record.getMessage()]
    assert len(told) == 1 and told[0].endswith("set robot.locked_joints: {panda_finger_joint1: 0.0}")
    chosen = yaml.safe_load(told[0].partition("pose, set ")[2])
    assert structure(Configuration, chosen, "test").robot.locked_joints == {LEADER: 0.0}


def test_chains_of_mimic_joints_lead_to_one_joint_and_absent_leaders_are_replaced():
    text = random_urdf(np.random.default_rng(15), 5, branched=False)

    def with_mimics(*pairs):
        root = etree.fromstring(text.encode())
        for follower, leader in pairs:
            joint = next(joint for joint in root.findall("joint") if joint.get("name") == follower)
            etree.SubElement(joint, "mimic", joint=leader, multiplier="2", offset="0.1")
        return etree.tostring(root, encoding="unicode")

    chain = load_model(with_mimics(("joint2", "joint3"), ("joint3", "joint4")))
    assert chain.joint_names == ("joint0", "joint1") and chain.options.locked_joints == {"joint4": 0.0}
    root = etree.fromstring(chain.urdf.encode())
    assert locked_joints(root, {"joint4": 0.5}) == pytest.approx({"joint4": 0.5, "joint3": 1.1, "joint2": 2.3})
    assert load_model(with_mimics(("joint4", "ghost"))).options.locked_joints == {"joint4": 0.0}
    with pytest.raises(ModelError, match="mimics itself through '.*'; fix the URDF"):
        load_model(with_mimics(("joint1", "joint2"), ("joint2", "joint1")))


def test_impossible_locks_are_refused():
    with pytest.raises(ModelError, match="locked joint 'ghost': the URDF has no movable joint of this name"):
        random_model(np.random.default_rng(8), 3, locked_joints={"ghost": 0.0})


def test_nothing_left_to_move_is_refused():
    with pytest.raises(ModelError, match="has no movable joint left"):
        random_model(np.random.default_rng(9), 1, locked_joints={"joint0": 0.0})


def test_other_bodies_leave_the_model_as_it_is():
    model = random_model(np.random.default_rng(10), 3)
    other = model.with_bodies(2 * model.body_prior)
    assert other.inertias[1].mass == pytest.approx(2 * model.pinocchio.inertias[1].mass)
    assert np.allclose(model.pinocchio.inertias[1].toDynamicParameters(), model.body_prior[0])


def test_gravity_is_an_option():
    model = random_model(np.random.default_rng(11), 3, gravity=(0.0, 0.0, 0.0))
    torque = pin.rnea(model.pinocchio, model.pinocchio.createData(), np.ones(3), np.zeros(3), np.zeros(3))
    assert np.allclose(torque, 0.0)


def test_a_text_with_the_folder_of_its_file_has_the_shapes_of_the_file():
    """As in nodes, which pass the text on to other processes."""
    file = example_urdf()
    of_file, of_text = load_model(file), load_model(file.read_text(), folder=file.parent)
    pairs = zip(*(surrounding_ellipsoids(model, shapes=True) for model in (of_file, of_text)), strict=True)
    assert of_text.folder == of_file.folder and of_text.hash == of_file.hash
    assert all(np.array_equal(one.row, other.row) for one, other in pairs)
