"""Identification of published robots from first recordings: without noise, with noise, with a weak joint, rounded.

Every robot of example-robot-data is simulated by inverse dynamics with bodies that are some tens of per cent off its
URDF, and calibrated with defaults: 20 s at 250 Hz of positions and efforts, no friction. Walking robots float, with
sensors of wrench and pose at the root.

    python benchmarks/published_robots.py [NAME...] [--seeds COUNT] [--joints MOST] [--above JOINTS] [--cases NAME...]
        [--record FILE]
"""

import argparse
import json
import logging
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from studies.published_robots import CASES, Trial, collection, natural_sizes, published_robot, trial
from tables import commit, machine, publish, table

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.core.arrays import Array
from inertid_ros.core.errors import InertidError
from inertid_ros.core.samples import Samples
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.base_parameters.closed_form import base_parameters_of_robot
from inertid_ros.regressors.equations import equations_of
from inertid_ros.robot.model import RobotModel

RIGHT = 1e-5  # relative to a base parameter's natural size


@dataclass(frozen=True)
class Found:
    """Outcome of one calibration.

    Attributes
    ----------
    held_out : float
        Error of predicted torque on a motion that was not fitted, without its noise, relative to the torque.
    floor : float
        Error of the measured torque of this motion, relative to the torque.
    base : ndarray, shape (r,)
        Errors of base parameters in natural sizes.
    masses : ndarray, shape (nb,)
        Errors of masses in their deviations.
    within : ndarray of bool, shape (nb,)
        Whether the 95 % interval of a mass holds its true value.
    """

    held_out: float
    floor: float
    base: Array
    masses: Array
    within: NDArray[np.bool_]
    seconds: float


def calibrated(one: Trial) -> Found:
    """Calibrate with defaults."""
    began = time.perf_counter()
    outcome = calibrate(one.model, [one.train], [one.held_out])
    return found(one, outcome.estimate, outcome.held_out[0], time.perf_counter() - began)


def found(one: Trial, estimate: Estimate, held_out: Samples, seconds: float) -> Found:
    equations, parameters = equations_of(one.model), one.parameters
    error = equations.predict(estimate.parameters, one.exact) - one.exact.tau
    measured = held_out.tau - equations.predict(parameters, held_out)
    size = np.linalg.norm(one.exact.tau)
    projection = base_parameters_of_robot(one.model).projection
    base = np.abs(projection @ (estimate.parameters - parameters))
    masses = [one.model.layout.body(body).start for body in range(len(one.model.link_names))]
    deviation = np.maximum(np.sqrt(np.diagonal(estimate.covariance)[masses]), np.finfo(float).tiny)
    interval = estimate.interval[masses]
    return Found(
        float(np.linalg.norm(error) / size),
        float(np.linalg.norm(measured[held_out.valid]) / np.linalg.norm(held_out.tau[held_out.valid])),
        base / np.sqrt(projection**2 @ natural_sizes(one) ** 2),
        np.abs(estimate.parameters - parameters)[masses] / deviation,
        np.asarray((interval[:, 0] <= parameters[masses]) & (parameters[masses] <= interval[:, 1]), dtype=bool),
        seconds,
    )


def attempt(name: str, case: str, one: Trial, seed: int) -> Found | None:
    """Run one calibration and print one line; None if it fails."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of numerical libraries: a user must not see them
            result = calibrated(one)
    except (InertidError, ArithmeticError, ValueError, Warning, np.linalg.LinAlgError) as error:
        print(name, case, seed, f"failed: {type(error).__name__}: {error}", sep=", ", flush=True)
        return None
    print(
        name, case, seed, f"held out {100 * result.held_out:.4f} % (measured {100 * result.floor:.4f} %)",
        f"base {result.base.max():.1e}", f"{result.within.sum()} of {len(result.within)} masses,"
        f" {result.masses.max():.1f} deviations", f"{result.seconds:.1f} s", sep=", ", flush=True,
    )  # fmt: skip
    return result


class Record:
    """Outcomes in a file of JSON lines, so that an ended run of hours can continue.

    Parameters
    ----------
    file : Path or None
        Outcomes of other commits in it are ignored. None: outcomes are not kept.
    """

    def __init__(self, file: Path | None) -> None:
        self._file, self._commit = file, commit()
        lines = file.read_text().splitlines() if file and file.exists() else []
        kept = (json.loads(line) for line in lines)
        self._kept: dict[tuple[str, str, int], dict[str, Any] | None] = {
            tuple(one["trial"]): one["found"] for one in kept if one["commit"] == self._commit
        }

    def attempt(self, name: str, case: str, model: RobotModel, seed: int) -> Found | None:
        """Recorded outcome of a trial, or the outcome of a new run."""
        key = name, case, seed
        if key not in self._kept:
            result = attempt(name, case, trial(model, case, seed), seed)
            self._kept[key] = json.loads(json.dumps(result and asdict(result), default=np.ndarray.tolist))
            if self._file:
                with self._file.open("a") as file:
                    print(json.dumps({"commit": self._commit, "trial": key, "found": self._kept[key]}), file=file)
        if (found := self._kept[key]) is None:
            return None
        return Found(**{**found, **{name: np.array(found[name]) for name in ("base", "masses", "within")}})


def row(case: str, results: Sequence[Found | None]) -> list[object]:
    done = [result for result in results if result is not None]
    if not done:
        return [case, len(results), len(results), *[""] * 6]
    within = np.concatenate([result.within for result in done])
    base = np.array([result.base.max() for result in done])
    held_out = np.array([result.held_out for result in done])
    return [
        case,
        len(results),
        len(results) - len(done),
        f"{100 * np.median(held_out):.2g}",
        f"{100 * held_out.max():.2g}",
        f"{100 * np.median([result.floor for result in done]):.3f}",
        f"{base.max():.1e}, {np.mean(base <= RIGHT):.0%}",
        f"{100 * within.mean():.1f} of {len(within)}",
        f"{max(result.masses.max() for result in done):.1f}",
    ]


HEADER = [
    "data", "runs", "failures", "held-out error [%], median", "largest", "measured error [%], median",
    "largest error of base parameters, runs below 1e-5", "masses in 95 % intervals [%]", "largest error in deviations",
]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="URDFs (default: all)")
    parser.add_argument("--seeds", type=int, default=5, help="robots and motions drawn per URDF and case")
    parser.add_argument("--joints", type=int, default=1000, help="leave out robots with more joints")
    parser.add_argument("--above", type=int, default=0, help="leave out robots with this number of joints or fewer")
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--record", type=Path, help="file of outcomes, to continue an ended run")
    chosen = parser.parse_args()
    record = Record(chosen.record)
    logging.getLogger("inertid_ros").setLevel(logging.ERROR)
    results: dict[str, list[Found | None]] = {case: [] for case in chosen.cases}
    unused, used = [], 0
    for path in sorted(collection().rglob("*.urdf")):
        if chosen.names and path.stem not in chosen.names:
            continue
        try:
            model = published_robot(path)
        except InertidError as error:
            unused.append(f"{path.stem}: {error}".replace(str(path), "its URDF"))
            continue
        if not chosen.above < model.joints <= chosen.joints:
            continue
        used += 1
        for case in chosen.cases:
            for seed in range(chosen.seeds):
                results[case].append(record.attempt(path.stem, case, model, seed))
    above = f" --above {chosen.above}" if chosen.above else ""
    some = "" if chosen.cases == list(CASES) else " --cases " + " ".join(f"'{case}'" for case in chosen.cases)
    heading = "Published robots, first recordings" + f", more than {chosen.above} joints" * bool(above)
    text = (
        f"## {heading}\n\n`benchmarks/published_robots.py --seeds {chosen.seeds}"
        f"{above} --joints {chosen.joints}{some}`: {used} URDFs of example-robot-data. Held-out error: predicted torque"
        " of another motion against its true torque; measured error: recorded torque of that motion. A"
        " warning of any library counts as a failure. Errors of base parameters are in natural sizes of their bodies."
        " The effect of tiny parameters (1e-7 kg m^2 next to bodies of kilograms) on the torque is below its rounding:"
        " without noise their errors may exceed 1e-5 while the held-out error is 1e-8 %.\n\n"
        + table(HEADER, [row(case, each) for case, each in results.items()])
        + "".join(f"\n\nNot used: {reason}" for reason in unused if not chosen.above)
    )
    if chosen.names:
        print(text)
    else:
        publish(f"published_robots_{chosen.above}" if chosen.above else "published_robots", f"{text}\n\n{machine()}")


if __name__ == "__main__":
    main()
