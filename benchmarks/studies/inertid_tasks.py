"""This library on given samples: ``python -m studies.inertid_tasks TASK FOLDER``; the last line printed is JSON."""

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pinocchio as pin
import scipy.optimize  # noqa: F401  # SciPy would otherwise load it during the measurement
from studies import arm
from studies.memory import peak_mb, resident_mb

from inertid_ros.core.arrays import Array
from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.core.samples import Samples
from inertid_ros.identification.identify import identify
from inertid_ros.identification.information.information import IncrementalQR, compress
from inertid_ros.regressors.drives import DriveMotion, drive_rows
from inertid_ros.regressors.equations import ForceEquations
from inertid_ros.regressors.rigid_body_regressor import RigidBodyRegressor, joint_torque_regressor, regroup_to_parents
from inertid_ros.robot.kinematics import BATCH
from inertid_ros.robot.model import RobotModel

IMPORTED_MB = resident_mb()
REPEATS = 5
LONG = 1_000_000


def run_identify(robot: RobotModel, samples: Samples) -> dict:
    """Run the whole identification once; measure time and memory."""
    start, busy = time.perf_counter(), time.process_time()
    estimate = identify(robot, [samples])
    seconds, cpu = time.perf_counter() - start, time.process_time() - busy
    peak = peak_mb()
    error = ForceEquations(robot).predict(estimate.parameters, samples) - samples.tau
    return {
        "seconds": seconds,
        "cpu": cpu,
        "imported_mb": IMPORTED_MB,
        "peak_mb": peak,
        "consistent": bool(is_consistent(estimate.bodies).all()),
        "rms_error": list(np.sqrt(np.mean(error**2, axis=0))),
    }


def run_parts(robot: RobotModel, samples: Samples) -> dict:
    """Median processor time [s] of each separate step and of the reference operations."""
    copying, total = _copy(robot, samples)
    estimate = identify(robot, [samples])
    return {
        "regressor_sum": total,
        "copy": copying,
        "loop": _median(lambda: _loop(robot, samples)),
        "dense": _median(lambda: _dense(robot, samples)),
        "regressor": _median(lambda: _write(robot, samples)),
        "drives": _median(lambda: [_drives(robot, part) for part in _batches(samples)]),
        "qr": _median(lambda: _reduce(robot, len(samples))),
        "compress": _median(lambda: compress(robot, [samples])),
        "predict": _median(lambda: ForceEquations(robot).predict(estimate.parameters, samples)),
        "identify": _median(lambda: identify(robot, [samples])),
    }


def run_stream(robot: RobotModel) -> dict:
    """Fit a million samples, made in parts: resident memory during the run, and processor time.

    The time includes compression and fit, but not the making of the samples.
    """
    resident, making, start = {}, 0.0, time.process_time()

    def watched() -> Iterator[Samples]:
        nonlocal making
        parts, count = iter(arm.parts(robot, LONG)), 0
        while True:
            began = time.process_time()
            part = next(parts, None)
            making += time.process_time() - began
            if part is None:
                return
            yield part
            count += len(part)
            resident[count] = resident_mb()

    information = compress(robot, watched())
    compressing = time.process_time() - start - making
    estimate = identify(robot, information)
    return {
        "resident_mb": resident,
        "peak_mb": peak_mb(),
        "imported_mb": IMPORTED_MB,
        "samples_per_s": LONG / compressing,
        "seconds": time.process_time() - start - making,
        "consistent": estimate.consistent,
    }


def _copy(robot: RobotModel, samples: Samples) -> tuple[float, float]:
    """Processor time [s] to copy the whole regressor into allocated memory, and the sum of its absolute elements."""
    regressor = np.concatenate([part.transpose(1, 2, 0) for part in _dense(robot, samples)], axis=1)
    target = np.zeros_like(regressor)
    return _median(lambda: np.copyto(target, regressor)), float(np.abs(regressor).sum())


def _loop(robot: RobotModel, samples: Samples) -> Array:
    """Bodies only, by Pinocchio, sample by sample."""
    data, compute = robot.pinocchio.createData(), pin.computeJointTorqueRegressor
    out = np.empty((len(samples), robot.joints, robot.layout.body_size))
    for row, (q, v, a) in enumerate(zip(samples.q, samples.v, samples.a, strict=True)):
        out[row] = compute(robot.pinocchio, data, q, v, a)
    return out


def _dense(robot: RobotModel, samples: Samples) -> tuple[Array, Array]:
    """Every column of every row, as in FIGAROH."""
    return joint_torque_regressor(robot, samples.q, samples.v, samples.a), _drives(robot, samples)


def _drives(robot: RobotModel, samples: Samples) -> Array:
    """Columns of the drives ``(N, n, 4 n)``; the samples of one element are contiguous in memory."""
    terms, motion = len(robot.layout.drive_terms), DriveMotion.from_samples(robot.layout, samples)
    out = np.zeros((robot.joints, terms * robot.joints, len(samples)))
    for joint, columns in enumerate(drive_rows(robot.layout, motion)):
        out[joint, joint :: robot.joints] = columns
    return out.transpose(2, 0, 1)


def _write(robot: RobotModel, samples: Samples) -> None:
    """Write the columns for compression, batch after batch, into the same memory."""
    regressor = RigidBodyRegressor(robot.tree, np.zeros(3), regroup_to_parents(robot.tree).columns)
    out = np.zeros((robot.joints, regressor.width, BATCH))
    for part in _batches(samples):
        q, v, a = (np.ascontiguousarray(values.T) for values in (part.q, part.v, part.a))
        regressor.write(q, v, a, out[..., : len(part)])


def _reduce(robot: RobotModel, count: int) -> None:
    """Compute R factors of ``count`` samples in batches, with the shapes of compression."""
    columns = regroup_to_parents(robot.tree).columns
    extra = len(robot.layout.drive_terms) + 1
    sizes = [sum(map(len, columns[joint:])) + extra for joint in range(robot.joints)]
    rng = np.random.default_rng(0)
    works = [(IncrementalQR(size), rng.normal(size=(size, BATCH))) for size in sizes]
    for _ in range(0, count, BATCH):
        for qr, batch in works:
            qr.append(batch.copy())


def _batches(samples: Samples) -> Iterator[Samples]:
    for start in range(0, len(samples), BATCH):
        rows = slice(start, start + BATCH)
        yield Samples(*(getattr(samples, name)[rows] for name in ("time", "q", "v", "a", "tau", "mask", "usable")))


def _median(action: Callable[[], object]) -> float:
    seconds = []
    for _ in range(REPEATS):
        start = time.process_time()
        action()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds)


def main() -> None:
    task, folder = sys.argv[1], Path(sys.argv[2])
    if task == "stream":
        print(json.dumps(run_stream(arm.model(arm.urdf()))))
        return
    data = np.load(folder / "samples.npz")
    time_, q, v, a, tau = (data[name] for name in ("time", "q", "v", "a", "tau"))
    every = np.ones(q.shape, dtype=bool)
    samples = Samples(time_, q, v, a, tau, every, every[:, 0], "UR10")
    run = {"identify": run_identify, "parts": run_parts}[task]
    print(json.dumps(run(arm.model((folder / "robot.urdf").read_text()), samples)))


if __name__ == "__main__":
    main()
