"""Recordings of a calibration: screened, then prepared with one cutoff."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import attrs

from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import MOMENTUM_EQUATIONS
from inertid_ros.core.errors import ModelError, RecordingError
from inertid_ros.core.findings import Finding
from inertid_ros.core.samples import Samples
from inertid_ros.data.long_recording import LongRecording, ahead, kept_parts
from inertid_ros.data.preparation.filtering import memory
from inertid_ros.data.preparation.prepare import Preparation, common_cutoff, shared_by_parts
from inertid_ros.data.preparation.recorded_channels import repaired
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.channel_checks import refuse, screen_channels
from inertid_ros.data.screening.effort_checks import check_efforts
from inertid_ros.data.screening.recording_health import EffortNoise
from inertid_ros.identification.provenance import RecordingSource, recording_source
from inertid_ros.regressors.force_equations import without_load
from inertid_ros.robot.body_changes import load_bodies
from inertid_ros.robot.model import RobotModel

TRAIN, VALIDATION = "train", "validation"
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
        noise = None if lacking or momentum else EffortNoise.from_recording(readable, model)
        return replace(own, findings=findings, noise=noise)

    @classmethod
    def unscreened(
        cls, recording: Recording, model: RobotModel, configuration: Configuration
    ) -> "ScreenedRecording":
        """Make one of a part, other parts of whose recording were screened."""
        begun, goes_on = recording.continued
        options = attrs.evolve(
            configuration.prepare,
            skip_start_s=0.0 if begun else configuration.prepare.skip_start_s,
            skip_end_s=0.0 if goes_on else configuration.prepare.skip_end_s,
            trim_transients=configuration.prepare.trim_transients and not (begun and goes_on),
        )
        return cls(Preparation(recording, model, options, configuration.identify.equations), configuration, (), None)

    def prepared(self, cutoff_hz: float = 0.0) -> Samples:
        """Prepare samples below a cutoff [Hz], with the torques of a known load taken off the efforts.

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
        """Prepare samples with all findings on the recording, and the noise of the efforts.

        Raises
        ------
        ModelError
            A load of the recording is known, and the equations are not those of force.
        RecordingError
            The recording cannot be used, or does not belong to this robot.
        """
        samples, configuration = self.prepared(cutoff_hz), self.configuration
        # Efforts whose gains are estimated are checked once they are applied, see with_drive_gains.
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
        The parts in memory, of :meth:`Dataset.prepared`.
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
    """Silence notices on recordings that were prepared, with their notices logged, before."""
    logger = logging.getLogger("inertid_ros.data")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@dataclass(frozen=True)
class DatasetRecording:
    """A recording with its role, screened and prepared; of a long one the parts in memory.

    Attributes
    ----------
    source : Recording or LongRecording
    role : str
        ``train`` or ``validation``.
    parts : tuple of ScreenedRecording
    samples : tuple of Samples
        Of the parts; empty until they are prepared.
    """

    source: Recording | LongRecording
    role: str
    parts: tuple[ScreenedRecording, ...]
    samples: tuple[Samples, ...] = ()

    @property
    def first(self) -> Recording:
        """The recording itself, or the first part of a long one; its checksum identifies both."""
        part, *_ = self.parts
        return part.preparation.recording

    def sharing(self, cutoff_hz: float) -> "DatasetRecording":
        """Let the parts of a long recording share noise, limits and fast speeds, as if filtered as a whole."""
        source, preparations = self.source, [part.preparation for part in self.parts]
        if not isinstance(source, LongRecording) or preparations[0].equation_type in MOMENTUM_EQUATIONS:
            return self
        with without_notices():
            shared = shared_by_parts(preparations, cutoff_hz, source.period, source.samples)
        parts = [replace(part, preparation=replace(part.preparation, shared=shared)) for part in self.parts]
        return replace(self, parts=tuple(parts))


@dataclass(frozen=True)
class Dataset:
    """Recordings to fit and to validate with: screened, then prepared with one cutoff for all.

    Attributes
    ----------
    model : RobotModel
    configuration : Configuration
    recordings : tuple of DatasetRecording
        Those to fit first.
    cutoff_hz : float
        Of the low-pass that all went through [Hz]; 0 until they are prepared.
    """

    model: RobotModel
    configuration: Configuration
    recordings: tuple[DatasetRecording, ...]
    cutoff_hz: float = 0.0

    @classmethod
    def screened(
        cls,
        model: RobotModel,
        configuration: Configuration,
        train: Iterable[Recording | LongRecording],
        validation: Iterable[Recording | LongRecording] = (),
    ) -> "Dataset":
        """Screen recordings.

        Raises
        ------
        RecordingError
            One does not belong to this robot.
        """
        roles = [*((source, TRAIN) for source in train), *((source, VALIDATION) for source in validation)]
        recordings = [
            DatasetRecording(
                source,
                role,
                tuple(ScreenedRecording.of(part, model, configuration) for part in kept_parts([source])),
            )
            for source, role in roles
        ]
        return cls(model, configuration, tuple(recordings))

    def cutoff(self, fitted_hz: float = 0.0) -> float:
        """Choose the one cutoff [Hz] from the recordings to fit, such that it suits the rates of all.

        Parameters
        ----------
        fitted_hz : float
            Cutoff with which a result was identified [Hz]; it takes precedence over what the recordings suggest, and
            the configured one over both.

        Raises
        ------
        RecordingError
            A recording cannot be used.
        """
        if fitted_hz and not self.configuration.prepare.cutoff_hz:
            return fitted_hz
        others = [part.preparation.fresh for part in self.parts(VALIDATION)]
        return common_cutoff([part.preparation for part in self.parts(TRAIN)], others)

    def prepared(self, cutoff_hz: float, progress: Callable[[float], None] = lambda fraction: None) -> "Dataset":
        """Prepare all recordings with one cutoff [Hz]; ``progress`` is called with the fraction done.

        Raises
        ------
        ModelError, RecordingError
            As :meth:`ScreenedRecording.samples`.
        """
        recordings, count, done = [], len(self.parts()), 0
        for recording in self.recordings:
            recording, samples = recording.sharing(cutoff_hz), []
            for part in recording.parts:
                progress(done / count)
                samples.append(part.samples(cutoff_hz))
                done += 1
            recordings.append(replace(recording, samples=tuple(samples)))
        return replace(self, recordings=tuple(recordings), cutoff_hz=cutoff_hz)

    def changed(self, change: Callable[[ScreenedRecording, Samples], Samples]) -> "Dataset":
        """Replace the samples of every part."""
        recordings = [
            replace(entry, samples=tuple(map(change, entry.parts, entry.samples))) for entry in self.recordings
        ]
        return replace(self, recordings=tuple(recordings))

    def of_role(self, role: str = "") -> tuple[DatasetRecording, ...]:
        """Recordings of a role, all without one."""
        return tuple(recording for recording in self.recordings if role in ("", recording.role))

    def parts(self, role: str = "") -> tuple[ScreenedRecording, ...]:
        """Screened recordings of a role, all without one."""
        return tuple(part for recording in self.of_role(role) for part in recording.parts)

    def samples(self, role: str = "") -> tuple[Samples, ...]:
        """Prepared samples of a role, all without one."""
        return tuple(samples for recording in self.of_role(role) for samples in recording.samples)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings on all samples."""
        return tuple(finding for samples in self.samples() for finding in samples.findings)

    def further_samples(self) -> FurtherSamples:
        """Samples of the parts of long recordings to fit that are not in memory."""
        long = [entry.source for entry in self.of_role(TRAIN) if isinstance(entry.source, LongRecording)]
        return FurtherSamples(long, self.parts(TRAIN), self.cutoff_hz)

    def sources(self, further: FurtherSamples) -> tuple[RecordingSource, ...]:
        """Provenance of every recording, once all further samples have been read."""
        return tuple(_source(recording, further) for recording in self.recordings)


def _source(entry: DatasetRecording, further: FurtherSamples) -> RecordingSource:
    samples, *_ = entry.samples
    source = recording_source(entry.first, samples, entry.role)
    if not isinstance(entry.source, LongRecording):
        return source
    used = sum(int(samples.usable.sum()) for samples in entry.samples)
    return further.source(entry.source, replace(source, used_samples=used))
