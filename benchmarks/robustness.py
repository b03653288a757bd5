"""Spoilt recordings: torque error on a clean recording after a fit to spoilt data, for real and simulated arms.

Only the fitted recordings are spoilt, each in its own way. Errors are computed with one filter for all fits
(``test/support/fixed_filter.py``), over all samples of the clean held-out recording.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from studies.spoilt_recordings import SPOILT
from support.fixed_filter import FixedFilter
from support.recordings.synthetic import inverse_dynamics, random_motion
from tables import datasets, machine, publish, table

from inertid_ros.config.robot import CouplingOptions, RobotOptions
from inertid_ros.data.files.loading import load_recording
from inertid_ros.data.preparation.prepare import Preparation, common_cutoff
from inertid_ros.data.recording import Recording
from inertid_ros.identification.identify import identify
from inertid_ros.robot.body_changes import perturb, write_urdf
from inertid_ros.robot.model import RobotModel, load_model
from inertid_ros.simulation.example_robots import example_urdf

FIXED_HZ, ALLOWED = 5.0, 1.1
SEEDS = 2
SPLIT = 0.65  # share of the TX40's recording


@dataclass(frozen=True)
class Case:
    """A robot, recordings to fit, and a recording for comparison."""

    name: str
    model: RobotModel
    train: list[Recording]
    test: Recording

    def error(self, train: list[Recording]) -> float:
        """Relative torque error of a fit to ``train``, with the defaults."""
        preparations = [Preparation(recording, self.model) for recording in train]
        cutoff = common_cutoff(preparations)
        estimate = identify(self.model, [preparation.samples(cutoff) for preparation in preparations])
        return FixedFilter(self.model, [], self.test, FIXED_HZ).of(estimate).relative


def cases() -> Iterator[Case]:
    """LWR4 and TX40 if their recordings are available, and a simulated UR10."""
    folder = datasets()
    if folder is not None:
        arm = folder / "kuka_lwr4"
        runs = [load_recording(arm / f"run{run}.npz") for run in (1, 2, 3)]
        yield Case("LWR4", load_model(arm / "kuka_lwr4.urdf"), [runs[0], runs[2]], runs[1])
        yield _tx40(folder / "staubli_tx40")
    yield _simulated()


def _tx40(folder: Path) -> Case:
    wrist = {"wrist": CouplingOptions(("joint_5", "joint_6"), (1.0, 1.0))}
    model = load_model(folder / "tx40_mdh_modified.urdf", RobotOptions(couplings=wrist))
    whole = load_recording(folder / "run1_5khz.npz")
    split = int(SPLIT * len(whole))
    parts = [
        replace(whole, time=whole.time[rows], position=whole.position[rows], effort=whole.effort[rows])
        for rows in (slice(0, split), slice(split, None))
    ]
    return Case("TX40", model, parts[:1], parts[1])


def _simulated() -> Case:
    """Rigid bodies with friction, rotors and offsets, encoders and torque sensors with white noise, at 1 kHz."""
    rng = np.random.default_rng(0)
    truth = load_model(example_urdf("ur_description/urdf/ur10_robot.urdf"))
    given = load_model(write_urdf(truth, perturb(truth, rng)))
    recordings = []
    for _ in range(3):
        time = np.arange(0, 20, 1e-3)
        q, v, a = random_motion(rng, truth.joints, base_hz=0.15).sample(time)
        tau = inverse_dynamics(truth, q, v, a)
        size = tau.std(axis=0)
        tau += size * (0.05 * a / a.std(axis=0) + 0.1 * v / v.std(axis=0) + 0.1 * np.sign(v) + 0.05)
        noisy = q + 2e-5 * rng.normal(size=q.shape), tau + 0.05 * size * rng.normal(size=q.shape)
        recordings.append(Recording(truth.joint_names, time, *noisy))
    return Case("simulated UR10", given, recordings[:2], recordings[2])


def main(seeds: int) -> None:
    rows, robots = [], []
    for case in cases():
        clean = case.error(case.train)
        robots.append(case.name)
        rows.append([case.name, "clean", "", f"{100 * clean:.2f}", "", ""])
        print(*rows[-1], flush=True)
        for name, spoil in SPOILT.items():
            for seed in range(seeds):
                key = [seed, sum(map(ord, name))]  # all recordings of a robot come from the same driver
                spoilt, told = zip(*(spoil(each, np.random.default_rng(key)) for each in case.train), strict=True)
                ratio = case.error(list(spoilt)) / clean
                rows.append([case.name, name, told[0], f"{100 * ratio * clean:.2f}", f"{ratio:.3f}",
                             "yes" if ratio <= ALLOWED else "**no**"])  # fmt: skip
                print(*rows[-1], flush=True)
    kept = sum(row[-1] == "yes" for row in rows)
    text = (
        "## Spoilt recordings: held-out torque error [%]\n\nFits to recordings that are spoilt with random magnitudes,"
        f" compared with a clean recording at {FIXED_HZ:g} Hz, all samples; {kept} of {len(rows) - len(robots)}"
        " errors are at most 10 % larger than with clean data.\n\n"
    )
    header = ["robot", "spoilt by", "magnitude", "error", "over clean error", "within 10 %"]
    publish("robustness", f"{text}{table(header, rows)}\n\n{machine()}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SEEDS)
