"""Constraints according to a robot's options, and its assumed surroundings: floor or mounting plane.

A motion starts and ends at a pose that keeps the constraints and at which the robot can rest.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
import scipy

from inertid_ros.config.excitation import CollisionOptions, ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError, log_once
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.excitation.constraints.balance import CentreOfMassConstraint, ZeroMomentPointConstraint, polygon
from inertid_ros.excitation.constraints.clearance import ClearanceConstraint
from inertid_ros.excitation.constraints.constraint import Constraint, MotionSamples, first_problem
from inertid_ros.excitation.constraints.effort import EffortConstraint
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.robot.kinematics import TreeKinematics
from inertid_ros.robot.link_shapes import collision_shapes
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.urdf.shapes import CollisionShape, corners_in_body

# A limb is a leg if it reaches farther below the base than this fraction of its length and than this distance.
# Stretched arms on a table reach only some centimetres below the base.
_MIN_LEG_SHARE, _MIN_LEG_M = 0.15, 0.1
_WHEEL_ANGLES, _MAX_WHEEL_RUNOUT_M = 16, 0.01  # largest change of a wheel's height over these angles
_MIN_MOUNTING_COSINE = 0.5  # between gravity and the direction of a mounting

Shapes = tuple[CollisionShape, ...]
_EFFORT_SHARE_AT_REST = 0.7  # of the limits; target of the search, as a motion needs more effort than rest
# Weight, in each descent, of the squared distance from the wanted pose in half ranges.
_NEARNESS_WEIGHTS = (1e-3, 1e-5, 1e-7, 0.0)
_POSE_ATTEMPTS = 12
_POSE_ITERATIONS = 100
_MAX_MOVED_NAMED = 6  # joints in a message


def motion_constraints(
        model: RobotModel, limits: MotionLimits, options: ExcitationOptions | None = None) -> tuple[Constraint, ...]:
    """All constraints on a motion of this robot, except limits of position, velocity and acceleration."""
    options = options or ExcitationOptions()
    balance = options.balance
    constraints: list[Constraint] = [EffortConstraint(model, limits.effort)]
    collision, floor = options.collision, surroundings(model, limits, options).floor_m
    if collision.self_collision or collision.obstacles or np.isfinite(floor):
        constraints.append(ClearanceConstraint(model, limits, collision, floor))
    if balance.com_region.x:
        region = polygon(balance.com_region, "balance.com_region")
        constraints.append(CentreOfMassConstraint(model, region, balance.ground_m))
    if balance.support.x:
        area = polygon(balance.support, "balance.support", balance.support_margin_m)
        if not balance.com_region.x:
            constraints.append(CentreOfMassConstraint(model, area, balance.ground_m))
        constraints.append(ZeroMomentPointConstraint(model, area, balance.ground_m, balance.normal_force))
    return tuple(constraints)


@dataclass(frozen=True)
class Surroundings:
    """Floor or mounting plane, obstacles, and missing checks.

    Attributes
    ----------
    floor_m : height in the root frame [m] that all moving links stay above; -inf without a floor.
    floor : sentence on the assumed or configured floor.
    unknown : whether the height of the floor is unknown although the options do not exclude a floor.
    others : sentences on obstacles and missing checks.
    """

    floor_m: float
    floor: str
    unknown: bool = False
    others: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        return (self.floor, *self.others)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Finding if the motion may hit a floor of unknown height."""
        if not self.unknown:
            return ()
        return (Finding.with_remedy("unknown_floor", Severity.CARE, self.floor),)


def surroundings(model: RobotModel, limits: MotionLimits, options: ExcitationOptions) -> Surroundings:
    """Surroundings of the robot according to its options and its base.

    The floor or mounting plane is at the lowest point of the root link (on a floor, also of the wheels). Its height is
    unknown if limbs such as legs reach farther down. ExcitationError if gravity contradicts the mounting.
    """
    shapes, problems = collision_shapes(model, options.collision.mesh_folders)
    return replace(_floor(model, limits, options, shapes, problems), others=_others(model, options.collision, shapes))


def _floor(
    model: RobotModel, limits: MotionLimits, options: ExcitationOptions, shapes: Shapes, problems: Mapping[str, str]
) -> Surroundings:
    distance = f"clearance of {1e3 * options.collision.obstacle_clearance_m:g} mm to"
    if np.isfinite(options.floor_m):
        return Surroundings(options.floor_m, f"{distance} the floor at {options.floor_m:.3f} m, as given")
    if options.mounting == "none" or model.free:
        return Surroundings(-np.inf, "the floor is not checked (excitation.mounting: none)")
    _check_gravity(model, options.mounting)
    base = _lowest_of_base(model, shapes, problems)
    if base is None:
        bare = f"the floor is not checked, as link '{model.root_name}' has no collision geometry"
        return Surroundings(-np.inf, bare, True)
    height, link = min([base, *_wheels(model, shapes)]) if options.mounting == "floor" else base
    leg = _leg(model, limits, shapes, height)
    if leg is not None:
        depth, name = leg
        below = f"'{name}' is {depth:.2f} m below '{link}' with joints at zero or mid-range"
        return Surroundings(-np.inf, f"the floor is not checked, as {below}", True)
    where = f"at {round(height, 3) + 0.0:.3f} m, the lowest point of '{link}' (set excitation.floor_m to change it)"
    if options.mounting == "floor":
        return Surroundings(height, f"{distance} a floor {where}")
    return Surroundings(height, f"{distance} the {options.mounting} {where}; add the floor as an obstacle")


def _others(model: RobotModel, options: CollisionOptions, shapes: Shapes) -> tuple[str, ...]:
    out = [f"obstacles: {', '.join(options.obstacles)}" if options.obstacles else "obstacles: none configured"]
    if not options.self_collision:
        out.append("self-collision is not checked (excitation.collision.self_collision: false)")
    solid = {shape.body for shape in shapes}
    bare = [name for body, name in enumerate(model.link_names[: model.joints]) if body not in solid]
    if bare:
        out.append(f"links without collision geometry, checked at most as lines between joints: {', '.join(bare)}")
    return tuple(out)


def _check_gravity(model: RobotModel, mounting: str) -> None:
    gravity = model.pinocchio.gravity.linear
    size = float(np.linalg.norm(gravity))
    if not size:
        return
    up = -gravity[2] / size
    fitting = "wall" if abs(up) < _MIN_MOUNTING_COSINE else "floor" if up > 0 else "ceiling"
    if fitting == mounting:
        return
    raise ExcitationError(
        f"excitation.mounting is '{mounting}', but robot.gravity is {np.round(gravity, 2).tolist()} in the root frame,"
        f" as on a {fitting}; correct one of them, or set mounting to none and add the surroundings as obstacles")


def _lowest_of_base(model: RobotModel, shapes: Shapes, problems: Mapping[str, str]) -> tuple[float, str] | None:
    """Lowest point [m], and its link, of the root and links fixed to it; link origins replace unusable geometry."""
    points = [(float(corners_in_body(shape)[:, 2].min()), shape.link) for shape in shapes if shape.body < 0]
    robot = model.pinocchio
    for name in problems:
        frame = robot.frames[robot.getFrameId(name)]
        if frame.parentJoint == 0:
            points.append((float(frame.placement.translation[2]), name))
    return min(points, default=None)


def _wheels(model: RobotModel, shapes: Shapes) -> list[tuple[float, str]]:
    """Lowest point [m] and name of each wheel: a link that turns without limits on the root at constant height."""
    endless = np.isinf(model.limits.lower) & np.isinf(model.limits.upper)
    wheels = []
    for body in {shape.body for shape in shapes if shape.body >= 0}:
        if not endless[body] or model.tree[body].parent >= 0:
            continue
        poses = np.zeros((_WHEEL_ANGLES, model.joints))
        poses[:, body] = 2 * np.pi * np.arange(_WHEEL_ANGLES) / _WHEEL_ANGLES
        placements = TreeKinematics.of(model).placements(poses)[:, body]
        lowest = _heights(placements, [corners_in_body(shape) for shape in shapes if shape.body == body]).min(axis=1)
        if np.ptp(lowest) < _MAX_WHEEL_RUNOUT_M:
            wheels.append((float(lowest.min()), model.link_names[body]))
    return wheels


def _leg(model: RobotModel, limits: MotionLimits, shapes: Shapes, height: float) -> tuple[float, str] | None:
    """Depth below the base [m] and lowest link of the deepest leg; None for a robot without legs."""
    zero = np.clip(np.zeros(model.joints), limits.lower, limits.upper)
    poses = np.array([zero, 0.5 * (limits.lower + limits.upper)])
    placements = TreeKinematics.of(model).placements(poses)
    lengths, deepest = np.zeros(model.joints), (0.0, "")
    for body, name in enumerate(model.link_names[: model.joints]):
        joint = model.tree[body]
        if joint.parent >= 0:
            lengths[body] = lengths[joint.parent] + np.linalg.norm(joint.placement_translation)
        points = [np.zeros((1, 3)), *(corners_in_body(shape) for shape in shapes if shape.body == body)]
        depth = height - float(_heights(placements[:, body], points).min())
        length = lengths[body] + float(np.linalg.norm(np.vstack(points), axis=1).max())
        if depth > max(_MIN_LEG_SHARE * length, _MIN_LEG_M):
            deepest = max(deepest, (depth, name))
    return deepest if deepest[1] else None


def _heights(placements: Array, points: list[Array]) -> Array:
    """Heights ``(N, K)`` in the root frame [m] of points of a body, from its placements ``(N, 4, 4)``."""
    return np.asarray(placements[:, 2, :3] @ np.vstack(points).T + placements[:, 2, 3, None], dtype=float)


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
        f" robot.locked_joints: {{{held_at}}}")


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
