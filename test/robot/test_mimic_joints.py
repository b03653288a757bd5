"""Mimic joints that move with their leaders, against Pinocchio's model in which all joints move freely."""

import numpy as np
import pinocchio as pin
import pytest
from lxml import etree
from support.recordings.odd_robots import mimic_linkage
from support.robots.random_robots import random_urdf

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.calibration.dataset import with_moving_leaders
from inertid_ros.calibration.robot_setup import robot_setup
from inertid_ros.calibration.validation import validate
from inertid_ros.config.robot import ContactOptions, RobotOptions
from inertid_ros.core.errors import ConfigurationError, ModelError
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.gate import Verdict
from inertid_ros.identification.base_parameters.closed_form import base_parameters_of_robot
from inertid_ros.regressors.rigid_body_regressor import joint_torque_regressor
from inertid_ros.report.results import Result
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.contacts import external_force
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.model import load_model


def mimicking(rng, count, mimics):
    """URDF of a random tree with random mimic joints, chains among them, and the names of their leaders."""
    root = etree.fromstring(random_urdf(rng, count))
    joints = root.findall("joint")
    joints = [joints[index] for index in rng.permutation(count)]
    for index in range(mimics):
        leader = joints[int(rng.integers(index + 1, count))].get("name")
        multiplier, offset = rng.choice([-1, 1]) * rng.uniform(0.3, 2), rng.uniform(-2, 2)
        etree.SubElement(joints[index], "mimic", joint=leader, multiplier=str(multiplier), offset=str(offset))
    followers = {joint.get("name") for joint in joints[:mimics]}
    leaders = {joint.find("mimic").get("joint") for joint in joints[:mimics]} - followers
    return etree.tostring(root, encoding="unicode"), tuple(sorted(leaders))


def palletiser(rng):
    """URDF of a chain whose last joint turns back against the joint before it, as a parallelogram does."""
    root = etree.fromstring(random_urdf(rng, 4, branched=False))
    elbow, level = root.findall("joint")[2:]
    for joint in (elbow, level):
        joint.set("type", "revolute")
    level.find("origin").set("rpy", "0 0 0")
    level.find("axis").set("xyz", elbow.find("axis").get("xyz"))
    etree.SubElement(level, "mimic", joint=elbow.get("name"), multiplier="-1", offset="0.2")
    return etree.tostring(root, encoding="unicode"), elbow.get("name")


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


def torque_of_all_joints(model, bodies, q, v, a):
    """Pinocchio's torques of all joints at the motion of all joints, summed for each joint of the model."""
    ratios, offsets = expansion(model)
    robot = model.with_bodies(bodies)
    states = zip(q @ ratios.T + offsets, v @ ratios.T, a @ ratios.T, strict=True)
    return np.array([pin.rnea(robot, robot.createData(), *state) for state in states]) @ ratios


@pytest.mark.parametrize("seed", range(30))
def test_torque_regressor_and_wrenches_equal_pinocchio_at_the_motion_of_all_joints(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(3, 9))
    text, leaders = mimicking(rng, count, int(rng.integers(1, min(count - 1, 4))))
    tip = f"link{count - 1}"
    model = load_model(text, RobotOptions(drive_terms=(), carried_joints=leaders, contacts={tip: ContactOptions(tip)}))
    assert len(model.link_names) == count and model.joints == model.velocities == count - len(model.mimics)
    q, v, a = rng.normal(size=(3, 7, model.joints))
    expected = torque_of_all_joints(model, model.body_prior, q, v, a)
    scale = 1e-10 * np.abs(expected).max()
    assert np.abs(rigid_torque(model, model.body_prior, q, v, a) - expected).max() < scale
    regressor = joint_torque_regressor(model, q, v, a)
    assert np.abs(regressor @ model.body_prior.ravel() - expected).max() < scale

    (ratios, offsets), robot, wrenches = expansion(model), model.pinocchio, rng.normal(size=(7, 6))
    data, frame, local = robot.createData(), robot.getFrameId(tip), pin.ReferenceFrame.LOCAL
    jacobians = [pin.computeFrameJacobian(robot, data, ratios @ state + offsets, frame, local) for state in q]
    wanted = np.array([ratios.T @ J.T @ wrench for J, wrench in zip(jacobians, wrenches, strict=True)])
    np.testing.assert_allclose(external_force(model, q, {tip: wrenches}), wanted, atol=1e-9)

    q, v, a = rng.normal(size=(3, 200, model.joints))
    rows = joint_torque_regressor(model, q, v, a).reshape(-1, 10 * count)
    base = base_parameters_of_robot(model)
    assert base.count == np.linalg.matrix_rank(rows, 1e-7)
    assert np.abs(rows[:, base.independent] @ base.projection - rows).max() < 1e-6 * np.abs(rows).max()


@pytest.mark.parametrize("seed", range(2))
def test_a_palletiser_is_identified_with_its_parallelogram(seed, tmp_path):
    rng = np.random.default_rng(seed)
    text, elbow = palletiser(rng)
    given, carried = load_model(text), load_model(text, RobotOptions(carried_joints=(elbow,)))
    bodies, time, recordings = perturb(carried, rng), np.arange(0.0, 20.0, 0.01), []
    for name in ("fitted", "held out"):
        rate, phase = 2 * np.pi * rng.uniform(0.1, 0.5, (3, 3)), rng.uniform(-3, 3, (3, 3))
        waves = np.exp(1j * (np.multiply.outer(time, rate) + phase)) * rng.uniform(0.2, 0.5, (3, 3))
        q, v, a = (np.sum((waves * (1j * rate) ** k).real, axis=1) for k in range(3))
        effort = torque_of_all_joints(carried, bodies, q, v, a) + np.sign(v) + v
        effort *= 1 + 0.002 * rng.normal(size=effort.shape)
        recordings.append(Recording(carried.joint_names, time, q, effort, name=name))
    outcome = calibrate(given, recordings[:1], recordings[1:])
    assert given.held_leaders == (elbow,) and outcome.estimate.model.options.carried_joints == (elbow,)
    assert outcome.validation.calibrated.relative_error < 0.01 and outcome.gate.verdict is Verdict.USE, outcome.message
    result = Result.load(outcome.save(tmp_path / "result"))
    assert result.model.hash == carried.hash and elbow not in result.model.options.locked_joints
    assert validate(result, recordings[1:]).errors.relative_error < 0.01


def test_a_linkage_is_identified_with_its_leaders():
    case, _ = mimic_linkage(np.random.default_rng(3))
    outcome = calibrate(case.given, case.train, case.held_out)
    assert outcome.gate.verdict is Verdict.USE and outcome.validation.calibrated.relative_error < 0.01, outcome.message


def test_leaders_without_position_or_effort_and_at_rest_stay_locked(tmp_path):
    text, elbow = palletiser(np.random.default_rng(5))
    model, time = load_model(text), np.arange(0.0, 10.0, 0.02)
    moving = np.sin(np.outer(time, [1.0, 1.4, 0.8]))
    names = (*model.joint_names, elbow)
    recording = Recording(names, time, moving, moving)
    assert with_moving_leaders(model, [recording]).joint_names == names
    cases = {
        "not recorded": Recording(names[:2], time, moving[:, :2], moving[:, :2]),
        "at rest": Recording(names, time, moving * [1, 1, 0], moving),
        "without effort": Recording(names, time, moving, moving * [1, 1, 0]),
    }
    for case, other in cases.items():
        assert with_moving_leaders(model, [other]) is model, case
        both = with_moving_leaders(model, [recording, other])
        assert both is model or case == "at rest", case
    locked = load_model(text, RobotOptions(locked_joints={elbow: 0.0}))
    assert with_moving_leaders(locked, [recording]) is locked
    (tmp_path / "robot.urdf").write_text(text)
    for recorded, held in (((), True), (names, False), (names[:2], True)):
        settings = robot_setup(tmp_path / "robot.urdf", recorded_names=recorded).settings
        assert ({elbow: 0.0} in [setting.value for setting in settings]) == held


def test_carried_joints_are_refused_where_they_cannot_be_carried():
    text, elbow = palletiser(np.random.default_rng(6))
    with pytest.raises(ModelError, match="no joint mimics 'joint0', or it is locked; give one of"):
        load_model(text, RobotOptions(carried_joints=("joint0",)))
    with pytest.raises(ModelError, match=f"no joint mimics '{elbow}', or it is locked; give none"):
        load_model(text, RobotOptions(carried_joints=(elbow,), locked_joints={elbow: 0.0}))
    with pytest.raises(ModelError, match="robot.carried_joints: only identification .*; remove the option here"):
        assert load_model(text, RobotOptions(carried_joints=(elbow,))).commanded
    with pytest.raises(ConfigurationError, match="carried_joints need base fixed"):
        RobotOptions(carried_joints=(elbow,), base="free")
