"""The strings of older configurations: refused, with the form of now."""

import pytest
import yaml

from inertid_ros.config.configuration import Configuration, ExcitationConfiguration
from inertid_ros.config.schema.structuring import structure
from inertid_ros.core.errors import ConfigurationError

FORMER = [
    (Configuration, "robot.plates", ["left=frame:left_foot,xyz:0 0.1 0"],
     "plates: {left: {frame: left_foot, xyz: [0, 0.1, 0]}}"),
    (Configuration, "robot.contacts", ["sensor=foot", "hand"],
     "contacts: {sensor: {frame: foot}, hand: {frame: hand}}"),
    (Configuration, "robot.locked_joints", ["finger_joint1=0.02"], "locked_joints: {finger_joint1: 0.02}"),
    (Configuration, "robot.stribeck_speeds", ["a=0.1"], "stribeck_speeds: {a: 0.1}"),
    (Configuration, "robot.couplings", ["wrist=a:1,b:-0.5"], "couplings: {wrist: {joints: [a, b], ratios: [1, -0.5]}}"),
    (Configuration, "robot.rotors", ["m=joint:a,link:b,ratio:5,mass:0.4,radius:0.03,length:0.05,axis:0 1 0"],
     "rotors: {m: {joint: a, link: b, ratio: 5, mass: 0.4, radius: 0.03, length: 0.05, axis: [0, 1, 0]}}"),
    (Configuration, "topics.wrenches", ["/left/wrench=left"], "wrenches: {left: {topic: /left/wrench, frame: left}}"),
    (Configuration, "topics.wrenches", ["/left/wrench"], "wrenches: {left_wrench: {topic: /left/wrench}}"),
    (Configuration, "constraints.mass", ["link3=1.5:2.5"], "mass: {link3: [1.5, 2.5]}"),
    (Configuration, "constraints.at_most", ["j.coulomb=5"], "at_most: {j.coulomb: 5}"),
    (Configuration, "constraints.equal", ["a.m=b.m"], "equal: {a.m: b.m}"),
    (Configuration, "constraints.mirrored", ["a=b:y"], "mirrored: {a: {link: b, axis: y}}"),
    (ExcitationConfiguration, "limits.velocity", ["a=1"], "velocity: {a: 1}"),
    (ExcitationConfiguration, "limits.position", ["a=-0.5:0.25"], "position: {a: [-0.5, 0.25]}"),
    (ExcitationConfiguration, "excitation.collision.obstacles", ["t=shape:box,size:1 0.6 0.04,xyz:0.6 0 0.4"],
     "obstacles: {t: {shape: box, size: [1, 0.6, 0.04], xyz: [0.6, 0, 0.4]}}"),
    (ExcitationConfiguration, "excitation.collision.ignored", ["hand=table", "hand=wall"],
     "ignored: {hand: [table, wall]}"),
    (ExcitationConfiguration, "excitation.balance.support", ["0:0", "1:0", "1:0.5"],
     "support: {x: [0, 1, 1], y: [0, 0, 0.5]}"),
]  # fmt: skip


@pytest.mark.parametrize(("tree", "key", "value", "form"), FORMER, ids=range(len(FORMER)))
def test_the_error_shows_the_form_of_now_which_is_accepted(tree, key, value, form):
    with pytest.raises(ConfigurationError) as caught:
        structure(tree, {key: value}, "file")
    quoted = ", ".join(f"'{text}'" for text in value)
    verb = "is the old form" if len(value) == 1 else "are the old form"
    assert str(caught.value) == f"file: {key}: {quoted} {verb}; write {form}"
    section = key.rpartition(".")[0]
    structure(tree, {f"{section}.{name}": content for name, content in yaml.safe_load(f"{{{form}}}").items()})


def test_among_ros_parameters_it_shows_the_list_of_names_too():
    with pytest.raises(ConfigurationError, match="write locked_joint_names: .a., locked_joints: {a: 0.02}"):
        structure(Configuration, {"robot.locked_joints": ["a=0.02"]}, listed=True)


@pytest.mark.parametrize("value", ["finger", "=1", "wrist=a"])
def test_what_could_not_be_read_before_names_what_is_expected(value):
    expected = f"robot.couplings: '{value}' is the old form; write a mapping of names, each with joints, ratios"
    with pytest.raises(ConfigurationError, match=expected):
        structure(Configuration, {"robot.couplings": [value]})
