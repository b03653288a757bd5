"""What must hold before a plan moves a robot, and the way to its start."""

from dataclasses import replace

import numpy as np
import pytest
from support.robots.quick_plans import PANDA_START, panda, panda_limits, quick_plan

from inertid_ros.config.excitation import CollisionOptions, ExecutionOptions
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.constraints.clearance import ClearanceConstraint
from inertid_ros.excitation.constraints.effort import EffortConstraint, prior_effort
from inertid_ros.excitation.execution.plan_check import approach, check_at_rest, check_plan, check_start, with_approach
from inertid_ros.excitation.motion_limits import check_curve
from inertid_ros.excitation.motions import QuinticRamp
from inertid_ros.excitation.plan import plan_of


@pytest.fixture(scope="module")
def model(robots):
    return panda(robots)


@pytest.fixture(scope="module")
def limits(model):
    return panda_limits(model)


@pytest.fixture(scope="module")
def plan(model, limits):
    return quick_plan(limits, PANDA_START, 3, model_hash=model.hash)


def refused(words, *args, **kwargs):
    with pytest.raises(ExcitationError) as caught:
        check_plan(*args, **kwargs)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_good_plan_passes(plan, model, limits):
    check_plan(plan, model, limits)
    check_start(plan, PANDA_START + 0.01, 0.02)
    # About the start, where no links meet; which motions a seed gives beyond it differs from processor to processor.
    near = replace(limits, lower=PANDA_START - 0.2, upper=PANDA_START + 0.2)
    clearance = ClearanceConstraint(model, limits, CollisionOptions(), floor=-2.0)
    check_plan(quick_plan(near, PANDA_START, 3, model_hash=model.hash), model, limits, constraints=(clearance,))


def test_other_joints_and_kinematics_are_refused(plan, model, limits):
    names = ("other", *plan.joint_names[1:])
    renamed = replace(plan, joint_names=names, limits=replace(plan.limits, joint_names=names))
    refused("missing ['panda_joint1'], unknown ['other']", renamed, model, limits)
    refused("made for kinematics 123", replace(plan, model_hash="123"), model, limits)


def test_tighter_limits_are_kept_or_the_plan_is_refused(plan, model, limits):
    refused("velocity", plan, model, limits.scaled(velocity=0.5))
    refused("acceleration", plan, model, limits.scaled(acceleration=0.1))
    narrow = replace(limits, upper=np.minimum(limits.upper, PANDA_START + 0.05))
    refused("position", plan, model, narrow)


def test_degrees_are_recognised(plan, model, limits):
    wide = replace(plan.limits, lower=-500 * np.ones(7), upper=500 * np.ones(7))
    degrees = replace(plan, position=np.degrees(plan.position), limits=wide)
    refused("looks as if it were in degrees", degrees, model, limits)


def test_effort_beyond_its_limit_names_the_joint(plan, model, limits):
    weak = replace(limits, effort=np.array([80.0, 15.0, 80, 80, 10, 10, 10]))
    refused("joint 'panda_joint2': the motion needs", plan, model, weak)
    tau = prior_effort(model, *plan.sample(np.linspace(0, plan.duration, 3000)))
    peak = np.abs(tau).max(axis=0)
    EffortConstraint(model, 1.02 * peak).check(plan)
    with pytest.raises(ExcitationError, match="panda_joint4"):
        EffortConstraint(model, peak * np.where(np.arange(7) == 3, 0.98, 1.02)).check(plan)


def test_effort_of_the_prior_holds_friction(model):
    q = np.random.default_rng(0).uniform(-1, 1, (5, 7))
    zero = np.zeros_like(q)
    terms = {**model.drive_prior, "coulomb": np.full(7, 2.0), "viscous": np.full(7, 3.0)}
    rough = replace(model, drive_prior=terms)
    free = replace(model, drive_prior={term: np.zeros(7) for term in terms})
    v = np.full_like(q, 0.5)
    without = prior_effort(free, q, v, zero)
    assert np.abs(prior_effort(rough, q, v, zero)) == pytest.approx(np.abs(without + 1.5) + 2.0)


def test_start_must_be_near(plan):
    check_start(plan, PANDA_START + 0.04, 0.05)
    far = PANDA_START.copy()
    far[4] += 0.06
    with pytest.raises(ExcitationError, match=r"joint 'panda_joint5': is at 0\.06, the plan begins at"):
        check_start(plan, far, 0.05)
    for wrong in (np.full(7, np.nan), np.zeros(6)):
        with pytest.raises(ExcitationError, match="7 finite numbers"):
            check_start(plan, wrong, 0.05)


def test_a_moving_robot_is_refused(plan):
    check_at_rest(plan.joint_names, np.full(7, 0.005))
    with pytest.raises(ExcitationError, match="joint 'panda_joint3': moves at 0.1"):
        check_at_rest(plan.joint_names, np.array([0, 0, -0.1, 0, 0, 0, 0]))


def test_approach_is_slow_and_ends_at_the_start(plan, model):
    options = ExecutionOptions(approach_speed=0.2, settle_s=0.7)
    here = PANDA_START + np.array([0.5, -0.3, 0.2, 0.4, -0.6, 0.2, 0.1])
    way = approach(plan, model, here, options)
    assert way.position[0] == pytest.approx(here)
    assert way.position[-1] == pytest.approx(plan.start, abs=1e-12)
    slow = plan.limits.scaled(0.2, 0.04)
    check_curve(way.curve, replace(slow, lower=np.minimum(slow.lower, here), upper=np.maximum(slow.upper, here)))
    resting = way.sample(np.linspace(way.duration - 0.69, way.duration, 20))[1]
    assert np.abs(resting).max() < 1e-9
    whole, duration = with_approach(plan, model, here, options)
    assert duration == way.duration
    assert whole.duration == pytest.approx(way.duration + plan.duration)


def test_approach_comes_back_from_outside_the_margin_but_not_from_outside_the_robot(plan, model, limits):
    here = PANDA_START.copy()
    here[3] = model.limits.upper[3] - 0.01
    options = ExecutionOptions(max_start_error=5.0)
    whole, _ = with_approach(plan, model, here, options)
    assert whole.limits.upper[3] == here[3]
    check_curve(whole.curve, whole.limits)
    here[3] = model.limits.upper[3] + 0.01
    with pytest.raises(ExcitationError, match="joint 'panda_joint4': is at .* outside its limits"):
        approach(plan, model, here, options)
    with pytest.raises(ExcitationError, match="more than 0.1 away"):
        approach(plan, model, PANDA_START + 0.2, ExecutionOptions(max_start_error=0.1))


def test_approach_checks_effort(plan, model):
    weak = replace(plan, limits=replace(plan.limits, effort=np.full(7, 1.0)))
    with pytest.raises(ExcitationError, match="effort limit 1"):
        approach(weak, model, PANDA_START + 0.1)


def test_a_pause_is_a_ramp_to_the_same_place(limits):
    pause = plan_of(QuinticRamp(PANDA_START, PANDA_START, 1.0), limits)
    assert np.abs(pause.velocity).max() == 0
    check_curve(pause.curve, limits)
