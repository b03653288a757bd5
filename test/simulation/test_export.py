"""Results in the formats of simulators: MuJoCo and Pinocchio read back the torque that the export states."""

import os
import re

import numpy as np
import pinocchio as pin
import pytest
import yaml
from lxml import etree
from support.robots.example_robots import ARMS, all_locked, load_with_locks
from support.robots.random_robots import load_with, random_bodies, random_urdf

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import InertidError, ModelError
from inertid_ros.core.inertial_parameters import from_pseudo_inertia, pseudo_inertia
from inertid_ros.identification.assessment.torque_confidence import sample_states
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.report.results import Result
from inertid_ros.robot.layout import Coupling, UserTerm
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.rotors import Rotor
from inertid_ros.simulation.export import REST, export, simulated_part, simulated_torque

mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install mujoco")


def _result(model: RobotModel, seed: int) -> Result:
    """Result with random bodies and drives."""
    rng, layout = np.random.default_rng(seed), model.layout
    parameters = rng.uniform(0.01, 1.0, layout.size)
    S = np.eye(4) + 0.2 * rng.normal(size=(len(model.link_names), 4, 4))
    bodies = S @ pseudo_inertia(model.consistent_body_prior - model.body_locked) @ S.transpose(0, 2, 1)
    parameters[: layout.body_size] = (from_pseudo_inertia(bodies) + model.body_locked).ravel()
    parameters[layout.body_size : layout.rotor_end] = random_bodies(rng, len(layout.rotors)).ravel()
    return Result(".", model, parameters, model.prior, np.eye(layout.size), {})


def _mujoco_torque(model: RobotModel, compiled, states) -> np.ndarray:
    """Inverse dynamics of MuJoCo, and the friction that its constraint solver would apply."""
    compiled.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data, locked = mujoco.MjData(compiled), all_locked(model)
    joints = [compiled.joint(name) for name in model.joint_names]
    dofs, places = [int(joint.dofadr[0]) for joint in joints], [int(joint.qposadr[0]) for joint in joints]
    torque = []
    for q, v, a in zip(states.q, states.v, states.a, strict=True):
        data.qvel[:] = data.qacc[:] = 0
        for name, position in locked.items():
            data.joint(name).qpos = position
        data.qpos[places], data.qvel[dofs], data.qacc[dofs] = q, v, a
        mujoco.mj_inverse(compiled, data)
        friction = compiled.dof_frictionloss * np.sign(data.qvel)
        if compiled.ntendon:
            moments = np.zeros((compiled.ntendon, compiled.nv))
            mujoco.mju_sparse2dense(moments, data.ten_J, compiled.ten_J_rownnz, compiled.ten_J_rowadr,
                compiled.ten_J_colind)
            friction += moments.T @ (compiled.tendon_frictionloss * np.sign(moments @ data.qvel))
        torque.append((data.qfrc_inverse + friction)[dofs])
    return np.array(torque)


def _check(model: RobotModel, seed: int) -> str:
    result, states = _result(model, seed), sample_states(model, 20)
    exported = export(result, "mjcf")
    parameters = result.parameters.copy()
    parameters[model.layout.drive("offset")] = 0
    part = simulated_part(model, parameters, "mjcf")
    torque = _mujoco_torque(model, mujoco.MjModel.from_xml_string(exported.text), states)
    expected = simulated_torque(model, *part, states)
    np.testing.assert_allclose(torque, expected, atol=1e-9 * np.abs(expected).max())
    return exported.text


@pytest.mark.parametrize("seed", range(10))
def test_mujoco_predicts_the_exported_part_of_random_robots(seed):
    rng = np.random.default_rng(seed)
    _check(load_model(random_urdf(rng, int(rng.integers(1, 8)))), seed)


@pytest.mark.parametrize("arm", ARMS)
def test_mujoco_predicts_the_exported_part_of_example_robots(arm, robots):
    _check(load_with_locks(robots / arm), 1)


def test_links_named_world_and_frames_of_tools_keep_their_names():
    text = random_urdf(np.random.default_rng(1), 2).replace('"base"', '"world"').replace(
        "</robot>", '<link name="tool"/><joint name="t" type="fixed"><parent link="link1"/><child link="tool"/></joint>'
        "</robot>")
    compiled = mujoco.MjModel.from_xml_string(_check(load_model(text), 0))
    assert {compiled.body(index).name for index in range(compiled.nbody)} == {"world", "link0", "link1", "tool"}


def _rich_model(seed: int) -> RobotModel:
    """Robot with every part that a format may lack."""
    rng = np.random.default_rng(seed)
    inertia = tuple(np.diag([0.01, 0.02, 0.03])[np.triu_indices(3)])
    rotors = (Rotor("motor", "joint1", "link0", 5.0, 1.0, inertia, xyz=(0.1, 0.2, 0.3), axis=(0.0, 0.6, 0.8)),
        Rotor("motor at the base", "joint0", "base", 3.0, 1.0, inertia))
    terms = (UserTerm("spring", "joint1", ("sin(q)",)),)
    model = load_with(random_urdf(rng, 3), (Coupling("wrist", ("joint1", "joint2"), (1.0, -1.0)),), rotors, terms)
    return model.with_layout(transition_speeds=(0.1, 0.0, 0.2))


@pytest.mark.parametrize("seed", range(3))
def test_what_is_lost_is_the_difference_to_mujoco(seed):
    model = _rich_model(seed)
    result, states = _result(model, seed), sample_states(model)
    exported = export(result, "mjcf")
    parameters = result.parameters.copy()
    parameters[model.layout.drive("offset")] = 0
    torque = ForceEquations(model).predict(parameters, states)
    simulated = _mujoco_torque(model, mujoco.MjModel.from_xml_string(exported.text), states)
    np.testing.assert_allclose(exported.error, np.sqrt(np.mean((torque - simulated) ** 2, axis=0)), rtol=1e-6)
    np.testing.assert_allclose(exported.torque, np.sqrt(np.mean(torque**2, axis=0)), rtol=1e-9)
    assert exported.lost.keys() == {"stribeck", "couplings", "spring", REST}


def test_a_balanced_rotor_on_the_base_loses_nothing():
    inertia = tuple((0.02 * np.eye(3))[np.triu_indices(3)])
    rotor = Rotor("motor", "joint0", "base", 9.0, 1.0, inertia)
    model = load_with(random_urdf(np.random.default_rng(0), 2), rotors=(rotor,))
    result = _result(model, 0)
    result.parameters[model.layout.body_size : model.layout.rotor_end] = model.further_prior.ravel()
    assert export(result, "mjcf").lost.keys() == {"stribeck"}
    assert model.further_prior[0, 9] * 9.0**2 > 0.1 * result.parameters[model.layout.drive("rotor_inertia")][0]


@pytest.mark.parametrize("seed", range(4))
def test_the_urdf_for_drake_has_bodies_damping_and_rotors(seed):
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, 4)
    if seed % 2:
        text = text.replace("</robot>", '<transmission name="t"><type>SimpleTransmission</type><joint name="joint1"/>'
            '<actuator name="m"/></transmission></robot>')
    model = load_model(text)
    result, states = _result(model, seed), sample_states(model, 5)
    exported = export(result, "drake")
    root = etree.fromstring(exported.text.encode())
    rotors = {}
    for transmission in root.findall("transmission"):
        actuator = transmission.find("actuator")
        inertia, ratio = (float(actuator.find(f"{{http://drake.mit.edu}}{tag}").get("value"))
            for tag in ("rotor_inertia", "gear_ratio"))
        assert transmission.find("joint").get("name") not in rotors
        rotors[transmission.find("joint").get("name")] = inertia * ratio**2
    damping = {joint.get("name"): float(joint.find("dynamics").get("damping")) for joint in root.findall("joint")}
    again = pin.buildModelFromXML(exported.text)
    data = again.createData()
    bodies = [pin.rnea(again, data, *state) for state in zip(states.q, states.v, states.a, strict=True)]
    inertia, viscous = ([values[name] for name in model.joint_names] for values in (rotors, damping))
    simulated = bodies + inertia * states.a + viscous * states.v
    expected = simulated_torque(model, *simulated_part(model, result.parameters, "drake"), states)
    np.testing.assert_allclose(simulated, expected, atol=1e-9 * np.abs(expected).max())
    assert exported.lost.keys() == {"coulomb", "stiffness", "stribeck"}


@pytest.mark.parametrize("seed", range(4))
def test_values_for_isaac_lab_and_the_urdf_predict_the_exported_part(seed):
    """PhysX: armature in the joint-space inertia, and friction that opposes the motion; breakaway friction at rest."""
    text = random_urdf(np.random.default_rng(seed), 4)
    for index, name in enumerate(("a.b", "axb", "c+(1)", "[d]")):  # Isaac Lab takes names as regular expressions
        text = text.replace(f"joint{index}", name)
    model = load_model(text)
    result, states = _result(model, seed), sample_states(model, 5)
    exported = export(result, "isaaclab")
    content = yaml.safe_load(exported.text)
    keys = [next(key for key in content["joint_names_expr"] if re.fullmatch(key, name)) for name in model.joint_names]
    assert content.pop("joint_names_expr") == keys and len(set(keys)) == 4
    values = {key: np.array([joints[name] for name in keys]) for key, joints in content.items()}
    tree = pin.buildModelFromXML(export(result, "drake").text)
    data = tree.createData()
    bodies = np.array([pin.rnea(tree, data, *state) for state in zip(states.q, states.v, states.a, strict=True)])
    friction = values["viscous_friction"] * states.v + values["dynamic_friction"] * np.sign(states.v)
    expected = simulated_torque(model, *simulated_part(model, result.parameters, "isaaclab"), states)
    torque = bodies + values["armature"] * states.a + friction
    np.testing.assert_allclose(torque, expected, atol=1e-9 * np.abs(expected).max())
    stribeck = result.parameters[model.layout.drive("stribeck")]
    np.testing.assert_allclose(values["friction"] - values["dynamic_friction"], stribeck, rtol=1e-9)
    assert exported.lost.keys() == {"stiffness", "stribeck"}


@pytest.mark.parametrize("seed", range(4))
def test_drake_predicts_the_exported_part_of_random_robots(seed):
    plants = pytest.importorskip("pydrake.multibody.plant", reason="Drake is not installed: pip install drake")
    parsing, tree = map(pytest.importorskip, ("pydrake.multibody.parsing", "pydrake.multibody.tree"))
    rng = np.random.default_rng(seed)
    model = load_model(random_urdf(rng, int(rng.integers(2, 7))))
    result, states = _result(model, seed), sample_states(model, 10)
    plant = plants.MultibodyPlant(0.0)
    (robot,) = parsing.Parser(plant).AddModelsFromString(export(result, "drake").text, "urdf")
    plant.WeldFrames(plant.world_frame(), plant.GetBodyByName("base", robot).body_frame())
    plant.Finalize()
    context = plant.CreateDefaultContext()
    joints = [plant.GetJointByName(name) for name in model.joint_names]
    places, dofs = [joint.position_start() for joint in joints], [joint.velocity_start() for joint in joints]
    torque = []
    for q, v, a in zip(states.q, states.v, states.a, strict=True):
        position, velocity, acceleration = (np.zeros(model.joints) for _ in range(3))
        position[places], velocity[dofs], acceleration[dofs] = q, v, a
        plant.SetPositions(context, position)
        plant.SetVelocities(context, velocity)
        forces = tree.MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, forces)
        torque.append(plant.CalcInverseDynamics(context, acceleration, forces)[dofs])
    expected = simulated_torque(model, *simulated_part(model, result.parameters, "drake"), states)
    np.testing.assert_allclose(torque, expected, atol=1e-9 * np.abs(expected).max())


def _in_other_frames(text: str, rng: np.random.Generator) -> str:
    """The same robot with other frames of its bodies, as other authors choose them, and with much to be replaced."""
    root = etree.fromstring(text)
    chosen = {root.find("worldbody"): pin.SE3.Identity()}
    for body in root.iter("body"):
        joint, named = body.find("joint"), body.get("name") == "base"
        turn = chosen.setdefault(body, pin.SE3.Identity() if named else pin.SE3.Random())
        numbers = [float(x) for x in f"{body.get('pos', '0 0 0')} {body.get('quat', '1 0 0 0')}".split()]
        place = pin.SE3(pin.Quaternion(*numbers[3:]).toRotationMatrix(), np.array(numbers[:3]))
        moved = chosen[body.getparent()].inverse() * place * turn
        quaternion = pin.Quaternion(moved.rotation)
        body.set("pos", " ".join(map(repr, moved.translation.tolist())))
        body.set("quat", " ".join(repr(float(x)) for x in (quaternion.w, quaternion.x, quaternion.y, quaternion.z)))
        for element in body.findall("inertial"):
            body.remove(element)
        if joint is not None:
            axis = turn.rotation.T @ [float(x) for x in joint.get("axis").split()]
            joint.set("axis", " ".join(map(repr, axis.tolist())))
            joint.set("pos", " ".join(map(repr, turn.inverse().translation.tolist())))
            for key in ("armature", "damping", "frictionloss", "stiffness"):
                joint.attrib.pop(key)
        etree.SubElement(body, "geom", size="0.1")
    for body in list(root.iter("body")):
        etree.SubElement(etree.SubElement(body, "body", pos="0 0 1"), "geom", size="0.1")
    root.find("compiler").attrib.update({"inertiafromgeom": "true", "settotalmass": "7"})
    default = etree.SubElement(etree.SubElement(root, "default"), "joint")
    default.attrib.update({"armature": "0.3", "damping": "2", "frictionloss": "4", "stiffness": "3", "springref": "1"})
    root.insert(0, etree.Comment(" kept "))
    return etree.tostring(root, encoding="unicode")


@pytest.mark.parametrize("seed", range(6))
def test_an_mjcf_with_other_frames_is_updated(seed, tmp_path):
    rng = np.random.default_rng(seed)
    model = load_model(random_urdf(rng, int(rng.integers(1, 7))))
    result, states = _result(model, seed), sample_states(model, 10)
    given = tmp_path / "given.xml"
    given.write_text(_in_other_frames(export(_result(model, seed + 100), "mjcf").text, rng))
    exported = export(result, "mjcf", given)
    assert "<!-- kept -->" in exported.text and exported.text.count("<geom") == given.read_text().count("<geom")
    torque = _mujoco_torque(model, mujoco.MjModel.from_xml_string(exported.text), states)
    expected = simulated_torque(model, *simulated_part(model, result.parameters, "mjcf"), states)
    np.testing.assert_allclose(torque, expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize(("old", "new", "message"), [
    ('name="joint1"', 'name="elbow"', "has no joint joint1, but joint0, elbow"),
    ("<mujoco", "<mujoco", "is a <robot>"),
    ("</worldbody>", "", "is not XML"),
    ('type="hinge"', 'type="slide"', "the axis of joint 'joint0' differs from the URDF's axis"),
    ('axis="', 'axis="-', "the axis of joint"),
    ("</joint>", "</joint>", "joints that are not in the URDF move the robot"),
])
def test_another_mjcf_is_refused(tmp_path, old, new, message):
    model = load_model(random_urdf(np.random.default_rng(0), 3, branched=False).replace("prismatic", "revolute"))
    result = _result(model, 0)
    text = export(result, "mjcf").text
    if message == "is a <robot>":
        text = model.urdf
    elif message == "joints that are not in the URDF move the robot":
        extra = '<body><joint name="extra"/><geom size="1"/></body><body name="link2"'
        text = text.replace('<body name="link2"', extra)
    path = tmp_path / "given.xml"
    path.write_text(text.replace(old, new).replace('axis="--', 'axis="'))
    with pytest.raises(ModelError, match=message) as error:
        export(result, "mjcf", path)
    assert "\n" not in str(error.value) and str(error.value).startswith(str(path))


_ENDLESS = '<replicate count="1000000000"><geom size="1"/></replicate></worldbody>'


@pytest.mark.parametrize(("old", "new", "message"), [
    ("</worldbody>", _ENDLESS, "took longer than 2 s"),
    ("<worldbody>", '<size nuser_body="2000000000"/><worldbody>', "MuJoCo refuses it"),
    ("<worldbody>", '<include file="pipe"/><worldbody>', "took longer than 2 s"),
    ('<body name="link2"', '<replicate count="2"><body name="link2"', "has no joint joint2, but joint0, joint1"),
    ("<mujoco", "", "not a regular file"),
])
def test_an_mjcf_that_never_ends_or_breaks_mujoco_is_refused(tmp_path, monkeypatch, old, new, message):
    if message.startswith("took"):
        monkeypatch.setattr("inertid_ros.core.worker._READING_S", 2.0)
    result = _result(load_model(random_urdf(np.random.default_rng(0), 3, branched=False)), 0)
    os.mkfifo(tmp_path / "pipe")
    path = tmp_path / ("given.xml" if new else "pipe")
    if new:
        text = export(result, "mjcf").text.replace(old, new)
        path.write_text(text.replace("</body>", "</body></replicate>", 1) if 'count="2"' in new else text)
    with pytest.raises((InertidError, OSError), match=message) as error:
        export(result, "mjcf", path)
    assert "\n" not in str(error.value) and str(path) in str(error.value)


def test_a_robot_on_a_free_base_is_refused():
    model = load_model(random_urdf(np.random.default_rng(0), 2), RobotOptions(base="free"))
    with pytest.raises(ModelError, match="only robots on a fixed base are exported; use its calibrated.urdf"):
        export(_result(model, 0), "mjcf")
