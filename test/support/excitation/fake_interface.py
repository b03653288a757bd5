"""What the excitation node's state machine sees of a robot, and a planner that needs no other process."""

from collections.abc import Callable

import numpy as np

from inertid_ros.calibration.planning import ExcitationJob, PreparationProgress, PreparedMotion
from inertid_ros.config.excitation import MonitorOptions
from inertid_ros.core.errors import ExcitationError
from inertid_ros.excitation.execution.horizons import Horizon
from inertid_ros.excitation.execution.plan_check import check_at_rest
from inertid_ros.robot.model import RobotModel

EPOCH_S = 1.8e9  # ROS time minus steady time
_WINDOW = 50  # states


class FakeInterface:
    """Robot interface and commander on a clock that the test moves; commands go where ``on_send`` takes them."""

    streams = False
    is_behind = False

    def __init__(self, model: RobotModel, on_send: Callable[[Horizon], None]) -> None:
        self.model, self.now, self._on_send = model, 100.0, on_send
        self.recorder_writes = self.has_controller = self.has_driver = self.has_controller_state = True
        self.disturber, self.speed_scaling, self.clock_offset = "", 1.0, 0.0
        self.halted = ""  # why the controller holds the robot
        self.drivers = ""  # which nodes publish joint states, where these are several
        self._states: list[tuple[float, float, np.ndarray]] = []  # receipt, stamp, position

    def take(self, stamp: float, position: np.ndarray) -> None:
        """Keep a joint state."""
        self._states = [*self._states[1 - _WINDOW :], (self.now, stamp, position)]

    @property
    def node_name(self) -> str:
        return "/excitation"

    @property
    def commander(self) -> "FakeInterface":
        return self

    def begin(self) -> None:
        """Nothing to forget."""

    def send(self, horizon: Horizon) -> None:
        self._on_send(horizon)

    def lateness(self) -> str:
        return ""

    def stream(self, position: np.ndarray) -> None:
        """Nothing: horizons are sent."""

    def steady(self) -> float:
        return self.now

    def clock(self) -> float:
        return self.now + EPOCH_S + self.clock_offset

    def clock_ahead(self) -> float:
        return self.clock() - self.now

    @property
    def has_states(self) -> bool:
        return len(self._recent) > 30

    def position(self) -> np.ndarray:
        return np.mean([position for _, _, position in self._recent], axis=0)

    def check_states(self, options: MonitorOptions) -> None:
        recent = self._recent
        if len(recent) < 30:
            raise ExcitationError("no fresh joint states")
        positions = np.array([position for _, _, position in recent])
        if not np.isfinite(positions).all():
            raise ExcitationError("joint states hold values that are not finite")
        age = self.clock() - recent[-1][1]
        if not -options.max_future_s <= age <= options.max_age_s:
            raise ExcitationError(f"joint-state stamps are off by {abs(age):.3f} s")
        span, half = recent[-1][0] - recent[0][0], len(positions) // 2
        drift = (positions[half:].mean(axis=0) - positions[:half].mean(axis=0)) / (0.5 * span)
        check_at_rest(self.model.joint_names, drift)

    def several_publishers(self) -> str:
        return self.drivers

    def check_recorder(self) -> None:
        if not self.recorder_writes:
            raise ExcitationError("the recorder does not confirm that it writes")

    def interference(self) -> str:
        return self.halted or self.disturber

    def halt(self) -> str:
        return self.halted

    @property
    def _recent(self) -> list[tuple[float, float, np.ndarray]]:
        return [state for state in self._states if state[0] > self.now - 0.25]


class FakePlanner:
    """In place of the other process; done at once, or while ``busy``, never."""

    def __init__(self, prepared: PreparedMotion) -> None:
        self.prepared, self.busy = prepared, False
        self.progress: PreparationProgress | None = None

    def __call__(self, _job: ExcitationJob) -> "FakePlanner":
        return self

    def poll(self) -> bool:
        return not self.busy

    def result(self) -> PreparedMotion:
        return self.prepared

    def cancel(self) -> None:
        """Nothing runs."""
