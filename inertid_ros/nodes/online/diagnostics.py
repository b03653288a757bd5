"""The statuses of the online node; docs/reference/diagnostics.md describes them."""

import math
from collections import Counter

from inertid_ros.adaptation.online.online_identification import OnlineEstimate
from inertid_ros.adaptation.online.stream_checks import StreamFault
from inertid_ros.data.live.stream_watch import StreamReport
from inertid_ros.ros.diagnostics import ERROR, STALE, WARN, Status, gravest, stream_values
from inertid_ros.ros.online_messages import describe_change

from .following import Following

_LATE_S, _EARLY_S = 1.0, -0.01  # no network delays that much; clocks differ


def joint_states(following: Following | None, report: StreamReport) -> Status:
    """How the joint states come, and why some were not used."""
    names = following.result.model.joint_names if following is not None else ()
    robot = following.robot if following is not None else None
    values = {
        **stream_values(report, names),
        "Rejected messages": following.rejected if following is not None else None,
        "Filter restarts": robot.filter.restarts if robot is not None else None,
        "Filter delay (s)": robot.filter.delay if robot is not None else None,
        "Last fault": following.last_fault if following is not None else None,
        "Fault counts": _counts(robot.faults) if robot is not None else None,
    }
    wrong_clock, others = "", following.others if following is not None else ""
    silent = others or "no joint states of the robot; start its driver, or remap joint_states"
    if report.delay_s > _LATE_S or report.delay_s < _EARLY_S:
        wrong_clock = f"stamped {report.delay_s:.3f} s before now; check the clocks and use_sim_time"
    level, message = gravest(
        (STALE, silent if report.silent else ""),
        (ERROR, following.problem if following is not None else ""),
        (WARN, wrong_clock),
        (WARN, "gaps between joint states; check the network and the load of the machine" if report.gaps else ""),
        otherwise=f"{report.rate_hz:.0f} Hz",
    )
    return Status("joint states", level, message, values)


def _counts(faults: Counter[StreamFault]) -> str:
    """How often each fault came, such as ``"pause 3, clock 1"``; the most frequent first."""
    return ", ".join(f"{fault.value} {count}" for fault, count in faults.most_common())


def parameters(following: Following | None, estimate: OnlineEstimate | None, age_s: float, problem: str) -> Status:
    """Which robot is followed, and how old its parameters are."""
    values = {
        "Result": str(following.result.directory) if following is not None else None,
        "Age (s)": age_s,
        "Newton steps": estimate.steps if estimate is not None else None,
        "Solution (ms)": 1e3 * estimate.seconds if estimate is not None else math.nan,
    }
    level, message = gravest(
        (ERROR, problem),
        (STALE, "no calibrated robot; set the parameter result, or identify one" if following is None else ""),
        (STALE, "waiting for joint states" if estimate is None else ""),
        otherwise="published",
    )
    return Status("parameters", level, message, values)


def robot(following: Following | None) -> Status:
    """Whether the robot is as it was calibrated."""
    followed = following.robot if following is not None else None
    change = followed.change if followed is not None else None
    values = {
        "Cause": change.cause.value if change is not None else None,
        "Link or joint": change.subject if change is not None else None,
        "Amount (kg, N m or N)": change.amount if change is not None else None,
        "Standard deviation": change.deviation if change is not None else None,
        "Settled": change.settled if change is not None else None,
    }
    level, message = gravest(
        (STALE, "no robot is followed" if followed is None else ""),
        (WARN, describe_change(change) if change is not None else ""),
        otherwise="as calibrated",
    )
    return Status("robot", level, message, values)


def payload(state: str, failure: str, mass: float) -> Status:
    """What the payload action does, or did last."""
    level, message = gravest((WARN, failure), otherwise=state)
    return Status("payload", level, message, {"State": state, "Mass (kg)": mass, "Last fault": failure})
