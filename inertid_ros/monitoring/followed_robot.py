"""Follow a calibrated robot by its joint states: estimate its parameters, detect changes, and measure its payload.

A measurement collects joint states, estimates meanwhile, and then solves in another process.
"""

import logging
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from inertid_ros.config.nodes import OnlineNodeOptions
from inertid_ros.core.arrays import Array, one_thread
from inertid_ros.core.errors import InertidError, RecordingError
from inertid_ros.core.samples import JointSample, Samples
from inertid_ros.core.worker import Worker, WorkerProcess
from inertid_ros.data.recording import Recording
from inertid_ros.identification.information.information import Compressor, information_so_far
from inertid_ros.monitoring.change_detector import ChangeDetector, ChangeHistory, with_stream_noise
from inertid_ros.monitoring.online_identification import NOTHING_FORGOTTEN, OnlineEstimate, OnlineIdentification
from inertid_ros.monitoring.streams import CausalFilter, CheckedState, StreamChecks, StreamFault, StreamOptions
from inertid_ros.payload.equations import CalibratedRobot, FrictionDrift, ToolFrame, payload_equations
from inertid_ros.payload.offline import PayloadOptions, PayloadOutcome, calibrated_robot, payload_job
from inertid_ros.report.results import Result
from inertid_ros.robot.model import RobotModel

_log = logging.getLogger(__name__)
_BLOCK_S = 0.125  # length of the blocks of samples
_CAUSAL_NOISE_FACTOR = 1.5  # upper bound of a causal filter's residuals relative to a zero-phase filter's residuals
_MAX_STATE_SILENCE_S = 5.0  # time without joint states that ends a goal; busy machines delay them by over a second
_MAX_MEASUREMENT_S = 600.0
_ENDING = (StreamFault.CLOCK, StreamFault.JUMP, StreamFault.HELD_JOINT)  # states before and after are not continuous
_MASS_SHARE, _MASS_KG, _COM_M = 0.02, 0.02, 0.01  # deviations above which mass or centre of mass is uncertain


@dataclass(frozen=True)
class Followed:
    """Result of processing one joint state.

    Attributes
    ----------
    block : block of samples that this state completed, if any.
    estimate : None if no solution was due.
    news : True if the change in :attr:`FollowedRobot.changes` must be reported.
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
    checks : checks of the joint states, which convert times of results to stamps.
    changes : changes of the robot so far.
    weights : (c,), factors that scale errors to independent errors of unit variance [1 / (N m or N)].
    """

    def __init__(self, robot: CalibratedRobot, stream: StreamOptions, options: OnlineNodeOptions = NOTHING_FORGOTTEN
    ) -> None:
        self.robot, self._solve_period_s = robot, options.solve_period_s
        model = robot.equations.model
        self.filter = CausalFilter(model, stream)
        self.changes, self.faults = ChangeHistory(), Counter[StreamFault]()
        self.checks = StreamChecks(model, self.filter.longest_gap)
        self._online = OnlineIdentification(robot, options, stream.independent_share)
        self.weights, self._detector = self._online.weights, ChangeDetector(robot, options)
        self._solved = 0.0

    def take(self, state: JointSample) -> Followed:
        """Process a joint state, in the order of reception.

        Raises
        ------
        IdentificationError
            The solver finds no optimum.
        """
        checked = self.checks.check(state)
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
        due = block.time[-1] - self._solved >= self._solve_period_s - 0.5 * len(block) * self.filter.period
        if due and block.mask.any() and not self._online.stream.empty:
            self._solved, estimate = float(block.time[-1]), self._online.solve()
        return Followed(checked, block, estimate, news)


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
    for index, stamp in enumerate(recording.time.tolist()):
        states = (values[index, columns] for values in (recording.position, recording.velocity, recording.effort))
        block = causal.push(stamp, *states)
        if block is not None:
            yield block


@dataclass(frozen=True)
class PayloadProgress:
    """Preliminary estimate of a payload by linear least squares without bounds; NaN before the first motion.

    Attributes
    ----------
    mass, mass_deviation : [kg]
    com, com_deviation : (3,), centre of mass in the tool frame [m].
    """

    mass: float
    mass_deviation: float
    com: Array
    com_deviation: Array

    @property
    def uncertain(self) -> str:
        """The quantity that is still uncertain, with advice; empty if all quantities are certain."""
        if not np.isfinite(self.mass):
            return "no estimate yet: move the robot"
        if self.mass_deviation > max(_MASS_SHARE * abs(self.mass), _MASS_KG):
            return f"mass is uncertain by {self.mass_deviation:.2g} kg: move the joints that carry the weight"
        axes = [axis for axis, deviation in zip("xyz", self.com_deviation, strict=True) if deviation > _COM_M]
        if not axes or abs(self.mass) < 2 * self.mass_deviation:
            return ""
        widest = 100 * self.com_deviation.max()
        return f"centre of mass along {', '.join(axes)} is uncertain by {widest:.2g} cm: turn the wrist further"


class PayloadMeasurement:
    """Collect joint states of a robot with a payload at ``tool``, for a number of seconds."""

    def __init__(
            self, followed: FollowedRobot, tool: ToolFrame, seconds: float, drift: FrictionDrift | None = None) -> None:
        self._robot, self._weights = followed.robot, followed.weights
        self._tool, self._wanted, self._drift = tool, seconds, drift or FrictionDrift()
        self._states: list[tuple[float, JointSample]] = []
        self._compressor = Compressor(followed.robot.equations)

    @property
    def seconds(self) -> float:
        """Time span of the joint states collected so far [s]."""
        return self._states[-1][0] - self._states[0][0] if self._states else 0.0

    @property
    def fraction(self) -> float:
        """Completed share of the requested time."""
        return min(self.seconds / self._wanted, 1.0)

    def add(self, state: JointSample, checked: CheckedState, block: Samples | None) -> None:
        """Take a joint state, the result of its checks, and the block that it completed, if any.

        Raises RecordingError if the state does not continue the previous states.
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
        root = (inverse[1:4] - np.outer(com, inverse[0])) / mass  # for the centre of mass, linearised
        return PayloadProgress(float(mass), float(np.linalg.norm(inverse[0])), com, np.linalg.norm(root, axis=1))

    def recording(self) -> Recording:
        """Return the joint states as a recording, including locked joints that the robot reports."""
        model = self._robot.equations.model
        times, states = zip(*self._states, strict=True)
        held = np.array([state.held for state in states])
        reported = np.isfinite(held).all(axis=0)
        names = [name for name, known in zip(model.options.locked_joints, reported, strict=True) if known]
        channels = ("position", "velocity", "effort")
        position, velocity, effort = (np.array([getattr(state, key) for state in states]) for key in channels)
        still = np.zeros((len(states), len(names)))
        return Recording(
            (*model.joint_names, *names), np.array(times) - times[0], np.hstack([position, held[:, reported]]),
            np.hstack([effort, np.full_like(still, np.nan)]), np.hstack([velocity, still]), name="joint_states")


class PayloadGoal:
    """One goal of the payload action: collect joint states of the moving robot, then solve in another process.

    ``request`` is an ``IdentifyPayload.Goal``; the node's options replace its empty fields. ``progress`` is the
    estimate so far. Raises InertidError if the request is impossible.
    """

    def __init__(self, request: Any, result: Result, robot: FollowedRobot, options: OnlineNodeOptions) -> None:
        payload = options.payload
        duration, frame = request.duration or payload.duration_s, request.frame or payload.frame
        if not 0 < duration <= _MAX_MEASUREMENT_S:
            raise RecordingError(f"payload: duration {duration:g} s is not between 0 and {_MAX_MEASUREMENT_S:g} s")
        tool, drift = ToolFrame.from_link(result.model, frame), FrictionDrift(options.drift, payload.reference_drift)
        self._options = PayloadOptions(frame, drift, payload.largest_mass or np.inf)
        self._directory, self._reference = str(result.directory), tuple(request.reference) or payload.reference
        for path in self._reference:
            if not os.path.exists(path):
                raise RecordingError(f"{path}: there is no such recording; correct the reference")
        self._timeout_s, self._received = payload.timeout_s, time.monotonic()
        self._measurement = PayloadMeasurement(robot, tool, duration, drift)
        self._process = WorkerProcess(payload_job.__module__)  # imports while joint states are collected
        self._worker: Worker[tuple[str, float], PayloadOutcome] | None = None
        self._failure: InertidError | None = None
        self.progress: PayloadProgress = self._measurement.progress()

    @property
    def stage(self) -> tuple[str, float]:
        """Present stage, and its completed fraction."""
        if self._worker is None:
            return "measuring", self._measurement.fraction
        return self._worker.progress or ("preparing", 0.0)

    def take(self, state: JointSample, followed: Followed, now: float) -> None:
        """Take a joint state that was received at ``now`` [s, steady clock]."""
        if self._worker is not None or self._failure is not None:
            return
        self._received = now
        try:
            self._measurement.add(state, followed.state, followed.block)
        except InertidError as error:
            self._fail(error)
            return
        if followed.block is not None:
            self.progress = self._measurement.progress()
        if self._measurement.fraction == 1.0:
            job = (self._directory, self._measurement.recording(), self._reference, self._options)
            self._worker = Worker("payload", payload_job, job, self._timeout_s, self._process)

    def poll(self) -> bool:
        silent = time.monotonic() - self._received
        if self._failure is None and self._worker is None and silent > _MAX_STATE_SILENCE_S:
            self._fail(RecordingError(f"payload: no joint states for {silent:.1f} s; measure again once they arrive"))
        return self._failure is not None or (self._worker is not None and self._worker.poll())

    def result(self) -> PayloadOutcome:
        """Return the payload; raise InertidError without a result."""
        if self._failure is not None:
            raise self._failure
        if self._worker is None:
            raise RecordingError("payload: the measurement has not ended yet")
        return self._worker.result()

    def cancel(self, reason: str = "canceled") -> None:
        if self._failure is None:
            self._fail(RecordingError(f"payload: {reason}"))

    def _fail(self, error: InertidError) -> None:
        self._failure = error
        if self._worker is not None:
            self._worker.cancel()
        else:
            self._process.connection.close()  # this ends the process
