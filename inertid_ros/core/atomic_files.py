"""Files and directories that appear complete or not at all."""

import ctypes
import errno
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

_AT_FDCWD = -100
_EXCHANGE = 2


def write_file(target: Path, content: bytes) -> None:
    """Write a file, which appears by rename once it is on disk; one that is there is replaced.

    Raises
    ------
    OSError
        It cannot be written; nothing is left behind.
    """
    target = target.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(descriptor)
    scratch = Path(name)
    try:
        _write(scratch, content)
        scratch.chmod(0o666 & ~_umask())
        os.replace(scratch, target)
        _sync(target.parent)
    finally:
        scratch.unlink(missing_ok=True)


def write_directory(target: Path, files: Mapping[str, bytes], replace: bool) -> None:
    """Write all files into a new directory ``target``, which appears by rename once everything is on disk.

    With ``replace`` an existing directory is exchanged for the new one in a single step, then removed.

    Raises
    ------
    FileExistsError
        ``target`` holds something and ``replace`` is false.
    OSError
        It cannot be written; nothing is left behind.
    """
    target = target.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        for name, content in files.items():
            _write(scratch / name, content)
        scratch.chmod(0o777 & ~_umask())
        _sync(scratch)
        _put(scratch, target, replace)
        _sync(target.parent)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _put(scratch: Path, target: Path, replace: bool) -> None:
    try:
        os.rename(scratch, target)  # also onto an empty directory
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        if not replace:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        _exchange(scratch, target)


def _exchange(first: Path, second: Path) -> None:
    """Swap two directories in one step where the system can, else in two."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is not None:
        paths = (os.fsencode(first), os.fsencode(second))
        if rename(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _EXCHANGE) == 0:
            return
    aside = Path(tempfile.mkdtemp(prefix=f".{second.name}.", dir=second.parent))
    os.rename(second, aside)
    os.rename(first, second)
    os.rename(aside, first)


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
