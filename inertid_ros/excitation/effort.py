"""Joint efforts that the prior model needs for a motion."""

import numpy as np
import pinocchio as pin

from ..errors import ExcitationError
from ..robot.model import RobotModel
from ..robot.parameters import Array
from .limits import MotionLimits
from .trajectories import Trajectory


def prior_effort(model: RobotModel, q: Array, v: Array, a: Array) -> Array:
    """``(N, n)`` efforts [N m or N] of the URDF's bodies and friction along ``(N, n)`` samples.

    Coulomb friction counts against gravity and inertia with its full size whatever the direction, since its sign
    is undefined at rest: the result has the sign of the rest of the effort.
    """
    data = model.pinocchio.createData()
    tau = np.array([pin.rnea(model.pinocchio, data, *row) for row in zip(q, v, a, strict=True)])
    tau += model.drive_prior["rotor_inertia"] * a + model.drive_prior["viscous"] * v
    return tau + np.copysign(model.drive_prior["coulomb"], tau)


def check_effort(model: RobotModel, trajectory: Trajectory, limits: MotionLimits, step: float = 0.01) -> None:
    """Refuse a motion that needs more effort than the limits, by the prior model.

    Between samples the effort is bounded by the chord plus an eighth of the second difference, taken double. The
    bodies of the prior are uncertain by far more; ``limits.effort`` holds the margin for that.

    Raises
    ------
    ExcitationError: naming the joint, the time, the value and the limit.
    """
    time = np.linspace(0.0, trajectory.duration, max(int(np.ceil(trajectory.duration / step)) + 1, 3))
    tau = np.abs(prior_effort(model, *trajectory.sample(time)))
    between = 0.25 * np.abs(np.diff(tau, 2, axis=0)).max(axis=0)
    beyond = tau + between - limits.effort
    row, joint = np.unravel_index(int(np.argmax(beyond / limits.effort)), beyond.shape)
    if beyond[row, joint] > 0:
        raise ExcitationError(
            f"joint '{limits.joint_names[joint]}': the motion needs {tau[row, joint]:.4g} N m at {time[row]:.3f} s,"
            f" beyond its effort limit {limits.effort[joint]:.4g} N m; move slower, elsewhere, or correct the limit"
        )
