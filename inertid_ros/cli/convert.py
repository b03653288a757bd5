"""``inertid convert``: a recording in another format."""

import argparse
import shutil
import tempfile
from pathlib import Path

from inertid_ros.config.configuration import Configuration
from inertid_ros.core.errors import InertidError, RecordingError
from inertid_ros.data.bag_storage.bag_backends import STORAGE_SUFFIXES
from inertid_ros.data.files.bag_writing import write_bag
from inertid_ros.data.files.loading import load_recording
from inertid_ros.data.files.npz import write_npz
from inertid_ros.data.recording import Recording

from .printing.output import print_json
from .settings import configuration

# What somebody may hope for; other dots belong to the name of a bag's directory, as in run_2026.01.31.
_NO_FORMAT = (".csv", ".tsv", ".txt", ".json", ".yaml", ".yml", ".bag", ".mat", ".h5", ".hdf5", ".parquet", ".npy")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    config = configuration(options, Configuration)
    target = Path(options.output)
    if target.suffix.lower() in _NO_FORMAT:
        raise RecordingError(
            f"{target}: recordings are not written as {target.suffix}; give NAME.npz, NAME.mcap, NAME.db3, or a"
            " directory for a bag"
        )
    if target.exists() and not options.force:
        raise RecordingError(f"{target}: exists already; choose another path, or replace it with --force")
    if target.exists() and target.resolve() == Path(options.input).resolve():
        raise RecordingError(f"{target}: is the input; choose another path")
    recording = load_recording(options.input, config.topics, stamps=config.prepare.stamps)
    _write(recording, target, options.storage)
    lost = []
    if target.suffix != ".npz":
        channels = ("acceleration", "base_pose", "base_twist")
        lost = [channel for channel in channels if getattr(recording, channel) is not None]
    content = {"output": str(target), "samples": len(recording), "joints": recording.joint_names, "left_out": lost}
    if options.json:
        print_json(content)
    else:
        without = f" without {', '.join(lost)}, which a bag does not hold" if lost else ""
        print(f"{len(recording)} samples of {len(recording.joint_names)} joints written to {target}{without}")
    return 0


def _write(recording: Recording, target: Path, storage: str | None) -> None:
    if target.suffix == ".npz":
        if target.is_dir():
            raise RecordingError(f"{target}: is a directory; choose another path")
        write_npz(recording, target)
        return
    storage_type = STORAGE_SUFFIXES.get(target.suffix, storage or "mcap")
    if storage is not None and storage_type != storage:
        raise InertidError(f"{target}: its suffix means {storage_type} but --storage is {storage}; drop one")
    if target.is_dir() and not (target / "metadata.yaml").exists():
        raise RecordingError(f"{target}: is a directory but no bag, and is not replaced; choose another path")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as scratch:
            bag = write_bag(recording, Path(scratch) / target.stem, "mcap" if storage_type == "mcap" else "sqlite3")
            made = next(bag.glob(f"*{target.suffix}")) if target.suffix in STORAGE_SUFFIXES else bag
            if target.is_dir():
                shutil.move(target, Path(scratch) / "replaced")
            made.replace(target)
    except OSError as error:
        raise RecordingError(f"{target}: cannot be written ({error.strerror}); choose another path") from None
