"""Recording: the raw channels of one experiment, exactly as they were measured."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.robot.recorded_joints import RecordedJoints

from .stamp_order import StampRepairs


@dataclass(frozen=True)
class Recording:
    """Raw, synchronised channels. Optional channels are None (or absent from ``wrenches``).

    Values may be NaN or infinite where they were lost; preparation leaves them out
    (:mod:`inertid_ros.data.cleaning`). Stamps may not.

    Attributes
    ----------
    joint_names : tuple of str
        ``n`` names, any order.
    time : ndarray, shape (N,)
        Strictly increasing, from the header stamps [s].
    position : ndarray, shape (N, n)
        Joint position [rad or m].
    effort : ndarray, shape (N, n)
        Joint torque or force, joint side [N m or N]; NaN throughout for joints that have no sensor.
    velocity, acceleration : ndarray, shape (N, n), optional
        Joint velocity and acceleration [rad or m, per s and s^2].
    wrenches : mapping of str to ndarray, shape (N, 6)
        Frame name to force [N] and torque [N m] acting on the robot, in that frame.
    base_pose : ndarray, shape (N, 7), optional
        x y z [m], qx qy qz qw.
    base_twist : ndarray, shape (N, 6), optional
        Linear then angular, in the base frame [m/s, rad/s].
    base_acceleration : ndarray, shape (N, 6), optional
        Derivative of the twist in the base frame (not the acceleration of a point: see Pinocchio's).
    imu : ndarray, shape (N, 6), optional
        Specific force [m/s^2] and angular velocity [rad/s] in the axes of an inertial measurement unit on the base; at
        rest the force points up.
    name : str
        Name in messages (a file or topic name).
    repairs : StampRepairs
        What was done to the stamps.
    notices : tuple of str
        How the recording was obtained, where that matters to its use, such as a bag that was not closed; one line each.
    continued : tuple of bool
        Whether it is a part of a longer one that goes on before it, and after it.
    context : tuple of int
        Samples at its begin, and at its end, that are its neighbours' and are there for what filters remember.

    Raises
    ------
    RecordingError
        Shapes do not fit, a stamp is not finite, or stamps repeat or go back.
    """

    joint_names: tuple[str, ...]
    time: Array
    position: Array
    effort: Array
    velocity: Array | None = None
    acceleration: Array | None = None
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    base_pose: Array | None = None
    base_twist: Array | None = None
    base_acceleration: Array | None = None
    imu: Array | None = None
    name: str = "recording"
    notices: tuple[str, ...] = ()
    repairs: StampRepairs = StampRepairs()
    continued: tuple[bool, bool] = (False, False)
    context: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "joint_names", tuple(str(name) for name in self.joint_names))
        object.__setattr__(self, "time", self._array("time", self.time, ()))
        n = len(self.joint_names)
        if n == 0:
            raise RecordingError(f"{self.name}: joint_names is empty; record joint_states with names")
        duplicates = sorted(name for name, count in Counter(self.joint_names).items() if count > 1)
        if duplicates:
            raise RecordingError(f"{self.name}: joint_names lists {duplicates} twice; rename or drop one")
        object.__setattr__(self, "wrenches", {str(frame): wrench for frame, wrench in dict(self.wrenches).items()})
        for channel, width in (("position", n), ("effort", n), ("velocity", n), ("acceleration", n)):
            self._check(channel, (width,))
        for channel, width in (("base_pose", 7), ("base_twist", 6), ("base_acceleration", 6), ("imu", 6)):
            self._check(channel, (width,))
        wrenches = {frame: self._array(f"wrench/{frame}", w, (6,)) for frame, w in self.wrenches.items()}
        object.__setattr__(self, "wrenches", wrenches)
        self._check_time()

    def __len__(self) -> int:
        return len(self.time)

    @property
    def duration(self) -> float:
        """Span of the stamps [s]."""
        return float(self.time[-1] - self.time[0])

    def select(self, rows: NDArray[np.bool_]) -> "Recording":
        """Those samples ``(N,)`` alone."""
        channels: dict[str, Any] = {name: getattr(self, name)[rows] for name in self.arrays}
        wrenches = {frame: wrench[rows] for frame, wrench in self.wrenches.items()}
        ahead, behind = self.context
        context = int(rows[:ahead].sum()), int(rows[len(rows) - behind :].sum())
        return replace(self, **channels, wrenches=wrenches, context=context)

    @property
    def arrays(self) -> list[str]:
        """Names of the channels with one row per sample, but for wrenches."""
        return [each.name for each in fields(self) if isinstance(getattr(self, each.name), np.ndarray)]

    @property
    def own_rows(self) -> slice:
        """Rows of the samples that are no neighbour's."""
        return slice(self.context[0], len(self) - self.context[1])

    def _check(self, channel: str, tail: tuple[int, ...]) -> None:
        value = getattr(self, channel)
        if value is None:
            if channel in ("position", "effort"):
                raise RecordingError(f"{self.name}: {channel} is missing; record joint_states with {channel} filled")
            return
        object.__setattr__(self, channel, self._array(channel, value, tail))

    def _array(self, channel: str, value: object, tail: tuple[int, ...]) -> Array:
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            raise RecordingError(f"{self.name}: {channel} does not hold numbers; export it as float64") from None
        wanted = (len(np.atleast_1d(np.asarray(self.time))), *tail)
        if array.shape != wanted:
            raise RecordingError(f"{self.name}: {channel} has shape {array.shape}, expected {wanted}; fix the export")
        if channel == "time" and not np.isfinite(array).all():
            row = int(np.argmin(np.isfinite(array)))
            raise RecordingError(f"{self.name}: time is {array[row]} at sample {row}; cut it out or export it again")
        array = array.copy()
        array.flags.writeable = False
        return array

    def _check_time(self) -> None:
        if len(self.time) < 2:
            raise RecordingError(f"{self.name}: holds {len(self.time)} samples; record at least a few seconds")
        step = np.diff(self.time)
        if (step <= 0).any():
            row = int(np.argmax(step <= 0)) + 1
            raise RecordingError(
                f"{self.name}: time goes back or repeats at sample {row} ({self.time[row - 1]:.6f} s to"
                f" {self.time[row]:.6f} s); check the clock of the publisher or cut the recording there"
            )


def renamed(recording: Recording, joints: RecordedJoints) -> Recording:
    """The recording with the URDF's names of joints, and a notice where they are others.

    Raises
    ------
    RecordingError
        Two joints get one name.
    """
    told = joints.told(recording.joint_names)
    if not told:
        return recording
    own = joints.own(recording.joint_names, recording.name)
    return replace(recording, joint_names=own, notices=(*recording.notices, told))
