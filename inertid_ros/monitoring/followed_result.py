"""The robot of a result directory, to be followed by its joint states as they come."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from inertid_ros.core.blas_threads import one_thread
from inertid_ros.core.errors import RecordingError
from inertid_ros.core.samples import Samples
from inertid_ros.data.files.loading import load_recording
from inertid_ros.data.recording import Recording
from inertid_ros.monitoring.causal_filter import CausalFilter, StreamOptions
from inertid_ros.monitoring.change_detector import with_stream_noise
from inertid_ros.monitoring.followed_robot import FollowedRobot, FollowOptions
from inertid_ros.payload.offline import calibrated_robot
from inertid_ros.report.results import REPORT, StoredResult, as_written
from inertid_ros.robot.model import RobotModel

_log = logging.getLogger(__name__)
_BLOCK_S = 0.125  # length of the blocks of samples
_NOISIER = 1.5  # than the residuals of a filter without delay, at most, are those of a causal one


@one_thread()
def followed_robot(
    result: StoredResult, rate_hz: float, recordings: Sequence[str] = (), options: FollowOptions | None = None
) -> FollowedRobot:
    """The robot of a result, with the filter and the noise of its joint states.

    Parameters
    ----------
    result : StoredResult
        The calibration.
    rate_hz : float
        Of the joint states [Hz].
    recordings : sequence of str
        Paths of recordings of the robot as it was calibrated, whose residuals are the noise; where none is given, those
        that the result was fitted to, as far as they are still there.
    options : FollowOptions, optional
        How it is followed; the independent share of the samples follows from the filter.

    Raises
    ------
    InertidError
        The result cannot be used, the rate is too low for its cutoff, or a recording that was given cannot be used.
    """
    robot, delay, cutoff = calibrated_robot(result)
    model, options = robot.equations.model, options or FollowOptions()
    block = max(1, round(_BLOCK_S * rate_hz))
    stream = StreamOptions(1 / rate_hz, cutoff, block=block, effort_delay_s=delay)
    known = [load_recording(path, joints=model.recorded_joints) for path in recordings or _fitted(result)]
    if known:
        blocks = [block for recording in known for block in _blocks(recording, model, stream)]
        robot = with_stream_noise(robot, blocks)
    else:
        robot = replace(robot, deviation=_NOISIER * robot.deviation)
        _log.warning(
            "%s: no recording that it was fitted to is there; the noise of the joint states is taken as %g times its"
            " residuals. Name a recording of the robot as it was calibrated for the stated rate of false alarms",
            result.directory, _NOISIER,
        )  # fmt: skip
    online = replace(options.online, independent_fraction=min(1.0, 2 * cutoff / rate_hz))
    return FollowedRobot(robot, stream, replace(options, online=online))


def _fitted(result: StoredResult) -> list[str]:
    """Recordings that a result was fitted to, as far as they are there."""
    with as_written(result.directory / REPORT):
        names = [str(each["name"]) for each in result.report["provenance"]["recordings"] if each["role"] == "train"]
    return [name for name in names if Path(name).exists()]


def _blocks(recording: Recording, model: RobotModel, stream: StreamOptions) -> Iterator[Samples]:
    """Blocks that come out of a filter as the states of a recording come in."""
    missing = [name for name in model.joint_names if name not in recording.joint_names]
    if missing or recording.velocity is None:
        what = f"joints {missing}" if missing else "velocity"
        raise RecordingError(f"{recording.name}: lacks {what}, which joint states are followed by; give another one")
    columns = [recording.joint_names.index(name) for name in model.joint_names]
    causal = CausalFilter(model, stream)
    for index, time in enumerate(recording.time.tolist()):
        states = (values[index, columns] for values in (recording.position, recording.velocity, recording.effort))
        block = causal.push(time, *states)
        if block is not None:
            yield block
