"""Joint efforts of the prior model for a motion, bounds on their rates, and their limits."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import mass_com_inertia
from inertid_ros.excitation.constraints import constraint
from inertid_ros.excitation.plan import Plan
from inertid_ros.robot.dynamics import rigid_torque
from inertid_ros.robot.model import RobotModel

_EFFORT_PENALTY = 300.0
_EFFORT_PENALTY_BEGINS = 0.97  # of the limits
_EFFORT_STEP_S = 0.01


def prior_effort(model: RobotModel, q: Array, v: Array, a: Array) -> Array:
    """Efforts ``(N, n)`` [N m or N] of the URDF's bodies and friction along samples ``(N, n)``.

    Coulomb friction always increases the size of the effort, as the sign of friction is undefined at rest.
    """
    tau = rigid_torque(model, model.body_prior, q, v, a)
    tau += model.drive_prior["rotor_inertia"] * a + model.drive_prior["viscous"] * v
    return tau + np.copysign(model.drive_prior["coulomb"], tau)


class EffortConstraint(constraint.Constraint):
    """Constraint that efforts of the prior model keep limits ``(n,)`` [N m or N], which allow for errors of the prior.

    The channels are the unused fractions of the limits.
    """

    positions_only = False

    def __init__(self, model: RobotModel, effort: Array) -> None:
        self._model, self._limits, self._bounds = model, effort, WrenchRateBounds(model)

    def penalty(self, motion: constraint.MotionSamples) -> constraint.Penalty:
        """Mean over samples of the squared excess over the limits, relative to the limits."""
        ratio = prior_effort(self._model, motion.q, motion.v, motion.a) / self._limits
        excess = np.maximum(np.abs(ratio) - _EFFORT_PENALTY_BEGINS, 0.0)
        value = _EFFORT_PENALTY * float((excess**2).sum()) / len(motion)
        if value == 0:
            return constraint.Penalty(0.0)
        push = _EFFORT_PENALTY * 2 * excess * np.sign(ratio) / self._limits / len(motion)
        drives = self._model.drive_prior
        # The effort of the bodies is the regressor times the prior.
        joint_weights = push[:, :, None] * self._model.body_prior.ravel()
        return constraint.Penalty(value, 0.0, push * drives["viscous"], push * drives["rotor_inertia"], joint_weights)

    def slack(self, q: Array, v: Array, a: Array) -> Array:
        return 1.0 - np.abs(prior_effort(self._model, q, v, a)) / self._limits

    def rates(self, bounds: constraint.DerivativeBounds) -> Array:
        return np.asarray(self._bounds.rates(bounds)[0] / self._limits, dtype=float)

    def violation(self, state: constraint.State, channel: int, when: str, at_rest: bool) -> str:
        effort, limit = abs(prior_effort(self._model, *state)[0, channel]), self._limits[channel]
        name, friction = self._model.joint_names[channel], self._model.drive_prior["coulomb"][channel]
        if not at_rest:
            return (
                f"joint '{name}': the motion needs {effort:.4g} N m {when}, beyond its effort"
                f" limit {limit:.4g} N m; move slower, elsewhere, or correct the limit")
        of_it = f", including {friction:.4g} N m of friction (<dynamics>)" if friction > 0.5 * effort else ""
        return (
            f"joint '{name}': needs {effort:.4g} N m to stand at the start pose{of_it},"
            f" beyond its effort limit {limit:.4g} N m; start elsewhere, correct the limit"
            f" (limits.effort), or hold the joint with robot.locked_joints: {{{name}: {state[0][0, channel]:.4g}}}")

    def usage(self, plan: Plan) -> constraint.ConstraintUsage:
        time = np.linspace(0.0, plan.duration, max(int(np.ceil(plan.duration / _EFFORT_STEP_S)) + 1, 3))
        used = (np.abs(prior_effort(self._model, *plan.sample(time))) / self._limits).max(axis=0)
        joint = int(np.argmax(used))
        return constraint.ConstraintUsage(float(used[joint]), f"effort of joint '{self._model.joint_names[joint]}'")


class WrenchRateBounds:
    """Bounds on the rates of joint efforts and of the reaction at the root, for the URDF's inertial parameters.

    Only norms are propagated along the tree. Outward: norms of the motion (angular velocity, its first two derivatives,
    acceleration and jerk of the origins). Inward: norms of forces and moments, and of their rates of change in the root
    frame. The bounds hold in every pose, and are several times too large; halving of segments compensates for this.
    """

    def __init__(self, model: RobotModel) -> None:
        strokes = np.nan_to_num(np.maximum(np.abs(model.limits.lower), np.abs(model.limits.upper)), posinf=0.0)
        # Per joint: parent, whether it slides, and largest distance from the parent's origin.
        self._joints = [
            (joint.parent, joint.prismatic, np.linalg.norm(joint.placement_translation) + joint.prismatic * stroke)
            for joint, stroke in zip(model.tree, strokes, strict=True)]
        mass, com, inertia = mass_com_inertia(model.body_prior)
        radius = np.abs(np.linalg.eigvalsh(inertia)).max(axis=1)
        self._bodies = list(zip(mass, np.linalg.norm(com, axis=1), radius, strict=True))
        self._gravity = float(np.linalg.norm(model.pinocchio.gravity.linear))
        self._rotor, self._viscous = model.drive_prior["rotor_inertia"], model.drive_prior["viscous"]

    def rates(self, bounds: constraint.DerivativeBounds) -> tuple[Array, Array, Array]:
        """Bounds on rates of change on S segments.

        Return bounds for joint efforts ``(S, n)`` [N m/s or N/s] due to bodies, rotors and viscous friction, and for
        the force and moment ``(S,)`` of the moving bodies about the root origin, gravity included.
        """
        count, joints = len(bounds.velocity), len(self._joints)
        zero = np.zeros(count)
        # Parent -1 is the root, which rests.
        motions = [_MotionNorms(zero, zero, zero, zero + self._gravity, zero)] * (joints + 1)
        for joint, (parent, slides, lever) in enumerate(self._joints):
            rates = bounds.velocity[:, joint], bounds.acceleration[:, joint], bounds.jerk[:, joint]
            origin = motions[parent].at(lever)
            motions[joint] = origin.sliding(*rates) if slides else origin.turning(*rates)
        loads = np.zeros((joints + 1, 4, count))  # force, moment and their rates
        effort = np.empty((count, joints))
        for joint, (parent, slides, lever) in reversed(list(enumerate(self._joints))):
            motion, before = motions[joint], motions[parent]
            mass, offset, inertia = self._bodies[joint]
            force, moment, force_rate, moment_rate = loads[joint]
            W, centre = motion.angular, motion.at(offset)
            inertial, inertial_rate = mass * centre.linear, mass * centre.jerk
            force += inertial
            force_rate += inertial_rate
            moment += offset * inertial + inertia * (motion.turn + W**2)
            moment_rate += offset * (inertial_rate + W * inertial)
            moment_rate += inertia * (motion.turn_rate + 4 * W * motion.turn + 2 * W**3)
            along, along_rate = (force, force_rate) if slides else (moment, moment_rate)
            effort[:, joint] = along_rate + before.angular * along
            lever_rate = before.angular * lever + slides * bounds.velocity[:, joint]
            rate_at_parent = moment_rate + lever * force_rate + lever_rate * force
            loads[parent] += force, moment + lever * force, force_rate, rate_at_parent
        effort += self._rotor * bounds.jerk + self._viscous * bounds.acceleration
        force_rate, moment_rate = loads[-1, 2:]
        return effort, force_rate, moment_rate


@dataclass(frozen=True)
class _MotionNorms:
    """Norms ``(S,)`` at a point of a body: angular velocity, its two derivatives, acceleration minus gravity, jerk."""

    angular: Array
    turn: Array
    turn_rate: Array
    linear: Array
    jerk: Array

    def at(self, distance: float) -> "_MotionNorms":
        """Norms at another point of the same body."""
        W, A, B = self.angular, self.turn, self.turn_rate
        linear, jerk = self.linear + distance * (A + W**2), self.jerk + distance * (B + 3 * A * W + W**3)
        return _MotionNorms(W, A, B, linear, jerk)

    def turning(self, v: Array, a: Array, j: Array) -> "_MotionNorms":
        """Norms of the body that a revolute joint moves."""
        W, A, B = self.angular, self.turn, self.turn_rate
        return _MotionNorms(W + v, A + a + W * v, B + j + 2 * W * a + A * v + W**2 * v, self.linear, self.jerk)

    def sliding(self, v: Array, a: Array, j: Array) -> "_MotionNorms":
        """Norms of the body that a prismatic joint moves."""
        W, A, B = self.angular, self.turn, self.turn_rate
        linear = self.linear + a + 2 * W * v
        return _MotionNorms(W, A, B, linear, self.jerk + j + 3 * (W * a + A * v + W**2 * v))
