"""Base parameters of trees whose base moves freely: the momentum regressor, and a space robot of the literature."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from base_parameter_spans import angle_between
from random_robots import random_model, special_model

from inertid_ros.identification.base_parameters import (
    KinematicTree,
    base_parameters,
    kinematic_tree,
    minimal_parameters,
    tidied,
)
from inertid_ros.identification.triangular import triangle
from inertid_ros.robot.layout import ParameterLayout
from inertid_ros.robot.parameters import NAMES, from_mass_com_inertia


def _on_free_base(tree: KinematicTree) -> KinematicTree:
    """The tree of a robot, mounted on a body that moves freely."""
    return replace(
        tree,
        parents=(-1, *(parent + 1 for parent in tree.parents)),
        rotations=np.concatenate([np.eye(3)[None], tree.rotations]),
        translations=np.concatenate([np.zeros((1, 3)), tree.translations]),
        axes=np.concatenate([np.zeros((1, 6)), tree.axes]),
    )


def _pinocchio(tree: KinematicTree) -> pin.Model:
    model = pin.Model()
    model.gravity.linear = tree.gravity
    for body, parent in enumerate(tree.parents):
        linear, angular = tree.axes[body, :3], tree.axes[body, 3:]
        joint = pin.JointModelRevoluteUnaligned(angular) if angular.any() else pin.JointModelPrismaticUnaligned(linear)
        if tree.free[body]:
            joint = pin.JointModelFreeFlyer()
        model.addJoint(parent + 1, joint, pin.SE3(tree.rotations[body], tree.translations[body]), f"joint{body}")
    return model


def _momentum(model: pin.Model, rng: np.random.Generator, states: int) -> np.ndarray:
    """``(6 states, 10 nb)`` momentum of each unit parameter about a fixed point, at random states."""
    data, rows = model.createData(), []
    for _ in range(states):
        q = pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv))
        pin.forwardKinematics(model, data, q, rng.normal(size=model.nv))
        columns = []
        for body in range(1, model.njoints):
            pose, v = data.oMi[body], data.v[body]
            for k in range(10):
                unit = np.eye(10)[k]
                mass, first, (xx, xy, yy, xz, yz, zz) = unit[0], unit[1:4], unit[4:]
                inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
                linear = mass * v.linear + np.cross(v.angular, first)
                angular = inertia @ v.angular + np.cross(first, v.linear)
                columns.append(pose.act(pin.Force(linear, angular)).vector)
        rows.append(np.array(columns).T)
    return np.vstack(rows)


@pytest.mark.parametrize("seed", range(8))
def test_momentum_shows_the_same_combinations(seed):
    """Without torque and acceleration: the momentum of the whole is all that is seen (B 26)."""
    rng = np.random.default_rng(seed)
    make = random_model if seed % 2 else special_model
    tree = _on_free_base(kinematic_tree(tidied(make(rng, 4))))
    layout = ParameterLayout(tuple(f"l{k}" for k in range(5)), tuple(f"j{k}" for k in range(4)), ())
    closed = minimal_parameters(tree, layout)
    numeric = base_parameters(layout, triangle(_momentum(_pinocchio(tree), rng, 20)))
    assert closed.count == 10 + sum(7 if axis[3:].any() else 4 for axis in tree.axes[1:])
    assert closed.count == numeric.count
    assert angle_between(closed, numeric) < 1e-8


@pytest.mark.parametrize("seed", range(4))
def test_wrench_and_torques_show_the_same_combinations(seed):
    """With drives: forces on the base and torques of the joints, under gravity."""
    rng = np.random.default_rng(seed)
    tree = _on_free_base(kinematic_tree(tidied(special_model(rng, 4))))
    model = _pinocchio(tree)
    data, rows = model.createData(), []
    for _ in range(30):
        q = pin.integrate(model, pin.neutral(model), rng.normal(size=model.nv))
        v, a = rng.normal(size=(2, model.nv))
        rigid = pin.computeJointTorqueRegressor(model, data, q, v, a).copy()
        drives = np.vstack([np.zeros((6, 8)), np.hstack([np.diag(a[6:]), np.eye(4)])])
        rows.append(np.hstack([rigid, drives]))
    layout = ParameterLayout(
        tuple(f"l{k}" for k in range(5)), tuple(f"j{k}" for k in range(4)), ("rotor_inertia", "offset")
    )
    closed, numeric = minimal_parameters(tree, layout), base_parameters(layout, triangle(np.vstack(rows)))
    assert angle_between(closed, numeric) < 1e-8


# B Table 3, links 0 to 6: m, com, inertia about the com (xx, yy, zz, xy, yz, zx); y of link 2 as Table 5 needs it.
LINKS = (
    (2000.0, (0.2, 0.3, 0.4), (1200.0, 1200.0, 1200.0, 35.52, 40.45, 45.71)),
    (50.0, (0.6, 0.05, -0.07), (3.1, 1.89, 20.51, 1.9, 3.65, 3.9)),
    (40.0, (0.4, -0.04, -0.05), (1.15, 1.68, 18.67, 0.61, 1.75, 1.5)),
    (30.0, (0.7, 0.4, 0.3), (24.45, 28.56, 35.53, 9.78, 9.1, 10.23)),
    (50.0, (0.55, 0.04, -0.04), (1.85, 1.62, 17.05, 1.5, 2.25, 3.71)),
    (35.0, (0.45, 0.05, 0.05), (2.55, 1.84, 14.28, 2.9, 1.55, 1.27)),
    (60.0, (0.6, -0.5, -0.35), (12.24, 31.45, 23.77, 9.1, 8.52, 8.67)),
)
# B Table 5, true values; of the base xx, yy, zz, xy, yz, zx, m, mcx, mcy, mcz, of every link what is left of these.
TABLE_5 = (
    (2130.560, 2078.560, 1555.700, -96.630, -269.450, -148.890, 2265.000, 440.500, 679.500, 1033.000),
    (-2.525, 192.775, 7.400, 3.825, 6.000, 100.000, -4.500),
    (-36.866, 55.134, 1.250, 1.670, -6.700, 46.000, -1.600),
    (-14.010, 55.030, 1.380, 5.500, 3.930, 21.000, 12.000),
    (19.600, 256.670, -18.850, 2.330, 4.810, 122.500, 21.250),
    (-66.290, 81.455, 2.112, 1.462, 21.483, 75.750, 1.750),
    (-25.810, 60.370, 27.100, -1.980, 21.270, 36.000, -30.000),
)


def test_space_robot_of_the_literature():
    """All 52 true values of B Table 5 (21-25), from the masses, centres and inertias of Table 3."""
    upright = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # alpha = 90 degrees
    tree = KinematicTree(
        parents=(-1, 0, 1, 2, 0, 4, 5),
        rotations=np.array([np.eye(3), np.eye(3), upright, np.eye(3), np.eye(3), upright, np.eye(3)]),
        translations=np.array(
            [[0, 0, 0], [0.7, 0.3, 0.9], [1, 0, 0], [1, 0, 0], [-0.3, 0.3, 0.9], [1, 0, 0], [1, 0, 0]], dtype=float
        ),
        axes=np.vstack([np.zeros(6), np.tile([0, 0, 0, 0, 0, 1.0], (6, 1))]),
        gravity=np.zeros(3),
    )
    layout = ParameterLayout(tuple(f"L{k}" for k in range(7)), tuple(f"j{k}" for k in range(1, 7)), ())
    base = minimal_parameters(tree, layout)
    assert base.count == 52
    bodies = []
    for mass, com, (xx, yy, zz, xy, yz, zx) in LINKS:
        bodies.append(from_mass_com_inertia(mass, com, [[xx, xy, zx], [xy, yy, yz], [zx, yz, zz]]))
    values = dict(zip(np.array(layout.names)[base.independent], base.projection @ np.concatenate(bodies), strict=True))
    for link, published in enumerate(TABLE_5):
        order = ("Ixx", "Iyy", "Izz", "Ixy", "Iyz", "Ixz", "m", "mcx", "mcy", "mcz")
        kept = order if link == 0 else [name for name in order if name not in ("Iyy", "m", "mcz")]
        found = [values.pop(f"L{link}.{name}") for name in kept]
        np.testing.assert_allclose(found, published, atol=5.1e-4)
    assert not values


def test_names_of_a_free_base_keep_all_ten():
    tree = _on_free_base(kinematic_tree(special_model(np.random.default_rng(0), 2)))
    base = minimal_parameters(tree, ParameterLayout(("b", "l1", "l2"), ("j1", "j2"), ()))
    assert tuple(np.array(base.layout.names)[base.independent[:10]]) == tuple(f"b.{name}" for name in NAMES)
