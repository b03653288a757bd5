"""Comparison with FIGAROH 1.0.2: a UR10 with friction, rotor inertia and offset, equal samples, one run.

FIGAROH runs in a separate environment, made once with ``--install`` (about 1 GB in .build/figaroh); without it only
our figures are measured. Both sides get the samples in memory and give a physically consistent estimate. Loading of
libraries and files counts as memory and not as time.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import numpy as np
from studies import arm
from tables import ROOT, machine, publish, table

HERE = Path(__file__).resolve().parent
ENVIRONMENT = ROOT / ".build" / "figaroh" / "venv"
PACKAGES = ("figaroh==1.0.2", "cyipopt-wheels")
SAMPLES = 100_000
DECIMATION = 10  # the default of FIGAROH's BaseIdentification.solve
WANTED = {"seconds": 10.0, "memory": 15.0, "regressor": 1.5}
KEPT = ("PATH", "HOME", "TMPDIR", "LANG")
BOUND = """\
The goal of 6 copies for the whole identification is not reached. The two matrix products that reduce a batch run at two
thirds of the core's peak and take 2 copies if the batch is in the cache. Motions and screws of the bodies take 3,
motions for the residuals 2 more, and passes over arrays the rest. By a count of operations, compiled kernels would at
best halve the motions, which leaves 9 to 10 copies. For this number of samples they save less time than a compiler
takes to load: the package does not use them."""
CORES = sorted({1, min(2, os.cpu_count() or 1)})
STREAM_MARKS = (10_000, 50_000, 100_000, 200_000, 500_000, 1_000_000)
COMPARED = """\
A UR10 with viscous and Coulomb friction, rotor inertia and offset (84 parameters), 100 s of a Fourier motion at 1 kHz,
0.5 N m of noise; added point masses make the URDF wrong. Both libraries get equal arrays in memory, in turns. Both fit
the torque under a pseudo-inertia matrix inequality per link. FIGAROH ([Nguyen2023]_) runs the shortest way through its
public functions: `build_regressor_basic` (without its backend layer, which is slower), `build_problem`,
`solve_direct_effort_fit` with its default solver. By default its own workflow, `BaseIdentification.solve`, filters and
keeps every tenth sample before the fit; a separate table has these figures. Ours is `identify` as a user calls it: it
also weighs joints by their residuals, learns the strength of the prior, and states a covariance. Loading of libraries
and files counts as memory and not as time. On an idle machine, processor time equals clock time.
The environment of FIGAROH is made by `make bench ARGS=--install`."""


def install() -> None:
    """Make the environment of FIGAROH."""
    venv.create(ENVIRONMENT, with_pip=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "LD_LIBRARY"))}
    command = [ENVIRONMENT / "bin" / "python", "-m", "pip", "install", "-q", *PACKAGES]
    subprocess.run(command, check=True, env=environment)


def ours(task: str, folder: Path, threads: int) -> dict:
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, **_threads(threads), "PYTHONPATH": path}
    return _run([sys.executable, "-m", "studies.inertid_tasks", task, str(folder)], environment)


def theirs(folder: Path, threads: int, factor: int = 1) -> dict:
    script = str(HERE / "studies" / "figaroh_tasks.py")
    return _run([str(ENVIRONMENT / "bin" / "python"), script, str(folder), str(factor)], _plain(threads))


def _plain(threads: int) -> dict[str, str]:
    """Environment variables without this package."""
    return {key: os.environ[key] for key in KEPT if key in os.environ} | _threads(threads)


def _threads(count: int) -> dict[str, str]:
    return {name: str(count) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}


def _run(command: list[str], environment: dict[str, str]) -> dict:
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def write_samples(folder: Path) -> None:
    """Write ``robot.urdf`` without meshes and ``samples.npz`` for both sides."""
    (folder / "robot.urdf").write_text(arm.urdf())
    robot = arm.model((folder / "robot.urdf").read_text())
    (samples,) = arm.parts(robot, SAMPLES, SAMPLES)
    np.savez(folder / "samples.npz", **{name: getattr(samples, name) for name in ("time", "q", "v", "a", "tau")})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="make the environment of FIGAROH first")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each side, one after the other (default: 3)")
    options, _ = parser.parse_known_args()
    if options.install:
        install()
    installed = (ENVIRONMENT / "bin" / "python").exists()
    if not installed:
        print("FIGAROH is not installed: only our figures follow; --install makes an environment for it")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_samples(folder)
        runs = compare(folder, options.rounds, installed)
        if installed:
            with_decimation(folder, options.rounds, runs)
        parts(folder, options.rounds, runs)
    stream_memory()


Runs = dict[int, tuple[list[dict], list[dict]]]


def compare(folder: Path, rounds: int, installed: bool) -> Runs:
    """Run both sides in turns, so that other load on the machine affects both."""
    runs: Runs = {threads: ([], []) for threads in CORES}
    for _ in range(rounds):
        for threads, (our_runs, their_runs) in runs.items():
            our_runs.append(ours("identify", folder, threads))
            if installed:
                their_runs.append(theirs(folder, threads))
    for run in (run for pair in runs.values() for side in pair for run in side):
        run["increase_mb"] = run["peak_mb"] - run["imported_mb"]
        run["error"] = float(np.sqrt(np.mean(np.square(run["rms_error"]))))
    label = "samples to physically consistent parameters"
    rows = [
        _row(f"{label}, processor time on 1 core [s]", *runs[1], "cpu", WANTED["seconds"], 2),
        *(_row(f"{label}, clock, {_cores(n)} [s]", *pair, "seconds", None, 2) for n, pair in runs.items()),
        _row("peak memory of the process [MB]", *runs[1], "peak_mb", WANTED["memory"]),
        _row("peak memory without libraries [MB]", *runs[1], "increase_mb", None),
        _row("RMS torque residual [N m]", *runs[1], "error", None, 4),
        ["every link physically consistent", *(_consistent(side) for side in runs[1]), "", ""],
    ]
    text = table((f"{SAMPLES:,} samples", "ours", "FIGAROH 1.0.2", "ratio", "target"), rows)
    publish(
        "figaroh", f"## UR10 with drives, against FIGAROH\n\n{COMPARED}\n\n{text}\n\n{machine()}; medians of {rounds}"
    )
    return runs


def with_decimation(folder: Path, rounds: int, runs: Runs) -> None:
    """Compare FIGAROH with a tenth of the samples, its default, and ours with all samples."""
    fewer = [theirs(folder, 1, DECIMATION) for _ in range(rounds)]
    for run in fewer:
        run["error"] = float(np.sqrt(np.mean(np.square(run["rms_error"]))))
    sides = {"ours, every sample": runs[1][0], "FIGAROH, every sample": runs[1][1], "FIGAROH, every tenth": fewer}
    own = _median(sides["ours, every sample"], "cpu")
    rows = [
        [name, f"{_median(side, 'cpu'):.2f}", f"{_median(side, 'cpu') / own:.1f}x", f"{_median(side, 'peak_mb'):.0f}",
         f"{_median(side, 'error'):.4f}", _consistent(side)]
        for name, side in sides.items()
    ]  # fmt: skip
    header = ("1 core", "processor time [s]", "relative to ours", "peak memory [MB]",
              "RMS residual of all samples [N m]", "consistent")  # fmt: skip
    title = f"### With FIGAROH's decimation by {DECIMATION}"
    publish("figaroh-decimated", f"{title}\n\n{table(header, rows)}\n\n{machine()}; medians of {rounds}")


def _row(label: str, mine: list[dict], other: list[dict], key: str, wanted: float | None, digits: int = 0) -> list[str]:
    own, their = _median(mine, key), _median(other, key)
    ratio = f"{their / own:.1f}x" if their else ""
    return [
        label,
        f"**{own:.{digits}f}**",
        f"{their:.{digits}f}" if their else "",
        ratio,
        f"{wanted:g}x" if wanted else "",
    ]


def _consistent(side: list[dict]) -> str:
    return ("yes" if all(run["consistent"] for run in side) else "no") if side else ""


def _cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"


def _median(runs: list[dict], key: str) -> float:
    return statistics.median([run[key] for run in runs]) if runs else 0.0


def parts(folder: Path, rounds: int, runs: Runs) -> None:
    """Cost of each step, relative to its lower bound."""
    mine, other = [ours("parts", folder, 1) for _ in range(rounds)], runs[1][1]
    ours_total, their_total = _median(mine, "regressor_sum"), _median(other, "regressor_sum")
    if other and abs(ours_total - their_total) > 1e-9 * their_total:
        sys.exit(f"the regressors differ: their absolute elements add up to {ours_total} and {their_total}")
    copy = SAMPLES / _median(mine, "copy")

    def row(label: str, key: str, side: list[dict]) -> list[str]:
        rate = SAMPLES / _median(side, key)
        return [label, f"{_median(side, key) / SAMPLES * 1e6:.2f}", f"{rate:,.0f}", f"{copy / rate:.1f}x"]

    rows = [
        row("one copy of the whole regressor through memory", "copy", mine),
        row("bodies only, by Pinocchio in a Python loop", "loop", mine),
        row("**regressor, every column as FIGAROH has them**", "dense", mine),
        row("regressor, the columns that compression needs", "regressor", mine),
        row("drive columns", "drives", mine),
        row("QR of all channels", "qr", mine),
        row("**compression: the three steps together**", "compress", mine),
        row("torque that an estimate predicts", "predict", mine),
        row("**identification from samples**", "identify", mine),
    ]
    if other:
        rows += [
            row("FIGAROH: regressor", "regressor", other),
            row("FIGAROH: base parameters and QR", "problem", other),
            row("FIGAROH: solve", "solve", other),
        ]
        ratio = _median(other, "regressor") / _median(mine, "dense")
        verdict = (
            f"Regressor building: {ratio:.1f} times FIGAROH's samples per second (target: {WANTED['regressor']:g})."
        )
    else:
        verdict = ""
    text = table(("step, processor time on 1 core", "us per sample", "samples/s", "over one copy"), rows)
    title = "### Cost of each step"
    publish("figaroh-steps", f"{title}\n\n{text}\n\n{BOUND}\n\n{verdict}\n\n{machine()}; medians of {rounds} x 5")


def stream_memory() -> None:
    """Time and memory of a million samples."""
    run = ours("stream", Path(), 1)
    resident = {int(count): value for count, value in run["resident_mb"].items()}
    rows = [[f"{count:,}", f"{resident[count]:.0f}"] for count in STREAM_MARKS]
    text = table(("samples so far", "resident [MB]"), rows)
    publish(
        "figaroh-stream",
        "### A million samples in flat memory\n\nParts of 10,000 samples are compressed one after another:"
        f" {run['samples_per_s']:,.0f} samples per second of processor time; {run['seconds']:.1f} s to parameters with"
        f" the fit; every link physically consistent: {'yes' if run['consistent'] else 'no'}. Peak"
        f" {run['peak_mb']:.0f} MB, of which {run['imported_mb']:.0f} MB are Python and its libraries.\n\n{text}"
        f"\n\n{machine()}",
    )


if __name__ == "__main__":
    main()
