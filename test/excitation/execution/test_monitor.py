"""The state monitor: what stops a motion, what does not, and when. Time is given, nothing sleeps."""

import numpy as np
import pytest

from inertid_ros.config.excitation import MonitorOptions
from inertid_ros.excitation.execution.monitor import Lease, RobotClock, StateMonitor
from inertid_ros.robot.urdf.joints import JointLimits

NAMES = ("shoulder", "elbow")
ELBOW = 0.5 * np.cos(2.0)  # rad, where it is after two seconds
EPOCH = 1.8e9  # ROS time minus steady time in these tests


def make(**options) -> StateMonitor:
    one = np.ones(2)
    options = MonitorOptions(**{"state_timeout_s": 0.03, "rate_window_s": 0.5, **options})
    return StateMonitor(NAMES, JointLimits(-2 * one, 2 * one, one, 50 * one), options, 0.0)


def give(monitor, stamp, clock, now, **values):
    return monitor.update(monitor.clock.take(stamp, clock, now), now, **values)


def motion(now):
    return np.array([np.sin(now), 0.5 * np.cos(now)])


class Stream:
    """Feeds a monitor at 200 Hz; what is fed can be spoilt."""

    def __init__(self, monitor, spoil=lambda now, state: state):
        self.monitor, self.spoil, self.rng = monitor, spoil, np.random.default_rng(0)

    def run(self, until, begin=0.0, check_every=0.01):
        """The first fault and when it was raised, or none and the end."""
        steps = np.arange(begin, until, 0.005)
        for index, now in enumerate(steps):
            state = {
                "stamp": now + EPOCH - 0.001,
                "clock": now + EPOCH,
                "now": now,
                "position": motion(now) + 1e-5 * self.rng.normal(size=2),
                "effort": np.array([5.0, -3.0]),
                "commanded": motion(now),
            }
            state = self.spoil(now, state)
            if state is not None:
                give(self.monitor, **state)
            if index % round(check_every / 0.005) == 0:
                fault = self.monitor.check(now, motion(now))
                if fault:
                    return fault, now
        return "", until


def after(begin, change):
    return lambda now, state: change(now, state) if now >= begin else state


def with_values(**values):
    return lambda now, state: {**state, **values}


def test_good_states_never_stop_the_motion():
    monitor = make()
    fault, _ = Stream(monitor).run(20.0)
    assert not fault
    assert monitor.counts.accepted == 4000
    assert monitor.counts.rejected == {}
    assert monitor.counts.gaps == 0
    assert monitor.position == pytest.approx(motion(19.995), abs=1e-3)


def test_a_state_right_behind_one_that_was_held_up_is_no_jump():
    """States between them were lost; their stamps say how long the robot has moved."""
    monitor, one = make(), np.ones(2)
    for stamp in np.arange(0.008, 0.08, 0.008):
        assert monitor.update(stamp, stamp, one * stamp, 0 * one) == ""
    assert monitor.update(0.08, 0.14, one * 0.08, 0 * one) == ""
    assert monitor.update(0.124, 0.1405, one * 0.124, 0 * one) == ""
    assert "jumps" in monitor.update(0.132, 0.141, one * 0.5, 0 * one)
    assert "jumps" in monitor.update(9.0, 0.1415, one * 1.5, 0 * one)  # a stamp ahead of its receipt proves nothing


@pytest.mark.parametrize(
    ("spoil", "words", "within"),
    [
        (lambda now, state: None, "no joint state for", 0.05),
        (with_values(position=np.array([np.nan, 0])), "position is not finite", 0.05),
        (with_values(effort=np.array([np.inf, 0])), "effort is not finite", 0.05),
        (with_values(position=np.zeros(3)), "wrong number of joints", 0.05),
        (with_values(position=np.array([0.1, 57.0])), "'elbow' is impossible", 0.05),
        (lambda now, s: {**s, "position": s["position"] + 0.5}, "'shoulder' jumps", 0.05),
        (lambda now, s: {**s, "stamp": s["stamp"] - 0.2}, "stamp is too old", 0.05),
        (lambda now, s: {**s, "stamp": s["stamp"] + 1.0}, "in the future", 0.05),
        (lambda now, s: {**s, "stamp": -1.0}, "stamp is not set", 0.05),
        (lambda now, s: {**s, "stamp": 0.0}, "stamp is not set", 0.05),
        (lambda now, s: {**s, "stamp": np.nan}, "stamp is not set", 0.05),
        (lambda now, s: {**s, "stamp": 2.0 + EPOCH - 0.002}, "repeats or goes back", 0.06),
        (with_values(position=motion(2.0)), "reports exactly the same position", 0.1),
        (lambda now, s: {**s, "position": np.array([s["position"][0], ELBOW])}, "'elbow'", 0.1),
        (with_values(effort=np.array([5.0, -51.0])), "'elbow' needs more than its limit 50", 0.08),
    ],
)
def test_faults_stop_the_motion_soon(spoil, words, within):
    fault, when = Stream(make(), after(2.0, spoil)).run(4.0)
    assert words in fault
    assert 2.0 < when <= 2.0 + within
    assert "\n" not in fault


def test_an_infinite_position_is_rejected_also_where_a_joint_has_no_limits():
    unlimited = np.full(2, np.inf)
    options = MonitorOptions(state_timeout_s=0.03)
    limits = JointLimits(-unlimited, unlimited, np.ones(2), 50 * np.ones(2))
    monitor = StateMonitor(NAMES, limits, options, 0.0)
    fault, now = Stream(monitor, after(2.0, with_values(position=np.array([np.inf, 0.0])))).run(3.0)
    assert "position is not finite" in fault and now < 2.1


def test_tracking_error_stops_the_motion():
    monitor = make(tracking_tolerance=0.05)
    drift = after(2.0, lambda now, s: {**s, "position": s["position"] + np.array([0.0, 0.2 * (now - 2)])})
    fault, when = Stream(monitor, drift).run(4.0)
    assert "'elbow' is 0.05" in fault
    assert when == pytest.approx(2.26, abs=0.03)


def test_distances_of_fast_wheels_count_in_larger_units():
    one = np.ones(2)
    for units, stopped in ((1.0, True), (np.array([20.0, 1.0]), False)):
        limits = JointLimits(-2 * one, 2 * one, one, 50 * one)
        monitor = StateMonitor(NAMES, limits, MonitorOptions(), 0.0, units)
        give(monitor, EPOCH, EPOCH, 0.0, position=np.zeros(2), effort=np.zeros(2))
        assert bool(monitor.tracking_error(np.array([1.0, 0.0]))) == stopped
        assert "'elbow' is 0.2 rad" in monitor.tracking_error(np.array([0.0, 0.2]))


def test_short_loss_is_counted_and_tolerated():
    lost = {2.0, 2.005, 2.01, 3.0, 3.005}
    monitor = make()
    fault, _ = Stream(monitor, lambda now, s: None if round(now, 3) in lost else s).run(5.0)
    assert not fault
    assert monitor.counts.gaps == 2


def test_one_bad_state_is_rejected_and_counted():
    monitor = make()
    spoil = lambda now, s: {**s, "position": np.array([np.nan, 0])} if round(now, 3) == 2.0 else s  # noqa: E731
    fault, _ = Stream(monitor, spoil).run(4.0)
    assert not fault
    assert monitor.counts.rejected == {"position is not finite": 1}


def test_heavy_loss_is_a_slow_rate():
    rng = np.random.default_rng(1)
    options = {"state_timeout_s": 0.5, "min_rate_hz": 100.0}
    fault, when = Stream(make(**options), after(2.0, lambda now, s: None if rng.random() < 0.7 else s)).run(6.0)
    assert "below monitor.min_rate_hz 100" in fault
    assert 2.0 < when < 2.7


def test_slow_states_stop_the_motion_once_the_rate_is_known():
    slow = lambda now, s: s if round(now / 0.005) % 6 == 0 else None  # noqa: E731 - 33 Hz
    fault, when = Stream(make(), slow).run(4.0)
    assert "below monitor.min_rate_hz" in fault
    assert when == pytest.approx(0.5, abs=0.03)


def test_without_a_timeout_silence_is_left_to_the_last_horizon():
    monitor = make(state_timeout_s=0.0, tracking_tolerance=1.0, rate_window_s=5.0)
    fault, _ = Stream(monitor, after(2.0, lambda now, s: None if now < 3.0 else s)).run(3.4)
    assert not fault


@pytest.mark.parametrize(
    ("late", "by"), [(0.0, "the driver published no states"), (0.3, "states arrived late")], ids=["driver", "network"]
)
def test_the_longest_gap_says_what_was_late(late, by):
    monitor = make(state_timeout_s=0.0, max_age_s=1.0)
    stamps = [*np.arange(0, 2, 0.005), *np.arange(2.3 - late, 4, 0.005)]
    for stamp in stamps:
        now = stamp + 1e-3 if stamp < 2 else max(stamp, 2.3 + 1e-3 * (stamp - 2.3 + late)) + 1e-3
        give(monitor, stamp + EPOCH, now + EPOCH, now, position=motion(stamp), effort=np.zeros(2))
    assert monitor.counts.longest_gap == f"no joint state for 0.30 s, {by}"


def test_a_robot_at_rest_may_repeat_its_position():
    monitor = make()
    pose = np.array([0.3, 0.4])
    for now in np.arange(0, 3, 0.005):
        monitor.update(now, now, pose, np.zeros(2), pose)
        assert monitor.check(now, pose) == ""


def test_peaks_of_effort_are_tolerated_lasting_ones_not():
    peaks = lambda now, s: {**s, "effort": np.array([60.0, 0])} if round(now / 0.005) % 4 == 0 else s  # noqa: E731
    assert Stream(make(), peaks).run(4.0)[0] == ""


def test_an_effort_that_is_too_high_counts_although_the_robots_clock_stepped():
    spoil = after(2.0, lambda now, s: {**s, "stamp": s["stamp"] - 5.0, "effort": np.array([60.0, 0])})
    fault, when = Stream(make(state_timeout_s=0.0), spoil).run(4.0)
    assert "needs more than its limit" in fault and when < 2.07


@pytest.mark.parametrize("step", [5.0, -5.0, 0.5, -0.5])
@pytest.mark.parametrize("robot_too", [True, False])
def test_a_step_of_the_clock_has_no_effect(step, robot_too):
    def spoil(now, state):
        return {**state, "clock": state["clock"] + step, "stamp": state["stamp"] + step * robot_too}

    monitor = make()
    stream = Stream(monitor, after(2.0, spoil))
    fault, _ = stream.run(6.0)
    assert not fault
    assert monitor.counts.accepted == 1200
    assert monitor.clock.offset == pytest.approx(EPOCH + step * robot_too, abs=1e-6)


def test_states_before_and_after_a_step_of_both_clocks_are_told_apart():
    clock = RobotClock(0.1, 0.02)
    assert clock.take(EPOCH + 0.999, EPOCH + 1.0, 1.0) == pytest.approx(0.999, abs=1e-6)
    assert clock.take(EPOCH - 3.999, EPOCH - 4.0, 1.001) == pytest.approx(1.0, abs=2e-3)
    assert not clock.objection
    # A state still stamped before the step of minus five seconds is now from the future.
    clock.take(EPOCH + 1.001, EPOCH - 3.99, 1.01)
    assert clock.objection == "stamp is in the future"
    assert clock.is_lost
    clock.take(EPOCH - 3.981, EPOCH - 3.98, 1.02)
    assert not clock.objection
    assert not clock.is_lost


@pytest.mark.parametrize("step", [0.01, -0.03, 0.09, -0.09])
def test_a_step_of_the_robots_clock_alone_is_seen_also_where_the_stamps_are_plausible(step):
    clock = RobotClock(0.1, 0.1)
    for index, now in enumerate(np.arange(1.0, 2.0, 0.005)):
        clock.take(EPOCH + now - 0.002 + step * (index > 100), EPOCH + now, now)
        assert clock.is_lost == (index > 100)
    assert f"{1e3 * abs(step):.0f} ms {'older' if step < 0 else 'younger'}" in clock.explanation


@pytest.mark.parametrize("behind", [0.006, 0.013, 0.04])
def test_a_late_state_while_a_simulated_clock_is_read_behind_is_no_step(behind):
    clock = RobotClock(0.1, 0.02)
    for index in range(200):
        now = 0.005 * index
        held_up = index > 50 and index % 10 == 0
        if held_up:  # one look at the clock for both states, of which the first was on its way for longer
            clock.take(EPOCH + now - 0.004 - behind, EPOCH + now - behind, now)
        measured = clock.take(EPOCH + now - 0.001, EPOCH + now - behind * held_up, now)
        assert not clock.is_lost and not clock.objection
        assert measured == pytest.approx(now - 0.001, abs=2e-3)
    assert clock.offset == pytest.approx(EPOCH, abs=2e-3)


def test_late_states_among_others_and_drifting_clocks_are_no_step():
    clock, rng = RobotClock(0.1, 0.02), np.random.default_rng(0)
    for now in np.arange(1.0, 60.0, 0.005):
        age = 0.002 + 0.008 * rng.random()
        clock.take(EPOCH + now * (1 - 2e-4) - age, EPOCH + now, now)
        assert not clock.is_lost


def test_states_without_stamps_leave_the_clock_open_once_none_has_one():
    clock = RobotClock(0.1, 0.02)
    clock.take(EPOCH + 1.0, EPOCH + 1.0, 1.0)
    assert clock.take(0.0, EPOCH + 1.005, 1.005) == 1.005
    assert clock.objection == "stamp is not set" and not clock.is_lost  # it may be another node's
    clock.take(0.0, EPOCH + 1.055, 1.055)
    assert clock.objection == "stamp is not set" and clock.is_lost
    clock.take(EPOCH + 1.06, EPOCH + 1.06, 1.06)
    assert not clock.is_lost


def test_a_state_without_stamp_after_this_machines_clock_stepped_leaves_the_robots_clock_open():
    clock = RobotClock(0.1, 0.02)
    clock.take(EPOCH + 1.0, EPOCH + 1.0, 1.0)
    clock.take(0.0, EPOCH + 1.03, 1.005)
    assert clock.is_lost
    clock.take(EPOCH + 1.01, EPOCH + 1.035, 1.01)  # the robot's has not stepped
    assert not clock.is_lost


def test_effort_of_states_that_waited_counts_from_when_they_were_measured():
    monitor, high = make(min_rate_hz=1.0), np.array([0.0, 51.0])
    for measured in np.arange(1.0, 1.0601, 0.005):
        give(monitor, measured + EPOCH, 1.06 + EPOCH, 1.06, position=motion(measured), effort=high)
    assert "'elbow' needs more than its limit" in monitor.check(1.061, motion(1.06))


def test_states_that_repeat_every_digit_tell_nothing_but_coarse_encoders_do():
    monitor, coarse = make(), make()
    for now in np.arange(1.0, 2.0, 0.005):
        exact = motion(min(now, 1.5))
        monitor.update(now, now, exact, np.zeros(2), motion(now))
        coarse.update(now, now, np.round(motion(now) / 1.5e-3) * 1.5e-3, np.zeros(2), motion(now))
        assert monitor.is_frozen(motion(now)) == (now > 1.524)
        assert not coarse.is_frozen(motion(now))


def test_before_the_first_state_the_timeout_counts_from_the_start():
    monitor = make(state_timeout_s=0.04)
    assert monitor.check(0.03, motion(0)) == ""
    assert "no joint state" in monitor.check(0.05, motion(0))


def test_lease_must_be_renewed_where_it_is_wanted():
    lease = Lease(0.4, 0.0)
    for now in np.arange(0, 2, 0.1):
        lease.renew(now)
        assert lease.check(now + 0.05) == ""
    assert lease.check(2.25) == ""
    fault = lease.check(2.4)
    assert "0.50 s" in fault
    lease.excuse(2.4)  # this process did not run: renewals wait to be read
    assert lease.check(2.45) == "" and lease.check(2.55)
    lease.excuse(2.6)  # as long as none of them is read, only once
    assert lease.check(2.6)
    assert Lease(0.4, 0.0, wanted=False).check(100.0) == ""


@pytest.mark.parametrize(
    ("period_s", "timeout_s"), [(0.002, 0.03), (0.005, 0.03), (0.008, 0.048), (0.1, 0.2), (float("nan"), 0.03)]
)
def test_the_timeout_of_efforts_follows_from_the_rate_of_the_states(period_s, timeout_s):
    assert MonitorOptions().timed(period_s).state_timeout_s == pytest.approx(timeout_s)
    assert MonitorOptions(state_timeout_s=0.5).timed(period_s).state_timeout_s == 0.5
