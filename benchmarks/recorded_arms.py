"""Two real arms, one default configuration: a KUKA LWR4 with torque sensors and a Staubli TX40 with motor currents.

The steps are taken from ``inertid identify RECORDING... --validate RECORDING``. Errors are also computed with one
filter for all candidates and over all samples (``test/support/fixed_filter.py``).
"""

import csv
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from support.fixed_filter import FixedFilter
from tables import datasets, machine, publish, table

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.config.robot import CouplingOptions, RobotOptions
from inertid_ros.data.files.loading import load_recording
from inertid_ros.data.recording import Recording
from inertid_ros.identification.assessment.estimate import Estimate
from inertid_ros.identification.information.information import compress
from inertid_ros.identification.outcome import IdentificationOutcome
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.robot.model import RobotModel, load_model

FIXED_HZ = 5.0
# Runs 1 and 2 are the same motion (0.3 % apart after a shift): run 2 cannot validate a fit to run 1, or vice versa.
PAIRS = ((("run1", "run2"), "run3", 4.2), (("run1", "run3"), "run2", 2.46), (("run2", "run3"), "run1", 2.70))
BLOCKS = 10  # blocks of the held-out part
TRAIN_SHARE = 0.65  # share of the TX40's recording, as its authors split it
CLASSIC = ("rotor_inertia", "viscous", "coulomb", "offset")
TX40_PUBLISHED = (6.3, 5.6, 8.5, 10.1, 34.5, 22.5)  # least squares, sliding samples, from the data page [%]


def lwr4(folder: Path) -> None:
    model = load_model(folder / "kuka_lwr4.urdf")
    runs = {name: load_recording(folder / f"{name}.npz") for name in ("run1", "run2", "run3")}
    rows, per_joint = [], []
    for train, test, wanted in PAIRS:
        began = time.perf_counter()
        outcome = calibrate(model, [runs[name] for name in train], [runs[test]])
        seconds = time.perf_counter() - began
        fixed = FixedFilter(model, [runs[name] for name in train], runs[test], FIXED_HZ)
        errors = {"given": fixed.given(), "least squares": fixed.least_squares(), "default": fixed.of(outcome.estimate)}
        assert outcome.validation is not None
        label = f"{' + '.join(train)} → {test}"
        rows.append(
            [label, *(f"{100 * error.relative:.2f}" for error in errors.values()), f"{wanted:g}",
             f"{100 * outcome.validation.calibrated.relative_error:.2f}",
             "yes" if outcome.assessment.realizable else "no",
             f"{seconds:.2f}"]
        )  # fmt: skip
        per_joint += [[label, name, *(f"{value:.3f}" for value in error.rms)] for name, error in errors.items()]
    header = ["train → test", "URDF", "least squares", "**default**", "target", "default, own filter", "consistent",
              "seconds"]  # fmt: skip
    publish(
        "lwr4",
        f"## KUKA LWR4: held-out torque error [%]\n\nAll samples, including start-up, are low-passed at"
        f" {FIXED_HZ:g} Hz for every column. *Least squares* fits base parameters, rotor inertia, viscous and Coulomb"
        f" friction and offset to samples with the same filter.\n\n{table(header, rows)}\n\nPer joint [N m]:\n\n"
        f"{table(['train → test', 'parameters', *model.joint_names], per_joint)}\n\n{machine()}",
    )


def tx40(folder: Path) -> None:
    wrist = {"wrist": CouplingOptions(("joint_5", "joint_6"), (1.0, 1.0))}
    urdf = folder / "tx40_mdh_modified.urdf"
    model = load_model(urdf, RobotOptions(couplings=wrist))
    classic = load_model(urdf, RobotOptions(drive_terms=CLASSIC, couplings=wrist))
    recording = load_recording(folder / "run1_5khz.npz")
    _against_published(calibrate(model, [recording]).estimate, folder / "reference_base_params.csv")
    split = int(TRAIN_SHARE * len(recording))
    train, test = _rows(recording, slice(0, split)), _rows(recording, slice(split, None))
    outcome = calibrate(model, [train], [test])
    fixed = FixedFilter(model, [train], test, FIXED_HZ)
    ours, plain = fixed.of(outcome.estimate), fixed.least_squares()
    default = _sliding_squares(outcome, model, outcome.estimate.parameters)
    other = _sliding_squares(outcome, classic, _least_squares(classic, outcome))
    deviation = _jackknife(lambda blocks: _relative(default[:, blocks]) - _relative(other[:, blocks]))
    rows = [
        [name, f"**{100 * own:.2f}**", f"{100 * theirs:.2f}", f"{100 * (own - theirs):+.2f} ± {100 * uncertain:.2f}",
         f"{published:g}", f"**{first:.3f}**", f"{second:.3f}"]
        for name, own, theirs, uncertain, published, first, second in zip(
            model.joint_names, _relative(default), _relative(other), deviation, TX40_PUBLISHED, ours.rms, plain.rms,
            strict=True,
        )
    ]  # fmt: skip
    header = ["joint", "default, sliding [%]", "least squares, sliding [%]", "difference",
              "published least squares [%]", f"default, all samples at {FIXED_HZ:g} Hz [N m]",
              f"least squares, all samples at {FIXED_HZ:g} Hz [N m]"]  # fmt: skip
    publish(
        "tx40-held-out",
        "## Stäubli TX40: held-out torque error\n\nThe first 65 % are fitted, and the rest is held out. *Sliding*"
        " counts samples whose friction has a direction (equal samples for both fits), in per cent of their RMS torque."
        f" The standard deviation of a difference is from a jackknife over {BLOCKS} blocks of the held-out part. In"
        " half of all samples the arm rests. Stiction is then between the two directions of Coulomb friction, and a"
        f" friction model that depends on velocity alone cannot predict it.\n\n{table(header, rows)}\n\n{machine()}",
    )


def _against_published(estimate: Estimate, file: Path) -> None:
    published = {row[0]: (float(row[3]), float(row[4])) for row in csv.reader(file.open())}
    rows = []
    for name, value in _published_names(estimate).items():
        target, relative = published[name]
        deviation = abs(target) * relative / 100
        rows.append([name, f"{value:.3f}", f"{target:.3f}", f"{deviation:.3f}", f"{(value - target) / deviation:+.2f}"])
    publish(
        "tx40-parameters",
        "## Stäubli TX40: drive parameters and published values\n\nThe published fit leaves out samples below one"
        " per cent of a joint's speed limit; here the default applies.\n\n"
        + table(["parameter", "ours", "published", "published deviation", "difference in deviations"], rows)
        + f"\n\n{machine()}",
    )


def _published_names(estimate: Estimate) -> dict[str, float]:
    """Our parameters in the authors' terms: their terms of each joint include a coupled drive in full."""
    value = dict(zip(estimate.layout.names, estimate.parameters, strict=True))
    named = {}
    for joint in range(1, 7):
        coupled = joint >= 5
        named[f"fv{joint}"] = value[f"joint_{joint}.viscous"] + coupled * value["wrist.viscous"]
        named[f"fs{joint}"] = value[f"joint_{joint}.coulomb"]
        named[f"off{joint}"] = value[f"joint_{joint}.offset"]
        if joint in (3, 4, 5):
            named[f"Ia{joint}"] = value[f"joint_{joint}.rotor_inertia"] + coupled * value["wrist.rotor_inertia"]
    return named | {
        "Iam6": value["wrist.rotor_inertia"],
        "fvm6": value["wrist.viscous"],
        "fsm6": value["wrist.coulomb"],
    }


def _least_squares(model: RobotModel, outcome: IdentificationOutcome) -> np.ndarray:
    """Ordinary least squares from the same samples."""
    R, z = compress(model, outcome.train).whitened(np.ones(model.joints))
    return np.linalg.lstsq(R, z, rcond=1e-9)[0]


def _sliding_squares(outcome: IdentificationOutcome, model: RobotModel, parameters: np.ndarray) -> np.ndarray:
    """``(2, blocks, n)`` sums of squared errors and squared torque, for held-out samples with a friction direction."""
    (test,) = outcome.held_out
    error = np.where(test.mask, ForceEquations(model).predict(parameters, test) - test.tau, 0.0)
    squares = np.stack([error, np.where(test.mask, test.tau, 0.0)]) ** 2
    edges = np.linspace(0, len(test), BLOCKS + 1).astype(int)[:-1]
    return np.add.reduceat(squares, edges, axis=1)


def _relative(squares: np.ndarray) -> np.ndarray:
    """``(n,)`` error of every joint over its RMS torque, of blocks ``(2, blocks, n)``."""
    error, torque = squares.sum(axis=1)
    return np.sqrt(error / torque)


def _jackknife(figure: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Standard deviation of a figure by leaving out each block once."""
    without = np.array([figure(np.flatnonzero(np.arange(BLOCKS) != block)) for block in range(BLOCKS)])
    return np.sqrt((BLOCKS - 1) * np.mean((without - without.mean(axis=0)) ** 2, axis=0))


def _rows(recording: Recording, rows: slice) -> Recording:
    channels = ("time", "position", "effort")
    return replace(recording, velocity=None, **{name: getattr(recording, name)[rows] for name in channels})


if __name__ == "__main__":
    data = datasets()
    if data is not None:
        lwr4(data / "kuka_lwr4")
        tx40(data / "staubli_tx40")
