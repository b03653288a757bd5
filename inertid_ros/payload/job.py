"""The payload action's work, as a function that a :class:`~inertid_ros.core.worker.Worker` runs in another process."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from inertid_ros.data.files.loading import load_recording
from inertid_ros.data.recording import Recording
from inertid_ros.payload.payload import Payload
from inertid_ros.report.results import read_result

from .offline import PayloadOptions, outcome_content, payload_offline


@dataclass(frozen=True)
class PayloadJob:
    """What to identify a payload from.

    Attributes
    ----------
    directory : str
        Of the result without it.
    recording : Recording
        With it.
    reference : tuple of str
        Paths of recordings of the same session without it.
    options : PayloadOptions
        Frame, drift of friction, largest mass.
    """

    directory: str
    recording: Recording
    reference: tuple[str, ...]
    options: PayloadOptions


@dataclass(frozen=True)
class PayloadResult:
    """A payload, what to know before it is used, and the content of payload.json."""

    payload: Payload
    notices: tuple[str, ...]
    content: dict[str, Any]


def payload_job(job: PayloadJob, progress: Callable[[tuple[str, float]], None]) -> PayloadResult:
    """Identify a payload.

    Raises
    ------
    InertidError
        See :func:`.payload_offline`.
    """
    result = read_result(job.directory)
    reference = [load_recording(path, joints=result.model.recorded_joints) for path in job.reference]
    outcome = payload_offline(
        result,
        [job.recording],
        reference,
        job.options,
        progress=lambda stage, fraction: progress((stage, fraction)),
    )
    content = outcome_content(outcome, result)
    return PayloadResult(outcome.payload, tuple(content["notices"]), content)
