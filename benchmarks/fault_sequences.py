"""Random sequences of faults around the excitation node's state machine, with a robot observed from outside.

    PYTHONPATH=benchmarks:test python benchmarks/fault_sequences.py --sequences 1000 --seed 0

The clock is simulated, so that a seed repeats its sequence. The robot follows its commands like a
joint_trajectory_controller. It is observed every millisecond; acceleration and jerk come from cubics fitted to 31 ms.
See test/support/excitation/world.py for the events and the invariants.
"""

import argparse
import time
from collections import Counter
from dataclasses import dataclass

import numpy as np
from support.excitation.observed_controller import Observed
from support.excitation.world import EVENTS, World
from tables import machine, publish, table


@dataclass
class Sequence:
    """Result of one sequence."""

    seed: int
    events: list[str]
    observed: Observed
    rest_s: list[float]
    motions: int
    violations: list[str]
    steps: list[float]
    steps_after_lost: list[float]
    by_old_clock: int


def run(seed: int) -> Sequence:
    """Run a motion with three to ten events during and after it."""
    rng, world, events, motions = np.random.default_rng(seed), World(seed), [], 0
    names = list(EVENTS)
    for index in range(rng.integers(4, 12)):
        # Most events have no effect at rest: half of the events at rest are therefore motions.
        idle = world.machine.goal is None and rng.random() < 0.5
        name = "motion" if index == 0 or idle else names[rng.integers(len(names))]
        events.append(name)
        motions += name == "motion"
        try:
            EVENTS[name](world, rng.random())
            world.run(rng.choice([0.005, 0.05, 0.5, 2.0]) * rng.random())
        except AssertionError as error:  # the controller refuses a command
            world.violations.append(str(error))
            break
    observed = world.end()
    steps, lost = world.controller.steps, world.controller.steps_after_lost
    return Sequence(seed, events, observed, world.rest_s, motions, world.violations, steps, lost, world.by_old_clock)


def main() -> None:
    """Run all sequences and publish the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sequences", type=int, default=100, help="number of sequences (default 100)")
    parser.add_argument("--seed", type=int, default=0, help="first of consecutive seeds (default 0)")
    options = parser.parse_args()
    begin, observed, counts = time.monotonic(), Observed(), Counter[str]()
    done = [run(options.seed + index) for index in range(options.sequences)]
    for sequence in done:
        observed.join(sequence.observed)
        counts.update(sequence.events)
        for violation in sequence.violations:
            print(f"seed {sequence.seed}: {violation}; events: {', '.join(sequence.events)}")
    rest = np.array([seconds for sequence in done for seconds in sequence.rest_s])
    broken = sum(bool(sequence.violations) for sequence in done)
    steps = np.array([step for sequence in done for step in sequence.steps])
    lost = np.array([step for sequence in done for step in sequence.steps_after_lost])
    rows: list[list[object]] = [
        ["sequences, motions begun", f"{len(done)}, {sum(sequence.motions for sequence in done)}"],
        ["events", sum(counts.values())],
        ["largest speed / limit", f"{observed.velocity:.3f}"],
        ["largest acceleration / limit", f"{observed.acceleration:.3f}"],
        ["largest jerk / jerk of the plan and its brakes", f"{observed.jerk:.3f}"],
        ["time from the start of a stop to rest, median and longest [s]", f"{np.median(rest):.2f}, {rest.max():.2f}"],
        ["commands to a controller delayed by a scaling; largest step [mrad]",
         f"{np.sum(steps > 0)}, {1e3 * steps.max():.1f}"],
        ["commands to a controller that brakes after lost commands; largest step [mrad]",
         f"{len(lost)}, {1e3 * lost.max(initial=0.0):.1f}"],
        ["commands stamped by a clock after an undetected step", sum(sequence.by_old_clock for sequence in done)],
        ["sequences in which an invariant was broken", broken],
    ]
    events = ", ".join(f"{name} ({counts[name]})" for name in EVENTS)
    publish(
        "fault-sequences",
        f"""## Sequences of faults

`python benchmarks/fault_sequences.py --sequences {options.sequences} --seed {options.seed}`: random sequences of events
around the state machine of the excitation node and a robot of two joints, in simulated time. The invariants of
docs/safety.md are checked after every event and tick. The robot is observed at 1 kHz, except when the controller
changes the speed at once, when an unreported scaling delays the controller at a stop request, and when a command
arrives while the controller brakes after lost commands. The steps of the last two cases have separate rows.
Measured in {time.monotonic() - begin:.0f} s on {machine()}.

{table(("measure", "figure"), rows)}

Events: {events}.""",
    )


if __name__ == "__main__":
    main()
