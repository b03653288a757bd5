"""Whether a recording shows a payload, and whether the robot can hold it; each refusal is one line."""

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

_AT_LIMIT, _LONG = 0.99, 0.01  # of a joint's effort limit, and of the samples
_OTHER_RESIDUAL = 10.0  # times that of the calibration
_UNEXPLAINED = 0.15  # of the effort: what another robot, or nothing at all, explains as badly
_SURPRISE = 8.0  # standard deviations of the distance from the calibration
_KNOWN_SHARE, _KNOWN_OF_ROBOT = 0.25, 0.02  # of the mass of the payload, or of the robot, to which its mass is known
_KNOWN_COM = 0.05  # m


def check_recordings(model: RobotModel, recordings: Sequence[Recording]) -> None:
    """Refuse recordings in which a joint delivers all the effort that it has.

    Raises
    ------
    RecordingError
        Then it may not have held what it was asked to.
    """
    limits = dict(zip(model.joint_names, np.asarray(model.limits.effort).tolist(), strict=True))
    scales = dict(zip(model.joint_names, model.effort_scale.tolist(), strict=True))
    for recording in recordings:
        for column, joint in enumerate(recording.joint_names):
            limit = limits.get(joint, 0.0)
            if not (np.isfinite(limit) and limit > 0):
                continue
            share = float(np.mean(np.abs(scales[joint] * recording.effort[:, column]) >= _AT_LIMIT * limit))
            if share > _LONG:
                raise RecordingError(
                    f"{recording.name}: {joint} is at its effort limit of {limit:g} N m or N in {100 * share:.0f} % of"
                    " the samples: the payload is heavier than it can hold there; hold a lighter one, or closer"
                )


def check_payload(
    robot: CalibratedRobot, payload: Payload, loaded: Sequence[Samples], largest_mass: float = np.inf
) -> None:
    """Refuse a payload that the recording does not show, or that the robot cannot hold.

    Raises
    ------
    IdentificationError
        The recording is of another robot, has too little motion, or the payload is too heavy.
    """
    names, name = robot.equations.channels, loaded[0].name
    size = np.sqrt(np.mean(np.concatenate([samples.tau[samples.usable] for samples in loaded]) ** 2, axis=0))
    ratio = payload.residual_deviation / np.maximum(robot.deviation, 1e-12)
    worst = int(np.argmax(ratio))
    share = float(np.linalg.norm(payload.residual_deviation) / max(float(np.linalg.norm(size)), 1e-300))
    if ratio[worst] > _OTHER_RESIDUAL and share > _UNEXPLAINED or surprise(robot, payload) > _SURPRISE:
        raise IdentificationError(
            f"{name}: no payload on {payload.tool.name} explains it: {names[worst]} is off by"
            f" {payload.residual_deviation[worst]:.2g} N m or N, in the calibration by {robot.deviation[worst]:.2g}; is"
            " it another robot, or held elsewhere? Give its own result or --frame; inertid validate tells other causes"
        )
    mass, half = payload.mass, payload.mass.half_width
    own = float(np.sum(robot.layout.bodies(robot.parameters)[:, 0]))
    if half > max(_KNOWN_SHARE * mass.value, _KNOWN_OF_ROBOT * own):
        raise IdentificationError(
            f"{name}: too little motion to tell the payload: its mass is known to {mass.interval[0]:.2g} to"
            f" {mass.interval[1]:.2g} kg only; move all joints, the wrist into several orientations"
        )
    if mass.value > largest_mass:
        raise IdentificationError(
            f"{name}: holds {mass.value:.3g} kg, more than the {largest_mass:g} kg that it may; hold a lighter payload"
        )


def surprise(robot: CalibratedRobot, payload: Payload) -> float:
    """Distance of the robot from its calibration, in standard deviations of what it should be."""
    freedom = float(np.linalg.matrix_rank(robot.covariance, hermitian=True))
    return float((payload.equations.surprise - freedom) / np.sqrt(2 * freedom))


def notices(robot: CalibratedRobot, payload: Payload) -> tuple[str, ...]:
    """What to know before a payload is used, one line each."""
    found = []
    if payload.mass.interval[0] <= 0.0:
        found.append(
            f"there may be no payload: its mass is between 0 and {payload.mass.interval[1]:.2g} kg; do not send it to a"
            " controller"
        )
    unknown = [axis for axis, each in zip("xyz", payload.com, strict=True) if each.half_width > _KNOWN_COM]
    if unknown and payload.mass.interval[0] > 0.0:
        widest = max(each.half_width for each in payload.com)
        found.append(
            f"its centre of mass along {', '.join(unknown)} is known to {100 * widest:.0f} cm only; turn the wrist"
            " into further orientations"
        )
    model = robot.equations.model
    held = payload.tool.bodies(payload.parameters, len(model.link_names))
    too_much = _beyond_effort(model, model.layout.bodies(robot.parameters) + held)
    if too_much:
        found.append(too_much)
    return tuple(found)


def _beyond_effort(model: RobotModel, bodies: Array) -> str:
    """One line on the joint whose gravity torque exceeds its limit in poses of its range; empty where none does."""
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
