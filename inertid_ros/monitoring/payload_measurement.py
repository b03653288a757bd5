"""Joint states of a robot with a payload, collected while it moves, and the remaining uncertainty."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.samples import JointSample, Samples
from inertid_ros.data.recording import Recording
from inertid_ros.identification.information.information import Compressor, information_so_far
from inertid_ros.monitoring.followed_robot import FollowedRobot
from inertid_ros.monitoring.stream_checks import CheckedState, StreamFault
from inertid_ros.payload.equations import FrictionDrift, ToolFrame, payload_equations

_ENDING = (StreamFault.CLOCK, StreamFault.JUMP, StreamFault.HELD_JOINT)  # after which states do not belong together
_MASS_SHARE, _MASS_KG, _COM_M = 0.02, 0.02, 0.01  # deviations above which mass or centre of mass is uncertain


@dataclass(frozen=True)
class PayloadProgress:
    """First estimate of a payload by a normal distribution without bounds; NaN while nothing is known.

    Attributes
    ----------
    mass, mass_deviation : float
        [kg]
    com, com_deviation : ndarray, shape (3,)
        Centre of mass in the tool frame [m].
    """

    mass: float
    mass_deviation: float
    com: Array
    com_deviation: Array

    @property
    def uncertain(self) -> str:
        """What is still uncertain, and what helps; empty if nothing is."""
        if not np.isfinite(self.mass):
            return "nothing is known yet: move the robot"
        if self.mass_deviation > max(_MASS_SHARE * abs(self.mass), _MASS_KG):
            return f"mass is known to {self.mass_deviation:.2g} kg: move the joints that feel the weight"
        axes = [axis for axis, deviation in zip("xyz", self.com_deviation, strict=True) if deviation > _COM_M]
        if not axes or abs(self.mass) < 2 * self.mass_deviation:
            return ""
        widest = 100 * self.com_deviation.max()
        return f"centre of mass along {', '.join(axes)} is known to {widest:.2g} cm: turn the wrist further"


class PayloadMeasurement:
    """Collect joint states of a robot with a payload at ``tool``, for a number of seconds."""

    def __init__(
        self, followed: FollowedRobot, tool: ToolFrame, seconds: float, drift: FrictionDrift | None = None
    ) -> None:
        self._robot, self._weights = followed.robot, followed.weights
        self._tool, self._wanted, self._drift = tool, seconds, drift or FrictionDrift()
        self._states: list[tuple[float, JointSample]] = []
        self._compressor = Compressor(followed.robot.equations)

    @property
    def seconds(self) -> float:
        """Length of the joint states so far [s]."""
        return self._states[-1][0] - self._states[0][0] if self._states else 0.0

    @property
    def done(self) -> bool:
        return self.seconds >= self._wanted

    @property
    def fraction(self) -> float:
        """Share of the wanted time."""
        return min(self.seconds / self._wanted, 1.0)

    def add(self, state: JointSample, checked: CheckedState, block: Samples | None) -> None:
        """Take a joint state, the result of its checks, and the block that it completed, if any.

        Raises
        ------
        RecordingError
            It does not continue the states before.
        """
        if checked.fault in _ENDING and (self._states or checked.fault is StreamFault.HELD_JOINT):
            raise RecordingError(f"payload: {checked.message}; measure again")
        if checked.usable:
            self._states.append((checked.time, state))
        if block is not None and self._states and block.time[0] >= self._states[0][0]:
            self._compressor.add(block)

    def progress(self) -> PayloadProgress:
        if not self._compressor.counts.any():
            return PayloadProgress(np.nan, np.nan, np.full(3, np.nan), np.full(3, np.nan))
        information = information_so_far(self._robot.equations, self._compressor)
        equations = payload_equations(self._robot, self._tool, [(information, self._weights)], self._drift)
        inverse = np.linalg.inv(equations.R)
        mass, moment = equations.payload[0], equations.payload[1:4]
        com = moment / mass
        root = (inverse[1:4] - np.outer(com, inverse[0])) / mass  # of the centre of mass, linearised
        return PayloadProgress(float(mass), float(np.linalg.norm(inverse[0])), com, np.linalg.norm(root, axis=1))

    def recording(self) -> Recording:
        """Recording of the joint states, including joints that the model holds and the robot reports."""
        model = self._robot.equations.model
        times, states = zip(*self._states, strict=True)
        held = np.array([state.held for state in states])
        reported = np.isfinite(held).all(axis=0)
        names = [name for name, known in zip(model.options.locked_joints, reported, strict=True) if known]
        channels = ("position", "velocity", "effort")
        position, velocity, effort = (np.array([getattr(state, key) for state in states]) for key in channels)
        still = np.zeros((len(states), len(names)))
        return Recording(
            (*model.joint_names, *names),
            np.array(times) - times[0],
            np.hstack([position, held[:, reported]]),
            np.hstack([effort, np.full_like(still, np.nan)]),
            np.hstack([velocity, still]),
            name="joint_states",
        )
