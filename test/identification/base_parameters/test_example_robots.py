"""Base parameters of real robots: closed form and numbers agree, and published combinations come out."""

import csv
import re

import numpy as np
import pytest
from lxml import etree
from support.base_parameter_spans import angle_between
from support.robots.random_robots import random_states

from inertid_ros.config.robot import RobotOptions
from inertid_ros.identification.base_parameters.closed_form import (
    closed_form_base_parameters,
    structural_base_parameters,
)
from inertid_ros.identification.base_parameters.numeric import base_parameters
from inertid_ros.identification.information.information import compress
from inertid_ros.robot.model import load_model

WHOLE = "."
ROBOTS = (  # file and the joints that move; the others are held at zero
    ("panda_description/urdf/panda.urdf", r"joint\d"),
    ("ur_description/urdf/ur3_robot.urdf", WHOLE),
    ("ur_description/urdf/ur5_robot.urdf", WHOLE),
    ("ur_description/urdf/ur10_robot.urdf", WHOLE),
    ("ur_description/urdf/ur5_gripper.urdf", WHOLE),
    ("kinova_description/robots/kinova.urdf", WHOLE),
    ("xarm_description/urdf/xarm7.urdf", WHOLE),
    ("z1_description/urdf/z1.urdf", WHOLE),
    ("so_arm_description/urdf/so100.urdf", WHOLE),
    ("so_arm_description/urdf/so101.urdf", WHOLE),
    ("talos_data/robots/talos_left_arm.urdf", WHOLE),
    ("talos_data/robots/talos_reduced.urdf", "torso|arm_right"),
    ("talos_data/robots/talos_reduced.urdf", "leg_left"),
    ("talos_data/robots/talos_full_v2.urdf", "head|arm_left"),
    ("tiago_description/robots/tiago_no_hand.urdf", "torso|arm"),
    ("tiago_description/robots/tiago.urdf", "arm|hand_index"),
    ("tiago_description/robots/tiago_dual.urdf", "torso|arm_left"),
    ("tiago_pro_description/robots/tiago_pro.urdf", "torso|arm_right"),
    ("baxter_description/urdf/baxter.urdf", r"left_[sew]"),
    ("pr2_description/urdf/pr2.urdf", "torso|^l_(shoulder|upper|elbow|forearm|wrist)"),
    ("icub_description/robots/icub.urdf", "torso|l_(shoulder|elbow|wrist)"),
    ("icub_description/robots/icub_reduced.urdf", "r_(hip|knee|ankle)"),
    ("romeo_description/urdf/romeo_small.urdf", "Trunk|LShoulder|LElbow|LWrist"),
    ("romeo_description/urdf/romeo_laas_small.urdf", "Trunk|RShoulder|RElbow|RWrist"),
    ("centauro_description/urdf/centauro.urdf", "torso|j_arm1"),
    ("centauro_description/urdf/centauro.urdf", "(hip|knee|ankle).*_1|j_wheel_1"),
    ("alex_description/urdf/alex_nub_hands.urdf", "Spine|Left"),
    ("alexander_description/urdf/alexander_v1.lowerBodyOnly.urdf", WHOLE),
    ("g1_description/urdf/g1_29dof_rev_1_0.urdf", "waist|left_(shoulder|elbow|wrist)"),
    ("human_description/robots/human.urdf", "right_(clavicle|shoulder|elbow|wrist)"),
    ("borinot_description/urdf/borinot_flying_arm_2.urdf", WHOLE),
    ("hextilt_description/urdf/hextilt_flying_arm_5.urdf", WHOLE),
    ("double_pendulum_description/urdf/double_pendulum.urdf", WHOLE),
    ("double_pendulum_description/urdf/double_pendulum_continuous.urdf", WHOLE),
    ("double_pendulum_description/urdf/double_pendulum_simple.urdf", WHOLE),
    ("asr_twodof_description/urdf/TwoDofs.urdf", WHOLE),
    ("finger_edu_description/robots/finger_edu.urdf", WHOLE),
    ("allegro_hand_description/urdf/allegro_left_hand.urdf", WHOLE),
    ("allegro_hand_description/urdf/allegro_right_hand.urdf", WHOLE),
    ("solo_description/robots/solo.urdf", WHOLE),
    ("solo_description/robots/solo12.urdf", WHOLE),
    ("anymal_b_simple_description/robots/anymal.urdf", WHOLE),
    ("anymal_b_simple_description/robots/anymal-kinova.urdf", "LF|j2"),
    ("anymal_c_simple_description/urdf/anymal.urdf", WHOLE),
    ("b1_description/urdf/b1-z1.urdf", "FR|joint"),
    ("a1_description/urdf/a1.urdf", WHOLE),
    ("go1_description/urdf/go1.urdf", WHOLE),
    ("go2_description/urdf/go2.urdf", WHOLE),
    ("laikago_description/urdf/laikago.urdf", WHOLE),
    ("hyq_description/robots/hyq_no_sensors.urdf", WHOLE),
    ("bolt_description/robots/bolt.urdf", WHOLE),
    ("quadruped_description/urdf/quadruped.urdf", WHOLE),
    ("simple_humanoid_description/urdf/simple_humanoid.urdf", "Spine|WAIST|CHEST|LARM|LUARM|L_"))
INERTIAL = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'


def kinematics(path, moving=WHOLE, **options):
    """Robot of a URDF with the same inertia for every link: kinematics alone decides on base parameters.

    Some of these robots have links without inertia or with elements such as -1e-20.
    """
    root = etree.fromstring(path.read_bytes())
    for link in root.iter("link"):
        for element in link.findall("inertial"):
            link.remove(element)
        link.append(etree.fromstring(INERTIAL))
    movable = [j for j in root.iter("joint") if j.get("type") in ("revolute", "continuous", "prismatic")]
    held = {joint.get("name"): 0.0 for joint in movable if not re.search(moving, joint.get("name"))}
    for joint in movable:
        if joint.find("mimic") is not None:
            held |= {joint.get("name"): 0.0, joint.find("mimic").get("joint"): 0.0}
    return load_model(etree.tostring(root, encoding="unicode"), RobotOptions(locked_joints=held, **options))


@pytest.mark.parametrize(("file", "moving"), ROBOTS, ids=lambda value: value.split("/")[-1])
def test_closed_form_and_numbers_agree(robots, file, moving):
    model = kinematics(robots / file, moving)
    assert model.joints >= 2
    closed, numeric = closed_form_base_parameters(model), structural_base_parameters(model)
    assert closed.count == numeric.count
    assert angle_between(closed, numeric) < 1e-8
    assert closed.clear and numeric.clear
    np.testing.assert_array_equal(closed.independent, numeric.independent)
    np.testing.assert_allclose(closed.regrouping, numeric.regrouping, atol=1e-8)


@pytest.mark.parametrize(
    ("file", "moving", "count"),
    [
        ("panda_description/urdf/panda.urdf", r"joint\d", 43), ("ur_description/urdf/ur10_robot.urdf", WHOLE, 36),
        ("double_pendulum_description/urdf/double_pendulum.urdf", WHOLE, 6)])
def test_counts_known_from_the_rules(robots, file, moving, count):
    """Seven skew joints: 43; six with two parallel ones and the first upright: 36; a planar double pendulum: 6."""
    model = kinematics(robots / file, moving, drive_terms=())
    assert closed_form_base_parameters(model).count == count


def test_names_of_an_arm_can_be_read(robots):
    names = closed_form_base_parameters(kinematics(robots / "panda_description/urdf/panda.urdf", r"joint\d")).names
    assert names[0] == "panda_link1.Izz + panda_link2.Iyy + panda_joint1.rotor_inertia"
    assert names[8] == (
        "panda_link3.mcx + 0.0825 panda_link4.m + 0.0825 panda_link5.m + 0.0825 panda_link6.m + 0.0825 panda_link7.m")
    assert {"panda_link7.Ixx - panda_link7.Iyy", "panda_link7.Ixy", "panda_joint3.rotor_inertia"} < set(names)


def test_tx40_has_the_published_combinations(datasets):
    """The authors of the recording print the base parameters of their identification, rotors and all."""
    folder = datasets / "staubli_tx40"
    base = closed_form_base_parameters(load_model(folder / "tx40_mdh_modified.urdf"))
    with (folder / "reference_base_params.csv").open() as file:
        published = [row[0] for row in csv.reader(file)]
    published = [name for name in published if re.match(r"[Im]", name) and not name.startswith("Iam")]
    assert len(published) == 39  # 36 of the links and 3 of the rotors; friction is one by one
    for name in published:
        expected = np.zeros(base.layout.size)
        for sign, size, term in re.findall(r"([+-]?) ?(?:([\d.]+)\*)?([A-Za-z]+\d)", name):
            column = base.layout.names.index(_in_our_terms(term))
            expected[column] = float(size or 1) * (-1 if sign == "-" else 1)
        assert np.abs(base.projection - expected).max(axis=1).min() < 1e-6, name


def _in_our_terms(name):
    symbol, joint = name[:-1], name[-1]
    if symbol == "Ia":
        return f"joint_{joint}.rotor_inertia"
    return f"link_{joint}.{symbol.replace('m', 'mc') if len(symbol) == 2 else symbol}"


@pytest.mark.parametrize("file", ["xarm_description/urdf/xarm7.urdf", "so_arm_description/urdf/so100.urdf"])
def test_recordings_of_robots_with_rounded_angles_show_their_structure(robots, file):
    """These files write 1.5708 or 1.57079; the equations of a recording contain that, their structure does not."""
    model = kinematics(robots / file)
    structure = closed_form_base_parameters(model)
    samples = random_states(np.random.default_rng(0), model, 150)
    R, _ = compress(model, [samples]).whitened(np.ones(model.joints))
    base = base_parameters(model.layout, R, structure)
    assert base.names == structure.names
    assert base.gap > 1e9
    assert base.condition_number < 20
    error = R - R[:, base.independent] @ base.projection
    assert np.abs(error).max() < 1e-4 * np.abs(R).max()
