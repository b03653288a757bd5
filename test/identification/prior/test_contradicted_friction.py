"""Friction of the URDF's <dynamics> that the measured efforts exclude."""

import logging
from dataclasses import replace

import numpy as np
import pytest
from support.robots.random_robots import random_states, random_urdf

from inertid_ros.core.log_once import log_once
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.prior.coordinates import prior_coordinates
from inertid_ros.regressors.force_equations import predict_torque
from inertid_ros.robot.model import load_model


@pytest.mark.parametrize(("friction", "used"), [(1e4, False), (0.1, True)])
def test_impossible_friction_is_told_and_not_used(caplog, friction, used):
    log_once.cache_clear()
    text = random_urdf(np.random.default_rng(1), 2, branched=False)
    model = load_model(text.replace("</joint>", f'<dynamics damping="{friction}" friction="{friction}"/></joint>'))
    without = load_model(text)
    samples = random_states(np.random.default_rng(2), without, 200)
    samples = replace(samples, tau=predict_torque(without, without.prior, samples))
    with caplog.at_level(logging.WARNING, "inertid_ros"):
        coordinates = prior_coordinates(model, compress(model, [samples]))
    told = [record.message for record in caplog.records if "beyond the measured efforts" in record.message]
    drives = coordinates.physical(coordinates.prior)[model.layout.drive("viscous")]
    np.testing.assert_allclose(drives, friction if used else 0.0)
    assert len(told) == (not used)
