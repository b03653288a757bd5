"""Samples of recordings that have been screened: what every command and node fits or validates with."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import attrs

from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import MOMENTUM_EQUATIONS
from inertid_ros.core.errors import ModelError, RecordingError
from inertid_ros.core.findings import Finding
from inertid_ros.core.samples import Samples
from inertid_ros.data.ahead import ahead
from inertid_ros.data.cleaning.clean import repaired
from inertid_ros.data.filtering.filters import memory
from inertid_ros.data.long_recording import LongRecording, kept_parts
from inertid_ros.data.preparation.prepare import Preparation, common_cutoff, shared_by_parts
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.effort_noise import EffortNoise
from inertid_ros.data.screening.efforts.checks import check_efforts
from inertid_ros.data.screening.screen import refuse, screen_channels
from inertid_ros.identification.provenance import RecordingSource
from inertid_ros.regressors.load_torque import without_load
from inertid_ros.robot.loads import load_bodies
from inertid_ros.robot.model import RobotModel

_AHEAD = 1  # parts that are prepared while another is compressed


@dataclass(frozen=True)
class ScreenedRecording:
    """A recording whose raw channels may be those of this robot.

    Attributes
    ----------
    preparation : Preparation
        Of the recording for the robot as given.
    configuration : Configuration
        How it is prepared, and for which equations.
    findings : tuple of Finding
        On its raw channels.
    noise : EffortNoise, optional
        Of its efforts, where the equations are of force.
    """

    preparation: Preparation
    configuration: Configuration
    findings: tuple[Finding, ...]
    noise: EffortNoise | None

    @classmethod
    def of(cls, recording: Recording, model: RobotModel, configuration: Configuration) -> "ScreenedRecording":
        """Screen a recording; units are checked before the preparation, which would fail on wrong ones otherwise.

        Raises
        ------
        RecordingError
            The recording does not belong to this robot.
        """
        own = cls.unscreened(recording, model, configuration)
        readable = repaired(own.preparation.fresh)
        findings = screen_channels(readable, model)
        refuse(findings)
        lacking = set(model.joint_names) - set(recording.joint_names)  # which the preparation refuses
        momentum = configuration.identify.equations in MOMENTUM_EQUATIONS
        noise = None if lacking or momentum else EffortNoise.of(readable, model)
        return replace(own, findings=findings, noise=noise)

    @classmethod
    def unscreened(
        cls, recording: Recording, model: RobotModel, configuration: Configuration
    ) -> "ScreenedRecording":
        """A part of a recording of which other parts were screened."""
        begun, goes_on = recording.continued
        options = attrs.evolve(
            configuration.prepare,
            skip_start_s=0.0 if begun else configuration.prepare.skip_start_s,
            skip_end_s=0.0 if goes_on else configuration.prepare.skip_end_s,
            trim_transients=configuration.prepare.trim_transients and not (begun and goes_on),
        )
        return cls(Preparation(recording, model, options, configuration.identify.equations), configuration, (), None)

    def prepared(self, cutoff_hz: float = 0.0) -> Samples:
        """Samples below a cutoff [Hz], with the torques of a known load taken off the efforts.

        Without a cutoff it is the configured one, or one that suits this recording alone.

        Raises
        ------
        ModelError
            A load of the recording is known, and the equations are not those of force.
        RecordingError
            The recording cannot be used.
        """
        configuration, recording, model = self.configuration, self.preparation.recording, self.preparation.model
        samples = self.preparation.samples(cutoff_hz)
        load = load_bodies(model, configuration.robot.loads, recording.name)
        if load.any() and configuration.identify.equations != "force":
            raise ModelError("robot.loads: loads are known to equations of force only; drop them")
        return without_load(model, load, samples)

    def samples(self, cutoff_hz: float = 0.0) -> Samples:
        """The same with all findings on the recording, and the noise of the efforts.

        Raises
        ------
        ModelError
            A load of the recording is known, and the equations are not those of force.
        RecordingError
            The recording cannot be used, or does not belong to this robot.
        """
        samples, configuration = self.prepared(cutoff_hz), self.configuration
        # Efforts whose gains are to be found are checked with these, see LoadedRecordings.
        efforts = configuration.prepare.check_efforts and not configuration.identify.drive_gains
        checked = check_efforts(samples, self.preparation.model) if efforts else ()
        findings = (*samples.findings, *self.findings, *checked)
        refuse(findings)
        noise = None if self.noise is None else self.noise.below(samples.cutoff_hz)
        return replace(samples, findings=findings, effort_noise=noise)


class FurtherSamples:
    """Samples of the parts of long recordings that are not kept, prepared anew at every pass, one part at a time.

    They are not screened: the parts that are kept have been. A part that cannot be prepared is left out. Each part is
    prepared with as much of its neighbours as the low-pass remembers, so that its samples are those of the recording as
    a whole.

    Parameters
    ----------
    recordings : sequence of LongRecording
    kept : sequence of ScreenedRecording
        The parts that are kept, of :func:`prepared_alike`.
    cutoff_hz : float
        That of the parts that are kept [Hz].
    """

    def __init__(
        self, recordings: Sequence[LongRecording], kept: Sequence[ScreenedRecording], cutoff_hz: float
    ) -> None:
        self._recordings, self._cutoff_hz = tuple(recordings), cutoff_hz
        self._model, self._configuration = kept[0].preparation.model, kept[0].configuration
        self._shared = {each.preparation.recording.name: each.preparation.shared for each in kept}
        self._used: dict[str, int] = {}
        self._left_out: dict[str, list[str]] = {}
        self._findings: dict[tuple[str, tuple[str, ...]], Finding] = {}

    def __bool__(self) -> bool:
        return bool(self._recordings)

    def __iter__(self) -> Iterator[Samples]:
        context = memory(self._cutoff_hz, self._configuration.prepare.filter_order)
        for recording in self._recordings:
            self._used[recording.name], self._left_out[recording.name] = 0, []
            with without_notices():
                for samples in ahead(self._prepared, recording.others(context), _AHEAD):
                    if isinstance(samples, RecordingError):
                        self._left_out[recording.name].append(str(samples))
                        continue
                    self._used[recording.name] += int(samples.usable.sum())
                    for finding in samples.findings:
                        self._findings.setdefault((finding.cause, finding.subjects), finding)
                    yield samples

    def _prepared(self, part: Recording) -> Samples | RecordingError:
        """Samples of a part, or why there are none."""
        if not part.effort[part.own_rows].any():
            return RecordingError(f"{part.name}: effort is zero throughout it")
        own = ScreenedRecording.unscreened(part, self._model, self._configuration)
        own = replace(own, preparation=replace(own.preparation, shared=self._shared.get(part.name)))
        try:
            return own.prepared(self._cutoff_hz)
        except RecordingError as error:
            return error

    def findings_beside(self, known: Sequence[Finding]) -> tuple[Finding, ...]:
        """Findings on the channels of these parts of which there is none of the same cause and subjects."""
        told = {(finding.cause, finding.subjects) for finding in known}
        return tuple(finding for key, finding in self._findings.items() if key not in told)

    def source(self, recording: LongRecording, kept: RecordingSource) -> RecordingSource:
        """Where a result comes from: the whole of a recording, of which ``kept`` are the parts that are kept."""
        left_out = self._left_out.get(recording.name, [])
        notices = [recording.notice]
        if left_out:
            notices.append(f"left out {len(left_out)} parts, the first of which: {left_out[0]}")
        return replace(
            kept,
            samples=len(recording),
            seconds=recording.duration,
            used_samples=kept.used_samples + self._used.get(recording.name, 0),
            notices=(*kept.notices, *notices),
        )


@contextmanager
def without_notices() -> Iterator[None]:
    """What there is to notice of a recording has been told when it was first prepared."""
    logger = logging.getLogger("inertid_ros.data")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def screened(
    recordings: Sequence[Recording], model: RobotModel, configuration: Configuration
) -> list[ScreenedRecording]:
    """Screen recordings; raises RecordingError for the first that does not belong to this robot."""
    return [ScreenedRecording.of(recording, model, configuration) for recording in recordings]


def prepared_alike(
    given: Sequence[Recording | LongRecording], kept: Sequence[ScreenedRecording], cutoff_hz: float
) -> list[ScreenedRecording]:
    """The same recordings and kept parts, where parts of one recording share what they are prepared by.

    Parameters
    ----------
    given : sequence of Recording or LongRecording
    kept : sequence of ScreenedRecording
        Those of :func:`.long_recording.kept_parts`, in the same order.
    cutoff_hz : float
        With which all are filtered [Hz].

    Raises
    ------
    RecordingError
        A part cannot be used.
    """
    screened_parts, alike = iter(kept), []
    for each in given:
        own = [next(screened_parts) for _ in kept_parts([each])]
        preparations = [part.preparation for part in own]
        if isinstance(each, LongRecording) and preparations[0].equation_type not in MOMENTUM_EQUATIONS:
            with without_notices():
                shared = shared_by_parts(preparations, cutoff_hz, each.period, each.samples)
            own = [replace(part, preparation=replace(part.preparation, shared=shared)) for part in own]
        alike += own
    return alike


def cutoff_of(
    recordings: Sequence[ScreenedRecording], others: Sequence[ScreenedRecording] = (), fitted_hz: float = 0.0
) -> float:
    """The one cutoff [Hz] that all recordings of a result are filtered with.

    Parameters
    ----------
    recordings : sequence of ScreenedRecording
        Those from which the cutoff is chosen; the configured one goes before all others.
    others : sequence of ScreenedRecording
        Recordings that will be filtered alike; the cutoff suits their sample rates.
    fitted_hz : float
        Cutoff with which a result was identified [Hz], where there is one; it goes before what recordings suggest.

    Raises
    ------
    RecordingError
        A recording cannot be used.
    """
    configured = recordings[0].configuration.prepare.cutoff_hz
    if fitted_hz and not configured:
        return fitted_hz
    return common_cutoff(
        [each.preparation for each in recordings], [other.preparation.fresh for other in others]
    )
