"""Commands of the simulated robot: trajectories as a JointTrajectoryController takes them, and position streams."""

import numpy as np
import pytest

from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.motions import QuinticRamp
from inertid_ros.excitation.quintic import PiecewiseQuintic
from inertid_ros.simulation.controller import Follower

RAMP = QuinticRamp(np.zeros(2), np.array([1.0, -0.5]), 2.0)
TIMES = np.linspace(0, 2, 41)


def points(times=TIMES):
    return PiecewiseQuintic(times, *RAMP.sample(times))


def trace(follower, begin, end, step=0.001):
    times = np.arange(begin, end, step)
    rows = [follower.desired(t) for t in times]
    return times, *(np.array(column) for column in zip(*rows, strict=True))


def test_points_are_joined_by_splines_and_the_last_is_held():
    follower = Follower(np.zeros(2))
    follower.follow(points(), now=5.0, start=5.0)
    times, q, v, a = trace(follower, 5.0, 8.0)
    wanted = RAMP.sample(times - 5.0)
    assert q == pytest.approx(wanted[0], abs=1e-5)
    assert v == pytest.approx(wanted[1], abs=1e-4)
    assert follower.desired(9.0)[0] == pytest.approx([1.0, -0.5])
    assert np.abs(follower.desired(9.0)[1]).max() == 0


def test_a_new_trajectory_replaces_the_old_one_smoothly():
    follower = Follower(np.zeros(2))
    follower.follow(points(), 0.0, 0.0)
    before = follower.desired(0.7)
    back = PiecewiseQuintic(np.array([1.0]), np.array([[0.2, 0.2]]), np.zeros((1, 2)), np.zeros((1, 2)))
    follower.follow(back, 0.7, 0.7)
    for old, new in zip(before, follower.desired(0.7), strict=True):
        assert new == pytest.approx(old, abs=1e-9)
    assert follower.desired(1.7)[0] == pytest.approx([0.2, 0.2])


def test_points_before_now_anchor_the_motion():
    follower = Follower(np.array([0.3, 0.3]))
    # The clock of the points began half a second ago: the robot is told to be on the way already.
    follower.follow(points(), now=10.0, start=9.5)
    assert follower.desired(10.0)[0] == pytest.approx(RAMP.sample(np.array([0.5]))[0][0], abs=1e-6)


def test_a_start_in_the_future_is_approached_from_where_the_robot_is():
    follower = Follower(np.array([0.1, -0.1]))
    follower.follow(points(), now=0.0, start=1.0)
    assert follower.desired(0.0)[0] == pytest.approx([0.1, -0.1])
    assert follower.desired(1.0)[0] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert follower.desired(2.0)[0] == pytest.approx([0.5, -0.25], abs=1e-6)


@pytest.mark.parametrize(
    ("trajectory", "start", "words"),
    [
        (points(), -5.0, "ended 3.000 s ago"),
        (PiecewiseQuintic(np.ones(1), *np.full((3, 1, 2), 0.1)), 0.0, "not at rest"),
    ],
)
def test_bad_trajectories_are_refused_and_change_nothing(trajectory, start, words):
    follower = Follower(np.array([0.3, 0.4]))
    with pytest.raises(ExcitationError) as caught:
        follower.follow(trajectory, 0.0, start)
    assert words in str(caught.value)
    assert follower.desired(1.0)[0] == pytest.approx([0.3, 0.4])


def test_streamed_positions_are_followed_and_the_last_is_held():
    follower = Follower(np.zeros(2))
    goal = lambda t: np.array([np.sin(t), np.cos(t) - 1])  # noqa: E731
    worst = 0.0
    for tick in range(200):
        now = 0.01 * tick
        follower.stream(goal(now), now)
        for t in np.arange(now, now + 0.01, 0.002):
            worst = max(worst, np.abs(follower.desired(t)[0] - goal(t)).max())
    assert worst < 0.012
    assert follower.desired(3.0)[0] == pytest.approx(goal(1.99))
    assert np.abs(follower.desired(3.0)[1]).max() == 0
    for wrong in (np.zeros(3), np.array([np.nan, 0])):
        with pytest.raises(ExcitationError):
            follower.stream(wrong, 4.0)


def test_a_scaled_trajectory_falls_behind_and_the_next_one_begins_at_the_clock():
    follower = Follower(np.zeros(2))
    follower.follow(points(), 0.0, 0.0)
    follower.scale(0.5, 0.4)
    assert follower.trajectory_time(0.8) == pytest.approx(0.6)
    assert follower.desired(0.8)[0] == pytest.approx(RAMP.sample(np.array([0.6]))[0][0], abs=1e-6)
    assert follower.desired(0.8, 0.1)[0] == pytest.approx(RAMP.sample(np.array([0.7]))[0][0], abs=1e-6)
    follower.scale(0.0, 0.8)
    assert follower.desired(5.0)[0] == pytest.approx(follower.desired(0.8)[0])
    follower.follow(points(), 1.0, 0.0)
    assert follower.desired(1.0)[0] == pytest.approx(RAMP.sample(np.array([1.0]))[0][0], abs=1e-6)
    assert follower.trajectory_time(2.0) == 1.0
