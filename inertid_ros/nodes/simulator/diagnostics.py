"""The status of the simulator node; docs/reference/diagnostics.md describes it."""

import attrs

from inertid_ros.ros.diagnostics import WARN, Status, gravest

from .parameters import FaultOptions

_MUCH_S = 0.5  # behind the clock: the machine is too slow, and not merely busy for a moment


def robot_status(time_s: float, lost_s: float, faults: FaultOptions) -> Status:
    """How far the simulation is, by how much it fell behind the clock in all, and which faults it was asked for."""
    usual = attrs.asdict(FaultOptions())
    asked = ", ".join(f"fault.{name}" for name, value in attrs.asdict(faults).items() if value != usual[name])
    level, message = gravest(
        (WARN, asked and f"faults on request: {asked}"),
        (WARN, f"{lost_s:.1f} s behind the clock; take other work off this machine" if lost_s > _MUCH_S else ""),
        otherwise="simulating",
    )
    values = {"Simulated time (s)": time_s, "Lost time (s)": lost_s, "Faults": asked}
    return Status("robot", level, message, values)
