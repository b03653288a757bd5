"""Commands to joints in bags: joint states on a command topic, and the reference of a trajectory controller."""

import struct

import numpy as np
import pytest
from support.recordings.message_bag import MessageBag

from inertid_ros.config.recordings import RecordingTopics
from inertid_ros.core.errors import ConfigurationError, RecordingError
from inertid_ros.data.files.bag_reading import read_bag
from inertid_ros.data.files.column_reading import TopicColumns
from inertid_ros.data.messages import RawMessages, layout_of

NAMES, STEP_NS, COUNT = ("hip", "knee"), 10_000_000, 50
STATE = "control_msgs/msg/JointTrajectoryControllerState"


class Cdr:
    """Little-endian CDR, written field by field."""

    def __init__(self):
        self.data = bytearray(b"\0\1\0\0")

    def pack(self, size, code, *values):
        self.data += bytes(-(len(self.data) - 4) % size) + struct.pack(f"<{code}", *values)

    def text(self, text):
        self.pack(4, "I", len(text) + 1)
        self.data += text.encode() + b"\0"

    def numbers(self, values):
        self.pack(4, "I", len(values))
        if len(values):
            self.pack(8, f"{len(values)}d", *values)

    def point(self, position, velocity):
        for values in (position, velocity, (), ()):
            self.numbers(values)
        self.pack(4, "iI", 0, 7)


def controller_state(stamp, names, reference, velocity):
    cdr = Cdr()
    cdr.pack(4, "iI", *divmod(stamp, 10**9))
    cdr.text("")
    cdr.pack(4, "I", len(names))
    for name in names:
        cdr.text(name)
    for point in ((reference, velocity), (0 * reference, ()), ((), ()), ((), ())):
        cdr.point(*point)
    cdr.pack(4, "5I", 0, 0, 0, 0, 0)
    return bytes(cdr.data)


def commands(index):
    return np.array([np.sin(0.1 * index), 1.0 + 0.01 * index]), np.array([0.3 * index, -1.0])


EXPECTED = np.transpose([commands(index) for index in range(COUNT)], (1, 0, 2))


def write(path, put):
    with MessageBag(path) as bag:
        for index in range(COUNT):
            stamp = 10**9 + index * STEP_NS
            position = np.array([0.01 * index, -0.02 * index])
            bag.joint_state(stamp, NAMES, position, np.zeros(2), np.zeros(0))
            put(bag, stamp, *commands(index))
    return path


def test_commands_are_matched_to_joint_states_by_name(tmp_path):
    def put(bag, stamp, position, velocity):
        bag.joint_state(stamp, NAMES[::-1], position[::-1], velocity[::-1], np.zeros(0), topic="/reference")

    bag = write(tmp_path / "bag", put)
    recording = read_bag(bag, RecordingTopics(commands="/reference"))
    position, velocity = EXPECTED
    assert recording.joint_names == NAMES and len(recording) == COUNT
    np.testing.assert_allclose(recording.command_position, position)
    np.testing.assert_allclose(recording.command_velocity, velocity)
    assert recording.command_effort is None and np.isnan(recording.effort).all()
    for kind in ("commands", "controller_state"):
        with pytest.raises(RecordingError, match=f"has no topic /other.*set topics.{kind}"):
            read_bag(bag, RecordingTopics(**{kind: "/other"}))


def test_the_reference_of_a_controller_is_decoded():
    stamps = [10**9 + index * STEP_NS for index in range(COUNT)]
    messages = [controller_state(stamp, NAMES, *commands(index)) for index, stamp in enumerate(stamps)]
    ((_, raw),) = RawMessages.by_topic(["/state"] * COUNT, stamps, messages)
    columns = TopicColumns("bag", "/state", STATE, arrival=False)
    columns.add(raw)
    (part,) = columns.columns()
    position, velocity = EXPECTED
    assert part.source == NAMES and part.stamps_ns.tolist() == stamps
    np.testing.assert_array_equal(part.values["position"], position)
    np.testing.assert_array_equal(part.values["velocity"], velocity)
    assert part.values["effort"].shape == (COUNT, 0)
    with pytest.raises(ValueError, match="is cut short"):
        layout_of(messages[0][:60], STATE)


def numbers(values, labels=()):
    cdr = Cdr()
    cdr.pack(4, "I", len(labels))
    for label in labels:
        cdr.text(label)
        cdr.pack(4, "2I", len(values), 1)
    cdr.pack(4, "I", 0)
    cdr.numbers(values)
    return bytes(cdr.data)


@pytest.mark.parametrize("labels", [(), ("joints",)])
def test_numbers_of_a_position_controller_are_commands_of_its_joints(tmp_path, labels):
    def put(bag, stamp, position, velocity):
        bag.raw("/controller/commands", "std_msgs/msg/Float64MultiArray", stamp, numbers(position[::-1], labels))

    bag, topic = write(tmp_path / "bag", put), {"commands": "/controller/commands"}
    recording = read_bag(bag, RecordingTopics(command_joints=NAMES[::-1], **topic))
    np.testing.assert_allclose(recording.command_position, EXPECTED[0])
    assert recording.command_velocity is None
    with pytest.raises(RecordingError, match=r"Float64MultiArray.*name the joints of its controller by topics.command"):
        read_bag(bag, RecordingTopics(**topic))
    with pytest.raises(RecordingError, match="a command has 2 positions for 3 joints; set command_joints"):
        read_bag(bag, RecordingTopics(command_joints=("a", "b", "c"), **topic))


def test_two_topics_of_commands_are_refused():
    with pytest.raises(ConfigurationError, match="commands and controller_state both give the commands; set only one"):
        RecordingTopics(commands="/a", controller_state="/b")
