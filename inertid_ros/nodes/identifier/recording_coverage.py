"""What the newest recording determines, so far where it is still being received."""

import numpy as np

from inertid_ros.adaptation.online.live_coverage import LiveCoverage, still_needed
from inertid_ros.core.errors import InertidError
from inertid_ros.data.blocks import Block
from inertid_ros.identification.details.motion_coverage import JointCoverage
from inertid_ros.msg import IdentifierStatus
from inertid_ros.robot.model import RobotModel


class RecordingCoverage:
    """Coverage of one recording after the other, for the status of the node.

    Attributes
    ----------
    joints : tuple of JointCoverage
        When it was last worked out; empty while nothing is known.
    """

    def __init__(self) -> None:
        self.joints: tuple[JointCoverage, ...] = ()
        self._name, self._news = "", False
        self._live: LiveCoverage | None = None

    def prepare(self, model: RobotModel) -> None:
        """Load what the first recording needs, which takes a second of a core: not while the robot moves."""
        if not model.free:
            LiveCoverage(model)

    def add(self, model: RobotModel | None, name: str, sequence: int, block: Block) -> None:
        """Take the next samples of a recording; those of another one, or of sequence 0, begin anew."""
        self._news = True
        if name != self._name or sequence == 0:
            self._name, self.joints = name, ()
            self._live = LiveCoverage(model) if model is not None and not model.free else None
        if self._live is not None:
            try:
                self._live.add(block)
            except (InertidError, ValueError):  # of other joints; told when the recording is identified
                self._live = None

    def work_out(self) -> None:
        """Look at all samples so far, where there are new ones; it takes some milliseconds."""
        news, self._news = self._news, False
        if self._live is not None and news:
            try:
                self.joints = self._live.joints()
            except (InertidError, ValueError, np.linalg.LinAlgError):
                self._live, self.joints = None, ()

    def fill(self, status: IdentifierStatus) -> None:
        """Set the fields of the status."""
        status.recording = self._name
        status.joint_names = [each.joint for each in self.joints]
        status.torque_deviation = [each.torque_deviation for each in self.joints]
        status.still_needed = still_needed(self.joints)
