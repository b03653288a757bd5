"""Targets whose content is an ``.npz``: recordings, and information of results."""

import io
import json
import random
import struct
import zipfile

import numpy as np
from support.robots.random_robots import random_urdf

from inertid_ros.data.files.loading import read_npz
from inertid_ros.identification.information.information import Channel, Information
from inertid_ros.identification.information.information_file import information_bytes, read_information
from inertid_ros.robot.model import load_model

from .target import Target, from_file
from .values import changed_data

_SHAPES = ((), (0,), (1,), (2,), (6, 2), (6, 6), (6, 7), (2, 6), (1, 1, 1), (10**6,), (10**12,), (2**40, 2**40), (-1,))
_TYPES = ("<f8", ">f8", "<f4", "<i8", "<u1", "|b1", "<U3", "|S4", "<c16", "<M8[s]", "|O", "<f2", "<V8", "[('a','<f8')]")
_HEADERS = (
    "{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }", "(" * 300, "[" * 9000, "{}", "'", "1" * 5000, "9L",
    "{'descr': '|O', 'shape': (9,), 'fortran_order': 0}", "{'descr': '<f8', 'fortran_order': False, 'shape': (1e30,)}",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (1" + "0" * 30 + ",)}",
)  # fmt: skip
_METHODS = (zipfile.ZIP_STORED,) * 20 + (zipfile.ZIP_DEFLATED,) * 4 + (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2)
_MEMBERS = ("../x.npy", "/x.npy", "wrench/\n.npy", "wrench/.npy", "x", "time.npy", "noise.npy", "a" * 300)
_WORDS = (b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"\x93NUMPY", b"'shape': (", b"<f8", b".npy", b"wrench/")


def recording_arrays() -> dict[str, np.ndarray]:
    """A short recording of two joints, a wrench and a base."""
    rng = np.random.default_rng(0)
    return {
        "joint_names": np.array(["a", "b"]), "time": np.arange(6) * 0.01, "position": rng.normal(size=(6, 2)),
        "effort": rng.normal(size=(6, 2)), "velocity": rng.normal(size=(6, 2)), "wrench/foot": rng.normal(size=(6, 6)),
        "base_pose": rng.normal(size=(6, 7)), "imu": rng.normal(size=(6, 6)),
    }  # fmt: skip


def archive(arrays: dict[str, np.ndarray]) -> bytes:
    """Arrays as an npz."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def _information() -> bytes:
    model = load_model(random_urdf(np.random.default_rng(1), 2))
    size = model.layout.size
    columns = np.arange(4)
    channels = tuple(Channel(columns, np.triu(np.ones((5, 5))), 10) for _ in range(2))
    assert size > 4
    return information_bytes(Information(model.layout, channels, model.hash, model.joint_names))


def _other_archive(content: bytes, rng: random.Random) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as opened:
        members = {info.filename: opened.read(info) for info in opened.infolist() if info.file_size < 10**6}
    name = rng.choice(list(members))
    match rng.randrange(9):
        case 0:
            del members[name]
        case 1:
            members[name] = members[rng.choice(list(members))]
        case 2:
            members[rng.choice(_MEMBERS)] = members[name]
        case 3:
            members[name] = _array(rng)
        case 4 | 5:
            members[name] = _changed_array(members[name], rng)
        case 6:
            header = rng.choice(_HEADERS).replace("%s", ",".join(map(str, rng.choice(_SHAPES))) + ",").encode() + b"\n"
            members[name] = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + members[name][128:]
        case 7 if "layout.npy" in members:
            layout = json.loads(str(np.load(io.BytesIO(members["layout.npy"]))))
            members["layout.npy"] = _saved(np.array(json.dumps(changed_data(layout, rng))))
    return _zipped(members, rng)


def _zipped(members: dict[str, bytes], rng: random.Random) -> bytes:
    buffer = io.BytesIO()
    method = rng.choice(_METHODS)
    with zipfile.ZipFile(buffer, "w", method) as made:
        for member, data in members.items():
            made.writestr(member, data)
    content = bytearray(buffer.getvalue())
    if rng.random() < 0.2:  # one field of the central directory or of the end
        start = content.rfind(rng.choice((b"PK\x01\x02", b"PK\x05\x06")))
        at = start + rng.randrange(4, 44)
        content[at : at + 2] = rng.choice((0, 1, 8, 99, 0x7FFF, 0xFFFF)).to_bytes(2, "little")
    return bytes(content)


@np.errstate(invalid="ignore", over="ignore")
def _array(rng: random.Random) -> bytes:
    shape = rng.choice([shape for shape in _SHAPES if np.prod(shape, dtype=float) < 2e6 and -1 not in shape])
    return _saved(np.full(shape, rng.choice((0.0, 1.0, np.nan, np.inf, -1.0))).astype(rng.choice(_TYPES[:9])))


@np.errstate(invalid="ignore", over="ignore")
def _changed_array(data: bytes, rng: random.Random) -> bytes:
    value = np.load(io.BytesIO(data))
    if rng.random() < 0.4 or not value.size:
        return _saved(value.astype(rng.choice(_TYPES[:9])))
    value = value.copy()
    if value.dtype.kind == "f" and rng.random() < 0.2:
        return _saved(value * 10.0 ** rng.uniform(-320, 308))
    odd = (np.nan, np.inf, -1, 0, 2**62, 10**6) if value.dtype.kind == "f" else (0, 7, 1)
    value.flat[rng.randrange(value.size)] = rng.choice(odd)
    return _saved(value[: rng.choice((None, 1, -1))] if value.ndim else value)


def _saved(value: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, value)
    return buffer.getvalue()


def archive_targets() -> list[Target]:
    """Readers of npz archives."""
    arrays = recording_arrays()
    least = {key: arrays[key] for key in ("joint_names", "time", "position", "effort")}
    recordings = [archive(arrays), archive(least)]
    return [
        Target("npz", from_file(".npz", read_npz), lambda: recordings, _other_archive, _WORDS),
        Target("information", from_file(".npz", read_information), lambda: [_information()], _other_archive, _WORDS),
    ]
