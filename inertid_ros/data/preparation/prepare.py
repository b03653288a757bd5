"""Samples for equations of any type."""

from inertid_ros.config.identification import MOMENTUM_EQUATIONS
from inertid_ros.config.preparation import PrepareOptions
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import RobotModel

from .force_samples import prepare_force
from .momentum_samples import prepare_momentum


def prepare(
    recording: Recording, model: RobotModel, options: PrepareOptions | None = None, equation_type: str = "force"
) -> Samples:
    """Samples of a robot from a recording.

    Parameters
    ----------
    recording : Recording
        Raw channels.
    model : RobotModel
        The robot; its joints are matched by name.
    options : PrepareOptions, optional
        Filters, cuts and sources of motion.
    equation_type : str
        Type of the equations that the samples are for, one of :data:`inertid_ros.config.identification.EQUATION_TYPES`.

    Returns
    -------
    Samples
        Evenly spaced, filtered, in the order of the model.

    Raises
    ------
    RecordingError
        The recording lacks what these equations need, or cannot be used.
    """
    if equation_type in MOMENTUM_EQUATIONS:
        return prepare_momentum(recording, model, options, change=equation_type == "momentum_change")
    return prepare_force(recording, model, options)
