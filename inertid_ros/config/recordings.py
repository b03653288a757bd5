"""Options of recordings: topics, writing of bags, and preparation of samples."""

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
    """A topic that is recorded but not used, with its type."""

    topic: str = option(REQUIRED, "topic that is only written to the bag", of=str)
    type: str = option(REQUIRED, "its type, such as sensor_msgs/msg/Image", of=str)


@attrs.frozen
class SampleTopics:
    """Topics of samples, in addition to the joint states."""

    odometry: str = option("", "topic of nav_msgs/Odometry: pose and twist of a free base; may be empty")
    pose: str = option("", "topic of geometry_msgs/PoseStamped, instead of the odometry topic: only the pose")
    twist: str = option("", "topic of geometry_msgs/TwistStamped, instead of the odometry topic: twist in the base's"
        " axes")
    imu: str = option("", "topic of sensor_msgs/Imu on a free base; may be empty")
    further_joint_states: tuple[str, ...] = option((), "further topics of sensor_msgs/JointState, which are merged with"
        " the main topic")
    joints: tuple[str, ...] = option((), "joints to use; a message that has none of them is skipped; empty takes the"
        " joints of the first message")
    wrenches: Mapping[str, WrenchTopic] = named(WrenchTopic, "topics of measured wrenches", "wrench_names")
    commands: str = option("", "topic of sensor_msgs/JointState with the commands to the joints, for robot.effort"
        " position_command; may be empty")
    command_joints: tuple[str, ...] = option((), "joints of the values on the topic commands, if its type is"
        " std_msgs/Float64MultiArray: the parameter joints of the controller, by the names of joint_states")
    controller_state: str = option("", "topic of control_msgs/JointTrajectoryControllerState, whose reference is the"
        " command, instead of the topic commands; may be empty")
    max_wrench_gap_s: float = option(0.05, "a joint state is left out if the last or next wrench or base sample is"
        " farther away than this [s]", 0.0, 10.0)

    def __attrs_post_init__(self) -> None:
        for name in ("pose", "twist"):
            if self.odometry and getattr(self, name):
                raise ConfigurationError(f"odometry and {name} both give the {name} of the base; set only one of them")
        if self.commands and self.controller_state:
            raise ConfigurationError("commands and controller_state both give the commands; set only one of them")


@attrs.frozen
class RecordingTopics(SampleTopics):
    """Topics of a bag for a recording."""

    joint_states: str = option("/joint_states", "topic of sensor_msgs/JointState")


@attrs.frozen(slots=False)  # a class cannot inherit from two classes with slots, see RecorderOptions
class BagWritingOptions:
    """Limits of a bag that is written while the robot moves."""

    min_free_mb: int = option(256, "refuse to record with less free space [MiB]", 0, 10**7)
    max_message_mb: int = option(4, "refuse larger messages [MiB]", 1, 1024)


@attrs.frozen
class BaseMotionOptions:
    """Source of velocity and acceleration of a free base. Its pose is always measured."""

    motion_from: str = option("pose", "measured channel for velocity and acceleration of a free base: pose"
        " (differentiated twice), twist (differentiated once), imu (inertial measurement unit; angular acceleration by"
        " differentiation), or acceleration (twist and acceleration as measured)", choices=BASE_MOTION_SOURCES)
    imu_frame: str = option("", "frame of the inertial measurement unit, fixed to the base; empty takes the root link")


@attrs.frozen
class WrenchOptions:
    """Reading and checks of measured external wrenches."""

    reversed: tuple[str, ...] = option((), "names of the recorded wrenches that the robot exerts on its"
        " surroundings; their sign is reversed")
    ignored: tuple[str, ...] = option((), "names of recorded wrenches that do not act on the robot, such as from an"
        " idle plate")
    contact_on_n: float = option(20.0, "a plate carries load once its force exceeds this [N]", 0.0, 1e5)
    contact_off_n: float = option(10.0, "a plate carries no load once its force is below this [N]", 0.0, 1e5)
    max_slip_m_s: float = option(0.1, "a foot slips and is left out if its centre of pressure moves faster than this"
        " over its plate", 1e-3, 1e3)
    check: bool = option(True, "refuse wrenches that contradict the robot's weight: wrong sign, exchanged plates")

    def __attrs_post_init__(self) -> None:
        if self.contact_off_n > self.contact_on_n:
            raise ConfigurationError(f"contact_off_n is {self.contact_off_n:g}, above contact_on_n; lower it")


@attrs.frozen
class PrepareOptions:
    """Preparation of samples from a recording. The defaults suit unknown recordings."""

    cutoff_hz: float = option(0.0, "cutoff of the low-pass on every channel [Hz]; 0 chooses one for all recordings of a"
        " result", 0.0, 1e4)
    filter_order: int = option(4, "order of the Butterworth low-pass, which runs forwards and backwards", 1, 10)
    rate_hz: float = option(0.0, "sample rate of the result [Hz]; 0 keeps 10 samples per period of the cutoff",
        0.0, 1e5)
    motion_from: str = option("position", "measured channel for velocity and acceleration: position (differentiated"
        " twice), velocity (differentiated once), or acceleration (both as measured)",
        choices=("position", "velocity", "acceleration"))
    stamps: str = option("header", "time of the messages of a bag: header stamps, or arrival (time of recording, for"
        " empty headers)", choices=STAMPS)
    skip_start_s: float = option(0.0, "time cut from the start of every recording [s]", 0.0, 1e6)
    skip_end_s: float = option(0.0, "time cut from the end of every recording [s]", 0.0, 1e6)
    max_gap_periods: float = option(4.0, "a gap in the stamps splits the recording if it is longer than the longest"
        " of three times: this many sample periods, a quarter of a period of the cutoff, and a twentieth of a period of"
        " the fastest motion; shorter gaps are bridged", 1.5, 1e3)
    edge_periods: float = option(1.0, "time left out at the ends of each piece, where the filter settles, in periods of"
        " the cutoff", 0.0, 100.0)
    trim_transients: bool = option(False, "leave out a jerk at start-up or stop: the ends of a recording, if they"
        " have several times the acceleration of its middle; such ends excite inertia, so leave them out only if they"
        " bend or saturate the robot")
    low_speed_fraction: float = option(0.03, "share of a joint's fast speed (99th percentile) below which the joint"
        " counts as resting; its equation is left out at samples that the filter mixes mostly from rest", 0.0, 1.0)
    check_efforts: bool = option(True, "compare efforts with the prediction of the URDF; refuse the recording or"
        " reject the result if sign, unit, gravity, zero position or order of joints is wrong")
    base: BaseMotionOptions = section(BaseMotionOptions)
    wrenches: WrenchOptions = section(WrenchOptions)
