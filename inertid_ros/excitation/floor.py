"""A floor that the link frames stay above."""

import numpy as np
import pinocchio as pin

from ..errors import ExcitationError
from ..regressors.chain import Chain
from ..robot.model import RobotModel
from ..robot.parameters import Array
from .constraint import MotionSamples, Penalty, Tightest
from .limits import MotionLimits
from .trajectories import Trajectory

_PENALTY = 3000.0  # 1/m^2
_MARGIN = 0.01  # m above the floor, where the penalty begins
_STEP = 0.01  # s


class Floor:
    """Half-space ``z >= height`` of the root frame for the origins of all moving link frames.

    Origins say nothing of how far a link reaches around them: the height must hold a margin for that.

    Parameters
    ----------
    model: the robot.
    height: m, in the root frame.
    """

    def __init__(self, model: RobotModel, height: float) -> None:
        self._model, self._chain, self.height = model.pinocchio, Chain(model), height
        frames = [frame for frame in self._model.frames if frame.parentJoint > 0 and frame.type == pin.BODY]
        reach = _reaches(self._model, frames)
        moving = [row for row in range(len(frames)) if reach[row].any()]  # others stay on the axes that turn them
        self.names = tuple(str(frames[row].name) for row in moving)
        self._parents = np.array([frames[row].parentJoint - 1 for row in moving], dtype=int)
        self._offsets = np.array([frames[row].placement.translation for row in moving]).reshape(-1, 3)
        self._reach = reach[moving]

    def heights(self, q: Array) -> Array:
        """``(N, n)`` poses to the ``(N, frames)`` z of the frames [m]."""
        return self.points(self._chain.placements(q))[..., 2]

    def points(self, placements: Array) -> Array:
        """``(N, frames, 3)`` origins of the frames from the placements ``(N, n, 4, 4)`` of the bodies."""
        T = placements[:, self._parents]
        return (T[..., :3, :3] @ self._offsets[..., None])[..., 0] + T[..., :3, 3]

    def check_start(self, pose: Array) -> None:
        """See :class:`Constraint`."""
        if not self.names:
            return
        heights = self.heights(pose[None])[0]
        lowest = int(np.argmin(heights))
        if heights[lowest] < self.height:
            raise ExcitationError(
                f"link '{self.names[lowest]}': is at {heights[lowest]:.3f} m in the start pose, below the floor at"
                f" {self.height:.3f} m; start higher or lower floor_m"
            )

    def penalty(self, motion: MotionSamples) -> Penalty:
        """Mean square of what lies below the floor plus a margin."""
        points, screws = self.points(motion.placements), motion.screws
        depth = np.maximum(self.height + _MARGIN - points[..., 2], 0.0)
        slope = -2 * _PENALTY * depth / len(points)
        carried = self._chain.ancestry.T[self._parents]
        # z component of the velocity of a point under each joint: v_z + w_x y - w_y x.
        speed = (
            screws[:, None, :, 2]
            + screws[:, None, :, 3] * points[:, :, None, 1]
            - screws[:, None, :, 4] * points[:, :, None, 0]
        )
        gradient = np.einsum("nf,nfj,fj->nj", slope, speed, carried)
        return Penalty(_PENALTY * float((depth**2).sum()) / len(points), gradient)

    def tightest(self, trajectory: Trajectory) -> Tightest:
        """See :class:`Constraint`; what is used is the way down from the pose at the beginning."""
        if not self.names:
            return Tightest(0.0, "floor")
        heights = self._along(trajectory)[1]
        used = (heights[0] - heights.min(axis=0)) / np.maximum(heights[0] - self.height, 1e-9)
        frame = int(np.argmax(used))
        return Tightest(float(used[frame]), f"height of link '{self.names[frame]}'")

    def sag(self, limits: MotionLimits, step: float) -> float:
        """How far [m] a frame can lie below the chord between samples ``step`` [s] apart.

        ``step^2 / 8`` times a bound of its acceleration, ``sum_j R_j a_j + sum_jk R_max(j,k) v_j v_k``, where ``R_j``
        bounds the distance from joint j to the frame.
        """
        v, a, worst = limits.velocity, limits.acceleration, 0.0
        for reach in self._reach:
            later = np.minimum.outer(reach, reach)
            worst = max(worst, float(reach @ a + v @ np.where(later > 0, later, 0.0) @ v))
        return worst * step**2 / 8

    def check(self, trajectory: Trajectory, limits: MotionLimits) -> None:
        """See :class:`Constraint`; between samples frames sag no more than their acceleration allows."""
        if not self.names:
            return
        time, heights = self._along(trajectory)
        row, frame = np.unravel_index(int(np.argmin(heights)), heights.shape)
        lowest = heights[row, frame] - self.sag(limits, float(time[1] - time[0]))
        if lowest < self.height:
            raise ExcitationError(
                f"link '{self.names[frame]}': goes down to {lowest:.3f} m at {time[row]:.3f} s, below the floor at"
                f" {self.height:.3f} m; start higher or restrict limits.position"
            )

    def _along(self, trajectory: Trajectory) -> tuple[Array, Array]:
        """Times and the heights of the frames."""
        time = np.linspace(0.0, trajectory.duration, max(int(np.ceil(trajectory.duration / _STEP)) + 1, 2))
        return time, self.heights(trajectory.sample(time)[0])


def _reaches(model: pin.Model, frames: list[pin.Frame]) -> Array:
    """``(frames, n)`` bound of the distance [m] from each joint's axis to each frame; zero where it does not move it.

    A prismatic joint moves a frame by one metre per metre; its stroke lengthens the reach of those before it.
    """
    travel = np.zeros(model.njoints)
    for index in range(1, model.njoints):
        if "P" in model.joints[index].shortname():
            at = model.joints[index].idx_q
            travel[index] = max(abs(model.lowerPositionLimit[at]), abs(model.upperPositionLimit[at]))
    out = np.zeros((len(frames), model.nv))
    for row, frame in enumerate(frames):
        reach, joint = float(np.linalg.norm(frame.placement.translation)), frame.parentJoint
        while joint > 0:
            prismatic = "P" in model.joints[joint].shortname()
            reach += travel[joint]
            out[row, model.joints[joint].idx_v] = max(reach, 1.0) if prismatic else reach
            reach += float(np.linalg.norm(model.jointPlacements[joint].translation))
            joint = model.parents[joint]
    return out
