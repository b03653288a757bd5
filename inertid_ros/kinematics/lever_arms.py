"""Bounds of the lever arms of joints: how far each can move a point behind it, in any pose."""

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.robot.model import RobotModel


def lever_arm_bounds(model: RobotModel, body: int, distance: float) -> Array:
    """``(n,)`` bound [m] of how far a point moves per radian (metre) of each joint, in any pose within the limits.

    A prismatic joint moves everything by one metre per metre; its stroke lengthens the arms of those before it.

    Parameters
    ----------
    body : int
        Index of the moving body of the point; -1 for the root, which nothing moves.
    distance : float
        Of the point from the joint of that body [m].
    """
    robot, out = model.pinocchio, np.zeros(model.joints)
    arm, joint = distance, body + 1
    while joint > 0:
        index = joint - 1
        slides = not model.axes[index][3:].any()
        out[index] = 1.0 if slides else arm
        if slides:
            stroke = max(abs(model.limits.lower[index]), abs(model.limits.upper[index]))
            arm += stroke if np.isfinite(stroke) else 0.0
        arm += float(np.linalg.norm(robot.jointPlacements[joint].translation))
        joint = int(robot.parents[joint])
    return out
