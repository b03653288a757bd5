"""A fleet from its catalogue to its results: bags, robots and models, computed again where something has changed."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np

from inertid_ros.config.configuration import Configuration
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import InertidError
from inertid_ros.fleet.bag_stage import BagOutcome, BagStage, KeptResults, prepared_folder
from inertid_ros.fleet.catalogue import Catalogue, FleetProblem, serials_of
from inertid_ros.fleet.cluster import Cluster, Failed
from inertid_ros.fleet.fetching import read_text
from inertid_ros.fleet.hierarchy import Likelihoods
from inertid_ros.fleet.jobs import (
    EstimateJob,
    ParameterEstimates,
    RobotJob,
    RobotResult,
    StoredBag,
    estimate_job,
    key_of,
    robot_job,
)
from inertid_ros.fleet.model_distribution import (
    FEWEST_ROBOTS,
    BaseCoordinates,
    ModelDistribution,
    Outlier,
    changes_of,
    outlying_robots,
)
from inertid_ros.identification.assessment.gate import Verdict
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information_file import information_from_bytes
from inertid_ros.robot.model import load_model, model_options

ShowProgress = Callable[[str, float], None]
_PARTS = {"bags": (0.0, 0.8), "robots": (0.8, 0.9), "models": (0.9, 0.92), "results": (0.92, 1.0)}


@dataclass(frozen=True)
class ModelPopulation:
    """The robots of a model.

    Attributes
    ----------
    model : str
        Its name.
    serials : tuple of str
        Of the robots with results, in order.
    distribution : ModelDistribution or None
        None of fewer than :data:`.FEWEST_ROBOTS` robots.
    within : ndarray or None, shape (r,)
        Standard deviation of base parameters by the data of one robot, median over robots (SI).
    outliers : mapping of str to Outlier
        By serial number.
    """

    model: str
    serials: tuple[str, ...]
    distribution: ModelDistribution | None = None
    within: Array | None = None
    outliers: Mapping[str, Outlier] = field(default_factory=dict)


def model_population(
    name: str, urdf: str, configuration: Configuration, robots: Mapping[str, RobotResult]
) -> ModelPopulation:
    """Distribution of a model's robots, and its outlying ones.

    Parameters
    ----------
    urdf : str
        Content of the URDF of one of the robots, whose bodies are the prior of the mean.
    robots : mapping of str to RobotResult
        By serial number.

    Raises
    ------
    InertidError
        The URDF cannot be used, or information is damaged.
    """
    serials = tuple(sorted(robots))
    if len(serials) < FEWEST_ROBOTS:
        return ModelPopulation(name, serials)
    model = load_model(urdf, model_options(configuration.robot))
    known = [information_from_bytes(robots[serial].information, serial) for serial in serials]
    coordinates = BaseCoordinates.of(model, known[0])
    likelihoods = [
        coordinates.likelihood(each, np.array(robots[serial].summary["deviation"]))
        for each, serial in zip(known, serials, strict=True)
    ]
    every = Likelihoods(*(np.array(each) for each in zip(*likelihoods, strict=True)))
    # Shapes of links by the data of all: those of a URDF may be far off.
    pooled = identify(model, reduce(add, known), configuration.identify)
    changes = changes_of(model.layout, pooled.parameters)
    distribution, outliers = outlying_robots(coordinates, every, changes)
    inverse = np.linalg.inv(coordinates.prior_covariance)
    within = np.median([np.sqrt(np.diagonal(np.linalg.inv(each + inverse))) for each in every.precision], axis=0)
    found = {serials[outlier.robot]: outlier for outlier in outliers}
    return ModelPopulation(name, serials, distribution, coordinates.scale * within, found)


@dataclass(frozen=True)
class FleetOutcome:
    """Results of a fleet.

    Attributes
    ----------
    catalogue : Catalogue
    bags : tuple of BagOutcome
        In the order of the catalogue.
    robots : mapping of str to RobotResult
        By serial number.
    models : mapping of str to ModelPopulation
        By name.
    estimates : mapping of str to ParameterEstimates
        By serial number.
    problems : tuple of FleetProblem
        What could not be used.
    seconds : mapping of str to float
        Of the stages.
    """

    catalogue: Catalogue
    bags: tuple[BagOutcome, ...]
    robots: Mapping[str, RobotResult]
    models: Mapping[str, ModelPopulation]
    estimates: Mapping[str, ParameterEstimates]
    problems: tuple[FleetProblem, ...]
    seconds: Mapping[str, float]

    @property
    def computed_bags(self) -> int:
        """Bags that were computed in this run."""
        return sum(bag.computed for bag in self.bags)

    @property
    def failed(self) -> bool:
        """Whether something could not be used at all."""
        return any(problem.input for problem in self.problems)

    @property
    def rejected(self) -> bool:
        """Whether a bag or a robot is not to be used."""
        bags = any(outcome.summary.get("verdict") == Verdict.REJECT.value for outcome in self.bags)
        return bags or any(e.decision["verdict"] == Verdict.REJECT.value for e in self.estimates.values())


def run_fleet(
    catalogue: Catalogue,
    configuration: Configuration,
    directory: Path,
    cluster: Cluster,
    progress: ShowProgress = lambda stage, fraction: None,
) -> FleetOutcome:
    """Process a fleet; what the folder has of an earlier run is used where nothing has changed.

    Parameters
    ----------
    configuration : Configuration
        See :func:`.fleet_configuration.fleet_configuration`.
    directory : Path
        Results, and what is kept for the next run.

    Raises
    ------
    OutputError
        The folder cannot be written at all, or holds something else.
    """
    return _Run(catalogue, configuration, prepared_folder(directory), cluster, progress).outcome()


class _Run:
    """State of one run."""

    def __init__(
        self, catalogue: Catalogue, configuration: Configuration, folder: Path, on: Cluster, progress: ShowProgress
    ) -> None:
        self.catalogue, self.configuration, self.cluster, self.progress = catalogue, configuration, on, progress
        self.problems = list(catalogue.problems)
        self.bags, self.kept_robots = (
            BagStage(catalogue, configuration, folder / "bags"),
            KeptResults(folder / "robots"),
        )
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
        problems = [*self.problems, *self.bags.problems, *self.bags.kept.problems, *self.kept_robots.problems]
        return FleetOutcome(self.catalogue, bags, robots, models, estimates, tuple(problems), self.seconds)

    def _timed(self, stage: str) -> "_Timed":
        self._show(stage, 0.0)
        return _Timed(self.seconds, stage)

    def _show(self, stage: str, fraction: float) -> None:
        begin, end = _PARTS[stage]
        self.progress(stage, begin + (end - begin) * fraction)

    def _urdfs(self) -> dict[str, str]:
        """Content of the URDF of every robot that has a usable one, and that of its model's kinematics."""
        texts: dict[str, str | InertidError] = {}
        hashes: dict[str, str] = {}
        found: dict[str, str] = {}
        for serial, robot in self.catalogue.robots.items():
            if robot.urdf not in texts:
                try:
                    texts[robot.urdf] = read_text(robot.urdf)
                except InertidError as error:
                    texts[robot.urdf] = error
            text = texts[robot.urdf]
            if isinstance(text, str) and text not in hashes:
                try:
                    hashes[text] = load_model(text, model_options(self.configuration.robot)).hash
                except InertidError as error:
                    texts[robot.urdf] = text = type(error)(f"{robot.urdf}: {error}")
            if isinstance(text, InertidError):
                self.problems.append(FleetProblem(serial, "", f"{serial}: {text}"))
            else:
                found[serial] = text
        for serial, model in self._of_other_kinematics({serial: hashes[text] for serial, text in found.items()}):
            urdf = self.catalogue.robots[serial].urdf
            message = f"{urdf}: has other joints than most robots of model '{model}'; correct the URDF or the model"
            self.problems.append(FleetProblem(serial, "", message))
            del found[serial]
        return found

    def _of_other_kinematics(self, hashes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Robots whose kinematics are not those of most robots of their model, and the model."""
        models: dict[str, Counter[str]] = {}
        for serial, key in hashes.items():
            models.setdefault(self.catalogue.robots[serial].model, Counter())[key] += 1
        for serial, key in hashes.items():
            model = self.catalogue.robots[serial].model
            if key != models[model].most_common(1)[0][0]:
                yield serial, model

    def _robots(self, urdfs: Mapping[str, str], bags: tuple[BagOutcome, ...]) -> dict[str, RobotResult]:
        """Joint information and drift of every robot that has a usable bag."""
        used = {outcome.bag: outcome for outcome in bags if outcome.used}
        robots: dict[str, RobotResult] = {}
        jobs: dict[str, RobotJob] = {}
        keys: dict[str, str] = {}
        for serial, every in serials_of(used).items():
            of_robot = [used[bag] for bag in every]
            parts = [f"{outcome.key} {outcome.bag.day}" for outcome in of_robot]
            key = keys[serial] = key_of(urdfs[serial], *parts, configuration=self.configuration)
            summary = self.kept_robots.store.read(key)
            if summary is not None:
                robots[serial] = RobotResult(summary, self.kept_robots.information(key))
                continue
            stored = [
                StoredBag(each.bag.url, each.bag.day, each.summary, self.bags.kept.information(each.key))
                for each in of_robot
            ]
            jobs[serial] = RobotJob(serial, urdfs[serial], self.configuration, tuple(stored))
        for done, (serial, result) in enumerate(self.cluster.results(robot_job, jobs), 1):
            self._show("robots", done / len(jobs))
            if isinstance(result, Failed):
                self.problems.append(FleetProblem(serial, "", f"{serial}: {result.message}"))
                continue
            robots[serial] = result
            self.kept_robots.write(keys[serial], result.summary, result.information)
        return robots

    def _models(self, urdfs: Mapping[str, str], robots: Mapping[str, RobotResult]) -> dict[str, ModelPopulation]:
        by_model: dict[str, dict[str, RobotResult]] = {}
        for serial, result in robots.items():
            by_model.setdefault(self.catalogue.robots[serial].model, {})[serial] = result
        found = {}
        for name, members in sorted(by_model.items()):
            try:
                found[name] = model_population(name, urdfs[min(members)], self.configuration, members)
            except InertidError as error:
                self.problems.append(FleetProblem("", "", f"model '{name}': {error}"))
        return found

    def _estimates(
        self, urdfs: Mapping[str, str], robots: Mapping[str, RobotResult], models: Mapping[str, ModelPopulation]
    ) -> dict[str, ParameterEstimates]:
        """Parameters of every robot; one that is outlying starts from its URDF, not from the others."""
        jobs: dict[str, EstimateJob] = {}
        for population in models.values():
            known = population.distribution
            for serial in population.serials:
                prior = None if known is None or serial in population.outliers else known.prior_of_robot
                jobs[serial] = EstimateJob(urdfs[serial], self.configuration, robots[serial].information, prior)
        estimates: dict[str, ParameterEstimates] = {}
        for done, (serial, result) in enumerate(self.cluster.results(estimate_job, jobs), 1):
            self._show("results", done / len(jobs))
            if isinstance(result, Failed):
                self.problems.append(FleetProblem(serial, "", f"{serial}: {result.message}"))
            else:
                estimates[serial] = result
        return dict(sorted(estimates.items()))


class _Timed:
    """Adds the time of a block to the stages."""

    def __init__(self, seconds: dict[str, float], stage: str) -> None:
        self.seconds, self.stage = seconds, stage

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *error: object) -> None:
        self.seconds[self.stage] = time.perf_counter() - self.start
