"""Options of recordings: the topics that they are made of, how bags are written, and how samples are made from them."""

from collections.abc import Mapping

import attrs

from inertid_ros.core.errors import ConfigurationError

from .option_fields import REQUIRED, named, option, section

STAMPS = ("header", "arrival")
BASE_MOTION_SOURCES = ("pose", "twist", "imu", "acceleration")


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
class SampleTopics:
    """Topics beside that of the joint states that make samples."""

    odometry: str = option("", "topic of nav_msgs/Odometry: pose and twist of a free base; empty takes none")
    pose: str = option("", "topic of geometry_msgs/PoseStamped in place of odometry: the pose alone")
    twist: str = option("", "topic of geometry_msgs/TwistStamped in place of odometry: twist in the base's axes")
    imu: str = option("", "topic of sensor_msgs/Imu on a free base; empty takes none")
    further_joint_states: tuple[str, ...] = option((), "topics of sensor_msgs/JointState of further joints, which are"
        " merged with the first")
    joints: tuple[str, ...] = option((), "joints to take; messages with none of them are skipped. Empty: those of the"
        " first message")
    wrenches: Mapping[str, WrenchTopic] = named(WrenchTopic, "topics of measured wrenches", "wrench_names")
    max_wrench_gap_s: float = option(0.05, "a joint state farther than this from a wrench or a sample of the base on"
        " either side is left out [s]", 0.0, 10.0)

    def __attrs_post_init__(self) -> None:
        for name in ("pose", "twist"):
            if self.odometry and getattr(self, name):
                raise ConfigurationError(f"odometry and {name} both give the {name} of the base; set one")


@attrs.frozen
class RecordingTopics(SampleTopics):
    """Which topics of a bag make a recording."""

    joint_states: str = option("/joint_states", "topic of sensor_msgs/JointState")


@attrs.frozen(slots=False)  # a node combines them with other options
class BagWritingOptions:
    """Limits of a bag that is written while the robot moves."""

    min_free_mb: int = option(256, "refuse to record with less free space [MiB]", 0, 10**7)
    max_message_mb: int = option(4, "refuse larger messages [MiB]", 1, 1024)


@attrs.frozen
class BaseMotionOptions:
    """Where velocity and acceleration of a free base come from. Its pose is always the measured one."""

    motion_from: str = option("pose", "measured channel that velocity and acceleration of a free base come from: pose"
        " differentiates twice, twist once; imu takes both from the inertial measurement unit, and angular acceleration"
        " by differentiation; acceleration takes twist and acceleration as measured", choices=BASE_MOTION_SOURCES)
    imu_frame: str = option("", "frame of the robot in which the inertial measurement unit sits, fixed to the base;"
        " empty is the root link")


@attrs.frozen
class WrenchOptions:
    """How measured external wrenches are read and watched."""

    reversed: tuple[str, ...] = option((), "wrenches measured as what the robot does to its surroundings; their sign is"
        " turned")
    ignored: tuple[str, ...] = option((), "recorded wrenches that are not on the robot, such as an idle plate's")
    contact_on_n: float = option(20.0, "a plate carries load from where its force exceeds this [N]", 0.0, 1e5)
    contact_off_n: float = option(10.0, "until it falls below this [N]", 0.0, 1e5)
    max_slip_m_s: float = option(0.1, "a foot whose point of pressure moves faster than this over its plate slips, and"
        " is left out", 1e-3, 1e3)
    check: bool = option(True, "refuse wrenches that contradict the robot's weight: wrong sign, exchanged plates")

    def __attrs_post_init__(self) -> None:
        if self.contact_off_n > self.contact_on_n:
            raise ConfigurationError(f"contact_off_n is {self.contact_off_n:g}, above contact_on_n; lower it")


@attrs.frozen
class PrepareOptions:
    """How a recording becomes samples. The defaults suit recordings never seen before."""

    cutoff_hz: float = option(0.0, "cutoff of the low-pass on every channel [Hz]; 0 chooses one for all recordings of a"
        " result", 0.0, 1e4)
    filter_order: int = option(4, "order of the Butterworth low-pass, which runs forwards and backwards", 1, 10)
    rate_hz: float = option(0.0, "sample rate of the result [Hz]; 0 keeps 10 samples per period of the cutoff",
        0.0, 1e5)
    motion_from: str = option("position", "measured channel that velocity and acceleration come from: position"
        " differentiates twice, velocity once, acceleration takes both as measured",
        choices=("position", "velocity", "acceleration"))
    stamps: str = option("header", "time of the messages of a bag: header stamps, or arrival where headers are empty:"
        " when they were recorded", choices=STAMPS)
    skip_start_s: float = option(0.0, "cut from the start of every recording [s]", 0.0, 1e6)
    skip_end_s: float = option(0.0, "cut from the end of every recording [s]", 0.0, 1e6)
    max_gap_periods: float = option(4.0, "a break in the stamps splits the recording where it is longer than this many"
        " sample periods, a quarter of a period of the cutoff and a twentieth of one of the motion; shorter ones are"
        " bridged", 1.5, 1e3)
    edge_periods: float = option(1.0, "left out at the ends of each piece, where the filter settles, in periods of the"
        " cutoff", 0.0, 100.0)
    trim_transients: bool = option(False, "leave out a jerk at start-up or stop: ends that accelerate several times"
        " harder than all the rest; such ends excite inertia, so leave them out only where they bend or saturate the"
        " robot")
    low_speed_fraction: float = option(0.03, "share of a joint's fast speed below which it rests or hardly begins to"
        " slide; where that is most of what the filter mixes into a sample, its equations are left out", 0.0, 1.0)
    check_efforts: bool = option(True, "compare efforts with what the URDF predicts, and refuse or reject those with"
        " the wrong sign, unit, gravity, zero or order")
    base: BaseMotionOptions = section(BaseMotionOptions)
    wrenches: WrenchOptions = section(WrenchOptions)
