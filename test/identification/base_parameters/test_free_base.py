"""Base parameters of trees whose base moves freely: the momentum regressor, and a space robot of the literature."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from support.base_parameter_spans import angle_between
from support.robots.random_robots import random_model, special_model
from support.robots.space_robot import REGROUPED, TABLE_5, TABLE_5_ORDER, TRUE, bodies

from inertid_ros.core.arrays import r_factor
from inertid_ros.core.inertial_parameters import NAMES
from inertid_ros.identification.base_parameters.closed_form import (
    KinematicTree,
    kinematic_tree,
    minimal_parameters,
    tidied,
)
from inertid_ros.identification.base_parameters.numeric import base_parameters
from inertid_ros.robot.layout import ParameterLayout


def _on_free_base(tree: KinematicTree) -> KinematicTree:
    """The tree of a robot, mounted on a body that moves freely."""
    return replace(
        tree, parents=(-1, *(parent + 1 for parent in tree.parents)),
        rotations=np.concatenate([np.eye(3)[None], tree.rotations]),
        translations=np.concatenate([np.zeros((1, 3)), tree.translations]),
        axes=np.concatenate([np.zeros((1, 6)), tree.axes]))


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


@pytest.mark.parametrize("seed", range(4))
def test_momentum_shows_the_same_combinations(seed):
    """Without torque and acceleration: the momentum of the whole robot determines them ([Naveen2019]_ eq. 26)."""
    rng = np.random.default_rng(seed)
    make = random_model if seed % 2 else special_model
    tree = _on_free_base(kinematic_tree(tidied(make(rng, 4))))
    layout = ParameterLayout(tuple(f"l{k}" for k in range(5)), tuple(f"j{k}" for k in range(4)), ())
    closed = minimal_parameters(tree, layout)
    numeric = base_parameters(layout, r_factor(_momentum(_pinocchio(tree), rng, 20)))
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
        tuple(f"l{k}" for k in range(5)), tuple(f"j{k}" for k in range(4)), ("rotor_inertia", "offset"))
    closed, numeric = minimal_parameters(tree, layout), base_parameters(layout, r_factor(np.vstack(rows)))
    assert angle_between(closed, numeric) < 1e-8


def test_space_robot_of_the_literature():
    """All 52 true values of [Naveen2019]_ table 5 (21-25), from the masses, centres and inertias of table 3."""
    upright = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # alpha = 90 degrees
    tree = KinematicTree(
        parents=(-1, 0, 1, 2, 0, 4, 5),
        rotations=np.array([np.eye(3), np.eye(3), upright, np.eye(3), np.eye(3), upright, np.eye(3)]),
        translations=np.array(
            [[0, 0, 0], [0.7, 0.3, 0.9], [1, 0, 0], [1, 0, 0], [-0.3, 0.3, 0.9], [1, 0, 0], [1, 0, 0]], dtype=float),
        axes=np.vstack([np.zeros(6), np.tile([0, 0, 0, 0, 0, 1.0], (6, 1))]),
        gravity=np.zeros(3))
    layout = ParameterLayout(tuple(f"L{k}" for k in range(7)), tuple(f"j{k}" for k in range(1, 7)), ())
    base = minimal_parameters(tree, layout)
    assert base.count == 52
    values = dict(zip(np.array(layout.names)[base.independent], base.projection @ bodies(TRUE).ravel(), strict=True))
    for link, published in enumerate(TABLE_5):
        kept = TABLE_5_ORDER if link == 0 else [name for name in TABLE_5_ORDER if name not in REGROUPED]
        found = [values.pop(f"L{link}.{name}") for name in kept]
        np.testing.assert_allclose(found, published, atol=5.1e-4)
    assert not values


def test_names_of_a_free_base_keep_all_ten():
    tree = _on_free_base(kinematic_tree(special_model(np.random.default_rng(0), 2)))
    base = minimal_parameters(tree, ParameterLayout(("b", "l1", "l2"), ("j1", "j2"), ()))
    assert tuple(np.array(base.layout.names)[base.independent[:10]]) == tuple(f"b.{name}" for name in NAMES)
