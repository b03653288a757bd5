"""Recordings to samples of any kind of equations."""

from inertid_ros.config.identification import MOMENTUM_EQUATIONS
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import RobotModel

from .momentum_samples import prepare_momentum
from .prepare import PrepareOptions, prepare


def prepared(
    recording: Recording, model: RobotModel, options: PrepareOptions | None = None, kind: str = "force"
) -> Samples:
    """Samples for equations of a kind, see :data:`inertid_ros.regressors.equation_types.KINDS`.

    Raises
    ------
    RecordingError: the recording lacks what these equations need, or cannot be used.
    """
    if kind in MOMENTUM_EQUATIONS:
        return prepare_momentum(recording, model, options, change=kind == "momentum_change")
    return prepare(recording, model, options)
