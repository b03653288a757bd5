"""A bag that a test writes message by message."""

import struct

import numpy as np

from inertid_ros.data.files.bag_backends import BagMessage, bag_backend
from inertid_ros.data.messages import JOINT_STATE, WRENCH_STAMPED, encode


class MessageBag:
    """Collects messages one by one and writes them at the end."""

    def __init__(self, path, storage="mcap"):
        self.path, self.storage, self.backend = path, storage, bag_backend()
        self.types, self.messages = {}, []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        with self.backend.create(self.path, self.storage, self.types) as write:
            for message in self.messages:
                write(message)

    def raw(self, topic, message_type, stamp, data):
        self.types[topic] = message_type
        self.messages.append(BagMessage(topic, stamp, data))

    def joint_state(self, stamp, names, position, velocity, effort, topic="/joint_states", received=None):
        values = {"position": position, "velocity": velocity, "effort": effort}
        self.raw(topic, JOINT_STATE, received or stamp, encode(JOINT_STATE, stamp, values, "", names))

    def wrench(self, stamp, frame, force, topic, received=None):
        values = {"wrench": np.array([*force, 0, 0, 0])}
        self.raw(topic, WRENCH_STAMPED, received or stamp, encode(WRENCH_STAMPED, stamp, values, frame))

    def text(self, stamp, topic="/log"):
        self.raw(topic, "std_msgs/msg/String", stamp, b"\0\1\0\0" + struct.pack("<I", 6) + b"hello\0")
