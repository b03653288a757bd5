"""Recordings to samples of any kind of equations."""

from ..regressors.momentum_equations import MomentumEquations
from ..robot.model import RobotModel
from .momentum import prepare_momentum
from .prepare import PrepareOptions, prepare
from .recording import Recording
from .samples import Samples


def prepared(
    recording: Recording, model: RobotModel, options: PrepareOptions | None = None, kind: str = "force"
) -> Samples:
    """Samples for equations of a kind, see :data:`inertid_ros.regressors.kinds.KINDS`.

    Raises
    ------
    RecordingError: the recording lacks what these equations need, or cannot be used.
    """
    if kind in MomentumEquations.kinds:
        return prepare_momentum(recording, model, options, change=kind == "momentum_change")
    return prepare(recording, model, options)
