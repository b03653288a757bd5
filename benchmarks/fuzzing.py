"""Fuzzing of all readers of external content: inputs tried, inputs per second, and broken bounds.

    PYTHONPATH=benchmarks:test python benchmarks/fuzzing.py --seconds 600 --seed 1

Coverage-guided if ``atheris`` is installed (``pip install atheris``). Every input must be accepted, or refused by a
one-line error of the package, within 2 s and 512 MiB.
"""

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from support.fuzzing.bounds import MEMORY, SECONDS
from support.fuzzing.targets import targets
from tables import machine, publish, table


def fuzzed(name: str, seconds: float, seed: int, folder: Path) -> dict[str, Any]:
    """Figures of one target, run in a separate process."""
    command = [sys.executable, "-W", "ignore", "-m", "studies.fuzz_target", name, str(seconds), str(seed), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout.strip():  # an input ended the process
        return {"name": name, "crashed": done.returncode}
    return json.loads(done.stdout.splitlines()[-1])


def row(figures: dict[str, Any]) -> list[object]:
    """Table row of one target."""
    if "crashed" in figures:
        return [figures["name"], "-", "-", "-", "-", "-", f"process ended with status {figures['crashed']}"]
    tried = figures["tried"]
    broken = ", ".join(f"{key} ({count})" for key, count in figures["broken"].items()) or "none"
    return [
        figures["name"], tried, f"{tried / figures['processor_s']:.0f}", f"{100 * figures['accepted'] / tried:.0f} %",
        f"{figures['longest']:.2f}", f"{figures['peak_mib']:.0f}", broken,
    ]  # fmt: skip


def main() -> None:
    """Fuzz all targets and publish the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0, help="time for each target (default 10)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random generator (default 1)")
    parser.add_argument("--workers", type=int, default=1, help="number of parallel targets (default 1)")
    parser.add_argument("--only", nargs="+", default=[], metavar="TARGET", help="only these targets")
    parser.add_argument("--folder", type=Path, default=Path("fuzzing"), help="folder for inputs that break a bound")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    names = options.only or [target.name for target in targets()]
    with ThreadPoolExecutor(options.workers) as pool:
        runs = [pool.submit(fuzzed, name, options.seconds, options.seed, options.folder) for name in names]
        figures = [run.result() for run in runs]
    total = sum(each.get("tried", 0) for each in figures)
    guided = any(each.get("guided") for each in figures)
    guidance = "guided by branch coverage (atheris)" if guided else "not guided (atheris is not installed)"
    header = ("reader", "inputs", "per s", "accepted", "longest [s]", "peak memory [MiB]", "bounds broken")
    publish(
        "fuzzing",
        f"""## Fuzzing of external content

`python benchmarks/fuzzing.py --seconds {options.seconds:g} --seed {options.seed} --workers {options.workers}`: inputs
of up to 64 kB, made from valid inputs by changes of structure and bytes, {guidance}. Each input must be accepted, or
refused by one line, within {SECONDS:g} s and {MEMORY // 2**20} MiB; the memory includes process and
libraries. Times are CPU times, measured while other work shares the processor.

{table(header, [row(each) for each in figures])}

{total} inputs in all. Measured on {machine()}.""",
    )


if __name__ == "__main__":
    main()
