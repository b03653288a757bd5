"""Does this recording belong to this robot? Checks of its channels before they are prepared, and what is refused."""

from collections.abc import Iterable
from itertools import chain

from inertid_ros.core.errors import RecordingError
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import RobotModel

from .position_checks import check_limits, check_locked, check_positions
from .stamp_checks import check_repairs, check_stamps


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
    checks = () if stamps else (check_positions, check_limits, check_locked)
    return (*check_repairs(recording), *stamps, *chain.from_iterable(check(recording, model) for check in checks))


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
