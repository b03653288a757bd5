"""The identifier node's work, as a function that a :class:`~inertid_ros.core.worker.Worker` runs in another process."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import RoundsOptions
from inertid_ros.data.files.loading import load_any_length
from inertid_ros.data.recording import Recording, renamed
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.assessment.gate import GateDecision
from inertid_ros.identification.assessment.validation import Validation
from inertid_ros.identification.identify import IdentificationProgress
from inertid_ros.identification.outcome import Round, RoundDecision
from inertid_ros.report.results import Result
from inertid_ros.robot.model import load_model

from .calibrate import calibrate

_READ_FRACTION, _CALIBRATED_FRACTION = 0.1, 0.9


@dataclass(frozen=True)
class IdentificationJob:
    """Recordings of an identification, and its options.

    Attributes
    ----------
    urdf : str
        Content of the URDF.
    train, held_out : tuple[Recording | str, ...]
        Recordings, or paths of recordings.
    output : Path or None
        Result directory to write; None writes nothing.
    rounds : RoundsOptions
        When rounds of excitation and identification end.
    previous : str
        Result directory of the round before; empty in the first.
    """

    urdf: str
    configuration: Configuration
    train: tuple[Recording | str, ...]
    held_out: tuple[Recording | str, ...] = ()
    output: Path | None = None
    rounds: RoundsOptions = field(default_factory=RoundsOptions)
    previous: str = ""


@dataclass(frozen=True)
class IdentificationResult:
    """The parts of an outcome that the node publishes; its samples stay in the other process."""

    estimate: Estimate
    validation: Validation | None
    gate: GateDecision
    report: dict[str, Any]
    urdf: str
    output: Path | None
    history: tuple[Round, ...] = ()
    decision: RoundDecision | None = None


def identify_job(job: IdentificationJob, progress: Callable[[IdentificationProgress], None]) -> IdentificationResult:
    """Read, identify, validate and write the result, whether or not it passes its validation."""
    model = load_model(job.urdf, job.configuration.robot)
    progress(IdentificationProgress("reading", 0.0))
    rounds = Result.load(job.previous).report.get("rounds") if job.previous else None
    history = tuple(map(Round.read, rounds["done"])) if rounds else ()
    topics, stamps, joints = job.configuration.topics, job.configuration.prepare.stamps, model.recorded_joints
    train, held_out = (
        [
            renamed(given, joints) if isinstance(given, Recording) else load_any_length(given, topics, joints, stamps)
            for given in sources
        ]
        for sources in (job.train, job.held_out)
    )
    outcome = calibrate(
        model, train, held_out, job.configuration,
        lambda report: progress(report.within(_READ_FRACTION, _CALIBRATED_FRACTION)),
    )  # fmt: skip
    outcome = replace(outcome, rounds=(job.rounds, history))
    progress(IdentificationProgress("writing", _CALIBRATED_FRACTION))
    if job.output is not None:
        outcome.save(job.output)
    return IdentificationResult(
        outcome.estimate, outcome.validation, outcome.gate, outcome.report, outcome.urdf, job.output,
        outcome.history, outcome.decision,
    )  # fmt: skip
