"""Torque from efforts without gravity: accuracy against efforts with gravity, and coverage of the intervals of masses.

    PYTHONPATH=benchmarks:test python benchmarks/gravity_compensated.py --draws 100

The controller's model is the given URDF, or wrong by 20 % in the mass of every link. Torque with gravity is compared on
a held-out motion.
"""

import argparse
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from studies.simulated_panda import MODEL, SimulatedPanda
from support.recordings.spoiling import without_gravity
from tables import machine, publish, table

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.calibration.dataset import Dataset
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.robot import RobotOptions
from inertid_ros.robot.model import load_model

MASS_ERROR = 0.2
KINDS = (
    "with gravity",
    "without gravity, by the URDF's masses",
    "without gravity, by masses that differ by 20 % from these",
)


@dataclass(frozen=True)
class Result:
    """Relative error of torque with gravity on the held-out motion, and whether each mass lies in its interval."""

    error: float
    masses_covered: NDArray[np.bool_]


def results_of(seed: int) -> list[Result]:
    """One result per kind of effort."""
    arm = SimulatedPanda(seed, {})
    recordings = [arm.record(name, index) for index, name in enumerate(("first", "second", "held out"))]
    signs = np.random.default_rng(seed).choice([-1, 1], len(arm.given.link_names))
    wrong = arm.given.body_prior * (1 + MASS_ERROR * signs)[:, None]
    changes = (
        lambda recording: recording,
        partial(without_gravity, arm.true, arm.given.body_prior),
        partial(without_gravity, arm.true, wrong),
    )
    prepared = Dataset.screened(arm.given, Configuration(MODEL), recordings[2:])
    held_out = prepared.prepared(prepared.cutoff()).samples()[0]
    results: list[Result] = []
    for change in changes:
        effort = "torque" if not results else "gravity_compensated"
        configuration = Configuration(RobotOptions(locked_joints=MODEL.locked_joints, effort=effort))
        model = load_model(arm.given.urdf, configuration.robot)
        given = list(map(change, recordings))
        estimate = calibrate(model, given[:2], given[2:], configuration).estimate
        parameters = estimate.layout.without_compensation(estimate.parameters)
        error = (estimate.equations.predict(parameters, held_out) - held_out.tau)[held_out.mask]
        mass, interval = arm.true.body_prior[:, 0], estimate.interval[: estimate.layout.body_size : 10]
        inside = (interval[:, 0] <= mass) & (mass <= interval[:, 1])
        results.append(Result(float(np.linalg.norm(error) / np.linalg.norm(held_out.tau[held_out.mask])), inside))
    return results


def main() -> None:
    """Publish the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=100)
    draws = parser.parse_args().draws
    rows = []
    every = [results_of(seed) for seed in range(draws)]
    for kind, results in zip(KINDS, zip(*every, strict=True), strict=True):
        errors = np.array([result.error for result in results])
        ratio = errors / [with_gravity.error for with_gravity, *_ in every]
        covered = np.mean([result.masses_covered for result in results])
        rows.append([kind, f"{100 * np.median(errors):.2f}", f"{100 * errors.max():.2f}", f"{np.median(ratio):.2f}",
            f"{ratio.max():.2f}", f"{100 * covered:.1f}"])
    header = (
        "efforts", "error, median [%]", "largest [%]", "ratio, median", "largest", "masses within 95 % intervals [%]")
    publish("gravity-compensated", f"""{table(header, rows)}

{draws} draws of drives, noise, motions and errors of the URDF. *Error*: torque with gravity on a held-out motion, with
the noise of its measurement. *Ratio*: to the error from efforts with gravity, of the same draw.
Measured on {machine()}.""")


if __name__ == "__main__":
    main()
