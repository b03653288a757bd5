"""The constraints that a robot's options ask for."""
# DOC What is taken to surround a robot that moves: the floor or mounting plane, and what nobody stated.

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from inertid_ros.config.balance import BalanceOptions
from inertid_ros.config.collision import CollisionOptions
from inertid_ros.config.excitation import ExcitationOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError, ModelError
from inertid_ros.core.findings import Finding, Severity, remedy_for
from inertid_ros.excitation.constraints.balance import CentreOfMassConstraint, ZeroMomentPointConstraint, polygon
from inertid_ros.excitation.constraints.clearance import ClearanceConstraint
from inertid_ros.excitation.constraints.constraint import Constraint
from inertid_ros.excitation.constraints.effort import EffortConstraint
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.robot.kinematics import TreeKinematics
from inertid_ros.robot.link_shapes import collision_shapes
from inertid_ros.robot.model import RobotModel
from inertid_ros.robot.urdf.shapes import CollisionShape, corners

# Legs are below the base they belong to; arms on a table are not, but for some centimetres where they lie stretched.
_LEG, _LEAST_LEG = 0.15, 0.1  # of its length, and m, that a limb is below the base at least
_TURNS, _ROUND = 16, 0.01  # angles at which a wheel is looked at, and m by which its height may differ between them
_UPRIGHT = 0.5  # cosine between gravity and the direction that a mounting stands for, at least


def motion_constraints(
    model: RobotModel, limits: MotionLimits, options: ExcitationOptions | None = None
) -> tuple[Constraint, ...]:
    """Everything that a motion of this robot must keep beside its limits of position, velocity and acceleration."""
    options = options or ExcitationOptions()
    chosen: list[Constraint] = [EffortConstraint(model, limits.effort)]
    collision, floor = options.collision, surroundings(model, limits, options).floor_m
    if collision.self_collision or collision.obstacles or np.isfinite(floor):
        chosen.append(ClearanceConstraint(model, limits, collision, floor))
    return (*chosen, *_balance(model, options.balance))


def _balance(model: RobotModel, options: BalanceOptions) -> list[Constraint]:
    chosen: list[Constraint] = []
    if options.com_region.x:
        region = polygon(options.com_region, "balance.com_region")
        chosen.append(CentreOfMassConstraint(model, region, options.ground_m))
    if options.support.x:
        area = polygon(options.support, "balance.support", options.support_margin_m)
        if not options.com_region.x:
            chosen.append(CentreOfMassConstraint(model, area, options.ground_m))
        chosen.append(ZeroMomentPointConstraint(model, area, options.ground_m, options.normal_force))
    return chosen


Shapes = tuple[CollisionShape, ...]


@dataclass(frozen=True)
class Surroundings:
    """What a motion keeps clear of, beside stated obstacles.

    Attributes
    ----------
    floor_m : float
        Height in the root frame below which nothing of a moving link goes [m]; -inf where there is none.
    floor : str
        What was assumed or given of it.
    unknown : bool
        Whether nothing is known of the floor though nobody said that there is none.
    others : tuple of str
        Obstacles, and what is not looked at.
    """

    floor_m: float
    floor: str
    unknown: bool = False
    others: tuple[str, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the motion keeps clear of and what is not looked at, a sentence each."""
        return (self.floor, *self.others)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """A finding where the motion may meet what nobody stated."""
        if not self.unknown:
            return ()
        return (Finding("unknown_floor", Severity.CARE, self.floor, remedy_for("unknown_floor")),)


def surroundings(model: RobotModel, limits: MotionLimits, options: ExcitationOptions) -> Surroundings:
    """What surrounds the robot by its options and its base.

    A robot is mounted by the lowest point of what does not move with its joints, or of its wheels, unless its limbs are
    farther down, as legs are.

    Raises
    ------
    ExcitationError
        Gravity points elsewhere than the mounting says.
    """
    shapes, problems = collision_shapes(model, options.collision.mesh_folders)
    return replace(_floor(model, limits, options, shapes, problems), others=_others(model, options.collision, shapes))


def _floor(
    model: RobotModel, limits: MotionLimits, options: ExcitationOptions, shapes: Shapes, problems: Mapping[str, str]
) -> Surroundings:
    kept = f"{1e3 * options.collision.obstacle_clearance_m:g} mm are kept from"
    if np.isfinite(options.floor_m):
        return Surroundings(options.floor_m, f"{kept} the floor at {options.floor_m:.3f} m, as given")
    if options.mounting == "none" or model.free:
        return Surroundings(-np.inf, "no floor is looked at (excitation.mounting: none)")
    _check_gravity(model, options.mounting)
    base = _lowest_of_base(model, shapes, problems)
    if base is None:
        bare = f"no floor is looked at, since link '{model.root_name}' has no collision geometry"
        return Surroundings(-np.inf, bare, True)
    height, link = min([base, *_wheels(model, shapes)]) if options.mounting == "floor" else base
    leg = _leg(model, limits, shapes, height)
    if leg is not None:
        name, depth = leg
        below = f"'{name}' is {depth:.2f} m below '{link}' with its joints at zero or middle"
        return Surroundings(-np.inf, f"no floor is looked at, since {below}", True)
    where = f"at {round(height, 3) + 0.0:.3f} m, the lowest point of '{link}' (excitation.floor_m changes it)"
    if options.mounting == "floor":
        return Surroundings(height, f"{kept} a floor {where}")
    return Surroundings(height, f"{kept} the {options.mounting} {where}; a floor is an obstacle to state")


def _others(model: RobotModel, options: CollisionOptions, shapes: Shapes) -> tuple[str, ...]:
    out = [f"obstacles: {', '.join(options.obstacles)}" if options.obstacles else "no obstacles are stated"]
    if not options.self_collision:
        out.append("links are not kept apart (excitation.collision.self_collision: false)")
    solid = {shape.body for shape in shapes}
    bare = [name for body, name in enumerate(model.link_names[: model.joints]) if body not in solid]
    if bare:
        out.append(f"without collision geometry, so lines between joints at most: {', '.join(bare)}")
    return tuple(out)


def _check_gravity(model: RobotModel, mounting: str) -> None:
    gravity = model.pinocchio.gravity.linear
    size = float(np.linalg.norm(gravity))
    if not size:
        return
    up = -gravity[2] / size
    agrees = {"floor": up >= _UPRIGHT, "ceiling": up <= -_UPRIGHT, "wall": abs(up) < _UPRIGHT}
    if agrees[mounting]:
        return
    fitting = next(name for name in agrees if agrees[name])
    raise ExcitationError(
        f"excitation.mounting is '{mounting}', but robot.gravity is {np.round(gravity, 2).tolist()} in the root frame,"
        f" as on a {fitting}; correct one of them, or set mounting to none and state what is around as obstacles"
    )


def _lowest_of_base(model: RobotModel, shapes: Shapes, problems: Mapping[str, str]) -> tuple[float, str] | None:
    """Height [m] and link of the lowest point of what does not move; of a link's origin where its mesh is missing."""
    found = [(float(_points(shape)[:, 2].min()), shape.link) for shape in shapes if shape.body < 0]
    robot = model.pinocchio
    for name in problems:
        frame = robot.frames[robot.getFrameId(name)]
        if frame.parentJoint == 0:
            found.append((float(frame.placement.translation[2]), name))
    return min(found, default=None)


def _wheels(model: RobotModel, shapes: Shapes) -> list[tuple[float, str]]:
    """Height [m] and link of the lowest points of links that turn without limit on the base, all at one height."""
    endless = np.isinf(model.limits.lower) & np.isinf(model.limits.upper)
    found = []
    for body in range(model.joints):
        points = [_points(shape) for shape in shapes if shape.body == body]
        if not points or not endless[body] or int(model.pinocchio.parents[body + 1]):
            continue
        poses = np.zeros((_TURNS, model.joints))
        poses[:, body] = 2 * np.pi * np.arange(_TURNS) / _TURNS
        placements = TreeKinematics.of(model).placements(poses)[:, body]
        lowest = (placements[:, 2, :3] @ np.vstack(points).T + placements[:, 2, 3, None]).min(axis=1)
        if np.ptp(lowest) < _ROUND:
            found.append((float(lowest.min()), model.link_names[body]))
    return found


def _leg(model: RobotModel, limits: MotionLimits, shapes: Shapes, height: float) -> tuple[str, float] | None:
    """Last link of the limb that is deepest below the base, and how far [m]; None where limbs begin above it."""
    zero = np.clip(np.zeros(model.joints), limits.lower, limits.upper)
    poses = np.array([zero, 0.5 * (limits.lower + limits.upper)])
    placements, robot = TreeKinematics.of(model).placements(poses), model.pinocchio
    lengths, found = np.zeros(model.joints), (0.0, "")
    for body, name in enumerate(model.link_names[: model.joints]):
        parent = int(robot.parents[body + 1]) - 1
        if parent >= 0:
            lengths[body] = lengths[parent] + np.linalg.norm(robot.jointPlacements[body + 1].translation)
        points = np.vstack([np.zeros((1, 3)), *(_points(shape) for shape in shapes if shape.body == body)])
        depth = height - float((placements[:, body, 2, :3] @ points.T + placements[:, body, 2, 3, None]).min())
        length = lengths[body] + float(np.linalg.norm(points, axis=1).max())
        if depth > max(_LEG * length, _LEAST_LEG):
            found = max(found, (depth, name))
    return (found[1], found[0]) if found[1] else None


def _points(shape: CollisionShape) -> Array:
    """``(K, 3)`` points in the frame of the body, whose convex hull contains the shape; its origin where it cannot be
    read."""
    try:
        points = corners(shape)
    except ModelError:
        points = np.zeros((1, 3))
    return np.asarray(points @ shape.placement[:3, :3].T + shape.placement[:3, 3], dtype=float)
