"""Results of bags and robots in files below the output folder, by the hash of what they depend on.

Every result appears whole or not at all, so that a run that is killed leaves what it had, and the next one goes on.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from inertid_ros.core.errors import FormatError
from inertid_ros.core.formats.json_text import read_json
from inertid_ros.core.outputs import check_directory, scratch_beside, write_file

_SUMMARY, _INFORMATION = "summary.json", "information.npz"
_STATES = "files.jsonl"
_MOST_CANDIDATES = 100


class ResultStore:
    """One folder of results, each a folder with ``summary.json`` and, where there is one, ``information.npz``.

    Parameters
    ----------
    folder : Path
        Created where it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, key: str) -> Path:
        """Folder of a result."""
        return self.folder / key[:2] / key

    def information(self, key: str) -> bytes:
        """Content of the information file of a result; empty where it has none."""
        file = self.path(key) / _INFORMATION
        return file.read_bytes() if file.exists() else b""

    def read(self, key: str) -> dict[str, Any] | None:
        """Summary of a result; None where there is none, or it is damaged."""
        try:
            summary = read_json((self.path(key) / _SUMMARY).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, FormatError, ValueError):
            return None
        return summary if isinstance(summary, dict) else None

    def write(self, key: str, summary: Mapping[str, Any], information: bytes) -> None:
        """Write a result.

        Raises
        ------
        OutputError
            It cannot be written.
        """
        if information:
            write_file(self.path(key) / _INFORMATION, information, force=True)
        # Last, as a result counts once it has a summary.
        write_file(self.path(key) / _SUMMARY, (json.dumps(summary, allow_nan=False) + "\n").encode(), force=True)


class FileStates:
    """Which content a file had when it was last read, so that one that has not changed is not read again.

    A line is added as soon as something is known; the last one of a file counts.

    Parameters
    ----------
    folder : Path
        Where it is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _STATES
        self._known: dict[str, tuple[str, str]] = {}
        self._by_name: dict[str, set[str]] = {}
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            lines = []
        for line in lines:
            with suppress(FormatError, ValueError, TypeError):  # the last line of a run that was killed
                url, state, sha256 = read_json(line)
                self._add(str(url), str(state), str(sha256))

    def sha256(self, url: str, state: str) -> str:
        """Checksum of a file in this state; empty where it is not known."""
        known = self._known.get(url, ("", ""))
        return known[1] if known[0] == state else ""

    def candidates(self, url: str) -> tuple[str, ...]:
        """Checksums that a file may have whose state is another one: its last, or where it is new those of its name."""
        if url in self._known:
            return (self._known[url][1],)
        return tuple(sorted(self._by_name.get(_name(url), ())))[:_MOST_CANDIDATES]

    def put(self, url: str, state: str, sha256: str) -> None:
        """Add the content of a file.

        Raises
        ------
        OSError
            It cannot be written.
        """
        if self._known.get(url) != (state, sha256):
            self._add(url, state, sha256)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([url, state, sha256]) + "\n")

    def _add(self, url: str, state: str, sha256: str) -> None:
        self._known[url] = (state, sha256)
        self._by_name.setdefault(_name(url), set()).add(sha256)


def _name(url: str) -> str:
    return url.rstrip("/").rpartition("/")[2]


def prepared_folder(directory: Path) -> Path:
    """The output folder, which may hold an earlier run.

    Raises
    ------
    OutputError
        It is a file or a link, cannot be written, or holds something else.
    """
    states = directory / "bags" / _STATES
    if directory.is_symlink() or not states.is_file():
        check_directory(directory, "fleet")
    with scratch_beside(states):
        states.touch()
    return directory
