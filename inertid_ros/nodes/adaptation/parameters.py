"""Parameters of the adaptation node. They need no ROS: parameter files and documentation are made from them as well."""

import attrs

from inertid_ros.config.excitation import LimitOptions
from inertid_ros.config.execution import EffortControlOptions, StateMonitorOptions
from inertid_ros.config.robot import RobotOptions
from inertid_ros.config.schema.option_fields import option, section


@attrs.frozen
class AdaptationNodeOptions:
    """Parameters of the adaptation node, which are fixed while it runs."""

    urdf: str = option("", "URDF file; empty takes the topic robot_description")
    result: str = option(
        "", "result directory of a calibration: first estimate, and friction that is added to the torque; empty begins"
        " with the description, without friction",
    )
    controller: str = option(
        "",
        "name of the effort controller: efforts go to <controller>/commands; empty sends them to effort_commands,"
        " which the simulator takes",
    )
    autostart: bool = option(
        False, "configure and activate as soon as description, joint states and controller are there"
    )
    parameters_hz: float = option(5.0, "rate of ~/parameters [Hz]", minimum=0.1, maximum=100.0)
    realtime_priority: int = option(
        0, "SCHED_FIFO priority of the node, where the system allows it; 0 leaves the scheduling alone",
        minimum=0, maximum=99,
    )
    control: EffortControlOptions = section(EffortControlOptions)
    robot: RobotOptions = section(RobotOptions)
    limits: LimitOptions = section(LimitOptions)
    monitor: StateMonitorOptions = section(StateMonitorOptions)
