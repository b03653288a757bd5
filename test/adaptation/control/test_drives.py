"""Torque of calibrated drives: that of the equations which identified them."""

import numpy as np
import pytest
from support.robots.random_robots import random_states, random_urdf

from inertid_ros.adaptive_control.controller import CalibratedDrives
from inertid_ros.regressors.equations import equations_of
from inertid_ros.robot.layout import Coupling, UserTerm
from inertid_ros.robot.model import ModelOptions, load_model


@pytest.mark.parametrize("seed", range(3))
def test_it_is_that_of_the_equations(seed):
    rng = np.random.default_rng(seed)
    plain = load_model(random_urdf(rng, 3))
    joints = plain.joint_names
    options = ModelOptions(
        couplings=(Coupling("wrist", joints[1:], (1.0, -0.5)),),
        terms=(UserTerm("spring", joints[0], ("sin(q)", "direction")),),
        transition_speeds=dict.fromkeys(joints, 0.1),
    )
    model = load_model(plain.urdf, options)
    x = rng.uniform(0.1, 1.0, model.layout.size)
    x[: model.layout.inertial_size] = model.prior[: model.layout.inertial_size]
    samples = random_states(rng, model, 20)
    drives = CalibratedDrives(model, x)
    found = [drives.effort(q, v, a) for q, v, a in zip(samples.q, samples.v, samples.a, strict=True)]
    without = np.where(np.arange(len(x)) < model.layout.inertial_size, x, 0.0)
    equations = equations_of(model)
    expected = equations.predict(x, samples) - equations.predict(without, samples)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
