"""Statuses of the excitation node alone; docs/reference/diagnostics.md describes them."""

import numpy as np

from inertid_ros.excitation.execution.plan_check import is_full_speed
from inertid_ros.ros.diagnostics import ERROR, STALE, WARN, Status, gravest

from .parameters import ExcitationNodeOptions
from .robot_interface import RobotInterface
from .state_machine import State, StateMachine


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
