"""JointStateWindow: the latest joint states, and whether a robot may begin to move from them."""

from collections import deque

import numpy as np
from sensor_msgs.msg import JointState

from inertid_ros.config.execution import StateMonitorOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.execution.plan_check import check_at_rest
from inertid_ros.ros.joint_order import JointOrder, JointSample

_WINDOW_S = 0.25


class JointStateWindow:
    """Keeps the joint states of the last quarter of a second by their receipt on the steady clock.

    Parameters
    ----------
    order : JointOrder
        Joints of the model.
    """

    def __init__(self, order: JointOrder) -> None:
        self._order = order
        self._recent: deque[tuple[float, JointSample]] = deque()

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The ``n`` joints of the model."""
        return self._order.joint_names

    def take(self, message: JointState, now: float) -> JointSample | None:
        """Return the model's joints of a message; None where it has none of them.

        Raises
        ------
        RecordingError
            See :meth:`JointOrder.sample`.
        """
        sample = self._order.sample(message)
        if sample is not None:
            self._recent.append((now, sample))
            self._forget(now)
        return sample

    def clear(self) -> None:
        """Forget all states."""
        self._recent.clear()

    def filled(self, now: float) -> bool:
        """Return whether enough was received lately to check that the robot is at rest."""
        self._forget(now)
        return bool(self._recent) and self._recent[-1][0] - self._recent[0][0] > 0.6 * _WINDOW_S

    @property
    def period(self) -> float:
        """Mean time between the recent states [s]; NaN of fewer than two."""
        if len(self._recent) < 2:
            return float("nan")
        return (self._recent[-1][0] - self._recent[0][0]) / (len(self._recent) - 1)

    def position(self) -> Array:
        """Return the mean ``(n,)`` of the recent positions: where a robot at rest is, with less noise."""
        return np.mean([sample.position for _, sample in self._recent], axis=0)

    def mean(self) -> JointSample:
        """Return the mean of the recent states, with the newest stamp."""
        samples = [sample for _, sample in self._recent]
        channels = [(each.position, each.velocity, each.effort) for each in samples]
        return JointSample(samples[-1].stamp_ns, *np.mean(channels, axis=0))

    def check(self, now: float, clock: float, options: StateMonitorOptions) -> None:
        """Refuse to move from states that are old, wrong, or of a moving robot.

        Parameters
        ----------
        now : float
            Steady clock [s].
        clock : float
            Clock of the stamps [s].
        options : StateMonitorOptions

        Raises
        ------
        ExcitationError
            Naming what is wrong.
        """
        self._forget(now)
        options = options.timed(self.period)
        if not self._recent or now - self._recent[-1][0] > 2 * options.state_timeout_s:
            others = self._order.others
            raise ExcitationError(others or "no fresh joint states; start the robot's driver, or remap joint_states")
        newest = self._recent[-1][1]
        values = np.array([sample.position for _, sample in self._recent])
        if not (np.isfinite(values).all() and np.isfinite(newest.effort).all()):
            raise ExcitationError("joint states hold values that are not finite, or no effort; check the driver")
        age = clock - newest.stamp_ns * 1e-9
        if not -options.max_future_s <= age <= options.max_age_s + options.state_timeout_s:
            raise ExcitationError(f"joint states are stamped {age:.3f} s before now; check the clocks and use_sim_time")
        span = self._recent[-1][0] - self._recent[0][0]
        if span < 0.5 * _WINDOW_S or len(self._recent) < options.min_rate_hz * span:
            raise ExcitationError(
                f"joint states came {len(self._recent)} times in {span:.2f} s; {options.min_rate_hz:g} Hz are needed"
            )
        half = len(values) // 2
        drift = (values[half:].mean(axis=0) - values[:half].mean(axis=0)) / (0.5 * span)
        check_at_rest(self.joint_names, drift)

    def _forget(self, now: float) -> None:
        while self._recent and self._recent[0][0] < now - _WINDOW_S:
            self._recent.popleft()
