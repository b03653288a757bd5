"""End a calibration at random instants; check the time to the end of all processes, rest, and messages.

    PYTHONPATH=benchmarks:test python benchmarks/endings.py --trials 200

The flow of `calibrate` runs as in `killed_nodes.py`. Three times in four, all nodes get SIGINT twice, in random order
and up to 50 ms apart, as by Ctrl-C in `ros2 launch`; otherwise one node gets SIGKILL or SIGSTOP. The stage is drawn
uniformly from all stages, and the instant from its first half second; "starting" is the first second and a half. If a
node ends before the flow has registered it, the flow reports this only after its waiting time.
"""

import argparse
import os
import shutil
import signal
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from studies.stages_of_calibration import LONGEST_S, WAIT_S, Calibration, NotReachedError, calibration
from support.nodes.processes import NodeProcess
from tables import machine, publish, table

from inertid_ros.nodes.spin import end_within

ENDED_S, TOLD_S = 3.0, 1.0  # allowed for an end, and for the message of a lost node
PROCESSES = ("excitation", "recorder", "identifier", "calibrate")
STAGES = (
    "starting", "waiting", "planning", "approaching", "moving", "stopping", "recording finished", "identifying",
    "ended",
)  # fmt: skip
LOSSES = {"SIGKILL": signal.SIGKILL, "SIGSTOP": signal.SIGSTOP}
LOSS_STAGES = STAGES[1:5] + STAGES[6:8]  # stages in which the flow watches the nodes
NEVER_SEEN = ("is not there", "publishes no status")  # for nodes that end before the flow registers them
HEADER = (
    "signal", "trials", "last process ended after (median, worst)", "reported after (median, worst)",
    "speed, acceleration", "messages", "problems",
)  # fmt: skip


@dataclass
class Outcome:
    """Result of one trial; times are from the first signal [s]."""

    signal: str
    stage: str
    ended: float = np.nan
    told: float = np.nan
    speed: float = 0.0
    acceleration: float = 0.0
    said: str = "-"
    problems: list[str] = field(default_factory=list)


def interrupt(flow: Calibration, outcome: Outcome, rng: np.random.Generator) -> None:
    """Interrupt all nodes as by Ctrl-C."""
    nodes = {name: flow.nodes[name] for name in PROCESSES}
    was_over = flow.flow_ended
    order = np.concatenate([rng.permutation(PROCESSES), rng.permutation(PROCESSES)])
    begin = time.monotonic()
    for name in order:
        nodes[name].signal(signal.SIGINT)
        time.sleep(rng.uniform(0.0, 0.05))
    left = running(nodes)
    while left and time.monotonic() < begin + ENDED_S:
        flow.ros.spin(0.01)
        left = running(nodes)
    outcome.ended = time.monotonic() - begin
    if left:
        outcome.problems.append(f"still running after {outcome.ended:.1f} s: {', '.join(left)}")
    for name, node in nodes.items():
        status = node.process.poll()
        if name != "calibrate" and status != 0 or name == "calibrate" and not was_over and status != 130:
            outcome.problems.append(f"{name} ended with status {status}")
    if not was_over:
        lines = [line.partition("]: ")[2] for line in nodes["calibrate"].log().splitlines() if "interrupted; " in line]
        outcome.said = lines[0] if lines else "nothing"
        if outcome.said != "interrupted; the robot is at rest":
            outcome.problems.append(f"said: {outcome.said}")


def lose(flow: Calibration, outcome: Outcome, node: str) -> None:
    """Send SIGKILL or SIGSTOP to one node."""
    begin = time.monotonic()
    flow.nodes[node].signal(LOSSES[outcome.signal])
    ended = False
    while time.monotonic() < begin + WAIT_S + 2 * TOLD_S and np.isnan(outcome.told) and not ended:
        ended = flow.flow_ended  # before its last lines are read
        if lines := told(flow, node):
            outcome.told, outcome.said = time.monotonic() - begin, lines[0]
        flow.ros.spin(0.01)
    goes_on = "WARN" in outcome.said or flow.flow_ended and flow.nodes["calibrate"].process.poll() in (0, 3)
    if not goes_on:
        told_by = TOLD_S + WAIT_S * any(words in outcome.said for words in NEVER_SEEN)
        while not flow.flow_ended and time.monotonic() < begin + told_by + 2 * ENDED_S:
            flow.ros.spin(0.01)
        outcome.ended, status = time.monotonic() - begin, flow.nodes["calibrate"].process.poll()
        if outcome.ended > told_by + ENDED_S or status != 2:
            outcome.problems.append(f"the flow ended after {outcome.ended:.1f} s with status {status}")
        if not outcome.told <= told_by:
            outcome.problems.append(f"reported after {outcome.told:.2f} s")
    flow.ros.until(lambda: flow.flow_ended, "end of the flow", LONGEST_S)
    outcome.said = outcome.said.partition("]: ")[2] or outcome.said
    flow.nodes[node].kill()


def told(flow: Calibration, node: str) -> list[str]:
    """Lines of the flow that name a node as lost."""
    lines = flow.nodes["calibrate"].log().splitlines()
    return [line for line in lines if ("ERROR" in line or "WARN" in line) and node in line.partition("]: ")[2]]


def running(nodes: dict[str, NodeProcess]) -> list[str]:
    """Nodes that still run; if all nodes have ended, remaining processes that they started."""
    left = [name for name, node in nodes.items() if not node.ended]
    return left or workers_of(os.environ["ROS_DOMAIN_ID"])


def workers_of(domain: str) -> list[str]:
    """Processes that nodes of a domain have started."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            is_worker = b"inertid_ros.core.worker" in (process / "cmdline").read_bytes()
            if is_worker and f"ROS_DOMAIN_ID={domain}\0".encode() in (process / "environ").read_bytes():
                found.append(f"worker {process.name}")
        except OSError:  # it has ended
            continue
    return found


def check_robot(flow: Calibration, outcome: Outcome) -> None:
    """Check that the robot rests by the end of its last command, within its limits."""
    flow.ros.until(lambda: flow.robot.at_rest, "rest", 10.0)
    flow.ros.spin(0.3)
    record = flow.robot.record()
    if not record.commands or not record.velocity.any():
        return
    try:
        record.check_limits()
    except AssertionError as error:
        outcome.problems.append(f"limits: {error}")
    outcome.speed, outcome.acceleration = np.abs(record.velocity).max(), np.abs(record.acceleration).max()
    if record.rested_at > record.commands[-1].end + 0.02:
        outcome.problems.append("rests after the end of its last command")


def trial(flow: Calibration, outcome: Outcome, node: str, rng: np.random.Generator) -> None:
    """Run one trial after a restart of all ended nodes."""
    for name in PROCESSES[:-1]:
        if flow.nodes[name].ended:
            flow.start(name)
    if flow.flow_ended:
        flow.renew()
    if outcome.stage == "ended":
        flow.ros.until(lambda: flow.flow_ended, "end of the flow", LONGEST_S)
    elif outcome.stage != "starting":
        flow.until(outcome.stage)
    flow.ros.spin(rng.uniform(0.0, 1.5 if outcome.stage == "starting" else 0.5))
    if outcome.signal in LOSSES:
        if flow.flow_ended:
            raise NotReachedError("the flow has ended")
        lose(flow, outcome, node)
    else:
        interrupt(flow, outcome, rng)
    check_robot(flow, outcome)
    if any("Traceback" in flow.nodes[name].log() for name in PROCESSES):
        outcome.problems.append("a traceback")


def run(trials: int, seed: int, keep: Path | None) -> None:
    """Run all trials, with new nodes after a problem, publish the table, and end this process."""
    outcomes: list[Outcome] = []
    rng = np.random.default_rng(seed)
    while len(outcomes) < trials:
        with tempfile.TemporaryDirectory(prefix="endings_") as folder:
            with calibration(Path(folder)) as flow:
                fine = True
                while fine and len(outcomes) < trials:
                    name = rng.choice(["SIGINT", *LOSSES], p=[0.75, 0.15, 0.1])
                    outcome = Outcome(str(name), str(rng.choice(LOSS_STAGES if name in LOSSES else STAGES)))
                    node = str(rng.choice(PROCESSES[:-1]))
                    try:
                        trial(flow, outcome, node, rng)
                    except NotReachedError as error:
                        print(f"{outcome.stage}: {error}; restarted", flush=True)
                        break
                    except AssertionError as error:
                        outcome.problems.append(str(error).splitlines()[0])
                    outcomes.append(outcome)
                    who = "all" if outcome.signal == "SIGINT" else node
                    times = f"ended {outcome.ended:.2f} s, reported {outcome.told:.2f} s"
                    print(
                        len(outcomes), outcome.signal, who, outcome.stage, times, outcome.said,
                        "; ".join(outcome.problems) or "fine", f"load {os.getloadavg()[0]:.1f}", sep=" | ", flush=True,
                    )  # fmt: skip
                    fine = not outcome.problems
                if len(outcomes) == trials:
                    publish_table(outcomes, seed)
                    end_within(any(outcome.problems for outcome in outcomes))  # Fast DDS may hang at its end
            if keep and not fine:
                shutil.copytree(folder, keep / f"trial_{len(outcomes)}", dirs_exist_ok=True)


def row(name: str, outcomes: list[Outcome]) -> list[object]:
    """Table row of one signal."""
    def times(values: list[float]) -> str:
        finite = [value for value in values if np.isfinite(value)]
        return f"{np.median(finite):.2f} s, {max(finite):.2f} s" if finite else "-"

    said: defaultdict[str, int] = defaultdict(int)
    for outcome in outcomes:
        said[outcome.said] += 1
    return [
        name, len(outcomes), times([outcome.ended for outcome in outcomes]),
        times([outcome.told for outcome in outcomes]),
        f"{max(o.speed for o in outcomes):.2f} rad/s, {max(o.acceleration for o in outcomes):.1f} rad/s²",
        "; ".join(f"{count} × {line}" for line, count in sorted(said.items()) if line != "-"),
        sum(bool(outcome.problems) for outcome in outcomes),
    ]  # fmt: skip


def publish_table(outcomes: list[Outcome], seed: int) -> None:
    """Publish one row per signal."""
    rows = [
        row(name, chosen)
        for name in ("SIGINT", *LOSSES)
        if (chosen := [outcome for outcome in outcomes if outcome.signal == name])
    ]
    bad = sum(bool(outcome.problems) for outcome in outcomes)
    publish("endings", f"""{table(HEADER, rows)}

{len(outcomes)} trials of seed {seed}, {bad} with problems. Measured on {machine()}.""")


def main() -> None:
    """End calibrations, and publish the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="folder for the output of all nodes in trials with a problem")
    options = parser.parse_args()
    run(options.trials, options.seed, options.keep)


if __name__ == "__main__":
    main()
