"""Recordings of a calibration, screened and then prepared with one cutoff."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import attrs
import numpy as np

from inertid_ros.config.configuration import Configuration
from inertid_ros.config.identification import MOMENTUM_EQUATIONS
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import ModelError, RecordingError, log_once, read_silently, without_notices
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.core.samples import Samples
from inertid_ros.data.long_recording import LongRecording, ahead, all_parts, kept_parts
from inertid_ros.data.preparation.filtering import memory
from inertid_ros.data.preparation.prepare import Preparation, common_cutoff, shared_by_parts
from inertid_ros.data.preparation.recorded_channels import repaired
from inertid_ros.data.recording import Recording
from inertid_ros.data.screening.channel_checks import check_locked, refuse, screen_channels
from inertid_ros.data.screening.effort_checks import check_efforts
from inertid_ros.data.screening.recording_health import EffortNoise, RecordingHealth, recording_health
from inertid_ros.identification.information.delay import without_delay
from inertid_ros.identification.provenance import RecordingSource, recording_source
from inertid_ros.regressors.equations import without_load
from inertid_ros.robot.body_changes import load_bodies
from inertid_ros.robot.model import RobotModel, load_model

TRAIN, VALIDATION = "train", "validation"
_PARTS_AHEAD = 1  # parts to prepare in advance, while the fit uses another part


def with_moving_leaders(model: RobotModel, recordings: Sequence[Recording]) -> RobotModel:
    """Robot that carries those mimicked joints whose motion in the recordings changes torques notably.

    Without position and effort in every recording, and on a free base, they stay locked.
    """
    recorded = [name for name in model.held_leaders if all(name in part.joint_names for part in recordings)]
    if not recorded or model.free:
        return model
    parts = [repaired(recording) for recording in recordings]
    moving = {finding.subjects[0] for part in parts for finding in check_locked(part, model)
        if finding.severity is not Severity.NOTICE}
    carried = tuple(name for name in recorded if name in moving
        and all(np.ptp(part.effort[:, part.joint_names.index(name)]) > 0 for part in parts))
    if not carried:
        return model
    moved = f"{', '.join(carried)}: moving in the recordings, identified together with the joints that mimic them"
    log_once(f"URDF robot '{model.name}': {moved}; to state this, set robot.carried_joints: [{', '.join(carried)}]")
    locked = {name: at for name, at in model.options.locked_joints.items() if name not in model.held_leaders}
    options = attrs.evolve(
        model.options, locked_joints=locked, carried_joints=(*model.options.carried_joints, *carried))
    return with_moving_leaders(load_model(model.urdf, options, folder=model.folder), parts)


@dataclass(frozen=True)
class ScreenedRecording:
    """Recording with findings on its raw channels, and for force equations with the noise of its efforts."""

    preparation: Preparation
    configuration: Configuration
    findings: tuple[Finding, ...]
    noise: EffortNoise | None

    @classmethod
    def of(cls, recording: Recording, model: RobotModel, configuration: Configuration) -> "ScreenedRecording":
        """Screen a recording; RecordingError if the recording does not belong to this robot.

        Units are checked here, because the preparation would fail on wrong units.
        """
        screened = cls.unscreened(recording, model, configuration)
        readable = repaired(screened.preparation.fresh)
        findings = screen_channels(readable, model)
        refuse(findings)
        lacking = set(model.joint_names) - set(recording.joint_names)  # the preparation refuses the recording
        momentum = configuration.identify.equations in MOMENTUM_EQUATIONS
        noise = None if lacking or momentum or model.segmented else EffortNoise.from_recording(readable, model)
        return replace(screened, findings=findings, noise=noise)

    @classmethod
    def unscreened(cls, recording: Recording, model: RobotModel, configuration: Configuration) -> "ScreenedRecording":
        """Wrap a part of a recording without screening, because other parts of the recording were screened."""
        options = configuration.prepare
        if any(recording.continued):  # a part of a long recording, whose ends were cut before
            trim_transients = options.trim_transients and not all(recording.continued)
            options = attrs.evolve(options, skip_start_s=0.0, skip_end_s=0.0, trim_transients=trim_transients)
        return cls(Preparation(recording, model, options, configuration.identify.equations), configuration, (), None)

    @property
    def load(self) -> Array:
        """Parameters ``(nb, 10)`` that the known loads of this recording add to the links."""
        preparation = self.preparation
        return load_bodies(preparation.model, self.configuration.robot.loads, preparation.recording.name)

    def prepared(self, cutoff_hz: float = 0.0) -> Samples:
        """Prepare samples below a cutoff [Hz], and subtract the torques of a known load from the efforts.

        Without ``cutoff_hz``, the configured cutoff applies, or a cutoff chosen for this recording alone.

        Raises ModelError: the recording has a known load, and the equations are not force equations.
        Raises RecordingError: the recording cannot be used.
        """
        samples, load = self.preparation.samples(cutoff_hz), self.load
        if load.any() and self.configuration.identify.equations != "force":
            raise ModelError("robot.loads: loads need identify.equations force; remove the loads")
        return without_load(self.preparation.model, load, samples)

    def samples(self, cutoff_hz: float = 0.0) -> Samples:
        """Samples of :meth:`prepared`, with all findings on the recording and the noise of its efforts attached."""
        samples = self.prepared(cutoff_hz)
        noise = None if self.noise is None else self.noise.below(samples.cutoff_hz)
        samples = replace(samples, findings=(*samples.findings, *self.findings), effort_noise=noise)
        refuse(samples.findings)
        # If gains are estimated, with_drive_gains checks the efforts after it applies the gains.
        return samples if self.configuration.identify.drive_gains else self.with_checked_efforts(samples)

    def with_checked_efforts(self, samples: Samples) -> Samples:
        """Add findings on the efforts if the options request it; RecordingError if they do not fit the robot."""
        # Wrong stamps spoil the torque of the motion, so that right efforts would seem wrong.
        rejected = any(finding.severity is Severity.REJECT for finding in samples.findings)
        if rejected or not self.configuration.prepare.check_efforts:
            return samples
        findings = check_efforts(samples, self.preparation.model)
        refuse(findings)
        return replace(samples, findings=(*samples.findings, *findings))


@dataclass(frozen=True)
class ReadPart:
    """Part of a long recording, read for the fit but not kept in memory; ``left_out`` is the reason for skipping it."""

    recording: str
    used_samples: int = 0
    findings: tuple[Finding, ...] = ()
    left_out: str = ""


@dataclass(frozen=True)
class FurtherSamples:
    """Iterate over the samples of those parts of long recordings that are not in memory, one part at a time.

    Every pass reads and prepares the parts. They are not screened, because the parts in ``kept`` were screened. The
    preparation of a part includes as much of its neighbours as the low-pass remembers, so that the samples equal the
    samples of the whole recording. ``report`` is called with every part.
    """

    recordings: Sequence[LongRecording]
    kept: Sequence[ScreenedRecording]
    cutoff_hz: float
    report: Callable[[ReadPart], None] = lambda part: None

    def __bool__(self) -> bool:
        return bool(self.recordings)

    def __iter__(self) -> Iterator[Samples]:
        shared = {part.preparation.recording.name: part.preparation.shared for part in self.kept}
        first, *_ = self.kept
        model, configuration = first.preparation.model, first.configuration

        def prepared(part: Recording) -> Samples | RecordingError:
            if not (model.free or model.command_gains or part.effort[part.own_rows].any()):
                return RecordingError(f"{part.name}: effort is zero throughout this part")
            screened = ScreenedRecording.unscreened(part, model, configuration)
            preparation = replace(screened.preparation, shared=shared.get(part.name))
            try:
                with without_notices():
                    return replace(screened, preparation=preparation).prepared(self.cutoff_hz)
            except RecordingError as error:
                return error

        context = memory(self.cutoff_hz, configuration.prepare.filter_order)
        for recording in self.recordings:
            for samples in ahead(prepared, read_silently(recording.others(context)), _PARTS_AHEAD):
                if isinstance(samples, RecordingError):
                    self.report(ReadPart(recording.name, left_out=str(samples)))
                else:
                    self.report(ReadPart(recording.name, int(samples.usable.sum()), samples.findings))
                    yield samples


@dataclass(frozen=True)
class DatasetRecording:
    """Recording with its role, its parts in memory (a short recording is one part), and the samples of each part."""

    source: Recording | LongRecording
    role: str
    parts: tuple[ScreenedRecording, ...]
    samples: tuple[Samples, ...] = ()

    def sharing(self, cutoff_hz: float) -> "DatasetRecording":
        """Give the parts of a long recording of forces common spectra, sample instants, fast speeds and noise."""
        source, preparations = self.source, [part.preparation for part in self.parts]
        of_force = preparations[0].equation_type not in MOMENTUM_EQUATIONS and not preparations[0].model.segmented
        if not isinstance(source, LongRecording) or not of_force:
            return self
        with without_notices():
            shared = shared_by_parts(preparations, cutoff_hz, source.period, source.samples)
        parts = [replace(part, preparation=replace(part.preparation, shared=shared)) for part in self.parts]
        return replace(self, parts=tuple(parts))

    def provenance(self, read_parts: Sequence[ReadPart]) -> RecordingSource:
        """Provenance of a recording, including the parts of a long recording that were read but not kept."""
        samples, *_ = self.samples
        kept = recording_source(self.parts[0].preparation.recording, samples, self.role)
        if not isinstance(self.source, LongRecording):
            return kept
        parts = [part for part in read_parts if part.recording == self.source.name]
        left_out = [part.left_out for part in parts if part.left_out]
        used = sum(int(samples.usable.sum()) for samples in self.samples) + sum(part.used_samples for part in parts)
        notices = [*kept.notices, self.source.notice]
        if left_out:
            notices.append(f"left out {len(left_out)} parts; reason for the first: {left_out[0]}")
        source, seconds = self.source, self.source.duration
        return replace(kept, samples=len(source), seconds=seconds, used_samples=used, notices=tuple(notices))


@dataclass(frozen=True)
class Dataset:
    """Recordings to fit, followed by recordings to validate with; screened, then prepared with one common cutoff."""

    model: RobotModel
    configuration: Configuration
    recordings: tuple[DatasetRecording, ...]
    cutoff_hz: float = 0.0

    @classmethod
    def screened(cls, model: RobotModel, configuration: Configuration, train: Iterable[Recording | LongRecording],
            validation: Iterable[Recording | LongRecording] = (), every_sample: bool = False) -> "Dataset":
        """Screen recordings; RecordingError if a recording does not belong to this robot.

        With ``every_sample``, all parts of long recordings to fit are loaded.
        """
        skipped = configuration.prepare.skip_start_s, configuration.prepare.skip_end_s

        def cut(source: Recording | LongRecording) -> Recording | LongRecording:
            return source.without_ends(*skipped) if isinstance(source, LongRecording) else source

        def screened(source: Recording | LongRecording, role: str) -> DatasetRecording:
            parts = (ScreenedRecording.of(part, model, configuration) for part in kept_parts([source]))
            return DatasetRecording(source, role, tuple(parts))

        fitted = [screened(part, TRAIN) for source in map(cut, train)
            for part in (all_parts(source) if every_sample else [source])]
        validated = [screened(cut(source), VALIDATION) for source in validation]
        return cls(model, configuration, (*fitted, *validated))

    def cutoff(self, fitted_hz: float = 0.0) -> float:
        """Choose a common cutoff [Hz] from the recordings to fit that suits the sample rates of all recordings.

        The configured cutoff takes precedence, then ``fitted_hz``, the cutoff of a result.
        """
        if fitted_hz and not self.configuration.prepare.cutoff_hz:
            return fitted_hz
        others = [part.preparation.fresh for part in self.parts(VALIDATION)]
        return common_cutoff([part.preparation for part in self.parts(TRAIN)], others)

    def prepared(self, cutoff_hz: float, progress: Callable[[float], None] = lambda fraction: None) -> "Dataset":
        """Prepare all recordings with one cutoff [Hz], and call ``progress`` with the fraction done."""
        recordings, count, done = [], len(self.parts()), 0
        for recording in self.recordings:
            recording, samples = recording.sharing(cutoff_hz), []
            for part in recording.parts:
                progress(done / count)
                samples.append(part.samples(cutoff_hz))
                done += 1
            recordings.append(replace(recording, samples=tuple(samples)))
        return replace(self, recordings=tuple(recordings), cutoff_hz=cutoff_hz)

    def with_model(self, model: RobotModel) -> "Dataset":
        """Prepare all recordings again, for a model with other options."""
        entries = [replace(entry, parts=tuple(
            replace(part, preparation=replace(part.preparation, model=model)) for part in entry.parts))
            for entry in self.recordings]
        return replace(self, model=model, recordings=tuple(entries)).prepared(self.cutoff_hz)

    def aligned(self, cutoff_hz: float, delay_s: float,
            progress: Callable[[str, float], None] = lambda stage, fraction: None) -> "Dataset":
        """Prepare all recordings with the cutoff [Hz] of a result, and remove its delay of efforts [s]."""
        dataset = self.prepared(self.cutoff(cutoff_hz), lambda fraction: progress("preparing", fraction))
        return dataset.changed(lambda _part, samples: without_delay(samples, delay_s))

    def changed(self, change: Callable[[ScreenedRecording, Samples], Samples]) -> "Dataset":
        """Replace the samples of every part by ``change(part, samples)``."""
        recordings = [replace(entry, samples=tuple(map(change, entry.parts, entry.samples)))
            for entry in self.recordings]
        return replace(self, recordings=tuple(recordings))

    def of_role(self, role: str = "") -> tuple[DatasetRecording, ...]:
        """Recordings of a role; all recordings if ``role`` is empty."""
        return tuple(recording for recording in self.recordings if role in ("", recording.role))

    def parts(self, role: str = "") -> tuple[ScreenedRecording, ...]:
        return tuple(part for recording in self.of_role(role) for part in recording.parts)

    def samples(self, role: str = "") -> tuple[Samples, ...]:
        return tuple(samples for recording in self.of_role(role) for samples in recording.samples)

    @property
    def first_parts(self) -> list[Recording]:
        """First part of each recording; its checksum identifies the recording."""
        return [recording.parts[0].preparation.recording for recording in self.recordings]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings on all samples."""
        return tuple(finding for samples in self.samples() for finding in samples.findings)

    @property
    def health(self) -> tuple[RecordingHealth, ...]:
        """Health of every part."""
        parts = zip(self.parts(), self.samples(), strict=True)
        commanded = self.model.command_gains is not None
        return tuple(
            recording_health(part.preparation.fresh if commanded else part.preparation.recording, samples, self.model)
            for part, samples in parts)

    def further_samples(self, report: Callable[[ReadPart], None] = lambda part: None) -> FurtherSamples:
        """Samples of those parts of fitted long recordings that are not in memory; calls ``report`` with each part."""
        long = [entry.source for entry in self.of_role(TRAIN) if isinstance(entry.source, LongRecording)]
        return FurtherSamples(long, self.parts(TRAIN), self.cutoff_hz, report)
