"""Start poses at which a robot can stand, and limits that published URDFs leave out."""

from functools import cache

import attrs
import numpy as np
import pytest
from support.robots.random_robots import random_urdf

from inertid_ros.config.excitation import ExcitationOptions, LimitOptions
from inertid_ros.core.errors import ExcitationError, log_once
from inertid_ros.excitation.constraints.motion_constraints import motion_constraints, rest_pose
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.robot.model import load_model


@cache
def _robot(path):
    model = load_model(path)
    limits = motion_limits(model)
    return model, limits, motion_constraints(model, limits)


def _start(path, fixed=()):
    model, limits, constraints = _robot(path)
    wanted = 0.5 * (limits.lower + limits.upper)
    held = np.isin(limits.joint_names, fixed)
    return limits, constraints, rest_pose(model, limits, constraints, wanted, held), wanted


def test_a_pose_at_which_the_robot_can_stand_is_found_and_told(robots, caplog):
    log_once.cache_clear()
    limits, constraints, pose, wanted = _start(robots / "pr2_description/urdf/pr2.urdf")
    with pytest.raises(ExcitationError):
        for constraint in constraints:
            constraint.check_start(wanted)
    for constraint in constraints:
        constraint.check_start(pose)
    assert ((pose >= limits.lower) & (pose <= limits.upper)).all()
    assert any("start pose: " in record.getMessage() for record in caplog.records)


def test_a_pose_that_can_be_used_is_kept(robots):
    *_, pose, wanted = _start(robots / "xarm_description/urdf/xarm7.urdf")
    assert np.array_equal(pose, wanted)


def test_joints_that_were_named_stay_where_they_are_wanted(robots):
    fixed = ("r_upper_arm_roll_joint", "head_pan_joint")
    limits, _, pose, wanted = _start(robots / "pr2_description/urdf/pr2.urdf", fixed)
    held = np.isin(limits.joint_names, fixed)
    assert np.array_equal(pose[held], wanted[held]) and not np.allclose(pose, wanted)
    every = tuple(limits.joint_names)
    with pytest.raises(ExcitationError, match="needs .* to stand .* start pose failed"):
        _start(robots / "pr2_description/urdf/pr2.urdf", every)


def test_friction_beyond_the_effort_limit_names_all_joints_and_options(robots):
    with pytest.raises(ExcitationError, match=r"'joint_3.0': the friction of its <dynamics>, .*: {joint_3.0: 0.6955"):
        _start(robots / "allegro_hand_description/urdf/allegro_left_hand.urdf")


def _text(limit):
    text = random_urdf(np.random.default_rng(6), 3, branched=False)
    old = '<limit lower="-3" upper="3" velocity="2" effort="100"/>'
    assert text.count(old) == 3
    return text.replace(old, limit, 1)


def test_a_missing_velocity_limit_takes_the_stated_default_and_is_told(caplog):
    log_once.cache_clear()
    model = load_model(_text('<limit lower="-3" upper="3" effort="100"/>'))
    assert motion_limits(model).velocity.tolist() == pytest.approx([0.4, 1.6, 1.6])
    assert "without a velocity limit: joint0; " in caplog.text and "limits.default_velocity" in caplog.text
    chosen = attrs.evolve(LimitOptions(), velocity={"joint0": 1.0})
    assert motion_limits(model, chosen).velocity[0] == pytest.approx(0.8)


@pytest.mark.parametrize(
    "limit, message",
    [
        ('<limit velocity="2" effort="9"/>', r"'joint0': its <limit> has no range.*locked_joints: {joint0: 0}"),
        ('<limit lower="0" upper="0.04" velocity="2" effort="9"/>', r"position_margin.*locked_joints: {joint0: 0.02}"),
        ('<limit lower="0" upper="1" velocity="2"/>', "'joint0': effort limit is missing or not finite; set"),
    ],
)
def test_a_joint_that_cannot_be_planned_for_is_named_with_the_option(limit, message):
    with pytest.raises(ExcitationError, match=message):
        motion_limits(load_model(_text(limit)))
    assert motion_limits(load_model(_text('<limit lower="-3" upper="3" velocity="2" effort="100"/>'))).joint_names
    assert ExcitationOptions().collision.self_collision
