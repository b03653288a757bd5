"""Check that a recording shows a payload and that the robot can hold it."""

from collections.abc import Sequence

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import IdentificationError, RecordingError
from inertid_ros.core.inertial_parameters import BODY_PARAMETERS
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.torque_confidence import sample_states
from inertid_ros.payload.equations import CalibratedRobot
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.model import RobotModel

from .payload import Payload

# A joint is saturated if this share of the samples reaches this share of its effort limit.
_SATURATION_SHARE, _SATURATED_SAMPLES = 0.99, 0.01
# The payload does not explain the recording if the residual exceeds that of the calibration by this factor and this
# share of the effort, or if the robot is this far from its calibration.
_MAX_RESIDUAL_RATIO = 10.0
_MAX_RESIDUAL_SHARE = 0.15
_MAX_SURPRISE_DEVIATIONS = 8.0
# Half widths of intervals that motion must reach: of the mass, relative to payload or robot; of the centre of mass.
_MAX_MASS_SHARE, _MAX_ROBOT_MASS_SHARE = 0.25, 0.02
_MAX_COM_HALF_WIDTH_M = 0.05


def check_recordings(model: RobotModel, recordings: Sequence[Recording]) -> None:
    """Refuse recordings in which a joint is saturated: it may not have held the payload."""
    limits = dict(zip(model.joint_names, np.asarray(model.limits.effort).tolist(), strict=True))
    scales = dict(zip(model.joint_names, model.effort_scale.tolist(), strict=True))
    for recording in recordings:
        for column, joint in enumerate(recording.joint_names):
            limit = limits.get(joint, 0.0)
            if not (np.isfinite(limit) and limit > 0):
                continue
            share = float(np.mean(np.abs(scales[joint] * recording.effort[:, column]) >= _SATURATION_SHARE * limit))
            if share > _SATURATED_SAMPLES:
                raise RecordingError(
                    f"{recording.name}: {joint} is at its effort limit of {limit:g} N m or N in {100 * share:.0f} % of"
                    " the samples: the payload is heavier than it can hold there; hold a lighter one, or closer"
                )


def check_payload(
    robot: CalibratedRobot, payload: Payload, loaded: Sequence[Samples], largest_mass: float = np.inf
) -> None:
    """Refuse a payload that the recording does not show, or that the robot cannot hold."""
    name = loaded[0].name
    size = np.sqrt(np.mean(np.concatenate([samples.tau[samples.usable] for samples in loaded]) ** 2, axis=0))
    ratio = payload.residual_deviation / np.maximum(robot.deviation, 1e-12)
    worst = int(np.argmax(ratio))
    share = float(np.linalg.norm(payload.residual_deviation) / max(float(np.linalg.norm(size)), 1e-300))
    if (ratio[worst] > _MAX_RESIDUAL_RATIO and share > _MAX_RESIDUAL_SHARE) or (
        _surprise(robot, payload) > _MAX_SURPRISE_DEVIATIONS
    ):
        raise IdentificationError(
            f"{name}: no payload on {payload.tool.name} explains it: {robot.equations.channels[worst]} is off by"
            f" {payload.residual_deviation[worst]:.2g} N m or N, in the calibration by {robot.deviation[worst]:.2g}; is"
            " it another robot, or held elsewhere? Give its own result or --frame; inertid validate tells other causes"
        )
    mass, half = payload.mass, payload.mass.half_width
    robot_mass = float(np.sum(robot.layout.bodies(robot.parameters)[:, 0]))
    if half > max(_MAX_MASS_SHARE * mass.value, _MAX_ROBOT_MASS_SHARE * robot_mass):
        raise IdentificationError(
            f"{name}: too little motion to tell the payload: its mass is known to {mass.interval[0]:.2g} to"
            f" {mass.interval[1]:.2g} kg only; move all joints, the wrist into several orientations"
        )
    if mass.value > largest_mass:
        raise IdentificationError(
            f"{name}: holds {mass.value:.3g} kg, more than the {largest_mass:g} kg that it may; hold a lighter payload"
        )


def _surprise(robot: CalibratedRobot, payload: Payload) -> float:
    """Squared distance of the robot from its calibration, in standard deviations of its chi-squared distribution."""
    freedom = float(np.linalg.matrix_rank(robot.covariance, hermitian=True))
    return float((payload.equations.surprise - freedom) / np.sqrt(2 * freedom))


def notices(robot: CalibratedRobot, payload: Payload) -> tuple[str, ...]:
    """Warnings on the use of a payload."""
    lines = []
    if payload.mass.interval[0] <= 0.0:
        lines.append(
            f"there may be no payload: its mass is between 0 and {payload.mass.interval[1]:.2g} kg; do not send it to a"
            " controller"
        )
    half_widths = [quantity.half_width for quantity in payload.com]
    unknown = [axis for axis, half in zip("xyz", half_widths, strict=True) if half > _MAX_COM_HALF_WIDTH_M]
    if unknown and payload.mass.interval[0] > 0.0:
        lines.append(
            f"its centre of mass along {', '.join(unknown)} is known to {100 * max(half_widths):.0f} cm only; turn the"
            " wrist into further orientations"
        )
    model = robot.equations.model
    added = payload.tool.bodies(payload.parameters, len(model.link_names))
    overload = _overload(model, model.layout.bodies(robot.parameters) + added)
    if overload:
        lines.append(overload)
    return tuple(lines)


def _overload(model: RobotModel, bodies: Array) -> str:
    """Joint whose gravity torque exceeds its limit within the robot's range; empty if none does."""
    states, limits = sample_states(model), np.asarray(model.limits.effort)
    still = np.zeros_like(states.v)
    torque = np.abs(rigid_torque(model, bodies.reshape(-1, BODY_PARAMETERS), states.q, still, still))
    share = torque.max(axis=0) / np.where(np.isfinite(limits) & (limits > 0), limits, np.inf)
    worst = int(np.argmax(share))
    if share[worst] <= 1.0:
        return ""
    return (
        f"{model.joint_names[worst]} cannot hold it everywhere: gravity asks for up to {torque[:, worst].max():.3g} of"
        f" {limits[worst]:g} N m or N; keep it closer, or lighter"
    )
