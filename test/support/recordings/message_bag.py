"""A bag that a test writes message by message."""

import numpy as np

from inertid_ros.data.files.bag_backends import BagMessage, bag_backend
from inertid_ros.data.messages import JOINT_STATE, WRENCH_STAMPED


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

    def header(self, stamp, frame=""):
        moment = self.backend.message("builtin_interfaces/msg/Time", sec=stamp // 10**9, nanosec=stamp % 10**9)
        return self.backend.message("std_msgs/msg/Header", stamp=moment, frame_id=frame)

    def raw(self, topic, message_type, stamp, data):
        self.types[topic] = message_type
        self.messages.append(BagMessage(topic, stamp, data))

    def add(self, topic, message_type, stamp, **fields):
        message = self.backend.message(message_type, **fields)
        self.raw(topic, message_type, stamp, self.backend.serialize(message, message_type))

    def joint_state(self, stamp, names, position, velocity, effort, topic="/joint_states", received=None):
        arrays = {"position": position, "velocity": velocity, "effort": effort}
        arrays = {key: np.asarray(value, dtype=float) for key, value in arrays.items()}
        self.add(topic, JOINT_STATE, received or stamp, header=self.header(stamp), name=list(names), **arrays)

    def wrench(self, stamp, frame, force, topic, received=None):
        values = {"force": force, "torque": (0, 0, 0)}
        vectors = {
            key: self.backend.message("geometry_msgs/msg/Vector3", x=float(x), y=float(y), z=float(z))
            for key, (x, y, z) in values.items()
        }
        wrench = self.backend.message("geometry_msgs/msg/Wrench", **vectors)
        self.add(topic, WRENCH_STAMPED, received or stamp, header=self.header(stamp, frame), wrench=wrench)

    def text(self, stamp, topic="/log"):
        self.add(topic, "std_msgs/msg/String", stamp, data="hello")
