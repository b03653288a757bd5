"""Joint states that are no new ones, or cannot be: each is told in a line, and time goes on."""

from dataclasses import replace

import numpy as np
import pytest
from support.nodes.two_links import URDF

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.samples import JointSample
from inertid_ros.monitoring.streams import BREAK_S, StreamChecks, StreamFault
from inertid_ros.robot.model import load_model

STEP = 5_000_000  # ns
GRIPPER = """<link name="finger"><inertial><mass value="0.1"/>
  <inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="slide" type="prismatic"><parent link="lower"/><child link="finger"/><axis xyz="0 0 1"/>
  <limit lower="0" upper="0.04" velocity="0.1" effort="10"/></joint></robot>"""
MODEL = load_model(URDF.replace("</robot>", GRIPPER), RobotOptions(locked_joints={"slide": 0.0}))


class Stream:
    """Joint states of a slow motion, one after another."""

    def __init__(self, model=MODEL):
        self.checks = StreamChecks(model, longest_gap_s=0.02)
        self.count, self.stamp = 0, 1_700_000_000 * 10**9

    def state(self, **changes):
        self.count, self.stamp = self.count + 1, self.stamp + STEP
        angle = 1e-3 * self.count
        state = JointSample(
            self.stamp, np.array([angle, -angle]), np.full(2, 0.2), np.array([1.0, angle]), np.array([0.03])
        )
        return replace(state, **changes)

    def take(self, count=1, **changes):
        """The last of some states as it is checked."""
        return [self.checks.check(self.state(**changes)) for _ in range(count)][-1]

    def takes_up_again(self):
        return self.take().usable and self.take().fault is None


def test_good_states_bear_a_time_that_maps_to_their_stamps():
    stream = Stream()
    times = [stream.take().time for _ in range(50)]
    np.testing.assert_allclose(np.diff(times), 5e-3, atol=1e-12)
    assert stream.checks.stamp_ns(times[-3]) == stream.stamp - 2 * STEP


@pytest.mark.parametrize("channel, value, message", [
    ("effort", [np.nan, 1.0], "shoulder: effort is not finite"),
    ("position", [0.0, np.inf], "elbow: position is not finite"),
    ("velocity", [1e200, 0.0], "joint_states hold impossibly large numbers"),
    ("effort", [0.0, -1e10], "joint_states hold impossibly large numbers"),
    ("velocity", [np.nan, np.nan], "joint_states hold no velocity; let the driver report it"),
])  # fmt: skip
def test_what_is_not_finite_or_not_reported_is_named(channel, value, message):
    stream = Stream()
    stream.take(3)
    found = stream.take(**{channel: np.array(value)})
    assert not found.usable and found.fault is StreamFault.NOT_FINITE and message in found.message
    assert stream.takes_up_again()


def test_a_repeated_and_a_late_message_are_left_out():
    stream = Stream()
    stream.take(3)
    assert stream.take(stamp_ns=stream.stamp).fault is StreamFault.REPEATED
    late = stream.take(stamp_ns=stream.stamp - 3 * STEP)
    assert late.fault is StreamFault.OUT_OF_ORDER and "0.01 s before earlier states" in late.message
    assert stream.takes_up_again()


@pytest.mark.parametrize("step_s, fault", [(-5.0, StreamFault.CLOCK), (3600.0, StreamFault.PAUSE)])
def test_a_clock_that_is_set_is_followed_after_some_states(step_s, fault):
    stream = Stream()
    before = stream.take(3).time
    stream.stamp += round(step_s * 1e9)
    found = [stream.take() for _ in range(6)]
    assert [each.usable for each in found] == [False] * 4 + [True] * 2
    assert found[4].fault is fault and "restarting" in found[4].message and found[5].fault is None
    assert found[4].time == pytest.approx(before + BREAK_S)
    assert stream.checks.stamp_ns(found[5].time) == stream.stamp


def test_one_stamp_of_another_clock_changes_nothing():
    stream = Stream()
    before = stream.take(3).time
    assert not stream.take(stamp_ns=stream.stamp + 10**15).usable
    assert stream.take().time == pytest.approx(before + 2 * STEP * 1e-9)


def test_a_pause_is_told_and_bridged_by_nobody():
    stream = Stream()
    before = stream.take(3).time
    stream.stamp += 300_000_000
    found = stream.take()
    assert found.usable and found.fault is StreamFault.PAUSE and "no joint states for 0.305 s" in found.message
    assert found.time == pytest.approx(before + 0.305)


def test_values_that_repeat_are_no_measurements():
    stream = Stream()
    stream.take(3)
    same = {"position": np.zeros(2), "velocity": np.zeros(2), "effort": np.ones(2)}
    stream.take(**same)
    repeats = [stream.take(**same) for _ in range(12)]
    assert not any(each.usable for each in repeats)
    assert repeats[0].message == "" and "check the driver's measurement" in repeats[-1].message
    assert stream.takes_up_again()


def test_a_jump_that_no_joint_can_make_begins_anew():
    stream = Stream()
    before = stream.take(3).time
    found = stream.take(position=np.array([0.0, 1.0]))
    assert found.fault is StreamFault.JUMP and "elbow jumps by 1 rad or m in 0.005 s" in found.message
    assert found.usable and found.time >= before + BREAK_S
    assert stream.take(position=np.array([0.0, 1.001])).fault is None


def test_a_joint_without_limits_may_wrap():
    stream = Stream(load_model(URDF.replace('name="elbow" type="revolute"', 'name="elbow" type="continuous"')))
    stream.take(held=np.zeros(0), position=np.array([0.0, 3.14]))
    found = stream.take(held=np.zeros(0), position=np.array([0.0, -3.14]))
    assert found.fault is None and found.position[1] == pytest.approx(2 * np.pi - 3.14)


def test_states_are_not_used_while_a_gripper_moves_that_the_calibration_held():
    stream = Stream()
    assert stream.take(3).usable
    found = stream.take(held=np.array([0.02]))
    assert found.fault is StreamFault.HELD_JOINT and "slide moves, but the calibration holds" in found.message
    assert not stream.take(30, held=np.array([0.02])).usable
    assert stream.take(15, held=np.array([0.02])).usable
    assert stream.take(held=np.array([np.nan])).usable
