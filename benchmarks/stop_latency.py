"""Time of a stop: from the request to the first brake command at the robot, and to rest.

    PYTHONPATH=benchmarks:test python benchmarks/stop_latency.py --events 100

Motions of the tests' robot (200 Hz, in a separate process) are stopped at random moments, alternately by the stop
service and by a cancel, with the package's own parameters. With the action interface, a controller in Python (separate
process) forwards goals to the robot. Requests come from another process; all share one machine and its steady clock.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from std_srvs.srv import Trigger
from studies.own_domain import own_domain
from support.latencies import Latencies
from support.nodes.armed_excitation import ArmedExcitation, excitation_in
from support.nodes.control_messages import control_messages_environment
from support.nodes.processes import raise_priority
from support.nodes.two_links import two_links
from support.paths import SUPPORT
from tables import ROOT, machine, publish, table

from inertid_ros.action import Excite

PAGE = ROOT / "docs" / "safety.md"
MOTION = {"require_recorder": False, "execution.settle_s": 0.1, "execution.approach_speed": 1.0}
BY_ACTION = {"command_interface": "follow_joint_trajectory"}
HOW = {"stop service": Excite.Result.STOPPED, "cancel": Excite.Result.CANCELED}


@dataclass
class Stops:
    """Stops of one command interface."""

    brake_s: dict[str, list[float]] = field(default_factory=lambda: {how: [] for how in HOW})
    rest_s: dict[str, list[float]] = field(default_factory=lambda: {how: [] for how in HOW})
    speed: float = 0.0  # largest over its limit
    acceleration: float = 0.0
    others: list[str] = field(default_factory=list)  # other reasons for the end of a motion
    problems: list[str] = field(default_factory=list)
    load: list[float] = field(default_factory=list)

    def rows(self, mode: str) -> list[list[object]]:
        """Rows of both requests together, then of each request."""
        requests = [(how, self.brake_s[how], self.rest_s[how]) for how in HOW]
        requests.insert(0, ("both", sum(self.brake_s.values(), []), sum(self.rest_s.values(), [])))
        return [
            [mode, how, len(brake), *(f"{1e3 * value:.1f}" for value in figures(brake)),
             *(f"{value:.3f}" for value in figures(rest))]
            for how, brake, rest in requests if brake
        ]  # fmt: skip


def figures(values: list[float]) -> list[float]:
    """Median, 99th percentile, worst."""
    return [float(np.median(values)), float(np.percentile(values, 99)), max(values)]


@contextmanager
def armed(mode: str, folder: Path) -> Iterator[ArmedExcitation]:
    """Node and robot, with a controller between them for the action interface."""
    if mode == "topic":
        with excitation_in(folder, Latencies(), MOTION) as excitation:
            yield excitation
        return
    extra = control_messages_environment(ROOT / ".pytest_cache" / "control_msgs")
    controller = subprocess.Popen(
        [sys.executable, str(SUPPORT / "nodes" / "fake_controller.py")], env={**os.environ, **extra}
    )
    raise_priority(controller.pid)
    try:
        with excitation_in(folder, Latencies(), MOTION | BY_ACTION, environment=extra) as excitation:
            yield excitation
    finally:
        controller.kill()
        controller.wait()


def measure(mode: str, events: int, seed: int) -> Stops:
    """Stop a number of motions."""
    stops, rng, (_, limits) = Stops(), np.random.default_rng(seed), two_links()
    with own_domain(), tempfile.TemporaryDirectory() as folder, armed(mode, Path(folder)) as excitation:
        ros = excitation.ros
        service = ros.node.create_client(Trigger, "excitation/stop")
        while sum(map(len, stops.brake_s.values())) < events and len(stops.others) < events:
            how = list(HOW)[sum(map(len, stops.brake_s.values())) % 2]
            try:
                goal = excitation.ready().moving_fast()
            except AssertionError as error:
                stops.others.append(str(error).splitlines()[0])
                continue
            ros.spin(rng.uniform(0.0, 1.0))
            moment = time.monotonic()
            if how == "cancel":
                goal.cancel_goal_async()
            else:
                service.call_async(Trigger.Request())
            outcome = ros.result(goal)
            ros.until(lambda: excitation.robot.at_rest, "rest")
            ros.spin(0.3)
            if outcome.result.error_code != HOW[how] or "joint state" in outcome.result.message:
                stops.others.append(outcome.result.message)
                continue
            record = excitation.robot.record()
            try:
                stops.brake_s[how].append(record.stop_after(moment) - moment)
            except AssertionError:  # the robot came to rest by its last horizon
                stops.others.append("the brake did not reach the robot")
                continue
            stops.rest_s[how].append(record.rested_at - moment)
            stops.load.append(os.getloadavg()[0])
            stops.speed = max(stops.speed, float((abs(record.velocity) / limits.velocity).max()))
            used = float((abs(record.acceleration) / limits.acceleration).max())
            stops.acceleration = max(stops.acceleration, used)
            try:
                record.check_limits()
            except AssertionError as error:
                stops.problems.append(str(error).splitlines()[0])
    return stops


def main() -> None:
    """Measure and publish the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--events", type=int, default=100, help="stops per command interface (default 100)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the moments (default 0)")
    parser.add_argument("--modes", nargs="+", choices=("topic", "action"), default=["topic", "action"])
    parser.add_argument("--dry", action="store_true", help="do not publish")
    options = parser.parse_args()
    rows: list[list[object]] = []
    notes = []
    for mode in options.modes:
        stops = measure(mode, options.events, options.seed)
        rows += stops.rows(mode)
        notes.append(
            f"By {mode}: load {min(stops.load):.1f} to {max(stops.load):.1f}, speed at most {stops.speed:.2f} and"
            f" acceleration {stops.acceleration:.2f} of their limits; motions that exceeded a limit:"
            f" {len(stops.problems)}; motions that ended for other reasons: {len(stops.others)}."
        )
        print(*stops.rows(mode), notes[-1], *stops.problems, *stops.others, sep="\n", flush=True)
    header = (
        "by", "request", "events", "brake, median [ms]", "99 %", "worst", "rest, median [s]", "99 %", "worst",
    )  # fmt: skip
    text = f"""`python benchmarks/stop_latency.py --events {options.events} --seed {options.seed}`:

{table(header, rows)}

{textwrap.fill(f"{' '.join(notes)} Measured on {machine()}.", 120)}"""
    if not options.dry:
        publish("stop-latency", text, PAGE)


if __name__ == "__main__":
    main()
