"""No physical result depends on the units and frames of the URDF ([Lee2019]_ Prop. 3.1)."""

from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
import pytest
from support.robots.random_robots import random_bodies, random_states

from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.config.robot import DRIVE_TERMS, RobotOptions
from inertid_ros.core.inertial_parameters import geodesic_distance, mass_com_inertia, transform
from inertid_ros.identification.identify import identify
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.model import RobotModel, load_model

POUND, FOOT = 1 / 0.45359237, 1 / 0.3048  # how many there are in a kilogram, in a metre
TOLERANCE = 1e-6
TERMS = tuple(term for term in DRIVE_TERMS if term != "stribeck")  # its speed is given in rad/s and m/s


@dataclass(frozen=True)
class Tree:
    """A robot as numbers: parents, placements, axes, prismatic or not, prior bodies, gravity."""

    parents: list[int]
    placements: list[pin.SE3]
    axes: np.ndarray
    prismatic: np.ndarray
    bodies: np.ndarray
    gravity: np.ndarray

    def model(self) -> RobotModel:
        elements = ['<link name="base"/>']
        for index, pi in enumerate(self.bodies):
            mass, com, inertia = mass_com_inertia(pi)
            xx, xy, xz, yy, yz, zz = inertia[np.triu_indices(3)]
            placement = self.placements[index]
            parent = f"link{self.parents[index]}" if self.parents[index] >= 0 else "base"
            elements += [
                f'<link name="link{index}"><inertial><origin xyz="{_text(com)}"/><mass value="{mass!s}"/>'
                f'<inertia ixx="{xx}" ixy="{xy}" ixz="{xz}" iyy="{yy}" iyz="{yz}" izz="{zz}"/></inertial></link>',
                f'<joint name="joint{index}" type="{"prismatic" if self.prismatic[index] else "revolute"}">'
                f'<parent link="{parent}"/><child link="link{index}"/><axis xyz="{_text(self.axes[index])}"/>'
                f'<origin xyz="{_text(placement.translation)}" rpy="{_text(pin.rpy.matrixToRpy(placement.rotation))}"/>'
                '<limit lower="-3" upper="3" velocity="3" effort="3"/></joint>']
        text = f'<robot name="r">{"".join(elements)}</robot>'
        return load_model(text, RobotOptions(drive_terms=TERMS, gravity=tuple(self.gravity)))


def _text(numbers) -> str:
    return " ".join(repr(float(number)) for number in numbers)


def _rotation(rng: np.random.Generator) -> np.ndarray:
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return rotation * np.sign(np.linalg.det(rotation))


def _random_tree(rng: np.random.Generator, joints: int, sliding: bool) -> Tree:
    axes = rng.normal(size=(joints, 3))
    return Tree(
        parents=[int(rng.integers(-1, i)) if i else -1 for i in range(joints)],
        placements=[pin.SE3(_rotation(rng), 0.4 * rng.normal(size=3)) for _ in range(joints)],
        axes=axes / np.linalg.norm(axes, axis=1, keepdims=True),
        prismatic=rng.random(joints) < 0.3 if sliding else np.zeros(joints, dtype=bool),
        bodies=random_bodies(rng, joints), gravity=np.array([0.0, 0.0, -9.81]))


def _ordered(tree: Tree) -> Tree:
    """The same robot with its links in the order of the model, which walks along branches."""
    order = [int(name.removeprefix("joint")) for name in tree.model().joint_names]
    return Tree(
        [order.index(tree.parents[i]) if tree.parents[i] >= 0 else -1 for i in order],
        [tree.placements[i] for i in order], tree.axes[order], tree.prismatic[order], tree.bodies[order],
        tree.gravity)


def _experiment(seed: int, sliding: bool, joints: int = 4):
    """A robot, its wrong prior, and what was measured of it: bodies, drives, samples."""
    rng = np.random.default_rng(seed)
    tree = _ordered(_random_tree(rng, joints, sliding))
    model = tree.model()
    bodies = perturb(model, rng)
    samples = random_states(rng, model, 120)
    drives = rng.uniform(0.2, 1.0, model.layout.size - 10 * joints)
    tau = ForceEquations(model).predict(np.concatenate([bodies.ravel(), drives]), samples)
    return tree, model, replace(samples, tau=tau + 0.3 * rng.normal(size=tau.shape))


@pytest.mark.parametrize("regularizer", ["pullback", "entropic", "riemannian"])
@pytest.mark.parametrize("seed", range(2))
def test_pounds_and_inches(seed, regularizer):
    tree, model, samples = _experiment(seed, sliding=seed % 2 == 1)
    length = FOOT ** np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
    other = replace(
        tree, placements=[pin.SE3(p.rotation, FOOT * p.translation) for p in tree.placements],
        bodies=POUND * length * tree.bodies, gravity=FOOT * tree.gravity).model()
    motion = np.where(tree.prismatic, FOOT, 1.0)
    effort = POUND * FOOT**2 / motion
    converted = replace(
        samples, q=motion * samples.q, v=motion * samples.v, a=motion * samples.a, tau=effort * samples.tau)
    options = IdentifyOptions(regularizer=regularizer)
    estimate, theirs = identify(model, [samples], options), identify(other, [converted], options)
    unit = {"offset": effort, "coulomb": effort}
    drives = np.concatenate([unit.get(term, effort / motion) for term in TERMS])
    units = np.concatenate([np.tile(POUND * length, len(tree.parents)), drives])
    _same(estimate, theirs.parameters / units, theirs.standard_deviation / units, theirs)
    torque = theirs.torque(converted) / effort
    np.testing.assert_allclose(torque, estimate.torque(samples), atol=TOLERANCE * np.abs(samples.tau).max())


@pytest.mark.parametrize("regularizer", ["pullback", "entropic", "riemannian"])
@pytest.mark.parametrize("seed", range(2))
def test_link_frames(seed, regularizer):
    """Every frame turned, and shifted along its axis (anywhere on a link that slides)."""
    tree, model, samples = _experiment(seed, sliding=seed % 2 == 1)
    rng = np.random.default_rng(100 + seed)
    moved = []
    for axis, slides in zip(tree.axes, tree.prismatic, strict=True):
        moved.append(pin.SE3(_rotation(rng), rng.normal(size=3) if slides else axis * rng.normal()))
    before = [moved[parent] if parent >= 0 else pin.SE3.Identity() for parent in tree.parents]
    other = replace(
        tree,
        placements=[b.inverse() * p * m for b, p, m in zip(before, tree.placements, moved, strict=True)],
        axes=np.array([m.rotation.T @ axis for m, axis in zip(moved, tree.axes, strict=True)]),
        bodies=np.array(
            [
                transform(pi, m.rotation.T, -m.rotation.T @ m.translation)
                for pi, m in zip(tree.bodies, moved, strict=True)])).model()
    np.testing.assert_allclose(
        ForceEquations(other).predict(other.prior, samples), ForceEquations(model).predict(model.prior, samples),
        rtol=1e-8, atol=1e-9)
    options = IdentifyOptions(regularizer=regularizer)
    estimate, theirs = identify(model, [samples], options), identify(other, [samples], options)
    parameters = theirs.parameters.copy()
    bodies = theirs.layout.bodies(parameters)
    bodies[:] = [transform(pi, m.rotation, m.translation) for pi, m in zip(bodies, moved, strict=True)]
    _same(estimate, parameters, None, theirs)
    error = theirs.torque(samples) - estimate.torque(samples)
    assert np.abs(error).max() < TOLERANCE * np.abs(samples.tau).max()


def _same(estimate, parameters, deviations, theirs) -> None:
    """The same bodies, drives, stated deviations and prior spread."""
    layout = estimate.layout
    distance = geodesic_distance(estimate.bodies, layout.bodies(parameters))
    assert distance.max() < TOLERANCE
    drives = slice(layout.inertial_size, None)
    scale = estimate.standard_deviation[drives]
    assert np.max(np.abs(estimate.parameters[drives] - parameters[drives]) / scale) < TOLERANCE
    assert theirs.prior_spread == pytest.approx(estimate.prior_spread, rel=TOLERANCE)
    if not estimate.model.axes[:, :3].any():  # else it adds newtons to newton metres
        assert theirs.train_relative_error == pytest.approx(estimate.train_relative_error, rel=TOLERANCE)
    np.testing.assert_allclose(theirs.effective_counts, estimate.effective_counts, rtol=TOLERANCE)
    np.testing.assert_allclose(theirs.distance_to_prior, estimate.distance_to_prior, rtol=TOLERANCE, atol=TOLERANCE)
    if deviations is not None:
        np.testing.assert_allclose(deviations, estimate.standard_deviation, rtol=1e-5)
