"""Write files and directories atomically: an output is complete or absent.

Writing takes two steps. A check before the work finds obstacles: another file at the path, a name that is too long, a
read-only disk. The write after the work checks again, and renames the output to its path once it is complete on disk.

Only ``force`` replaces an existing file or a directory that is not empty. A written directory holds a manifest of its
files, ``.inertid.json``, and is replaced only while it holds exactly these files, unchanged. A file is replaced only if
it is a regular file. A link is neither followed nor replaced; directories above the output may be links.
"""

import ctypes
import errno
import json
import os
import shlex
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from .errors import OutputError
from .formats import file_checksum

MANIFEST = ".inertid.json"
_NOTE = "Written by inertid. It replaces this directory only while it holds exactly these files, unchanged."
_MAX_MANIFEST_BYTES = 2**22
_SCRATCH_PREFIX = ".inertid."  # without the output's name, which may be as long as the file system allows
_MAX_FILES_NAMED = 3  # in messages about foreign files
_FILE_TYPES = {
    stat.S_IFLNK: "a link, which is neither followed nor replaced", stat.S_IFDIR: "a directory",
    stat.S_IFREG: "a file", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
_AT_FDCWD, _NO_REPLACE, _EXCHANGE = -100, 1, 2


def check_file(target: str | Path, force: bool | None = None, inputs: Iterable[str | Path] = ()) -> None:
    """Check before the work that a file can be written.

    Parameters
    ----------
    force : whether a regular file may be replaced; None: the caller has no option ``--force``.
    inputs : inputs of the command; neither an input nor a file inside an input is replaced.

    Raises
    ------
    OutputError
    """
    target = _named(target)
    with _failures(target):
        status = _status(target)
        if status is not None:
            if not stat.S_ISREG(status.st_mode):
                raise _refusal(target, f"is {_file_type(status)}")
            _check_inputs(target, inputs)
            if not force:
                raise _refusal(target, "exists already", force)
            _check_movable(target, status)
        with _scratch(target):
            pass


def check_directory(target: str | Path, kind: str, force: bool | None = None, inputs: Iterable[str | Path] = (),
        file: str = "information.npz") -> None:
    """Check, before any work is done, that a directory can be written.

    Parameters
    ----------
    kind : kind of output, such as "result"; outputs of another kind are not replaced.
    force : whether an output of this kind may be replaced; None has the meaning of :func:`check_file`.
    inputs : inputs of the command; an input, its parent directories and its content are not replaced.
    file : longest name of the files to write.

    Raises
    ------
    OutputError
    """
    target = _named(target)
    with _failures(target):
        status = _status(target)
        if status is not None:
            if not stat.S_ISDIR(status.st_mode):
                raise OutputError(f"{target}: is {_file_type(status)}; choose a directory that does not exist yet")
            _check_content(target, kind, force, inputs)
            _check_movable(target, status)
        with _scratch(target) as scratch:
            (scratch / file).touch()


def write_file(target: str | Path, content: bytes, force: bool | None = None) -> None:
    """Write a file. For errors see :func:`check_file`; no partial file remains."""
    with scratch_beside(target) as scratch:
        _write(scratch / "new", content)
        move_file(scratch / "new", target, force)


def write_directory(target: str | Path, kind: str, files: Mapping[str, bytes], force: bool | None = None) -> None:
    """Write a directory of files. For errors see :func:`check_directory`; no partial directory remains."""
    with scratch_beside(target) as scratch:
        new = scratch / "new"
        new.mkdir()
        for name, content in files.items():
            _write(new / name, content)
        move_directory(new, target, kind, force)


@contextmanager
def scratch_beside(target: str | Path) -> Iterator[Path]:
    """Temporary directory next to an output, in which to prepare it. For errors see :func:`check_directory`."""
    target = _named(target)
    with _failures(target), _scratch(target) as scratch:
        yield scratch


def move_file(file: Path, target: str | Path, force: bool | None = None) -> None:
    """Put a finished file in its place. For errors see :func:`check_file`."""
    target = _named(target)
    check_file(target, force)
    with _failures(target):
        file.chmod(0o666 & ~_umask())
        if force or not _renamed(file, target, _NO_REPLACE):
            os.replace(file, target)
        _sync(target.parent)


def move_directory(directory: Path, target: str | Path, kind: str, force: bool | None = None) -> None:
    """Add the manifest to a finished directory and put it in its place. For errors see :func:`check_directory`.

    An existing directory is exchanged for the new directory, in a single step if the system can, then removed.
    """
    target = _named(target)
    check_directory(target, kind, force)
    with _failures(target):
        files = sorted(path for path in directory.rglob("*") if path.is_file())
        sums = {path.relative_to(directory).as_posix(): file_checksum(path) for path in files}
        _write(directory / MANIFEST, json.dumps({"about": _NOTE, "kind": kind, "files": sums}, indent=1).encode())
        directory.chmod(0o777 & ~_umask())
        _sync(directory)
        try:
            os.rename(directory, target)  # also onto an empty directory
        except OSError as error:
            if not force or error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            _exchange(directory, target)
            try:
                _check_content(directory, kind, force)
            except OutputError:  # changed since the check
                _exchange(directory, target)
                raise
            shutil.rmtree(directory, ignore_errors=True)
        _sync(target.parent)


def _named(target: str | Path) -> Path:
    """Path that ends with a name; ``.`` and ``..`` are resolved."""
    if "\0" in str(target):
        raise OutputError(f"{target}: holds a NUL character; choose another path")
    return Path(target) if Path(target).name not in ("", "..") else Path(os.path.realpath(target))


@contextmanager
def _failures(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        room = "make room, or " if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        reason = f"cannot be written ({error.strerror or error})"
        raise OutputError(f"{target}: {reason}; {room}choose another path") from error


def _refusal(target: Path, reason: str, force: bool | None = None) -> OutputError:
    """Error about an output; the message names the option ``--force`` if ``force`` is False."""
    option = ", or replace it with --force" if force is False else ""
    return OutputError(f"{target}: {reason}; choose another path{option}")


def _status(target: Path) -> os.stat_result | None:
    place = next((parent for parent in target.parents if os.path.lexists(parent)), target)
    if not place.is_dir():
        raise _refusal(target, f"cannot be written ({place} is not a directory)")
    try:
        return target.lstat()
    except FileNotFoundError:
        return None


def _file_type(status: os.stat_result) -> str:
    return _FILE_TYPES.get(stat.S_IFMT(status.st_mode), "a device")


def _check_inputs(target: Path, inputs: Iterable[str | Path]) -> None:
    around = _identities(target)
    identity = around[0]
    for path in inputs:
        identities = _identities(path)
        if identities[:1] == [identity]:
            raise _refusal(target, "is an input of this command")
        if identity in identities:
            raise _refusal(target, f"holds {path}, an input of this command")
        if identities and identities[0] in around:
            raise _refusal(target, f"belongs to {path}, an input of this command")


def _identities(path: str | Path) -> list[tuple[int, int]]:
    """Device and inode of a path and of the directories above it, links resolved; empty if it is absent."""
    real = Path(os.path.realpath(path))
    try:
        statuses = [directory.stat() for directory in (real, *real.parents)]
    except (OSError, ValueError):
        return []
    return [(status.st_dev, status.st_ino) for status in statuses]


def _check_content(target: Path, kind: str, force: bool | None, inputs: Iterable[str | Path] = ()) -> None:
    """Raise OutputError unless a directory is empty or, with ``force``, holds only an output of this kind."""
    with os.scandir(target) as content:
        names = sorted(entry.name for entry in islice(content, 100))
    if not names:
        return
    try:
        _check_inputs(target, inputs)
        _check_own(target, kind, names)
    except OutputError:
        if force:
            raise
        force = None  # --force would not help
    if not force:
        raise _refusal(target, "exists and is not empty", force)


def _check_own(target: Path, kind: str, names: list[str]) -> None:
    manifest = _read_manifest(target)
    if manifest is None:
        aside = f"mv {shlex.quote(str(target))} {shlex.quote(f'{target}.old')}"
        raise OutputError(
            f"{target}: holds {_listed(names)} and no list of inertid's files ({MANIFEST}; versions before 0.2"
            f" did not write it), so it is not replaced; choose another path, or move it away: {aside}")
    kind_there, files = manifest
    if kind_there != kind:
        raise _refusal(target, f"is a {kind_there}, which a {kind} does not replace")
    if foreign := list(islice(_foreign(target, files), _MAX_FILES_NAMED + 1)):
        raise OutputError(
            f"{target}: holds {_listed(foreign)}, which inertid did not write, so it is not replaced; choose another"
            " path, or move these away")


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_MAX_FILES_NAMED]) + (" and more" if len(names) > _MAX_FILES_NAMED else "")


def _read_manifest(directory: Path) -> tuple[str, dict[str, str]] | None:
    """Kind of a written directory, and SHA-256 by file; None without a usable manifest."""
    path = directory / MANIFEST
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        with path.open("rb") as file:
            content: Any = json.loads(file.read(_MAX_MANIFEST_BYTES))
        kind, files = content["kind"], content["files"]
        return str(kind), {str(name): str(digest) for name, digest in files.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _foreign(directory: str | Path, files: Mapping[str, str], below: str = "") -> Iterator[str]:
    """Paths in a directory that ``files`` does not list, or whose content was changed."""
    with os.scandir(directory) as scan:
        content = sorted(scan, key=lambda entry: entry.name)
    for entry in content:
        name = f"{below}{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            holds_files = any(file.startswith(f"{name}/") for file in files)
            yield from _foreign(entry.path, files, f"{name}/") if holds_files else (f"{name}/",)
        elif name != MANIFEST and name not in files:
            yield name
        elif name in files and not (entry.is_file(follow_symlinks=False) and file_checksum(entry.path) == files[name]):
            yield f"{name} (changed)"


def _check_movable(target: Path, status: os.stat_result) -> None:
    """Raise OutputError if an existing output cannot be renamed, or cannot be removed after the rename."""
    if os.path.ismount(target):
        raise _refusal(target, "is a mount point, which is not replaced")
    parent, user = target.parent.stat(), os.geteuid()
    if parent.st_mode & stat.S_ISVTX and user not in (0, status.st_uid, parent.st_uid):
        raise _refusal(target, "belongs to another user")
    if stat.S_ISDIR(status.st_mode):
        if _identities(target)[0] in _identities(Path.cwd()):  # a shell would stay in the removed directory
            raise _refusal(target, "is the working directory or holds it, and is not replaced")
        if not os.access(target, os.W_OK | os.X_OK):
            raise _refusal(target, f"cannot be written ({os.strerror(errno.EACCES)})")


@contextmanager
def _scratch(target: Path) -> Iterator[Path]:
    """Temporary directory next to the target; parents that were created for it are also removed if they are empty."""
    absent = [parent for parent in target.parents if not os.path.lexists(parent)]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=_SCRATCH_PREFIX, dir=target.parent))
        try:
            _status(target)  # fails if the name is too long for the new parent directory
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    finally:
        for parent in absent:
            with suppress(OSError):
                parent.rmdir()


def _renamed(first: Path, second: Path, flag: int) -> bool:
    """Rename with a flag of renameat2; False if the system or the file system does not support it."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), flag) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.EINVAL, errno.ENOSYS):
        return False
    raise OSError(code, os.strerror(code))


def _exchange(first: Path, second: Path) -> None:
    """Swap two directories, in one step if the system can, else in three."""
    if _renamed(first, second, _EXCHANGE):
        return
    aside = Path(tempfile.mkdtemp(prefix=_SCRATCH_PREFIX, dir=second.parent))
    os.rename(second, aside)
    try:
        os.rename(first, second)
    except OSError:
        os.rename(aside, second)
        raise
    os.rename(aside, first)


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    _sync(path)


def _sync(path: Path) -> None:
    """Wait until a file or directory is on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
