"""User terms on their way to a controller: the message, the subscriber, and the torque that was validated."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from support.robots.random_robots import random_model, random_states

pytest.importorskip("rclpy", reason="ROS 2 is not installed")

from builtin_interfaces.msg import Time

from inertid_ros.identification.assessment.gate import GateDecision
from inertid_ros.identification.identify import identify
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.layout import UserTerm
from inertid_ros.ros.parameter_messages import to_inertial_parameters
from inertid_ros.ros.received_parameters import ParameterSubscriber

TERMS = (
    UserTerm("spring", "joint1", ("sin(q)", 'cos(q - q["joint0"])')),
    UserTerm("drag", "joint0", ("abs(v)*v",), non_negative=True),
    UserTerm("gear", "joint1", ("abs(load)*direction",), non_negative=True, values=(0.1,)),
)


def message_and_estimate():
    rng = np.random.default_rng(2)
    model = random_model(rng, 2, branched=False, terms=TERMS)
    samples = random_states(rng, model, 600)
    truth = np.concatenate([perturb(model, rng).ravel(), np.full(model.layout.term_start - 20, 0.2), (8, -3, 0.4, 0.1)])
    tau = ForceEquations(model).predict(truth, samples) + 0.01 * rng.normal(size=samples.tau.shape)
    estimate = identify(model, [replace(samples, tau=tau)])
    return to_inertial_parameters(estimate, None, GateDecision.from_findings([]), 1, Time()), estimate, samples


def subscriber(model):
    """A subscriber whose node only has to hand it messages."""
    logger = SimpleNamespace(error=lambda text: None, info=lambda text: None)
    node = SimpleNamespace(get_logger=lambda: logger, create_subscription=lambda *arguments: None)
    return ParameterSubscriber(node, model)


def test_the_controller_computes_what_was_validated():
    message, estimate, samples = message_and_estimate()
    assert [term.name for term in message.terms] == ["spring", "drag", "gear"]
    assert message.terms[2].standard_deviation[0] == 0.0
    controller = subscriber(estimate.model.with_layout(terms=()))
    controller._receive(message)
    assert controller.update()
    equations = ForceEquations(replace(estimate.model, fitted_bodies=estimate.bodies))
    expected = equations.predict(estimate.parameters, samples)
    for row in range(0, 600, 50):
        torque = controller.inverse_dynamics(samples.q[row], samples.v[row], samples.a[row])
        torque = torque + controller.drive("offset")
        np.testing.assert_allclose(torque, expected[row], atol=1e-6)


@pytest.mark.parametrize("damage", ["no formula", "code", "another joint", "fewer values", "not finite"])
def test_terms_that_cannot_be_computed_are_refused(damage):
    message, estimate, _ = message_and_estimate()
    term = message.terms[0]
    if damage == "no formula":
        term.expressions = ["sin(", "q"]
    elif damage == "code":
        term.expressions = ["__import__('os').getcwd()", "q"]
    elif damage == "another joint":
        term.joint = "elbow"
    elif damage == "fewer values":
        term.values = [1.0]
    else:
        term.values = [float("nan"), 1.0]
    controller = subscriber(estimate.model.with_layout(terms=()))
    controller._receive(message)
    assert controller.refused == 1 and not controller.update()
