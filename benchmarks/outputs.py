"""Random folders and commands with ``--force``: replaced outputs, and changes of other files.

    PYTHONPATH=benchmarks:test python benchmarks/outputs.py --draws 1000
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from support.random_outputs import WORK, Templates, draw
from tables import machine, publish, table


def main() -> int:
    """Run all draws, print wrong draws, and publish the table; exit status 1 if a draw is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first draw (default 0)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        templates = Templates(Path(folder))
        draws = [draw(templates, seed) for seed in range(options.seed, options.seed + options.draws)]
    violations = [line for each in draws for line in each.violations]
    counts = Counter((each.command, each.outcome) for each in draws)
    outcomes = ("written", "replaced", "refused")
    rows = [
        [f"`{command}`", *(counts[command, outcome] for outcome in outcomes),
         sum(bool(each.violations) for each in draws if each.command == command)]
        for command in WORK
    ]  # fmt: skip
    publish(
        "outputs",
        f"""## Replacement of outputs

`python benchmarks/outputs.py --draws {options.draws} --seed {options.seed}`: folders with results, plans, recordings,
inputs, foreign files, links, FIFOs, sockets and devices, and a command with `--force` (a tenth of the draws without).
Its output is a path in or next to these folders. All content is compared before and after. Earlier results replace long
computations. A draw is wrong if the command changes a file that is neither an output of the package nor the regular
file in the command, if it refuses after opening the input or in several lines, or if it refuses its own output.

{table(("command", *outcomes, "wrong"), rows)}

Measured on {machine()}.""",
    )
    print("\n".join(violations))
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main())
