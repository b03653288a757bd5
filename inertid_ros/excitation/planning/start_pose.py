"""Start pose at which a robot can rest, so that a motion can begin and end there."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pinocchio as pin
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError, log_once
from inertid_ros.excitation.constraints.constraint import Constraint, MotionSamples, first_problem
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.robot.kinematics import TreeKinematics
from inertid_ros.robot.model import RobotModel

_EFFORT_SHARE_AT_REST = 0.7  # of the limits; target of the search, as a motion needs more effort than rest
# Weight, in each descent, of the squared distance from the wanted pose in half ranges.
_NEARNESS_WEIGHTS = (1e-3, 1e-5, 1e-7, 0.0)
_POSE_ATTEMPTS = 12
_POSE_ITERATIONS = 100
_MAX_MOVED_NAMED = 6  # joints in a message


def rest_pose(
    model: RobotModel, limits: MotionLimits, constraints: Sequence[Constraint], wanted: Array, fixed: Array
) -> Array:
    """Return ``wanted`` ``(n,)`` if the robot can rest there, or else a suitable pose near it, with a warning.

    The search minimises the excess of efforts of the prior model and the penalties of position constraints. It starts
    at the wanted pose, then at random poses farther and farther from it. ``fixed`` joints ``(n,)`` stay as wanted.

    Raises
    ------
    ExcitationError
        The search failed; the message gives the reason why the wanted pose cannot be used.
    """

    def problem(pose: Array) -> str:
        return first_problem(constraints, lambda constraint: constraint.check_start(pose))

    refusal = problem(wanted)
    if not refusal:
        return wanted
    check_friction(model, limits, wanted)
    poses, rng = _descents(model, limits, constraints, wanted, fixed), np.random.default_rng(0)
    for attempt in range(0 if fixed.all() else _POSE_ATTEMPTS):
        away = attempt / (_POSE_ATTEMPTS - 1) * (rng.uniform(limits.lower, limits.upper) - wanted)
        for pose in poses(np.where(fixed, wanted, wanted + away)):
            if not problem(pose):
                reason = refusal.partition(";")[0]  # without the remedy
                log_once(f"start pose: {reason}; starts with {_moved(limits, wanted, pose)} instead")
                return pose
    raise ExcitationError(f"{refusal}; the search for another start pose failed")


def check_friction(model: RobotModel, limits: MotionLimits, pose: Array) -> None:
    """Reject joints whose effort limit does not exceed friction; the message proposes to hold them at ``pose``."""
    stuck = np.flatnonzero(model.drive_prior["coulomb"] >= limits.effort)
    if not len(stuck):
        return
    names = [limits.joint_names[joint] for joint in stuck]
    held_at = ", ".join(f"{name}: {pose[joint]:.4g}" for name, joint in zip(names, stuck, strict=True))
    raise ExcitationError(
        f"URDF joint '{names[0]}': the friction of its <dynamics>, {model.drive_prior['coulomb'][stuck[0]]:.4g} N m,"
        f" uses up the effort limit of a motion, {limits.effort[stuck[0]]:.4g} N m"
        + (f" (and in {len(names) - 1} more)" if len(names) > 1 else "")
        + "; correct the URDF, set limits.effort or limits.effort_fraction, or hold with"
        f" robot.locked_joints: {{{held_at}}}"
    )


def _moved(limits: MotionLimits, wanted: Array, pose: Array) -> str:
    shift = np.abs(pose - wanted) / (limits.upper - limits.lower)
    order = [int(joint) for joint in np.argsort(-shift) if shift[joint] > 1e-3]
    named = ", ".join(f"{limits.joint_names[joint]}={pose[joint]:.3g}" for joint in order[:_MAX_MOVED_NAMED])
    return named + (f" and {len(order) - _MAX_MOVED_NAMED} other joints moved" if len(order) > _MAX_MOVED_NAMED else "")


def _descents(
    model: RobotModel, limits: MotionLimits, constraints: Sequence[Constraint], wanted: Array, fixed: Array
) -> Callable[[Array], Iterator[Array]]:
    """Make a function that lowers excess efforts, penalties of constraints, and the distance from the wanted pose.

    The function takes an initial pose ``(n,)`` and yields the final poses of descents with less and less weight on the
    distance; it corrects penalties between descents.
    """
    robot, chain, friction = model.with_bodies(model.body_prior), TreeKinematics.of(model), model.drive_prior["coulomb"]
    data, half, rest = robot.createData(), 0.5 * (limits.upper - limits.lower), np.zeros((1, model.joints))
    on_positions = [constraint for constraint in constraints if constraint.positions_only]
    bounds = [np.where(fixed, wanted, bound) for bound in (limits.lower, limits.upper)]

    def objective(pose: Array, nearness: float) -> tuple[float, Array]:
        away = (pose - wanted) / half
        value, slope = nearness * float(away @ away), 2 * nearness * away / half
        by_pose = pin.computeGeneralizedGravityDerivatives(robot, data, pose)
        effort = np.array(data.g)
        excess = np.maximum((np.abs(effort) + friction) / limits.effort - _EFFORT_SHARE_AT_REST, 0.0)
        value += float(excess @ excess)
        slope = slope + (2 * excess * np.sign(effort) / limits.effort) @ by_pose
        motion = MotionSamples(chain, pose[None], rest, rest)
        for constraint in on_positions:
            penalty = constraint.penalty(motion)
            value += penalty.value
            slope = slope + np.broadcast_to(penalty.position, (1, len(pose)))[0]
        return value, slope

    def poses(pose: Array) -> Iterator[Array]:
        for nearness in _NEARNESS_WEIGHTS:
            pose = scipy.optimize.minimize(
                objective, pose, (nearness,), "L-BFGS-B", True, bounds=np.transpose(bounds),
                options={"maxiter": _POSE_ITERATIONS},
            ).x  # fmt: skip
            pose = np.clip(pose, *bounds)
            yield pose
            for constraint in on_positions:
                constraint.refine(MotionSamples(chain, pose[None], rest, rest))

    return poses
