"""The identifier node's work, as a function that a :class:`~inertid_ros.worker.Worker` can run in another process."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .calibration import calibrate
from .configuration import Configuration
from .data.load import load_recording
from .data.recording import Recording
from .identification.estimate import Estimate
from .identification.validation import Validation
from .report.results import write_result
from .robot.model import load_model

_READ, _SOLVED = 0.1, 0.9


@dataclass(frozen=True)
class IdentificationJob:
    """What to identify.

    Attributes
    ----------
    urdf: text.
    train, held_out: recordings, or paths of recordings.
    output: result directory to write; None writes nothing.
    """

    urdf: str
    configuration: Configuration
    train: tuple[Recording | str, ...]
    held_out: tuple[Recording | str, ...] = ()
    output: Path | None = None


@dataclass(frozen=True)
class IdentificationResult:
    """What came of it.

    Attributes
    ----------
    report: content of ``report.json``.
    urdf: the calibrated URDF.
    output: where it was written; None where nothing was.
    """

    estimate: Estimate
    validation: Validation | None
    report: dict[str, Any]
    urdf: str
    output: Path | None


def identify_job(job: IdentificationJob, progress: Callable[[str, float], None]) -> IdentificationResult:
    """Read, identify, validate and write the result, whether or not it passes its validation.

    Raises
    ------
    InertidError: the URDF or a recording cannot be used, there is no solution, or the result cannot be written.
    """
    model = load_model(job.urdf, job.configuration.robot.model_options())
    progress("reading", 0.0)
    topics = job.configuration.topics
    train, held_out = (
        [e if isinstance(e, Recording) else load_recording(e, topics, model.recorded_joints) for e in entries]
        for entries in (job.train, job.held_out)
    )
    outcome = calibrate(
        model,
        train,
        held_out,
        job.configuration,
        lambda stage, fraction: progress(stage, _READ + (_SOLVED - _READ) * fraction),
    )
    progress("writing", _SOLVED)
    if job.output is not None:
        write_result(outcome, job.output)
    return IdentificationResult(
        estimate=outcome.estimate,
        validation=outcome.validation,
        report=outcome.report,
        urdf=outcome.urdf,
        output=job.output,
    )
