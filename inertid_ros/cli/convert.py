"""``inertid convert``: convert a recording to another format."""

import argparse
from pathlib import Path

from inertid_ros.cli.printing import deliver
from inertid_ros.config.configuration import Configuration
from inertid_ros.core.errors import InertidError, RecordingError
from inertid_ros.core.outputs import check_file, move_file, scratch_beside
from inertid_ros.data.files.bag_backends import STORAGE_SUFFIXES, Storage, check_bag, write_bag
from inertid_ros.data.files.foreign_files import TABLE_CHANNELS, TABLE_SUFFIXES, write_table
from inertid_ros.data.files.loading import load_recording, write_npz
from inertid_ros.data.recording import COMMAND_CHANNELS, Recording

from .settings import configuration, inputs

_FILES = (".npz", *TABLE_SUFFIXES, *STORAGE_SUFFIXES)  # other outputs are directories
# Formats that are not written; any other suffix is part of the name of a bag directory, as in run_2026.01.31.
_NO_FORMAT = (".tsv", ".txt", ".json", ".yaml", ".yml", ".bag", ".h5", ".hdf5", ".npy")
_ONLY_FILES = ("acceleration", "base_acceleration", *COMMAND_CHANNELS)  # channels that bags cannot store


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    config = configuration(options, Configuration)
    target = Path(options.output)
    if target.suffix.lower() in _NO_FORMAT:
        raise RecordingError(
            f"{target}: recordings are not written as {target.suffix}; give NAME.npz, NAME.csv, NAME.parquet,"
            " NAME.mat, NAME.mcap, NAME.db3, or a directory for a bag")
    is_bag = target.suffix not in (".npz", *TABLE_SUFFIXES)
    storage = STORAGE_SUFFIXES.get(target.suffix, options.storage or "mcap")
    if not is_bag and options.storage:
        raise InertidError(f"{target}: is not a bag, but --storage is {options.storage}; drop one")
    if is_bag and options.storage not in (None, storage):
        raise InertidError(f"{target}: its suffix means {storage} but --storage is {options.storage}; drop one")
    check = check_file if target.suffix in _FILES else check_bag
    check(target, options.force, inputs(options))
    recording = load_recording(options.input, config.topics, stamps=config.prepare.stamps)
    if not recording.joint_names and target.suffix != ".npz":
        raise RecordingError(f"{recording.name}: has no joints, which bags and tables need; give NAME.npz")
    _write(recording, target, "mcap" if storage == "mcap" else "sqlite3", options.force)
    lost = [channel for channel in recording.channels
        if is_bag and channel in _ONLY_FILES or target.suffix in TABLE_SUFFIXES and channel not in TABLE_CHANNELS]
    content = {"output": str(target), "samples": len(recording), "joints": recording.joint_names, "left_out": lost}
    kind = "bags" if is_bag else "tables"
    without = f" without {', '.join(lost)}, which {kind} cannot store" if lost else ""
    done = f"{len(recording)} samples of {len(recording.joint_names)} joints written to {target}{without}"
    return deliver(options, content, lambda: print(done))


def _write(recording: Recording, target: Path, storage: Storage, force: bool) -> None:
    if target.suffix == ".npz":
        write_npz(recording, target, force)
    elif target.suffix in TABLE_SUFFIXES:
        write_table(recording, target, force)
    elif target.suffix in STORAGE_SUFFIXES:
        with scratch_beside(target) as scratch:
            bag = write_bag(recording, scratch / "bag", storage)
            move_file(next(bag.glob(f"*{target.suffix}")), target, force)
    else:
        write_bag(recording, target, storage, overwrite=force)
