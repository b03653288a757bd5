"""Bags of a fleet: those that have changed are computed, the others taken from the store."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inertid_ros.config.configuration import Configuration
from inertid_ros.core.errors import InertidError, OutputError
from inertid_ros.identification.assessment.gate import Verdict

from .bag_store import FileStates, ResultStore
from .catalogue import Catalogue, FleetBag, FleetProblem
from .cluster import Cluster, Failed
from .jobs.bag_job import BagJob, BagResult, bag_job
from .jobs.fetching import file_state
from .jobs.fleet_configuration import key_of, with_payload


@dataclass(frozen=True)
class BagOutcome:
    """What became of a bag.

    Attributes
    ----------
    bag : FleetBag
    key : str
        Of its result; empty where it has none.
    summary : mapping
        Of its result.
    computed : bool
        Whether it was computed in this run.
    message : str
        Why it was not used; empty where it was.
    """

    bag: FleetBag
    key: str = ""
    summary: Mapping[str, Any] = field(default_factory=dict)
    computed: bool = False
    message: str = ""

    @property
    def used(self) -> bool:
        """Whether it counts in the results of its robot."""
        return not self.message


class KeptResults:
    """A store of results, and those of this run that could not be written.

    Parameters
    ----------
    folder : Path
        Of the store.

    Attributes
    ----------
    store : ResultStore
    unwritten : Counter of str
        Reason to the number of results.
    """

    def __init__(self, folder: Path) -> None:
        self.store = ResultStore(folder)
        self.unwritten = Counter[str]()
        self._information: dict[str, bytes] = {}

    def write(self, key: str, summary: Mapping[str, Any], information: bytes) -> None:
        """Write a result, or keep it for this run where that fails."""
        try:
            self.store.write(key, summary, information)
        except OutputError as error:
            self.count(error)
            self._information[key] = information

    def count(self, error: OSError | OutputError) -> None:
        """Count what could not be written."""
        cause = error if isinstance(error, OSError) else error.__cause__
        self.unwritten[getattr(cause, "strerror", None) or str(error)] += 1

    def information(self, key: str) -> bytes:
        """Information of a result."""
        return self._information.get(key) or self.store.information(key)

    @property
    def problems(self) -> list[FleetProblem]:
        """One for every reason."""
        place = self.store.folder
        return [
            FleetProblem("", "", f"{place}: {count} results cannot be written ({reason}); make room and run again")
            for reason, count in self.unwritten.items()
        ]


class BagStage:
    """Bags of a fleet on a cluster.

    Parameters
    ----------
    folder : Path
        Where their results are kept.

    Attributes
    ----------
    kept : KeptResults
    problems : list of FleetProblem
        What could not be used.
    """

    def __init__(self, catalogue: Catalogue, configuration: Configuration, folder: Path) -> None:
        self.catalogue, self.configuration = catalogue, configuration
        self.kept, self.files = KeptResults(folder), FileStates(folder)
        self.problems: list[FleetProblem] = []

    def outcomes(
        self, urdfs: Mapping[str, str], cluster: Cluster, show: Callable[[float], None]
    ) -> tuple[BagOutcome, ...]:
        """Outcomes of all bags, in the order of the catalogue.

        Parameters
        ----------
        urdfs : mapping of str to str
            Serial number of every usable robot to the content of its URDF.
        """
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
                self._failed(outcomes, bag, str(error))
                continue
            sha256 = self.files.sha256(bag.url, states[bag])
            key = key_of(sha256, urdf, configuration=configuration) if sha256 else ""
            summary = self.kept.store.read(key) if key else None
            if summary is not None:
                outcomes[bag] = _outcome(bag, key, summary, computed=False)
                continue
            keys = (key_of(each, urdf, configuration=configuration) for each in self.files.candidates(bag.url))
            known = frozenset(each for each in keys if self.kept.store.read(each) is not None)
            jobs[bag] = BagJob(bag.url, urdf, configuration, known)
        done = len(outcomes)
        for bag, result in cluster.results(bag_job, jobs):
            done += 1
            show(done / max(len(self.catalogue.bags), 1))
            if isinstance(result, Failed):
                self._failed(outcomes, bag, result.message)
            else:
                outcomes[bag] = self._kept(bag, states[bag], result)
        for outcome in outcomes.values():
            if outcome.key and not outcome.used:
                self.problems.append(FleetProblem(outcome.bag.serial, outcome.bag.url, outcome.message, input=False))
        return tuple(outcomes[bag] for bag in self.catalogue.bags)

    def _failed(self, outcomes: dict[FleetBag, BagOutcome], bag: FleetBag, message: str) -> None:
        outcomes[bag] = BagOutcome(bag, message=message)
        self.problems.append(FleetProblem(bag.serial, bag.url, message))

    def _kept(self, bag: FleetBag, state: str, result: BagResult) -> BagOutcome:
        """Outcome of a bag whose result is written as soon as it is there."""
        summary = self.kept.store.read(result.key)
        computed = "verdict" in result.summary
        if computed or summary is None:
            summary = result.summary
            self.kept.write(result.key, result.summary, result.information)
        try:
            self.files.put(bag.url, state, str(result.summary["sha256"]))
        except OSError as error:
            self.kept.count(error)
        return _outcome(bag, result.key, summary, computed)


def _outcome(bag: FleetBag, key: str, summary: Mapping[str, Any], computed: bool) -> BagOutcome:
    message = ""
    if summary["verdict"] == Verdict.REJECT.value:
        message = f"is not used: {summary['reasons'][0]['message']}"
    return BagOutcome(bag, key, summary, computed, message)
