"""Read untrusted files of any content in bounded time and memory.

PyYAML's loaders recurse (the C loader until the process crashes), expand a few aliases to billions of values, construct
dates and sets, silently keep the last of repeated keys, and raise errors of any type for unusable values. Therefore
:func:`read_yaml` first checks the events of PyYAML's parser. NumPy accepts any compression and raises errors of any
type for damaged files; :func:`read_arrays` checks sizes before it reads. Only functions that read arrays import NumPy,
because configurations are read without it.
"""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import os
import re
import select
import stat
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import yaml

from .errors import FormatError

if TYPE_CHECKING:
    import numpy as np

MAX_TEXT_BYTES = 64 * 2**20  # largest untrusted text; texts of this package are about a hundred times smaller
_SILENCE_S = 5.0  # longest wait for data from a pipe
_HEAD_BYTES = 512  # first bytes of a file, which identify its format
_LFS_POINTER = b"version https://git-lfs.github.com/"
_HTML = (b"<!doctype html", b"<html")
_MIN_EXPANSION_BYTES = 8 * 2**20  # allowed expanded size of any compressed file
_MAX_GROWTH = 100  # further bytes allowed per byte of the file; recorded motion compresses by less than ten
MAX_DEPTH = 50  # levels of nesting in YAML
MAX_ALIASED = 100_000  # values that aliases may add to a document
_MAX_NUMBER_LENGTH = 400  # characters; the longest decimal of a float is shorter
_YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader is ten times as fast, but optional
_YAML_PREFIX = "tag:yaml.org,2002:"
_YAML_EXPONENT = re.compile(r"[-+]?(\d+|\d+\.\d*|\.\d+)[eE][-+]?\d{1,3}$")  # number in YAML 1.2, text in 1.1
_YAML_TEXT = ("str", "timestamp", "value")  # a date stays text
_NPZ_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # compressions that NumPy writes
_CHUNK_BYTES = 1 << 20
_NPY_MAGIC = b"\x93NUMPY"


def read_head(path: str | Path) -> bytes:
    """First bytes of a file, by which its format is recognised; raises like :func:`open_file`."""
    with open_file(path) as file:
        return file.read(_HEAD_BYTES)


def foreign_content(head: bytes) -> str:
    """Problem and remedy if a file that begins with ``head`` does not hold data; empty if it may hold data.

    Detects empty files, git-lfs pointers, and web pages (of a login or a file host).
    """
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        return "is empty; copy or download it again"
    if text.startswith(_LFS_POINTER):
        return "is a pointer of git-lfs, not the file itself; fetch it with 'git lfs pull'"
    if text[:14].lower().startswith(_HTML):
        return "is a web page (HTML), not the file itself; download the file, by its raw link"
    return ""


def open_file(path: str | Path, pipe: bool = False) -> BinaryIO:
    """Open a regular file, or with ``pipe`` also a pipe, for reading.

    Raises OSError: the file cannot be opened, or is of another type, such as a device, whose data may never end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not (stat.S_ISREG(mode) or (pipe and stat.S_ISFIFO(mode))):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def file_checksum(*paths: str | Path, names: bool = False) -> str:
    """SHA-256 of the concatenated contents of files; if ``names`` is true, each file's name precedes its content."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(Path(path).name.encode() + b"\0" if names else b"")
        with open_file(path) as content:
            while block := content.read(_CHUNK_BYTES):
                digest.update(block)
    return digest.hexdigest()


def read_bytes(path: str | Path, most: int = MAX_TEXT_BYTES) -> bytes:
    """Content of a file or pipe (for example the output of another command), at most ``most`` bytes.

    Raises OSError: the file cannot be read, is a device, or is a pipe that sends no data for 5 s.
    Raises FormatError: the content is larger.
    """
    with open_file(path, pipe=True) as file:
        is_pipe = stat.S_ISFIFO(os.fstat(file.fileno()).st_mode)
        content = _from_pipe(file.fileno(), most) if is_pipe else file.read(most + 1)
    if len(content) > most:
        raise FormatError(f"is larger than {most / 2**20:g} MiB")
    return content


def read_text(path: str | Path, most: int = MAX_TEXT_BYTES) -> str:
    """UTF-8 text, read like :func:`read_bytes`; FormatError also if the content is not UTF-8."""
    try:
        return read_bytes(path, most).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FormatError("is not text") from None


def _from_pipe(descriptor: int, most: int) -> bytes:
    content = b""
    while len(content) <= most:
        if not select.select([descriptor], [], [], _SILENCE_S)[0]:
            raise TimeoutError(errno.ETIMEDOUT, f"this pipe sent no data for {_SILENCE_S:g} s")
        if not (block := os.read(descriptor, 2**16)):
            break
        content += block
    return content


class Budget:
    """Limit of the expanded size of a compressed file of ``size`` bytes: a small file must not fill the memory."""

    def __init__(self, size: int) -> None:
        self.left = _MIN_EXPANSION_BYTES + _MAX_GROWTH * size

    def take(self, size: int, where: str) -> None:
        """Use ``size`` bytes of the budget for the content ``where``; FormatError if fewer are left."""
        self.left -= size
        if self.left < 0:
            raise FormatError(f"expands to more than {_MAX_GROWTH} times its size at {where}, unlike any recording")


def read_json(text: str) -> Any:
    """Content of one JSON text; numbers are finite.

    Raises
    ------
    FormatError
        The text is not JSON, repeats a key, holds NaN or an infinite number, or is nested too deep.
    """
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise FormatError(f"has invalid JSON in line {error.lineno}") from None
    except RecursionError:
        raise FormatError("is nested too deep") from None
    except FormatError:
        raise
    except ValueError:  # an integer with thousands of digits
        raise FormatError("holds a number that is too long") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in content:
            raise FormatError(f"repeats key '{name}'")
        content[name] = value
    return content


def _constant(text: str) -> Any:
    raise FormatError(f"holds {text}; only finite numbers are allowed")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), -float("inf")):
        raise FormatError(f"holds {text[:20]}, which is too large")
    return value


def read_yaml(text: str) -> Any:
    """Content of one YAML document: mappings, lists, text, numbers, truth values, None; an empty document is None.

    Raises
    ------
    FormatError
        The text is not YAML, holds a second document, repeats a key, has tags of other types, is nested deeper than
        :data:`MAX_DEPTH`, or has aliases that refer to themselves or add more than :data:`MAX_ALIASED` values.
    """
    try:
        _check_events(text)
        return yaml.load(text, Loader=_YamlLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise FormatError(f"is not YAML{f' in line {mark.line + 1}' if mark else ''}") from None
    except UnicodeEncodeError:
        raise FormatError("is not YAML: it holds characters that are not text") from None


def _check_events(text: str) -> None:
    """Refuse a second document, deep nesting, and aliases that add too many values."""
    open_values: list[tuple[str | None, int]] = []  # anchor of each open value, and number of values before this value
    sizes: dict[str, int] = {}
    documents = values = aliased = 0
    for event in yaml.parse(text, Loader=_YAML_LOADER):
        line = event.start_mark.line + 1 if event.start_mark else 0
        match event:
            case yaml.DocumentStartEvent():
                documents += 1
                if documents > 1:
                    raise FormatError(f"holds a second document from line {line} on")
            case yaml.AliasEvent():
                if event.anchor not in sizes:
                    raise FormatError(f"uses *{event.anchor} in line {line} before its value is complete")
                values += sizes[event.anchor]
                aliased += sizes[event.anchor]
                if aliased > MAX_ALIASED:
                    raise FormatError(f"has aliases that expand to more than {MAX_ALIASED} values in line {line}")
            case yaml.ScalarEvent() | yaml.CollectionStartEvent():
                open_values.append((event.anchor, values))
                values += 1
                if len(open_values) > MAX_DEPTH and not isinstance(event, yaml.ScalarEvent):
                    raise FormatError(f"is nested deeper than {MAX_DEPTH} in line {line}")
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionEndEvent):
            anchor, before = open_values.pop()
            if anchor is not None:
                sizes[anchor] = values - before


class _YamlLoader(_YAML_LOADER):
    """Loader of plain data that refuses repeated keys; ``1e3`` is a number as in YAML 1.2, dates stay text."""

    def flatten_mapping(self, node: Any) -> None:
        """Check the keys of a mapping and insert the mappings that it merges (``<<``), both once per mapping."""
        if getattr(node, "is_flat", False):
            return
        node.is_flat, keys = True, set()
        for key_node, _ in node.value:
            if key_node.tag == _YAML_PREFIX + "merge":
                continue
            key, line = self.construct_object(key_node, deep=True), key_node.start_mark.line + 1
            if isinstance(key, list | dict):
                raise FormatError(f"has a list or mapping as a key in line {line}")
            if key in keys:
                raise FormatError(f"repeats key '{key}' in line {line}")
            keys.add(key)
        super().flatten_mapping(node)


def _converted(loader: _YamlLoader, node: yaml.Node) -> Any:
    """Convert a number or truth value; FormatError if it is unusable.

    YAML 1.1 reads 0012 as octal, 1_000 as 1000 and 12:30 as 750; authors rarely mean this.
    """
    kind, line = node.tag.removeprefix(_YAML_PREFIX), node.start_mark.line + 1
    if re.search(r"[_:]", node.value) or (kind == "int" and re.match(r"[-+]?0\d", node.value)):
        raise FormatError(f"has '{node.value[:20]}' in line {line}; quote it if it is text, or write plain digits")
    try:
        if len(node.value) > _MAX_NUMBER_LENGTH:
            raise ValueError
        return yaml.SafeLoader.yaml_constructors[node.tag](loader, node)
    except (ValueError, LookupError, OverflowError):
        raise FormatError(f"has '{node.value[:20]}' for {kind} in line {line}") from None


def _refused(loader: _YamlLoader, node: yaml.Node) -> Any:
    raise FormatError(f"has the tag {node.tag} in line {node.start_mark.line + 1}, which is not allowed")


_YamlLoader.yaml_constructors = {
    **{_YAML_PREFIX + kind: yaml.SafeLoader.yaml_constructors[_YAML_PREFIX + kind] for kind in ("null", "seq", "map")},
    **dict.fromkeys((_YAML_PREFIX + kind for kind in ("int", "float", "bool")), _converted),
    **dict.fromkeys((_YAML_PREFIX + kind for kind in _YAML_TEXT), yaml.SafeLoader.construct_yaml_str), None: _refused}
_YamlLoader.add_implicit_resolver(_YAML_PREFIX + "float", _YAML_EXPONENT, [*"+-.0123456789"])


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    """Rows as comma-separated text."""
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return out.getvalue()


def read_arrays(source: Path | BinaryIO, wanted: Callable[[str], bool] = lambda name: True) -> dict[str, np.ndarray]:
    """Arrays of an ``.npz`` by name, of any type except objects.

    Parameters
    ----------
    source : path, or an open file, which is closed afterwards.
    wanted : called with the name of each array; true to read the array.

    Raises
    ------
    OSError
        The file cannot be opened.
    FormatError
        The file is not an npz, is damaged or encrypted, repeats a name, or its arrays as float64 exceed a
        :class:`Budget`.
    """
    import numpy as np

    arrays: dict[str, np.ndarray] = {}
    name = ""
    with open_file(source) if isinstance(source, Path) else source as file:
        if file.read(len(_NPY_MAGIC)) == _NPY_MAGIC:
            raise FormatError("holds a single array")
        budget = Budget(file.seek(0, 2))
        try:
            with zipfile.ZipFile(file) as archive:
                for member in archive.infolist():
                    name = member.filename.removesuffix(".npy")
                    if not wanted(name):
                        continue
                    if name in arrays:
                        raise FormatError(f"holds {name} twice")
                    if member.compress_type not in _NPZ_METHODS:
                        raise FormatError(f"holds {name} in a compression that NumPy does not write")
                    budget.take(member.file_size, name)
                    with archive.open(member) as content:
                        array = np.lib.format.read_array(content, allow_pickle=False)
                    budget.take(8 * array.size, name)
                    arrays[name] = np.asarray(array, order="C")
        except FormatError:
            raise
        except Exception as error:  # the libraries raise errors of any type for damaged files
            what = f"{name} cannot be read" if name else "cannot be read as npz"
            raise FormatError(f"{what} ({error.__class__.__name__})") from None
    return arrays
