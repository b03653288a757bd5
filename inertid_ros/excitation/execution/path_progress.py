"""Whether the controller advances along the plan as the clock does. Times are given.

A controller whose speed is scaled (a teach pendant's slider) advances slower than the clock within each horizon, and
starts anew at the clock with the next one: every horizon is a jump then, as far as the controller had fallen behind. So
a horizon is sent only if the controller has kept up since the last one.

The controller's own reference tells this exactly, whatever the drives do. Without it, joint states tell it as well as
the lag of the drives is known (:class:`DriveResponse`): a loss within one horizon is noticed if it is larger than the
tolerance and than what is uncertain of that lag. A smaller loss repeats with every horizon, and nothing else does: the
error of drives knows nothing of when horizons are sent. Its component at the frequency of the horizons shows it.
"""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array

from .drive_response import DriveResponse

_MIN_SPEED = 1e-3  # rad/s or m/s; a robot that is commanded to stand advances anyhow
_MAX_REFERENCE_AGE_S = 0.06  # three of the intervals at which the controller's state is read
_REFERENCE_LAG_S, _REFERENCE_DISTANCE = 2e-3, 1e-3  # a cycle at 500 Hz; rad or m: what is less makes no jump
_STAMP_JITTER_S, _MIN_STATES = 0.012, 4  # in which, or of which, one stamp at least is not late
_UNCERTAINTY = 3.0  # standard deviations of the expected error
_FORGETTING, _MIN_HORIZONS = 0.95, 10  # per horizon: the last second counts, and half a second is enough to tell
_SIGNIFICANCE, _MIN_SHARE = 7.0, 4e-3  # standard errors; of the way: a loss of 2 % behind stiff drives


@dataclass(frozen=True)
class _Track:
    """Joint states since the last horizon, and the one before it: ``(m,)``, and ``(m, n)`` as commanded.

    ``error`` is commanded less measured position; ``behind`` [rad or m] along the path, beyond what drives always are.
    """

    time: Array
    error: Array
    velocity: Array
    acceleration: Array
    behind: Array
    direction: Array  # (n,) unit vector along the path; zero if the robot is commanded to stand


class PathProgress:
    """Watches how far the robot falls behind along its path within each horizon.

    Parameters
    ----------
    joints : int
        ``n``.
    tolerance : float
        Distance [rad or m] that a horizon may set the robot forward.
    """

    def __init__(self, joints: int, tolerance: float) -> None:
        self._response, self._tolerance = DriveResponse(joints), tolerance
        self._sent = float("nan")
        self._states: list[tuple[float, Array, Array, Array]] = []  # since the last horizon, and the one before it
        self._references: list[tuple[float, float, float]] = []  # of the controller since then: time, lag [s], speed
        self._repeated = _RepeatedLoss()

    def sent(self, now: float) -> None:
        """A horizon was sent: the controller's clock starts anew."""
        if len(self._states) > 1:
            track = self._track()
            way = float(np.linalg.norm(track.velocity[-1])) * (track.time[-1] - self._sent)
            self._repeated.update((track.time - self._sent) / (now - self._sent), track.behind, way)
            self._response.learn(track.error, track.velocity, track.acceleration, track.time[-1] - self._sent)
        self._sent, self._states, self._references = now, self._states[-1:], []

    def forget(self) -> None:
        """States since the last horizon tell nothing: the robot rests elsewhere than was commanded."""
        self._states, self._references = [], []
        if self.is_repeated:  # it has been told; whether it goes on is to be seen
            self._repeated = _RepeatedLoss()

    def update(self, time: float, error: Array, velocity: Array, acceleration: Array) -> None:
        """Take a joint state.

        Parameters
        ----------
        time : float
            When it was measured [s, steady clock].
        error : ndarray, shape (n,)
            Commanded minus measured position.
        velocity, acceleration : ndarray, shape (n,)
            Commanded.
        """
        if time > self._sent:
            self._states.append((time, error, velocity, acceleration))

    def update_reference(self, time: float, error: Array, velocity: Array) -> None:
        """Take the controller's reference: commanded position minus it, and commanded velocity, ``(n,)`` each."""
        speed = float(np.linalg.norm(velocity))
        if time > self._sent and speed > _MIN_SPEED:
            self._references.append((time, float(error @ velocity) / speed**2, speed))

    def disagrees(self, now: float) -> bool:
        """Return whether the controller has not kept up, so that a horizon that is sent now would make it jump."""
        if self._knows_reference(now):
            lags = [lag for _, lag, _ in self._references]
            lost_s, speed = max(lags[-1] - min(lags), max(lags) - lags[-1]), self._references[-1][2]
            return lost_s > _REFERENCE_LAG_S and lost_s * speed > _REFERENCE_DISTANCE
        return self._lost() > self._tolerance or self.is_repeated

    def is_known(self, now: float) -> bool:
        """Return whether the controller, or states enough, have told since the last horizon how far it has come."""
        return self._knows_reference(now) or len(self._states) > _MIN_STATES

    @property
    def has_reference(self) -> bool:
        """Whether the controller has told how far it has come since the last horizon."""
        return bool(self._references)

    @property
    def is_repeated(self) -> bool:
        """Whether the robot falls behind with every horizon."""
        return self._repeated.is_significant

    @property
    def explanation(self) -> str:
        """What a robot that does not keep up hints at."""
        return (
            "the robot falls behind its command between two messages: its controller's speed is scaled, a message"
            " reached it too late, or something holds the robot; set the speed scaling to 100 % (speed_scale moves"
            " slower), take other work off the machine, or check for a collision"
        )

    def _knows_reference(self, now: float) -> bool:
        return bool(self._references) and self._references[-1][0] > now - _MAX_REFERENCE_AGE_S

    def _lost(self) -> float:
        """Distance [rad or m] along the path that was lost, or gained, beyond what is uncertain of the drives' lag."""
        if len(self._states) < 2:
            return 0.0
        track = self._track()
        # A stamp that is late makes a robot look behind, so the least of several states counts.
        newest = float(track.behind[track.time > track.time[-1] - _STAMP_JITTER_S].min())
        first = float(track.behind[track.time < track.time[0] + _STAMP_JITTER_S].min())
        lost = max(newest - float(track.behind.min()), first - newest)
        deviation = self._response.deviation_of_change(track.velocity[[0, -1]], track.acceleration[[0, -1]])
        uncertain = _UNCERTAINTY * float(np.linalg.norm(deviation * track.direction))
        return lost if lost > uncertain else 0.0

    def _track(self) -> _Track:
        time, error, velocity, acceleration = (np.array(column) for column in zip(*self._states, strict=True))
        speed = float(np.linalg.norm(velocity[-1]))
        direction = velocity[-1] / speed if speed > _MIN_SPEED else np.zeros_like(velocity[-1])
        behind = (error - self._response.expected(velocity, acceleration)) @ direction
        return _Track(time, error, velocity, acceleration, behind, direction)


class _RepeatedLoss:
    """Component of the loss at the frequency of the horizons, as a share of the way, over the last second."""

    def __init__(self) -> None:
        self._horizons = self._way2 = self._noise = 0.0
        self._loss = 0.0j

    def update(self, phase: Array, behind: Array, way: float) -> None:
        """Take a horizon.

        Parameters
        ----------
        phase : ndarray, shape (m,)
            Times of its states since it was sent, 0 to 1 at the next one.
        behind : ndarray, shape (m,)
            Distances [rad or m] behind along the path.
        way : float
            Distance [rad or m] that was commanded.
        """
        if len(phase) < _MIN_STATES:
            return
        wave = np.exp(-2j * np.pi * phase)
        columns = np.stack([np.ones_like(phase), wave.real, wave.imag], axis=1)
        _, real, imaginary = np.linalg.lstsq(columns, behind, rcond=None)[0]
        component = complex(real, imaginary)
        if self._way2 > 0:
            self._noise = _FORGETTING * self._noise + abs(component - self._share * way) ** 2
        self._loss = _FORGETTING * self._loss + component * way
        self._way2 = _FORGETTING * self._way2 + way**2
        self._horizons = _FORGETTING * self._horizons + 1.0

    @property
    def is_significant(self) -> bool:
        """Whether it is no chance."""
        if self._horizons < _MIN_HORIZONS * _FORGETTING or self._way2 <= 0:
            return False
        error = np.sqrt(self._noise / self._horizons / self._way2)
        return abs(self._share) > max(_SIGNIFICANCE * error, _MIN_SHARE)

    @property
    def _share(self) -> complex:
        return self._loss / self._way2
