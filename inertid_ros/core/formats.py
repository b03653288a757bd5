"""Formats of files from outside, read in bounded time and memory whatever they hold.

PyYAML's loaders recurse, in C until the process crashes; let a few aliases stand for billions of values; construct
dates and sets; keep the last of repeated keys; and raise whatever their converters meet. :func:`read_yaml` therefore
puts the events of its parser together on a stack of its own. NumPy allocates what the header of an ``.npz`` declares,
follows any compression, and raises whatever a tokenizer, a zip or an LZMA library raises; :func:`read_arrays` checks
sizes before it reads. Configurations are read without NumPy, which is imported where arrays are read.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import yaml

from .errors import FormatError

if TYPE_CHECKING:
    import numpy as np

HEAD = 512  # bytes of a file that are enough for foreign_content
_LFS_POINTER = b"version https://git-lfs.github.com/"
_HTML = (b"<!doctype html", b"<html")
_MIN_EXPANSION_BYTES = 8 * 2**20  # which a compressed file of any size may expand to
_MAX_GROWTH = 100  # times the size of the file, in addition; motion compresses by less than ten
MAX_DEPTH = 50  # of nesting in YAML
MAX_ALIASED = 100_000  # values that aliases may add to those written out
_MAX_NUMBER_LENGTH = 400  # characters; the longest decimal that a float has is shorter
_YAML_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # in C ten times as fast, and not always built in
_YAML_PREFIX = "tag:yaml.org,2002:"
_YAML_EXPONENT = re.compile(r"[-+]?(\d+|\d+\.\d*|\.\d+)[eE][-+]?\d{1,3}")  # a number of YAML 1.2, text to version 1.1
_YAML_TEXT = ("str", "timestamp", "value")  # a date stays text
_MERGE = object()
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
    builder = _Builder()
    try:
        for event in yaml.parse(text, Loader=_YAML_PARSER):
            builder.take(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise FormatError(f"is not YAML{f' in line {mark.line + 1}' if mark else ''}") from None
    except UnicodeEncodeError:
        raise FormatError("is not YAML: it holds characters that are not text") from None
    return builder.content


class _Container:
    """A list or mapping that is not complete yet; ``size`` counts the values in it, those of aliases included."""

    def __init__(self, value: Any, anchor: str | None) -> None:
        self.value, self.anchor, self.size = value, anchor, 1
        self.merged: list[Any] = []
        self.has_key, self.key = False, None

    def add(self, value: Any, line: int) -> None:
        if isinstance(self.value, list):
            self.value.append(value)
        elif not self.has_key:
            if isinstance(value, list | dict):
                raise FormatError(f"has a list or mapping as a key in line {line}")
            if value in self.value:
                raise FormatError(f"repeats key '{value}' in line {line}")
            self.has_key, self.key = True, value
        else:
            self.has_key = False
            if self.key is _MERGE:
                self.merged += value if isinstance(value, list) else [value]
            else:
                self.value[self.key] = value

    def complete(self, line: int) -> Any:
        if not self.merged:
            return self.value
        if not all(isinstance(mapping, Mapping) for mapping in self.merged):
            raise FormatError(f"merges what is no mapping before line {line}")
        merged: dict[Any, Any] = {}
        for mapping in reversed(self.merged):  # the first one has the last word, after the mapping itself
            merged |= mapping
        return merged | self.value


class _Builder:
    """Puts parser events together."""

    def __init__(self) -> None:
        self.content: Any = None
        self._open: list[_Container] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._documents = self._aliased = 0
        self._resolver = yaml.resolver.Resolver()
        self._constructor = yaml.constructor.SafeConstructor()

    def take(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 0
        match event:
            case yaml.ScalarEvent():
                self._add(self._scalar(event, line), 1, event.anchor, line)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                value: Any = [] if isinstance(event, yaml.SequenceStartEvent) else {}
                kind = "seq" if isinstance(value, list) else "map"
                if event.tag not in (None, "!", _YAML_PREFIX + kind):
                    raise FormatError(f"has the tag {event.tag} in line {line}, which is not allowed")
                if len(self._open) == MAX_DEPTH:
                    raise FormatError(f"is nested deeper than {MAX_DEPTH} in line {line}")
                self._open.append(_Container(value, event.anchor))
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                done = self._open.pop()
                self._add(done.complete(line), done.size, done.anchor, line)
            case yaml.AliasEvent():
                self._alias(str(event.anchor), line)
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise FormatError(f"holds a second document from line {line} on")

    def _add(self, value: Any, size: int, anchor: str | None, line: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (value, size)
        if self._open:
            self._open[-1].add(value, line)
            self._open[-1].size += size
        else:
            self.content = value

    def _alias(self, name: str, line: int) -> None:
        if name not in self._anchors:
            raise FormatError(f"uses *{name} in line {line}, which is not complete before it")
        value, size = self._anchors[name]
        self._aliased += size
        if self._aliased > MAX_ALIASED:
            raise FormatError(f"has aliases that stand for more than {MAX_ALIASED} values in line {line}")
        self._add(value, size, None, line)

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> Any:
        text, tag = event.value, event.tag
        if tag is None:
            tag = self._resolver.resolve(yaml.ScalarNode, text, event.implicit)
        kind = "str" if tag == "!" else str(tag).removeprefix(_YAML_PREFIX)
        if kind in _YAML_TEXT:
            plain = event.tag is None and event.implicit[0]
            return float(text) if plain and _YAML_EXPONENT.fullmatch(text) else text
        if kind == "merge" and self._open and not self._open[-1].has_key:
            return _MERGE
        if kind == "null":
            return None
        if kind not in ("int", "float", "bool"):
            raise FormatError(f"has the tag {tag} in line {line}, which is not allowed")
        try:
            if len(text) > _MAX_NUMBER_LENGTH:
                raise ValueError
            convert = getattr(self._constructor, f"construct_yaml_{kind}")
            return convert(yaml.ScalarNode(tag, text))
        except (ValueError, LookupError, OverflowError):
            raise FormatError(f"has '{text[:20]}' for {kind} in line {line}") from None


def read_arrays(source: Path | BinaryIO, wanted: Callable[[str], bool] = lambda name: True) -> dict[str, np.ndarray]:
    """Arrays of an ``.npz`` by their names, of any type but objects.

    Parameters
    ----------
    source : Path or binary file
        An open file is closed afterwards.
    wanted : whether to read the array of a name; all others are skipped unseen.

    Raises
    ------
    OSError
        The file cannot be opened.
    FormatError
        It is no npz, is damaged or encrypted, repeats a name, or its arrays as float64 need more than a
        :class:`Budget`.
    """
    with source.open("rb") if isinstance(source, Path) else source as file:
        if file.read(len(_NPY_MAGIC)) == _NPY_MAGIC:
            raise FormatError("holds a single array")
        try:
            return _arrays(file, wanted)
        except FormatError:
            raise
        except Exception as error:  # a library meets damage with whatever its parser raises
            raise FormatError(f"cannot be read as npz ({error.__class__.__name__})") from None


def _arrays(file: BinaryIO, wanted: Callable[[str], bool]) -> dict[str, np.ndarray]:
    budget = Budget(file.seek(0, 2))
    arrays: dict[str, np.ndarray] = {}
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if not wanted(name):
                continue
            if name in arrays:
                raise FormatError(f"holds {name} twice")
            arrays[name] = _read_array(archive, member, name, budget)
    return arrays


def _read_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, budget: Budget) -> np.ndarray:
    import numpy as np

    headers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if member.compress_type not in _NPZ_METHODS:
        raise FormatError(f"holds {name} in a compression that NumPy does not write")
    budget.take(member.file_size, name)
    with archive.open(member) as file:
        try:
            version = np.lib.format.read_magic(file)
            if version not in headers:
                raise ValueError("version")
            shape, by_columns, dtype = headers[version](file)
            size = math.prod(shape)
            if dtype.hasobject or min(shape, default=0) < 0:
                raise ValueError("objects")
            budget.take(8 * size, name)
            data = file.read(size * dtype.itemsize)
            return np.ndarray(shape, dtype, data, order="F" if by_columns else "C").copy()
        except FormatError:
            raise
        except Exception as error:  # as above
            raise FormatError(f"{name} cannot be read ({error.__class__.__name__})") from None
