"""Joints of a robot in messages of joint states, whatever their order and their names there."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import JointState

from inertid_ros.config.schema.structuring import flow
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.robot.recorded_joints import RecordedJoints, proposed_names

from .conversions import to_nanoseconds


@dataclass(frozen=True)
class JointSample:
    """One JointState in a chosen joint order; ``velocity`` and ``effort`` are NaN where the message lacks them."""

    stamp_ns: int
    position: Array
    velocity: Array
    effort: Array


class JointOrder:
    """Picks a fixed set of joints out of JointState messages, in any order and among any others.

    Parameters
    ----------
    joint_names : sequence of str
        ``n`` names.
    effort_scale : ndarray, shape (n,), optional
        Factors from reported efforts to N m or N, see :attr:`~inertid_ros.robot.model.RobotModel.effort_scale`; 1 where
        not given.
    recorded : RecordedJoints, optional
        What messages call these joints, see :attr:`~inertid_ros.robot.model.RobotModel.recorded_joints`.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        effort_scale: Array | None = None,
        recorded: RecordedJoints | None = None,
    ) -> None:
        self.joint_names = tuple(joint_names)
        self._recorded = recorded or RecordedJoints()
        self._skipped: tuple[str, ...] = ()
        self._effort_scale = np.ones(len(self.joint_names)) if effort_scale is None else effort_scale
        self._known: dict[tuple[str, ...], NDArray[np.intp] | None] = {}

    def sample(self, message: JointState) -> JointSample | None:
        """Return the wanted joints of a message; None where it lacks all of them.

        Raises
        ------
        RecordingError
            Some of the joints are missing, a joint is listed twice, or lengths do not fit.
        """
        names = tuple(message.name)
        if names not in self._known:
            self._known[names] = self._columns(names)
        columns = self._known[names]
        if columns is None:
            self._skipped = names
            return None
        position, velocity, effort = (
            self._pick(message, key, len(names), columns) for key in ("position", "velocity", "effort")
        )
        return JointSample(to_nanoseconds(message.header.stamp), position, velocity, self._effort_scale * effort)

    @property
    def others(self) -> str:
        """A line on the joints of the last message that had none of the wanted ones; empty where there was none."""
        if not self._skipped:
            return ""
        names = proposed_names(self._skipped, self.joint_names)
        remedy = f"set robot.joint_names: {flow(names)} if these are the same" if names else "give the robot's URDF"
        there, wanted = ", ".join(self._skipped), ", ".join(self.joint_names)
        return f"joint_states holds {there}, but the joints of the robot are {wanted}; {remedy}"

    def _columns(self, names: tuple[str, ...]) -> NDArray[np.intp] | None:
        if len(set(names)) != len(names):
            raise RecordingError(f"joint_states: a joint is listed twice in {list(names)}; fix the publisher")
        recorded, names = names, self._recorded.own(names, "joint_states")
        missing = [joint for joint in self.joint_names if joint not in names]
        if len(missing) == len(self.joint_names):
            return None
        if missing:
            raise RecordingError(f"joint_states: joints {missing} are missing; the message has {list(names)}")
        commanded = dict(zip(self.joint_names, self._recorded.recorded(self.joint_names), strict=True))
        for own, name in zip(names, recorded, strict=True):
            if commanded.get(own, name) != name:
                raise RecordingError(
                    f"joint_states: {name} is {own}, which commands would call {commanded[own]}; name"
                    f" it in robot.joint_names: {{{name}: {own}}}"
                )
        return np.array([names.index(joint) for joint in self.joint_names], dtype=np.intp)

    @staticmethod
    def _pick(message: JointState, key: str, count: int, columns: NDArray[np.intp]) -> Array:
        values = np.asarray(getattr(message, key), dtype=float)
        if len(values) == 0 and key != "position":
            return np.full(len(columns), np.nan)
        if len(values) != count:
            raise RecordingError(f"joint_states: {key} has {len(values)} values for {count} joints; fix the publisher")
        return values[columns]


class HeldJoints:
    """Last positions of joints that a model holds, whatever messages bring them; those of a gripper have their own.

    Parameters
    ----------
    joint_names : sequence of str
        ``k`` names.
    recorded : RecordedJoints
        What messages call the joints of the robot.
    """

    def __init__(self, joint_names: Sequence[str], recorded: RecordedJoints) -> None:
        self._names, self._recorded = tuple(joint_names), recorded
        self._places: dict[tuple[str, ...], list[tuple[int, int]]] = {}
        self._position = np.full(len(self._names), np.nan)

    def update(self, message: JointState) -> Array:
        """Return the positions ``(k,)`` [rad or m] after a message; NaN where none was reported yet."""
        names = tuple(message.name)
        if names not in self._places:
            own = self._recorded.own(names, "joint_states")
            self._places[names] = [(self._names.index(name), at) for at, name in enumerate(own) if name in self._names]
        places = self._places[names]
        if places and len(message.position) == len(names):
            self._position = self._position.copy()
            for joint, at in places:
                self._position[joint] = message.position[at]
        return self._position
