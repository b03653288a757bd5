"""First estimates of an adaptive controller, and what it cannot begin with."""

from dataclasses import replace

import numpy as np
import pytest
from support.nodes.two_links import URDF, two_links

from inertid_ros.adaptive_control.controlled_arm import adaptive_controller, first_estimate
from inertid_ros.config.excitation import EffortControlOptions
from inertid_ros.core.errors import InertidError, ModelError
from inertid_ros.robot.model import load_model


def test_a_description_alone_has_no_drives():
    model = two_links()[0]
    estimate = first_estimate(model)
    assert estimate.drives is None and (estimate.bodies == model.consistent_body_prior).all()
    options = EffortControlOptions(adapted_links=("lower",), effort_fraction=0.5)
    controller = adaptive_controller(estimate, options)
    assert controller.options.adapted == (1,)
    np.testing.assert_allclose(controller.options.effort_limit, [30.0, 20.0])


def test_a_result_of_another_robot_is_refused(tmp_path):
    with pytest.raises(InertidError, match="no such result directory"):
        first_estimate(two_links()[0], str(tmp_path / "none"))


def test_links_to_adapt_exist():
    estimate = first_estimate(two_links()[0])
    with pytest.raises(ModelError, match="names 'hand', which is not a moving link; moving links: upper, lower"):
        adaptive_controller(estimate, EffortControlOptions(adapted_links=("hand",)))


def test_without_effort_limits_nothing_is_commanded():
    model = load_model(URDF.replace('effort="40"', 'effort="0"'))
    limits = replace(model.limits, effort=np.array([60.0, np.inf]))
    with pytest.raises(ModelError, match="joint 'elbow': has no effort limit"):
        adaptive_controller(first_estimate(replace(model, limits=limits)), EffortControlOptions())
