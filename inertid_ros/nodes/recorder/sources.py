"""Which topics the recorder takes, from its parameters."""

from collections.abc import Callable
from dataclasses import dataclass

from inertid_ros.data.messages import JOINT_STATE, WRENCH_STAMPED, base_topics

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
    """
    joint_states = ("joint_states", *options.further_joint_states)
    recorded = [Source(resolve(topic), JOINT_STATE) for topic in joint_states]
    for wrench in options.wrenches.values():
        recorded.append(Source(resolve(wrench.topic), WRENCH_STAMPED, wrench.frame))
    for topic, message_type in base_topics(options).items():
        recorded.append(Source(resolve(topic), message_type, of_base=True))
    for other in options.other_topics.values():
        recorded.append(Source(resolve(other.topic), other.type))
    return recorded
