"""FakeRobot: what a test asks of the robot that runs beside it as :mod:`support.nodes.fake_robot_process`."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Listener
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from support.nodes.node_server import ForkedProcess, Start
from support.nodes.two_links import two_links

from inertid_ros.excitation.quintic import PiecewiseQuintic

PERIOD_S = 0.005


@dataclass(frozen=True)
class Faults:
    """What is wrong with the robot.

    Attributes
    ----------
    silent, not_finite : bool
        No states; positions that are not numbers.
    stamp_offset_s : float
        Wrong stamps of states [s].
    disturbance : ndarray, shape (2,)
        Added to the reported position [rad].
    """

    silent: bool = False
    not_finite: bool = False
    stamp_offset_s: float = 0.0
    disturbance: np.ndarray = field(default_factory=lambda: np.zeros(2))


@dataclass(frozen=True)
class Command:
    """A trajectory as the robot received it.

    Attributes
    ----------
    received, start : float
        When it came, and when its clock begins by its stamp [s, steady].
    time_from_start : ndarray, shape (P,)
        [s]
    position, velocity, acceleration : ndarray, shape (P, 2)
    """

    received: float
    start: float
    time_from_start: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray

    @property
    def end(self) -> float:
        """When the robot is at rest if nothing else comes [s, steady]."""
        return self.start + float(self.time_from_start[-1])

    def differs_from(self, other: "Command") -> float:
        """Steady time from which on it is another motion than one that was received before."""
        begin = max(self.start + self.time_from_start[0], other.start + other.time_from_start[0])
        times = np.arange(begin, max(self.end, other.end), PERIOD_S)
        apart = np.abs(self._position(times) - other._position(times)).max(axis=1) > 1e-4
        return float(times[np.argmax(apart)]) if apart.any() else float("inf")

    def _position(self, times: np.ndarray) -> np.ndarray:
        if len(self.time_from_start) == 1:
            return np.repeat(self.position, len(times), axis=0)
        curve = PiecewiseQuintic(self.time_from_start, self.position, self.velocity, self.acceleration)
        return curve.sample(np.clip(times - self.start, self.time_from_start[0], self.time_from_start[-1]))[0]


@dataclass(frozen=True)
class Record:
    """What the robot did and received: steady time ``(N,)`` [s], position, velocity, acceleration ``(N, 2)``.

    ``commands`` are those that the robot took: what comes after its own end changes nothing. ``holds`` counts commands
    to hold the position where it is.
    """

    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    commands: list[Command]
    holds: int
    streamed: list[tuple[float, np.ndarray]]
    problems: list[str]
    last_state_at: float

    def check_limits(self) -> None:
        """Nothing that the robot did left the limits or jumped, but for commands that were on their way for too long.

        A brake that arrives after it should have begun sets a robot back, whoever sends it.
        """
        assert not self.problems, self.problems[0]
        slack, limits = 1.02, two_links()[1]
        assert (self.position <= limits.upper).all() and (self.position >= limits.lower).all()
        assert (np.abs(self.velocity) <= slack * limits.velocity).all(), np.abs(self.velocity).max(axis=0)
        assert (np.abs(self.acceleration) <= 1.5 * limits.acceleration).all(), np.abs(self.acceleration).max(axis=0)
        step = np.diff(self.time)[:, None]
        jump = np.abs(np.diff(self.position, axis=0)) - slack * limits.velocity * step
        for received in self.late_commands:
            jump[np.abs(self.time[1:] - received) < 2 * PERIOD_S + step.max()] = 0.0
        at = self.time[1:][np.argmax(jump.max(axis=1))]
        commands = [(command.received - at, command.start - at) for command in self.commands]
        assert jump.max() < 1e-3, f"{jump.max()} at {at}; commands were received, and begin, from then: {commands}"

    @property
    def late_commands(self) -> list[float]:
        """When commands were received that differ from those of before since earlier than that [s, steady].

        Before the first the robot rests.
        """
        one_point = np.zeros(1), self.position[:1], self.velocity[:1], self.acceleration[:1]
        before = [Command(-np.inf, -np.inf, *one_point), *self.commands]
        pairs = zip(before, self.commands, strict=False)
        return [after.received for before, after in pairs if after.differs_from(before) < after.received]

    def stop_after(self, moment: float) -> float:
        """Steady time of the first command after ``moment`` that ends the motion sooner than those before did."""
        for before, after in zip(self.commands, self.commands[1:], strict=False):
            if after.received >= moment and after.end < before.end - 0.02:
                return after.received
        raise AssertionError("no stop was commanded")

    @property
    def rested_at(self) -> float:
        """Steady time from which on the robot did not move any more."""
        moving = self.time[np.abs(self.velocity).max(axis=1) > 1e-6]
        assert len(moving) and moving[-1] < self.time[-1] - 0.1, "it still moves"
        return float(moving[-1])


class FakeRobot:
    """Use as a context manager; joints have a prefix in its joint states and in the commands that it takes.

    Its topics may have other names (``remaps``).
    """

    def __init__(self, prefix: str = "", remaps: Mapping[str, str] | None = None) -> None:
        self._arguments = [prefix, "--ros-args"]
        for old, new in (remaps or {}).items():
            self._arguments += ["-r", f"{old}:={new}"]
        self._connection: Connection | None = None

    def __enter__(self) -> "FakeRobot":
        self._folder = TemporaryDirectory()
        folder = Path(self._folder.name)
        self._listener = Listener(str(folder / "robot"))
        arguments = [str(self._listener.address), *self._arguments]
        start = Start("support.nodes.fake_robot_process", arguments, dict(os.environ), folder, folder / "log")
        self._process = ForkedProcess(start)
        return self  # others start meanwhile

    def __exit__(self, *_error: object) -> None:
        self._listener.close()
        if self._connection is not None:
            self._connection.close()
        else:
            self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def reset(self) -> None:
        """At rest where plans begin, without faults, nothing done and nothing commanded yet."""
        self._ask("reset")

    def set_faults(self, **faults: Any) -> None:
        """These, and no others any more; see :class:`Faults`."""
        self._ask("set_faults", Faults(**faults))

    def record(self) -> Record:
        """What the robot did and received since the last reset."""
        return self._ask("record")

    @property
    def speed(self) -> float:
        """Largest joint speed now [rad/s]."""
        return self._ask("speed")

    @property
    def at_rest(self) -> bool:
        return self.speed < 1e-6

    def _ask(self, name: str, *arguments: object) -> Any:
        if self._connection is None:
            self._connection = self._listener.accept()
        self._connection.send((name, *arguments))
        assert self._connection.poll(10.0), "the fake robot does not answer"
        return self._connection.recv()
