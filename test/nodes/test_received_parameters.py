"""What a controller takes: values that a real robot can have, and torque that is finite in all of its range."""

from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
from support.robots.random_robots import random_model

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from builtin_interfaces.msg import Time

from inertid_ros.config.robot import DRIVE_TERMS
from inertid_ros.msg import CoupledDrive, UserTerm
from inertid_ros.robot.body_changes import perturb
from inertid_ros.ros.parameter_messages import known_parameters
from inertid_ros.ros.received_parameters import ParameterSubscriber


def _subscriber(model, lines):
    """A subscriber whose node only has to hand it messages."""
    logger = SimpleNamespace(error=lines.append, info=lines.append)
    node = SimpleNamespace(get_logger=lambda: logger, create_subscription=lambda *arguments: None)
    return ParameterSubscriber(node, model)


def _message(model, rng):
    drives = {term: rng.uniform(0.0, 1.0, model.joints) for term in DRIVE_TERMS}
    message = known_parameters(model, perturb(model, rng), drives, Time())
    for joint in message.joints:
        joint.stribeck_speed, joint.transition_speed = 0.1, 0.01
    first, second = model.joint_names[:2]
    expressions = ["q", f'v*cos(q["{second}"])']
    message.terms = [UserTerm(name="spring", joint=first, expressions=expressions, values=[1.0, 2.0])]
    message.couplings = [CoupledDrive(name="wrist", joints=[first, second], ratios=[1.0, -1.0], viscous=0.1)]
    return message


def _formula(text):
    def change(message, rng):
        term = rng.choice(np.array(message.terms, dtype=object))
        term.expressions = [text, *term.expressions[1:]]

    return change


def _drive(term, value):
    def change(message, rng):
        setattr(message.joints[rng.integers(len(message.joints))], term, value)

    return change


def _coupling(**fields):
    def change(message, rng):
        for name, value in fields.items():
            setattr(message.couplings[0], name, value)

    return change


def _repeated_joint(message, rng):
    message.couplings[0].joints = [message.couplings[0].joints[0]] * 2


def _many_formulas(message, rng):
    joint = message.joints[0].name
    message.terms = [UserTerm(name=f"t{k}", joint=joint, expressions=["q"], values=[1.0]) for k in range(300)]


DAMAGES = {
    "division by speed": _formula("1/v"), "logarithm": _formula("log(q)"), "tower": _formula("9**9**9"),
    "pole": _formula("1/direction"), "negative viscous friction": _drive("viscous", -100.0),
    "negative rotor": _drive("rotor_inertia", -5.0), "huge friction": _drive("coulomb", 1e30),
    "no number": _drive("offset", float("nan")), "huge ratio": _coupling(ratios=[1e308, 1.0]),
    "unknown joint": _coupling(joints=["elbow\x1b[31m", "other"]), "fewer ratios": _coupling(ratios=[1.0]),
    "negative coupling": _coupling(viscous=-1.0), "repeated joint": _repeated_joint, "many formulas": _many_formulas,
    "verdict": lambda message, rng: setattr(message, "verdict", 77),
    "escape": lambda message, rng: setattr(message, "model_hash", "\x1b]0;title\x07"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_no_controller_can_use_is_refused(damage):
    for seed in range(5):
        rng, lines = np.random.default_rng(seed), []
        model = random_model(rng, int(rng.integers(2, 7)))
        controller, message = _subscriber(model, lines), _message(model, rng)
        controller._receive(message)
        assert controller.update() and controller.refused == 0, lines
        in_use = [inertia.toDynamicParameters() for inertia in controller.model.inertias]
        DAMAGES[damage](message, rng)
        controller._receive(message)
        assert controller.refused == 1 and not controller.update()
        assert lines[-1].isprintable() and "the last good parameters stay in use" in lines[-1]
        np.testing.assert_array_equal([i.toDynamicParameters() for i in controller.model.inertias], in_use)


def test_torque_of_what_is_taken_is_that_of_its_formulas():
    rng, lines = np.random.default_rng(3), []
    model = random_model(rng, 3)
    controller, message = _subscriber(model, lines), _message(model, rng)
    message.couplings[0].rotor_inertia = 0.3
    controller._receive(message)
    assert controller.update()
    q, v, a = rng.normal(size=(3, 3))
    drives = {term: np.array([getattr(joint, term) for joint in message.joints]) for term in DRIVE_TERMS}
    ratios = np.array([1.0, -1.0, 0.0])
    dry = (drives["coulomb"] + drives["stribeck"] * np.exp(-np.abs(v) / 0.1)) * np.tanh(v / 0.01)
    friction = drives["viscous"] * v + dry + 0.1 * (ratios @ v) * ratios
    np.testing.assert_allclose(controller.friction(v), friction)
    bodies = pin.rnea(controller.model, controller.model.createData(), q, v, a)
    rotors = drives["rotor_inertia"] * a + 0.3 * (ratios @ a) * ratios
    spring = np.array([q[0] + 2 * v[0] * np.cos(q[1]), 0.0, 0.0])
    expected = bodies + rotors + friction + drives["stiffness"] * q + spring
    np.testing.assert_allclose(controller.inverse_dynamics(q, v, a), expected)
