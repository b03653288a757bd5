"""What the arm of the payload demo does: movements from rest to rest, and a box that it grasps meanwhile."""

from dataclasses import dataclass

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Inertia, InertiaStamped, Vector3
from scipy.spatial.transform import Rotation
from std_msgs.msg import Header

from inertid_ros.core.arrays import Array
from inertid_ros.robot.model import RobotModel
from inertid_ros.ros.conversions import TrajectoryArrays

_MARGIN = 0.1  # rad from the limits


@dataclass(frozen=True)
class Box:
    """A homogeneous box in the frame of a link.

    Attributes
    ----------
    mass : float
        [kg].
    com : ndarray, shape (3,)
        Its centre [m].
    inertia : ndarray, shape (3, 3)
        About its centre [kg m^2].
    """

    mass: float
    com: Array
    inertia: Array

    @classmethod
    def random(cls, rng: np.random.Generator, mass: float) -> "Box":
        """Sides of 5 to 20 cm, in any orientation, its centre 5 to 15 cm before the frame and up to 5 cm beside it."""
        squares = rng.uniform(0.05, 0.2, 3) ** 2
        turn = Rotation.random(random_state=rng).as_matrix()
        com = np.array([*rng.uniform(-0.05, 0.05, 2), rng.uniform(0.05, 0.15)])
        return cls(mass, com, turn @ np.diag(mass / 12 * (squares.sum() - squares)) @ turn.T)

    def message(self, link: str, stamp: Time) -> InertiaStamped:
        """What the simulator attaches to a link."""
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = self.inertia.tolist()
        x, y, z = self.com.tolist()
        inertia = Inertia(m=self.mass, com=Vector3(x=x, y=y, z=z), ixx=xx, ixy=xy, ixz=xz, iyy=yy, iyz=yz, izz=zz)
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
