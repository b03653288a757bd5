"""Base parameters: closed and numeric form span the same, special cases are the textbooks', gaps are reported."""

import logging
import re
from dataclasses import replace

import numpy as np
import pytest
from support.base_parameter_spans import angle_between
from support.robots.random_robots import random_model, random_states, special_model, special_urdf

from inertid_ros.config.robot import DRIVE_TERMS, RobotOptions
from inertid_ros.core.errors import IdentificationError
from inertid_ros.identification.base_parameters.closed_form import (
    base_parameters_of_robot,
    closed_form_base_parameters,
    kinematic_tree,
    minimal_parameters,
    structural_base_parameters,
    tidied,
    tidy,
)
from inertid_ros.identification.base_parameters.numeric import base_parameters
from inertid_ros.identification.information.information import compress
from inertid_ros.robot.layout import Coupling, ParameterLayout
from inertid_ros.robot.model import load_model
from inertid_ros.robot.rotors import Rotor

GRAVITIES = ((0.0, 0.0, -9.81), (0.0, 0.0, 0.0), (0.0, -9.81, 0.0), (3.0, 2.0, -9.0))
TERMS = ((), DRIVE_TERMS, ("rotor_inertia",), ("viscous", "offset"))


def _options(rng):
    return {"gravity": GRAVITIES[rng.integers(4)], "drive_terms": TERMS[rng.integers(4)]}


def _agree(model):
    closed, numeric = closed_form_base_parameters(model), structural_base_parameters(model)
    assert closed.count == numeric.count
    assert angle_between(closed, numeric) < 1e-8
    assert closed.clear and numeric.clear
    np.testing.assert_allclose(closed.projection @ numeric.null_space, 0.0, atol=1e-7)


@pytest.mark.parametrize("block", range(4))
def test_closed_form_and_numbers_agree_on_trees_with_right_angles(block):
    for seed in range(15):
        rng = np.random.default_rng([1, block, seed])
        _agree(special_model(rng, int(rng.integers(1, 7)), **_options(rng)))


@pytest.mark.parametrize("block", range(3))
def test_closed_form_and_numbers_agree_on_random_trees(block):
    for seed in range(10):
        rng = np.random.default_rng([2, block, seed])
        _agree(random_model(rng, int(rng.integers(1, 6)), **_options(rng)))


@pytest.mark.parametrize("block", range(3))
def test_drives_of_several_joints_show_what_other_states_show(block):
    """Also where they repeat each other or the joints' own drives."""
    for seed in range(5):
        rng = np.random.default_rng([3, block, seed])
        joints = int(rng.integers(2, 5))
        couplings = []
        for index in range(rng.integers(1, 4)):
            chosen = rng.choice(joints, int(rng.integers(1, min(joints, 3) + 1)), replace=False)
            ratios = rng.choice([1.0, -1.0, 2.0, 0.5], len(chosen))
            couplings.append(Coupling(f"c{index}", tuple(f"joint{j}" for j in chosen), tuple(map(float, ratios))))
        _shows_the_rank(special_model(rng, joints, couplings=tuple(couplings), **_options(rng)), rng)


@pytest.mark.parametrize("block", range(3))
def test_rotors_show_what_other_states_show(block):
    """On the base, on links before the joint, on its own link, on links beyond and on other branches."""
    for seed in range(5):
        rng = np.random.default_rng([4, block, seed])
        joints = int(rng.integers(1, 5))
        rotors = [_rotor(rng, k, int(rng.integers(joints)), int(rng.integers(-1, joints))) for k in range(2)]
        _shows_the_rank(special_model(rng, joints, rotors=tuple(rotors), **_options(rng)), rng)


def _shows_the_rank(model, rng):
    """Base parameters determine the torque of other states than those that they were found from."""
    base = base_parameters_of_robot(model)
    R = _triangle(tidied(model), random_states(rng, model, 30 * model.layout.size))
    lengths = np.linalg.norm(R, axis=0)
    shown = lengths > 1e-9 * lengths.max()
    assert np.linalg.matrix_rank(R[:, shown] / lengths[shown], 1e-8) == base.count
    np.testing.assert_allclose(R[:, base.independent] @ base.projection, R, atol=1e-8 * lengths.max())
    assert base.clear


def _rotor(rng, index, joint, link):
    carrier, ratio = "base" if link < 0 else f"link{link}", (5.3, -10.604)[index]
    offset, angles = rng.normal(scale=0.2, size=3) * (rng.random(3) < 0.5), rng.integers(-2, 3, 3) * np.pi / 2
    inertia, axis = (1e-3, 0.0, 0.0, 1e-3, 0.0, 1e-3), np.eye(3)[rng.integers(3)]
    return Rotor(
        f"r{index}", f"joint{joint}", carrier, ratio, 1.0, inertia, xyz=tuple(offset), rpy=tuple(angles),
        axis=tuple(axis))


def _chain(*joints, gravity=GRAVITIES[0], terms=("rotor_inertia", "offset")):
    """Chain of joints, each ``(joint_type, axis, xyz of its origin)``."""
    inertial = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    text = '<link name="l0"/>'
    for index, (joint_type, axis, xyz) in enumerate(joints, start=1):
        text += (
            f'<link name="l{index}">{inertial}</link><joint name="j{index}" type="{joint_type}">'
            f'<parent link="l{index - 1}"/>'
            f'<child link="l{index}"/><origin xyz="{xyz}"/><axis xyz="{axis}"/>'
            '<limit lower="-3" upper="3" velocity="2" effort="100"/></joint>')
    return load_model(f'<robot name="chain">{text}</robot>', RobotOptions(gravity=gravity, drive_terms=terms))


@pytest.mark.parametrize(
    ("joints", "names"),
    [
        ((("revolute", "0 0 1", "0 0 0"),), ["l1.Izz + j1.rotor_inertia", "j1.offset"]),
        (
            (("revolute", "0 1 0", "0 0 0"),), ["l1.mcx", "l1.mcz", "l1.Iyy + j1.rotor_inertia", "j1.offset"]),
        ((("prismatic", "1 0 0", "0 0 0"),), ["j1.rotor_inertia + l1.m", "j1.offset"]),
        ((("prismatic", "0 0 1", "0 0 0"),), ["j1.rotor_inertia + l1.m", "j1.offset + 9.81 l1.m"]),
        (
            (("prismatic", "1 0 0", "0 0 0"), ("prismatic", "0 0 1", "0 0 0")),
            ["j1.rotor_inertia + l1.m + l2.m", "j2.rotor_inertia + l2.m", "j1.offset", "j2.offset + 9.81 l2.m"]),
        (
            (("revolute", "0 0 1", "0 0 0"), ("revolute", "0 0 1", "0.5 0 0")),
            [
                "l1.Izz + 0.25 l2.m + j1.rotor_inertia", "l2.mcx", "l2.mcy", "l2.Izz", "j2.rotor_inertia",
                "j1.offset", "j2.offset"]),
        (
            (("revolute", "0 0 1", "0 0 0"), ("prismatic", "0 0 1", "0.5 0 0")),
            [
                "l1.Izz + 0.25 l2.m + l2.mcx + l2.Izz + j1.rotor_inertia", "j2.rotor_inertia + l2.m", "j1.offset",
                "j2.offset + 9.81 l2.m"])],
    ids=["upright", "pendulum", "cart", "lift", "cart with a lift", "scara", "lift on a turntable"])
def test_textbook_cases(joints, names):
    model = _chain(*joints)
    base = closed_form_base_parameters(model)
    assert list(base.names) == names
    assert list(structural_base_parameters(model).names) == names


def test_first_moments_vanish_while_only_translations_precede():
    """A gantry of three prismatic joints shows masses only; a wrist behind it shows its own moments."""
    axes = ("1 0 0", "0 1 0", "0 0 1")
    gantry = [("prismatic", axis, "0 0 0") for axis in axes]
    assert closed_form_base_parameters(_chain(*gantry, terms=())).count == 3
    base = closed_form_base_parameters(_chain(*gantry, ("revolute", "0 0 1", "0 0 0"), terms=()))
    assert base.names[3:] == ("l4.mcx", "l4.mcy", "l4.Izz")


def test_a_belt_on_parallel_axes_is_regrouped():
    """The second motor of a planar arm turns with both joints: its rotor looks like the arms' own inertia."""
    joints = (("revolute", "0 0 1", "0 0 0"), ("revolute", "0 0 1", "0.5 0 0"))
    model = _chain(*joints, terms=("rotor_inertia",))
    belt = Coupling("belt", ("j1", "j2"), (1.0, 1.0))
    model = replace(model, layout=replace(model.layout, couplings=(belt,)))
    base = base_parameters_of_robot(model)
    assert base.names == (
        "l1.Izz + 0.25 l2.m + j1.rotor_inertia", "l2.mcx", "l2.mcy", "l2.Izz + belt.rotor_inertia",
        "j2.rotor_inertia", "belt.viscous", "belt.coulomb")

def test_base_parameters_of_a_robot_in_other_frames_count_the_same():
    """Axes turned as a whole, gravity with them: nothing physical changes."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        model = special_model(rng, 5)
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        turn *= np.linalg.det(turn)
        tree = kinematic_tree(model)
        first = np.equal(tree.parents, -1)[:, None]
        rotations = np.where(first[..., None], turn @ tree.rotations, tree.rotations)
        translations = np.where(first, tree.translations @ turn.T, tree.translations)
        turned = replace(tree, rotations=rotations, translations=translations, gravity=turn @ tree.gravity)
        one, other = (minimal_parameters(t, model.layout) for t in (tree, turned))
        assert angle_between(one, other) < 1e-8


def test_rounded_right_angles_are_right_angles():
    text = special_urdf(np.random.default_rng(7), 5)
    exact = re.sub(r"1\.5707\d*", repr(np.pi / 2), re.sub(r"3\.14159\d*", repr(np.pi), text))
    rounded = re.sub(r"1\.5707\d*", "1.5708", re.sub(r"3\.14159\d*", "3.1416", text))
    assert rounded != exact
    models = [load_model(t, RobotOptions()) for t in (exact, rounded)]
    for find in (closed_form_base_parameters, structural_base_parameters):
        one, other = map(find, models)
        assert angle_between(one, other) < 1e-12
        assert one.names == other.names


def test_tidy_leaves_small_but_real_angles_alone():
    model = random_model(np.random.default_rng(1), 4)
    tree = kinematic_tree(model)
    np.testing.assert_allclose(tidy(tree).rotations, tree.rotations, atol=1e-14)
    small = np.array([[np.cos(1e-3), -np.sin(1e-3), 0], [np.sin(1e-3), np.cos(1e-3), 0], [0, 0, 1]])
    kept = tidy(replace(tree, rotations=np.array([small] * 4)))
    np.testing.assert_allclose(kept.rotations, [small] * 4, atol=1e-15)


def test_tidied_robot_has_the_tidy_tree():
    rng = np.random.default_rng(3)
    rotor = replace(_rotor(rng, 0, 1, 0), rpy=(1.5708, 0.0, 3.1416))
    model = special_model(rng, 4, rotors=(rotor,))
    tree, again = tidy(kinematic_tree(model)), kinematic_tree(tidied(model))
    np.testing.assert_allclose(again.rotations, tree.rotations, atol=1e-12)
    np.testing.assert_allclose(again.translations, tree.translations, atol=1e-12)
    np.testing.assert_allclose(again.axes, tree.axes, atol=1e-12)


def _triangle(model, samples):
    return compress(model, [samples]).whitened(np.ones(model.joints))[0]


def test_what_the_data_does_not_show_is_dropped_on_top_of_the_structure():
    rng = np.random.default_rng(11)
    model = random_model(rng, 5, branched=False)
    structure, samples = closed_form_base_parameters(model), random_states(rng, model, 400)
    still = replace(
        samples, q=samples.q * [1, 1, 1, 1, 0] + 0.3, v=samples.v * [1, 1, 1, 1, 0], a=samples.a * [1, 1, 1, 1, 0])
    R = _triangle(model, samples)
    assert list(base_parameters(model.layout, R, structure).names) == list(structure.names)
    R = _triangle(model, still)
    with_structure, without = base_parameters(model.layout, R, structure), base_parameters(model.layout, R)
    assert with_structure.count == without.count < structure.count
    assert set(with_structure.independent) < set(structure.independent)
    assert angle_between(with_structure, without) < 1e-7
    scale = np.linalg.norm(R, axis=0).max()
    for base in (with_structure, without):
        np.testing.assert_allclose(R @ base.null_space, 0.0, atol=1e-8 * scale)
        np.testing.assert_allclose(base.projection @ base.null_space, 0.0, atol=1e-12)
        np.testing.assert_allclose(R[:, base.independent] @ base.projection, R, atol=1e-8 * scale)


def test_gap_is_reported_and_its_absence_warned_of(caplog):
    rng = np.random.default_rng(2)
    layout = ParameterLayout(("a",), ("j",), ())
    left, right = (np.linalg.qr(rng.normal(size=(10, 10)))[0] for _ in range(2))
    clear = left @ np.diag([1.0] * 6 + [1e-12] * 4) @ right
    with caplog.at_level(logging.WARNING):
        base = base_parameters(layout, clear)
    assert base.count == 6 and base.clear and 1e10 < base.gap < 1e13
    assert not caplog.records
    blurred = left @ np.diag(10.0 ** -np.arange(0, 10)) @ right
    with caplog.at_level(logging.WARNING):
        base = base_parameters(layout, blurred)
    assert not base.clear
    assert "no visible gap" in caplog.text


def test_nothing_is_identified_from_nothing():
    layout = ParameterLayout(("a",), ("j",))
    base = base_parameters(layout, np.zeros((layout.size, layout.size)))
    assert base.count == 0 and base.names == ()
    assert len(base.dependent) == layout.size
    assert base.projection.shape == (0, layout.size)


def test_parameters_alone_and_without_effect():
    base = closed_form_base_parameters(_chain(("revolute", "0 1 0", "0 0 0")))
    names = np.array(base.layout.names)
    assert set(names[base.alone]) == {"l1.mcx", "l1.mcz", "j1.offset"}
    without_effect = base.dependent[~base.regrouping.any(axis=0)]
    assert set(names[without_effect]) == {f"l1.{k}" for k in ("m", "mcy", "Ixx", "Ixy", "Ixz", "Iyz", "Izz")}


def test_rotors_are_left_to_numbers():
    rotor = Rotor("r", "j1", "l0", 1.0, 1.0, (1.0, 0.0, 0.0, 1.0, 0.0, 1.0))
    chain = _chain(("revolute", "0 0 1", "0 0 0"), ("revolute", "1 0 0", "0.5 0 0"))
    model = replace(chain, layout=replace(chain.layout, rotors=(rotor,)))
    with pytest.raises(IdentificationError, match="does not cover rotors"):
        closed_form_base_parameters(model)
    assert base_parameters_of_robot(model).names == structural_base_parameters(model).names
    assert base_parameters_of_robot(chain).names == closed_form_base_parameters(chain).names
