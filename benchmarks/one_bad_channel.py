"""One bad channel: effect of a badly recorded position of one joint on the torque errors of all other joints.

    PYTHONPATH=benchmarks:test python benchmarks/one_bad_channel.py --draws 200

For two simulated arms, the position of one joint is spoilt in the fitted recording. The torque of all other joints is
predicted on a clean recording.
"""

import argparse
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from support.recordings.simulated_arms import simulated_case
from support.recordings.spoiling import Case
from tables import machine, publish, table

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.core.arrays import Array
from inertid_ros.data.recording import Recording

ROBOTS, SEEDS = ("panda", "ur10"), 3


def play(position: Array, rng: np.random.Generator) -> Array:
    """Gear play of 0.2 to 5 mrad between motor and link."""
    half, out = 0.5 * np.exp(rng.uniform(*np.log([2e-4, 5e-3]))), position.copy()
    for row in range(1, len(out)):
        out[row] = np.clip(out[row - 1], position[row] - half, position[row] + half)
    return out


def quantised(position: Array, rng: np.random.Generator) -> Array:
    """Encoder of 9 to 13 bits."""
    step = 2 * np.pi / 2.0 ** rng.integers(9, 14)
    return np.round(position / step) * step


def dropouts(position: Array, rng: np.random.Generator) -> Array:
    """Zeros in 0.1 to 5 % of the samples."""
    return np.where(rng.random(len(position)) < np.exp(rng.uniform(*np.log([1e-3, 0.05]))), 0.0, position)


def held(position: Array, rng: np.random.Generator) -> Array:
    """Values held for 2 to 20 samples."""
    every = int(rng.integers(2, 21))
    return position[np.arange(len(position)) // every * every]


def noise(position: Array, rng: np.random.Generator) -> Array:
    """White noise of 0.1 to 10 mrad."""
    return position + np.exp(rng.uniform(*np.log([1e-4, 1e-2]))) * rng.normal(size=len(position))


SPOILS: Mapping[str, Callable[[Array, np.random.Generator], Array]] = {
    function.__name__: function for function in (play, quantised, dropouts, held, noise)
}


def spoilt(case: Case, joint: int, spoil: str, rng: np.random.Generator) -> Case:
    """Case with a badly recorded position of a joint, without velocities (positions give them)."""

    def changed(recording: Recording) -> Recording:
        position = recording.position.copy()
        position[:, joint] = SPOILS[spoil](position[:, joint], rng)
        return replace(recording, position=position, velocity=None)

    return replace(case, train=tuple(map(changed, case.train)))


def errors(case: Case) -> Array:
    """Held-out error ``(n,)`` of each joint over its torque; NaN without a fit."""
    validation = calibrate(case.given, case.train, case.held_out).validation
    assert validation is not None
    return np.asarray(validation.calibrated.rms_error / validation.calibrated.rms_torque)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    rng, ratios = np.random.default_rng(options.seed), defaultdict[str, list[float]](list)
    cases = [simulated_case(robot, seed) for robot in ROBOTS for seed in range(SEEDS)]
    whole = [errors(replace(case, train=tuple(replace(r, velocity=None) for r in case.train))) for case in cases]
    for draw in range(options.draws):
        index, spoil = int(rng.integers(len(cases))), list(SPOILS)[draw % len(SPOILS)]
        case, joint = cases[index], int(rng.integers(cases[index].given.joints))
        others = np.arange(case.given.joints) != joint
        found = errors(spoilt(case, joint, spoil, rng))
        ratio = float(np.sqrt(np.mean(found[others] ** 2) / np.mean(whole[index][others] ** 2)))
        ratios[spoil].append(ratio)
        print(case.name, spoil, case.given.joint_names[joint], f"{ratio:.2f}", flush=True)
    rows = [
        [name, len(values), f"{np.median(values):.2f}", f"{np.max(values):.2f}", sum(value > 1.1 for value in values)]
        for name, values in ratios.items()
    ]
    publish(
        "one-bad-channel",
        "## One bad channel\n\nError of all other joints on a held-out recording, over the error without fault:\n\n"
        + table(["fault", "draws", "median", "largest", "above 1.1"], rows)
        + f"\n\nSeed {options.seed}.\n\n{machine()}",
    )


if __name__ == "__main__":
    main()
