"""Limits: where they come from, what is refused, and that they hold between samples."""

import numpy as np
import pytest
from support.robots.quick_plans import panda, simple_limits

from inertid_ros.config.excitation import LimitOptions
from inertid_ros.core.errors import ExcitationError, InertidError
from inertid_ros.excitation.motion_limits import MotionLimits, check_curve, motion_limits, usage
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.robot.model import load_model


def arm(limit: str, kind: str = "revolute") -> str:
    inertial = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    return (
        f'<robot name="arm"><link name="base"/><link name="arm">{inertial}</link><joint name="elbow" type="{kind}">'
        f'<parent link="base"/><child link="arm"/>{limit}</joint></robot>'
    )


def test_limits_follow_from_the_urdf(robots):
    model = panda(robots)
    limits = motion_limits(model, LimitOptions(position_margin=0.1, velocity_fraction=0.5, effort_fraction=0.25))
    assert limits.joint_names == model.joint_names
    assert limits.lower == pytest.approx(model.limits.lower + 0.1)
    assert limits.upper == pytest.approx(model.limits.upper - 0.1)
    assert limits.velocity == pytest.approx(0.5 * model.limits.velocity)
    assert limits.effort == pytest.approx(0.25 * model.limits.effort)
    assert (limits.acceleration == 5.0).all()


def test_options_name_joints(robots):
    options = LimitOptions(
        velocity_fraction=0.5,
        acceleration={"panda_joint2": 3.5},
        velocity={"panda_joint1": 1},
        effort={"panda_joint7": 10},
        position={"panda_joint1": (-0.5, 0.25), "panda_joint4": (-9, -1)},
    )
    limits = motion_limits(panda(robots), options)
    assert limits.acceleration[1] == 3.5
    assert limits.velocity[0] == 0.5
    assert limits.effort[6] == 8.0
    assert (limits.lower[0], limits.upper[0]) == (-0.5, 0.25)
    # A box does not widen the limits of the URDF.
    assert limits.lower[3] == pytest.approx(-3.0718 + 0.05)
    assert limits.upper[3] == -1.0


def test_continuous_joints_have_a_range():
    model = load_model(arm('<limit velocity="2" effort="10"/>', "continuous"))
    limits = motion_limits(model, LimitOptions(continuous_range=2.0))
    assert (limits.lower[0], limits.upper[0]) == (-2.0, 2.0)
    boxed = motion_limits(model, LimitOptions(position={"elbow": (-20, 20)}))
    assert (boxed.lower[0], boxed.upper[0]) == (-20.0, 20.0)


GOOD = '<limit lower="-1" upper="1" velocity="5" effort="5"/>'


@pytest.mark.parametrize(
    ("limit", "options", "words"),
    [
        ('<limit lower="-1" upper="1" velocity="5" effort="0"/>', {}, "joint 'elbow': effort limit is missing"),
        ('<limit lower="0" upper="0" velocity="5" effort="5"/>', {}, "its <limit> has no range, 0 to 0"),
        (GOOD, {"position_margin": 1.0}, "within twice limits.position_margin (1), -1 to 1"),
        (GOOD, {"acceleration": {"elbow": -1}}, "acceleration.elbow is -1"),
        (GOOD, {"acceleration": {"wrist": 1}}, "joint 'wrist'"),
        (GOOD, {"effort": {"elbow": "much"}}, "effort.elbow is 'much', expected a number"),
        (GOOD, {"velocity": {"elbow": np.nan}}, "velocity.elbow is nan"),
        (GOOD, {"position": {"elbow": (0.5,)}}, "position.elbow has 1 values; give 2"),
        (GOOD, {"position": {"elbow": (0.5, 0.1)}}, "has no width"),
    ],
)
def test_missing_and_impossible_limits_are_refused(limit, options, words):
    with pytest.raises(InertidError) as caught:
        motion_limits(load_model(arm(limit)), LimitOptions(**options))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_limits_must_be_finite_and_ordered():
    good = simple_limits(2)
    for name, value in (("lower", [np.nan, 0]), ("upper", [np.inf, 1]), ("velocity", [1, 0]), ("effort", [1])):
        arrays = {key: getattr(good, key) for key in ("lower", "upper", "velocity", "acceleration", "effort")}
        arrays[name] = np.array(value)
        with pytest.raises(ExcitationError):
            MotionLimits(good.joint_names, **arrays)


def hump(time: float = 0.4, rise: float = 0.1) -> PiecewiseQuintic:
    """Two joints; the second goes there and back. On its three knots velocity and acceleration are zero."""
    position = np.array([[0.0, 0.0], [0.0, rise], [0.0, 0.0]])
    return PiecewiseQuintic(np.array([0.0, time, 2 * time]), position, *np.zeros((2, 3, 2)))


def test_violations_between_knots_are_found():
    peak_velocity, peak_acceleration = 1.875 * 0.1 / 0.4, 10 / np.sqrt(3) * 0.1 / 0.4**2
    fine = simple_limits(2)
    check_curve(hump(), fine)
    used = usage(hump(), fine)
    assert used[1] == pytest.approx([0, peak_velocity / 1.5], rel=1e-6)
    assert used[2] == pytest.approx([0, peak_acceleration / 8.0], rel=1e-6)
    for name, peak in (("velocity", peak_velocity), ("acceleration", peak_acceleration)):
        for factor, allowed in ((1.001, True), (0.999, False)):
            arrays = {key: getattr(fine, key) for key in ("lower", "upper", "velocity", "acceleration", "effort")}
            arrays[name] = np.full(2, peak * factor)
            limits = MotionLimits(fine.joint_names, **arrays)
            if allowed:
                check_curve(hump(), limits)
                continue
            with pytest.raises(ExcitationError, match=f"joint 'joint1': {name} .* at 0.* s is beyond its limit"):
                check_curve(hump(), limits)


def test_positions_beyond_a_limit_between_knots_are_found():
    # Both knots at the same place with opposite velocities: the curve bulges between them.
    curve = PiecewiseQuintic(
        np.array([0.0, 1.0]), np.full((2, 1), 2.4), np.array([[1.0], [-1.0]]), np.zeros((2, 1))
    )
    with pytest.raises(ExcitationError, match=r"'joint0': position 2\.\d+ rad at 0\.500 s is beyond its limit 2.5"):
        check_curve(curve, simple_limits(1, 1e3))
