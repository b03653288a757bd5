"""The files of a bag: checks of what they declare, and their messages, whether the bag was closed or not.

A library fills the memory with what a file declares: a Zstandard frame may expand ten-thousandfold, a column of an
SQLite table may be computed, and metadata may take a YAML library minutes, or name files anywhere.
"""

import re
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath

from inertid_ros.core.errors import FormatError, RecordingError
from inertid_ros.core.formats import HEAD, foreign_content, read_yaml

from .bag_backends import STORAGE_SUFFIXES, BagBackend, BagContent, BagMessage, OpenBag, bag_backend
from .mcap_format import MCAP_MAGIC, check_chunks, recover
from .sqlite_format import SQLITE_MAGIC, check_tables

METADATA = "metadata.yaml"
INFORMATION_KEY = "rosbag2_bagfile_information"  # the only key at the top of the metadata
FINALISED_KEY = "inertid_finalised"


def bag_topics(path: str | Path) -> dict[str, tuple[str, int]]:
    """Topic to ``(type, number of messages)`` of a bag.

    Raises
    ------
    RecordingError
        No bag, or unreadable.
    """
    bag = bag_content(bag_backend(), Path(path), set())
    return {topic: (message_type, bag.counts.get(topic, 0)) for topic, message_type in bag.types.items()}


def open_playback(path: str | Path, topics: tuple[str, ...] = ()) -> OpenBag:
    """Open a bag to play ``topics``, or all topics; a damaged one raises RecordingError while messages are read.

    Raises
    ------
    RecordingError
        No such bag, no library for bags is installed, unreadable, or a topic is not in it.
    """
    path, backend = Path(path).expanduser(), bag_backend()
    if not path.exists():
        raise RecordingError(f"{path}: no such bag; check the path")
    try:
        _check_storage(path)
        bag = backend.open(path)
    except Exception as error:
        raise _unreadable(path, error) from None
    if not any(bag.counts.values()):
        raise RecordingError(f"{path}: holds no messages; record again")
    missing = [topic for topic in topics if topic not in bag.types]
    if missing:
        raise RecordingError(f"{path}: has no topic {missing[0]}; it has {', '.join(sorted(bag.types))}")

    def messages(wanted: Collection[str]) -> Iterator[BagMessage]:
        try:
            yield from bag.messages(wanted)
        except Exception as error:  # a library meets damage with whatever its parser raises
            raise _unreadable(path, error) from None

    types = {topic: message_type for topic, message_type in bag.types.items() if not topics or topic in topics}
    return replace(bag, types=types, messages=messages)


def bag_content(backend: BagBackend, path: Path, topics: Collection[str]) -> BagContent:
    """Read the topics of a bag and its messages on the given ones, with a notice if it was not closed."""
    files = _storage_files(path)
    _check_content(path, files)
    has_index = path.is_file() or (path / METADATA).exists()
    notice = ""
    if not has_index:
        notice = "bag was not closed: metadata.yaml is missing"
    elif _is_unfinalised(path):
        notice = "bag was not closed: its recorder was killed"
    try:
        contents = [_read(backend, part, topics) for part in ([path] if has_index else files)]
    except RecordingError:
        if any(file.suffix == ".db3" for file in files):
            raise
        contents = [recover(file, topics) for file in files]
        total = sum(sum(content.counts.values()) for content in contents)
        if total == 0:
            raise
        notice = f"bag was not closed or is damaged: recovered {total} messages"
    bag = BagContent(notices=(notice,) if notice else ())
    for content in contents:
        bag.messages.extend(content.messages)
        bag.types.update(content.types)
        for topic, count in content.counts.items():
            bag.counts[topic] = bag.counts.get(topic, 0) + count
    return bag


def closed_files(path: Path) -> list[Path]:
    """Files of a closed bag in their order; empty if it was not closed or is compressed as a whole."""
    files = [path]
    try:
        if not path.is_file():
            information = read_yaml((path / METADATA).read_text(encoding="utf-8"))[INFORMATION_KEY]
            files = [path / name for name in information["relative_file_paths"]]
            is_whole = set(files) == set(_storage_files(path)) and not information.get("compression_format")
            if not is_whole or _is_unfinalised(path):
                return []
        return files if all(_checked_suffix(file) == file.suffix for file in files) else []
    except (OSError, FormatError, ValueError, TypeError, KeyError, RecordingError):
        return []


def _storage_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise RecordingError(f"{path}: no such bag; check the path")
    files = sorted((file for file in path.iterdir() if file.suffix in STORAGE_SUFFIXES), key=_split_number)
    if not files and not (path / METADATA).exists():
        raise RecordingError(f"{path}: is a directory without metadata.yaml, .mcap or .db3; give a rosbag2 directory")
    return files


def _split_number(file: Path) -> tuple[int, str]:
    """Sort key of split bags, numbered ``name_0.mcap``, ``name_1.mcap``, ..., ``name_10.mcap``."""
    number = file.stem.rpartition("_")[2]
    return (int(number) if number.isdigit() else 0, file.name)


def _is_unfinalised(path: Path) -> bool:
    """Whether the metadata of a bag directory are those of a live bag that was not closed."""
    metadata = path / METADATA
    text = metadata.read_text(encoding="utf-8", errors="replace") if metadata.is_file() else ""
    return re.search(rf"\b{FINALISED_KEY}: '?false", text) is not None


def _check_content(path: Path, files: Sequence[Path]) -> None:
    """Raise RecordingError if a file of a bag holds something else (a git-lfs pointer, an HTML page)."""
    heads = {}
    for file in (*files, path / METADATA):
        if file.exists():
            with file.open("rb") as content:
                heads[file] = content.read(HEAD)
    all_empty = not any(heads[file] for file in files)  # a recorder may leave its last file empty
    for file, head in heads.items():
        if (head or all_empty) and (foreign := foreign_content(head)):
            which = "" if file == path else f"{file.name} "
            raise RecordingError(f"{path}: {which}{foreign}")


def _read(backend: BagBackend, path: Path, topics: Collection[str]) -> BagContent:
    """Content of a bag directory or file, read by the library."""
    try:
        _check_storage(path)
        with _with_suffix(path) as readable:
            bag = backend.open(readable)
            return BagContent(bag.types, bag.counts, list(bag.messages(topics)))
    except Exception as error:  # a library meets damage with whatever its parser raises
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> RecordingError:
    reason = (str(error) or error.__class__.__name__).splitlines()[0]
    return RecordingError(f"{path}: cannot be read as a bag ({reason}); record again, or try 'ros2 bag reindex'")


@contextmanager
def _with_suffix(path: Path) -> Iterator[Path]:
    """Path, or a link to it, with the suffix of its content, by which libraries choose the format."""
    suffixes = [_checked_suffix(file) for file in _storage_files(path)]
    if path.is_dir() or suffixes == [path.suffix]:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder) / f"bag{suffixes[0]}"
        link.symlink_to(path.absolute())
        yield link


def _checked_suffix(file: Path) -> str:
    """Suffix for the content of a complete file; ValueError if it is cut short, which libraries may not notice."""
    with file.open("rb") as content:
        head = content.read(32)
        content.seek(max(content.seek(0, 2) - len(MCAP_MAGIC), 0))
        tail = content.read()
    if not head.startswith(SQLITE_MAGIC):
        if head.startswith(MCAP_MAGIC) and tail != MCAP_MAGIC:
            raise ValueError("the file is cut short")
        return ".mcap"
    size, pages = int.from_bytes(head[16:18], "big"), int.from_bytes(head[28:32], "big")
    if file.stat().st_size < (65536 if size == 1 else size) * pages:
        raise ValueError("the file is cut short")
    return ".db3"


def _check_storage(path: Path) -> None:
    """Check a bag directory, or a file of a bag, before a library opens it.

    Raises
    ------
    FormatError
        Metadata are not those of a bag or name files elsewhere; see also :func:`check_chunks`, :func:`check_tables`.
    OSError
        A file cannot be read.
    """
    files = [path]
    if path.is_dir():
        files = [file for file in path.iterdir() if file.suffix in STORAGE_SUFFIXES]
        if (path / METADATA).is_file():
            _check_metadata((path / METADATA).read_bytes())
    for file in files:
        with file.open("rb") as content:
            head = content.read(len(SQLITE_MAGIC))
            if head.startswith(MCAP_MAGIC):
                check_chunks(content)
        if head == SQLITE_MAGIC:
            check_tables(file)


def _check_metadata(text: bytes) -> None:
    try:
        content = read_yaml(text.decode())
    except (FormatError, UnicodeDecodeError) as error:
        reason = str(error) if isinstance(error, FormatError) else "is not text"
        raise FormatError(f"{METADATA} {reason}") from None
    information = content.get(INFORMATION_KEY) if isinstance(content, dict) else None
    paths = information.get("relative_file_paths") if isinstance(information, dict) else None
    if not isinstance(paths, list) or not all(isinstance(name, str) for name in paths):
        raise FormatError(f"{METADATA} does not name the files of a bag")
    outside = [name for name in paths if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts]
    if outside:
        raise FormatError(f"{METADATA} names {outside[0]}, which is not in the bag")
