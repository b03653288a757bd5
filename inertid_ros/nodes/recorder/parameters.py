"""Parameters of the recorder node. They need no ROS: parameter files and documentation are made from them as well."""

from collections.abc import Mapping

import attrs

from inertid_ros.config.preparation import STAMPS
from inertid_ros.config.recording_topics import BagWritingOptions, BaseTopics, TypedTopic, WrenchTopic
from inertid_ros.config.schema import former_syntax
from inertid_ros.config.schema.option_fields import named, option

RELIABILITIES = ("reliable", "best_effort")


@attrs.frozen
class RecorderOptions(BaseTopics, BagWritingOptions):
    """Parameters of the recorder node."""

    directory: str = option("recordings", "where bags are written, a directory each")
    write_bag: bool = option(True, "write a bag; batches are published either way")
    further_joint_states: tuple[str, ...] = option(
        (), "topics of sensor_msgs/JointState of further joints, which are merged with those of joint_states"
    )
    stamps: str = option(
        "header", "time of samples: header stamps, or arrival where headers are empty: when they are received",
        choices=STAMPS,
    )
    joints: tuple[str, ...] = option((), "joints to take; empty takes those of the first message")
    wrenches: Mapping[str, WrenchTopic] = named(
        WrenchTopic, "topics of measured wrenches", "wrench_names", former=former_syntax.wrench_topics
    )
    other_topics: Mapping[str, TypedTopic] = named(
        TypedTopic, "topics only written to the bag", "other_topic_names", former=former_syntax.typed_topics
    )
    reliability: str = option("reliable", "of the subscriptions; best_effort takes any", choices=RELIABILITIES)
    batch_period_s: float = option(0.5, "time between batches [s]", minimum=0.02, maximum=10.0)
    commit_period_s: float = option(0.05, "longest time until a sample is in the bag [s]", minimum=0.01, maximum=1.0)
    start_timeout_s: float = option(2.0, "a start without samples fails after this time [s]", minimum=0.2, maximum=60.0)
    max_gap_periods: float = option(4.0, "longer steps of the stamps are gaps [median steps]", minimum=1.5, maximum=1e3)
    max_wrench_gap_s: float = option(
        0.05, "a joint state farther than this from a wrench or a sample of the base is left out [s]",
        minimum=0.001, maximum=1.0,
    )
    tare_s: float = option(1.0, "a tare is the mean of this long [s]", minimum=0.05, maximum=60.0)
    tare_limit_n: float = option(50.0, "more force than this is a load and is not tared away [N]", minimum=0.0,
                               maximum=1e6)
    contact_on_n: float = option(20.0, "a wrench carries load from where its force exceeds this [N]", minimum=0.0,
                                maximum=1e5)
    contact_off_n: float = option(10.0, "until it falls below this [N]", minimum=0.0, maximum=1e5)
