"""Topics that are taken by hand: nothing lost or out of order, and receipts that do not wait for the taking."""

import math
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from rclpy.qos import QoSProfile  # noqa: E402
from std_msgs.msg import Float64  # noqa: E402
from support.nodes.ros_client import RosClient, ros_client_in  # noqa: E402

from inertid_ros.ros.topics import PacedGroup, PolledSubscription  # noqa: E402

DEPTH = 5


@pytest.fixture
def ros(tmp_path: Path) -> Iterator[RosClient]:
    with ros_client_in(tmp_path) as client:
        yield client


def test_receipts_are_those_of_the_middleware(ros, monkeypatch):
    topic = PolledSubscription(ros.node, Float64, "value", QoSProfile(depth=DEPTH))
    publisher = ros.node.create_publisher(Float64, "value", 10)
    ros.until(publisher.get_subscription_count, "discovery")
    assert topic.take() == []
    sent = []
    for value in range(3):
        before = time.monotonic()
        publisher.publish(Float64(data=float(value)))
        sent.append((before, time.monotonic()))
        ros.spin(0.1)  # which must not take them
    taken = topic.take()
    assert [message.data for message, _ in taken] == [0.0, 1.0, 2.0]
    for (_, received), (before, after) in zip(taken, sent, strict=True):  # a busy machine may interrupt publishing
        assert before - 0.01 < received < after + 0.08
    # A step of the system's clock puts no receipt before the last look or after this one.
    before = time.monotonic()
    for value in range(2 * DEPTH):
        publisher.publish(Float64(data=float(value)))
    ros.spin(0.1)
    clock = time.time
    monkeypatch.setattr(time, "time", lambda: clock() - 5.0)
    taken = topic.take()
    assert [message.data for message, _ in taken] == [5.0, 6.0, 7.0, 8.0, 9.0]  # the newest, as the queue is deep
    assert all(before - 0.1 <= received <= time.monotonic() for _, received in taken)


def test_messages_of_several_publishers_are_told_from_those_of_one(ros):
    topic = PolledSubscription(ros.node, Float64, "value", QoSProfile(depth=50))
    one, other = (ros.node.create_publisher(Float64, "value", 10) for _ in range(2))
    ros.until(lambda: one.get_subscription_count() and other.get_subscription_count(), "discovery")

    def since_publishing(*publishers) -> float:
        for publisher in publishers:
            publisher.publish(Float64())
        ros.spin(0.05)
        assert len(topic.take()) == len(publishers)
        return topic.numbered_since

    begin = time.monotonic()
    since = since_publishing(one, one, one)
    assert begin <= since <= time.monotonic()
    assert since_publishing(one, one) == since  # gaps do not matter, and there are none
    assert since_publishing(one, other, one, other) == math.inf  # at once
    restarted = since_publishing(other, other, other)  # the other one goes on alone
    assert since < restarted < math.inf


def test_a_paced_group_opens_in_intervals_and_waits_for_the_first_message(monkeypatch):
    group, now, used = PacedGroup(0.02, 0.003), 100.0, 1.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(time, "thread_time", lambda: used)
    assert group.can_execute(None)  # as long as nothing comes
    now = 100.05
    assert group.can_execute(None) and group.beginning_execution(None)
    now, used = 100.06, 1.002
    assert group.can_execute(None) and group.beginning_execution(None)  # all that wait, however late on a busy machine
    now, used = 100.065, 1.004
    assert not group.can_execute(None)
    now = 100.071
    assert group.can_execute(None)
