"""Fuzzing of all commands of ``inertid``: their files are changed, and every run must end as a user expects.

    PYTHONPATH=benchmarks:test python benchmarks/command_fuzzing.py --runs 10000 --workers 2

A run must end with status 0, 2 or 3 within 10 s of CPU time and 512 MiB, without control characters in its output;
a refusal is one line. Processes of some hundred runs each run them, so that the end of a process is noticed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from support.fuzzing.bounds import MEMORY, BrokenBoundError
from support.fuzzing.commands import COMMANDS, RUN_S, CommandFuzzer
from tables import machine, publish, table

BATCH = 500  # runs in one process, which makes its valid files in three seconds


def runs_of(seeds: range) -> list[dict[str, Any]]:
    """Run the commands of seeds in this process."""
    done: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="fuzzing_") as folder:
        fuzzer = CommandFuzzer(Path(folder))
        for seed in seeds:
            try:
                run = fuzzer.run(seed)
                done.append({"seed": seed, "command": run.command, "status": run.status, "seconds": run.seconds})
            except BrokenBoundError as error:
                done.append({"seed": seed, "broken": str(error)})
    return done


def in_process(seeds: range) -> list[dict[str, Any]]:
    """Run the commands of seeds in another process."""
    command = [sys.executable, "-W", "ignore", __file__, "--batch", str(seeds.start), str(len(seeds))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout.strip():
        return [{"seed": seeds.start, "broken": f"process ended with status {done.returncode}: {done.stderr[-200:]}"}]
    return list(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Fuzz all commands and publish the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="number of runs (default 200)")
    parser.add_argument("--seed", type=int, default=0, help="first seed (default 0)")
    parser.add_argument("--workers", type=int, default=1, help="number of parallel processes (default 1)")
    parser.add_argument("--batch", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.batch:
        first, count = options.batch
        print(json.dumps(runs_of(range(first, first + count))))
        return
    end = options.seed + options.runs
    batches = [range(first, min(first + BATCH, end)) for first in range(options.seed, end, BATCH)]
    with ThreadPoolExecutor(options.workers) as pool:
        runs = [run for batch in pool.map(in_process, batches) for run in batch]
    by_command = defaultdict(list)
    for run in runs:
        if "command" in run:
            by_command[run["command"]].append(run)
    rows = []
    for command in COMMANDS:
        ended = by_command[command]
        statuses, longest = Counter(run["status"] for run in ended), max((run["seconds"] for run in ended), default=0.0)
        rows.append([f"`{command}`", len(ended), *(statuses[status] for status in (0, 2, 3)), f"{longest:.1f}"])
    broken = [f"* seed {run['seed']}: {run['broken']}" for run in runs if "broken" in run]
    header = ("command", "runs", "done", "refused in one line", "done, not to be used", "longest [s of CPU time]")
    publish(
        "command-fuzzing",
        f"""## Fuzzing of commands

`python benchmarks/command_fuzzing.py --runs {options.runs} --seed {options.seed}`: commands with valid and changed
files: robot descriptions, recordings in three formats, configurations, plans, results. A run must end with one of these
statuses within {RUN_S:g} s of CPU time and {MEMORY // 2**20} MiB more than before, with a printable output; a
refusal is one line.

{table(header, rows)}

**{len(broken)} of {len(runs)} runs broke a bound.** Measured on {machine()}.
""" + "\n".join(broken[:20]),
    )


if __name__ == "__main__":
    main()
