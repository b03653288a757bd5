"""Friction is one formula: of the regressor, of validation and of controllers."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from support.recordings.synthetic import random_motion
from support.robots.random_robots import random_model, random_states, random_urdf

from inertid_ros.config.robot import CouplingOptions, RobotOptions
from inertid_ros.core.errors import ConfigurationError, ModelError
from inertid_ros.core.samples import Samples
from inertid_ros.regressors.drives import dry_friction, friction_direction, friction_torque
from inertid_ros.regressors.equations import ForceEquations, dense_equations
from inertid_ros.robot.layout import Coupling
from inertid_ros.robot.model import load_model

TERMS = ("viscous", "coulomb", "stribeck")


def test_the_direction_turns_within_the_transition_speed():
    speed = np.array([[0.0, 0.0], [0.1, 0.1], [-5.0, -5.0]])
    direction = friction_direction(speed, np.array([0.0, 0.1]))
    assert direction.tolist() == [[0.0, 0.0], [1.0, np.tanh(1.0)], [-1.0, -1.0]]


def test_stribeck_friction_fades_with_speed():
    speed = np.array([0.0, 0.2, -0.2, 100.0])
    dry = dry_friction(speed, np.array(1.0), np.array(0.5), np.array(0.2))
    assert dry == pytest.approx([1.5, 1 + 0.5 / np.e, 1 + 0.5 / np.e, 1.0])


def test_the_regressor_predicts_what_controllers_compute():
    rng = np.random.default_rng(0)
    coupling = Coupling("wrist", ("joint0", "joint2"), (1.0, -0.5))
    model = random_model(rng, 3, drive_terms=TERMS, couplings=(coupling,))
    model = model.with_layout(stribeck_speeds=(0.1, 0.5, 2.0), without_stribeck=model.joint_names[1:2])
    model = model.with_layout(transition_speeds=(0.3, 0.0, 0.4))
    terms = {term: rng.uniform(1.0, 2.0, 3) for term in TERMS}
    wrist = {"rotor_inertia": 0.0, "viscous": 0.7, "coulomb": 0.9}
    parameters = np.concatenate([np.zeros(30), *terms.values(), list(wrist.values())])
    samples = random_states(rng, model, 50)
    terms["stribeck"] = terms["stribeck"] * [1.0, 0.0, 1.0]
    layout = model.layout
    expected = friction_torque(samples.v, terms, layout.stribeck_speed, layout.transition_speed[:3])
    speed = samples.v @ layout.coupling_ratios[0]
    coupled = 0.7 * speed + 0.9 * np.tanh(speed / np.hypot(0.3, 0.5 * 0.4))
    expected += np.outer(coupled, layout.coupling_ratios[0])
    equations = ForceEquations(model)
    assert equations.predict(parameters, samples) == pytest.approx(expected, abs=1e-12)
    assert equations.predict(parameters, replace(samples, v=-samples.v)) == pytest.approx(-expected, abs=1e-12)


PARTS = ("sin({0})*{1}", "{0}*{1}", "{0}**2/(3 + cos({1}))", "exp({0}/5) - {1}**3/9", "sqrt(2 + {0}**2 + {1}**2)")


@pytest.mark.parametrize("seed", range(5))
def test_a_drive_at_a_formula_of_the_joints_does_the_work_of_its_motion(seed):
    """Torque of its joints by the chain rule and of the tree by Pinocchio; speed and acceleration by differences."""
    rng = np.random.default_rng(seed)
    urdf = random_urdf(rng, 4)
    names = list(load_model(urdf).joint_names)
    chosen = [rng.choice(names, 2, replace=False) for _ in range(2)]
    parts = [rng.choice(PARTS).format(*(f'q["{name}"]' for name in pair)) for pair in chosen]
    position = f"{rng.uniform(1, 5)}*({parts[0]}) - {parts[1]}"
    model = load_model(urdf, RobotOptions(couplings={"motor": CouplingOptions(position=position)}, drive_terms=()))
    layout, moved = model.layout, sorted({str(name) for pair in chosen for name in pair})
    assert layout.names[-3:] == ("motor.rotor_inertia", "motor.viscous", "motor.coulomb")
    assert set(layout.non_negative) == {layout.size - 3, layout.size - 2, layout.size - 1}
    motion, time = random_motion(rng, 4), np.linspace(0.0, 5.0, 40)

    def turned(q):
        signals = {name: np.asarray(column) for name, column in zip(names, np.transpose(q), strict=True)}
        functions = {name: getattr(np, name) for name in ("sin", "cos", "exp", "sqrt")}
        return eval(position, {}, {**functions, "q": signals})  # noqa: S307

    step = 1e-4
    before, now, after = (turned(motion.sample(time + shift)[0]) for shift in (-step, 0.0, step))
    speed, acceleration = (after - before) / (2 * step), (after - 2 * now + before) / step**2
    q, v, a = motion.sample(time)
    ratios = np.stack([(turned(q + side) - turned(q - side)) / (2 * step) for side in step * np.eye(4)], axis=1)
    inertia, viscous, coulomb = drive = rng.uniform(0.5, 2.0, 3)
    data = model.pinocchio.createData()
    tree = np.array([pin.rnea(model.pinocchio, data, *state) for state in zip(q, v, a, strict=True)])
    expected = tree + ratios * (inertia * acceleration + viscous * speed + coulomb * np.sign(speed))[:, None]
    every = np.ones(q.shape, dtype=bool)
    samples = Samples(time, q, v, a, np.zeros_like(q), every, every[:, 0], "motion")
    equations, parameters = ForceEquations(model), np.concatenate([model.body_prior.ravel(), drive])
    predicted = equations.predict(parameters, samples)
    np.testing.assert_allclose(predicted, expected, atol=1e-5 * np.abs(expected).max())
    (chunk,) = dense_equations(equations, samples)
    for channel, (rows, _) in enumerate(chunk):
        assert (layout.size - 1 in equations.columns[channel]) == (names[channel] in moved)
        np.testing.assert_allclose(rows @ parameters[equations.columns[channel]], predicted[:, channel], atol=1e-9)


def test_formulas_of_a_coupling_that_cannot_be_used_are_refused():
    urdf = random_urdf(np.random.default_rng(0), 3)
    for position, message in (
        ('abs(q["joint0"])', "no smooth derivative"), ('q["elbow"] + q["joint0"]', "joint 'elbow' does not exist"),
        ('0*q["joint0"]', "does not change with any joint"),
        (" + ".join(f'sin({k}*q["joint0"])*cos({k}*q["joint1"])' for k in range(20)), "longer than 4000 characters"),
    ):  # fmt: skip
        with pytest.raises(ModelError, match=message) as refused:
            load_model(urdf, RobotOptions(couplings={"motor": CouplingOptions(position=position)}))
        assert len(str(refused.value)) < 250
    for options, message in (
        ({"position": "sin(q)"}, "name the joint of every q"), ({"position": 'v["joint0"]'}, "uses v"),
        ({"position": 'q["joint0"]', "joints": ("joint0", "joint1")}, "remove joints and ratios"), ({}, "two or more"),
    ):  # fmt: skip
        with pytest.raises(ConfigurationError, match=message):
            CouplingOptions(**options)
