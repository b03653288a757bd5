"""Targets whose content is text: robot descriptions, configurations, plans, formulas."""

import copy
import random
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import yaml
from lxml import etree
from support.robots.random_robots import random_urdf

from inertid_ros.config.configuration import Configuration, ExcitationConfiguration
from inertid_ros.config.robot import TERM_SIGNALS, RobotOptions
from inertid_ros.config.yaml_files import load_configuration
from inertid_ros.core.errors import ConfigurationError
from inertid_ros.core.expressions import Expression
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.plan import Plan, joint_trajectory_text, load_motion, plan_text
from inertid_ros.robot.model import load_model

from .target import Target, from_file
from .values import NAMES, changed_data, number

GRIPPER = """<?xml version="1.0"?>
<!-- two fingers on a slide, one of which mimics the other -->
<robot name="gripper"><material name="grey"><color rgba="1 1 1 1"/></material>
<link name="base"/>
<link name="slide"><inertial><origin xyz="0 0 0.1" rpy="0 0.1 0"/><mass value="2"/>
<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.02" iyz="0" izz="0.01"/></inertial></link>
<link name="left"><visual><geometry><box size="0.1 0.02 0.02"/></geometry></visual>
<collision><origin xyz="0.05 0 0"/><geometry><cylinder radius="0.01" length="0.1"/></geometry></collision></link>
<link name="right"><collision><geometry><sphere radius="0.02"/></geometry></collision></link>
<link name="tip"><collision><geometry><mesh filename="package://gripper/tip.stl" scale="1 1 1"/></geometry></collision>
</link>
<joint name="z" type="prismatic"><parent link="base"/><child link="slide"/><axis xyz="0 0 1"/>
<limit lower="0" upper="0.5" velocity="1" effort="200"/><dynamics damping="5" friction="2"/></joint>
<joint name="turn" type="continuous"><parent link="slide"/><child link="left"/><axis xyz="0 1 0"/></joint>
<joint name="grip" type="revolute"><parent link="slide"/><child link="right"/><origin xyz="0 0.1 0" rpy="0 0 3.14"/>
<limit lower="-1" upper="1" velocity="1" effort="9"/><mimic joint="turn" multiplier="-1" offset="0.1"/></joint>
<joint name="fixed" type="fixed"><parent link="right"/><child link="tip"/></joint>
</robot>
"""
CONFIGURATIONS = (
    """robot:
  base: free
  gravity: [0.0, 0.0, -9.81]
  locked_joints: {finger: 0.01}
  joint_names: {a1: joint1}
  couplings: {drive: {joints: [a, b], ratios: [1.0, -1.0]}}
  rotors: {motor: {joint: a, link: b, ratio: 100.0, mass: 0.2, radius: 0.02, length: 0.05}}
  terms: {spring: {joint: a, shape: spring}, own: {joint: b, expressions: [sin(q), 'abs(v)*v']}}
prepare: {cutoff_hz: 5.0, stamps: arrival}
identify.solver: interior_point
topics: {joint_states: /joint_states, wrenches: {foot: {topic: /ft, frame: foot}}}
""",
    """/**:
  ros__parameters:
    robot.locked_joint_names: [finger]
    robot: {locked_joints: {finger: 0.01}}
    prepare: {cutoff_hz: 5.0}
excitation:
  ros__parameters: {limits: {velocity_fraction: 0.5}, excitation: {duration_s: 10.0, harmonics: 5}}
""",
    "limits: {velocity: {a: 1.0}, position: {a: [-1.0, 1.0]}}\n"
    "excitation: {collision: {clearance_m: 0.02, obstacles: {}}, seed: 1}\n",
    "robot: {couplings: ['drive=a:1,b:-1'], locked_joints: ['finger=0.01'], rotors: ['m=joint:a,link:b,ratio:100']}\n",
)
FORMULAS = (
    'sin(q) + 2*q["elbow"]**2', "abs(v)*v", "max(load, 1e-3)/min(q, pi) - tanh(-v)**3", "direction*exp(log(sqrt(q)))"
)  # fmt: skip
JOINTS = ("a", "b", "c")
_XML_WORDS = (
    b"<link", b"<joint", b"name=", b"<inertial>", b"<mimic joint=", b"<mesh filename=", b"<![CDATA[", b"]]>", b"<!--",
    b"&lt;", b"&#10;", b"<!DOCTYPE r [<!ENTITY a 'b'>]>", b"&a;", b"<?xml version='1.0' encoding='UTF-16'?>", b"xmlns=",
)  # fmt: skip
YAML_WORDS = (
    b"&a ", b"*a", b"<<: *a", b"!!binary ", b"!!timestamp ", b"!!set ", b"!!python/name:os.system", b"[", b"]", b"{",
    b"}", b": ", b"- ", b"? ", b"--- ", b"...", b"|\n", b">-\n", b"'", b'"', b"#", b"\n", b"\t", b"%YAML 1.1\n",
    b"2001-13-99",
    b".inf", b".nan", b"0b", b"0o9", b"1:60:60", b"!!int ''", b"~", b"=",
)  # fmt: skip
_FORMULA_WORDS = (
    b"**", b"9", b"(", b")", b"[", b"]", b"sin(", b"max(", b",", b"q", b"v", b"pi", b"1e308", b"0x9", b"1j", b"True",
    b'"', b"--", b"+", b"/", b"1/0", b"(-1)**0.5", b"lambda:", b"{}", b"\0", b"\n", b" ",
)  # fmt: skip


def _read_description(path):
    model = load_model(path)
    load_model(path, RobotOptions(base="free"))
    return model


def _descriptions():
    rng = np.random.default_rng(0)
    return [GRIPPER.encode(), random_urdf(rng, 2).encode(), random_urdf(rng, 4).encode()]


def other_description(content: bytes, rng: random.Random) -> bytes:
    """XML with an element or an attribute changed, removed, repeated or moved."""
    root = etree.fromstring(content, etree.XMLParser(resolve_entities=False))
    elements = [element for element in root.iter() if isinstance(element.tag, str)]
    one, other = rng.choice(elements), rng.choice(elements)
    match rng.randrange(8):
        case 0 if one is not root:
            one.getparent().remove(one)
        case 1 if one is not root:
            one.getparent().extend(copy.deepcopy(one) for _ in range(rng.choice((1, 1, 20))))
        case 2:
            other.append(copy.deepcopy(one))
        case 3:
            one.tag = rng.choice([element.tag for element in elements])
        case 4 if one.attrib and other.attrib:
            one.set(rng.choice(list(one.attrib)), rng.choice(list(other.attrib.values())))
        case 5 if one.attrib:
            del one.attrib[rng.choice(list(one.attrib))]
        case 6:
            keys = ["name", "link", "joint", "filename", "type", "xyz", *one.attrib]
            one.set(rng.choice(keys), rng.choice(NAMES[:2]))
        case _ if one.attrib:
            key = rng.choice(list(one.attrib))
            parts = one.get(key).split() or [""]
            name = rng.choice([name for name in NAMES if name.isprintable()])
            parts[rng.randrange(len(parts))] = number(rng) if rng.random() < 0.6 else name
            one.set(key, " ".join(parts))
    return etree.tostring(root)


def _read_configuration(path):
    for tree in (Configuration, ExcitationConfiguration):
        config = load_configuration(path, tree)
    return config


def other_yaml(content: bytes, rng: random.Random) -> bytes:
    """YAML of the same content with something changed."""
    data = changed_data(yaml.load(content, Loader=yaml.CSafeLoader), rng)
    return yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True).encode()


def _limits() -> MotionLimits:
    ones = np.ones(len(JOINTS))
    return MotionLimits(JOINTS, -ones, ones, ones, ones, ones)


def _plans() -> list[bytes]:
    time = np.linspace(0, 1, 4)
    position = np.outer([0, 0.1, 0.2, 0.2], np.ones(3))
    plan = Plan(JOINTS, time, position, np.zeros((4, 3)), np.zeros((4, 3)), _limits(), seed=3, condition_number=12.5)
    return [plan_text(plan).encode(), joint_trajectory_text(plan).encode()]


def _read_plan(path):
    plan = load_motion(path, _limits())
    return plan_text(plan), joint_trajectory_text(plan)


def _read_formula(content: bytes):
    try:
        formula = Expression(content.decode("utf-8", "replace"), TERM_SIGNALS)
    except ValueError as error:
        raise ConfigurationError(f"formula {error}") from None
    signals = dict.fromkeys(TERM_SIGNALS, np.linspace(-1, 1, 5))
    values = formula(signals, defaultdict(lambda: defaultdict(lambda: np.linspace(-1, 1, 5))))
    assert values.shape == (5,) and values.dtype == float
    return values


def text_targets() -> list[Target]:
    """Readers of text."""
    descriptions = from_file(".urdf", _read_description)
    configurations = from_file(".yaml", _read_configuration)
    return [
        Target("urdf", descriptions, _descriptions, other_description, _XML_WORDS),
        Target("configuration", configurations, lambda: _encoded(CONFIGURATIONS), other_yaml, YAML_WORDS),
        Target("plan", from_file(".yaml", _read_plan), _plans, other_yaml, YAML_WORDS),
        Target("formula", _read_formula, lambda: _encoded(FORMULAS), None, _FORMULA_WORDS),
    ]


def _encoded(texts: Sequence[str]) -> list[bytes]:
    return [text.encode() for text in texts]
