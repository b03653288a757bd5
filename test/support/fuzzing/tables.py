"""Targets that are recordings of other tools, SRDF files, and catalogues of fleets."""

import io
import json
import math
import multiprocessing
import os
import random
import resource
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from inertid_ros.core.errors import InertidError
from inertid_ros.core.worker import WorkerError
from inertid_ros.data.files import foreign_files
from inertid_ros.data.files.foreign_files import LEROBOT_INFO, TABLE_SUFFIXES, pyarrow, write_table
from inertid_ros.data.files.loading import load_recording, read_npz
from inertid_ros.excitation.constraints.collision_objects import srdf_pairs
from inertid_ros.fleet.catalogue import read_catalogue

from .archives import archive, recording_arrays
from .bounds import SECONDS
from .target import Target, from_file
from .texts import YAML_WORDS, other_description, other_yaml
from .values import NAMES, NUMBERS, changed_data

_HEADERS = (
    b"time", b"header/stamp", b"secs", b"nsecs", b"joint1_position", b"joint1_position [deg]", b"q[1]", b"q[\xc2\xb2]",
    b"effort_a [furlong]", b"/arm/a/velocity", b"position_" + b"9" * 5000, b"tau" + b"[" * 300, b"q_cmd", b"names",
    b"a" + b" " * 9000 + b"position",
)  # fmt: skip
_SRDF = b"""<robot name="r"><group name="arm"><chain base_link="a" tip_link="b"/></group>
<disable_collisions link1="a" link2="b" reason="Adjacent"/><disable_collisions link1="b" link2="c"/></robot>"""
_CATALOGUE = b"""robots: [{serial: a1, model: arm, urdf: arm.urdf}, {serial: a2, model: arm, urdf: arm.urdf}]
bags:
- {serial: a1, date: 2026-05-31, bag: bags/one}
- {serial: a2, date: '2026-06-01T10:00:00Z', bag: bags/two, payload: gripper}
payloads: {gripper: {link: tool, mass: 0.9, com: [0.0, 0.0, 0.1]}}
"""
_ECHO = b"\n".join(f"1,{k}0000000,base,a,b,0.{k},0.2,0.0,0.0,1.0,2.0".encode() for k in range(5))


@cache
def _written(suffix: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, path = Path(folder) / "run.npz", Path(folder) / f"run{suffix}"
        source.write_bytes(archive(recording_arrays()))
        write_table(read_npz(source), path, False)
        return path.read_bytes()


def _other_cells(content: bytes, rng: random.Random) -> bytes:
    """A table with another cell, or with a column or row more or less."""
    rows = [line.split(b",") for line in content.split(b"\n")]
    row = rng.choice(rows)
    column = rng.randrange(len(row))
    match rng.randrange(6):
        case 0:
            rows[0][rng.randrange(len(rows[0]))] = rng.choice((*_HEADERS, *rows[0]))
        case 1:
            for cells in rows:
                cells[column:column] = cells[column : column + 1]
        case 2:
            for cells in rows:
                del cells[column : column + 1]
        case 3:
            rows = [*rows, *rows[1:]]
        case _:
            row[column] = rng.choice((*NUMBERS, *NAMES)).encode()
    return b"\n".join(b",".join(cells) for cells in rows)


@np.errstate(all="ignore")
def _other_column(values: Any, rng: random.Random) -> Any:
    values = list(values)
    match rng.randrange(7):
        case 0:
            return [rng.choice((0.0, np.nan, np.inf, 1e308, -1.0, None)) for _ in values]
        case 1:
            return [str(value) for value in values]
        case 2:
            return [[value] * rng.randrange(3) for value in values]
        case 3:
            return [{"x": value} for value in values]
        case 4:
            return [bool(index % 2) for index in range(len(values))]
        case 5:
            return [b"\xff" * index for index in range(len(values))]
    return values[::-1]


def _other_parquet(content: bytes, rng: random.Random) -> bytes:
    arrow = pyarrow()
    table = arrow.parquet.read_table(io.BytesIO(content))
    columns = {name: table[name].to_pylist() for name in table.column_names}
    name = rng.choice(list(columns))
    if rng.random() < 0.3:
        columns[rng.choice((*NAMES[1:], *(head.decode() for head in _HEADERS)))] = columns.pop(name)
    else:
        columns[name] = _other_column(columns[name], rng)
    out = io.BytesIO()
    arrow.parquet.write_table(arrow.table(columns), out)
    return out.getvalue()


def _lerobot() -> list[bytes]:
    """The first line of a content is the description, the rest the Parquet file."""
    arrays, out, arrow = recording_arrays(), io.BytesIO(), pyarrow()
    columns = {
        "observation.state": arrays["position"].tolist(), "observation.effort": arrays["effort"].tolist(),
        "timestamp": arrays["time"], "episode_index": [0, 0, 0, 1, 1, 1]}  # fmt: skip
    arrow.parquet.write_table(arrow.table(columns), out)
    features = {name: {"names": ["a.pos", "b.pos"], "shape": [2]} for name in list(columns)[:2]}
    return [json.dumps({"features": features}).encode() + b"\n" + out.getvalue()]


def _other_lerobot(content: bytes, rng: random.Random) -> bytes:
    info, _, table = content.partition(b"\n")
    if rng.random() < 0.5:
        return json.dumps(changed_data(json.loads(info), rng)).encode() + b"\n" + table
    return info + b"\n" + _other_parquet(table, rng)


def _lerobot_reader() -> Callable[[bytes], object]:
    folder: list[tempfile.TemporaryDirectory[str]] = []

    def read(content: bytes) -> object:
        if not folder:
            folder.append(tempfile.TemporaryDirectory())
            for name in (LEROBOT_INFO.parent, "data"):
                (Path(folder[0].name) / name).mkdir()
        info, _, table = content.partition(b"\n")
        (Path(folder[0].name) / LEROBOT_INFO).write_bytes(info)
        (Path(folder[0].name) / "data" / "0.parquet").write_bytes(table)
        return load_recording(folder[0].name)

    return read


def _read_in_fork(name: str, function: Callable[..., Any], *arguments: Any, size: int) -> Any:
    """As ``read_apart``, but in a fork of this process, which takes milliseconds in place of a second."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    if not (process := os.fork()):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # for libraries that abort
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(SECONDS), math.ceil(SECONDS)))
        try:
            sender.send((True, function(*arguments, progress=None)))
        except InertidError as error:
            sender.send((False, error))
        finally:
            os._exit(0)
    sender.close()
    with suppress(EOFError), receiver:
        done, value = receiver.recv()
        os.waitpid(process, 0)
        if done:
            return value
        raise value
    os.waitpid(process, 0)
    raise WorkerError(f"{name}: its process ended; replace the file, or save it again")


def table_targets() -> list[Target]:
    """Readers of tables, arrays and lists."""
    foreign_files.read_apart = _read_in_fork
    csv, parquet, mat = (from_file(suffix, load_recording) for suffix in TABLE_SUFFIXES)
    srdf = from_file(".srdf", lambda path: srdf_pairs(str(path)))
    return [
        Target("table", csv, lambda: [_written(".csv"), _ECHO], _other_cells, _HEADERS),
        Target("parquet", parquet, lambda: [_written(".parquet")], _other_parquet),
        Target("mat", mat, lambda: [_written(".mat")]),
        Target("lerobot", _lerobot_reader(), _lerobot, _other_lerobot),
        Target("srdf", srdf, lambda: [_SRDF], other_description),
        Target("catalogue", from_file(".yaml", read_catalogue), lambda: [_CATALOGUE], other_yaml, YAML_WORDS),
    ]
