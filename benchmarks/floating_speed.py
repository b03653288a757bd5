"""Speed on a floating base: equations of humanoids built and compressed, and the consistent fit of 35 bodies."""

import logging
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from tables import machine, publish, table

from inertid_ros.config.identification import IdentifyOptions
from inertid_ros.config.robot import DRIVE_TERMS, RobotOptions
from inertid_ros.core.samples import Samples
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.map_fit import FitData, MapFit
from inertid_ros.identification.solvers.constraints import Constraints
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.simulation.example_robots import example_urdf

HUMANOIDS = {
    "g1_description/urdf/g1_29dof_rev_1_0.urdf": (),
    "simple_humanoid_description/urdf/simple_humanoid.urdf": (),
    "talos_data/robots/talos_full_v2.urdf": ("gripper_left_joint", "gripper_right_joint"),
}
LARGE, LARGE_JOINTS = "g1_description/urdf/g1_29dof_with_hand_rev_1_0.urdf", 34
SAMPLES, REPEATS, NOISE = 32_768, 7, 0.02  # half a minute at 1 kHz
BASE = slice(6, None)


def seconds(work: Callable[[], object]) -> float:
    """Median processor time [s]."""
    found = []
    for _ in range(REPEATS):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return statistics.median(found)


def states(model: RobotModel, count: int, seed: int = 0) -> Samples:
    """Random states with noise and the forces of a robot with bodies a tenth heavier than in the URDF."""
    rng = np.random.default_rng(seed)
    quaternions = rng.normal(size=(count, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    q = np.hstack([rng.normal(size=(count, 3)), quaternions, rng.uniform(-1, 1, (count, model.joints))])
    v, a = rng.normal(size=(2, count, model.velocities))
    every = np.ones(v.shape, dtype=bool)
    samples = Samples(np.arange(count, dtype=float), q, v, a, np.zeros_like(v), every, every[:, 0])
    tau = ForceEquations(model).predict(1.1 * model.prior, samples)
    return replace(samples, tau=tau + NOISE * tau.std(axis=0) * rng.normal(size=tau.shape))


def compression(path: str, held: Sequence[str]) -> list[object]:
    """A row of the table: samples per second built, built and compressed, and of base rows alone."""
    model = load_model(example_urdf(path), RobotOptions(dict.fromkeys(held, 0.0), base="free"))
    equations, samples = ForceEquations(model), states(model, SAMPLES)
    mask = samples.mask.copy()
    mask[:, BASE] = False
    writer = equations.writer()
    work = np.zeros((equations.count, writer.width, 1024))

    def build() -> None:
        for start in range(0, SAMPLES, 1024):
            writer.write(samples, slice(start, start + 1024), work)

    times = (
        seconds(build),
        seconds(lambda: compress(equations, [samples])),
        seconds(lambda: compress(equations, [replace(samples, mask=mask)])),
    )
    return [Path(path).stem, model.joints, *(f"{SAMPLES / value:,.0f}" for value in times)]


def fit(terms: tuple[str, ...], held: Sequence[str]) -> list[object]:
    """A row of the table: milliseconds of whitening, of one solve, and of the whole iteration."""
    model = load_model(example_urdf(LARGE), RobotOptions(dict.fromkeys(held, 0.0), drive_terms=terms, base="free"))
    equations = ForceEquations(model)
    information = compress(equations, [states(model, SAMPLES)])
    given = MapFit.of(FitData(equations, (), information), IdentifyOptions(), Constraints())
    R, z = given.map_problem.coordinates.normalise(*information.whitened(1 / given.deviation))
    times = (
        seconds(lambda: information.whitened(1 / given.deviation)),
        seconds(lambda: given.map_problem.solve(R, z, given.regularization)),
        seconds(lambda: given.reweighted()),
    )
    return [len(model.link_names), model.layout.size, *(f"{1e3 * value:.0f}" for value in times)]


def main() -> None:
    logging.disable(logging.WARNING)
    if not example_urdf(LARGE).is_file():
        sys.exit("skipped: the humanoids of example-robot-data are not installed; pip install example-robot-data")
    joints = load_model(example_urdf(LARGE), RobotOptions(base="free")).joint_names
    held = joints[LARGE_JOINTS:]
    speeds = table(
        ["robot", "joints", "equations built [1/s]", "built and compressed [1/s]", "base rows alone [1/s]"],
        [compression(path, locked) for path, locked in HUMANOIDS.items()],
    )
    fits = table(
        ["bodies", "parameters", "whitening [ms]", "consistent fit [ms]", "with weights and prior learnt [ms]"],
        [fit(terms, held) for terms in ((), DRIVE_TERMS)],
    )
    publish(
        "floating-speed",
        f"""## Speed on a floating base

Samples per second of processor time of one thread, {SAMPLES:,} samples, medians of {REPEATS}: six base rows and one
row per joint, with all drive terms.

{speeds}

The consistent fit of a humanoid after compression, entropic prior, started cold: one solve, and the whole iteration
that learns the weights of {LARGE_JOINTS + 6} channels and the prior spread.

{fits}

{machine()}""",
    )


if __name__ == "__main__":
    main()
