"""An arm under adaptive control in MuJoCo, under a given time: what it does, and what stops it."""

from dataclasses import replace

import attrs
import numpy as np
import pytest
from support.torque_arm import OPTIONS, START, TorqueArm, holding, swaying

from inertid_ros.adaptive_control.controlled_arm import Stage
from inertid_ros.core.errors import ExcitationError
from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.excitation.quintic import PiecewiseQuintic


def error_after(arm: TorqueArm, seconds: float) -> float:
    """Largest error of the next seconds [rad]."""
    arm.arm.largest_error = 0.0
    arm.run(seconds)
    return arm.arm.largest_error


def test_it_begins_with_the_measured_torque_and_pose():
    arm = holding()
    assert np.abs(arm.efforts[0] - arm.measured).max() < 1.0  # noise and feedback of it
    steps = np.abs(np.diff(arm.efforts, axis=0)).max()
    assert steps < 1.0, steps
    assert arm.arm.stage is Stage.HOLDING and not arm.arm.fault
    assert np.abs(arm.robot.true_state().position - START).max() < 0.03
    arm.check_limits()


def test_a_payload_that_is_gripped_in_motion_is_adapted_to():
    arm = holding()
    arm.arm.follow(arm.sway(rounds=6), arm.time)
    arm.run(2.0)
    before = error_after(arm, 2.0)
    arm.grip(2.0)
    gripped = error_after(arm, 1.0)
    arm.run(3.0)
    after = error_after(arm, 2.0)
    assert gripped > 2 * before and after < 2 * before and not arm.arm.fault
    assert is_consistent(arm.arm.controller.bodies).all()
    arm.run(2.5)
    assert arm.arm.stage is Stage.HOLDING and arm.rests()
    arm.check_limits(np.inf)  # the grip itself is a jerk


def test_deactivated_it_comes_to_rest_on_its_path_and_holds():
    arm = swaying()
    arm.arm.stop(arm.time)
    bodies = arm.run(0.01).arm.controller.bodies.copy()
    assert arm.arm.stage is Stage.STOPPING
    arm.run(2.0)
    assert arm.arm.stage is Stage.HOLDING and arm.rests() and not arm.arm.fault
    assert (arm.arm.controller.bodies == bodies).all()
    with pytest.raises(ExcitationError, match="adaptation is not active"):
        arm.arm.follow(arm.sway(), arm.time)
    arm.check_limits()
    assert arm.arm.resume(arm.time) == ""
    here = arm.sway()
    arm.arm.follow(replace(here, time=here.time + 2.0), arm.time)
    assert arm.run(0.5).arm.stage is Stage.FOLLOWING and not arm.arm.fault


def test_without_calibration_it_follows_too():
    arm = TorqueArm(attrs.evolve(OPTIONS, speed=10.0), calibrated=False).run(1.0).swaying()
    arm.run(4.0)
    assert arm.arm.stage is Stage.HOLDING and not arm.arm.fault and arm.rests()
    arm.check_limits(4.0)  # stiction that it does not know lets a joint go with a jerk


def test_computed_torque_follows_and_adapts_too():
    arm = TorqueArm(attrs.evolve(OPTIONS, controller_type="computed_torque", speed=10.0)).run(1.0)
    arm.arm.follow(arm.sway(rounds=4), arm.time)
    arm.run(2.0)
    arm.grip(2.0)
    gripped = error_after(arm, 1.0)
    arm.run(3.0)
    after = error_after(arm, 1.0)
    assert after < 0.5 * gripped and not arm.arm.fault
    assert is_consistent(arm.arm.controller.bodies).all()


def frozen(arm: TorqueArm) -> None:
    arm.states.frozen = True


def silent(arm: TorqueArm) -> None:
    arm.states.silent = True


def jump(arm: TorqueArm) -> None:
    arm.states.jump = np.array([0.0, 0.5])


def jump_little(arm: TorqueArm) -> None:
    arm.states.jump = np.array([0.0, 0.05])


def without_velocity(arm: TorqueArm) -> None:
    arm.states.without_velocity = True


def robot_clock_steps(arm: TorqueArm) -> None:
    arm.states.stamp_offset = -3.0


STOPS = {
    "states stop": (silent, "no joint state"),
    "states repeat": (frozen, "its state is stuck"),
    "states jump": (jump, "jumps"),
    "velocities missing": (without_velocity, "velocity is not finite"),
    "clock of the robot steps": (robot_clock_steps, "stamp is too old"),
}


@pytest.mark.parametrize("fault", STOPS)
def test_it_stops_and_holds_where_states_are_wrong(fault):
    cause, words = STOPS[fault]
    arm = swaying()
    cause(arm)
    arm.run(1.5)
    assert words in arm.arm.fault
    assert arm.rests() and arm.arm.stage is Stage.HOLDING, arm.speeds[-50:]
    arm.check_limits(2.0)  # without states it brakes by its model alone


def test_states_that_repeat_since_the_arm_stood_still_stop_the_next_motion():
    arm = holding()
    frozen(arm)
    arm.arm.follow(arm.sway(), arm.time)
    arm.run(1.5)
    assert "its state is stuck" in arm.arm.fault and arm.rests()
    assert (np.abs(arm.speeds) <= arm.limits.velocity).all()


@pytest.mark.parametrize("both", [False, True])
def test_a_step_of_this_machines_clock_changes_nothing(both):
    arm = swaying()
    arm.states.clock_offset = -5.0
    arm.states.stamp_offset = -5.0 if both else 0.0
    arm.run(0.5)
    assert arm.arm.stage is Stage.FOLLOWING and not arm.arm.fault
    arm.check_limits()


def test_another_reference_is_joined_in_motion_and_a_refused_one_changes_nothing():
    arm = swaying()
    there = PiecewiseQuintic(arm.time + np.array([1.5]), START[None] + 0.2, np.zeros((1, 2)), np.zeros((1, 2)))
    with pytest.raises(ExcitationError, match="on the way to it"):
        arm.arm.follow(replace(there, time=arm.time + np.array([0.2]), position=START[None] + 1.0), arm.time)
    assert arm.arm.stage is Stage.FOLLOWING
    arm.arm.follow(there, arm.time)
    arm.run(2.0)
    assert arm.arm.stage is Stage.HOLDING and not arm.arm.fault
    assert np.abs(arm.robot.true_state().position - START - 0.2).max() < 5e-3
    arm.check_limits()


def test_when_states_come_back_it_holds_where_it_is_then_and_can_be_activated():
    arm = swaying()
    silent(arm)
    arm.run(1.5)
    assert "driver" in arm.arm.resume(arm.time)
    arm.states.silent = False
    arm.run(0.5)
    assert arm.rests() and np.abs(arm.arm.error).max() < 0.05, (arm.speeds[-1], arm.arm.error)
    assert "no joint state" in arm.arm.fault and arm.arm.resume(arm.time) == "" and not arm.arm.fault
    arm.check_limits(2.0)


def test_a_small_jump_of_states_is_answered_within_limits():
    arm = swaying()
    jump_little(arm)
    arm.run(1.0)
    effort = np.asarray(arm.arm.controller.options.effort_limit)
    assert (np.abs(arm.efforts) <= effort).all()
    assert (np.abs(arm.speeds) <= arm.limits.velocity).all()


def test_a_pause_of_the_process_ends_the_motion_where_the_arm_is_then():
    arm = swaying()
    arm.pause(0.3).run(1.5)
    assert "delayed by 0.3" in arm.arm.fault and arm.rests()
    assert np.abs(arm.arm.error).max() < 0.05  # friction that it does not know


def test_a_payload_heavier_than_it_can_hold_is_told_and_nothing_winds_up():
    arm = TorqueArm(attrs.evolve(OPTIONS, saturation_s=0.2), tracking_tolerance=0.5).run(1.0)
    arm.grip(20.0)
    while not arm.arm.controller.saturated.any():
        arm.run(0.002)
    bodies = arm.arm.controller.bodies.copy()
    arm.run(0.4)
    assert "too heavy for this pose" in arm.arm.fault
    assert np.abs(arm.arm.controller.bodies - bodies).max() < 0.05 * np.abs(bodies).max()
    effort = np.asarray(arm.arm.controller.options.effort_limit)
    assert (np.abs(arm.efforts) <= effort + 1e-9).all()


def test_an_arm_that_is_blocked_does_not_push_on():
    arm = holding().swaying(rounds=1)
    arm.robot.become(drives=replace(arm.robot.drives, coulomb=np.full(2, 1e3)))  # as a brake that is set
    arm.run(1.5)
    assert "or the arm is blocked" in arm.arm.fault
    assert np.abs(arm.arm.error).max() < 0.05  # it gave way to what blocks it


def test_a_joint_that_is_pushed_beyond_its_speed_is_stopped():
    arm = TorqueArm(tracking_tolerance=5.0).run(1.0)
    arm.robot._data.qvel[:] = [2.5, 0.0]
    arm.run(0.01)
    assert "moves at" in arm.arm.fault
