"""The constraint on the contact with the ground: zero-moment point and normal force."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.limits.constraint import Constraint, ConstraintUsage, MotionSamples, Penalty
from inertid_ros.excitation.limits.continuous_time import DerivativeBounds, executed_curve, find_anywhere
from inertid_ros.excitation.limits.wrench_rates import WrenchRateBounds
from inertid_ros.excitation.motions.trajectories import Trajectory
from inertid_ros.kinematics.tree_kinematics import TreeKinematics
from inertid_ros.regressors.body_wrenches import BodyWrenches
from inertid_ros.robot.model import RobotModel

from .polygon import Polygon
from .robot_masses import RobotMasses

_PENALTY = 3000.0  # 1/m^2
_BEGINS = 0.1  # of what there is at rest in the middle, where the penalty begins


class ZeroMomentPointConstraint(Constraint):
    """The zero-moment point of the prior stays within an area, and the normal force stays positive.

    Both are linear in the reaction wrench ``W`` (force ``f``, torque ``n`` about the root origin): the zero-moment
    point is at ``((h f_x - n_y) / f_z, (n_x + h f_y) / f_z)`` on the plane ``z = h``, and its distance from an edge
    times ``f_z``, positive by the last row, is what is bounded.

    Parameters
    ----------
    model : RobotModel
        The robot; its root link rests on the ground.
    area : Polygon
        In the plane ``z = ground`` of the root frame.
    ground : float
        Height of the ground in the root frame [m].
    normal_force : float
        Smallest, as a fraction of the weight.
    """

    positions_only = False

    def __init__(self, model: RobotModel, area: Polygon, ground: float, normal_force: float) -> None:
        self.area, self.ground = area, ground
        self._model, self._chain, self._bounds = model, TreeKinematics.of(model), WrenchRateBounds(model)
        self._masses = RobotMasses.of(model)
        edges = len(area.offsets)
        self._rows = np.zeros((edges + 1, 6))
        self._rows[:edges, :2] = ground * area.normals
        self._rows[:edges, 2] = -area.offsets
        self._rows[:edges, 3], self._rows[:edges, 4] = area.normals[:, 1], -area.normals[:, 0]
        self._rows[edges, 2] = 1.0
        weight = self._masses.weight
        self._scale = np.append(np.full(edges, weight), weight)  # to m, and to a fraction of the weight
        self._least = np.append(np.zeros(edges), normal_force * weight)
        self._width = np.append(np.full(edges, area.width), 1.0 - normal_force)

    def check_start(self, pose: Array) -> None:
        """See :class:`.Constraint`."""
        rest = np.zeros((1, len(pose)))
        slack = self._slack(self._wrench(pose[None], rest, rest))[0]
        worst = int(np.argmin(slack))
        if slack[worst] < 0:
            raise ExcitationError(self._message(pose[None], rest, rest, worst, "in the start pose", "start elsewhere"))

    def penalty(self, motion: MotionSamples) -> Penalty:
        """Mean over samples of the squared violations, with a margin: in m, and in fractions of the weight."""
        prior = self._model.body_prior.ravel()
        wrench = motion.wrenches.regressor @ prior + self._masses.root_reaction
        slack = self._slack(wrench) / self._scale
        lack = np.maximum(_BEGINS * self._width - slack, 0.0)
        if not lack.any():
            return Penalty(0.0)
        push = -2 * _PENALTY / len(motion) * (lack / self._scale) @ self._rows
        return Penalty(
            _PENALTY / len(motion) * float((lack**2).sum()), base_weights=push[:, :, None] * prior
        )

    def check(self, trajectory: Trajectory) -> None:
        """See :class:`.Constraint`; the whole motion is covered, by bounds of how fast the reaction can change."""
        curve = executed_curve(trajectory)
        violation = find_anywhere(curve, self, len(self._rows))
        if violation is not None:
            at = curve.sample(np.array([violation.time]))
            when = f"at {violation.time:.3f} s"
            raise ExcitationError(self._message(*at, violation.channel, when, "move slower or less"))

    def values(self, q: Array, v: Array, a: Array, channels: Array) -> Array:
        """See :class:`.Slack`: distances from edges times normal force [N m], and normal force [N]."""
        return np.asarray(self._slack(self._wrench(q, v, a))[np.arange(len(q)), channels], dtype=float)

    def rates(self, speeds: DerivativeBounds, channels: Array) -> Array:
        """See :class:`.Slack`."""
        bounds = self._bounds.rates(speeds)
        force, torque = (np.linalg.norm(self._rows[:, part], axis=1)[channels] for part in (slice(3), slice(3, 6)))
        return np.asarray(force * bounds.force + torque * bounds.moment, dtype=float)

    def usage(self, trajectory: Trajectory) -> ConstraintUsage:
        """See :class:`.Constraint`."""
        curve = executed_curve(trajectory)
        wrench = self._wrench(curve.position, curve.velocity, curve.acceleration)
        edges = self.area.distances(self._zero_moment_point(wrench)).min()
        press = ((wrench[:, 2] - self._least[-1]) / self._scale[-1]).min()
        used = [1.0 - edges / self.area.width, 1.0 - press / self._width[-1]]
        descriptions = ("distance of the zero-moment point from the middle of its area", "unloading of the ground")
        worst = int(np.argmax(used))
        return ConstraintUsage(float(used[worst]), descriptions[worst])

    def _wrench(self, q: Array, v: Array, a: Array) -> Array:
        """``(N, 6)`` reaction at the root, the root's own weight included."""
        moving = BodyWrenches.of(self._chain.state(q, v, a)).regressor @ self._model.body_prior.ravel()
        return np.asarray(moving + self._masses.root_reaction, dtype=float)

    def _zero_moment_point(self, wrench: Array) -> Array:
        x = self.ground * wrench[:, 0] - wrench[:, 4]
        y = wrench[:, 3] + self.ground * wrench[:, 1]
        return np.column_stack([x, y]) / wrench[:, 2:3]

    def _slack(self, wrench: Array) -> Array:
        return np.asarray(wrench @ self._rows.T - self._least, dtype=float)

    def _message(self, q: Array, v: Array, a: Array, channel: int, when: str, remedy: str) -> str:
        wrench = self._wrench(q, v, a)
        if channel == len(self._rows) - 1:
            return (
                f"normal force: is {wrench[0, 2]:.4g} N {when}, less than {self._least[-1]:.4g} N; {remedy}, or correct"
                " balance.normal_force"
            )
        x, y = self._zero_moment_point(wrench)[0]
        outside = -float(self.area.distances(np.array([[x, y]]))[0, channel])
        return (
            f"zero-moment point: is at ({x:.4f}, {y:.4f}) m {when}, {outside:.4f} m outside its area; {remedy}, or"
            " widen balance.support"
        )
