"""Follow a calibrated robot by its joint states: estimate its parameters, and detect changes."""

import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from inertid_ros.config.nodes import OnlineNodeOptions
from inertid_ros.core.arrays import one_thread
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.samples import JointSample, Samples
from inertid_ros.data.recording import Recording
from inertid_ros.payload.equations import CalibratedRobot
from inertid_ros.payload.offline import calibrated_robot
from inertid_ros.report.results import Result
from inertid_ros.robot.model import RobotModel

from .causal_filter import CausalFilter, StreamOptions
from .change_detector import Change, ChangeDetector, ChangeHistory, with_stream_noise
from .online_identification import NOTHING_FORGOTTEN, OnlineEstimate, OnlineIdentification
from .stream_checks import CheckedState, StreamChecks, StreamFault

_log = logging.getLogger(__name__)
_BLOCK_S = 0.125  # length of the blocks of samples
_CAUSAL_NOISE_FACTOR = 1.5  # upper bound of a causal filter's residuals relative to a zero-phase filter's residuals


@dataclass(frozen=True)
class Followed:
    """Result of processing one joint state.

    Attributes
    ----------
    block : block of samples that this state completed, if any.
    estimate : None if no solution was due.
    news : True if :attr:`FollowedRobot.change` must be reported.
    """

    state: CheckedState
    block: Samples | None = None
    estimate: OnlineEstimate | None = None
    news: bool = False


class FollowedRobot:
    """Process joint states one by one.

    Parameters
    ----------
    robot : calibrated robot with the noise of the stream, see :func:`.with_stream_noise`.

    Attributes
    ----------
    filter : causal filter; its delay applies to all results.
    weights : (c,), factors that scale errors to independent errors of unit variance [1 / (N m or N)].
    """

    def __init__(self, robot: CalibratedRobot, stream: StreamOptions, options: OnlineNodeOptions = NOTHING_FORGOTTEN
    ) -> None:
        self.robot, self._solve_period_s = robot, options.solve_period_s
        model = robot.equations.model
        self.filter = CausalFilter(model, stream)
        self.changes, self.faults = ChangeHistory(), Counter[StreamFault]()
        self._checks = StreamChecks(model, self.filter.longest_gap)
        self._online = OnlineIdentification(robot, options, stream.independent_share)
        self.weights, self._detector = self._online.weights, ChangeDetector(robot, options)
        self._solved = 0.0

    def stamp_ns(self, time: float) -> int:
        """Convert the time of a sample, estimate or change [s] to a stamp of the joint states [ns]."""
        return self._checks.stamp_ns(time)

    def take(self, state: JointSample) -> Followed:
        """Process a joint state, in the order of reception.

        Raises
        ------
        IdentificationError
            The solver finds no optimum.
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
        due = block.time[-1] - self._solved >= self._solve_period_s - half
        if due and block.mask.any() and not self._online.stream.empty:
            self._solved, estimate = float(block.time[-1]), self._online.solve()
        return Followed(checked, block, estimate, news)

    @property
    def change(self) -> Change | None:
        """Last reported change; None while the robot is as calibrated."""
        return self.changes.current


@one_thread()
def followed_robot(
    result: Result, rate_hz: float, recordings: Sequence[str] = (), options: OnlineNodeOptions = NOTHING_FORGOTTEN
) -> FollowedRobot:
    """Build the :class:`FollowedRobot` of a calibration result, with the noise of its joint states.

    Parameters
    ----------
    rate_hz : rate of the joint states [Hz].
    recordings : paths of recordings of the robot as calibrated, whose residuals give the noise; by default the
        recordings without a known load that the result was fitted to, if they still exist.

    Raises
    ------
    InertidError
        The result or a recording cannot be used, or the rate is too low for the cutoff.
    """
    robot, model = calibrated_robot(result), result.model
    block = max(1, round(_BLOCK_S * rate_hz))
    stream = StreamOptions(1 / rate_hz, result.cutoff_hz, block=block, effort_delay_s=result.effort_delay_s)
    paths = recordings or [name for name in result.fitted_without_load if os.path.exists(name)]
    if paths:
        blocks = [block for path in paths for block in _blocks(result.load_recording(path), model, stream)]
        robot = with_stream_noise(robot, blocks)
    else:
        robot = replace(robot, deviation=_CAUSAL_NOISE_FACTOR * robot.deviation)
        _log.warning(
            "%s: its training recordings are missing; the noise of the joint states is assumed to be %g times its"
            " residuals. For the stated rate of false alarms, name a recording of the robot as calibrated",
            result.directory, _CAUSAL_NOISE_FACTOR,
        )  # fmt: skip
    return FollowedRobot(robot, stream, options)


def _blocks(recording: Recording, model: RobotModel, stream: StreamOptions) -> Iterator[Samples]:
    missing = [name for name in model.joint_names if name not in recording.joint_names]
    if missing or recording.velocity is None:
        what = f"joints {missing}" if missing else "velocity"
        raise RecordingError(f"{recording.name}: lacks {what}, which the online estimate needs; give another recording")
    columns = recording.columns(model.joint_names)
    causal = CausalFilter(model, stream)
    for index, time in enumerate(recording.time.tolist()):
        states = (values[index, columns] for values in (recording.position, recording.velocity, recording.effort))
        block = causal.push(time, *states)
        if block is not None:
            yield block
