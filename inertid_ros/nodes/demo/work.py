"""What the arm of the payload demo does: movements from rest to rest, and a box that it grasps meanwhile."""

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Inertia, InertiaStamped, Vector3
from std_msgs.msg import Header

from inertid_ros.core.arrays import Array
from inertid_ros.robot.model import RobotModel
from inertid_ros.ros.conversions import TrajectoryArrays
from inertid_ros.simulation.held_box import Box

_MARGIN = 0.1  # rad from the limits


def attached(box: Box, link: str, stamp: Time) -> InertiaStamped:
    """Return the message by which the simulator attaches a box to a link."""
    mass, x, y, z, xx, xy, xz, yy, yz, zz = box.numbers.tolist()
    inertia = Inertia(m=mass, com=Vector3(x=x, y=y, z=z), ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)
    return InertiaStamped(header=Header(stamp=stamp, frame_id=link), inertia=inertia)


def movements(
    model: RobotModel, start: Array, rng: np.random.Generator, seconds: float, each: float = 1.25, size: float = 0.5
) -> TrajectoryArrays:
    """Movements from rest to rest, each to a random pose near the first; a controller makes quintics of them.

    Parameters
    ----------
    start : ndarray, shape (n,)
        Pose before [rad].
    seconds, each : float
        Time of all, and of each of them [s].
    size : float
        Largest displacement of a joint from the first pose [rad].
    """
    count = max(2, round(seconds / each))
    poses = start + rng.uniform(-size, size, (count, len(start)))
    poses[-1] = start
    poses = np.clip(poses, model.limits.lower + _MARGIN, model.limits.upper - _MARGIN)
    rest = np.zeros_like(poses)
    return TrajectoryArrays(model.joint_names, each * np.arange(1.0, count + 1), poses, rest, rest)
