"""Tracking of the command by a robot: lag of its drives, progress along the path, standstill.

A controller with scaled speed (a teach pendant's slider) advances slower than the clock within each horizon, and starts
again at the clock with the next horizon. Every horizon is then a jump by the accumulated lag. So a horizon is sent only
if the controller has kept up since the last horizon.

The controller's own reference measures this lag exactly, independent of the drives. Without the reference, joint
states measure it as precisely as the lag of the drives is known (:class:`DriveResponse`). A distance lost within one
horizon is detected if it exceeds the tolerance and the uncertainty of the drives' lag. A smaller loss is detected if
it repeats with every horizon: the drives' lag does not depend on the times of horizons, so the component of the error
at the frequency of the horizons is the loss.
"""

from dataclasses import dataclass

import numpy as np

from inertid_ros.core.arrays import Array

_MIN_PATH_SPEED = 1e-3  # rad/s or m/s; a robot that is commanded to stand cannot fall behind
_MAX_REFERENCE_AGE_S = 0.06  # three intervals between readings of the controller's state
_MAX_REFERENCE_LAG_S, _MAX_REFERENCE_JUMP = 2e-3, 1e-3  # a cycle at 500 Hz; rad or m: smaller steps are no jump
_STAMP_JITTER_S, _MIN_STATES_PER_HORIZON = 0.012, 4  # among this many states at least one stamp is on time
_LAG_DEVIATIONS = 3.0  # standard deviations of the expected error
# Repeated loss: the last second of horizons counts, and half a second is enough. A loss is significant above this
# number of standard errors and above this share of the path, which corresponds to a loss of 2 % with stiff drives.
_FORGETTING_PER_HORIZON, _MIN_HORIZONS = 0.95, 10
_LOSS_DEVIATIONS, _MIN_LOSS_SHARE = 7.0, 4e-3
# Coefficients of velocity (lag) [s], acceleration [s^2], a constant (weight, offset of the sensor) and the direction
# (friction, play) [rad or m]: standard deviations of the initial values, and of the change in a second.
_INITIAL_DEVIATIONS = np.array([0.1, 0.01, 0.05, 0.005])
_DRIFT_PER_SECOND = np.array([1e-3, 2e-4, 1e-3, 1e-3])
_FRICTION_SPEED = 0.05  # rad/s or m/s; below it, friction has no clear direction
_POSITION_NOISE = 1e-3  # rad or m
_STANDSTILL_RANGE = 5e-3  # rad or m; a robot that moves less stands still
_MAX_STATE_AGE_S = 0.1
_SETTLING_S = 0.3  # from the last command until a lagging robot is at rest
_MAX_SETTLING_S = 5.0  # to wait for a robot that still moves


class DriveResponse:
    """Linear model of the error of each joint, learned by a Kalman filter with drifting coefficients.

    The error of drives that lag by tens of milliseconds is nearly linear in velocity and acceleration.
    """

    def __init__(self, joints: int) -> None:
        self._mean = np.zeros((joints, len(_INITIAL_DEVIATIONS)))
        self._covariance = np.tile(np.diag(_INITIAL_DEVIATIONS**2), (joints, 1, 1))

    def expected(self, velocity: Array, acceleration: Array) -> Array:
        """Expected error ``(m, n)`` for commanded velocities and accelerations ``(m, n)`` [rad or m]."""
        return np.einsum("mnk,nk->mn", _features(velocity, acceleration), self._mean)

    def deviation_of_change(self, velocity: Array, acceleration: Array) -> Array:
        """Standard deviation ``(n,)`` of the change of the expected error between two commands."""
        change = np.diff(_features(velocity, acceleration), axis=0)[0]
        return np.sqrt(np.einsum("nk,nkl,nl->n", change, self._covariance, change))

    def learn(self, error: Array, velocity: Array, acceleration: Array, elapsed: float) -> None:
        """Update the model with commanded minus measured position ``(m, n)`` at ``m`` times in ``elapsed`` seconds."""
        features = _features(velocity, acceleration) / _POSITION_NOISE
        before = np.linalg.inv(self._covariance + np.diag(_DRIFT_PER_SECOND**2) * elapsed)
        information = before + np.einsum("mnk,mnl->nkl", features, features)
        measured = np.einsum("mnk,mn->nk", features, error / _POSITION_NOISE)
        vector = np.einsum("nkl,nl->nk", before, self._mean) + measured
        self._covariance = np.linalg.inv(information)
        self._mean = np.einsum("nkl,nl->nk", self._covariance, vector)


def _features(velocity: Array, acceleration: Array) -> Array:
    """Features ``(m, n, 4)`` of the linear model."""
    return np.stack([velocity, acceleration, np.ones_like(velocity), np.tanh(velocity / _FRICTION_SPEED)], axis=-1)


@dataclass(frozen=True)
class _Track:
    """Joint states since the last horizon, and the state before it: ``(m,)``, or ``(m, n)`` for all joints.

    ``error`` is commanded minus measured position; ``behind`` is the part of the error along the path that the lag of
    the drives does not explain. ``velocity`` and ``acceleration`` are commanded.
    """

    time: Array
    error: Array
    velocity: Array
    acceleration: Array
    behind: Array
    direction: Array  # (n,) unit vector along the path; zero if the robot is commanded to stand


class PathProgress:
    """Monitor of the robot's lag along its path within each horizon.

    ``tolerance`` is the largest forward jump of the robot that a horizon may cause [rad or m].
    """

    def __init__(self, joints: int, tolerance: float) -> None:
        self._response, self._tolerance = DriveResponse(joints), tolerance
        self._sent = float("nan")
        self._states: list[tuple[float, Array, Array, Array]] = []  # since the last horizon, and the state before it
        self._references: list[tuple[float, float, float]] = []  # since the last horizon: time, lag [s], speed
        self._repeated = _RepeatedLoss()
        self._has_lost = False  # whether joint states have shown a loss since the last horizon

    def sent(self, now: float) -> None:
        """Record that a horizon was sent, so that the controller starts again at the clock."""
        if len(self._states) > 1:
            track = self._track()
            way = float(np.linalg.norm(track.velocity[-1])) * (track.time[-1] - self._sent)
            self._repeated.update((track.time - self._sent) / (now - self._sent), track.behind, way)
            self._response.learn(track.error, track.velocity, track.acceleration, track.time[-1] - self._sent)
        self._sent, self._states, self._references, self._has_lost = now, self._states[-1:], [], False

    def forget(self) -> None:
        """Drop the states since the last horizon, as the robot rests away from its command."""
        self._states, self._references, self._has_lost = [], [], False
        if self.is_repeated:  # already reported; the next second decides whether the loss continues
            self._repeated = _RepeatedLoss()

    def update(self, time: float, error: Array, velocity: Array, acceleration: Array) -> None:
        """Take commanded minus measured position, commanded velocity and acceleration ``(n,)`` at a time [s]."""
        if time > self._sent:
            self._states.append((time, error, velocity, acceleration))

    def update_reference(self, time: float, error: Array, velocity: Array) -> None:
        """Take commanded position minus the controller's reference, and commanded velocity, ``(n,)`` each."""
        speed = float(np.linalg.norm(velocity))
        if time > self._sent and speed > _MIN_PATH_SPEED:
            self._references.append((time, float(error @ velocity) / speed**2, speed))

    def disagrees(self, now: float) -> bool:
        """True if the controller has not kept up, so that a horizon sent now would make it jump."""
        if self._knows_reference(now):
            lags = [lag for _, lag, _ in self._references]
            lost_s, speed = max(lags[-1] - min(lags), max(lags) - lags[-1]), self._references[-1][2]
            return lost_s > _MAX_REFERENCE_LAG_S and lost_s * speed > _MAX_REFERENCE_JUMP
        # The distance along the path vanishes where the path turns, but the controller is still behind.
        self._has_lost = self._has_lost or self._lost() > self._tolerance
        return self._has_lost or self.is_repeated

    def is_known(self, now: float) -> bool:
        """True if a reference or enough states since the last horizon determine the controller's progress."""
        return self._knows_reference(now) or len(self._states) > _MIN_STATES_PER_HORIZON

    @property
    def has_reference(self) -> bool:
        return bool(self._references)

    @property
    def is_repeated(self) -> bool:
        """True if the robot falls behind with every horizon."""
        return self._repeated.is_significant

    @property
    def explanation(self) -> str:
        return (
            "the robot falls behind its command between two messages: its controller's speed is scaled, a message"
            " reached it too late, or something holds the robot; set the speed scaling to 100 % (speed_scale moves"
            " slower), take other work off the machine, or check for a collision")

    def _knows_reference(self, now: float) -> bool:
        return bool(self._references) and self._references[-1][0] > now - _MAX_REFERENCE_AGE_S

    def _lost(self) -> float:
        """Distance lost or gained along the path [rad or m]; zero if within the uncertainty of the drives' lag."""
        if len(self._states) < 2:
            return 0.0
        track = self._track()
        # With a late stamp a robot seems to lag, so the smallest value of several states counts.
        newest = float(track.behind[track.time > track.time[-1] - _STAMP_JITTER_S].min())
        first = float(track.behind[track.time < track.time[0] + _STAMP_JITTER_S].min())
        lost = max(newest - float(track.behind.min()), first - newest)
        deviation = self._response.deviation_of_change(track.velocity[[0, -1]], track.acceleration[[0, -1]])
        uncertain = _LAG_DEVIATIONS * float(np.linalg.norm(deviation * track.direction))
        return lost if lost > uncertain else 0.0

    def _track(self) -> _Track:
        time, error, velocity, acceleration = (np.array(column) for column in zip(*self._states, strict=True))
        speed = float(np.linalg.norm(velocity[-1]))
        direction = velocity[-1] / speed if speed > _MIN_PATH_SPEED else np.zeros_like(velocity[-1])
        behind = (error - self._response.expected(velocity, acceleration)) @ direction
        return _Track(time, error, velocity, acceleration, behind, direction)


class _RepeatedLoss:
    """Component of the loss at the frequency of the horizons, as a share of the path, over the last second."""

    def __init__(self) -> None:
        self._horizons = self._way2 = self._noise = 0.0
        self._loss = 0.0j

    def update(self, phase: Array, behind: Array, way: float) -> None:
        """Take a horizon: lag ``(m,)`` along the path at phases 0 to 1, and the commanded distance ``way``."""
        if len(phase) < _MIN_STATES_PER_HORIZON:
            return
        wave = np.exp(-2j * np.pi * phase)
        columns = np.stack([np.ones_like(phase), wave.real, wave.imag], axis=1)
        _, real, imaginary = np.linalg.lstsq(columns, behind, rcond=None)[0]
        component = complex(real, imaginary)
        if self._way2 > 0:
            self._noise = _FORGETTING_PER_HORIZON * self._noise + abs(component - self._share * way) ** 2
        self._loss = _FORGETTING_PER_HORIZON * self._loss + component * way
        self._way2 = _FORGETTING_PER_HORIZON * self._way2 + way**2
        self._horizons = _FORGETTING_PER_HORIZON * self._horizons + 1.0

    @property
    def is_significant(self) -> bool:
        if self._horizons < _MIN_HORIZONS * _FORGETTING_PER_HORIZON or self._way2 <= 0:
            return False
        error = np.sqrt(self._noise / self._horizons / self._way2)
        return abs(self._share) > max(_LOSS_DEVIATIONS * error, _MIN_LOSS_SHARE)

    @property
    def _share(self) -> complex:
        return self._loss / self._way2


class Standstill:
    """Monitor of the position ``(n,)`` of a robot that comes to rest; ``since`` is when it came to a standstill [s]."""

    def __init__(self) -> None:
        self.since = self._received = -np.inf
        self.position: Array = np.zeros(0)
        self._stands_at: Array = np.zeros(0)
        self._commanded, self._rested = -np.inf, np.nan  # times of the last command to move, and of rest

    def command(self, now: float) -> None:
        self._commanded, self._rested = now, np.nan

    def has_settled(self, now: float, at_rest: bool, pace: float = 1.0) -> bool:
        """True if the robot has settled since the command came to rest (``at_rest``), or the wait has timed out.

        A controller whose speed is scaled to ``pace`` starts to move so much slower that the standstill takes longer.
        """
        if not at_rest:
            self.command(now)
            return False
        self._rested = now if np.isnan(self._rested) else self._rested
        moved = max(self._commanded, min(self.since, self._rested + _MAX_SETTLING_S))
        return now - max(moved, self._rested) >= min(_SETTLING_S / pace, _MAX_SETTLING_S)

    def update(self, now: float, position: Array) -> None:
        self.position, self._received = np.array(position, dtype=float), now
        if not len(self._stands_at) or np.abs(position - self._stands_at).max() > _STANDSTILL_RANGE:
            self._stands_at, self.since = self.position, now

    def distance(self, now: float, position: Array) -> float:
        """Largest distance of a joint from a position ``(n,)`` [rad or m]; infinite without a recent state."""
        if now - self._received > _MAX_STATE_AGE_S:
            return float("inf")
        return float(np.abs(self.position - position).max())
