"""Progress of long work as action feedback: the one place where progress types meet feedback messages."""

import numpy as np

from inertid_ros.action import Excite, Identify
from inertid_ros.app.excitation_job import PreparationProgress
from inertid_ros.excitation.execution.supervisor import ExecutionProgress
from inertid_ros.identification.identify import IdentificationProgress

_NAN = float("nan")


def excite_feedback(progress: PreparationProgress | ExecutionProgress | None) -> Excite.Feedback:
    """Return the feedback of the action ``Excite``; None, before anything is planned, has no stage."""
    if progress is None:
        return Excite.Feedback(condition_number=_NAN)
    if isinstance(progress, PreparationProgress):
        return Excite.Feedback(
            stage="planning",
            fraction=float(progress.fraction),
            condition_number=float(progress.condition_number),
        )
    return Excite.Feedback(
        stage=progress.stage.value,
        fraction=float(progress.fraction),
        condition_number=_NAN,
        tracking_error=float(np.abs(progress.tracking_error).max()),
    )


def identify_feedback(progress: IdentificationProgress) -> Identify.Feedback:
    """Return the feedback of the action ``Identify``."""
    return Identify.Feedback(stage=progress.stage, fraction=float(progress.fraction))
