"""Does this recording belong to this robot? All checks of one recording before anything is fitted to it."""

from collections.abc import Iterable

from inertid_ros.core.errors import RecordingError
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import RobotModel

from .effort_checks import check_efforts
from .position_checks import check_locked, check_positions
from .stamp_checks import check_stamps


def screen_channels(recording: Recording, model: RobotModel) -> tuple[Finding, ...]:
    """Findings on raw channels, before they are prepared: units of stamps and positions, locked joints.

    Parameters
    ----------
    recording : Recording
        Raw channels.
    model : RobotModel
        The robot as given.

    Returns
    -------
    tuple of Finding
    """
    stamps = check_stamps(recording)
    return stamps or (*check_positions(recording, model), *check_locked(recording, model))


def screen(
    recording: Recording, samples: Samples, model: RobotModel, efforts: bool = True
) -> tuple[Finding, ...]:
    """All findings on one recording and on what was prepared of it.

    Parameters
    ----------
    recording : Recording
        Raw channels.
    samples : Samples
        Prepared from it.
    model : RobotModel
        The robot as given.
    efforts : bool
        Whether efforts are compared with what the URDF predicts.

    Returns
    -------
    tuple of Finding
        Those of the preparation come first.
    """
    channels = (*samples.findings, *screen_channels(recording, model))
    return (*channels, *check_efforts(samples, model)) if efforts else channels


def refuse(findings: Iterable[Finding]) -> None:
    """Raise what must not be fitted.

    Raises
    ------
    RecordingError
        The first finding that is to be refused.
    """
    for finding in findings:
        if finding.severity is Severity.REFUSE:
            raise RecordingError(str(finding))
