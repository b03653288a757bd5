"""Provenance of a result: recordings with checksums, robot, configuration, versions."""

import hashlib
import platform
import resource
import shlex
import sys
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path

import attrs

from inertid_ros import __version__
from inertid_ros.config.configuration import Configuration
from inertid_ros.core.formats import file_checksum
from inertid_ros.core.samples import Samples
from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import RobotModel

_OPTIONS_IN_COMMANDS = {"CONFIGURED": ("--config",), "LOCKED": ("--lock",), "OPTIONS": ("--set", "--model", "--prior")}
_VERSIONED_PACKAGES = ("numpy", "scipy", "pin", "rosbags")


@dataclass(frozen=True)
class RecordingSource:
    """One recording of the fit or the validation of a result.

    Attributes
    ----------
    role : ``train`` or ``validation``
    seconds : span of the timestamps [s]
    used_samples : number of prepared and usable samples
    sha256 : checksum of the file or the bag's storage files; of the samples if the recording is not a file
    """

    name: str
    role: str
    samples: int
    seconds: float
    used_samples: int
    cutoff_hz: float
    sha256: str
    notices: tuple[str, ...]


@dataclass(frozen=True)
class EarlierSource:
    """An earlier result that an identification continued, or a result or URDF of which its prior was made.

    Attributes
    ----------
    directory : result directory, or URDF
    sha256 : checksum of the result's ``parameters.yaml``, or of the URDF
    created : time of the result; empty for a URDF
    recordings : by checksum, name of every recording fitted for the earlier result or its predecessors
    """

    directory: str
    sha256: str
    created: str
    recordings: dict[str, str]


@dataclass(frozen=True)
class Provenance:
    """Everything needed to repeat an identification.

    Attributes
    ----------
    urdf_sha256 : checksum of the URDF text as given
    earlier : result that was continued
    prior : results and URDFs whose mean bodies were the prior, if none was continued; empty for the URDF as given
    command : command line of the identification; empty for a node or Python code
    """

    robot: str
    model_hash: str
    urdf_sha256: str
    recordings: tuple[RecordingSource, ...]
    configuration: dict[str, object]
    versions: dict[str, str]
    created: str
    cutoff_hz: float
    earlier: EarlierSource | None = None
    prior: tuple[EarlierSource, ...] = ()
    command: str = ""

    @property
    def names_in_commands(self) -> dict[str, str]:
        """Quoted values for :func:`.next_action`, as far as recordings and command line give them."""
        fitted = [source.name for source in self.recordings if source.role == "train"]
        names = {"RECORDINGS": shlex.join(fitted), "RECORDING": shlex.quote(fitted[0])} if fitted else {}
        words = shlex.split(self.command)
        for option, name in (("--urdf", "URDF"), ("--output", "RESULT")):
            if option in words[:-1]:
                names[name] = shlex.quote(words[words.index(option) + 1])
        starts = [index for index, word in enumerate(words) if word.startswith("-")]
        given = [words[begin:end] for begin, end in zip(starts, [*starts[1:], len(words)], strict=False)]
        for name, options in _OPTIONS_IN_COMMANDS.items():
            # recordings may follow a value, except after --prior, which takes all values up to the next option
            kept = (group if group[0] == "--prior" else group[:2] for group in given if group[0] in options)
            names[name] = " ".join(map(shlex.join, kept))
        return names


def provenance(model: RobotModel, recordings: tuple[RecordingSource, ...], configuration: Configuration,
        prior: tuple[EarlierSource, ...] = (), continued: bool = False) -> Provenance:
    """Provenance of a result created now on this machine; ``cutoff_hz`` is taken from the first recording.

    ``prior`` is the origin of the prior: one result if it was ``continued``, empty for the URDF.
    """
    return Provenance(
        robot=model.name, model_hash=model.hash, urdf_sha256=hashlib.sha256(model.urdf.encode()).hexdigest(),
        recordings=recordings, configuration=attrs.asdict(configuration), versions=_versions(),
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"), cutoff_hz=recordings[0].cutoff_hz,
        earlier=prior[0] if continued else None, prior=() if continued else prior)


def recording_source(recording: Recording, samples: Samples, role: str) -> RecordingSource:
    """Source entry of a recording and its prepared samples."""
    return RecordingSource(name=recording.name, role=role, samples=len(recording), seconds=recording.duration,
        used_samples=int(samples.usable.sum()), cutoff_hz=samples.cutoff_hz, sha256=checksum(recording),
        notices=recording.notices)


def checksum(recording: Recording) -> str:
    """SHA-256 of a recording's file or of a bag's storage files; of the samples if there is no file."""
    files = _files(Path(recording.name))
    if files:
        return file_checksum(*files)
    digest = hashlib.sha256()
    for channel in (recording.time, recording.position, recording.effort):
        digest.update(channel.astype("<f8").tobytes())
    return digest.hexdigest()


def peak_memory_mb() -> float:
    """Largest resident memory of this process so far [MiB]."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _files(path: Path) -> list[Path]:
    try:
        if path.is_dir():
            return sorted(file for file in path.iterdir() if file.suffix in (".mcap", ".db3"))
        return [path] if path.is_file() else []
    except OSError:
        return []


def _versions() -> dict[str, str]:
    versions = {"inertid_ros": __version__, "python": platform.python_version()}
    for package in _VERSIONED_PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions
