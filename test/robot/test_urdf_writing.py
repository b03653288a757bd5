"""Estimates written back into URDFs, read again by Pinocchio and by MuJoCo."""

import difflib
import re

import numpy as np
import pinocchio as pin
import pytest
from lxml import etree
from support.robots.example_robots import ARMS, all_locked, load_with_locks, without_geometry
from support.robots.random_robots import random_urdf

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.errors import ModelError
from inertid_ros.core.inertial_parameters import from_pseudo_inertia, pseudo_inertia
from inertid_ros.robot.body_changes import write_urdf
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.robot.urdf import text as markup

STATES = 5


def _other_bodies(model: RobotModel, rng: np.random.Generator) -> np.ndarray:
    """Random bodies, each at least what is behind its locked joints."""
    own = model.body_prior - model.body_locked
    S = np.eye(4) + 0.2 * rng.normal(size=(len(own), 4, 4))
    return from_pseudo_inertia(S @ pseudo_inertia(own) @ S.transpose(0, 2, 1)) + model.body_locked


def _states(model: RobotModel, rng: np.random.Generator):
    for _ in range(STATES):
        yield rng.uniform(-1, 1, model.joints), rng.normal(size=model.joints), rng.normal(size=model.joints)


def _torques(robot: pin.Model, states) -> np.ndarray:
    data = robot.createData()
    return np.array([pin.rnea(robot, data, *state) for state in states])


def _mujoco_torques(model: RobotModel, urdf: str, states) -> np.ndarray:
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install mujoco")
    simulated = mujoco.MjModel.from_xml_string(without_geometry(urdf))
    simulated.dof_damping[:] = simulated.dof_frictionloss[:] = simulated.dof_armature[:] = 0
    simulated.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data, locked = mujoco.MjData(simulated), all_locked(model)
    order = {simulated.joint(k).name: k for k in range(simulated.njnt)}
    torques = []
    for q, v, a in states:
        data.qvel[:] = data.qacc[:] = 0
        for name, k in order.items():
            data.qpos[simulated.jnt_qposadr[k]] = locked.get(name, 0.0)
        dofs = [simulated.jnt_dofadr[order[name]] for name in model.joint_names]
        data.qpos[[simulated.jnt_qposadr[order[name]] for name in model.joint_names]] = q
        data.qvel[dofs], data.qacc[dofs] = v, a
        mujoco.mj_inverse(simulated, data)
        torques.append(data.qfrc_inverse[dofs])
    return np.array(torques)


def _check(model: RobotModel, rng: np.random.Generator, mujoco: bool = True) -> str:
    bodies = _other_bodies(model, rng)
    urdf, states = write_urdf(model, bodies), list(_states(model, rng))
    expected = _torques(model.with_bodies(bodies), states)
    again = load_model(urdf, model.options)
    assert again.hash == model.hash
    assert np.abs(_torques(again.pinocchio, states) - expected).max() <= 1e-9 * np.abs(expected).max()
    if mujoco:
        assert np.abs(_mujoco_torques(model, urdf, states) - expected).max() <= 1e-9 * np.abs(expected).max()
    return urdf


@pytest.mark.parametrize("arm", ARMS)
def test_example_arms_move_alike_in_pinocchio_and_mujoco(arm, robots):
    _check(load_with_locks(robots / arm), np.random.default_rng(0))


def test_the_recorded_arm_moves_alike(datasets):
    # Its own text repeats an <origin>, which MuJoCo does not read.
    _check(load_model(datasets / "kuka_lwr4" / "kuka_lwr4.urdf"), np.random.default_rng(1), mujoco=False)


@pytest.mark.parametrize("seed", range(8))
def test_random_trees_with_some_joints_locked(seed):
    rng = np.random.default_rng(seed)
    joints = int(rng.integers(2, 8))
    text = random_urdf(rng, joints)
    locked = {f"joint{k}": float(rng.uniform(-1, 1)) for k in range(1, joints) if rng.random() < 0.3}
    urdf = _check(load_model(text, RobotOptions(locked_joints=locked)), rng)
    before, after = (markup.locate(content.encode()) for content in (text, urdf))
    for old, new in zip(before.all("link"), after.all("link"), strict=True):
        index = old.attributes["name"].removeprefix("link")
        if old.attributes["name"] == "base" or f"joint{index}" in locked:
            assert text[old.start : old.end] == urdf[new.start : new.end]


def test_everything_but_inertials_keeps_its_very_text(robots):
    path = robots / "panda_description" / "urdf" / "panda.urdf"
    model = load_with_locks(path)
    urdf = write_urdf(model, _other_bodies(model, np.random.default_rng(2)))

    def stripped(text):
        return re.sub(r"\s*<inertial>.*?</inertial>", "", text, flags=re.DOTALL)

    assert stripped(urdf) == stripped(path.read_text())
    for inertial in re.findall(r"<inertial>.*?</inertial>", urdf, flags=re.DOTALL):
        if inertial not in path.read_text():
            assert 'rpy="0 0 0"' in inertial


TEXT = """<?xml version='1.0'?>
<!-- <inertial> in a comment -->
<robot   name = "quirky">
\t<link name='base'><inertial><mass value="7"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <link name="arm" />
  <link name="hand">
      <inertial>
        <origin xyz="0 0 0.1" rpy="0.3 0.2 0.1"/><mass value="1"/>
        <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/>
      </inertial><visual><!-- é --><geometry><sphere radius="1"/></geometry></visual>
  </link>
  <link name="frame"><collision><geometry><box size="1 1 1"/></geometry></collision></link>
  <link name="dust"><inertial><mass value="0"/>
    <inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>
  <joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" velocity="1" effort="9"/></joint>
  <joint name="f" type="fixed"><parent link="arm"/><child link="hand"/><origin xyz="0.1 0 0"/></joint>
  <joint name="g" type="fixed"><parent link="hand"/><child link="frame"/></joint>
  <joint name="h" type="fixed"><parent link="hand"/><child link="dust"/></joint>
  <gazebo reference="arm"><link name="arm"><inertial/></link></gazebo>
</robot>
"""


def test_quirky_text_is_edited_only_where_needed():
    model = load_model(TEXT)
    urdf = _check(model, np.random.default_rng(3), mujoco=False)
    removed = [line[2:].strip() for line in difflib.ndiff(TEXT.splitlines(), urdf.splitlines()) if line[:2] == "- "]
    assert removed == [
        '<link name="arm" />',
        '<origin xyz="0 0 0.1" rpy="0.3 0.2 0.1"/><mass value="1"/>',
        '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.02"/>',
        '<link name="frame"><collision><geometry><box size="1 1 1"/></geometry></collision></link>',
    ]
    arm = urdf[urdf.index('<link name="arm">') : urdf.index('<link name="hand">')]
    assert arm.splitlines()[1] == "    <inertial>" and arm.splitlines()[-2] == "  </link>"


def test_no_mass_is_made_up_from_shapes():
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install mujoco")
    model = load_model(TEXT)
    bodies = _other_bodies(model, np.random.default_rng(5))
    simulated = mujoco.MjModel.from_xml_string(write_urdf(model, bodies))
    assert simulated.body("arm").mass == pytest.approx(bodies[0, 0], rel=1e-12)
    robot = etree.fromstring(write_urdf(model, bodies).encode())
    masses = {link.get("name"): float(link.find("inertial/mass").get("value")) for link in robot.findall("link")}
    assert masses == {"base": 7, "arm": pytest.approx(bodies[0, 0]), "hand": 0, "frame": 0, "dust": 0}


def test_numbers_read_back_exactly():
    model = load_model(TEXT)
    bodies = _other_bodies(model, np.random.default_rng(4))
    again = load_model(write_urdf(model, bodies))
    assert np.allclose(again.body_prior, bodies, rtol=1e-14, atol=1e-17)
    assert load_model(write_urdf(again, again.body_prior)).urdf == write_urdf(again, again.body_prior)


def test_friction_is_written_when_asked_and_replaces_what_was_there():
    friction = {"viscous": np.array([0.25]), "coulomb": np.array([1e-7])}
    model = load_model(TEXT)
    once = load_model(write_urdf(model, model.body_prior, friction))
    assert once.drive_prior["viscous"] == [0.25] and once.drive_prior["coulomb"] == [1e-7]
    friction["viscous"] = np.array([0.5])
    twice = load_model(write_urdf(once, once.body_prior, friction))
    assert twice.drive_prior["viscous"] == [0.5] and twice.urdf.count("<dynamics") == 1
    assert "<dynamics" not in write_urdf(model, model.body_prior)
    unknown = {term: np.array([np.nan]) for term in friction}
    assert write_urdf(once, once.body_prior, unknown) == write_urdf(once, once.body_prior)


def test_pinocchio_and_mujoco_read_the_friction_that_was_written():
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install mujoco")
    model = load_model(random_urdf(np.random.default_rng(6), 3))
    friction = {"viscous": np.array([0.5, 0.0, 1.5]), "coulomb": np.array([2.0, 0.25, 0.0])}
    urdf = write_urdf(model, model.body_prior, friction)
    read = pin.buildModelFromXML(urdf)
    assert read.nv == 3 and tuple(read.names)[1:] == model.joint_names
    simulated = mujoco.MjModel.from_xml_string(without_geometry(urdf))
    dofs = [simulated.joint(name).dofadr[0] for name in model.joint_names]
    assert simulated.dof_damping[dofs] == pytest.approx(friction["viscous"])
    assert simulated.dof_frictionloss[dofs] == pytest.approx(friction["coulomb"])
    assert read.damping == pytest.approx(friction["viscous"])


def test_impossible_bodies_are_not_written():
    model = load_model(TEXT)
    bodies = model.body_prior.copy()
    bodies[0, 0] = -1.0
    with pytest.raises(ModelError, match="link 'arm': parameters are not physically consistent"):
        write_urdf(model, bodies)
    with pytest.raises(ModelError, match=r"bodies have shape \(2, 10\)"):
        write_urdf(model, np.zeros((2, 10)))


def test_bodies_smaller_than_what_is_locked_to_them_are_not_written(robots):
    model = load_with_locks(robots / "panda_description" / "urdf" / "panda.urdf")
    bodies = model.body_prior.copy()
    bodies[-1] = 0.9 * model.body_locked[-1]
    with pytest.raises(ModelError, match="have more inertia than the whole body"):
        write_urdf(model, bodies)


@pytest.mark.parametrize("seed", range(20))
def test_places_of_elements_agree_with_a_parser(seed):
    rng = np.random.default_rng(seed)

    def element(depth):
        tag = str(rng.choice(list("abc")))
        text = str(rng.choice(["", " ", "\n  é ", "&lt;a&gt;", "<!-- <a> -->", "<![CDATA[<a>]]>"]))
        attributes = str(rng.choice(["", ' x="1>2"', " y='\"'", ' z = "/"  ']))
        if rng.random() < 0.3:
            return f"<{tag}{attributes}/>"
        inner = "".join(element(depth - 1) for _ in range(rng.integers(0, 4))) if depth else ""
        return f"<{tag}{attributes}>{text}{inner}</{tag} >"

    text = f"<?xml version='1.0'?>\n<!-- é -->\n<r>{element(4)}{element(4)}</r>\n".encode()
    parsed = etree.fromstring(text)

    def compare(found, expected):
        assert found.tag == expected.tag and found.attributes == dict(expected.attrib)
        assert etree.tostring(etree.fromstring(text[found.start : found.end]), with_tail=False) == etree.tostring(
            expected, with_tail=False
        )
        children = [child for child in expected if isinstance(child.tag, str)]
        assert len(children) == len(found.children)
        for pair in zip(found.children, children, strict=True):
            compare(*pair)

    compare(markup.locate(text), parsed)


def test_only_numbers_of_inertia_are_read():
    """Attributes of an inertia that URDF does not know may hold anything."""
    urdf = random_urdf(np.random.default_rng(0), 2).replace("<mass ", '<mass name="joint0" ')
    model = load_model(urdf)
    assert load_model(write_urdf(model, model.body_prior)).link_names == model.link_names
