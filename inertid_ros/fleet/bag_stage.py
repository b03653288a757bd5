"""Bags of a fleet: changed ones are computed, the results of others come from a store below the output folder.

Every result appears whole or not at all, by the hash of what it depends on, so that the next run continues one that was
killed.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inertid_ros.config.configuration import Configuration
from inertid_ros.core.errors import FormatError, InertidError, OutputError
from inertid_ros.core.formats import read_json
from inertid_ros.core.outputs import check_directory, scratch_beside, write_file
from inertid_ros.fleet.catalogue import Catalogue, FleetBag, FleetProblem
from inertid_ros.fleet.cluster import Cluster, Failed
from inertid_ros.fleet.fetching import file_state
from inertid_ros.fleet.jobs import BagJob, JobResult, bag_job, key_of, with_payload
from inertid_ros.identification.assessment.gate import Verdict

_SUMMARY, _INFORMATION = "summary.json", "information.npz"
_FILE_STATES = "files.jsonl"
_MAX_CANDIDATES = 100  # checksums of files of one name


class ResultStore:
    """Results in one folder, each a folder with ``summary.json`` and, if it has any, ``information.npz``.

    Attributes
    ----------
    unwritten : Counter of str
        Reason to the number of results that could not be written; they are kept for this run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unwritten = Counter[str]()
        self._information: dict[str, bytes] = {}

    def read(self, key: str) -> dict[str, Any] | None:
        """Summary of a result; None if it is missing or damaged."""
        try:
            summary = read_json((self._path(key) / _SUMMARY).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, FormatError, ValueError):
            return None
        return summary if isinstance(summary, dict) else None

    def information(self, key: str) -> bytes:
        """Content of the information file of a result; empty without one."""
        file = self._path(key) / _INFORMATION
        return self._information.get(key) or (file.read_bytes() if file.exists() else b"")

    def write(self, key: str, result: JobResult) -> None:
        """Write a result, or keep it for this run if that fails."""
        try:
            if result.information:
                write_file(self._path(key) / _INFORMATION, result.information, force=True)
            # Last, as a result counts once it has a summary.
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
        """One for every reason."""
        return [
            FleetProblem(f"{self.folder}: {count} results cannot be written ({reason}); make room and run again")
            for reason, count in self.unwritten.items()
        ]

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key


class FileStates:
    """Checksums of files when they were last read, so that unchanged ones are not read again.

    They are lines of a file in ``folder``; the last one of a file counts.
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
            with suppress(FormatError, ValueError, TypeError):  # the last line of a run that was killed
                url, state, sha256 = read_json(line)
                self._add(str(url), str(state), str(sha256))

    def sha256(self, url: str, state: str) -> str:
        """Checksum of a file in this state; empty if unknown."""
        last = self._known.get(url, ("", ""))
        return last[1] if last[0] == state else ""

    def candidates(self, url: str) -> tuple[str, ...]:
        """Checksums that a file in another state may have: its last one or, if it is new, those of its name."""
        if url in self._known:
            return (self._known[url][1],)
        return tuple(sorted(self._by_name.get(_name(url), ())))[:_MAX_CANDIDATES]

    def put(self, url: str, state: str, sha256: str) -> None:
        """Add the checksum of a file; raise OSError if that cannot be written."""
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
    """Create the output folder, unless it holds an earlier run.

    Raises
    ------
    OutputError
        It is a file or a link, cannot be written, or holds something else.
    """
    states = directory / "bags" / _FILE_STATES
    if directory.is_symlink() or not states.is_file():
        check_directory(directory, "fleet")
    with scratch_beside(states):
        states.touch()
    return directory


@dataclass(frozen=True)
class BagOutcome:
    """Outcome of a bag.

    Attributes
    ----------
    key, summary
        Of its result; empty without one.
    computed : bool
        Whether it was computed in this run.
    message : str
        Why it is not used; empty if it is.
    """

    bag: FleetBag
    key: str = ""
    summary: Mapping[str, Any] = field(default_factory=dict)
    computed: bool = False
    message: str = ""

    @property
    def used(self) -> bool:
        return not self.message


class BagStage:
    """Bags of a fleet on a cluster; their results are stored in ``folder``."""

    def __init__(self, catalogue: Catalogue, configuration: Configuration, folder: Path) -> None:
        self.catalogue, self.configuration = catalogue, configuration
        self.store, self.files = ResultStore(folder), FileStates(folder)
        self.problems: list[FleetProblem] = []

    def outcomes(
        self, urdfs: Mapping[str, str], cluster: Cluster, show: Callable[[float], None]
    ) -> tuple[BagOutcome, ...]:
        """Outcomes of all bags, in the order of the catalogue; ``urdfs`` holds texts by serial of usable robots."""
        outcomes: dict[FleetBag, BagOutcome] = {}
        jobs: dict[FleetBag, BagJob] = {}
        states: dict[FleetBag, str] = {}
        for bag in self.catalogue.bags:
            if bag.serial not in urdfs:
                outcomes[bag] = BagOutcome(bag, message="its robot has no usable URDF")
                continue
            urdf, configuration = urdfs[bag.serial], with_payload(self.configuration, bag.load)
            try:
                states[bag] = file_state(bag.url)
            except InertidError as error:
                self._fail(outcomes, bag, str(error))
                continue
            sha256 = self.files.sha256(bag.url, states[bag])
            key = key_of(sha256, urdf, configuration=configuration) if sha256 else ""
            summary = self.store.read(key) if key else None
            if summary is not None:
                outcomes[bag] = _outcome(bag, key, summary, computed=False)
                continue
            keys = (key_of(other, urdf, configuration=configuration) for other in self.files.candidates(bag.url))
            existing = frozenset(other for other in keys if self.store.read(other) is not None)
            jobs[bag] = BagJob(bag.url, urdf, configuration, existing)
        done = len(outcomes)
        for bag, result in cluster.results(bag_job, jobs):
            done += 1
            show(done / max(len(self.catalogue.bags), 1))
            if isinstance(result, Failed):
                self._fail(outcomes, bag, result.message)
            else:
                outcomes[bag] = self._store(bag, states[bag], jobs[bag], result)
        for outcome in outcomes.values():
            if outcome.key and not outcome.used:
                self.problems.append(FleetProblem(outcome.message, outcome.bag.serial, outcome.bag.url, input=False))
        return tuple(outcomes[bag] for bag in self.catalogue.bags)

    def _fail(self, outcomes: dict[FleetBag, BagOutcome], bag: FleetBag, message: str) -> None:
        outcomes[bag] = BagOutcome(bag, message=message)
        self.problems.append(FleetProblem(message, bag.serial, bag.url))

    def _store(self, bag: FleetBag, state: str, job: BagJob, result: JobResult) -> BagOutcome:
        """Write the result of a bag, and return its outcome."""
        sha256 = str(result.summary["sha256"])
        key = key_of(sha256, job.urdf, configuration=job.configuration)
        summary = self.store.read(key)
        computed = "verdict" in result.summary
        if computed or summary is None:
            summary = result.summary
            self.store.write(key, result)
        try:
            self.files.put(bag.url, state, sha256)
        except OSError as error:
            self.store.count_failure(error)
        return _outcome(bag, key, summary, computed)


def _outcome(bag: FleetBag, key: str, summary: Mapping[str, Any], computed: bool) -> BagOutcome:
    message = ""
    if summary["verdict"] == Verdict.REJECT.value:
        message = f"is not used: {summary['reasons'][0]['message']}"
    return BagOutcome(bag, key, summary, computed, message)
