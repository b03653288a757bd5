"""A simulated fleet on disk: slightly different robots of one model with drifting friction, and three bad robots."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
from support.recordings.synthetic import random_motion
from support.robots.random_robots import random_urdf

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.data.files.loading import write_npz
from inertid_ros.data.recording import Recording
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.body_changes import perturb, write_urdf
from inertid_ros.robot.model import RobotModel, load_model

JOINTS, SECONDS, RATE_HZ = 3, 8.0, 100.0
BETWEEN_BODIES, BETWEEN_FRICTION = 0.02, 0.05  # standard deviations between robots, relative
SCATTER = 0.01  # relative scatter of friction between bags
DRIFT = 0.3  # relative drift of Coulomb friction, standard deviation per year
DAYS_APART = 30.0
VISCOUS, COULOMB, EFFORT_NOISE, POSITION_NOISE = 0.4, 0.5, 0.02, 1e-5
TERMS = ("rotor_inertia", "viscous", "coulomb", "offset")
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
BAD = {"R001": "link2.m", "R002": "joint0.coulomb", "R003": "link2.com_y"}


@dataclass(frozen=True)
class SimulatedRobot:
    """One robot.

    Attributes
    ----------
    serial : str
    parameters : ndarray, shape (p,)
        Parameters on the first day.
    rates : ndarray, shape (n,)
        Rates of the Coulomb friction of its joints [N m per year].
    """

    serial: str
    parameters: Array
    rates: Array


class SimulatedFleet:
    """A fleet in a folder.

    Parameters
    ----------
    folder : Path
        Folder of recordings, URDF and catalogue.
    robots, bags : int
        Number of robots, and of bags of each.
    """

    def __init__(self, folder: Path, robots: int, bags: int, seed: int = 1) -> None:
        self.folder, self.bags = folder, bags
        rng = np.random.default_rng(seed)
        self.model = load_model(random_urdf(rng, JOINTS, branched=False), RobotOptions(drive_terms=TERMS))
        self.urdf = write_urdf(self.model, perturb(self.model, rng))
        self.robots = [self._robot(f"R{index + 1:03d}", rng) for index in range(robots)]

    def _robot(self, serial: str, rng: np.random.Generator) -> SimulatedRobot:
        layout, n = self.model.layout, self.model.joints
        parameters = self.model.prior.copy()
        bodies = layout.bodies(parameters)
        bodies *= 1 + BETWEEN_BODIES * rng.normal(size=(len(bodies), 1))
        parameters[layout.drive("viscous")] = VISCOUS * (1 + BETWEEN_FRICTION * rng.normal(size=n))
        parameters[layout.drive("coulomb")] = COULOMB * (1 + BETWEEN_FRICTION * rng.normal(size=n))
        rates = DRIFT * COULOMB * rng.normal(size=n)
        bad = BAD.get(serial, "")
        if bad == "link2.m":
            bodies[2] *= 1.25
        elif bad == "joint0.coulomb":
            parameters[layout.drive("coulomb")][0] *= 2.0
        elif bad == "link2.com_y":
            bodies[2, 2] += 0.03 * bodies[2, 0]
        return SimulatedRobot(serial, parameters, rates)

    def path(self, serial: str, bag: int) -> Path:
        """Recording of a robot."""
        return self.folder / f"{serial}_{bag:02d}.npz"

    def date(self, bag: int) -> datetime:
        """Date of the bags with a number."""
        return START + timedelta(days=DAYS_APART * bag)

    def write(self) -> Path:
        """Write all recordings and the catalogue."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "robot.urdf").write_text(self.urdf)
        for index, robot in enumerate(self.robots):
            for bag in range(self.bags):
                self.record(index, robot, bag)
        return self.write_catalogue({robot.serial: self.bags for robot in self.robots})

    def write_catalogue(self, bags: dict[str, int]) -> Path:
        """Write the catalogue with the given number of bags per robot."""
        content = {
            "robots": [{"serial": s, "model": "arm", "urdf": "robot.urdf"} for s in bags],
            "bags": [
                {"serial": s, "bag": self.path(s, bag).name, "date": self.date(bag).isoformat()}
                for s, count in bags.items()
                for bag in range(count)
            ],
        }
        file = self.folder / "catalogue.yaml"
        file.write_text(json.dumps(content, indent=0))  # JSON is YAML
        return file

    def record(self, index: int, robot: SimulatedRobot, bag: int) -> Path:
        """Write one recording with a separate motion."""
        rng = np.random.default_rng([index, bag])
        layout = self.model.layout
        parameters, years = robot.parameters.copy(), DAYS_APART * bag / 365.25
        coulomb = parameters[layout.drive("coulomb")] + years * robot.rates
        parameters[layout.drive("coulomb")] = coulomb * (1 + SCATTER * rng.normal(size=JOINTS))
        parameters[layout.drive("viscous")] *= 1 + SCATTER * rng.normal(size=JOINTS)
        path = self.path(robot.serial, bag)
        write_npz(recorded(self.model, parameters, SECONDS, RATE_HZ, rng, path.stem), path)
        return path


def recorded(
    model: RobotModel, parameters: Array, seconds: float, rate_hz: float, rng: np.random.Generator, name: str
) -> Recording:
    """Recording of a random motion."""
    time = np.arange(0.0, seconds, 1 / rate_hz)
    q, v, a = random_motion(rng, model.joints).sample(time)
    every = np.ones(q.shape, dtype=bool)
    effort = ForceEquations(model).predict(parameters, Samples(time, q, v, a, np.zeros_like(q), every, every[:, 0]))
    noise = rng.normal(size=(2, *q.shape))
    effort = effort + EFFORT_NOISE * noise[0]
    return Recording(model.joint_names, time, q + POSITION_NOISE * noise[1], effort, velocity=v, name=name)
