"""Payloads of a simulated Panda from five seconds of ordinary motion: errors, and coverage of the intervals."""

import logging
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from studies.payload_study import DRIFT, CalibratedPanda, random_box
from tables import machine, publish, table

from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import InertidError
from inertid_ros.core.inertial_parameters import MassComInertia
from inertid_ros.payload.payload import Payload

ARMS, DRAWS, REFERENCES = 20, 10, 2
GIVEN_MASS = 2.0
ELEMENTS = ("xx", "xy", "xz", "yy", "yz", "zz")
QUANTITIES = ("mass", *(f"com {axis}" for axis in "xyz"), *(f"inertia {axes}" for axes in ELEMENTS))


@dataclass(frozen=True)
class Draw:
    """One box and its estimate: ``(10,)`` each; ``seconds`` is the time of preparation and estimate, ``refused`` the
    number of earlier boxes that the arm could not hold or move."""

    truth: Array
    value: Array
    deviation: Array
    interval: Array
    seconds: float
    refused: int

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Truth inside the 95 % interval ``(10,)``."""
        return (self.interval[:, 0] <= self.truth) & (self.truth <= self.interval[:, 1])


def draws(
    arm: CalibratedPanda, count: int, seed: int, mass: float | None = None, reference: bool = False
) -> Iterator[Draw]:
    """Boxes that the arm can hold, one after another."""
    index = refused = 0
    while count:
        box = random_box(np.random.default_rng([arm.seed, seed, index]), mass)
        try:
            begin = time.perf_counter()
            payload = arm.payload(box, 1000 * seed + index, reference)
        except InertidError as error:
            logging.error("arm %d, %.2f kg: %s", arm.seed, box.mass, error)
            refused += 1
        else:
            yield _draw(box, payload, time.perf_counter() - begin, refused)
            count, refused = count - 1, 0
        index += 1


def _draw(box: MassComInertia, payload: Payload, seconds: float, refused: int) -> Draw:
    found = (payload.mass, *payload.com, *payload.inertia)
    value, deviation = np.array([each.value for each in found]), np.array([each.deviation for each in found])
    return Draw(box.numbers, value, deviation, np.array([each.interval for each in found]), seconds, refused)


def coverage(found: list[Draw]) -> list[list[str]]:
    """Rows of a table: quantity, share of intervals with the truth, error over stated deviation, median width."""
    inside = np.array([each.inside for each in found])
    scaled = np.array([(each.value - each.truth) / each.deviation for each in found])
    widths = np.array([0.5 * np.diff(each.interval, axis=1)[:, 0] for each in found])
    units = ["kg", *["mm"] * 3, *["g m^2"] * 6]
    factors = np.array([1.0, *[1e3] * 9])
    return [
        [name, f"{100 * share:.1f} %", f"{ratio:.2f}", f"{width:.3g} {unit}"]
        for name, share, ratio, width, unit in zip(
            QUANTITIES, inside.mean(axis=0), np.sqrt((scaled**2).mean(axis=0)), np.median(widths, axis=0) * factors,
            units, strict=True,
        )
    ] + [["all", f"{100 * inside.mean():.1f} %", f"{np.sqrt((scaled**2).mean()):.2f}", ""]]  # fmt: skip


def errors(found: list[Draw]) -> list[str]:
    """Largest errors of mass [%] and centre of mass [mm], and medians."""
    mass = np.array([100 * abs(each.value[0] / each.truth[0] - 1) for each in found])
    com = np.array([1e3 * np.linalg.norm((each.value - each.truth)[1:4]) for each in found])
    return [f"{np.median(mass):.2f}", f"{mass.max():.2f}", f"{np.median(com):.2f}", f"{com.max():.2f}"]


def main() -> None:
    logging.disable(logging.WARNING)
    arms = int(sys.argv[1]) if len(sys.argv) > 1 else ARMS
    everything: dict[str, list[Draw]] = {"0.2 to 5 kg": [], "2 kg": [], "2 kg, with a reference": []}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(arms):
            arm = CalibratedPanda(seed, str(Path(folder) / f"arm{seed}"))
            everything["0.2 to 5 kg"] += draws(arm, DRAWS, 1)
            everything["2 kg"] += draws(arm, REFERENCES, 2, GIVEN_MASS)
            everything["2 kg, with a reference"] += draws(arm, REFERENCES, 2, GIVEN_MASS, reference=True)
    found = everything["0.2 to 5 kg"]
    rows = [[name, len(own), *errors(own), f"{100 * np.mean([each.inside for each in own]):.1f}"]
            for name, own in everything.items()]  # fmt: skip
    header = ["payload", "draws", "mass, median [%]", "largest", "centre of mass, median [mm]", "largest",
              "true value in 95 % interval [%]"]  # fmt: skip
    text = f"""## Payloads

A simulated Panda (MuJoCo, friction, noise) holds a homogeneous box with sides of 4 to 25 cm in any orientation. The arm
was calibrated by `inertid identify` from one motion of 20 s, starting from a wrong URDF. Each estimate is
`inertid payload` on one recording of 5 s: four movements from rest to rest. Since the calibration, the friction of
every joint has changed by {100 * DRIFT.since_calibration:.0f} % (standard deviation), and between the recordings of
reference and payload by {100 * DRIFT.between_recordings:.0f} %. {arms} arms; boxes that an arm cannot hold or move
within its limits are refused and drawn again ({sum(each.refused for each in found)} refused boxes for
{len(found)} draws of 0.2 to 5 kg; the maker allows 3 kg).

{table(header, rows)}

95 % intervals of the {len(found)} draws of 0.2 to 5 kg:

{table(["quantity", "true value inside", "RMS of error over stated deviation", "half width, median"], coverage(found))}

Simulation, preparation and estimate take {np.median([each.seconds for each in found]):.1f} s (median).

{machine()}"""
    publish("payload", text)


if __name__ == "__main__":
    main()
