"""MJCF files as robots: MuJoCo's inverse dynamics is that of the converted robot, and losses are told."""

import os
import sys

import numpy as np
import pinocchio as pin
import pytest
from lxml import etree
from scipy.spatial.transform import Rotation
from support.robots.example_robots import all_locked
from support.robots.random_robots import random_urdf

from inertid_ros.cli.main import main
from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import InertidError, ModelError, log_once
from inertid_ros.identification.assessment.torque_confidence import sample_states
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.link_shapes import collision_shapes
from inertid_ros.robot.model import load_model
from inertid_ros.robot.urdf import mjcf
from inertid_ros.robot.urdf.parsing import DRAKE
from inertid_ros.robot.urdf.shapes import corners_in_body

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install mujoco")


def _text(values) -> str:
    return " ".join(repr(float(value)) for value in np.atleast_1d(values))


def random_mjcf(rng, bodies: int) -> str:
    """Tree of rotated bodies with up to three slides and hinges each, anchors anywhere, references, and shapes."""
    root = etree.Element("mujoco", model="random")
    etree.SubElement(root, "compiler", angle="radian", autolimits="true")
    default = etree.SubElement(etree.SubElement(root, "default"), "joint")
    default.attrib.update({"armature": "0.02", "damping": "0.3"})
    places, number = [etree.SubElement(root, "worldbody")], 0
    for index in range(bodies):
        parent = places[int(rng.integers(len(places)))] if rng.uniform() < 0.4 else places[-1]
        turn = rng.choice(24) if rng.uniform() < 0.3 else None
        turned = Rotation.random(random_state=rng) if turn is None else Rotation.create_group("O")[turn]
        body = etree.SubElement(
            parent, "body", name=f"body{index}", pos=_text(rng.normal(size=3) / 3), quat=_text(turned.as_quat()))
        for _ in range(int(rng.choice([0, 1, 1, 1, 2, 3])) if index else 1):
            joint = etree.SubElement(
                body, "joint", name=f"joint{number}", type=str(rng.choice(["hinge", "slide"])),
                axis=_text(rng.normal(size=3)), pos=_text(rng.normal(size=3) / 5), ref=_text(rng.normal()))
            if rng.uniform() < 0.5 or joint.get("type") == "slide":
                joint.set("range", "-2 2.5")
            if rng.uniform() < 0.3:
                joint.set("armature", "0.5")
            number += 1
        if rng.uniform() < 0.5:
            sizes, half = rng.uniform(0.05, 0.2, 3), Rotation.random(random_state=rng).as_quat()
            etree.SubElement(body, "geom", type=str(rng.choice(["box", "capsule", "cylinder", "sphere", "ellipsoid"])),
                size=_text(sizes), pos=_text(rng.normal(size=3) / 5), quat=_text(half))
        else:
            moments = rng.uniform(0.05, 0.1, 3)
            etree.SubElement(body, "inertial", pos=_text(rng.normal(size=3) / 5), mass=_text(rng.uniform(0.5, 3)),
                diaginertia=_text(moments), quat=_text(Rotation.random(random_state=rng).as_quat()))
        places.append(body)
    return etree.tostring(root, encoding="unicode")


def check_torque(path) -> None:
    """The converted robot has the torque of MuJoCo's inverse dynamics, without dry friction, at random states."""
    text, _ = mjcf._converted(str(path), None)
    model, compiled = load_model(text, folder=path.parent), mujoco.MjModel.from_xml_path(str(path))
    compiled.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    for lost in ("jnt_stiffness", "body_gravcomp", "tendon_stiffness", "tendon_damping"):
        getattr(compiled, lost)[:] = 0.0
    states, data = sample_states(model, 10), mujoco.MjData(compiled)
    joints = [compiled.joint(name) for name in model.joint_names]
    dofs, places = [int(joint.dofadr[0]) for joint in joints], [int(joint.qposadr[0]) for joint in joints]
    data.qpos[compiled.jnt_qposadr] = 0.0
    for name, position in all_locked(model).items():
        data.joint(name).qpos = position
    torque = []
    for q, v, a in zip(states.q, states.v, states.a, strict=True):
        data.qpos[places], data.qvel[dofs], data.qacc[dofs] = q, v, a
        mujoco.mj_inverse(compiled, data)
        torque.append(data.qfrc_inverse[dofs])
    parameters = model.prior
    parameters[model.layout.drive("coulomb")] = 0.0
    expected = ForceEquations(model).predict(parameters, states)
    np.testing.assert_allclose(torque, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(8))
def test_random_trees_have_the_torque_of_mujoco(seed, tmp_path):
    rng = np.random.default_rng(seed)
    path = tmp_path / "robot.xml"
    path.write_text(random_mjcf(rng, int(rng.integers(1, 7))))
    check_torque(path)


_MESH = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
_ARM = """<mujoco model="arm"><compiler angle="radian" meshdir="meshes"/>
<asset><mesh name="hull" file="hull.obj" scale="0.1 0.2 0.3" refpos="0.05 0 0"/></asset>
<worldbody><geom type="plane" size="1 1 1"/>
<body name="upper" pos="0 0 0.5"><joint name="shoulder" axis="0 0 1" range="-1 2" armature="0.2" frictionloss="0.4"
 damping="0.1"/><geom name="a" type="mesh" mesh="hull" pos="0.1 0 0" euler="0.3 0.1 0.2"/>
<body name="elbow" pos="0.3 0 0"><joint name="elbow" pos="0.02 0 0" axis="0 1 0" actuatorfrcrange="-7 7"/>
<geom name="b" type="capsule" size="0.05 0.1" pos="0.1 0 0.1" euler="0.5 0 0"/>
<body name="hand" pos="0.2 0 0"><joint name="left" type="slide" axis="0 1 0" range="0 0.04"/>
<geom name="c" size="0.02"/></body>
<body name="thumb"><joint name="right" type="slide" axis="0 1 0" range="-0.08 0" ref="-0.01"/>
<geom name="d" size="0.02"/></body>
<body name="eye"><geom type="box" size="0.01 0.02 0.03" contype="0" conaffinity="0"/></body>
</body></body></worldbody>
<equality><joint joint1="right" joint2="left" polycoef="0.002 -2 0 0 0"/></equality>
<actuator><motor joint="shoulder" gear="50" ctrllimited="true" ctrlrange="-2 1"/>
<position joint="elbow" kp="20" kv="3" gear="2" forcelimited="true" forcerange="-4 4"/></actuator></mujoco>"""


def write_arm(folder, *changes):
    text = _ARM
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (folder / "meshes").mkdir(exist_ok=True)
    (folder / "meshes" / "hull.obj").write_text(_MESH)
    (folder / "arm.xml").write_text(text)
    return folder / "arm.xml"


def test_limits_drives_and_mimic_joints_are_those_of_the_mjcf(tmp_path):
    model = load_model(write_arm(tmp_path))
    assert model.joint_names == ("shoulder", "elbow") and model.link_names == ("upper", "elbow_link")
    np.testing.assert_allclose([model.limits.lower, model.limits.upper], [[-1, -np.inf], [2, np.inf]])
    np.testing.assert_allclose(model.limits.effort, [100, 7])  # 2 times gear 50; 7 is less than 4 times gear 2
    assert np.isinf(model.limits.velocity).all()
    prior = {"rotor_inertia": [0.2, 0], "viscous": [0.1, 0], "coulomb": [0.4, 0]}
    for term, values in prior.items():
        np.testing.assert_allclose(model.drive_prior[term], values)
    at = all_locked(model)
    assert at["right"] == pytest.approx(-0.01 + 0.002 - 2 * at["left"])  # MuJoCo's equality is about the references
    check_torque(tmp_path / "arm.xml")


@pytest.mark.parametrize("reference", ["", 'scale="0.2 0.2 0.2" refpos="0.05 0.1 0" refquat="0.6 0.8 0 0"'])
def test_shapes_are_where_mujoco_has_them(reference, tmp_path):
    given = 'scale="0.1 0.2 0.3" refpos="0.05 0 0"'
    path = write_arm(tmp_path, (given, reference or given))
    model, compiled = load_model(path), mujoco.MjModel.from_xml_path(str(path))
    shapes, problems = collision_shapes(model)
    assert not problems and [shape.geometry for shape in shapes] == ["mesh", "capsule", "sphere", "sphere"]
    data, kinematics = mujoco.MjData(compiled), model.pinocchio.createData()
    at = {**all_locked(model), "shoulder": 0.3, "elbow": -0.4}
    for name, position in at.items():
        data.joint(name).qpos = position
    mujoco.mj_kinematics(compiled, data)
    pin.forwardKinematics(model.pinocchio, kinematics, np.array([0.3, -0.4]))
    for shape, name in zip(shapes, "abcd", strict=True):
        placement = kinematics.oMi[shape.body + 1]
        index = compiled.geom(name).id
        points = np.array(compiled.mesh_vert if name == "a" else np.zeros((1, 3)), dtype=float)
        expected = points @ data.geom_xmat[index].reshape(3, 3).T + data.geom_xpos[index]
        found = corners_in_body(shape) if name == "a" else shape.placement[None, :3, 3]
        found = found @ placement.rotation.T + placement.translation
        np.testing.assert_allclose(found[np.lexsort(found.T)], expected[np.lexsort(expected.T)], atol=1e-7)


@pytest.mark.parametrize(("old", "new", "told"), [
    ("<mujoco", "<mujoco", "shapes are left out; set excitation.floor_m, or add obstacles: a plane of 'world'"),
    ('refpos="0.05 0 0"', 'refquat="0.6 0.8 0 0"', "a mesh of 'upper', without a file or turned"),
    ("<mujoco", "<mujoco", "robot.command_kp: {elbow: 80}, robot.command_kd: {elbow: 12}"),
    ("</worldbody>", '<body name="cup"><freejoint/><geom size="1"/></body></worldbody>', "objects are left out: cup"),
    ('range="-1 2"', 'range="-1 2" stiffness="3"', "springs of joints are no prior"),
    ("</equality>", '<connect body1="thumb" body2="hand" anchor="0 0 0"/></equality>', "closed loops"),
    ('polycoef="0.002 -2 0', 'polycoef="0.002 -2 1', "closed loops and other equality constraints are opened"),
    ("</worldbody>", "</worldbody><option gravity='0 0 -1.6'/>", "set robot.gravity: [0.0, 0.0, -1.6]"),
    ("</worldbody>", "</worldbody><option density='1.2'/>", "further content is left out: density of air"),
    ("<equality>", '<tendon><fixed name="cord"><joint joint="left" coef="1"/></fixed></tendon><equality>', ": cord"),
    ('name="elbow" pos', 'gravcomp="1" name="elbow" pos', "gravity is compensated"),
    ('range="0 0.04"', "", "sliding joints without a range get 10 m; set limits.position: left"),
    ("</worldbody>", '<body><joint type="ball"/><geom size="1"/></body></worldbody>', "ball joints are fixed: joint_4"),
])
def test_losses_are_told(old, new, told, tmp_path):
    _, lost = mjcf._converted(str(write_arm(tmp_path, (old, new))), None)
    assert any(told in line for line in lost), lost
    assert all("\n" not in line for line in lost)


def test_losses_are_logged_with_the_file(tmp_path, caplog):
    log_once.cache_clear()
    load_model(write_arm(tmp_path))
    assert caplog.records[0].getMessage().startswith("arm.xml: shapes are left out; set excitation.floor_m, or")


def test_a_floating_robot_has_its_body_as_root(tmp_path):
    joint = _ARM[_ARM.index('<joint name="shoulder"') : _ARM.index('<geom name="a"')]
    motor = _ARM[_ARM.index("<motor") : _ARM.index("<position")]
    path = write_arm(tmp_path, (joint, "<freejoint/>"), (motor, ""))
    model = load_model(path, RobotOptions(base="free"))
    assert model.link_names == ("upper", "elbow_link")


@pytest.mark.parametrize(("old", "new", "message"), [
    ("hull.obj", "absent.obj", "MuJoCo refuses it"),
    ("</worldbody>", "", "not XML"),
    ('size="0.02"', 'size="nan"', "MuJoCo refuses it"),
    ("<worldbody>", '<include file="pipe"/><worldbody>', "took longer than 2 s"),
    ("<worldbody>", '<size nuser_body="2000000000"/><worldbody>', "MuJoCo refuses it"),
])
def test_a_broken_file_is_refused_in_one_line(old, new, message, tmp_path, monkeypatch):
    if message.startswith("took"):
        monkeypatch.setattr("inertid_ros.core.worker._READING_S", 2.0)
        monkeypatch.setattr("inertid_ros.robot.urdf.mjcf._ALLOWED_BYTES", 0)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InertidError, match=message) as error:
        load_model(write_arm(tmp_path, (old, new)))
    assert "\n" not in str(error.value) and "arm.xml" in str(error.value)


def test_the_remedy_for_absent_mujoco_can_be_pasted(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "inertid_ros.robot.urdf.mjcf.read_apart", lambda name, function, *inputs, size: function(*inputs, None))
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ModelError, match="arm.xml: this needs MuJoCo, which is not installed; pip install mujoco"):
        load_model(write_arm(tmp_path))


def test_rotor_inertia_is_read_from_transmissions_as_drake_reads_it():
    text = random_urdf(np.random.default_rng(0), 2).replace("<robot", f'<robot xmlns:drake="{DRAKE}"', 1)
    motor = ('<transmission name="t"><joint name="joint1"/><actuator name="m"><drake:rotor_inertia value="{}"/>'
        '<drake:gear_ratio value="10"/></actuator></transmission></robot>')
    model = load_model(text.replace("</robot>", motor.format("2e-3")))
    np.testing.assert_allclose(model.drive_prior["rotor_inertia"], [0.0, 0.2])
    with pytest.raises(ModelError, match="URDF joint 'joint1': rotor_inertia is -0.2, below zero; fix the URDF"):
        load_model(text.replace("</robot>", motor.format("-2e-3")))
    with pytest.raises(ModelError, match="URDF transmission 't': .*rotor_inertia value='x' is not a number"):
        load_model(text.replace("</robot>", motor.format("x")))


def test_commands_take_the_file(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_arm(tmp_path)
    assert main(["init", "arm.xml"]) == 0 and main(["info", "arm.xml", "--config", "arm.yaml"]) == 0
    assert "robot arm, 2 joints" in capsys.readouterr().out
