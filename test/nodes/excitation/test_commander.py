"""Who else commands the robot, as the graph tells it; goals that a controller answers, or does not."""

import math
from types import SimpleNamespace

import pytest

from inertid_ros.nodes.excitation.commander import OpenGoals, TrajectoryCommander
from inertid_ros.nodes.excitation.robot_interface import RobotInterface
from inertid_ros.robot.recorded_joints import RecordedJoints
from inertid_ros.ros.topics import Publishers

OWN, OTHER, UNNAMED = "excitation", "teleop", "_NODE_NAME_UNKNOWN_"


class Graph:
    """A node that sees the given publishers on its command topic."""

    def __init__(self) -> None:
        self.publishers = [OWN]
        self.subscribers = 1

    def create_publisher(self, _type, topic, _qos):
        return SimpleNamespace(topic_name=f"/arm/{topic}", get_subscription_count=lambda: self.subscribers)

    def get_name(self) -> str:
        return OWN

    def get_namespace(self) -> str:
        return "/arm"

    def get_publishers_info_by_topic(self, _topic):
        return [
            SimpleNamespace(node_name=name, node_namespace="_NODE_NAMESPACE_UNKNOWN_" if name == UNNAMED else "/arm")
            for name in self.publishers
        ]


@pytest.fixture
def graph() -> Graph:
    return Graph()


def test_alone_with_a_subscriber(graph: Graph) -> None:
    assert TrajectoryCommander(graph, RecordedJoints()).problem() == ""


def test_nobody_subscribes(graph: Graph) -> None:
    graph.subscribers = 0
    problem = TrajectoryCommander(graph, RecordedJoints()).problem()
    assert problem.startswith("/arm/joint_trajectory has no subscriber")


def test_the_topic_follows_from_the_controller(graph: Graph) -> None:
    graph.subscribers = 0
    problem = TrajectoryCommander(graph, RecordedJoints(), "arm_controller").problem()
    assert problem.startswith("/arm/arm_controller/joint_trajectory has no subscriber")


def test_another_commander_is_named_at_once(graph: Graph) -> None:
    graph.publishers = [UNNAMED, OWN, OTHER]
    expected = "/arm/teleop also commands the robot on /arm/joint_trajectory; stop it"
    assert TrajectoryCommander(graph, RecordedJoints()).problem() == expected


def test_a_publisher_is_discovered_before_its_node(graph: Graph) -> None:
    commander = TrajectoryCommander(graph, RecordedJoints())
    graph.publishers = [OWN, UNNAMED]
    assert commander.problem() == ""
    graph.publishers = [OWN, OTHER]
    assert commander.problem().startswith("/arm/teleop also commands")


def test_a_publisher_that_stays_without_a_name_is_told(graph: Graph) -> None:
    commander = TrajectoryCommander(graph, RecordedJoints())
    graph.publishers = [OWN, UNNAMED]
    assert commander.problem() == ""
    assert UNNAMED in commander.problem()
    graph.publishers = [OWN]
    assert commander.problem() == ""


def test_a_publisher_without_a_name_counts_when_it_is_found_again(graph: Graph) -> None:
    publishers = Publishers(graph, "/arm/joint_states")
    graph.publishers = [UNNAMED, OTHER]
    assert publishers.look() == [(OTHER, "/arm")]
    assert publishers.look() == [(OTHER, "/arm"), (UNNAMED, "_NODE_NAMESPACE_UNKNOWN_")]


def test_a_node_that_publishes_twice_may_have_been_killed() -> None:
    def told(*names: str, one_publishes: bool = False) -> str:
        look = SimpleNamespace(topic="/joint_states", look=lambda: [(name, "/") for name in names])
        subscription = SimpleNamespace(numbered_since=-math.inf if one_publishes else math.inf)
        states = SimpleNamespace(_publishers=look, _states=subscription)
        return RobotInterface.several_publishers(states)

    assert not told("driver")
    assert "/driver, /rogue; stop all" in told("driver", "rogue") and "killed" not in told("driver", "rogue")
    assert "a killed and restarted node" in told("driver", "driver")
    assert not told("driver", "driver", one_publishes=True)
    assert "/driver, /rogue; stop all" in told("driver", "rogue", one_publishes=True)
    killed = UNNAMED  # what is left of a killed node may have lost its name
    assert "a killed and restarted node" in told("driver", killed)
    assert not told("driver", killed, one_publishes=True) and not told(killed, killed, one_publishes=True)
    assert "/driver, /rogue" in told("driver", "rogue", killed, one_publishes=True)


def test_an_answer_that_was_lost_is_no_dead_controller():
    goals = OpenGoals()
    for goal in range(3):
        goals.send(goal, 0.05 * goal)
    goals.answer(1, 0.15)  # that to goal 0 never comes
    assert goals.silence(1.0) == pytest.approx(0.9)  # of goal 2
    goals.answer(2, 1.0)
    assert goals.silence(5.0) == 0.0
    goals.answer(0, 5.0)  # late
    assert goals.silence(5.0) == 0.0


def test_a_goal_that_is_answered_late_is_told_until_the_robot_is_back_on_its_path():
    goals = OpenGoals()
    goals.send("a", 1.0)
    assert not goals.is_late(1.05) and goals.lateness(1.05) == 0.0
    assert goals.is_late(1.43) and goals.lateness(1.43) == pytest.approx(0.43)
    goals.answer("a", 1.43)
    assert not goals.is_late(1.6) and goals.lateness(1.6) == pytest.approx(0.43)
    assert goals.lateness(2.0) == 0.0


def test_a_controller_that_answers_nothing_is_silent_since_the_first_goal():
    goals = OpenGoals()
    goals.send("a", 1.0)
    goals.send("b", 1.5)
    assert goals.silence(2.5) == pytest.approx(1.5)
