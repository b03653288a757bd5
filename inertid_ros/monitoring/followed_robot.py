"""A calibrated robot followed by its joint states: parameters, and changes detected in the noise."""

from collections import Counter
from dataclasses import dataclass, field

from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.payload.equations import CalibratedRobot

from .causal_filter import CausalFilter, StreamOptions
from .change_detector import Change, ChangeDetector, ChangeHistory, DetectorOptions
from .online_identification import OnlineEstimate, OnlineIdentification, OnlineOptions
from .stream_checks import CheckedState, JointState, StreamChecks, StreamFault


@dataclass(frozen=True)
class FollowOptions:
    """How a robot is followed.

    Attributes
    ----------
    online : OnlineOptions
    detector : DetectorOptions
    solve_period_s : float
        Stream time between two solutions [s].
    """

    online: OnlineOptions = field(default_factory=OnlineOptions)
    detector: DetectorOptions = field(default_factory=DetectorOptions)
    solve_period_s: float = 0.5


@dataclass(frozen=True)
class Followed:
    """Result of processing one joint state.

    Attributes
    ----------
    state : CheckedState
    block : Samples or None
        Completed by the state.
    estimate : OnlineEstimate or None
        Parameters, if they were due.
    news : bool
        Whether :attr:`FollowedRobot.changes` is to be reported.
    """

    state: CheckedState
    block: Samples | None = None
    estimate: OnlineEstimate | None = None
    news: bool = False


class FollowedRobot:
    """Process joint states one by one.

    Parameters
    ----------
    robot : CalibratedRobot
        With the noise of the stream, see :func:`.with_stream_noise`.

    Attributes
    ----------
    filter : CausalFilter
        Its delay is that of all results.
    changes : ChangeHistory
    faults : Counter of StreamFault
        Of the states so far.
    """

    def __init__(self, robot: CalibratedRobot, stream: StreamOptions, options: FollowOptions | None = None) -> None:
        self.robot, self.options = robot, options or FollowOptions()
        model = robot.equations.model
        self.filter = CausalFilter(model, stream)
        self.changes, self.faults = ChangeHistory(), Counter[StreamFault]()
        self._checks = StreamChecks(model, self.filter.longest_gap)
        self._online = OnlineIdentification(robot, self.options.online)
        self._detector = ChangeDetector(robot, self.options.detector)
        self._solved = 0.0

    @property
    def weights(self) -> Array:
        """Weights ``(c,)`` that make errors independent with unit variance [1 / (N m or N)]."""
        return self._online.weights

    def stamp_ns(self, time: float) -> int:
        """Joint state stamp [ns] of a time of samples, estimates or changes [s]."""
        return self._checks.stamp_ns(time)

    def take(self, state: JointState) -> Followed:
        """Process a joint state, in the order of reception.

        Raises
        ------
        IdentificationError
            There is no optimum of the parameters.
        """
        checked = self._checks.check(state)
        if checked.fault is not None:
            self.faults[checked.fault] += 1
        if not checked.usable:
            return Followed(checked)
        block = self.filter.push(checked.time, checked.position, state.velocity, state.effort)
        if block is None:
            return Followed(checked)
        self._online.add(block)
        change = self._detector.add(block)
        news = self.changes.add(change, self._detector.tested, block)
        estimate = None
        half = 0.5 * len(block) * self.filter.period
        due = block.time[-1] - self._solved >= self.options.solve_period_s - half
        if due and block.mask.any() and not self._online.stream.empty:
            self._solved, estimate = float(block.time[-1]), self._online.solve()
        return Followed(checked, block, estimate, news)

    @property
    def change(self) -> Change | None:
        """Last reported change; None while the robot is as calibrated."""
        return self.changes.current
