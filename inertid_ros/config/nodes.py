"""Parameters of the nodes, and which of them have an effect beside certain others only. No ROS is needed here.

The reference in ``docs/reference`` is made from them.
"""

from collections.abc import Iterator, Mapping

import attrs

from .configuration import ABSENT, EFFECTS, GIVEN, Configuration, Effect
from .excitation import (
    EffortControlOptions,
    ExcitationOptions,
    ExecutionOptions,
    LimitOptions,
    MonitorOptions,
    StateMonitorOptions,
)
from .identification import RoundsOptions
from .option_fields import Option, named, option, options, section
from .recordings import STAMPS, BagWritingOptions, SampleTopics, TypedTopic
from .robot import RobotOptions
from .simulation import FaultOptions, LeggedRobotOptions, PerturbationOptions, SimulationOptions


@attrs.frozen
class SpeedScalingOptions:
    """Where the robot's driver tells its speed scaling."""

    topic: str = option("speed_scaling_state_broadcaster/speed_scaling", "topic of std_msgs/Float64 with the speed"
        " scaling, where the driver has one; empty takes none")
    full: float = option(100.0, "its value at full speed", 1e-6, 1e6)


@attrs.frozen
class ExcitationNodeOptions:
    """Parameters of the excitation node that are fixed while it runs."""

    urdf: str = option("", "URDF file; empty takes the topic robot_description")
    command_interface: str = option("joint_trajectory", "how the robot is commanded",
        choices=("joint_trajectory", "follow_joint_trajectory", "position_stream"))
    controller: str = option("", "name of the trajectory controller: commands go to <controller>/joint_trajectory or"
        " <controller>/follow_joint_trajectory, and its state is read; empty leaves the prefix away")
    speed_scaling: SpeedScalingOptions = section(SpeedScalingOptions)
    tick_s: float = option(0.005, "period of watchdog and sender [s]", 0.001, 0.02)
    realtime_priority: int = option(0, "SCHED_FIFO priority of the node, where the system allows it; 0 leaves the"
        " scheduling alone", 0, 99)
    robot: RobotOptions = section(RobotOptions)


@attrs.frozen
class MotionOptions:
    """Parameters of the excitation node that may be changed while it is not armed."""

    require_recorder: bool = option(True, "refuse to move unless recorder/status reports that samples are being"
        " written")
    discovery_s: float = option(5.0, "longest wait of a goal until driver, recorder and controller are discovered and"
        " joint states are good [s]", 1.0, 60.0)
    start: tuple[float, ...] = option((), "pose where planned motions begin and end [rad or m]; empty is where the"
        " robot stands", -1e6, 1e6, of=float)
    limits: LimitOptions = section(LimitOptions)
    excitation: ExcitationOptions = section(ExcitationOptions)
    execution: ExecutionOptions = section(ExecutionOptions)
    monitor: MonitorOptions = section(MonitorOptions)


@attrs.frozen
class RecorderOptions(SampleTopics, BagWritingOptions):
    """Parameters of the recorder node."""

    directory: str = option("recordings", "where bags are written, a directory each")
    write_bag: bool = option(True, "write a bag; batches are published either way")
    stamps: str = option("header", "time of samples: header stamps, or arrival where headers are empty: when they are"
        " received", choices=STAMPS)
    other_topics: Mapping[str, TypedTopic] = named(TypedTopic, "topics only written to the bag", "other_topic_names")
    reliability: str = option("reliable", "of the subscriptions; best_effort takes any",
        choices=("reliable", "best_effort"))
    batch_period_s: float = option(0.5, "time between batches [s]", 0.02, 10.0)
    commit_period_s: float = option(0.05, "longest time until a sample is in the bag [s]", 0.01, 1.0)
    start_timeout_s: float = option(2.0, "a start without samples fails after this time [s]", 0.2, 60.0)
    max_gap_periods: float = option(4.0, "longer steps of the stamps are gaps [median steps]", 1.5, 1e3)
    tare_s: float = option(1.0, "a tare is the mean of this long [s]", 0.05, 60.0)
    tare_limit_n: float = option(50.0, "more force than this is a load and is not tared away [N]", 0.0, 1e6)
    contact_on_n: float = option(20.0, "a wrench carries load from where its force exceeds this [N]", 0.0, 1e5)
    contact_off_n: float = option(10.0, "until it falls below this [N]", 0.0, 1e5)


@attrs.frozen
class IdentifierOptions:
    """Parameters of the identifier node, beside those of the configuration."""

    urdf: str = option("", "URDF file; empty takes the topic robot_description")
    output_directory: str = option("results", "where result directories are written; empty writes none")
    state_directory: str = option("", "where the last accepted result is kept, which is published again after a"
        " restart; empty keeps none")
    automatic: bool = option(False, "identify every recording from the recorder as soon as it is complete")
    live_coverage: bool = option(True, "work out once a second what the recording so far determines, about a hundredth"
        " of a core")
    keep_recordings: int = option(20, "recordings kept in memory, the oldest go first", 1, 1000)
    timeout_s: float = option(600.0, "longest time for one identification [s]", 1.0, 1e5)
    memory_mb: int = option(8192, "address space of the solving process [MiB]; 0 sets no limit", 0, 10**7)


@attrs.frozen
class PayloadNodeOptions:
    """How the payload action identifies; what a goal gives goes before it."""

    frame: str = option("", "link that holds the payload, in whose frame it is; empty takes the last moving link")
    duration_s: float = option(5.0, "of the joint states that are taken [s]", 0.5, 600.0)
    reference: tuple[str, ...] = option((), "recordings of the same session without payload: bags or npz files")
    largest_mass: float = option(0.0, "a heavier payload is refused [kg]; 0 refuses none", 0.0, 1e6)
    reference_drift: float = option(0.03, "of friction from the reference to the payload, as a share of it", 0.0, 10.0)
    timeout_s: float = option(60.0, "longest time to solve after the measurement [s]", 1.0, 3600.0)


@attrs.frozen
class OnlineNodeOptions:
    """Parameters of the online node."""

    result: str = option("", "result directory of the calibrated robot; empty takes the one that identifier/report"
        " names")
    recordings: tuple[str, ...] = option((), "recordings of the robot as it was calibrated, whose residuals are the"
        " noise of the stream; empty takes those that the result was fitted to, where they still are")
    rate_hz: float = option(0.0, "of the joint states [Hz]; 0 measures it at the start", 0.0, 1e4)
    solve_period_s: float = option(0.5, "between two sets of parameters [s]", 0.01, 600.0)
    time_constant_s: float = option(10.0, "in which the weight of a sample falls to 1/e [s]; 0 forgets nothing",
        0.0, 1e6)
    window_s: float = option(0.0, "in place of it, time after which a sample counts no more [s]; 0 for none", 0.0, 1e6)
    prior_spread: float = option(0.3, "how far bodies may go from the calibration, as their geodesic distance",
        1e-3, 100.0)
    drift: float = option(0.1, "of friction since the calibration, as a share of it, that is no change", 0.0, 10.0)
    change_window_s: float = option(0.4, "of joint states in which a change is looked for [s]", 0.05, 60.0)
    false_alarms_per_hour: float = option(0.01, "largest expected number of changes that are none", 1e-9, 1e3)
    payload: PayloadNodeOptions = section(PayloadNodeOptions)


@attrs.frozen
class CalibrateOptions(RoundsOptions):
    """Parameters of the calibration sequence."""

    moved_by: str = option("excitation", "excitation: that node moves the robot; robot: it moves by itself when asked,"
        " see move_service", choices=("excitation", "robot"))
    move_service: str = option("simulator/move", "std_srvs/Trigger that makes the robot move by itself")
    moving_topic: str = option("simulator/moving", "latched std_msgs/Bool, true while it does")
    plan: str = option("", "plan file of the motion that is fitted; empty lets the excitation node plan it")
    validation_plan: str = option("", "plan file of the held-out motion; empty lets the excitation node plan it")
    confirm: bool = option(False, "show each motion once it is planned, and wait for the service excitation/go")
    speed_scale: float = option(1.0, "plays both motions slower", 0.01, 1.0)
    output_directory: str = option("", "result directory to write, of several rounds a folder with one each; empty"
        " leaves it to the identifier")
    tables: bool = option(True, "print the report as tables at the end, on a terminal")
    wait_s: float = option(20.0, "longest wait for the other nodes [s]", 1.0, 3600.0)


@attrs.frozen
class MeasurePayloadOptions:
    """Parameters of the flow that moves a robot to identify what it holds."""

    frame: str = option("", "link that holds the payload, in whose frame it is; empty takes the online node's")
    duration_s: float = option(8.0, "of the motion, in place of excitation.duration_s, and of the joint states that are"
        " taken [s]", 1.0, 600.0)
    speed_scale: float = option(1.0, "plays the motion slower", 0.01, 1.0)
    reference: tuple[str, ...] = option((), "recordings of the same session without payload; empty takes the online"
        " node's")
    wait_s: float = option(20.0, "longest wait for the other nodes [s]", 1.0, 3600.0)


@attrs.frozen
class ReplayOptions:
    """Parameters of the replay node."""

    bag: str = option("", "bag directory or file to play")
    topics: tuple[str, ...] = option((), "topics to play; empty plays all")
    rate: float = option(1.0, "speed; 2 plays twice as fast", 0.01, 1000.0)
    clock_hz: float = option(100.0, "rate of /clock by the bag's time; 0 publishes none", 0.0, 1000.0)
    wait_s: float = option(10.0, "longest wait for a subscriber on every topic [s]; 0 waits for none", minimum=0.0)
    record: bool = option(False, "start the recorder before the first message and stop it after the last")


@attrs.frozen
class SimulatorOptions:
    """Parameters of the simulator node, beside those of robot and simulation."""

    urdf: str = option("", "URDF file of the true robot; empty takes the Panda of example-robot-data")
    start: tuple[float, ...] = option((), "pose at the start [rad or m]; empty takes the middle of the limits",
        -1e6, 1e6, of=float)
    state_hz: float = option(200.0, "rate of the joint states [Hz]", 1.0, 1000.0)
    controller: str = option("", "name of the trajectory controller: trajectories come on"
        " <controller>/joint_trajectory, and where control_msgs is installed, its state is published; empty leaves the"
        " prefix and the state away")
    publish_clock: bool = option(False, "publish the simulated time on /clock")
    perturb: bool = option(False, "publish a URDF that is wrong by point masses; false publishes the truth")
    perturbation_seed: int = option(0, "of these point masses", minimum=0)
    perturbation: PerturbationOptions = section(PerturbationOptions)
    robot: RobotOptions = section(RobotOptions)
    simulation: SimulationOptions = section(SimulationOptions)
    legged_robot: LeggedRobotOptions = section(LeggedRobotOptions)


@attrs.frozen
class AdaptationNodeOptions:
    """Parameters of the adaptation node, which are fixed while it runs."""

    urdf: str = option("", "URDF file; empty takes the topic robot_description")
    result: str = option("", "result directory of a calibration: first estimate, and friction that is added to the"
        " torque; empty begins with the description, without friction")
    controller: str = option("", "name of the effort controller: efforts go to <controller>/commands; empty sends them"
        " to effort_commands, which the simulator takes")
    autostart: bool = option(False, "configure and activate as soon as description, joint states and controller are"
        " there")
    parameters_hz: float = option(5.0, "rate of ~/parameters [Hz]", 0.1, 100.0)
    realtime_priority: int = option(0, "SCHED_FIFO priority of the node, where the system allows it; 0 leaves the"
        " scheduling alone", 0, 99)
    control: EffortControlOptions = section(EffortControlOptions)
    robot: RobotOptions = section(RobotOptions)
    limits: LimitOptions = section(LimitOptions)
    monitor: StateMonitorOptions = section(StateMonitorOptions)


NODES: Mapping[str, tuple[tuple[type, str], ...]] = {
    "excitation": ((ExcitationNodeOptions, ""), (MotionOptions, "")),
    "recorder": ((RecorderOptions, ""),),
    "identifier": ((IdentifierOptions, ""), (Configuration, "")),
    "online": ((OnlineNodeOptions, ""),),
    "calibrate": ((CalibrateOptions, ""),),
    "measure_payload": ((MeasurePayloadOptions, ""),),
    "replay": ((ReplayOptions, ""),),
    "simulator": ((SimulatorOptions, ""), (FaultOptions, "fault.")),
    "adaptation": ((AdaptationNodeOptions, ""),),
}
"""Node to its trees of parameters, each with the prefix of its keys."""


def declared(node: str) -> Iterator[Option]:
    """Every parameter of a node; those of named elements with ``<name>`` in the key."""
    for tree, prefix in NODES[node]:
        yield from options(tree, prefix)


_WITH_BASE_OR_WRENCH = dict.fromkeys(("wrenches", "odometry", "pose", "twist", "imu"), GIVEN)

NODE_EFFECTS = (
    *EFFECTS,
    Effect("move_service moving_topic", {"moved_by": ("robot",)}),
    Effect("plan validation_plan confirm speed_scale", {"moved_by": ("excitation",)}),
    Effect("perturbation perturbation_seed", {"perturb": (True,)}),
    Effect("wanted_deviation least_gain", {"rounds": GIVEN}),
    Effect("tare_s tare_limit_n contact_on_n contact_off_n", {"wrenches": GIVEN}),
    Effect("max_wrench_gap_s", _WITH_BASE_OR_WRENCH),
    Effect("time_constant_s", {"window_s": ABSENT}),
    Effect("legged_robot", {"legged_robot.robot": GIVEN}),
    Effect("urdf start controller simulation", {"legged_robot.robot": ABSENT}),
    Effect("fault.silent_plates fault.frozen_plates fault.reversed_plates", {"legged_robot.robot": GIVEN}),
    Effect("limits.effort limits.effort_fraction", {"control.effort_fraction": ()}),
    Effect("control.speed control.dead_zone", {"control.law": ("natural", "pullback")}),
)
"""Parameters that have an effect beside certain others only."""
