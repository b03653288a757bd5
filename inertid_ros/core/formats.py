"""Formats of files from outside, read in bounded time and memory whatever they hold.

PyYAML's loaders recurse, in C until the process crashes; let a few aliases stand for billions of values; construct
dates and sets; keep the last of repeated keys; and raise whatever their converters meet. :func:`read_yaml` therefore
checks the events of its parser first. NumPy follows any compression, and raises whatever a tokenizer, a zip or an LZMA
library raises; :func:`read_arrays` checks sizes before it reads. Configurations are read without NumPy, which is
imported where arrays are read.
"""

from __future__ import annotations

import errno
import json
import os
import re
import select
import stat
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import yaml

from .errors import FormatError

if TYPE_CHECKING:
    import numpy as np

MAX_TEXT_BYTES = 64 * 2**20  # of a text from outside; those that this package writes have a hundredth
_SILENCE_S = 5.0  # after which nothing is expected from a pipe any more
HEAD = 512  # bytes of a file that are enough for foreign_content
_LFS_POINTER = b"version https://git-lfs.github.com/"
_HTML = (b"<!doctype html", b"<html")
_MIN_EXPANSION_BYTES = 8 * 2**20  # which a compressed file of any size may expand to
_MAX_GROWTH = 100  # times the size of the file, in addition; motion compresses by less than ten
MAX_DEPTH = 50  # of nesting in YAML
MAX_ALIASED = 100_000  # values that aliases may add to those written out
_MAX_NUMBER_LENGTH = 400  # characters; the longest decimal that a float has is shorter
_YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C ten times as fast, and not always built in
_YAML_PREFIX = "tag:yaml.org,2002:"
_YAML_EXPONENT = re.compile(r"[-+]?(\d+|\d+\.\d*|\.\d+)[eE][-+]?\d{1,3}$")  # of YAML 1.2, text to version 1.1
_YAML_TEXT = ("str", "timestamp", "value")  # a date stays text
_NPZ_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # that NumPy writes
_NPY_MAGIC = b"\x93NUMPY"


def foreign_content(head: bytes) -> str:
    """What the first :data:`HEAD` bytes of a file show in place of its content, with the remedy; empty if nothing.

    Detects empty files, git-lfs pointers, and web pages (of a login or a file host) in place of data.
    """
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text:
        return "is empty; copy or download it again"
    if text.startswith(_LFS_POINTER):
        return "is a pointer of git-lfs, not the file itself; fetch it with 'git lfs pull'"
    if text[:14].lower().startswith(_HTML):
        return "is a web page (HTML), not the file itself; download the file, by its raw link"
    return ""


def open_file(path: str | Path) -> BinaryIO:
    """Open a file to read; OSError also for what may never end or begin: a device, a pipe, a socket, a directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check_regular(descriptor, path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_bytes(path: str | Path, most: int = MAX_TEXT_BYTES) -> bytes:
    """Content of a file, or of a pipe such as that of another command, of at most so many bytes.

    Raises OSError: it cannot be read, is a device, or a pipe that stays silent.
    Raises FormatError: it is larger.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
            content = _from_pipe(descriptor, most)
        else:
            _check_regular(descriptor, path)
            content = file.read(most + 1)
    if len(content) > most:
        raise FormatError(f"is larger than {most / 2**20:g} MiB")
    return content


def read_text(path: str | Path, most: int = MAX_TEXT_BYTES) -> str:
    """Text in UTF-8 as :func:`read_bytes`; FormatError also if it is no such text."""
    try:
        return read_bytes(path, most).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FormatError("is not text") from None


def _check_regular(descriptor: int, path: str | Path) -> None:
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))


def _from_pipe(descriptor: int, most: int) -> bytes:
    content = b""
    while len(content) <= most:
        if not select.select([descriptor], [], [], _SILENCE_S)[0]:
            raise TimeoutError(errno.ETIMEDOUT, f"nothing came from this pipe for {_SILENCE_S:g} s")
        if not (block := os.read(descriptor, 2**16)):
            break
        content += block
    return content


class Budget:
    """Bytes that a compressed file of ``size`` bytes may still expand to: a few kilobytes cannot fill the memory."""

    def __init__(self, size: int) -> None:
        self.left = _MIN_EXPANSION_BYTES + _MAX_GROWTH * size

    def take(self, size: int, where: str) -> None:
        """Use some; FormatError if not enough is left."""
        self.left -= size
        if self.left < 0:
            raise FormatError(f"expands to more than {_MAX_GROWTH} times its size at {where}, as no recording does")


def read_json(text: str) -> Any:
    """Content of one JSON text; numbers are finite.

    Raises
    ------
    FormatError
        It is not JSON, repeats a key, holds NaN or an infinite number, or is nested too deep.
    """
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_finite)
    except json.JSONDecodeError as error:
        raise FormatError(f"is not JSON in line {error.lineno}") from None
    except RecursionError:
        raise FormatError("is nested too deep") from None
    except FormatError:
        raise
    except ValueError:  # a whole number of thousands of digits
        raise FormatError("holds a number that is too long") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in content:
            raise FormatError(f"repeats key '{name}'")
        content[name] = value
    return content


def _constant(text: str) -> Any:
    raise FormatError(f"holds {text}, which is no number")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), -float("inf")):
        raise FormatError(f"holds {text[:20]}, which is too large")
    return value


def read_yaml(text: str) -> Any:
    """Content of one YAML document: mappings, lists, text, numbers, truth values, None; None of an empty one.

    Raises
    ------
    FormatError
        It is not YAML, is more than one document, repeats a key, has other tags, is nested deeper than
        :data:`MAX_DEPTH`, or its aliases stand for more than :data:`MAX_ALIASED` values or for themselves.
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
    """Refuse what a loader cannot take: a second document, deep nesting, and aliases of too much."""
    open_values: list[tuple[str | None, int]] = []  # anchor, and number of values before it
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
                    raise FormatError(f"uses *{event.anchor} in line {line}, which is not complete before it")
                values += sizes[event.anchor]
                aliased += sizes[event.anchor]
                if aliased > MAX_ALIASED:
                    raise FormatError(f"has aliases that stand for more than {MAX_ALIASED} values in line {line}")
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
    """Loader of plain data, with the numbers of YAML 1.2 and dates as text, that refuses repeated keys."""

    def flatten_mapping(self, node: Any) -> None:
        """Check the keys of a mapping and add what it merges; other mappings that merge it call this too."""
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
    """A number or truth value."""
    try:
        if len(node.value) > _MAX_NUMBER_LENGTH:
            raise ValueError
        return yaml.SafeLoader.yaml_constructors[node.tag](loader, node)
    except (ValueError, LookupError, OverflowError):
        kind, line = node.tag.removeprefix(_YAML_PREFIX), node.start_mark.line + 1
        raise FormatError(f"has '{node.value[:20]}' for {kind} in line {line}") from None


def _refused(loader: _YamlLoader, node: yaml.Node) -> Any:
    raise FormatError(f"has the tag {node.tag} in line {node.start_mark.line + 1}, which is not allowed")


_YamlLoader.yaml_constructors = {
    **{_YAML_PREFIX + kind: yaml.SafeLoader.yaml_constructors[_YAML_PREFIX + kind] for kind in ("null", "seq", "map")},
    **dict.fromkeys((_YAML_PREFIX + kind for kind in ("int", "float", "bool")), _converted),
    **dict.fromkeys((_YAML_PREFIX + kind for kind in _YAML_TEXT), yaml.SafeLoader.construct_yaml_str), None: _refused,
}
_YamlLoader.add_implicit_resolver(_YAML_PREFIX + "float", _YAML_EXPONENT, [*"+-.0123456789"])


def read_arrays(source: Path | BinaryIO, wanted: Callable[[str], bool] = lambda name: True) -> dict[str, np.ndarray]:
    """Arrays of an ``.npz`` by their names, of any type but objects.

    Parameters
    ----------
    source : an open file is closed afterwards.
    wanted : whether to read the array of a name; all others are skipped unseen.

    Raises
    ------
    OSError
        The file cannot be opened.
    FormatError
        It is no npz, is damaged or encrypted, repeats a name, or its arrays as float64 need more than a
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
        except Exception as error:  # a library meets damage with whatever its parser raises
            what = f"{name} cannot be read" if name else "cannot be read as npz"
            raise FormatError(f"{what} ({error.__class__.__name__})") from None
    return arrays
