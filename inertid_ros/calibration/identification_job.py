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
from inertid_ros.report.report_content import report_content
from inertid_ros.report.results import Result
from inertid_ros.robot.model import load_model, model_options

from .calibrate import calibrate

_READ, _SOLVED = 0.1, 0.9


@dataclass(frozen=True)
class IdentificationJob:
    """What to identify.

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
    """The result of an identification.

    Attributes
    ----------
    gate : GateDecision
        Whether the result may be used.
    report : dict[str, Any]
        Content of ``report.json``.
    urdf : str
        The calibrated URDF.
    output : Path or None
        Where it was written; None where nothing was.
    history : tuple of Round
        Uncertainty after each round, this one last; empty on a free base.
    decision : RoundDecision or None
        Whether another round follows; None on a free base.
    """

    estimate: Estimate
    validation: Validation | None
    gate: GateDecision
    report: dict[str, Any]
    urdf: str
    output: Path | None
    history: tuple[Round, ...] = ()
    decision: RoundDecision | None = None


def identify_job(job: IdentificationJob, progress: Callable[[IdentificationProgress], None]) -> IdentificationResult:
    """Read, identify, validate and write the result, whether or not it passes its validation.

    Raises
    ------
    InertidError
        The URDF or a recording cannot be used, there is no solution, or the result cannot be written.
    """
    model = load_model(job.urdf, model_options(job.configuration.robot))
    progress(IdentificationProgress("reading", 0.0))
    history = _history(job.previous) if job.previous else ()
    topics, stamps = job.configuration.topics, job.configuration.prepare.stamps
    joints = model.recorded_joints
    train, held_out = (
        [
            renamed(each, joints) if isinstance(each, Recording) else load_any_length(each, topics, joints, stamps)
            for each in group
        ]
        for group in (job.train, job.held_out)
    )
    outcome = calibrate(
        model,
        train,
        held_out,
        job.configuration,
        lambda report: progress(report.within(_READ, _SOLVED)),
    )
    outcome = replace(outcome, rounds=(job.rounds, history))
    progress(IdentificationProgress("writing", _SOLVED))
    if job.output is not None:
        outcome.save(job.output)
    return IdentificationResult(
        estimate=outcome.estimate,
        validation=outcome.validation,
        gate=outcome.gate,
        report=report_content(outcome),
        urdf=outcome.urdf,
        output=job.output,
        history=outcome.history,
        decision=outcome.decision,
    )


def _history(directory: str) -> tuple[Round, ...]:
    """Rounds of the result before."""
    rounds = Result.load(directory).report.get("rounds")
    return tuple(Round.read(entry) for entry in rounds["done"]) if rounds else ()
