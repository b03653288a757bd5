"""Messages of the online node: parameters, changes and payloads."""

import json

from builtin_interfaces.msg import Time
from geometry_msgs.msg import InertiaStamped, Vector3
from std_msgs.msg import Header

from inertid_ros.action import IdentifyPayload
from inertid_ros.core.arrays import Array
from inertid_ros.monitoring.change_detector import Cause, Change
from inertid_ros.monitoring.online_identification import OnlineEstimate
from inertid_ros.monitoring.payload_measurement import PayloadProgress
from inertid_ros.msg import InertialParameters, RobotChange
from inertid_ros.payload.offline import PayloadOutcome
from inertid_ros.robot.model import RobotModel
from inertid_ros.ros.conversions import to_inertia
from inertid_ros.ros.parameter_messages import value_fields


def followed_parameters(model: RobotModel, estimate: OnlineEstimate, sequence: int, stamp: Time) -> InertialParameters:
    """Make a message of parameters that are not validated on held-out data, and are to be used with care."""
    return InertialParameters(
        header=Header(stamp=stamp), sequence=sequence, model_hash=model.hash,
        validation_status=InertialParameters.NOT_VALIDATED, verdict=InertialParameters.USE_WITH_CARE,
        reasons=["followed while the robot moves: not validated on held-out data"],
        validation_relative_error=float("nan"), **value_fields(model, estimate.parameters, estimate.covariance))


def to_robot_change(model: RobotModel, change: Change | None, stamp: Time, since: Time, false_alarms_per_hour: float
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
        success=True, message=f"{payload.mass.value:.3f} kg ({low:.3f} to {high:.3f}) on {payload.tool.name}",
        payload=InertiaStamped(header=Header(stamp=stamp, frame_id=payload.tool.name), inertia=inertia),
        standard_deviation=[quantity.deviation for quantity in quantities],
        lower=[quantity.interval[0] for quantity in quantities],
        upper=[quantity.interval[1] for quantity in quantities], notices=list(result.content["notices"]),
        set_target_payload=commands["set_target_payload"]["script"], set_load=commands["setLoad"]["call"],
        payload_json=json.dumps(result.content, allow_nan=False))


def to_payload_feedback(stage: str, fraction: float, progress: PayloadProgress) -> IdentifyPayload.Feedback:
    """Make the feedback of the action."""
    return IdentifyPayload.Feedback(
        stage=stage, fraction=fraction, mass=progress.mass, mass_standard_deviation=progress.mass_deviation,
        com=_vector(progress.com), com_standard_deviation=_vector(progress.com_deviation), uncertain=progress.uncertain)


def _vector(values: Array) -> Vector3:
    x, y, z = map(float, values)
    return Vector3(x=x, y=y, z=z)
