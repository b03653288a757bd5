"""The statuses of the excitation node; docs/reference/diagnostics.md describes them."""

import numpy as np

from inertid_ros.config.execution import MonitorOptions
from inertid_ros.data.live.stream_watch import StreamReport
from inertid_ros.excitation.execution.plan_check import is_full_speed
from inertid_ros.ros.diagnostics import ERROR, STALE, WARN, Status, gravest, stream_values

from .parameters import ExcitationNodeOptions
from .robot_interface import RobotInterface
from .state_machine import State, StateMachine

_LATE_TICKS = 10.0  # ticks later than this is a process that was held up


def motion(machine: StateMachine, now: float) -> Status:
    """What the node does, and why it stopped last; ``now`` is the steady clock [s]."""
    supervisor = machine.supervisor
    progress = supervisor.progress(now) if supervisor is not None else None
    fault = supervisor.fault if supervisor is not None else ""
    latched = machine.message if machine.state is State.FAULT else ""
    level, message = gravest((ERROR, latched), (ERROR, fault), otherwise=machine.message)
    rejected = sum(supervisor.monitor.counts.rejected.values()) if supervisor is not None else None
    values = {
        "State": machine.state.value,
        "Done (%)": None if progress is None else 100.0 * float(progress.fraction),
        "Largest tracking error (rad or m)": None if progress is None else float(np.abs(progress.tracking_error).max()),
        "Joint states rejected in motion": rejected,
        "Last fault": fault or machine.last_fault,
    }
    return Status("motion", level, message, values)


def joint_states(robot: RobotInterface, options: MonitorOptions) -> Status:
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


def controller(robot: RobotInterface, options: ExcitationNodeOptions, armed: bool) -> Status:
    """Whether commands arrive. Without a controller nothing is wrong until the node is armed."""
    configured, scaling = robot.is_configured, robot.speed_scaling
    problem = robot.controller_problem() if configured else ""
    scaled = "" if is_full_speed(scaling) else f"speed scaling is {100 * scaling:.0f} %; set it to 100 %"
    level, message = gravest(
        (STALE, "" if configured else "not configured"),
        (ERROR if armed else WARN, problem),
        (WARN, scaled),
        otherwise="commands arrive",
    )
    values = {
        "Command interface": options.command_interface,
        "Topic or action": robot.commander.name if configured else None,
        "Discovered": robot.has_controller,
        "Path tolerance (rad or m)": robot.controller_tolerance,
        "Speed scaling (%)": 100.0 * scaling,
    }
    return Status("controller", level, message, values)


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
