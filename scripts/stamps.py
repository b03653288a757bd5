"""Record of completed steps of the set-up: hashes of each step's inputs, atomic replacement of files, a lock."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path


def say(text: str) -> None:
    print(f"[setup] {text}", file=sys.stderr, flush=True)


def digest(*parts: object) -> str:
    """Return a hash of strings and of the names and contents of files."""
    total = hashlib.sha256()
    for part in parts:
        total.update(str(part).encode() + b"\0")
        if isinstance(part, Path):
            total.update(part.read_bytes())
    return total.hexdigest()


def files_below(root: Path, names: tuple[str, ...]) -> list[Path]:
    """Return files at or below the given names in `root`, sorted, without caches."""
    found = []
    for name in names:
        below = [root / name] if (root / name).is_file() else (root / name).rglob("*")
        found += [f for f in below if f.is_file() and "__pycache__" not in f.parts]
    return sorted(found)


def replace(path: Path, text: str) -> None:
    """Replace a file atomically, so that a reader never gets a part of the text."""
    partial = path.with_name(path.name + ".new")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


class Stamps:
    """One file per completed step, with the hash of the step's inputs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fresh(self, step: str, key: str) -> bool:
        """Return True if the step was completed with this key."""
        with contextlib.suppress(OSError):
            return (self.folder / step).read_text() == key
        return False

    def write(self, step: str, key: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        replace(self.folder / step, key)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock between processes, so that two set-ups take turns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("waiting for another set-up to end")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
