"""Random folders and commands with ``--force``: what was replaced, and whether anything else changed.

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
    """Draw, print what is wrong, and publish the table; exit status 1 if anything is."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first draw (default 0)")
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
        f"""## Outputs that replace others

`python benchmarks/outputs.py --draws {options.draws} --seed {options.seed}`: folders with results, plans, recordings,
inputs, foreign files, links, FIFOs, sockets and devices, and a command with `--force` (in a tenth without) whose output
is anything in or beside them. All content is compared before and after. Long computations are replaced by results made
before. A draw is wrong if anything changes but an output of the package or the regular file that the command names, if
a refusal comes after the input was opened or is more than one line, or if an output of its own is refused.

{table(("command", *outcomes, "wrong"), rows)}

{machine()}""",
    )
    print("\n".join(violations))
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main())
