"""A live bag of joint states and a tared plate whose stamps interleave: read again whole, in order, less the zero."""

from pathlib import Path

import numpy as np
import pytest

from inertid_ros.config.recordings import BagWritingOptions, RecordingTopics, WrenchTopic
from inertid_ros.data.assembly import RecordingAssembler
from inertid_ros.data.files.bag_backends import typestore
from inertid_ros.data.files.bag_reading import read_bag
from inertid_ros.data.files.live_bag import LiveBag
from inertid_ros.data.files.live_recording import LiveRecording
from inertid_ros.data.files.mcap_format import Topic
from inertid_ros.data.messages import JOINT_STATE, WRENCH_STAMPED, encode, tare_topic

pytest.importorskip("rosbags.rosbag2", reason="messages are made with rosbags: pip install rosbags")
PLATE = "/plate/wrench"
START = 10**18


def topic(name: str, message_type: str) -> Topic:
    return Topic(name, message_type, typestore().generate_msgdef(message_type, ros_version=2)[0])


def test_bag_and_batches_agree_when_topics_interleave(tmp_path: Path) -> None:
    zero = np.array([1.0, -2.0, 3.0, 0.1, 0.2, 0.3])
    topics = [topic("/joint_states", JOINT_STATE), topic(PLATE, WRENCH_STAMPED)]
    bag = LiveBag(tmp_path / "bag", [*topics, topic(tare_topic(PLATE), WRENCH_STAMPED)], BagWritingOptions(0))
    assembler = RecordingAssembler("live", channels=("wrench/plate",))
    live = LiveRecording(assembler, bag, prelude=[(2, encode(WRENCH_STAMPED, START, {"wrench": zero}, "plate"))])
    for k in range(100):
        # The plate's message comes first, but is stamped two milliseconds later.
        late, now, raw = START + k * 10**7 + 2 * 10**6, START + k * 10**7, np.arange(6.0) + k
        assert live.add(1, encode(WRENCH_STAMPED, late, {"wrench": raw}, "plate"), late, {"wrench/plate": raw - zero})
        state = encode(JOINT_STATE, now, dict.fromkeys(("position", "velocity", "effort"), np.ones(1)), "", ["a"])
        assert live.add_joint_state(0, state, ["a"], now, (np.ones(1),) * 3)
    bag.close()
    block, _ = live.take(final=True)
    again = read_bag(tmp_path / "bag", RecordingTopics(wrenches={"plate": WrenchTopic(PLATE, "plate")}))
    assert not [notice for notice in again.notices if "closed" in notice]
    np.testing.assert_allclose(again.wrenches["plate"], block.channels["wrench/plate"])
    np.testing.assert_allclose(again.wrenches["plate"][0, 0], 1.0 - 0.2 - zero[0])
