"""Options of recordings: the topics that they are made of, and how bags are written."""

from collections.abc import Mapping

import attrs

from inertid_ros.config.schema import former_syntax
from inertid_ros.config.schema.option_fields import REQUIRED, named, option
from inertid_ros.core.errors import ConfigurationError


@attrs.frozen
class WrenchTopic:
    """A topic of measured wrenches."""

    topic: str = option(REQUIRED, "topic of geometry_msgs/WrenchStamped", of=str)
    frame: str = option("", "name of the wrench in recordings; empty takes the frame_id of the messages")


@attrs.frozen
class TypedTopic:
    """A topic of any type."""

    topic: str = option(REQUIRED, "topic that is only written to the bag", of=str)
    type: str = option(REQUIRED, "its type, such as sensor_msgs/msg/Image", of=str)


@attrs.frozen
class BaseTopics:
    """Topics of the motion of a free base."""

    odometry: str = option("", "topic of nav_msgs/Odometry: pose and twist of a free base; empty takes none")
    pose: str = option("", "topic of geometry_msgs/PoseStamped in place of odometry: the pose alone")
    twist: str = option("", "topic of geometry_msgs/TwistStamped in place of odometry: twist in the base's axes")
    imu: str = option("", "topic of sensor_msgs/Imu on a free base; empty takes none")

    def __attrs_post_init__(self) -> None:
        if self.odometry and self.pose:
            raise ConfigurationError("odometry and pose both give the pose of the base; set one")
        if self.odometry and self.twist:
            raise ConfigurationError("odometry and twist both give the twist of the base; set one")


@attrs.frozen
class RecordingTopics(BaseTopics):
    """Which topics of a bag make a recording."""

    joint_states: str = option("/joint_states", "topic of sensor_msgs/JointState")
    further_joint_states: tuple[str, ...] = option(
        (), "topics of sensor_msgs/JointState of further joints, which are merged with the first"
    )
    joints: tuple[str, ...] = option(
        (), "joints to take; messages with none of them are skipped. Empty: those of the first message"
    )
    wrenches: Mapping[str, WrenchTopic] = named(
        WrenchTopic, "topics of measured wrenches", "wrench_names", former=former_syntax.wrench_topics
    )
    max_wrench_gap_s: float = option(
        0.05, "a joint state farther than this from a wrench or a sample of the base on either side is left out [s]",
        minimum=0.0, maximum=10.0,
    )


@attrs.frozen(slots=False)  # a node combines them with other options
class BagWritingOptions:
    """Limits of a bag that is written while the robot moves."""

    min_free_mb: int = option(256, "refuse to record with less free space [MiB]", minimum=0, maximum=10**7)
    max_message_mb: int = option(4, "refuse larger messages [MiB]", minimum=1, maximum=1024)
