"""Fuzzing of running nodes: random messages on all topics they listen to, random requests, and random goals.

    PYTHONPATH=benchmarks:test python benchmarks/node_fuzzing.py --inputs 100000

All nodes must stay alive, answer each request within 10 s, and print only printable lines without a traceback; the
robot must stay within its limits. In the second half of the inputs it moves: nothing else publishes its joint states,
its description or a speed scaling, and a good goal follows each that has ended.
"""

import argparse
import os
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

from studies.own_domain import own_domain
from support.fuzzing.bounds import BrokenBoundError
from support.fuzzing.running_nodes import ANSWER_S, fuzzed_nodes
from tables import machine, publish, table

BATCH = 1000


def resident_mib(process: int) -> float:
    """Resident memory of a process [MiB]."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    """Fuzz all nodes and publish the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inputs", type=int, default=2000, help="messages, requests and goals (default 2000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random generator (default 0)")
    options = parser.parse_args()
    broken, begun, moved_s, longest, filled = list[str](), time.monotonic(), 0.0, 0.0, 0
    memory, counted = defaultdict[str, list[float]](list), Counter[str]()
    for moves in (False, True):
        with (tempfile.TemporaryDirectory() as folder, own_domain(),
              fuzzed_nodes(Path(folder), options.seed, moves) as fuzzer):  # fmt: skip
            try:
                for _ in range(options.inputs // (2 * BATCH)):
                    fuzzer.run(BATCH)
                    for name, node in fuzzer.processes.items():
                        memory[f"{name}{', moving' * moves}"].append(resident_mib(node.process.pid))
                    print(dict(fuzzer.counts), f"longest {fuzzer.longest:.2f} s", flush=True)
                fuzzer.check_end()
                if moves and not fuzzer.moved_s():
                    broken.append("the robot did not move")
            except BrokenBoundError as error:
                broken.append(str(error))
            moved_s, longest = moved_s + fuzzer.moved_s(), max(longest, fuzzer.longest)
            counted, filled = counted + fuzzer.counts, filled + len(fuzzer.filled)
    print(*broken or ["no bound broken"], sep="\n")
    rows = [(name, f"{used[0]:.0f}", f"{max(used):.0f}", f"{used[-1]:.0f}") for name, used in memory.items()]
    counts = ", ".join(f"{count} {what}" for what, count in counted.items())
    publish("node-fuzzing", f"""## Fuzzing of running nodes

`python benchmarks/node_fuzzing.py --inputs {options.inputs} --seed {options.seed}`: {counts} in
{time.monotonic() - begun:.0f} s, to all topics, services and actions of the nodes. An
eighth of the messages are random bytes. In the second half, only the robot publishes its joint states,
description and speed scaling, and each goal that has ended is followed by a valid goal: the robot moved for
{moved_s:.0f} s. Longest time to an answer: {longest:.2f} s ({ANSWER_S:g} s are allowed). The feed-forward
node filled {filled} trajectories, all with efforts within their limits. Broken bounds: {"; ".join(broken) or "none"}.

{table(("node", "resident memory after the first 1,000 inputs [MiB]", "largest", "last"), rows)}

Measured on {machine()}.
""")


if __name__ == "__main__":
    main()
