"""Changed mesh files (OBJ, STL as text and binary, COLLADA) read as in planning and identification.

    PYTHONPATH=benchmarks:test python benchmarks/mesh_fuzzing.py --files 10000 --seed 1

Every file must give valid arrays for distances, capsules and inertias, or a one-line message. Processes of the package
must not end.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from support.fuzzing.meshes import changed
from support.robots.mesh_texts import HOSTILE, RIGHT
from tables import machine, publish, table

BATCH = 250
SEEDS = RIGHT | {name: content for name, (content, _) in HOSTILE.items()}


def main() -> None:
    """Read the files and publish the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=2000, help="number of files (default 2000)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random generator (default 1)")
    parser.add_argument("--kept", type=Path, help="folder of files that end the process")
    options, _ = parser.parse_known_args()
    rng, started = random.Random(options.seed), time.monotonic()
    counts, reasons = Counter[str](), Counter[str]()
    if options.kept:
        options.kept.mkdir(parents=True, exist_ok=True)
    for begin in range(0, options.files, BATCH):
        with tempfile.TemporaryDirectory() as folder:
            for index in range(begin, min(begin + BATCH, options.files)):
                name = rng.choice(sorted(RIGHT if rng.random() < 0.7 else SEEDS))
                (Path(folder) / f"{index}{name}").write_bytes(changed(SEEDS[name], rng))
            command = [sys.executable, "-W", "ignore", "-m", "studies.read_meshes", folder]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                counts["ended"] += 1
                print(done.returncode, done.stderr[-500:], flush=True)
                if options.kept:
                    shutil.copytree(folder, options.kept / str(begin))
                continue
        found = json.loads(done.stdout.splitlines()[-1])
        counts.update(read=found["read"], told=found["told"], unclear=not found["lines"])
        reasons.update(found["reasons"])
        print(begin + BATCH, dict(counts), f"{time.monotonic() - started:.0f} s", flush=True)
    shown = [(reason, count) for reason, count in reasons.most_common(12)]
    publish(
        "mesh_fuzzing",
        f"""## Fuzzing of meshes

`python benchmarks/mesh_fuzzing.py --files {options.files} --seed {options.seed}`: {options.files} mesh files, made from
valid and hostile files by changes of bytes, words, numbers and single-precision values, are read as in planning and
identification, {BATCH} per process. {counts["read"]} files give a mesh, {counts["told"]} files a one-line message;
{counts["ended"]} processes of the package end, and {counts["unclear"]} batches have a message of more than one line.
{time.monotonic() - started:.0f} s in all. Measured on {machine()}.

{table(("reason", "files"), shown)}""",
    )


if __name__ == "__main__":
    main()
