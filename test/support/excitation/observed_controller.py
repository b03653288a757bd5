"""A JointTrajectoryController under a given time, and what an observer outside sees of the robot that follows it."""

from dataclasses import dataclass

import numpy as np

from inertid_ros.excitation.execution.horizons import Horizon
from inertid_ros.excitation.motion_limits import MotionLimits
from inertid_ros.excitation.quintic import PiecewiseQuintic

STEP_S, HALF = 1e-3, 15  # the observer looks at 1 kHz, and fits cubics to 31 positions
_STEP = 1e-5  # rad; a float of seconds since 1970 makes smaller ones
_TIME = STEP_S * np.arange(-HALF, HALF + 1)
_FIT = np.linalg.pinv(np.vander(_TIME, 4, increasing=True))


@dataclass
class Observed:
    """Largest of what was seen, as a fraction of what is allowed; whether a position limit was left."""

    velocity: float = 0.0
    acceleration: float = 0.0
    jerk: float = 0.0
    outside: bool = False

    def join(self, other: "Observed") -> None:
        """Take the larger of both."""
        self.velocity = max(self.velocity, other.velocity)
        self.acceleration = max(self.acceleration, other.acceleration)
        self.jerk = max(self.jerk, other.jerk)
        self.outside |= other.outside


class ObservedController:
    """Follows the newest trajectory from its stamp, or from where it is to the first point where that is ahead.

    A new trajectory sets its time to the clock; ``pace`` multiplies how fast that time advances (speed scaling).
    ``lost`` says that it has lost trajectories; the next one is a step, too, where it brakes already.
    """

    def __init__(self, position: np.ndarray, now: float) -> None:
        # From when to when it changed its speed by itself, or made up for what it was behind when a trajectory came.
        self.own: list[tuple[float, float]] = []
        self.steps: list[float] = [0.0]  # by such trajectories [rad]
        self.lost, self.steps_after_lost = False, list[float]()
        self.place(position, now, [])

    def place(self, position: np.ndarray, now: float, traces: list | None = None) -> None:
        """Put the robot somewhere by hand."""
        self._traces = self._traces if traces is None else traces
        if traces is None:
            self.advance(now)
        self._hold, self._curve = np.array(position, dtype=float), None
        self._blended = -np.inf  # until then the newest trajectory leads it from where it was to its first point
        self.pace, self._wall, self._time = 1.0, now, now
        self._seen = now
        self._traces.append(([], []))

    def follow(self, horizon: Horizon, now: float, start: float) -> None:
        """Replace what is followed; the points count from ``start``."""
        q, v, a = self.state(now)
        self.advance(now)
        times, points = horizon.time_from_start + start, [horizon.position, horizon.velocity, horizon.acceleration]
        if times[-1] <= now:
            raise AssertionError(f"a trajectory that ended {now - times[-1]:.3f} s ago was sent")
        if times[0] > now:
            times, points = np.append(now, times), [np.vstack(rows) for rows in zip((q, v, a), points, strict=True)]
        behind = now - self._trajectory_time(now) > 1e-6
        due = self._at(now)[0]  # had it not been scaled
        self._curve, self._hold = PiecewiseQuintic(times, *points), points[0][-1]
        self._wall = self._time = now
        step = float(np.abs(self.state(now)[0] - q).max())
        if self.lost:
            if step > _STEP:
                self.steps_after_lost.append(step)
                self.own.append((now, max(times[0], now)))
            self.lost = False
        elif behind and (np.abs(v).max() > 1e-4 or step > _STEP):
            self._blended = horizon.time_from_start[0] + start
            blended = self._blended > now
            if len(horizon) > 1:  # not to where it stands
                self.steps.append(float(np.abs(due - q).max()) if blended else step)
            self.own.append((now, now + max(self._blended - now, 0.0) / max(self.pace, 1e-3)))

    def give_up(self, now: float) -> None:
        """Hold where it is, at once."""
        q = self.state(now)[0]
        self.advance(now)
        self._hold, self._curve = q, None
        self._wall = self._time = now
        self.own.append((now, now))

    def scale(self, pace: float, now: float) -> None:
        """Change the pace of the trajectory's time."""
        moved, before = self.moving(now), self.pace
        self.advance(now)
        self._time, self._wall, self.pace = self._trajectory_time(now), now, pace
        if pace != before and (moved or self.moving(now)):
            self.own.append((now, now + max(self._blended - self._time, 0.0) / max(pace, 1e-3)))

    def state(self, now: float) -> list[np.ndarray]:
        """Position, velocity, acceleration ``(n,)`` of the trajectory, at its own pace."""
        return self._at(self._trajectory_time(now))

    def _at(self, time: float) -> list[np.ndarray]:
        if self._curve is None or time >= self._curve.time[-1]:
            return [self._hold, np.zeros_like(self._hold), np.zeros_like(self._hold)]
        return [x[0] for x in self._curve.sample(np.array([max(time, self._curve.time[0])]))]

    def moving(self, now: float) -> bool:
        """Whether the robot moves."""
        return bool(np.abs(self.state(now)[1]).max() * self.pace > 1e-4)

    def remaining(self, now: float) -> float:
        """Distance to the end of what it follows [rad]."""
        return float(np.abs(self._hold - self.state(now)[0]).max())

    def advance(self, now: float) -> None:
        """Look at the robot at 1 kHz until now."""
        count = int(np.floor((now - self._seen) / STEP_S + 1e-6))
        if count < 1:
            return
        walls = self._seen + STEP_S * np.arange(1, count + 1)
        self._seen = walls[-1]
        if self._curve is None:
            positions = np.tile(self._hold, (count, 1))
        else:
            times = self._time + self.pace * (walls - self._wall)
            positions = self._curve.sample(np.clip(times, self._curve.time[0], self._curve.time[-1]))[0]
        times_seen, positions_seen = self._traces[-1]
        times_seen.append(walls)
        positions_seen.append(positions)

    def observed(self, limits: MotionLimits, jerk: np.ndarray) -> Observed:
        """Figures of all that was seen, without the instants at which the controller itself changed its speed."""
        out = Observed()
        for times, positions in self._traces:
            if sum(map(len, times)) > 2 * HALF + 1:
                out.join(observed_trace(np.concatenate(times), np.concatenate(positions), limits, jerk, self.own))
        return out

    def _trajectory_time(self, now: float) -> float:
        return self._time + self.pace * (now - self._wall)


def observed_trace(
    time: np.ndarray, q: np.ndarray, limits: MotionLimits, jerk: np.ndarray, own: list[tuple[float, float]]
) -> Observed:
    """Figures of positions ``(N, n)`` at 1 kHz, without intervals in which drives changed their speed themselves."""
    windows = np.lib.stride_tricks.sliding_window_view(q, 2 * HALF + 1, axis=0)  # (N, n, W)
    fits = windows @ _FIT.T
    middle = time[HALF : HALF + len(fits)]
    speed = np.abs(np.diff(q, axis=0)) / STEP_S
    for begin, end in own:
        fits[(middle > begin - (HALF + 2) * STEP_S) & (middle < end + (HALF + 2) * STEP_S)] = 0.0
        speed[(time[1:] > begin - 1.5 * STEP_S) & (time[1:] < end + 1.5 * STEP_S)] = 0.0
    outside = (q > limits.upper + 1e-9).any() or (q < limits.lower - 1e-9).any()
    return Observed(
        float((speed / limits.velocity).max()),
        float((2 * np.abs(fits[..., 2]) / limits.acceleration).max()),
        float((6 * np.abs(fits[..., 3]) / jerk).max()),
        bool(outside),
    )
