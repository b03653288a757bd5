"""Parameters of the nodes. They need no ROS: configuration files and documentation are made from them as well."""

from dataclasses import dataclass, field

from inertid_ros.config.configuration import RobotOptions
from inertid_ros.config.excitation import KINDS, ExcitationOptions, ExecutionOptions, LimitOptions, MonitorOptions
from inertid_ros.config.options import option
from inertid_ros.config.simulation import SimulationOptions
from inertid_ros.config.standing_simulation import StandingOptions
from inertid_ros.robot.perturbation import PerturbationOptions

RELIABILITIES = ("reliable", "best_effort")
COMMAND_INTERFACES = ("joint_trajectory", "follow_joint_trajectory", "position_stream")


@dataclass(frozen=True)
class RecorderOptions:
    """Parameters of the recorder node."""

    directory: str = option("recordings", "where bags are written, a directory each")
    write_bag: bool = option(True, "write a bag; batches are published either way")
    joints: tuple[str, ...] = option((), "joints to take; empty takes those of the first message")
    wrenches: tuple[str, ...] = option((), "wrench topics, each TOPIC or TOPIC=FRAME (else the messages' frame_id)")
    odometry: str = option("", "topic of nav_msgs/Odometry: pose and twist of a free base; empty takes none")
    pose: str = option("", "topic of geometry_msgs/PoseStamped in place of odometry: the pose alone")
    twist: str = option("", "topic of geometry_msgs/TwistStamped in place of odometry: twist in the base's axes")
    imu: str = option("", "topic of sensor_msgs/Imu on a free base; empty takes none")
    other_topics: tuple[str, ...] = option((), "topics only written to the bag, each TOPIC=PACKAGE/msg/TYPE")
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
    tare_limit_n: float = option(50.0, "more force than this is a load and is not tared away [N]", minimum=0.0)
    contact_on_n: float = option(20.0, "a wrench carries load from where its force exceeds this [N]", minimum=0.0)
    contact_off_n: float = option(10.0, "until it falls below this [N]", minimum=0.0)
    min_free_mb: int = option(256, "refuse to record with less free space [MiB]", minimum=0, maximum=10**7)
    max_message_mb: int = option(4, "refuse larger messages [MiB]", minimum=1, maximum=1024)


@dataclass(frozen=True)
class IdentifierOptions:
    """Parameters of the identifier node, beside those of the configuration."""

    urdf: str = option("", "URDF file; empty takes the topic robot_description")
    output_directory: str = option("results", "where result directories are written; empty writes none")
    automatic: bool = option(False, "identify every recording from the recorder as soon as it is complete")
    keep_recordings: int = option(20, "recordings kept in memory, the oldest go first", minimum=1, maximum=1000)
    timeout_s: float = option(600.0, "longest time for one identification [s]", minimum=1.0, maximum=1e5)
    memory_mb: int = option(0, "address space of the solving process [MiB]; 0 sets no limit", minimum=0, maximum=10**7)


@dataclass(frozen=True)
class ReplayOptions:
    """Parameters of the replay node."""

    bag: str = option("", "bag directory or file to play")
    topics: tuple[str, ...] = option((), "topics to play; empty plays all")
    rate: float = option(1.0, "speed; 2 plays twice as fast", minimum=0.01, maximum=1000.0)
    clock_hz: float = option(100.0, "rate of /clock by the bag's time; 0 publishes none", minimum=0.0, maximum=1000.0)
    wait_s: float = option(10.0, "longest wait for a subscriber on every topic [s]; 0 waits for none", minimum=0.0)
    record: bool = option(False, "start the recorder before the first message and stop it after the last")


@dataclass(frozen=True)
class FaultOptions:
    """Faults of the simulated robot's joint states and of the plates below it; may be changed while it runs."""

    silent: bool = option(False, "report nothing")
    frozen: bool = option(False, "repeat the last values with fresh stamps")
    not_finite: bool = option(False, "report NaN")
    delay_s: float = option(0.0, "report every state this late [s]", minimum=0.0, maximum=10.0)
    drop: float = option(0.0, "share of states that are lost", minimum=0.0, maximum=1.0)
    stamp_offset_s: float = option(0.0, "added to every stamp [s]", minimum=-1e9, maximum=1e9)
    silent_plates: tuple[str, ...] = option((), "force plates that report nothing")
    frozen_plates: tuple[str, ...] = option((), "force plates that repeat their last values with fresh stamps")
    reversed_plates: tuple[str, ...] = option((), "force plates that report what the robot does to them")


@dataclass(frozen=True)
class SimulatorOptions:
    """Parameters of the simulator node, beside those of robot and simulation."""

    urdf: str = option("", "URDF file of the true robot; empty takes the Panda of example-robot-data")
    start: tuple[float, ...] = option((), "pose at the start [rad or m]; empty takes the middle of the limits")
    state_hz: float = option(200.0, "rate of the joint states [Hz]", minimum=1.0, maximum=1000.0)
    publish_clock: bool = option(False, "publish the simulated time on /clock")
    perturb: bool = option(False, "publish a URDF that is wrong by point masses; false publishes the truth")
    perturbation_seed: int = option(0, "of these point masses", minimum=0)
    perturbation: PerturbationOptions = field(default_factory=PerturbationOptions)
    robot: RobotOptions = field(default_factory=RobotOptions)
    simulation: SimulationOptions = field(default_factory=SimulationOptions)
    standing: StandingOptions = field(default_factory=StandingOptions)


@dataclass(frozen=True)
class ExcitationNodeOptions:
    """Parameters of the excitation node that are fixed while it runs."""

    urdf: str = option("", "URDF file; empty takes the topic robot_description")
    command_interface: str = option(
        "joint_trajectory", "how the robot is commanded", choices=COMMAND_INTERFACES
    )
    tick_s: float = option(0.005, "period of watchdog and sender [s]", minimum=0.001, maximum=0.02)
    realtime_priority: int = option(
        0, "SCHED_FIFO priority of the node, where the system allows it; 0 leaves the scheduling alone",
        minimum=0, maximum=99,
    )
    robot: RobotOptions = field(default_factory=RobotOptions)


@dataclass(frozen=True)
class MotionOptions:
    """Parameters of the excitation node that may be changed between motions."""

    require_recorder: bool = option(True, "refuse to move unless recorder/status says that samples are being written")
    start: tuple[float, ...] = option(
        (), "pose where planned motions begin and end [rad or m]; empty is where the robot stands"
    )
    limits: LimitOptions = field(default_factory=LimitOptions)
    excitation: ExcitationOptions = field(default_factory=ExcitationOptions)
    execution: ExecutionOptions = field(default_factory=ExecutionOptions)
    monitor: MonitorOptions = field(default_factory=MonitorOptions)


@dataclass(frozen=True)
class CalibrateOptions:
    """Parameters of the calibration flow."""

    moved_by: str = option(
        "excitation", "excitation: that node moves the robot; robot: it moves by itself when asked, see move_service",
        choices=("excitation", "robot"),
    )
    move_service: str = option("simulator/move", "std_srvs/Trigger that makes the robot move by itself")
    moving_topic: str = option("simulator/moving", "latched std_msgs/Bool, true while it does")
    motion: str = option("fourier", "kind of the motion that is fitted", choices=KINDS)
    duration_s: float = option(0.0, "of that motion [s]; 0 takes the excitation node's", minimum=0.0, maximum=600.0)
    seed: int = option(1, "of that motion", minimum=0)
    validation_motion: str = option("fourier", "kind of the held-out motion", choices=KINDS)
    validation_duration_s: float = option(
        0.0, "of the held-out motion [s]; 0 takes the excitation node's", minimum=0.0, maximum=600.0
    )
    validation_seed: int = option(2, "of the held-out motion", minimum=0)
    rounds: int = option(
        1, "motions at most: each but the first asks for what the data so far left open", minimum=1, maximum=100
    )
    wanted_deviation: float = option(
        0.0,
        "rounds end when torque anywhere in the range is known to this share of it, in the least known joint; 0 never",
        minimum=0.0, maximum=10.0,
    )
    least_gain: float = option(
        0.1, "rounds end when one has lowered that deviation by less than this share", minimum=0.0, maximum=0.99
    )
    speed_scale: float = option(1.0, "plays both motions slower", minimum=0.01, maximum=1.0)
    output_directory: str = option(
        "", "result directory to write, of several rounds a folder with one each; empty leaves it to the identifier"
    )
    tables: bool = option(True, "print the report as tables at the end")
    wait_s: float = option(20.0, "longest wait for the other nodes [s]", minimum=1.0, maximum=3600.0)
