"""The statuses of the identifier node; docs/reference/diagnostics.md describes them."""

from collections.abc import Sequence

from inertid_ros.adaptation.online.live_coverage import still_needed
from inertid_ros.data.live.batches import ReceivedRecordings
from inertid_ros.identification.details.motion_coverage import JointCoverage
from inertid_ros.identification.identify import IdentificationProgress
from inertid_ros.msg import IdentifierStatus, InertialParameters
from inertid_ros.ros.diagnostics import ERROR, STALE, WARN, Status, gravest

from .publication import Publication

_STATES = {
    IdentifierStatus.WAITING: "waiting",
    IdentifierStatus.READY: "ready",
    IdentifierStatus.SOLVING: "solving",
    IdentifierStatus.FAILED: "failed",
}
_VERDICTS = {InertialParameters.USE: "use", InertialParameters.USE_WITH_CARE: "use with care"}


def identification(
    state: int,
    message: str,
    last_fault: str,
    recordings: ReceivedRecordings,
    progress: IdentificationProgress | None,
    coverage: Sequence[JointCoverage] = (),
) -> Status:
    """What the node does; the state is a constant of IdentifierStatus."""
    level, text = gravest(
        (ERROR, message if state == IdentifierStatus.FAILED else ""),
        (STALE, message if state == IdentifierStatus.WAITING else ""),
        otherwise=message,
    )
    values = {
        "State": _STATES[state],
        "Stage": progress.stage if progress is not None else None,
        "Done (%)": 100.0 * float(progress.fraction) if progress is not None else None,
        "Recordings": len(recordings.complete),
        "Samples": recordings.samples,
        "Last fault": last_fault,
        "Torque known to (%)": 100.0 * max(each.torque_deviation for each in coverage) if coverage else None,
        "Still needed": still_needed(coverage),
    }
    return Status("identification", level, text, values)


def result(publication: Publication, model_hash: str) -> Status:
    """What controllers were given, if anything, and how old it is; the hash is of the robot described now."""
    published, problem = publication.accepted, publication.problem
    if published is None:
        keys = ("Sequence", "Verdict", "Age (s)", "Validation error (%)")
        return Status("result", *gravest((WARN, problem), otherwise="no result yet"), dict.fromkeys(keys))
    foreign = model_hash and published.model_hash != model_hash
    care = "; ".join(published.reasons) if published.verdict == InertialParameters.USE_WITH_CARE else ""
    level, message = gravest(
        (ERROR, "the result is of another robot than described now; identify anew" if foreign else ""),
        (WARN, problem),
        (WARN, care and f"use with care: {care}"),
        otherwise=f"result {published.sequence} is in use",
    )
    values = {
        "Sequence": published.sequence,
        "Verdict": _VERDICTS.get(published.verdict, "none"),
        "Age (s)": publication.age,
        "Validation error (%)": 100.0 * published.validation_relative_error,
    }
    return Status("result", level, message, values)
