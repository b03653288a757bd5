"""How far joints can move what is behind them, in any pose."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.robot.model import RobotModel


def reaches(model: RobotModel, body: int, distance: float) -> Array:
    """``(n,)`` bound [m] of how far a point moves per radian (metre) of each joint, in any pose within the limits.

    A prismatic joint moves everything by one metre per metre; its stroke lengthens the reach of those before it.

    Parameters
    ----------
    body : int
        Index of the moving body that carries the point; -1 for the root, which nothing moves.
    distance : float
        Of the point from the joint of that body [m].
    """
    robot, out = model.pinocchio, np.zeros(model.joints)
    reach, joint = distance, body + 1
    while joint > 0:
        index = joint - 1
        slides = not model.axes[index][3:].any()
        out[index] = 1.0 if slides else reach
        if slides:
            stroke = max(abs(model.limits.lower[index]), abs(model.limits.upper[index]))
            reach += stroke if np.isfinite(stroke) else 0.0
        reach += float(np.linalg.norm(robot.jointPlacements[joint].translation))
        joint = int(robot.parents[joint])
    return out
