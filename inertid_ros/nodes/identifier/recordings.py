"""Received recordings: jobs for the goals of the identifier, and coverage of the newest recording. Without ROS."""

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from inertid_ros.calibration.calibrate import IdentificationJob
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import RoundsOptions
from inertid_ros.core.errors import InertidError, RecordingError
from inertid_ros.core.outputs import check_directory
from inertid_ros.data.blocks import Block, ReceivedRecordings
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.curves import JointCoverage
from inertid_ros.monitoring.live_coverage import LiveCoverage, still_needed
from inertid_ros.report.results import RESULT
from inertid_ros.robot.model import RobotModel

if TYPE_CHECKING:  # of ROS, which this does not need
    from inertid_ros.action import Identify
    from inertid_ros.msg import IdentifierStatus


def identification_job(
        request: "Identify.Goal", model: RobotModel, configuration: Configuration, recordings: ReceivedRecordings,
        default_output: str) -> IdentificationJob:
    """Return the job for a goal of the identifier.

    The request names recordings by their paths, or by their names if they were received; if it names none, all complete
    ones are fitted. ``default_output`` is the directory of numbered results for a request without a directory; if
    empty, no result is written. Raises InertidError if there is nothing to fit, a recording is unknown, or the output
    directory cannot be used.
    """
    train = tuple(request.train) or recordings.complete
    if not train:
        raise RecordingError("identify: nothing was recorded yet; record a motion or name a bag")
    output = Path(request.output_directory).expanduser().absolute() if request.output_directory else None
    if output is None and default_output:
        output = next_output(default_output)
    if output is not None:
        check_directory(output, RESULT)
    return IdentificationJob(
        urdf=model.urdf, configuration=configuration, train=tuple(_source(name, recordings) for name in train),
        held_out=tuple(_source(name, recordings) for name in request.validation), output=output,
        rounds=RoundsOptions(request.rounds or 1, request.wanted_deviation, request.least_gain),
        previous=request.previous)


def _source(name: str, recordings: ReceivedRecordings) -> Recording | str:
    path = Path(name).expanduser()
    if name in recordings or not (path.exists() or len(path.parts) > 1 or path.suffix):
        return recordings.recording(name)
    if not path.exists():
        raise RecordingError(f"{path.absolute()}: there is no such recording; correct the path")
    return str(path.absolute())


def next_output(directory: str) -> Path:
    """Return the first numbered result directory that does not exist yet."""
    base = Path(directory).expanduser().absolute()
    numbered = (base / f"identification_{number:03d}" for number in itertools.count(1))
    return next(path for path in numbered if not os.path.lexists(path))


class RecordingCoverage:
    """Coverage of the newest recording, for the status of the node."""

    def __init__(self) -> None:
        self.joints: tuple[JointCoverage, ...] = ()  # when it was last computed
        self._name, self._has_news = "", False
        self._live: LiveCoverage | None = None

    def prepare(self, model: RobotModel) -> None:
        """Load libraries and models now, which takes a second of a core, and not while the robot moves."""
        if not model.free:
            LiveCoverage(model)

    def add(self, model: RobotModel | None, name: str, sequence: int, block: Block) -> None:
        """Take the next samples; another name, or sequence 0, begins a new recording."""
        self._has_news = True
        if name != self._name or sequence == 0:
            self._name, self.joints = name, ()
            self._live = LiveCoverage(model) if model is not None and not model.free else None
        if self._live is not None:
            try:
                self._live.add(block)
            except (InertidError, ValueError):  # of other joints; reported when the recording is identified
                self._live = None

    def work_out(self) -> None:
        """Compute the coverage if there are new samples, which takes some milliseconds."""
        has_news, self._has_news = self._has_news, False
        if self._live is not None and has_news:
            try:
                self.joints = self._live.joints()
            except (InertidError, ValueError, np.linalg.LinAlgError):
                self._live, self.joints = None, ()

    def fill(self, status: "IdentifierStatus") -> None:
        """Set the fields of a status."""
        status.recording = self._name
        status.joint_names = [coverage.joint for coverage in self.joints]
        status.torque_deviation = [coverage.torque_deviation for coverage in self.joints]
        status.still_needed = still_needed(self.joints)
