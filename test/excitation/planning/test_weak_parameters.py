"""Rounded right angles, and what a motion does not excite and why."""

from dataclasses import replace

import numpy as np
import pytest
from lxml import etree
from support.robots.quick_plans import quick_plan

from inertid_ros.config.excitation import LimitOptions
from inertid_ros.excitation.constraints.constraint import ConstraintUsage, MotionSamples
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.planning.criterion import make_criterion
from inertid_ros.excitation.planning.inspection import WELL_CONDITIONED, motion_findings, weak_parameters
from inertid_ros.identification.base_parameters.closed_form import base_parameters_of_robot
from inertid_ros.robot.model import load_model

ROUNDED = (
    "xarm_description/urdf/xarm7.urdf",
    "so_arm_description/urdf/so100.urdf",
    "icub_description/robots/icub.urdf",
)


def _exact(text):
    root = etree.fromstring(text.encode())
    for origin in root.iterfind("joint/origin"):
        angles = np.array([float(angle) for angle in (origin.get("rpy") or "0 0 0").split()])
        right = np.round(angles / (np.pi / 2)) * (np.pi / 2)
        chosen = np.where(np.abs(angles - right) < 2e-5, right, angles)
        origin.set("rpy", " ".join(repr(float(angle)) for angle in chosen))
    return etree.tostring(root, encoding="unicode")


def _information(model, limits, count=300):
    criterion, rng = make_criterion(model, limits), np.random.default_rng(0)
    q = rng.uniform(limits.lower, limits.upper, (count, model.joints))
    v, a = (rng.uniform(-1, 1, q.shape) * bound for bound in (limits.velocity, limits.acceleration))
    return criterion, criterion.evaluate(MotionSamples(criterion.measured.chain, q, v, a))


@pytest.mark.parametrize("robot", ROUNDED)
def test_rounded_and_exact_right_angles_have_the_same_base_parameters_and_condition(robots, robot):
    path = robots / robot
    conditions = []
    for source in (path, _exact(path.read_text())):
        model = load_model(source)
        criterion, information = _information(model, motion_limits(model))
        structure = np.intersect1d(base_parameters_of_robot(model).independent, criterion.measured.columns)
        assert criterion.count == len(structure)
        conditions.append(information.condition_number)
    assert conditions[0] == pytest.approx(conditions[1], rel=1e-6) and conditions[0] < 1e4


@pytest.fixture
def arm(robots):
    return load_model(robots / "xarm_description/urdf/xarm7.urdf")


def test_nothing_is_told_of_a_good_motion(arm):
    limits = motion_limits(arm)
    criterion, information = _information(arm, limits)
    assert information.condition_number < WELL_CONDITIONED
    assert weak_parameters(criterion, information, limits) == ()


def test_a_motion_that_does_not_use_its_limits_is_the_reason(arm):
    limits = motion_limits(arm)
    middle = 0.5 * (limits.lower + limits.upper)
    small = replace(limits, lower=middle - 0.01, upper=middle + 0.01)
    plan = quick_plan(small, middle, 1)
    (found,) = motion_findings(plan, arm, limits)
    assert found.cause == "not_excited" and "than this motion" in found.evidence and "duration_s" in found.remedy
    assert found.evidence.startswith("condition number ") and "best, mainly " in found.evidence
    criterion, _ = _information(arm, limits)
    motion = plan.sample(np.linspace(0.0, plan.duration, 200))
    information = criterion.evaluate(MotionSamples(criterion.measured.chain, *motion))
    told = weak_parameters(criterion, information, limits, [ConstraintUsage(1.0, "effort of joint 'joint2'")])
    assert "than this motion, which is limited by the effort of joint 'joint2'" in told[0].evidence
    assert told[0].remedy == found.remedy
    close = ConstraintUsage(1.0, "distance of 'hand' from 'foot'", "excitation.collision.clearance_m")
    told = weak_parameters(criterion, information, limits, [close])
    assert "room" in told[0].remedy and close.option in told[0].remedy


def test_a_joint_whose_range_is_narrow_is_named_as_the_reason(arm):
    middle = 0.5 * (arm.limits.lower + arm.limits.upper)
    narrow = {"joint4": (middle[3] - 0.005, middle[3] + 0.005)}
    limits = motion_limits(arm, LimitOptions(position=narrow))
    criterion, information = _information(arm, limits)
    (found,) = weak_parameters(criterion, information, limits)
    assert found.subjects == ("joint4",) and "the position limits of joint 'joint4' hide them" in found.evidence
    assert "limits.position" in found.remedy


def test_parameters_that_no_position_within_the_limits_shows_are_counted(arm):
    limits = motion_limits(arm)
    lower, upper = limits.lower.copy(), limits.upper.copy()
    lower[3], upper[3] = 0.5 - 1e-9, 0.5 + 1e-9
    stuck = replace(limits, lower=lower, upper=upper)
    criterion, information = _information(arm, stuck)
    found = weak_parameters(criterion, information, stuck)
    assert "base parameters cannot be excited within the position limits" in found[0].evidence
    assert found[0].subjects == ("joint4",)
