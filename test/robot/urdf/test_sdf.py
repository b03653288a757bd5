"""SDF files as robots: a URDF written as SDF, with poses in random frames, is read back with the same dynamics."""

import numpy as np
import pinocchio as pin
import pytest
from lxml import etree
from support.robots.random_robots import random_urdf

from inertid_ros.core.errors import ModelError, log_once
from inertid_ros.identification.assessment.torque_confidence import sample_states
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.link_shapes import collision_shapes
from inertid_ros.robot.model import load_model
from inertid_ros.robot.urdf import parsing


def _numbers(values) -> str:
    return " ".join(repr(float(value)) for value in np.atleast_1d(values))


def _written(parent, tag, text, **attributes):
    element = etree.SubElement(parent, tag, **attributes)
    element.text = text if isinstance(text, str) else _numbers(text)
    return element


def as_sdf(urdf: str, rng) -> str:
    """The robot as SDF: links turned in the frames of their joints, and every pose in a random frame."""
    given = parsing.parse_description(urdf)
    sdf = etree.Element("sdf", version="1.9")
    model = etree.SubElement(sdf, "model", name="robot")
    joints, root = given.findall("joint"), given.find("link").get("name")
    poses, frames = {"__model__": pin.SE3.Identity(), root: pin.SE3.Identity()}, {root: pin.SE3.Identity()}
    for joint in joints:  # parents before children
        parent, child = parsing.ends(joint)
        frames[child] = poses[joint.get("name")] = frames[parent] * parsing.placement(joint)
        poses[child] = frames[child] * pin.SE3.Random()
    for name in ("camera", "mount"):
        poses[name] = pin.SE3.Random()

    def placed(element, pose, names, default):
        base = str(rng.choice([*names, default]))
        own = poses[base].inverse() * pose
        attributes = {} if base == default else {"relative_to": base}
        _written(element, "pose", [*own.translation, *pin.rpy.matrixToRpy(own.rotation)], **attributes)

    for name in ("camera", "mount"):
        placed(etree.SubElement(model, "frame", name=name), poses[name], (), "__model__")
    for link in given.findall("link"):
        name = link.get("name")
        element = etree.SubElement(model, "link", name=name)
        placed(element, poses[name], ("camera", "mount"), "__model__")
        if (inertial := link.find("inertial")) is not None:
            body = etree.SubElement(element, "inertial")
            placed(body, frames[name] * parsing.placement(inertial), ("camera",), name)
            _written(body, "mass", inertial.find("mass").get("value"))
            inertia = etree.SubElement(body, "inertia")
            for key, value in inertial.find("inertia").attrib.items():
                _written(inertia, key, value)
        shape = etree.SubElement(element, "collision", name="shape")
        placed(shape, frames[name], ("mount",), name)
        box = etree.SubElement(etree.SubElement(shape, "geometry"), "box")
        _written(box, "size", [0.1, 0.2, 0.3])
    for joint in joints:
        name, (parent, child) = joint.get("name"), parsing.ends(joint)
        element = etree.SubElement(model, "joint", name=name, type=joint.get("type"))
        placed(element, poses[name], ("camera", "mount"), child)
        _written(element, "parent", parent)
        _written(element, "child", child)
        axis, frame = etree.SubElement(element, "axis"), str(rng.choice(["camera", "__model__", name]))
        xyz = poses[frame].rotation.T @ poses[name].rotation @ parsing.axis(joint)
        _written(axis, "xyz", xyz, **({} if frame == name else {"expressed_in": frame}))
        for tag, keys in (("limit", ("lower", "upper", "effort", "velocity")), ("dynamics", ("damping", "friction"))):
            if (numbers := joint.find(tag)) is not None:
                part = etree.SubElement(axis, tag)
                for key in keys:
                    if numbers.get(key) is not None:
                        _written(part, key, numbers.get(key))
    return etree.tostring(sdf, encoding="unicode", pretty_print=True)


@pytest.mark.parametrize("seed", range(6))
def test_a_robot_with_poses_in_any_frames_is_that_of_the_urdf(seed, tmp_path):
    rng = np.random.default_rng(seed)
    pin.seed(seed)
    given = load_model(random_urdf(rng, int(rng.integers(1, 7))))
    (tmp_path / "robot.sdf").write_text(as_sdf(given.urdf, rng))
    model = load_model(tmp_path / "robot.sdf")
    assert model.joint_names == given.joint_names and model.link_names == given.link_names
    for key in ("lower", "upper", "velocity", "effort"):
        np.testing.assert_allclose(getattr(model.limits, key), getattr(given.limits, key))
    states = sample_states(given, 10)
    expected = ForceEquations(given).predict(given.prior, states)
    torque = ForceEquations(model).predict(model.prior, states)
    np.testing.assert_allclose(torque, expected, atol=1e-9 * np.abs(expected).max())
    shapes, problems = collision_shapes(model)
    assert not problems and len(shapes) == len(given.link_names) + 1
    for shape in shapes:
        np.testing.assert_allclose(shape.placement, np.eye(4), atol=1e-9)  # as placed above, in frames of the URDF


_PENDULUM = """<sdf version="1.9"><world name="w"><model name="pendulum"><pose>0 0 1 0 0 0</pose><link name="rod">
<inertial><pose>0 0 0.2 0 0 0</pose><mass>2</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia>
</inertial></link>
<joint name="hinge" type="revolute"><parent>world</parent><child>rod</child><axis><xyz>0 1 0</xyz></axis></joint>
</model></world></sdf>"""


def _load(folder, *change):
    (folder / "p.sdf").write_text(_PENDULUM.replace(*change) if change else _PENDULUM)
    return load_model(folder / "p.sdf")


def test_a_joint_on_the_world_without_limits_is_continuous(tmp_path):
    limits = "<limit><effort>inf</effort><velocity>-1</velocity><lower>-1e16</lower></limit>"
    model = _load(tmp_path, "</axis>", f"{limits}</axis>")
    limits = model.limits
    assert model.root_name == "world" and np.isinf([*limits.lower, *limits.velocity, *limits.effort]).all()
    np.testing.assert_allclose(model.pinocchio.jointPlacements[1].translation, [0, 0, 1])
    np.testing.assert_allclose(model.body_prior[0, :4], [2, 0, 0, 0.4])


def test_lost_content_is_told(tmp_path, caplog):
    log_once.cache_clear()
    _load(tmp_path, "</joint>", '</joint><!-- note --><plugin name="p" filename="f"/>')
    assert [record.getMessage() for record in caplog.records] == [
        "p.sdf: content that a URDF cannot hold is left out: plugin"]
    log_once.cache_clear()
    _load(tmp_path, "<model", "<gravity>0 0 -1</gravity><include/><model")
    assert caplog.records[-1].getMessage().endswith("left out: gravity, include")


@pytest.mark.parametrize(("old", "new", "message"), [
    ("<mass>2", "<mass>two", "<mass> of inertial '' is 'two', not 1 numbers; fix the SDF"),
    ("0 1 0</xyz>", "0 1</xyz>", "<xyz> of axis '' is '0 1', not 3 numbers"),
    ("<child>rod", "<child>bar", "'bar' is no link, joint or frame"),
    ("<pose>0 0 0.2", '<pose relative_to="absent">0 0 0.2', "'absent' is no link, joint or frame"),
    ('<link name="rod">', '<link name="rod"><pose relative_to="hinge"/>', "poses refer to one another in a circle"),
    ('type="revolute"', 'type="ball"', "joint 'hinge': type 'ball' is not supported"),
    ("</model>", "</model><model name='b'/>", "has 2 models, or a model in a model; give an SDF of the robot alone"),
    ("</model>", "<include/></model>", "gz sdf -p FILE > robot.sdf"),
])
def test_a_broken_file_is_refused_in_one_line(old, new, message, tmp_path):
    with pytest.raises(ModelError) as error:
        _load(tmp_path, old, new)
    assert message in str(error.value) and "p.sdf" in str(error.value) and "\n" not in str(error.value)
