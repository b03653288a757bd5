"""Balance of a robot with its root on the ground: centre of mass ([Ayusawa2017]_ eq. 52), zero-moment point, normal
force."""

from dataclasses import dataclass

import numpy as np
import scipy

from inertid_ros.config.excitation import AreaOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.core.inertial_parameters import mass_com_inertia
from inertid_ros.excitation.constraints import constraint
from inertid_ros.excitation.constraints.effort import WrenchRateBounds
from inertid_ros.excitation.plan import Plan
from inertid_ros.regressors.regressor_gradient import BodyWrenches
from inertid_ros.robot.kinematics import TreeKinematics, lever_arm_bounds
from inertid_ros.robot.model import RobotModel

_MIN_AREA_WIDTH = 1e-4  # m; a narrower area is empty
_BALANCE_PENALTY = 3000.0  # 1/m^2
# Slack at which the penalty begins, as a fraction of the area's width or of the range of the normal force.
_BALANCE_PENALTY_BEGINS = 0.1


@dataclass(frozen=True)
class Polygon:
    """Convex area on the ground: all points p [m] with ``normals @ p >= offsets``.

    ``normals`` ``(E, 2)`` are unit vectors; ``offsets`` are ``(E,)``; ``width`` is the radius of the largest circle
    inside [m].
    """

    normals: Array
    offsets: Array
    width: float

    def distances(self, points: Array) -> Array:
        """Distances ``(N, E)`` of points ``(N, 2)`` from the edges [m], positive inside."""
        return np.asarray(points @ self.normals.T - self.offsets, dtype=float)


def polygon(area: AreaOptions, key: str, margin: float = 0.0) -> Polygon:
    """Hull of the corners of an area, shrunk by a margin [m]; ExcitationError if it is empty."""
    corners = np.column_stack([area.x, area.y])
    if len(corners) < 3:
        raise ExcitationError(f"{key}: the area has {len(corners)} corners and is empty; give three or more")
    try:
        hull = scipy.spatial.ConvexHull(corners)
    except scipy.spatial.QhullError:
        raise ExcitationError(f"{key}: the area is empty, its corners lie on a line; correct them") from None
    # Collinear corners give several edges on one line; keep one edge.
    edges = np.unique(np.round(hull.equations, 12), axis=0)
    normals, offsets = -edges[:, :2], edges[:, 2]
    # Radius of the largest circle inside, by linear programming: middle and radius are the variables.
    rows, bounds = np.column_stack([-normals, np.ones(len(normals))]), [(None, None), (None, None), (0, None)]
    width = float(scipy.optimize.linprog([0, 0, -1], A_ub=rows, b_ub=-offsets, bounds=bounds).x[2])
    if width - margin < _MIN_AREA_WIDTH:
        raise ExcitationError(
            f"{key}: the margin of {margin:.4g} m leaves no area: the largest inscribed circle has a radius of"
            f" {width:.4g} m; widen the area or lower the margin")
    return Polygon(normals, offsets + margin, width - margin)


class _RobotMasses:
    """Masses of the root link, including bodies fixed to it, and of the moving bodies, from the URDF.

    ``lever_arms`` ``(n,)`` bound the motion of the total centre of mass per radian (metre) of each joint [m].
    """

    def __init__(self, model: RobotModel) -> None:
        fixed = model.pinocchio.inertias[0]
        self._root, self._root_moment = float(fixed.mass), float(fixed.mass) * np.array(fixed.lever)
        self._bodies, self._centres, _ = mass_com_inertia(model.body_prior)
        self.total = self._root + float(self._bodies.sum())
        self.gravity = np.array(model.options.gravity, dtype=float)
        farthest = np.linalg.norm(self._centres, axis=1)
        arms = sum(mass * lever_arm_bounds(model, body, farthest[body]) for body, mass in enumerate(self._bodies))
        self.lever_arms = np.asarray(arms, dtype=float) / self.total

    @property
    def root_reaction(self) -> Array:
        """Force and torque ``(6,)`` about the root origin that support the root link alone."""
        return np.concatenate([-self._root * self.gravity, -np.cross(self._root_moment, self.gravity)])

    def _moments(self, placements: Array) -> Array:
        """Mass times centre of mass ``(N, n, 3)`` of the bodies in the root frame, from placements ``(N, n, 4, 4)``."""
        points = (placements[..., :3, :3] @ self._centres[..., None])[..., 0] + placements[..., :3, 3]
        return np.asarray(points * self._bodies[:, None], dtype=float)

    def centre(self, placements: Array) -> Array:
        """Total centre of mass ``(N, 3)`` in the root frame [m]."""
        return np.asarray((self._moments(placements).sum(axis=1) + self._root_moment) / self.total, dtype=float)

    def jacobian(self, chain: TreeKinematics, placements: Array, screws: Array) -> Array:
        """Derivative ``(N, n, 3)`` of the total centre of mass with respect to the joints."""
        beyond = chain.ancestry.astype(float)  # per joint: mask of the bodies that it moves
        mass, moment = beyond @ self._bodies, beyond @ self._moments(placements)
        moved = screws[..., :3] * mass[:, None] + np.cross(screws[..., 3:], moment)
        return np.asarray(moved / self.total, dtype=float)


def _penalty_of(slack: Array, width: Array | float) -> tuple[float, Array]:
    """Penalty on slack ``(N, C)`` below a share of ``width`` (squared, mean over samples), and its derivative."""
    lack = np.maximum(_BALANCE_PENALTY_BEGINS * width - slack, 0.0)
    factor = _BALANCE_PENALTY / len(slack)
    return factor * float((lack**2).sum()), -2 * factor * lack


class CentreOfMassConstraint(constraint.Constraint):
    """Constraint that the prior's centre of mass, projected along gravity, stays in an area on the ground.

    The root link rests on the ground, the plane ``z = ground`` [m] of the root frame.
    """

    positions_only = True

    def __init__(self, model: RobotModel, area: Polygon, ground: float) -> None:
        self.area, self._masses, self._chain = area, _RobotMasses(model), TreeKinematics.of(model)
        self._along = along = self._masses.gravity / self._masses.gravity[2]
        self._ground = ground
        # Distance from an edge: normal . (c + along (ground - c_z)) - offset, linear in the centre.
        self._rows = np.column_stack([area.normals, -area.normals @ along[:2]])
        self._offsets = area.offsets - ground * (area.normals @ along[:2])

    def below(self, q: Array) -> Array:
        """Points ``(N, 2)`` on the ground [m] below the centre of mass, along gravity, for poses ``(N, n)``."""
        centre = self._masses.centre(self._chain.placements(q))
        return np.asarray((centre + np.outer(self._ground - centre[:, 2], self._along))[:, :2], dtype=float)

    def penalty(self, motion: constraint.MotionSamples) -> constraint.Penalty:
        placements = motion.state.placements
        distances = self._distances(self._masses.centre(placements))
        value, push = _penalty_of(distances, self.area.width)
        if not value:
            return constraint.Penalty(0.0)
        jacobian = self._masses.jacobian(motion.chain, placements, motion.state.screws)
        return constraint.Penalty(value, position=(jacobian @ (push @ self._rows)[..., None])[..., 0])

    def slack(self, q: Array, v: Array, a: Array) -> Array:
        return self._distances(self._masses.centre(self._chain.placements(q)))

    def violation(self, state: constraint.State, channel: int, when: str, at_rest: bool) -> str:
        (x, y), outside = self.below(state[0])[0], -self.slack(*state)[0, channel]
        return (
            f"centre of mass: is at ({x:.4f}, {y:.4f}) m {when}, {outside:.4f} m outside its area;"
            f" {'start elsewhere' if at_rest else 'move less'} or widen balance.com_region")

    def rates(self, bounds: constraint.DerivativeBounds) -> Array:
        return np.outer(bounds.velocity @ self._masses.lever_arms, np.linalg.norm(self._rows, axis=1))

    def usage(self, plan: Plan) -> constraint.ConstraintUsage:
        slack = float(self.slack(plan.position, plan.velocity, plan.acceleration).min())
        used = 1.0 - slack / self.area.width
        return constraint.ConstraintUsage(used, "distance of the centre of mass from the middle of its area")

    def _distances(self, centre: Array) -> Array:
        return np.asarray(centre @ self._rows.T - self._offsets, dtype=float)


class ZeroMomentPointConstraint(constraint.Constraint):
    """Constraint that the prior's zero-moment point stays in an area, and the normal force above a minimum.

    For a reaction of force ``f`` and torque ``n`` about the root origin, the zero-moment point is at
    ``((h f_x - n_y) / f_z, (n_x + h f_y) / f_z)`` on the plane ``z = h``. Its distance from each edge times ``f_z`` is
    a channel, linear in the reaction; the last channel bounds ``f_z``. The root link rests on the plane ``z = ground``
    [m] of the root frame. ``normal_force`` is the smallest normal force, as a fraction of the weight.
    """

    positions_only = False

    def __init__(self, model: RobotModel, area: Polygon, ground: float, normal_force: float) -> None:
        self.area, self.ground = area, ground
        self._model, self._chain, self._bounds = model, TreeKinematics.of(model), WrenchRateBounds(model)
        self._masses = _RobotMasses(model)
        edges = len(area.offsets)
        x, y = area.normals.T
        by_edge = np.column_stack([ground * area.normals, -area.offsets, y, -x, np.zeros(edges)])
        self._rows = np.vstack([by_edge, np.eye(6)[2]])
        # Scale of all rows: converts distance times normal force to m, and normal force to a fraction of the weight.
        self._weight = self._masses.total * float(np.linalg.norm(self._masses.gravity))
        self._required = np.append(np.zeros(edges), normal_force * self._weight)
        self._width = np.append(np.full(edges, area.width), 1.0 - normal_force)

    def penalty(self, motion: constraint.MotionSamples) -> constraint.Penalty:
        prior = self._model.body_prior.ravel()
        wrench = motion.wrenches.regressor @ prior + self._masses.root_reaction
        slack = (wrench @ self._rows.T - self._required) / self._weight
        value, push = _penalty_of(slack, self._width)
        if not value:
            return constraint.Penalty(0.0)
        by_wrench = push / self._weight @ self._rows
        return constraint.Penalty(value, base_weights=by_wrench[:, :, None] * prior)

    def slack(self, q: Array, v: Array, a: Array) -> Array:
        return np.asarray(self._wrench(q, v, a) @ self._rows.T - self._required, dtype=float)

    def rates(self, bounds: constraint.DerivativeBounds) -> Array:
        _, force, moment = self._bounds.rates(bounds)
        norms = (np.linalg.norm(self._rows[:, part], axis=1) for part in (slice(3), slice(3, 6)))
        by_force, by_moment = (np.outer(rate, norm) for rate, norm in zip((force, moment), norms, strict=True))
        return np.asarray(by_force + by_moment, dtype=float)

    def usage(self, plan: Plan) -> constraint.ConstraintUsage:
        wrench = self._wrench(plan.position, plan.velocity, plan.acceleration)
        edges = self.area.distances(self._zero_moment_point(wrench)).min()
        press = ((wrench[:, 2] - self._required[-1]) / self._weight).min()
        used = [1.0 - edges / self.area.width, 1.0 - press / self._width[-1]]
        descriptions = ("distance of the zero-moment point from the middle of its area", "unloading of the ground")
        worst = int(np.argmax(used))
        return constraint.ConstraintUsage(float(used[worst]), descriptions[worst])

    def _wrench(self, q: Array, v: Array, a: Array) -> Array:
        """Reaction ``(N, 6)`` at the root, including the root's own weight."""
        moving = BodyWrenches.of(self._chain.state(q, v, a)).regressor @ self._model.body_prior.ravel()
        return np.asarray(moving + self._masses.root_reaction, dtype=float)

    def _zero_moment_point(self, wrench: Array) -> Array:
        x = self.ground * wrench[:, 0] - wrench[:, 4]
        y = wrench[:, 3] + self.ground * wrench[:, 1]
        return np.column_stack([x, y]) / wrench[:, 2:3]

    def violation(self, state: constraint.State, channel: int, when: str, at_rest: bool) -> str:
        wrench, remedy = self._wrench(*state), "start elsewhere" if at_rest else "move slower or less"
        if channel == len(self._rows) - 1:
            return (
                f"normal force: is {wrench[0, 2]:.4g} N {when}, less than {self._required[-1]:.4g} N; {remedy}, or"
                " correct balance.normal_force")
        x, y = self._zero_moment_point(wrench)[0]
        outside = -float(self.area.distances(np.array([[x, y]]))[0, channel])
        return (
            f"zero-moment point: is at ({x:.4f}, {y:.4f}) m {when}, {outside:.4f} m outside its area; {remedy}, or"
            " widen balance.support")
