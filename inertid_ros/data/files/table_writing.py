"""Write joint states as tables for other tools: CSV, Parquet, MATLAB."""

import io
from pathlib import Path

import numpy as np
import scipy

from inertid_ros.core.formats import csv_text
from inertid_ros.core.outputs import write_file
from inertid_ros.data.recording import COMMAND_CHANNELS, Recording

from .array_reading import pyarrow

TABLE_CHANNELS = ("time", "position", "velocity", "effort", *COMMAND_CHANNELS)


def write_table(recording: Recording, path: Path, overwrite: bool) -> None:
    """Write time, motion, efforts and commands of the joints, in the format of the suffix; other channels do not fit.

    Raises OutputError: the file cannot be written. Raises RecordingError: PyArrow is not installed.
    """
    write_file(path, _WRITERS[path.suffix](recording), overwrite or None)


def _columns(recording: Recording) -> dict[str, np.ndarray]:
    columns = {"time": recording.time}
    for quantity in TABLE_CHANNELS[1:]:
        values = getattr(recording, quantity)
        if values is not None:
            columns |= {f"{joint}_{quantity}": column
                for joint, column in zip(recording.joint_names, values.T, strict=True)}
    return columns


def _csv(recording: Recording) -> bytes:
    columns = _columns(recording)
    return csv_text([columns, *np.column_stack(list(columns.values())).tolist()]).encode()


def _parquet(recording: Recording) -> bytes:
    arrow, out = pyarrow(), io.BytesIO()
    arrow.parquet.write_table(arrow.table(_columns(recording)), out)
    return out.getvalue()


def _mat(recording: Recording) -> bytes:
    out = io.BytesIO()
    channels = {key: getattr(recording, key) for key in TABLE_CHANNELS if getattr(recording, key) is not None}
    names = np.array(recording.joint_names, dtype=object)
    scipy.io.savemat(out, {"joint_names": names, **channels}, do_compression=True)
    return out.getvalue()


_WRITERS = {".csv": _csv, ".parquet": _parquet, ".mat": _mat}
TABLE_SUFFIXES = tuple(_WRITERS)
