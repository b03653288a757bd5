"""Supervision of a motion with ordinary drives: detected speed scalings, false alarms, and waits.

    PYTHONPATH=benchmarks:test python benchmarks/speed_scaling.py --seeds 20 --hours 1

Random motions of two joints (limits 1.5 rad/s, 8 rad/s^2) under a simulated joint_trajectory_controller, drives and
sensors drawn at random: lag 1 to 40 ms, friction, play, noise, 125 to 1000 Hz, publishers idle or busy.
"""

import argparse
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from support.robots.quick_plans import quick_plan, simple_limits
from support.scaled_motion import BUSY, IDLE, Observed, Scaling, move, random_drives
from tables import machine, publish, table

from inertid_ros.config.excitation import ExecutionOptions, MonitorOptions
from inertid_ros.excitation.execution.horizons import HorizonTable

SCALINGS: dict[str, Callable[[float], Scaling]] = {
    f"{factor:g} {when}": partial(lambda factor, starts, at: lambda time: 1.0 if starts and time < at else factor,
                                  factor, starts)
    for factor in (0.9, 0.5, 0.0) for when, starts in (("from the start", False), ("in motion", True))
    if factor or starts  # a scaling of 0 from the start prevents the motion
}  # fmt: skip
KNOWN = {"reported": (0.02, True), "controller's reference": (0.0, True), "joint states alone": (0.0, False)}
UNREPORTED = ("controller's reference", "joint states alone")
HORIZONS_S = (0.15, 0.2, 0.25, 0.3, 0.4)
HORIZON_MOTIONS = 8
LIMITS = simple_limits(2)


@dataclass(frozen=True)
class Outcome:
    """One motion: duration, fault, waits, largest jump of the reference [rad], largest joint speed over its limit."""

    seconds: float
    planned_s: float
    fault: str
    waits: int
    jump: float
    joint_speed: float
    tracking_error: float


def outcome(seed: int, scaling: str = "", known: str = "controller's reference", horizon_s: float = 0.0,
            busy: bool | None = None) -> Outcome:  # fmt: skip
    """Run the motion of a seed; the seed also decides on a busy publisher unless ``busy`` is given."""
    rng = np.random.default_rng(seed)
    drives, sensors = random_drives(rng, 2)
    if busy is not None:
        sensors = replace(sensors, channel=BUSY if busy else IDLE)
    execution = ExecutionOptions(horizon_s=horizon_s) if horizon_s else ExecutionOptions()
    horizons = HorizonTable(quick_plan(LIMITS, np.zeros(2), seed), LIMITS, execution)
    factor = SCALINGS[scaling](rng.uniform(2.0, 7.0)) if scaling else lambda _time: 1.0
    told_every, controller_state = KNOWN[known]
    tolerance = MonitorOptions().tracking_tolerance
    observed = move(horizons, factor, drives, sensors, told_every, seed, controller_state, tolerance)
    return _outcome(observed, horizons)


def _outcome(observed: Observed, horizons: HorizonTable) -> Outcome:
    beyond = float((observed.speed - LIMITS.velocity).max()) * observed.cycle
    speed = float((observed.joint_speed / LIMITS.velocity).max())
    node = observed.node
    return Outcome(
        float(observed.ended), horizons.plan.duration, node.fault, node.interruptions, max(beyond, 0.0), speed,
        node.max_tracking_error,
    )  # fmt: skip


def scaled(pool: ProcessPoolExecutor, seeds: Sequence[int]) -> str:
    """Table of detected scalings, and of jumps until detection."""
    rows = []
    for known in KNOWN:
        for scaling in SCALINGS:
            done = list(pool.map(partial(outcome, scaling=scaling, known=known), seeds))
            found = sum(bool(each.fault) for each in done)
            jump, speed = (max(getattr(each, key) for each in done) for key in ("jump", "joint_speed"))
            beyond = sum(each.joint_speed > 1.0 for each in done)
            rows.append([known, scaling, f"{found} of {len(done)}", f"{1e3 * jump:.1f}", f"{speed:.2f}", beyond])
            print(*rows[-1], sep=" | ", flush=True)
    header = ("detected by", "scaling", "found", "largest jump [mrad]", "largest speed of a joint / limit",
        "above limit")
    return table(header, rows)


def false_alarms(pool: ProcessPoolExecutor, hours: float, begin: int, rows_of: Sequence[str]) -> str:
    """Table of motions at full speed that end by a fault; ``begin`` is the first seed."""
    rows = []
    for known in rows_of:
        done: list[Outcome] = []
        batch = 40
        while sum(each.seconds for each in done) < 3600 * hours / len(rows_of):
            first = begin + len(done)
            done += pool.map(partial(outcome, known=known), range(first, first + batch))
            faults = sum(bool(each.fault) for each in done)
            print(known, f"{len(done)} motions", f"{faults} faults", sep=" | ", flush=True)
        seconds = sum(each.seconds for each in done)
        messages = [each.fault for each in done if each.fault]
        error = max(each.tracking_error for each in done)
        rows.append([known, f"{seconds / 3600:.2f}", len(done), sum(each.waits for each in done), len(messages),
                     f"{1e3 * error:.0f}", "; ".join(sorted(set(messages))) or "none"])  # fmt: skip
        print(*rows[-1], sep=" | ", flush=True)
    header = ("detected by", "hours", "motions", "waits at rest", "faults", "largest tracking error [mrad]", "messages")
    return table(header, rows)


def horizons(pool: ProcessPoolExecutor, seeds: Iterable[int]) -> str:
    """Table of the benefit and cost of longer horizons."""
    rows = []
    for horizon_s in HORIZONS_S:
        row: list[object] = [horizon_s]
        for busy in (False, True):
            done = list(pool.map(partial(outcome, horizon_s=horizon_s, busy=busy), seeds))
            moved = sum(each.planned_s for each in done)
            waits, longer = sum(each.waits for each in done), sum(each.seconds for each in done) / moved - 1
            row += [f"{60 * waits / moved:.1f}", f"{100 * longer:.0f}"]
        lasts = HorizonTable(quick_plan(LIMITS, np.zeros(2), 0), LIMITS, ExecutionOptions(horizon_s=horizon_s)).longest
        rows.append([*row, f"{lasts:.2f}"])
    header = ("horizon [s]", "waits a minute, idle", "longer by [%]", "busy", "longer by [%]", "rest after SIGKILL [s]")
    return table(header, rows)


def main() -> None:
    """Publish the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4, help="motions of each row (default 4)")
    parser.add_argument("--hours", type=float, default=0.1, help="hours of motion without scaling (default 0.1)")
    parser.add_argument("--begin", type=int, default=100_000,
        help="first seed without scaling; with --seeds 0, the hours of an earlier run go on and are only printed")
    parser.add_argument("--known", choices=UNREPORTED, help="with --seeds 0, this row alone")
    options = parser.parse_args()
    seeds = range(1, options.seeds + 1)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        if not seeds:
            print(false_alarms(pool, options.hours, options.begin, [options.known] if options.known else UNREPORTED))
            return
        text = f"""## Speed scaling

`benchmarks/speed_scaling.py --seeds {options.seeds} --hours {options.hours:g}`, {machine()}. Random motions of two
joints (limits 1.5 rad/s, 8 rad/s²) under a simulated controller; drives drawn at random: lag 1 to 40 ms, friction, play
up to 1 mrad, noise 0.01 to 0.3 mrad, 125 to 1000 Hz, publishers idle or busy. A jump is the movement of the reference
in one cycle beyond the velocity limit; tracking tolerance {1e3 * MonitorOptions().tracking_tolerance:g} mrad.

{scaled(pool, seeds)}

At full speed, every detection is a false alarm:

{false_alarms(pool, options.hours, options.begin, UNREPORTED)}

Time that a horizon follows the motion before it brakes, from at most {HORIZON_MOTIONS} motions:

{horizons(pool, seeds[:HORIZON_MOTIONS])}"""
    publish("speed-scaling", text)


if __name__ == "__main__":
    main()
