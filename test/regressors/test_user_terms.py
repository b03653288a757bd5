"""User terms: their columns, those that another joint's motion decides, and where joints are misnamed."""

import numpy as np
import pytest
from support.robots.free_base import free_model, random_flight
from support.robots.random_robots import random_model, random_states, random_urdf

from inertid_ros.config.robot import RobotOptions, TermOptions
from inertid_ros.core.errors import ConfigurationError, ModelError
from inertid_ros.identification.base_parameters.closed_form import base_parameters_of_robot
from inertid_ros.regressors.equations import ForceEquations, dense_equations
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.layout import UserTerm
from inertid_ros.robot.model import load_model

TERMS = (
    UserTerm("spring", "joint1", ("sin(q)", "cos(q)")), UserTerm("cable", "joint2", ('q["joint1"] - q', "v**2")),
    UserTerm("gear", "joint1", ("abs(load)*direction",), non_negative=True))


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_columns_times_parameters_are_the_torque(base):
    rng = np.random.default_rng(3)
    model = free_model(3, 4, terms=TERMS) if base == "free" else random_model(rng, 4, terms=TERMS)
    layout = model.layout
    assert layout.names[-5:] == (
        "spring.sin(q)", "spring.cos(q)", 'cable.q["joint1"] - q', "cable.v**2", "gear.abs(load)*direction")
    assert layout.non_negative[-1] == layout.size - 1
    assert set(range(layout.size - 5, layout.size - 1)) <= set(layout.of_any_size)
    samples = (random_flight if base == "free" else random_states)(rng, model, 30)
    parameters = rng.normal(size=layout.size)
    equations = ForceEquations(model)
    predicted = equations.predict(parameters, samples)
    for chunk in dense_equations(equations, samples):
        for channel, (rows, _) in enumerate(chunk):
            np.testing.assert_allclose(rows @ parameters[equations.columns[channel]], predicted[:, channel], atol=1e-9)
    without = ForceEquations(model.with_layout(terms=()))
    added = predicted - without.predict(parameters[: layout.term_start], samples)
    first = model.velocities - model.joints
    one, two = (model.joint_names.index(name) for name in ("joint1", "joint2"))
    q, v = samples.q[:, samples.q.shape[1] - 4 :], samples.v[:, first:]
    load = rigid_torque(model, model.body_prior, samples.q, samples.v, samples.a)[:, first + one]
    a, b, c, d, e = parameters[-5:]
    expected = np.zeros_like(added)
    expected[:, first + one] = a * np.sin(q[:, one]) + b * np.cos(q[:, one]) + e * np.abs(load) * np.sign(v[:, one])
    expected[:, first + two] = c * (q[:, one] - q[:, two]) + d * v[:, two] ** 2
    np.testing.assert_allclose(added, expected, atol=1e-9)


def test_base_parameters_know_user_terms():
    model = random_model(np.random.default_rng(3), 3, branched=False, terms=TERMS[:1])
    base = base_parameters_of_robot(model)
    assert base.count == base_parameters_of_robot(model.with_layout(terms=())).count + 2


def test_configured_terms():
    cubic = TermOptions("joint1", expressions=("v**3",))
    options = RobotOptions(terms={"a": TermOptions("joint0", "quadratic_viscous"), "b": cubic})
    first, second = (UserTerm.from_options(name, term) for name, term in options.terms.items())
    assert first == UserTerm("a", "joint0", ("abs(v)*v",), non_negative=True)
    assert second == UserTerm("b", "joint1", ("v**3",))
    for wrong, reason in (
            ({"shape": "counterbalance", "expressions": ("q",)}, "give either shape or"), ({}, "give either shape or"),
            ({"expressions": ("x*q",)}, "uses x"),
            ({"shape": "counterbalance", "values": (1.0,)}, "one for each of 2 formulas")):
        with pytest.raises(ConfigurationError, match=reason):
            TermOptions("joint0", **wrong)


def test_terms_of_joints_that_do_not_exist_are_refused():
    urdf = random_urdf(np.random.default_rng(0), 3)
    for term in (TermOptions("elbow", "spring"), TermOptions("joint0", expressions=('q["elbow"]',))):
        with pytest.raises(ModelError, match="term 'a': joint 'elbow' does not exist"):
            load_model(urdf, RobotOptions(terms={"a": term}))
