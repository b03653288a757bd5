"""One reader to fuzz: how it is called, valid content, and changes of it that keep its structure."""

import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .values import changed_bytes

MAX_BYTES = 65536
_FOLDER = "/dev/shm" if Path("/dev/shm").is_dir() else None


@dataclass(frozen=True)
class Target:
    """A reader of content from outside.

    Attributes
    ----------
    name : str
        Of the target, and of the folder of its corpus.
    read : callable
        Takes content as bytes.
    make_seeds : callable
        Valid contents.
    restructured : callable
        From a content, a random generator and all contents to another one; may return what is no change.
    words : tuple of bytes
        Words of its format.
    """

    name: str
    read: Callable[[bytes], object]
    make_seeds: Callable[[], list[bytes]]
    restructured: Callable[[bytes, random.Random], bytes] | None = None
    words: tuple[bytes, ...] = ()

    @cached_property
    def seeds(self) -> list[bytes]:
        """Valid contents."""
        return self.make_seeds()

    def changed(self, content: bytes, rng: random.Random) -> bytes:
        """Another content, by its structure or by its bytes."""
        if self.restructured is not None and rng.random() < 0.6:
            try:
                for _ in range(rng.choice((1, 1, 2, 3))):
                    content = self.restructured(content, rng)
                return content[:MAX_BYTES]
            except Exception:  # what is not of the format any more has no structure
                pass
        return changed_bytes(content or self.seeds[0], rng, self.seeds, self.words)[:MAX_BYTES]


def from_file(suffix: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    """A reader of files as one of bytes; the file is always the same one, in memory."""
    folder: list[tempfile.TemporaryDirectory[str]] = []

    def read_bytes(content: bytes) -> object:
        if not folder:
            folder.append(tempfile.TemporaryDirectory(dir=_FOLDER))
        path = Path(folder[0].name) / f"input{suffix}"
        path.write_bytes(content)
        return read(path)

    return read_bytes
