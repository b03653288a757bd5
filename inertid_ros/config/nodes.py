"""Parameters of the nodes, and conditions under which they have an effect. This module works without ROS.

A script writes the pages in ``docs/reference`` from these parameters.
"""

from collections.abc import Iterator, Mapping

import attrs

from inertid_ros.core.worker import MAX_MEMORY_MB

from . import excitation as excitation_options
from .configuration import ABSENT, EFFECTS, GIVEN, Configuration, Effect
from .identification import RoundsOptions
from .option_fields import Option, named, option, options, section
from .recordings import STAMPS, BagWritingOptions, SampleTopics, TypedTopic
from .robot import RobotOptions
from .simulation import FaultOptions, LeggedRobotOptions, PerturbationOptions, SimulationOptions


@attrs.frozen
class SpeedScalingOptions:
    """Speed scaling that the robot's driver reports."""

    topic: str = option("speed_scaling_state_broadcaster/speed_scaling", "topic of std_msgs/Float64 with the speed"
        " scaling, if the driver has such a topic; may be empty")
    full: float = option(100.0, "value of the topic at full speed", 1e-6, 1e6)


@attrs.frozen
class ExcitationNodeOptions:
    """Parameters of the excitation node that are fixed while it runs."""

    urdf: str = option("", "URDF file; empty takes the topic robot_description")
    command_interface: str = option("joint_trajectory", "interface for commands to the robot",
        choices=("joint_trajectory", "follow_joint_trajectory", "position_stream"))
    controller: str = option("", "name of the trajectory controller: commands go to <controller>/joint_trajectory or"
        " <controller>/follow_joint_trajectory, and its state is read; empty: no prefix")
    speed_scaling: SpeedScalingOptions = section(SpeedScalingOptions)
    tick_s: float = option(0.005, "period of watchdog and sender [s]", 0.001, 0.02)
    realtime_priority: int = option(0, "SCHED_FIFO priority of the node, if the system allows it; 0 keeps the"
        " default scheduling", 0, 99)
    odometry: str = option("", "topic of nav_msgs/Odometry with the twist of a floating base, for monitor.base_speed"
        " and monitor.base_rate; may be empty")
    robot: RobotOptions = section(RobotOptions)


@attrs.frozen
class MotionOptions:
    """Parameters of the excitation node that may be changed while it is not armed."""

    require_recorder: bool = option(True, "refuse to move unless recorder/status reports that samples are being"
        " written")
    discovery_s: float = option(10.0, "longest wait of a goal until driver, recorder and controller are discovered and"
        " joint states are good [s]", 1.0, 60.0)
    start: tuple[float, ...] = option((), "pose where planned motions begin and end [rad or m]; empty takes the"
        " current pose", -1e6, 1e6, of=tuple[float, ...])
    limits: excitation_options.LimitOptions = section(excitation_options.LimitOptions)
    excitation: excitation_options.ExcitationOptions = section(excitation_options.ExcitationOptions)
    execution: excitation_options.ExecutionOptions = section(excitation_options.ExecutionOptions)
    monitor: excitation_options.MonitorOptions = section(excitation_options.MonitorOptions)


@attrs.frozen
class RecorderOptions(SampleTopics, BagWritingOptions):
    """Parameters of the recorder node."""

    directory: str = option("recordings", "directory for bags; each bag is a directory in it")
    write_bag: bool = option(True, "write a bag; batches are published in both cases")
    stamps: str = option("header", "time of samples: header stamps, or arrival (time of receipt, for empty headers)",
        choices=STAMPS)
    other_topics: Mapping[str, TypedTopic] = named(TypedTopic, "topics only written to the bag", "other_topic_names")
    reliability: str = option("reliable", "reliability of the subscriptions; best_effort accepts all publishers",
        choices=("reliable", "best_effort"))
    batch_period_s: float = option(0.5, "time between batches [s]", 0.02, 10.0)
    commit_period_s: float = option(0.05, "longest time until a sample is in the bag [s]", 0.01, 1.0)
    start_timeout_s: float = option(2.0, "a start without samples fails after this time [s]", 0.2, 60.0)
    max_gap_periods: float = option(4.0, "longer steps of the stamps are gaps [median steps]", 1.5, 1e3)
    tare_s: float = option(1.0, "duration of the mean for a tare [s]", 0.05, 60.0)
    tare_limit_n: float = option(50.0, "larger forces are loads and are not tared away [N]", 0.0, 1e6)
    contact_on_n: float = option(20.0, "a wrench carries load once its force exceeds this [N]", 0.0, 1e5)
    contact_off_n: float = option(10.0, "a wrench carries no load once its force is below this [N]", 0.0, 1e5)


@attrs.frozen
class IdentifierOptions:
    """Parameters of the identifier node, in addition to the configuration."""

    urdf: str = option("", "URDF file; empty takes the topic robot_description")
    output_directory: str = option("results", "directory for result directories; empty: results are not written")
    state_directory: str = option("", "directory for the last accepted result, which is published again after a"
        " restart; empty: it is not kept")
    automatic: bool = option(False, "identify every recording from the recorder as soon as it is complete")
    live_coverage: bool = option(True, "compute once a second which parameters the recording determines so far; takes"
        " about a hundredth of a core")
    keep_recordings: int = option(20, "recordings kept in memory; the oldest are dropped first", 1, 1000)
    timeout_s: float = option(600.0, "longest time for one identification [s]", 1.0, 1e5)
    memory_mb: int = option(MAX_MEMORY_MB, "address space of the solving process [MiB]; 0 sets no limit", 0, 10**7)


@attrs.frozen
class PayloadNodeOptions:
    """Defaults of the payload action; values of a goal take precedence."""

    frame: str = option("", "link that holds the payload, and frame of the result; empty takes the last moving link")
    duration_s: float = option(5.0, "duration of the joint states to use [s]", 0.5, 600.0)
    reference: tuple[str, ...] = option((), "recordings of the same session without payload: bags or npz files")
    largest_mass: float = option(0.0, "heavier payloads are refused [kg]; 0: no limit", 0.0, 1e6)
    reference_drift: float = option(0.03, "relative drift of friction from the reference to the payload", 0.0, 10.0)
    timeout_s: float = option(60.0, "longest time to solve after the measurement [s]", 1.0, 3600.0)


@attrs.frozen
class OnlineNodeOptions:
    """Parameters of the online node."""

    result: str = option("", "result directory of the calibrated robot; empty takes the directory in identifier/report")
    recordings: tuple[str, ...] = option((), "recordings of the robot as calibrated, whose residuals are the noise"
        " of the stream; empty takes the fitted recordings of the result, if they still exist")
    rate_hz: float = option(0.0, "rate of the joint states [Hz]; 0 measures it at the start", 0.0, 1e4)
    solve_period_s: float = option(0.5, "time between two sets of parameters [s]", 0.01, 600.0)
    time_constant_s: float = option(10.0, "time in which the weight of a sample falls to 1/e [s]; 0 keeps all",
        0.0, 1e6)
    window_s: float = option(0.0, "maximum age of samples, in place of time_constant_s [s]; 0: no limit", 0.0, 1e6)
    prior_spread: float = option(0.3, "allowed geodesic distance of bodies from the calibration", 1e-3, 100.0)
    drift: float = option(0.1, "relative drift of friction since the calibration that counts as no change", 0.0, 10.0)
    change_window_s: float = option(0.4, "window of joint states for the detection of changes [s]", 0.05, 60.0)
    false_alarms_per_hour: float = option(0.01, "largest expected number of false changes", 1e-9, 1e3)
    payload: PayloadNodeOptions = section(PayloadNodeOptions)


@attrs.frozen
class CalibrateOptions(RoundsOptions):
    """Parameters of the calibration sequence."""

    moved_by: str = option("excitation", "excitation: the excitation node moves the robot; robot: the robot moves by"
        " itself on request, see move_service", choices=("excitation", "robot"))
    move_service: str = option("simulator/move", "std_srvs/Trigger that makes the robot move by itself")
    moving_topic: str = option("simulator/moving", "latched std_msgs/Bool, true while the robot moves")
    plan: str = option("", "plan file of the motion that is fitted; empty lets the excitation node plan it")
    validation_plan: str = option("", "plan file of the held-out motion; empty lets the excitation node plan it")
    confirm: bool = option(False, "show each motion once it is planned, and wait for the service excitation/go")
    speed_scale: float = option(1.0, "factor on the speed of both motions", 0.01, 1.0)
    output_directory: str = option("", "result directory to write, or for several rounds a folder of result"
        " directories; empty takes the identifier's directory")
    tables: bool = option(True, "print the report as tables at the end, on a terminal")
    wait_s: float = option(20.0, "longest wait for the other nodes [s]", 1.0, 3600.0)


@attrs.frozen
class MeasurePayloadOptions:
    """Parameters of ``measure_payload``, which moves a robot to identify its payload."""

    frame: str = option("", "link that holds the payload, and frame of the result; empty: as the online node")
    duration_s: float = option(8.0, "duration of the motion, in place of excitation.duration_s, and of the joint states"
        " to use [s]", 1.0, 600.0)
    speed_scale: float = option(1.0, "factor on the speed of the motion", 0.01, 1.0)
    reference: tuple[str, ...] = option((), "recordings of the same session without payload; empty: as the online node")
    wait_s: float = option(20.0, "longest wait for the other nodes [s]", 1.0, 3600.0)


@attrs.frozen
class ReplayOptions:
    """Parameters of the replay node."""

    bag: str = option("", "bag directory or file to play")
    topics: tuple[str, ...] = option((), "topics to play; empty plays all")
    rate: float = option(1.0, "speed; 2 plays twice as fast", 0.01, 1000.0)
    clock_hz: float = option(100.0, "rate of /clock by the bag's time; 0: no /clock", 0.0, 1000.0)
    wait_s: float = option(10.0, "longest wait for a subscriber on every topic [s]; 0: no wait", minimum=0.0)
    record: bool = option(False, "start the recorder before the first message and stop it after the last")


@attrs.frozen
class SimulatorOptions:
    """Parameters of the simulator node, in addition to robot and simulation."""

    urdf: str = option("", "URDF file of the true robot; empty takes the Panda of example-robot-data, or if robot.base"
        " is free the space robot of this package")
    start: tuple[float, ...] = option((), "pose at the start [rad or m]; empty takes the middle of the limits",
        -1e6, 1e6, of=tuple[float, ...])
    state_hz: float = option(200.0, "rate of the joint states [Hz]", 1.0, 1000.0)
    controller: str = option("", "name of the trajectory controller: trajectories come on"
        " <controller>/joint_trajectory, and its state is published if control_msgs is installed; empty: no prefix and"
        " no state")
    publish_clock: bool = option(False, "publish the simulated time on /clock")
    perturb: bool = option(False, "publish a URDF with point masses as errors; false publishes the true URDF")
    perturbation_seed: int = option(0, "seed of these point masses", minimum=0)
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
        " to effort_commands, a topic of the simulator")
    autostart: bool = option(False, "configure and activate as soon as description, joint states and controller are"
        " available")
    parameters_hz: float = option(5.0, "rate of ~/parameters [Hz]", 0.1, 100.0)
    realtime_priority: int = option(0, "SCHED_FIFO priority of the node, if the system allows it; 0 keeps the"
        " default scheduling", 0, 99)
    control: excitation_options.EffortControlOptions = section(excitation_options.EffortControlOptions)
    robot: RobotOptions = section(RobotOptions)
    limits: excitation_options.LimitOptions = section(excitation_options.LimitOptions)
    monitor: excitation_options.StateMonitorOptions = section(excitation_options.StateMonitorOptions)


@attrs.frozen
class FeedForwardOptions:
    """Parameters of the feed-forward node, which are fixed while it runs."""

    urdf: str = option("", "URDF file; empty takes the topic robot_description")
    controller: str = option("", "name of the trajectory controller, which must command efforts; the node reads its"
        " command_interfaces")
    command_interface: str = option("joint_trajectory", "topic or action for trajectories; received under the node's"
        " name, and sent under the controller's name", choices=("joint_trajectory", "follow_joint_trajectory"))
    result: str = option("", "result directory of the calibrated robot, published on ~/parameters; empty: see"
        " parameters")
    parameters: str = option("identifier/parameters", "topic of the identified parameters")
    only_use: bool = option(False, "refuse parameters whose verdict is not 'use'")
    max_age_s: float = option(0.0, "trajectories are refused if the parameters are older [s]; 0: no limit", 0.0, 1e9)
    gravity: bool = option(True, "add the torque of gravity; false if the robot adds it to commanded efforts itself")
    step_s: float = option(0.02, "points are added between points that are further apart, since the controller"
        " interpolates efforts linearly [s]", 0.001, 1.0)
    robot: RobotOptions = section(RobotOptions)


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
    "feed_forward": ((FeedForwardOptions, ""),)}
"""Option classes of each node, each with the prefix of the keys of its parameters."""


def declared(node: str) -> Iterator[Option]:
    """All parameters of a node; keys of named elements contain ``<name>``."""
    for tree, prefix in NODES[node]:
        yield from options(tree, prefix)


_WITH_SEVERAL_TOPICS = dict.fromkeys(
    ("wrenches", "further_joint_states", "odometry", "pose", "twist", "imu", "commands", "controller_state"), GIVEN)

NODE_EFFECTS = (
    *EFFECTS,
    Effect("move_service moving_topic", {"moved_by": ("robot",)}),
    Effect("plan validation_plan confirm speed_scale", {"moved_by": ("excitation",)}),
    Effect("perturbation perturbation_seed", {"perturb": (True,)}),
    Effect("wanted_deviation least_gain", {"rounds": GIVEN}),
    Effect("tare_s tare_limit_n contact_on_n contact_off_n", {"wrenches": GIVEN}),
    Effect("max_wrench_gap_s", _WITH_SEVERAL_TOPICS),
    Effect("command_joints", {"commands": GIVEN}),
    Effect("time_constant_s", {"window_s": ABSENT}),
    Effect("legged_robot", {"legged_robot.robot": GIVEN}),
    Effect("urdf start controller simulation", {"legged_robot.robot": ABSENT}),
    Effect("fault.silent_plates fault.frozen_plates fault.reversed_plates", {"legged_robot.robot": GIVEN}),
    Effect("limits.effort limits.effort_fraction", {"control.effort_fraction": ()}),
    Effect("control.speed control.dead_zone control.friction_weight control.masses control.inside_links",
        {"control.law": ("natural", "pullback")}),
    Effect("parameters max_age_s", {"result": ABSENT}),
    Effect("odometry monitor.wheel_speed monitor.base_speed monitor.base_rate", {"robot.base": ("free",)}),
    Effect("monitor.base_speed monitor.base_rate", {"odometry": GIVEN}))
"""Parameters that have an effect only with certain other parameters."""
