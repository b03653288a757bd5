"""A fleet from its catalogue to its results: bags, robots and models; what has changed is computed again."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, reduce
from operator import add
from pathlib import Path
from typing import TypeVar

import numpy as np

from inertid_ros.config.configuration import Configuration
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import InertidError
from inertid_ros.fleet import model_distribution
from inertid_ros.fleet.bag_stage import BagOutcome, BagStage, ResultStore, prepared_folder
from inertid_ros.fleet.catalogue import Catalogue, FleetProblem, serials_of
from inertid_ros.fleet.cluster import Cluster, Failed
from inertid_ros.fleet.fetching import read_text
from inertid_ros.fleet.hierarchy import Likelihoods
from inertid_ros.fleet.jobs import (
    EstimateJob,
    JobResult,
    ParameterEstimates,
    RobotJob,
    StoredBag,
    estimate_job,
    key_of,
    robot_job,
)
from inertid_ros.identification.assessment.gate import Verdict
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information_file import information_from_bytes
from inertid_ros.robot.model import load_model, model_options

ShowProgress = Callable[[str, float], None]
Job = TypeVar("Job")
Result = TypeVar("Result")
_PROGRESS = {"bags": (0.0, 0.8), "robots": (0.8, 0.9), "models": (0.9, 0.92), "results": (0.92, 1.0)}


@dataclass(frozen=True)
class ModelPopulation:
    """The robots of a model.

    Attributes
    ----------
    serials : tuple of str
        Robots with results, in order.
    distribution, within
        None for fewer than :data:`.MIN_ROBOTS` robots; ``within (r,)`` is the standard deviation of base parameters by
        the data of one robot, median over robots (SI).
    outliers : mapping of str to Outlier
        By serial number.
    """

    model: str
    serials: tuple[str, ...]
    distribution: model_distribution.ModelDistribution | None = None
    within: Array | None = None
    outliers: Mapping[str, model_distribution.Outlier] = field(default_factory=dict)


def model_population(
    name: str, urdf: str, configuration: Configuration, robots: Mapping[str, JobResult]
) -> ModelPopulation:
    """Estimate the distribution of a model's robots, and find outlying ones.

    Parameters
    ----------
    urdf : str
        Content of the URDF of one of the robots; its bodies are the prior of the mean.
    robots : mapping of str to JobResult
        By serial number.
    """
    serials = tuple(sorted(robots))
    if len(serials) < model_distribution.MIN_ROBOTS:
        return ModelPopulation(name, serials)
    model = load_model(urdf, model_options(configuration.robot))
    information = [information_from_bytes(robots[serial].information, serial) for serial in serials]
    coordinates = model_distribution.BaseCoordinates.from_model(model, information[0])
    pairs = [
        coordinates.likelihood(robot, np.array(robots[serial].summary["deviation"]))
        for robot, serial in zip(information, serials, strict=True)
    ]
    likelihoods = Likelihoods(*(np.array(part) for part in zip(*pairs, strict=True)))
    # Shapes of links by the data of all robots: those of a URDF may be far off.
    pooled = identify(model, reduce(add, information), configuration.identify)
    changes = model_distribution.changes_of(model.layout, pooled.parameters)
    distribution, outliers = model_distribution.outlying_robots(coordinates, likelihoods, changes)
    inverse = np.linalg.inv(coordinates.prior_covariance)
    deviations = [np.sqrt(np.diagonal(np.linalg.inv(precision + inverse))) for precision in likelihoods.precision]
    within = coordinates.scale * np.median(deviations, axis=0)
    by_serial = {serials[outlier.robot]: outlier for outlier in outliers}
    return ModelPopulation(name, serials, distribution, within, by_serial)


@dataclass(frozen=True)
class FleetOutcome:
    """Results of a fleet.

    Attributes
    ----------
    bags : tuple of BagOutcome
        In the order of the catalogue.
    robots, estimates : mapping
        By serial number.
    models : mapping of str to ModelPopulation
        By name.
    seconds : mapping of str to float
        Duration by stage.
    """

    catalogue: Catalogue
    bags: tuple[BagOutcome, ...]
    robots: Mapping[str, JobResult]
    models: Mapping[str, ModelPopulation]
    estimates: Mapping[str, ParameterEstimates]
    problems: tuple[FleetProblem, ...]
    seconds: Mapping[str, float]

    @property
    def computed_bags(self) -> int:
        return sum(bag.computed for bag in self.bags)

    @property
    def failed(self) -> bool:
        """Whether something could not be read or written."""
        return any(problem.input for problem in self.problems)

    @property
    def rejected(self) -> bool:
        """Whether a bag or a robot must not be used."""
        verdicts = [bag.summary.get("verdict") for bag in self.bags]
        verdicts += [estimate.decision["verdict"] for estimate in self.estimates.values()]
        return Verdict.REJECT.value in verdicts


def run_fleet(
    catalogue: Catalogue,
    configuration: Configuration,
    directory: Path,
    cluster: Cluster,
    progress: ShowProgress = lambda stage, fraction: None,
) -> FleetOutcome:
    """Process a fleet; results of an earlier run are reused if nothing that they depend on has changed.

    Parameters
    ----------
    configuration : Configuration
        From :func:`.fleet_configuration`.
    directory : Path
        Folder of the results that the next run reuses.

    Raises
    ------
    OutputError
        The folder cannot be written, or holds something else.
    """
    return _Run(catalogue, configuration, prepared_folder(directory), cluster, progress).outcome()


class _Run:
    """State of one run."""

    def __init__(
        self, catalogue: Catalogue, configuration: Configuration, folder: Path, on: Cluster, progress: ShowProgress
    ) -> None:
        self.catalogue, self.configuration, self.cluster, self.progress = catalogue, configuration, on, progress
        self.problems = list(catalogue.problems)
        self.bags = BagStage(catalogue, configuration, folder / "bags")
        self.robot_store = ResultStore(folder / "robots")
        self.seconds: dict[str, float] = {}

    def outcome(self) -> FleetOutcome:
        with self._timed("bags"):
            urdfs = self._urdfs()
            bags = self.bags.outcomes(urdfs, self.cluster, lambda fraction: self._show("bags", fraction))
        with self._timed("robots"):
            robots = self._robots(urdfs, bags)
        with self._timed("models"):
            models = self._models(urdfs, robots)
        with self._timed("results"):
            estimates = self._estimates(urdfs, robots, models)
        problems = [*self.problems, *self.bags.problems, *self.bags.store.problems, *self.robot_store.problems]
        return FleetOutcome(self.catalogue, bags, robots, models, estimates, tuple(problems), self.seconds)

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        self._show(stage, 0.0)
        start = time.perf_counter()
        yield
        self.seconds[stage] = time.perf_counter() - start

    def _show(self, stage: str, fraction: float) -> None:
        begin, end = _PROGRESS[stage]
        self.progress(stage, begin + (end - begin) * fraction)

    def _urdfs(self) -> dict[str, str]:
        """URDF text of every robot whose URDF is usable and has the kinematics of its model."""
        model_hash = cache(lambda text: load_model(text, model_options(self.configuration.robot)).hash)

        @cache
        def urdf(url: str) -> tuple[str, str] | InertidError:
            """Text and hash of its kinematics, or why it cannot be used."""
            try:
                text = read_text(url)
            except InertidError as error:
                return error
            try:
                return text, model_hash(text)
            except InertidError as error:
                return type(error)(f"{url}: {error}")

        usable: dict[str, tuple[str, str]] = {}
        hashes: dict[str, Counter[str]] = defaultdict(Counter)  # by model
        for serial, robot in self.catalogue.robots.items():
            answer = urdf(robot.urdf)
            if isinstance(answer, InertidError):
                self.problems.append(FleetProblem(str(answer), serial))
            else:
                usable[serial] = answer
                hashes[robot.model][answer[1]] += 1
        texts = {}
        for serial, (text, key) in usable.items():
            robot = self.catalogue.robots[serial]
            if key == hashes[robot.model].most_common(1)[0][0]:
                texts[serial] = text
            else:
                reason = f"has other joints than most robots of model '{robot.model}'; correct the URDF or the model"
                self.problems.append(FleetProblem(f"{robot.urdf}: {reason}", serial))
        return texts

    def _robots(self, urdfs: Mapping[str, str], bags: tuple[BagOutcome, ...]) -> dict[str, JobResult]:
        """Joint information and drift of every robot that has a usable bag."""
        used = {outcome.bag: outcome for outcome in bags if outcome.used}
        robots: dict[str, JobResult] = {}
        jobs: dict[str, RobotJob] = {}
        keys: dict[str, str] = {}
        for serial, robot_bags in serials_of(used).items():
            outcomes = [used[bag] for bag in robot_bags]
            parts = [f"{outcome.key} {outcome.bag.day}" for outcome in outcomes]
            key = keys[serial] = key_of(urdfs[serial], *parts, configuration=self.configuration)
            summary = self.robot_store.read(key)
            if summary is not None:
                robots[serial] = JobResult(summary, self.robot_store.information(key))
                continue
            stored = [
                StoredBag(outcome.bag.url, outcome.bag.day, outcome.summary, self.bags.store.information(outcome.key))
                for outcome in outcomes
            ]
            jobs[serial] = RobotJob(urdfs[serial], self.configuration, tuple(stored))
        for serial, result in self._results("robots", robot_job, jobs):
            robots[serial] = result
            self.robot_store.write(keys[serial], result)
        return robots

    def _results(
        self, stage: str, function: Callable[[Job], Result], jobs: Mapping[str, Job]
    ) -> Iterator[tuple[str, Result]]:
        """Results by serial number in order of completion; failures become problems."""
        for done, (serial, result) in enumerate(self.cluster.results(function, jobs), 1):
            self._show(stage, done / len(jobs))
            if isinstance(result, Failed):
                self.problems.append(FleetProblem(result.message, serial))
            else:
                yield serial, result

    def _models(self, urdfs: Mapping[str, str], robots: Mapping[str, JobResult]) -> dict[str, ModelPopulation]:
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

    def _estimates(
        self, urdfs: Mapping[str, str], robots: Mapping[str, JobResult], models: Mapping[str, ModelPopulation]
    ) -> dict[str, ParameterEstimates]:
        """Parameters of every robot; an outlying one starts from its URDF, not from the distribution."""
        jobs: dict[str, EstimateJob] = {}
        for population in models.values():
            shared = population.distribution
            for serial in population.serials:
                prior = None if shared is None or serial in population.outliers else shared.prior_of_robot
                jobs[serial] = EstimateJob(urdfs[serial], self.configuration, robots[serial].information, prior)
        return dict(sorted(self._results("results", estimate_job, jobs)))
