"""Speed scaling as the driver tells it."""

from types import SimpleNamespace

from std_msgs.msg import Float64

from inertid_ros.nodes.excitation.parameters import SpeedScalingOptions
from inertid_ros.nodes.excitation.speed_scaling import SpeedScaling


class Topics:
    """A node that keeps the callbacks of its subscriptions."""

    def __init__(self) -> None:
        self.callbacks = {}

    def create_subscription(self, _type, topic, callback, _qos, **_keywords):
        self.callbacks[topic] = callback
        return SimpleNamespace()


def test_percent_of_the_driver_become_a_factor() -> None:
    topics, told = Topics(), []
    scaling = SpeedScaling(topics, SpeedScalingOptions(), "", told.append)
    assert scaling.factor == 1.0
    topics.callbacks["speed_scaling_state_broadcaster/speed_scaling"](Float64(data=50.0))
    assert scaling.factor == 0.5 and told == [0.5]
    scaling.poll(1.0)  # without a controller there is nothing to read


def test_no_topic_is_no_subscription() -> None:
    topics = Topics()
    assert SpeedScaling(topics, SpeedScalingOptions(topic=""), "", lambda factor: None).factor == 1.0
    assert not topics.callbacks


def test_the_controller_is_read_now_and_then_and_before_a_horizon_is_sent() -> None:
    told, states = [], []
    scaling = SpeedScaling(Topics(), SpeedScalingOptions(topic=""), "", told.append)
    scaling._state = SimpleNamespace(take=lambda: [(states[-1], 0.0)])
    for now, factor, at_once in ((1.0, 1.0, False), (1.005, 0.5, False), (1.01, 0.5, True), (1.04, 0.0, False)):
        states.append(SimpleNamespace(speed_scaling_factor=factor))
        scaling.poll(now, at_once)
    assert told == [1.0, 0.5, 0.0]  # what came at 1.005 is left for later
