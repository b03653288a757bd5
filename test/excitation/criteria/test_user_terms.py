"""Motions are planned for robots with user terms as for those without: no criterion is about the terms."""

import numpy as np
import pytest
from support.robots.random_robots import random_model

from inertid_ros.excitation.criteria.criterion_scaling import prior_scaling
from inertid_ros.excitation.criteria.measurement_regressor import MeasurementRegressor
from inertid_ros.excitation.limits.motion_limits import motion_limits
from inertid_ros.robot.bodies.user_terms import UserTerm


@pytest.mark.parametrize("scaling", ["metric", "prior"])
def test_scalings_pass_over_user_terms(scaling):
    terms = (UserTerm("spring", "joint1", ("sin(q)", "cos(q)")), UserTerm("drag", "joint0", ("abs(v)*v",), True))
    model = random_model(np.random.default_rng(0), 3, branched=False, terms=terms)
    scales = []
    for robot in (model, model.with_terms(())):
        columns = MeasurementRegressor(robot, np.ones(3), np.zeros(0)).columns
        base = np.eye(len(columns))
        scales.append(prior_scaling(scaling, robot, motion_limits(robot), columns, base).scaled(base[None]))
    np.testing.assert_allclose(*scales, rtol=1e-12)
