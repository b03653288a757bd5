"""Statuses of the adaptation node alone; docs/reference/diagnostics.md describes them."""

import numpy as np

from inertid_ros.adaptation.execution.controlled_arm import ControlledArm
from inertid_ros.ros.diagnostics import ERROR, STALE, WARN, Status, gravest

from .arm_interface import ArmInterface


def motion(arm: ControlledArm | None, refused: str) -> Status:
    """What the arm does, and why it was stopped; ``refused`` is why the last reference was, or empty."""
    fault = arm.fault if arm is not None else ""
    at_rest = "not in control" if arm is None else arm.stage.value
    level, message = gravest((ERROR, fault), (WARN, refused), otherwise=at_rest)
    rejected = sum(arm.monitor.counts.rejected.values()) if arm is not None else None
    values = {
        "State": at_rest,
        "Accepts references": arm is not None and arm.accepts,
        "Tracking error (rad or m)": None if arm is None else float(np.abs(arm.error).max()),
        "Largest tracking error (rad or m)": None if arm is None else arm.largest_error,
        "Joint states rejected": rejected,
    }
    return Status("motion", level, message, values)


def controller(robot: ArmInterface, in_control: bool) -> Status:
    """Whether efforts arrive. Without a controller nothing is wrong until the node is in control."""
    problem = robot.commands.problem() or robot.controller_problem()
    unknown = "" if robot.name else "no robot description"
    level, message = gravest(
        (STALE, unknown), (ERROR if in_control else WARN, problem), otherwise="commands arrive"
    )
    values = {"Topic": robot.commands.name, "Discovered": robot.commands.has_controller}
    return Status("controller", level, message, values)


def parameters(arm: ControlledArm | None, first_mass: float) -> Status:
    """How far the estimate has gone from the first."""
    mass = float(arm.controller.bodies[:, 0].sum()) if arm is not None else None
    values = {
        "Mass (kg)": mass,
        "Added mass (kg)": None if mass is None else mass - first_mass,
        "At their effort limit": None if arm is None else int(arm.controller.saturated.sum()),
    }
    held = "they adapt" if arm is not None and arm.accepts else "they are held"
    level, message = gravest((STALE, "" if arm is not None else "not in control"), otherwise=held)
    return Status("parameters", level, message, values)
