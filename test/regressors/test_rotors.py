"""Rotors as bodies: against Lagrange's equations in 4 x 4 matrices, and the published rank of a quadruped's leg."""

import numpy as np
import pinocchio as pin
import pytest
from support.robots.cheetah_leg import leg_model, read_leg
from support.robots.random_robots import load_with, random_bodies, random_states, random_urdf

from inertid_ros.config.robot import RobotOptions, RotorOptions
from inertid_ros.core.arrays import skew
from inertid_ros.core.errors import InertidError, ModelError
from inertid_ros.core.inertial_parameters import pseudo_inertia
from inertid_ros.identification.base_parameters.numeric import base_parameters
from inertid_ros.identification.information.information import compress
from inertid_ros.regressors.equations import ForceEquations, dense_equations
from inertid_ros.regressors.rigid_body_regressor import further_torque
from inertid_ros.robot.model import load_model
from inertid_ros.robot.rotors import Rotor, with_rotors


def _model(seed: int, joints: int = 4):
    """A random tree with a rotor for every joint, each on some link, the root among them."""
    rng = np.random.default_rng(seed)
    rotors = [
        Rotor(
            f"rotor{i}", f"joint{i}", "base" if i == 0 else f"link{rng.integers(0, joints)}",
            float(rng.normal(scale=5)), 1.0, (1e-3, 0.0, 0.0, 1e-3, 0.0, 1e-3),
            xyz=tuple(rng.normal(scale=0.2, size=3)), rpy=tuple(rng.uniform(-3, 3, 3)),
            axis=tuple(rng.normal(size=3)))
        for i in range(joints)]
    return load_with(random_urdf(rng, joints), rotors=tuple(rotors)), rng


def _jet(placement: np.ndarray, axis: np.ndarray, ratio: float, q: float, v: float, a: float):
    """A joint's transform, its first and second time derivative, and its derivative by the joint's position."""
    generator = np.zeros((4, 4))
    generator[:3, :3], generator[:3, 3] = skew(axis[3:]), axis[:3]
    square = generator @ generator
    angle = ratio * q
    if axis[3:].any():
        moved = np.eye(4) + np.sin(angle) * generator + (1 - np.cos(angle)) * square
    else:
        moved = np.eye(4) + angle * generator
    value = placement @ moved
    first = value @ generator * ratio
    return value, first * v, value @ square * (ratio * v) ** 2 + first * a, first


def _lagrange(model, bodies, q, v, a):
    """``(n,)`` torques by J. J. Uicker's form: ``sum_b tr(dT/dq_i J d2T/dt2^T) - tr(dT/dq_i J g4)``."""
    kinematics = with_rotors(model.pinocchio, model.layout.rotors)
    axes = [*model.axes, *(np.concatenate([np.zeros(3), rotor.unit_axis]) for rotor in model.layout.rotors)]
    lift = np.zeros((4, 4))
    lift[:3, 3] = kinematics.gravity.linear
    chain = []  # of each body: T, dT/dt, d2T/dt2 and dT/dq_i
    torque = np.zeros(model.joints)
    for body, pi in enumerate(bodies):
        gear = model.layout.gearing[body]
        joint = int(np.flatnonzero(gear)[0])
        jet = _jet(
            kinematics.jointPlacements[body + 1].homogeneous, axes[body], gear[joint], q[joint], v[joint], a[joint])
        parent = kinematics.parents[body + 1] - 1
        nothing = (np.eye(4), np.zeros((4, 4)), np.zeros((4, 4)), np.zeros((model.joints, 4, 4)))
        T, rate, second, slopes = chain[parent] if parent >= 0 else nothing
        by_joint = slopes @ jet[0]
        by_joint[joint] += T @ jet[3]
        chain.append(
            (T @ jet[0], rate @ jet[0] + T @ jet[1], second @ jet[0] + 2 * rate @ jet[1] + T @ jet[2], by_joint))
        pull = pseudo_inertia(pi) @ (chain[-1][2] - lift).T
        torque += np.einsum("iab,ba->i", by_joint, pull)
    return torque


@pytest.mark.parametrize("seed", range(3))
def test_torque_is_that_of_lagrange(seed):
    model, rng = _model(seed)
    samples = random_states(rng, model, 5)
    bodies = random_bodies(rng, 2 * model.joints)
    parameters = np.concatenate([bodies.ravel(), np.zeros(model.layout.size - bodies.size)])
    expected = [_lagrange(model, bodies, *state) for state in zip(samples.q, samples.v, samples.a, strict=True)]
    torque = ForceEquations(model).predict(parameters, samples)
    np.testing.assert_allclose(torque, expected, atol=1e-11 * np.abs(expected).max())


@pytest.mark.parametrize("seed", range(4))
def test_equations_and_compression_agree(seed):
    model, rng = _model(seed)
    layout, samples = model.layout, random_states(rng, model, 60)
    parameters = np.concatenate([random_bodies(rng, 8).ravel(), rng.normal(size=layout.size - layout.inertial_size)])
    torque = ForceEquations(model).predict(parameters, samples)
    chunks = list(dense_equations(ForceEquations(model), samples, chunk=25))
    for joint, columns in enumerate(ForceEquations(model).columns):
        predicted = np.concatenate([chunk[joint][0] @ parameters[columns] for chunk in chunks])
        np.testing.assert_allclose(predicted, torque[:, joint], atol=1e-10 * np.abs(torque).max())
    error = compress(model, [samples]).rms_error(parameters)
    np.testing.assert_allclose(error, np.sqrt(np.mean(torque**2, axis=0)), rtol=1e-9)


def test_a_thin_rotor_on_the_base_is_a_reflected_inertia():
    """Without gravity's lever and on a link at rest, only ``ratio^2 I`` about the axis is left."""
    rng = np.random.default_rng(0)
    rotor = RotorOptions("joint0", "base", 50.0, 0.4, 0.03, 0.05)
    model = load_model(random_urdf(rng, 3), RobotOptions(rotors={"rotor": rotor}))
    samples = random_states(rng, model, 20)
    torque = further_torque(model, model.further_prior, samples.q, samples.v, samples.a)
    reflected = 50.0**2 * 0.5 * 0.4 * 0.03**2
    np.testing.assert_allclose(torque[:, 0], reflected * samples.a[:, 0], rtol=1e-9)
    assert not torque[:, 1:].any()


def test_layout_puts_rotors_between_links_and_drives():
    model, _ = _model(0)
    layout = model.layout
    assert layout.names[40:50] == tuple(
        f"rotor0.{name}" for name in ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz"))
    assert layout.names[80] == "joint0.rotor_inertia"
    assert layout.size == 40 + 40 + len(layout.drive_terms) * 4
    assert layout.bodies(model.prior).shape == layout.further_bodies(model.prior).shape == (4, 10)
    assert layout.non_negative.min() == 80


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"joint": "joint9"}, "joint 'joint9' does not exist"), ({"link": "link9"}, "no link 'link9'"),
        ({"ratio": 0.0}, "is zero"), ({"mass": float("nan")}, "mass is nan"),
        ({"inertia": (1.0, 2.0)}, "inertia has 2 values")])
def test_impossible_rotors_are_refused(change, message):
    fields = {"joint": "joint0", "link": "base", "ratio": 1.0, "mass": 1.0, "inertia": (1, 0, 0, 1, 0, 1)}
    with pytest.raises(InertidError, match=message):
        rotors = {"r": RotorOptions(**{**fields, **change})}
        load_model(random_urdf(np.random.default_rng(0), 2), RobotOptions(rotors=rotors))


def test_a_rotor_has_a_name_of_its_own():
    rotors = {"link0": RotorOptions("joint0", "base", 1.0, 1.0, 0.1, 0.1)}
    with pytest.raises(ModelError, match="has this name"):
        load_model(random_urdf(np.random.default_rng(0), 2), RobotOptions(rotors=rotors))


def test_rank_of_the_leg_is_the_published_one(datasets):
    """Three links and three rotors of a quadruped's leg: 32 of 60 parameters are identifiable from joint
    torques ([Wensing2018]_ sec. VI)."""
    model = leg_model(read_leg(datasets), drive_terms=())
    rng = np.random.default_rng(0)
    samples = random_states(rng, model, 500)
    R, _ = compress(model, [samples]).whitened(np.ones(3))
    base = base_parameters(model.layout, R)
    assert model.layout.size == 60
    assert base.count == 32
    assert base.clear


def test_extended_model_is_pinocchios(datasets):
    """Pinocchio's own inverse dynamics of the six bodies, with the rotors' motion given, is the same."""
    model = leg_model(read_leg(datasets), drive_terms=())
    samples = random_states(np.random.default_rng(1), model, 20)
    extended, gear = with_rotors(model.pinocchio, model.layout.rotors), model.layout.gearing
    data = extended.createData()
    expected = [
        gear.T @ pin.rnea(extended, data, gear @ q, gear @ v, gear @ a)
        for q, v, a in zip(samples.q, samples.v, samples.a, strict=True)]
    torque = ForceEquations(model).predict(model.prior, samples)
    np.testing.assert_allclose(torque, expected, atol=1e-11 * np.abs(expected).max())
