"""Goals that a controller answers, or does not."""

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from inertid_ros.nodes.excitation.commander import OpenGoals  # noqa: E402


def test_an_answer_that_was_lost_is_no_dead_controller():
    goals = OpenGoals()
    for goal in range(3):
        goals.send(goal, 0.05 * goal)
    goals.answer(1)  # that to goal 0 never comes
    assert goals.silence(1.0) == pytest.approx(0.9)  # of goal 2
    goals.answer(2)
    assert goals.silence(5.0) == 0.0
    goals.answer(0)  # late
    assert goals.silence(5.0) == 0.0


def test_a_controller_that_answers_nothing_is_silent_since_the_first_goal():
    goals = OpenGoals()
    goals.send("a", 1.0)
    goals.send("b", 1.5)
    assert goals.silence(2.5) == pytest.approx(1.5)
