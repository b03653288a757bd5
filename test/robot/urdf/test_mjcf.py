"""MJCF files as robots: MuJoCo's inverse dynamics is that of the converted robot, and losses are told."""

import numpy as np
import pytest
from lxml import etree
from scipy.spatial.transform import Rotation
from support.robots.example_robots import all_locked

from inertid_ros.identification.assessment.torque_confidence import sample_states
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.model import load_model

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
    model, compiled = load_model(path), mujoco.MjModel.from_xml_path(str(path))
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
