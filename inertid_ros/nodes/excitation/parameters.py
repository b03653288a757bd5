"""Parameters of the excitation node. They need no ROS: parameter files and documentation are made from them as well."""

import attrs

from inertid_ros.config.excitation import ExcitationOptions, LimitOptions
from inertid_ros.config.execution import ExecutionOptions, MonitorOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.config.schema.option_fields import option, section

COMMAND_INTERFACES = ("joint_trajectory", "follow_joint_trajectory", "position_stream")


@attrs.frozen
class SpeedScalingOptions:
    """Where the robot's driver tells its speed scaling."""

    topic: str = option(
        "speed_scaling_state_broadcaster/speed_scaling",
        "topic of std_msgs/Float64 with the speed scaling, where the driver has one; empty takes none",
    )
    full: float = option(100.0, "its value at full speed", minimum=1e-6, maximum=1e6)


@attrs.frozen
class ExcitationNodeOptions:
    """Parameters of the excitation node that are fixed while it runs."""

    urdf: str = option("", "URDF file; empty takes the topic robot_description")
    command_interface: str = option(
        "joint_trajectory", "how the robot is commanded", choices=COMMAND_INTERFACES
    )
    controller: str = option(
        "",
        "name of the trajectory controller: commands go to <controller>/joint_trajectory or"
        " <controller>/follow_joint_trajectory, and its state is read; empty leaves the prefix away",
    )
    speed_scaling: SpeedScalingOptions = section(SpeedScalingOptions)
    tick_s: float = option(0.005, "period of watchdog and sender [s]", minimum=0.001, maximum=0.02)
    realtime_priority: int = option(
        0, "SCHED_FIFO priority of the node, where the system allows it; 0 leaves the scheduling alone",
        minimum=0, maximum=99,
    )
    robot: RobotOptions = section(RobotOptions)


@attrs.frozen
class MotionOptions:
    """Parameters of the excitation node that may be changed while it is not armed."""

    require_recorder: bool = option(
        True, "refuse to move unless recorder/status reports that samples are being written"
    )
    discovery_s: float = option(
        5.0, "longest wait of a goal until driver, recorder and controller are discovered [s]",
        minimum=1.0, maximum=60.0,
    )
    start: tuple[float, ...] = option(
        (), "pose where planned motions begin and end [rad or m]; empty is where the robot stands", of=float,
        minimum=-1e6, maximum=1e6,
    )
    limits: LimitOptions = section(LimitOptions)
    excitation: ExcitationOptions = section(ExcitationOptions)
    execution: ExecutionOptions = section(ExecutionOptions)
    monitor: MonitorOptions = section(MonitorOptions)
