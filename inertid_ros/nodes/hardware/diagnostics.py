"""Statuses of every node that moves a robot; docs/reference/diagnostics.md describes them."""

from inertid_ros.config.execution import StateMonitorOptions
from inertid_ros.data.live.stream_watch import StreamReport
from inertid_ros.ros.diagnostics import ERROR, STALE, WARN, Status, gravest, stream_values

from .robot_states import RobotStates

_LATE_TICKS = 10.0  # ticks later than this is a process that was held up


def joint_states(robot: RobotStates, options: StateMonitorOptions) -> Status:
    """How the robot's joint states come."""
    report, (rejected, rejection) = robot.joint_states, robot.rejected
    names = robot.joint_names
    slow = wrong_clock = ""
    if report.rate_hz < options.min_rate_hz:
        slow = f"{report.rate_hz:.0f} Hz are below monitor.min_rate_hz {options.min_rate_hz:g}"
    if report.delay_s > options.max_age_s or report.delay_s < -options.max_future_s:
        wrong_clock = f"stamped {report.delay_s:.3f} s before now; check the clocks and use_sim_time"
    values = {
        **stream_values(report, names),
        "Rejected messages": rejected,
        "Minimum acceptable frequency (Hz)": options.min_rate_hz,
    }
    saturated = values["Saturated"]
    silent = "no joint states of the robot; start its driver, or remap joint_states" if report.silent else ""
    level, message = gravest(
        (ERROR, rejection),
        (STALE, silent),
        (ERROR, robot.several_publishers()),
        (ERROR, slow),
        (ERROR, wrong_clock),
        (WARN, "gaps between joint states; check the network and the load of the machine" if report.gaps else ""),
        (WARN, f"effort of {saturated} stays at its largest value; check for a collision" if saturated else ""),
        otherwise=f"{report.rate_hz:.0f} Hz",
    )
    return Status("joint states", level, message, values)


def timing(ticks: StreamReport, period: float) -> Status:
    """Whether the node keeps its period [s]."""
    late = ""
    if ticks.longest_step_s > _LATE_TICKS * period:
        late = f"the process was held up for {ticks.longest_step_s:.3f} s; take other work off this machine"
    level, message = gravest((WARN, late), otherwise=f"{ticks.rate_hz:.0f} Hz")
    values = {
        "Actual frequency (Hz)": ticks.rate_hz,
        "Expected frequency (Hz)": 1.0 / period,
        "Longest step (s)": ticks.longest_step_s,
    }
    return Status("timing", level, message, values)
