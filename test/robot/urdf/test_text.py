"""URDF text: Denavit-Hartenberg tables, the robot of [Naveen2019]_, and differences between two URDFs."""

import numpy as np
import pytest
from support.base_parameter_spans import angle_between
from support.recordings.synthetic_calibration import calibrated_case
from support.robots.space_robot import TABLE, TABLE_5, space_robot, table_5

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.arrays import r_factor, skew
from inertid_ros.core.errors import ModelError
from inertid_ros.identification.base_parameters.closed_form import (
    KinematicTree,
    closed_form_base_parameters,
    kinematic_tree,
    minimal_parameters,
)
from inertid_ros.identification.base_parameters.numeric import base_parameters
from inertid_ros.regressors.whole_body_equations import momentum_regressor
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.model import load_model
from inertid_ros.robot.urdf.text import DhJoint, dh_urdf, urdf_changes

ORDER = (4, 6, 9, 5, 8, 7, 0, 1, 2, 3)  # B's (xx, yy, zz, xy, yz, zx, m, x, y, z) in ours


def denavit_hartenberg_tree(table: list[DhJoint]) -> KinematicTree:
    """Tree of a modified Denavit-Hartenberg table on a freely moving base, its first body."""
    count = len(table) + 1
    axes = np.zeros((count, 6))
    for index, row in enumerate(table, start=1):
        axes[index, 2 if row.prismatic else 5] = 1.0
    return KinematicTree(
        (-1, *(row.parent for row in table)),
        np.array([np.eye(3), *(row.rotation for row in table)]),
        np.array([np.zeros(3), *(row.translation for row in table)]),
        axes,
        np.zeros(3),
    )


def random_table(rng, joints):
    """Rows with right and other angles, one branch after the other, as Pinocchio orders them too."""
    rows, path = [], [0]
    for index in range(joints):
        path = path[: int(rng.integers(1, len(path) + 1))]
        alpha = rng.choice([0.0, np.pi / 2, -np.pi / 2, rng.uniform(-3, 3)])
        rows.append(DhJoint(path[-1], alpha, *rng.normal(size=3), mount=tuple(rng.normal(size=3))))
        path.append(index + 1)
    return rows


def naveen(table, bodies):
    """Minimal parameters by B's recursion, in B's order: an independent path, written from B (18-25)."""
    parameters = {index: bodies[index][list(ORDER)] for index in range(len(bodies))}
    for index in range(len(table), 0, -1):
        row, child = table[index - 1], parameters[index]
        c, s, b = np.cos(row.alpha), np.sin(row.alpha), row.translation
        k1 = np.array([1, c**2, s**2, 0, c * s, 0, 0, 0, 0, 0])
        square = -skew(b) @ skew(b)
        k2 = np.array([*(square[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2))), 1, *b])
        t2 = [2 * b[2] * c - 2 * b[1] * s, 2 * b[2] * c, -2 * b[1] * s, b[0] * s, b[2] * s - b[1] * c, -b[0] * c]
        k3 = np.array([*t2, 0, 0, -s, c])
        parameters[row.parent] = parameters[row.parent] + child[1] * k1 + child[6] * k2 + child[9] * k3
        child = child.copy()
        child[0] -= child[1]
        parameters[index] = child
    kept = [parameters[0], *(np.delete(parameters[i], (1, 6, 9)) for i in range(1, len(bodies)))]
    return np.concatenate(kept)


@pytest.mark.parametrize("seed", range(6))
def test_closed_form_is_the_recursion_of_the_literature(seed):
    rng = np.random.default_rng(seed)
    table = random_table(rng, 4)
    tree = denavit_hartenberg_tree(table)
    names = ParameterLayout(tuple(f"L{k}" for k in range(5)), tuple(f"J{k}" for k in range(1, 5)), ())
    base, bodies = minimal_parameters(tree, names), rng.normal(size=(5, 10))
    found = dict(zip(base.independent.tolist(), base.projection @ bodies.ravel(), strict=True))
    # t1 and t2 of B hold where theta = 0, as B has it: its angle belongs to the joint's position.
    straight = [DhJoint(r.parent, r.alpha, r.a, r.d, 0.0, r.prismatic, r.mount) for r in table]
    expected = naveen(straight, bodies)
    ours = [found[10 * link + ORDER[k]] for link in range(5) for k in range(10) if link == 0 or k not in (1, 6, 9)]
    np.testing.assert_allclose(ours, expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_closed_form_spans_the_momentum(seed):
    rng = np.random.default_rng(seed)
    table, bodies = random_table(rng, 4), np.tile([2.0, 0, 0, 0, 1, 0, 1, 0, 0, 1], (5, 1))
    model = load_model(dh_urdf("random", table, bodies), RobotOptions(base="free", drive_terms=()))
    tree = denavit_hartenberg_tree(table)
    np.testing.assert_allclose(tree.rotations, kinematic_tree(model).rotations, atol=1e-12)
    np.testing.assert_allclose(tree.translations, kinematic_tree(model).translations, atol=1e-12)
    rows = momentum_regressor(model.tree, rng.normal(size=(40, 6)), *rng.normal(size=(2, 40, 4)))
    numeric = base_parameters(model.layout, r_factor(rows.reshape(-1, 50)))
    closed = minimal_parameters(tree, model.layout)
    assert closed.count == numeric.count == 38
    assert angle_between(closed, numeric) < 1e-8


def test_all_52_values_of_the_space_robot():
    """[Naveen2019]_ table 5, from its URDF."""
    model = space_robot()
    base = closed_form_base_parameters(model)
    assert base.count == 52
    values = base.projection @ model.prior
    found = dict(zip(np.array(model.layout.names)[base.independent], values, strict=True))
    np.testing.assert_allclose(table_5(found), np.concatenate(TABLE_5), atol=5.1e-4)
    assert base.names[10:12] == ("L1.mcx + L2.m + L3.m", "L1.mcy - L2.mcz - L3.mcz")
    tree = denavit_hartenberg_tree(TABLE)
    np.testing.assert_allclose(minimal_parameters(tree, model.layout).projection, base.projection, atol=1e-12)


def test_wrong_tables_are_refused():
    bodies = np.tile([1.0, 0, 0, 0, 1, 0, 1, 0, 0, 1], (3, 1))
    with pytest.raises(ModelError, match="row 1: parent 2 does not come before it"):
        dh_urdf("wrong", [DhJoint(2), DhJoint(0)], bodies)
    with pytest.raises(ModelError, match="2 rows need 3 bodies and names, 2 and 3 given"):
        dh_urdf("wrong", [DhJoint(0), DhJoint(1)], bodies[:2])


ROBOT = """<robot name="r"><link name="base"/><link name="arm">{inertial}</link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/>{dynamics}</joint></robot>"""
INERTIAL = """<inertial><origin xyz="0 0 {z}" rpy="0 0 0"/><mass value="{mass}"/>
<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>"""


def text(mass="2", z="0.1", dynamics=""):
    return ROBOT.format(inertial=INERTIAL.format(mass=mass, z=z), dynamics=dynamics)


def test_attributes_that_differ_are_listed():
    changes = urdf_changes(text(), text(mass="2.5", dynamics='<dynamics damping="0.3" friction="0"/>'))
    assert [(each.name, each.attribute, each.before, each.after) for each in changes] == [
        ("arm", "inertial/mass value", "2", "2.5"),
        ("j", "dynamics damping", "", "0.3"),
    ]


@pytest.mark.parametrize("same", ["2.0", "2e0", "2.0000000000001"])
def test_how_a_number_is_written_is_no_change(same):
    assert urdf_changes(text(), text(mass=same)) == ()


def test_a_calibration_changes_inertials_and_dynamics():
    case, outcome = calibrated_case()
    changes = urdf_changes(case.given.urdf, outcome.urdf)
    assert {each.element for each in changes} == {"link", "joint"}
    assert {each.name for each in changes} <= {*case.given.link_names, *case.given.joint_names}
