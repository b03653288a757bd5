"""Joint efforts that the prior model needs for a motion, and their limits."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.dynamics.newton_euler import rigid_torque
from inertid_ros.excitation.limits.constraint import Constraint, ConstraintUsage, MotionSamples, Penalty
from inertid_ros.excitation.limits.continuous_time import DerivativeBounds, executed_curve, find_anywhere
from inertid_ros.excitation.limits.wrench_rates import WrenchRateBounds
from inertid_ros.excitation.motions.trajectories import Trajectory
from inertid_ros.robot.model import RobotModel

_PENALTY = 300.0
_BEGINS = 0.97  # of the limits, where the penalty begins
_STEP = 0.01  # s


def prior_effort(model: RobotModel, q: Array, v: Array, a: Array) -> Array:
    """``(N, n)`` efforts [N m or N] of the URDF's bodies and friction along ``(N, n)`` samples.

    Coulomb friction counts against gravity and inertia with its full size whatever the direction, since its sign
    is undefined at rest: the result has the sign of the rest of the effort.
    """
    tau = rigid_torque(model, model.body_prior, q, v, a)
    tau += model.drive_prior["rotor_inertia"] * a + model.drive_prior["viscous"] * v
    return tau + np.copysign(model.drive_prior["coulomb"], tau)


class EffortConstraint(Constraint):
    """The effort of the prior model stays within limits. The bodies of the prior are uncertain: limits hold a margin.

    Parameters
    ----------
    model : RobotModel
        The robot, with the prior.
    effort : ndarray, shape (n,)
        Limits [N m or N].
    """

    positions_only = False

    def __init__(self, model: RobotModel, effort: Array) -> None:
        self._model, self.effort, self._bounds = model, effort, WrenchRateBounds(model)

    def check_start(self, pose: Array) -> None:
        """See :class:`.Constraint`."""
        rest = np.zeros((1, len(pose)))
        effort = np.abs(prior_effort(self._model, pose[None], rest, rest)[0])
        joint = int(np.argmax(effort / self.effort))
        if effort[joint] > self.effort[joint]:
            name, friction = self._model.joint_names[joint], self._model.drive_prior["coulomb"][joint]
            of_it = f", {friction:.4g} of it the friction of its <dynamics>" if friction > 0.5 * effort[joint] else ""
            raise ExcitationError(
                f"joint '{name}': needs {effort[joint]:.4g} N m to stand at the start pose{of_it},"
                f" beyond its effort limit {self.effort[joint]:.4g} N m; start elsewhere, correct the limit"
                f" (limits.effort), or hold the joint with robot.locked_joints: {{{name}: {pose[joint]:.4g}}}"
            )

    def penalty(self, motion: MotionSamples) -> Penalty:
        """Mean over samples of the squared excess over the limits, as a fraction of them."""
        ratio = prior_effort(self._model, motion.q, motion.v, motion.a) / self.effort
        excess = np.maximum(np.abs(ratio) - _BEGINS, 0.0)
        value = _PENALTY * float((excess**2).sum()) / len(motion)
        if value == 0:
            return Penalty(0.0)
        push = _PENALTY * 2 * excess * np.sign(ratio) / self.effort / len(motion)
        drives = self._model.drive_prior
        return Penalty(
            value,
            velocity=push * drives["viscous"],
            acceleration=push * drives["rotor_inertia"],
            # The effort of the bodies is the regressor times the prior.
            joint_weights=push[:, :, None] * self._model.body_prior.ravel(),
        )

    def check(self, trajectory: Trajectory) -> None:
        """See :class:`.Constraint`; the whole motion is covered, by bounds of how fast efforts can change."""
        violation = find_anywhere(executed_curve(trajectory), self, len(self.effort))
        if violation is not None:
            joint, limit = violation.channel, self.effort[violation.channel]
            raise ExcitationError(
                f"joint '{self._model.joint_names[joint]}': the motion needs {limit - violation.value:.4g} N m at"
                f" {violation.time:.3f} s, beyond its effort limit {limit:.4g} N m; move slower, elsewhere, or correct"
                " the limit"
            )

    def values(self, q: Array, v: Array, a: Array, channels: Array) -> Array:
        """See :class:`.Slack`: limit less size of a joint's effort."""
        effort = np.abs(prior_effort(self._model, q, v, a))[np.arange(len(q)), channels]
        return self.effort[channels] - effort

    def rates(self, speeds: DerivativeBounds, channels: Array) -> Array:
        """See :class:`.Slack`."""
        return self._bounds.rates(speeds).effort[np.arange(len(channels)), channels]

    def usage(self, trajectory: Trajectory) -> ConstraintUsage:
        """See :class:`.Constraint`."""
        time = np.linspace(0.0, trajectory.duration, max(int(np.ceil(trajectory.duration / _STEP)) + 1, 3))
        used = (np.abs(prior_effort(self._model, *trajectory.sample(time))) / self.effort).max(axis=0)
        joint = int(np.argmax(used))
        return ConstraintUsage(float(used[joint]), f"effort of joint '{self._model.joint_names[joint]}'")
