"""Files of other tools: Parquet, LeRobot data sets, MATLAB, ``.npz`` with other names; and tables to write for them."""

import io
import os
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import scipy

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import FormatError, RecordingError, optional_module
from inertid_ros.core.formats import Budget, csv_text, open_file, read_json, read_text
from inertid_ros.core.outputs import write_file
from inertid_ros.core.worker import WorkerError, read_apart
from inertid_ros.data.files.table_reading import columns_read, is_quantity, is_time
from inertid_ros.data.recording import COMMAND_CHANNELS, Recording

LEROBOT_INFO = Path("meta") / "info.json"
_LEROBOT_FEATURES = {
    "position": "observation.state", "velocity": "observation.velocity", "effort": "observation.effort"}
_EPISODE_GAP_S = 1.0  # a motion must not seem to lead from one episode to the next
_MAT_HEADER_BYTES, _MAT_COMPRESSED = 128, 15
TABLE_CHANNELS = ("time", "position", "velocity", "effort", *COMMAND_CHANNELS)


def named_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return what :func:`.table_reading.read_table` returns, from arrays ``(N,)`` or ``(N, n)`` by their names.

    Raises RecordingError: the arrays have no positions and times, or different lengths.
    """
    channels = {name: values for name, values in arrays.items() if values.dtype.kind in "fiu"}
    channels = {name: values.T if values.ndim == 2 and values.shape[0] < values.shape[1] else values
        for name, values in channels.items() if values.ndim in (1, 2)}
    content = columns_read(path, channels)
    names = np.atleast_1d(arrays.get("joint_names", np.zeros(0)))
    if names.shape == content["joint_names"].shape:
        content["joint_names"] = names.astype(str)
    return content


def is_named(name: str) -> bool:
    """True if :func:`named_arrays` may use an array of this name."""
    return is_quantity(name) or is_time(name) or name == "joint_names"


def read_mat(path: Path) -> dict[str, np.ndarray]:
    """Arrays of a MATLAB file of version 7 or older, as ``q``, ``tau``, ``t``; also arrays in a struct.

    Raises RecordingError: the file is damaged or of version 7.3, or has no positions and times.
    """
    with open_file(path) as file:
        content = file.read()
    variables = read_in_worker(str(path), _mat_variables, str(path), content, size=len(content))
    structs = [value for value in variables.values() if isinstance(value, dict)]
    merged = {key: value for level in (*structs, variables) for key, value in level.items()}
    arrays = {key: np.asarray(value) for key, value in merged.items() if isinstance(value, np.ndarray | list | str)}
    return named_arrays(path, {key: value for key, value in arrays.items() if value.ndim})


def read_in_worker(where: str, function: Callable[..., Any], *arguments: object, size: int) -> Any:
    """Result of a function of a module in another process, as some libraries end theirs for damaged files.

    Raises RecordingError, whose message begins with ``where``: the process ended, or needed too much memory.
    """
    try:
        return read_apart(where, function, *arguments, size=size)
    except WorkerError as error:
        raise RecordingError(str(error)) from None


def _mat_variables(path: str, content: bytes, progress: object) -> dict[str, Any]:
    """Variables of a MATLAB file; run in a :class:`.Worker`, as SciPy's reader crashes for some damaged files."""
    try:
        _check_mat_size(content)
        return dict(scipy.io.loadmat(io.BytesIO(content), simplify_cells=True))
    except FormatError as error:
        raise RecordingError(f"{path}: {error}; save it again") from None
    except NotImplementedError:
        raise RecordingError(f"{path}: is a MATLAB file of version 7.3; save it with save(file, '-v7')") from None
    except Exception as error:  # the library raises errors of any type for damaged files
        raise RecordingError(f"{path}: cannot be read as MATLAB file ({type(error).__name__}); save it again") from None


def _check_mat_size(content: bytes) -> None:
    """Raise FormatError if a small file would fill the memory."""
    head, place, budget = "<II" if content[126:128] == b"IM" else ">II", _MAT_HEADER_BYTES, Budget(len(content))
    while place + 8 <= len(content):
        kind, size = struct.unpack_from(head, content, place)
        rest, stream = content[place + 8 : place + 8 + size], zlib.decompressobj()
        while kind == _MAT_COMPRESSED and rest:
            budget.take(len(stream.decompress(rest, 2**20)), "its variables")
            rest = stream.unconsumed_tail
        place += 8 + size


def read_parquet(path: Path) -> dict[str, np.ndarray]:
    """Columns of a Parquet file, named as in :func:`.table_reading.read_table`; a column of lists holds all joints.

    Raises RecordingError: the file is damaged, has no positions and times, or PyArrow is not installed.
    """
    (columns,) = from_parquet([path], _table_columns)
    return columns_read(path, columns)


def from_parquet(paths: Sequence[Path], convert: Callable[[Any], Any], wanted: Sequence[str] = ()) -> list[Any]:
    """Results of ``convert`` for the ``pyarrow.Table`` of each file, read in another process: damaged files may end it.

    ``convert`` is a function of a module, ``wanted`` are names of columns; empty reads all. RecordingError: a file is
    damaged.
    """
    where = os.path.commonpath(paths)
    pyarrow(f"{where}: ")
    size = sum(path.stat().st_size for path in paths)
    return list(read_in_worker(where, _converted, list(paths), convert, wanted, size=size))


def _converted(paths: Sequence[Path], convert: Callable[[Any], Any], wanted: Sequence[str], progress: object
        ) -> list[Any]:
    """Results of :func:`from_parquet`; run in a :class:`.Worker`, as PyArrow ends its process for damaged files."""
    return [_table(path, convert, wanted) for path in paths]


def _table(path: Path, convert: Callable[[Any], Any], wanted: Sequence[str]) -> Any:
    try:
        file, budget = pyarrow().parquet.ParquetFile(path), Budget(path.stat().st_size)
        groups = [file.metadata.row_group(index) for index in range(file.metadata.num_row_groups)]
        for group in groups:
            budget.take(8 * sum(group.column(index).num_values for index in range(group.num_columns)), "its columns")
        return convert(file.read([name for name in file.schema_arrow.names if not wanted or name in wanted]))
    except FormatError as error:
        raise RecordingError(f"{path}: {error}; export it again") from None
    except Exception as error:  # the library raises errors of any type for damaged files
        raise RecordingError(f"{path}: is damaged ({type(error).__name__}); export it again") from None


def pyarrow(where: str = "") -> ModuleType:
    """PyArrow with its module ``parquet``; RecordingError, whose message begins with ``where``, without it."""
    missing = RecordingError(f"{where}Parquet needs the Python package pyarrow; pip install pyarrow")
    optional_module("pyarrow.parquet", missing)
    return optional_module("pyarrow", missing)


def _table_columns(table: Any) -> dict[str, np.ndarray]:
    return dict(zip(table.column_names, map(_array, table.columns), strict=True))


def _array(column: Any) -> np.ndarray:
    """``(N,)`` or ``(N, n)`` values; lists of different lengths stay objects."""
    values = column.to_numpy()
    if values.dtype.kind == "M":
        return np.asarray(values.astype("datetime64[ns]").astype(np.int64))
    if values.dtype == object and len(values) and isinstance(values[0], np.ndarray):
        equal = len({row.shape if row is not None else None for row in values}) == 1
        return np.stack(values.tolist()) if equal else values
    return np.asarray(values)


def read_lerobot(path: Path) -> dict[str, np.ndarray]:
    """All episodes of a LeRobot data set of version 2 or 3; between two episodes is a gap of a second.

    Raises RecordingError: the data set is damaged, or holds no efforts.
    """
    try:
        features = read_json(read_text(path / LEROBOT_INFO))["features"]
        names = [_plain(name) for name in _names(features[_LEROBOT_FEATURES["position"]]["names"])]
        keys = {quantity: key for quantity, key in _LEROBOT_FEATURES.items() if key in features}
    except (OSError, FormatError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise RecordingError(f"{path / LEROBOT_INFO}: does not describe joints ({error}); download it again") from None
    if "effort" not in keys:
        raise RecordingError(
            f"{path}: has no feature {_LEROBOT_FEATURES['effort']}, so that it holds no torque (its features:"
            f" {', '.join(features)}); record the efforts or currents of the motors, too")
    wanted = (*keys.values(), "timestamp", "episode_index")
    files = sorted(file for file in path.glob("data/**/*.parquet") if file.is_file())
    parts = from_parquet(files, _table_columns, wanted) if files else []
    if missing := [key for key in wanted if not parts or any(key not in part for part in parts)]:
        raise RecordingError(f"{path}: its Parquet files in data lack {', '.join(missing)}; download it again")
    try:
        columns = {key: np.concatenate([part[key] for part in parts]).astype(float) for key in wanted}
        content = {quantity: columns[key] for quantity, key in keys.items()}
        content["time"] = _one_after_another(*(columns[key].reshape(-1) for key in ("timestamp", "episode_index")))
    except (TypeError, ValueError) as error:
        raise RecordingError(f"{path}: its Parquet files hold no numbers ({error}); download it again") from None
    width = content["position"].shape[-1]
    content["joint_names"] = np.array(names if len(names) == width else [f"joint{k}" for k in range(1, width + 1)])
    return content


def _names(given: Any) -> Sequence[str]:
    """Names of a feature, which stand in a list, perhaps below one further key."""
    return next(iter(given.values())) if isinstance(given, dict) else given or ()


def _plain(name: str) -> str:
    """Name of a joint without the quantity that follows it, as in ``elbow_flex.pos``."""
    joint, _, quantity = str(name).rpartition(".")
    return joint if joint and is_quantity(quantity) else str(name)


def _one_after_another(time: Array, episode: np.ndarray) -> Array:
    """Times [s] of all episodes, each of which counts from its own start."""
    begins = np.flatnonzero(np.diff(episode, prepend=episode[:1]))
    shift = np.zeros(len(time))
    shift[begins] = time[begins - 1] - time[begins] + _EPISODE_GAP_S
    return np.asarray(time + np.cumsum(shift))


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
