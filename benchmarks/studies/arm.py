"""A simulated UR10 with friction, rotor inertia and offset, and its samples in parts of any size."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from lxml import etree

from inertid_ros.config.robot import RobotOptions
from inertid_ros.core.arrays import Array
from inertid_ros.core.samples import Samples
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.body_changes import perturb
from inertid_ros.robot.model import RobotModel, load_model

URDF = "ur_description/urdf/ur10_robot.urdf"
TERMS = ("rotor_inertia", "viscous", "coulomb", "offset")
RATE_HZ, NOISE = 1000.0, 0.5  # N m
PART = 10_000  # samples


def urdf() -> str:
    """URDF text of the arm, from example-robot-data, without meshes."""
    places = (Path(site) / "cmeel.prefix" / "share" / "example-robot-data" / "robots" / URDF for site in sys.path)
    file = next((place for place in places if place.exists()), None)
    if file is None:
        sys.exit("skipped: the UR10 of example-robot-data is not installed; pip install example-robot-data")
    root = etree.fromstring(file.read_bytes())
    for link in root.findall("link"):
        for tag in ("visual", "collision"):
            for element in link.findall(tag):
                link.remove(element)
    return etree.tostring(root, encoding="unicode")


def model(text: str) -> RobotModel:
    return load_model(text, RobotOptions(drive_terms=TERMS))


def truth(robot: RobotModel) -> Array:
    """Parameters of the true robot; its URDF is wrong and does not contain drive parameters."""
    bodies = perturb(robot, np.random.default_rng(0))
    drives = [0.5, 5.0, 3.0, 0.2]  # kg m^2, N m s/rad, N m, N m
    return np.concatenate([bodies.ravel(), np.repeat(drives, robot.joints)])


def parts(robot: RobotModel, count: int, part: int = PART) -> Iterator[Samples]:
    """Samples of one long motion, made on request; the motion does not depend on the size of the parts."""
    rng = np.random.default_rng(1)
    frequency = 2 * np.pi * rng.uniform(0.05, 0.5, (6, robot.joints))
    amplitude = rng.uniform(0.1, 0.4, frequency.shape)
    phase = rng.uniform(0, 2 * np.pi, frequency.shape)
    parameters = truth(robot)
    for start in range(0, count, part):
        time = np.arange(start, min(start + part, count)) / RATE_HZ
        angle = time[:, None, None] * frequency + phase
        q = np.sum(amplitude * np.sin(angle), axis=1)
        v = np.sum(amplitude * frequency * np.cos(angle), axis=1)
        a = np.sum(-amplitude * frequency**2 * np.sin(angle), axis=1)
        every = np.ones(q.shape, dtype=bool)
        samples = Samples(time, q, v, a, np.zeros_like(q), every, every[:, 0], "UR10")
        samples.tau[:] = ForceEquations(robot).predict(parameters, samples) + NOISE * rng.standard_normal(q.shape)
        yield samples
