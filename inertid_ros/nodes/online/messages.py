"""Messages of the online node: parameters, changes, payloads and diagnostics."""

import json
import math

from builtin_interfaces.msg import Time
from geometry_msgs.msg import InertiaStamped, Vector3
from std_msgs.msg import Header

from inertid_ros.action import IdentifyPayload
from inertid_ros.core.arrays import Array
from inertid_ros.data.screening.live_watch import StreamReport
from inertid_ros.monitoring.change_detector import Cause, Change
from inertid_ros.monitoring.online_identification import OnlineEstimate
from inertid_ros.monitoring.payload_measurement import PayloadProgress
from inertid_ros.msg import InertialParameters, RobotChange
from inertid_ros.payload.offline import PayloadOutcome
from inertid_ros.robot.model import RobotModel
from inertid_ros.ros import diagnostics
from inertid_ros.ros.conversions import to_inertia
from inertid_ros.ros.diagnostics import ERROR, OK, STALE, WARN, Status, gravest
from inertid_ros.ros.parameter_messages import value_fields

from .following import Following


def followed_parameters(
    model: RobotModel, estimate: OnlineEstimate, sequence: int, stamp: Time
) -> InertialParameters:
    """Make a message of parameters that are not validated on held-out data, and are to be used with care."""
    return InertialParameters(
        header=Header(stamp=stamp),
        sequence=sequence,
        model_hash=model.hash,
        validation_status=InertialParameters.NOT_VALIDATED,
        verdict=InertialParameters.USE_WITH_CARE,
        reasons=["followed while the robot moves: not validated on held-out data"],
        validation_relative_error=float("nan"),
        **value_fields(model, estimate.parameters, estimate.covariance),
    )


def to_robot_change(
    model: RobotModel, change: Change | None, stamp: Time, since: Time, false_alarms_per_hour: float
) -> RobotChange:
    """Make a message of the last change, or of None for a robot as it was calibrated."""
    message = RobotChange(header=Header(stamp=stamp), model_hash=model.hash)
    message.false_alarms_per_hour, message.message = false_alarms_per_hour, describe_change(change)
    if change is None:
        return message
    message.since, message.cause, message.subject = since, getattr(RobotChange, change.cause.name), change.subject
    message.amount, message.standard_deviation = change.amount, change.deviation
    message.ratio, message.threshold, message.settled = change.ratio, change.threshold, change.settled
    return message


def describe_change(change: Change | None) -> str:
    """Return one line on a change, or on None for a robot as it was calibrated."""
    if change is None:
        return "as calibrated"
    if not change.settled:
        return f"changed; so far {change.cause.value} at {change.subject} explains it best"
    unit = "kg" if change.cause in (Cause.PAYLOAD, Cause.LOST_PART) else "N m or N"
    return f"{change.cause.value} at {change.subject}: about {change.amount:+.2g} {unit}"


def to_payload_result(result: PayloadOutcome, stamp: Time) -> IdentifyPayload.Result:
    """Make the answer for a payload, whose inertia is about its centre of mass in the frame of its link."""
    payload, commands = result.payload, result.content["as_robots_take_it"]
    quantities = (payload.mass, *payload.com, *payload.inertia)
    low, high = payload.mass.interval
    inertia = to_inertia([quantity.value for quantity in quantities])
    return IdentifyPayload.Result(
        success=True,
        message=f"{payload.mass.value:.3f} kg ({low:.3f} to {high:.3f}) on {payload.tool.name}",
        payload=InertiaStamped(header=Header(stamp=stamp, frame_id=payload.tool.name), inertia=inertia),
        standard_deviation=[quantity.deviation for quantity in quantities],
        lower=[quantity.interval[0] for quantity in quantities],
        upper=[quantity.interval[1] for quantity in quantities],
        notices=list(result.content["notices"]),
        set_target_payload=commands["set_target_payload"]["script"],
        set_load=commands["setLoad"]["call"],
        payload_json=json.dumps(result.content, allow_nan=False),
    )


def to_payload_feedback(stage: str, fraction: float, progress: PayloadProgress) -> IdentifyPayload.Feedback:
    """Make the feedback of the action."""
    return IdentifyPayload.Feedback(
        stage=stage,
        fraction=fraction,
        mass=progress.mass,
        mass_standard_deviation=progress.mass_deviation,
        com=_vector(progress.com),
        com_standard_deviation=_vector(progress.com_deviation),
        uncertain=progress.uncertain,
    )


def _vector(values: Array) -> Vector3:
    x, y, z = map(float, values)
    return Vector3(x=x, y=y, z=z)


def joint_states_status(following: Following | None, report: StreamReport) -> Status:
    """Status of the joint states, and why some were not used."""
    names: tuple[str, ...] = ()
    counts = dict.fromkeys(("Rejected messages", "Filter restarts", "Filter delay (s)", "Last fault", "Fault counts"))
    problem, silent = "", "no joint states of the robot; start its driver, or remap joint_states"
    if following is not None:
        names, problem, silent = following.result.model.joint_names, following.problem, following.others or silent
        counts |= {"Rejected messages": following.rejected, "Last fault": following.last_fault}
        if (robot := following.robot) is not None:
            faults = ", ".join(f"{fault.value} {count}" for fault, count in robot.faults.most_common())
            filters = {"Filter restarts": robot.filter.restarts, "Filter delay (s)": robot.filter.delay}
            counts |= {**filters, "Fault counts": faults}
    level_and_message = gravest(
        (STALE, silent if report.silent else ""),
        (ERROR, problem),
        (WARN, diagnostics.wrong_clock(report)),
        (WARN, diagnostics.gaps_between("joint states", report)),
        otherwise=f"{report.rate_hz:.0f} Hz",
    )
    return Status("joint states", *level_and_message, {**diagnostics.stream_values(report, names), **counts})


def parameters_status(
    following: Following | None, estimate: OnlineEstimate | None, age_s: float, problem: str
) -> Status:
    """Status of the parameters: result that is followed, and their age."""
    level_and_message = gravest(
        (ERROR, problem),
        (STALE, "no calibrated robot; set the parameter result, or identify one" if following is None else ""),
        (STALE, "waiting for joint states" if estimate is None else ""),
        otherwise="published",
    )
    values = {
        "Result": str(following.result.directory) if following is not None else None,
        "Age (s)": age_s,
        "Newton steps": estimate.steps if estimate is not None else None,
        "Solution (ms)": 1e3 * estimate.seconds if estimate is not None else math.nan,
    }
    return Status("parameters", *level_and_message, values)


def robot_status(following: Following | None) -> Status:
    """Status of the robot: as calibrated, or its change."""
    robot = following.robot if following is not None else None
    keys = ("Cause", "Link or joint", "Amount (kg, N m or N)", "Standard deviation", "Settled")
    if robot is None:
        return Status("robot", STALE, "no robot is followed", dict.fromkeys(keys))
    change = robot.change
    if change is None:
        return Status("robot", OK, describe_change(change), dict.fromkeys(keys))
    values = (change.cause.value, change.subject, change.amount, change.deviation, change.settled)
    return Status("robot", WARN, describe_change(change), dict(zip(keys, values, strict=True)))
