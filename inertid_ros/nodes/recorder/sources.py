"""Which topics the recorder takes, from its parameters."""

from collections.abc import Callable
from dataclasses import dataclass

from inertid_ros.core.errors import InertidError
from inertid_ros.data.messages import IMU, JOINT_STATE, ODOMETRY, POSE_STAMPED, TWIST_STAMPED, WRENCH_STAMPED

from .parameters import RecorderOptions


@dataclass(frozen=True)
class Source:
    """A topic that is recorded.

    Attributes
    ----------
    name : str
        Resolved.
    type : str
        ``PACKAGE/msg/NAME``.
    frame : str
        Of its wrench; empty takes that of each message.
    of_base : bool
        Whether it measures the motion of a free base.
    """

    name: str
    type: str
    frame: str = ""
    of_base: bool = False


def sources(options: RecorderOptions, resolve: Callable[[str], str]) -> list[Source]:
    """Joint states first, then wrenches, then the motion of a free base, then topics that are only written.

    Parameters
    ----------
    options : RecorderOptions
    resolve : callable
        Full name of a topic, after namespace and remapping.

    Raises
    ------
    InertidError
        Two topics are to give the pose or the twist of the base.
    """
    if options.odometry and options.pose:
        raise InertidError("odometry and pose both give the pose of the base; set one")
    if options.odometry and options.twist:
        raise InertidError("odometry and twist both give the twist of the base; set one")
    recorded = [Source(resolve("joint_states"), JOINT_STATE)]
    for entry in options.wrenches:
        topic, _, frame = entry.partition("=")
        recorded.append(Source(resolve(topic), WRENCH_STAMPED, frame))
    of_base = {ODOMETRY: options.odometry, POSE_STAMPED: options.pose, TWIST_STAMPED: options.twist, IMU: options.imu}
    for message_type, topic in of_base.items():
        if topic:
            recorded.append(Source(resolve(topic), message_type, of_base=True))
    for entry in options.other_topics:
        topic, _, message_type = entry.partition("=")
        recorded.append(Source(resolve(topic), message_type))
    return recorded
