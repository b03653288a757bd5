"""Process a fleet from its catalogue to its results: bags, robots, models; only changed inputs are computed again."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import attrs
import numpy as np

from inertid_ros.config.configuration import Configuration
from inertid_ros.core.errors import InertidError
from inertid_ros.fleet import model_distribution
from inertid_ros.fleet.catalogue import Catalogue, FleetBag, FleetProblem, fetched_text, file_state
from inertid_ros.fleet.cluster import Cluster, Failed
from inertid_ros.fleet.jobs import JobResult, bag_job, estimate_job, key_of, robot_job
from inertid_ros.fleet.store import FileStates, ResultStore, prepared_folder
from inertid_ros.identification.assessment.gate import Verdict
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information import merged
from inertid_ros.identification.information.information_file import information_from_bytes
from inertid_ros.robot.model import load_model

ShowProgress = Callable[[str, float], None]
Subject = TypeVar("Subject", FleetBag, str)  # subject of a job: a bag, or the serial number of a robot
Result = TypeVar("Result")
_PROGRESS = {"bags": (0.0, 0.8), "robots": (0.8, 0.9), "models": (0.9, 0.92), "results": (0.92, 1.0)}
_PAYLOAD = "payload of the catalogue"


@dataclass(frozen=True)
class BagOutcome:
    """Result of a bag, empty if the bag failed; ``message`` is the reason if the bag is not used."""

    bag: FleetBag
    key: str = ""
    summary: dict[str, Any] = field(default_factory=dict)
    computed: bool = False
    message: str = ""

    @property
    def used(self) -> bool:
        return not self.message


def used_bags(bags: Iterable[BagOutcome]) -> dict[str, list[BagOutcome]]:
    """Return the used bags by serial number, in the order of the catalogue, which is sorted by serial number."""
    used = groupby((outcome for outcome in bags if outcome.used), lambda outcome: outcome.bag.serial)
    return {serial: list(outcomes) for serial, outcomes in used}


@dataclass(frozen=True)
class ModelPopulation:
    """The robots of a model with results, sorted by serial number.

    ``distribution`` is None for fewer than :data:`.MIN_ROBOTS` robots.
    """

    model: str
    serials: tuple[str, ...]
    distribution: model_distribution.ModelDistribution | None = None
    outliers: Mapping[str, model_distribution.Outlier] = field(default_factory=dict)


def model_population(name: str, urdf: str, configuration: Configuration,
        robots: Mapping[str, JobResult]) -> ModelPopulation:
    """Estimate the distribution of a model's robots, and find outlying robots.

    ``urdf`` belongs to one of the robots; its bodies are the prior of the mean.
    """
    serials = tuple(sorted(robots))
    if len(serials) < model_distribution.MIN_ROBOTS:
        return ModelPopulation(name, serials)
    model = load_model(urdf, configuration.robot)
    information = [information_from_bytes(robots[serial].information, serial) for serial in serials]
    coordinates = model_distribution.BaseCoordinates.from_model(model, information[0])
    deviations = [np.array(robots[serial].summary["deviation"]) for serial in serials]
    likelihoods = coordinates.likelihoods(information, deviations)
    # The data of all robots determine the shapes of links, as the shapes of a URDF may be far off.
    pooled = identify(model, merged(information), configuration.identify)
    changes = model_distribution.changes_of(model.layout, pooled.parameters)
    distribution, outliers = model_distribution.outlying_robots(coordinates, likelihoods, changes)
    by_serial = {serials[outlier.robot]: outlier for outlier in outliers}
    return ModelPopulation(name, serials, distribution, by_serial)


@dataclass(frozen=True)
class FleetOutcome:
    """Results of a fleet.

    Bags are in the order of the catalogue, robots by serial number, models by name, and seconds by stage.
    """

    catalogue: Catalogue
    bags: tuple[BagOutcome, ...]
    robots: Mapping[str, JobResult]
    models: Mapping[str, ModelPopulation]
    estimates: Mapping[str, dict[str, Any]]
    problems: tuple[FleetProblem, ...]
    seconds: Mapping[str, float]

    @property
    def computed_bags(self) -> int:
        return sum(bag.computed for bag in self.bags)

    @property
    def failed(self) -> bool:
        """True if an input could not be read, or a result could not be written."""
        return any(problem.input for problem in self.problems)

    @property
    def rejected(self) -> bool:
        """True if a bag or a robot must not be used."""
        verdicts = [bag.summary.get("verdict") for bag in self.bags]
        verdicts += [estimate["verdict"] for estimate in self.estimates.values()]
        return Verdict.REJECT.value in verdicts


def run_fleet(catalogue: Catalogue, configuration: Configuration, directory: Path, cluster: Cluster,
        progress: ShowProgress = lambda stage, fraction: None) -> FleetOutcome:
    """Process a fleet; results of an earlier run are reused if their inputs are unchanged.

    ``configuration`` comes from :func:`.fleet_configuration`; ``directory`` holds the results for the next run.
    Raises OutputError: the folder cannot be written, or has other content.
    """
    run = _Run(catalogue, configuration, prepared_folder(directory), cluster, progress)
    with run.timed("bags"):
        urdfs = run.urdfs()
        bags = run.bags(urdfs)
    with run.timed("robots"):
        robots = run.robots(urdfs, bags)
    with run.timed("models"):
        models = run.models(urdfs, robots)
    with run.timed("results"):
        estimates = run.estimates(urdfs, robots, models)
    problems = (*run.problems, *run.bag_store.problems, *run.robot_store.problems)
    return FleetOutcome(catalogue, bags, robots, models, estimates, problems, run.seconds)


class _Run:
    """Stages of one run; a bag or robot that fails becomes a problem, and all other bags and robots continue."""

    def __init__(self, catalogue: Catalogue, configuration: Configuration, folder: Path, on: Cluster,
            progress: ShowProgress) -> None:
        self.catalogue, self.configuration, self.cluster, self.progress = catalogue, configuration, on, progress
        self.bag_store, self.robot_store = ResultStore(folder / "bags"), ResultStore(folder / "robots")
        self.files = FileStates(folder / "bags")
        self.problems = list(catalogue.problems)
        self.seconds: dict[str, float] = {}

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        self._show(stage, 0.0)
        start = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - start

    def urdfs(self) -> dict[str, str]:
        """Return the URDF text of every robot whose URDF is usable and has the kinematics of its model."""
        model_hash = cache(lambda text: load_model(text, self.configuration.robot).hash)
        robots = self.catalogue.robots
        texts, hashes, refused = dict[str, str](), dict[str, str](), dict[str, str]()  # by URL
        for url in dict.fromkeys(robot.urdf for robot in robots.values()):
            try:
                texts[url] = fetched_text(url)
                hashes[url] = model_hash(texts[url])
            except InertidError as error:
                refused[url] = f"{url}: {str(error).removeprefix(f'{url}: ')}"
        counts: dict[str, Counter[str]] = defaultdict(Counter)  # by model
        for robot in robots.values():
            if robot.urdf in hashes:
                counts[robot.model][hashes[robot.urdf]] += 1
        usable = {}
        for serial, robot in robots.items():
            if robot.urdf in refused:
                self._fail(serial, refused[robot.urdf])
            elif hashes[robot.urdf] == counts[robot.model].most_common(1)[0][0]:
                usable[serial] = texts[robot.urdf]
            else:
                reason = f"has other joints than most robots of model '{robot.model}'; correct the URDF or the model"
                self._fail(serial, f"{robot.urdf}: {reason}")
        return usable

    def bags(self, urdfs: Mapping[str, str]) -> tuple[BagOutcome, ...]:
        """Return the outcomes of all bags, in the order of the catalogue."""
        outcomes: dict[FleetBag, BagOutcome] = {}
        jobs: dict[FleetBag, tuple[str, str, Configuration, frozenset[str]]] = {}
        states: dict[FleetBag, str] = {}
        for bag in self.catalogue.bags:
            if bag.serial not in urdfs:
                outcomes[bag] = BagOutcome(bag, message="its robot has no usable URDF")
                continue
            urdf, configuration = urdfs[bag.serial], self._with_payload(bag)
            try:
                states[bag] = file_state(bag.url)
            except InertidError as error:
                outcomes[bag] = BagOutcome(bag, message=self._fail(bag, str(error)))
                continue
            sha256 = self.files.sha256(bag.url, states[bag])
            key = key_of(sha256, urdf, configuration=configuration) if sha256 else ""
            summary = self.bag_store.read(key) if key else None
            if summary is not None:
                outcomes[bag] = self._bag_outcome(bag, key, summary, computed=False)
                continue
            keys = (key_of(other, urdf, configuration=configuration) for other in self.files.candidates(bag.url))
            existing = frozenset(other for other in keys if self.bag_store.read(other) is not None)
            jobs[bag] = (bag.url, urdf, configuration, existing)
        for bag, result in self._results("bags", bag_job, jobs):
            if isinstance(result, Failed):
                outcomes[bag] = BagOutcome(bag, message=result.message)
            else:
                key = key_of(result.summary["sha256"], jobs[bag][1], configuration=jobs[bag][2])
                summary, computed = self.bag_store.read(key), "verdict" in result.summary
                if computed or summary is None:
                    summary = result.summary
                    self.bag_store.write(key, result)
                try:
                    self.files.put(bag.url, states[bag], result.summary["sha256"])
                except OSError as error:
                    self.bag_store.count_failure(error)
                outcomes[bag] = self._bag_outcome(bag, key, summary, computed)
        return tuple(outcomes[bag] for bag in self.catalogue.bags)

    def _with_payload(self, bag: FleetBag) -> Configuration:
        """Return the options for a bag, with its payload, if any."""
        if bag.load is None:
            return self.configuration
        robot = self.configuration.robot
        return attrs.evolve(self.configuration, robot=attrs.evolve(robot, loads={**robot.loads, _PAYLOAD: bag.load}))

    def _bag_outcome(self, bag: FleetBag, key: str, summary: dict[str, Any], computed: bool) -> BagOutcome:
        message = ""
        if summary["verdict"] == Verdict.REJECT.value:
            message = f"is not used: {summary['reasons'][0]['message']}"
            self.problems.append(FleetProblem(message, bag.serial, bag.url, input=False))
        return BagOutcome(bag, key, summary, computed, message)

    def robots(self, urdfs: Mapping[str, str], bags: tuple[BagOutcome, ...]) -> dict[str, JobResult]:
        """Return joint information and drift of every robot that has a usable bag."""
        robots: dict[str, JobResult] = {}
        jobs: dict[str, tuple[str, Configuration, list[tuple[FleetBag, JobResult]]]] = {}
        keys: dict[str, str] = {}
        for serial, outcomes in used_bags(bags).items():
            parts = [f"{outcome.key} {outcome.bag.day}" for outcome in outcomes]
            key = keys[serial] = key_of(urdfs[serial], *parts, configuration=self.configuration)
            summary = self.robot_store.read(key)
            if summary is not None:
                robots[serial] = JobResult(summary, self.robot_store.information(key))
                continue
            results = [(outcome.bag, JobResult(outcome.summary, self.bag_store.information(outcome.key)))
                for outcome in outcomes]
            jobs[serial] = (urdfs[serial], self.configuration, results)
        for serial, result in self._results("robots", robot_job, jobs):
            if not isinstance(result, Failed):
                robots[serial] = result
                self.robot_store.write(keys[serial], result)
        return robots

    def models(self, urdfs: Mapping[str, str], robots: Mapping[str, JobResult]) -> dict[str, ModelPopulation]:
        """Return distribution and outlying robots of every model."""
        by_model: dict[str, dict[str, JobResult]] = {}
        for serial, result in robots.items():
            by_model.setdefault(self.catalogue.robots[serial].model, {})[serial] = result
        models = {}
        for name, members in sorted(by_model.items()):
            try:
                models[name] = model_population(name, urdfs[min(members)], self.configuration, members)
            except InertidError as error:
                self.problems.append(FleetProblem(f"model '{name}': {error}"))
        return models

    def estimates(self, urdfs: Mapping[str, str], robots: Mapping[str, JobResult],
            models: Mapping[str, ModelPopulation]) -> dict[str, dict[str, Any]]:
        """Return parameters of every robot; the prior of an outlying robot is its URDF instead of the distribution."""
        jobs = {}
        for population in models.values():
            shared = population.distribution
            for robot, serial in enumerate(population.serials):
                prior = None if shared is None or serial in population.outliers else shared.prior_of(robot)
                jobs[serial] = (urdfs[serial], self.configuration, robots[serial].information, prior)
        results = dict(self._results("results", estimate_job, jobs))
        return {serial: result for serial, result in sorted(results.items()) if not isinstance(result, Failed)}

    def _results(self, stage: str, function: Callable[..., Result],
            jobs: Mapping[Subject, tuple[Any, ...]]) -> Iterator[tuple[Subject, Result | Failed]]:
        """Yield results in order of completion; failures become problems."""
        for done, (subject, result) in enumerate(self.cluster.results(function, jobs), 1):
            self._show(stage, done / len(jobs))
            if isinstance(result, Failed):
                self._fail(subject, result.message)
            yield subject, result

    def _fail(self, subject: FleetBag | str, message: str) -> str:
        """Record the problem of a bag or of a robot by its serial number, and return its message."""
        place = (subject, "") if isinstance(subject, str) else (subject.serial, subject.url)
        self.problems.append(FleetProblem(message, *place))
        return message

    def _show(self, stage: str, fraction: float) -> None:
        begin, end = _PROGRESS[stage]
        self.progress(stage, begin + (end - begin) * fraction)
