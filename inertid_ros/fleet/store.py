"""Stored results of bags and robots; the next run reuses results with unchanged inputs.

The name of a result is the hash of its inputs. A result is written completely or not at all, so that the next run can
continue after a killed run.
"""

import json
from collections import Counter
from contextlib import suppress
from pathlib import Path

from inertid_ros.core.errors import FormatError, OutputError
from inertid_ros.core.formats import read_json
from inertid_ros.core.outputs import check_directory, scratch_beside, write_file
from inertid_ros.fleet.catalogue import FleetProblem
from inertid_ros.fleet.jobs import JobResult

_SUMMARY, _INFORMATION = "summary.json", "information.npz"
_FILE_STATES = "files.jsonl"
_MAX_CANDIDATES = 100  # checksums of files of one name


class ResultStore:
    """Results in one folder, each a folder with ``summary.json`` and an optional ``information.npz``.

    ``unwritten`` counts by reason the results that could not be written; their information is kept for this run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unwritten = Counter[str]()
        self._information: dict[str, bytes] = {}

    def read(self, key: str) -> dict[str, object] | None:
        """Return the summary of a result; None if it is missing or damaged."""
        try:
            summary = read_json((self._path(key) / _SUMMARY).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, FormatError, ValueError):
            return None
        return summary if isinstance(summary, dict) else None

    def information(self, key: str) -> bytes:
        """Return the content of a result's information file; empty if the file does not exist."""
        file = self._path(key) / _INFORMATION
        return self._information.get(key) or (file.read_bytes() if file.exists() else b"")

    def write(self, key: str, result: JobResult) -> None:
        """Write a result; after an error, keep its information in memory for this run."""
        try:
            if result.information:
                write_file(self._path(key) / _INFORMATION, result.information, force=True)
            # The summary comes last, as it marks a result as complete.
            text = json.dumps(result.summary, allow_nan=False) + "\n"
            write_file(self._path(key) / _SUMMARY, text.encode(), force=True)
        except OutputError as error:
            self.count_failure(error)
            self._information[key] = result.information

    def count_failure(self, error: OSError | OutputError) -> None:
        cause = error if isinstance(error, OSError) else error.__cause__
        self.unwritten[getattr(cause, "strerror", None) or str(error)] += 1

    @property
    def problems(self) -> list[FleetProblem]:
        """One problem for every reason."""
        return [FleetProblem(f"{self.folder}: {count} results cannot be written ({reason}); free space and run again")
            for reason, count in self.unwritten.items()]

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key


class FileStates:
    """Checksums of read files and their states, so that unchanged files are not read again.

    ``files.jsonl`` in ``folder`` holds one line per checksum; for each read file, the last line is valid.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _FILE_STATES
        self._known: dict[str, tuple[str, str]] = {}
        self._by_name: dict[str, set[str]] = {}
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            lines = []
        for line in lines:
            with suppress(FormatError, ValueError, TypeError):  # the last line of a killed run may be incomplete
                url, state, sha256 = read_json(line)
                self._add(str(url), str(state), str(sha256))

    def sha256(self, url: str, state: str) -> str:
        """Return the checksum of a file if ``state`` is its recorded state, else an empty string."""
        last = self._known.get(url, ("", ""))
        return last[1] if last[0] == state else ""

    def candidates(self, url: str) -> tuple[str, ...]:
        """Return possible checksums of a changed file: its last checksum, or the checksums of files with its name."""
        if url in self._known:
            return (self._known[url][1],)
        return tuple(sorted(self._by_name.get(_name(url), ())))[:_MAX_CANDIDATES]

    def put(self, url: str, state: str, sha256: str) -> None:
        """Add the checksum of a file; raise OSError if it cannot be written."""
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
    """Create the output folder, unless it holds an earlier run; raise OutputError if it has other content."""
    states = directory / "bags" / _FILE_STATES
    if directory.is_symlink() or not states.is_file():
        check_directory(directory, "fleet")
    with scratch_beside(states):
        states.touch()
    return directory
