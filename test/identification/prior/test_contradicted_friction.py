"""Friction of the URDF's <dynamics> that the measured efforts exclude."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots.random_robots import random_states, random_urdf

from inertid_ros.identification.assessment.gate import plausibility
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.prior.coordinates import prior_coordinates
from inertid_ros.regressors.force_equations import predict_torque
from inertid_ros.robot.model import load_model


@pytest.mark.parametrize(("friction", "used"), [(1e4, False), (0.1, True)])
def test_impossible_friction_is_told_and_not_used(friction, used):
    text = random_urdf(np.random.default_rng(1), 2, branched=False)
    model = load_model(text.replace("</joint>", f'<dynamics damping="{friction}" friction="{friction}"/></joint>'))
    without = load_model(text)
    samples = random_states(np.random.default_rng(2), without, 200)
    samples = replace(samples, tau=predict_torque(without, without.prior, samples))
    coordinates = prior_coordinates(model, compress(model, [samples]))
    drives = coordinates.physical(coordinates.prior)[model.layout.drive("viscous")]
    np.testing.assert_allclose(drives, friction if used else 0.0)
    told = [str(each) for each in plausibility(identify(model, [samples])) if each.cause == "friction_excluded"]
    assert len(told) == (not used)
    assert all(f"{model.joint_names[0]}.viscous 10000" in line and "not used" in line for line in told)
