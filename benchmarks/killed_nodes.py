"""Kill each node at each stage of a calibration; check rest, messages and restart.

    PYTHONPATH=benchmarks:test python benchmarks/killed_nodes.py
    PYTHONPATH=benchmarks:test python benchmarks/killed_nodes.py --only recorder:moving --keep logs

The flow of `calibrate` runs with a robot of two joints. Each node, the robot's driver and the robot have separate
processes; the robot checks all its commands. A node gets SIGKILL at a stage. The robot must rest by the end of its last
command, within its limits. The remaining processes must name the lost node in one line, and end. After a restart of the
node, a calibration must succeed (after most stages: move the robot, and end by an interruption), and every recording
must be readable.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from studies.stages_of_calibration import (
    BRAKE_S,
    HORIZON_S,
    LEASE_S,
    LONGEST_S,
    NODES,
    STAGES,
    Calibration,
    NotReachedError,
    calibration,
    errors,
)
from support.nodes.fake_robot import FakeRobot, Record
from support.nodes.ros_client import RosClient
from support.nodes.two_links import two_links
from tables import ROOT, machine, publish, table

from inertid_ros.core.errors import InertidError
from inertid_ros.data.files.loading import load_recording

PAGE = ROOT / "docs" / "faults.md"
HEADER = (
    "killed", "while", "robot", "speed, acc.", "message", "status of the flow", "again", "recordings", "problems",
)  # fmt: skip
# Time from the end of a node to the last horizon. Without recorder or identifier a motion may go on.
STOPPING = {
    "excitation": 0.0,
    "calibrate": LEASE_S,
    "driver": 0.0,  # forwards horizons
}
WHOLE = ("moving", "identifying")  # stages after which a whole calibration is repeated
WELL = (0, 3)  # statuses of a complete calibration with a good or bad result
# Words that identify the lost node in a message.
NAMES = {name: (name,) for name in NODES} | {
    "calibrate": ("lease",),
    "driver": ("joint state", "joint_states", "samples"),
}


@dataclass
class Outcome:
    """Result of one trial."""

    node: str
    stage: str
    rest: str = "rests"
    limits: str = "-"
    said: str = ""
    ended: str = ""
    restarted: str = ""
    recordings: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def cells(self) -> list[object]:
        """Cells of a table row."""
        problems = "; ".join(self.problems) or "none"
        return [
            self.node, self.stage, self.rest, self.limits, self.said, self.ended, self.restarted, self.recordings,
            problems,
        ]  # fmt: skip


def check_rest(outcome: Outcome, robot: FakeRobot, ros: RosClient, moment: float) -> None:
    """Check that the robot rests by the end of its last command, within limits; it may begin to move until then."""
    ros.spin(STOPPING.get(outcome.node, 0.0))
    ros.until(lambda: robot.at_rest, "rest", HORIZON_S + BRAKE_S + 5.0)
    ros.spin(0.5)
    record = robot.record()
    try:
        record.check_limits()
        if not record.commands or not record.velocity.any():
            return
        outcome.limits = used(record)
        rest = record.rested_at - moment
        if rest > 0:
            outcome.rest = f"after {rest:.2f} s"
        late = outcome.node in STOPPING and rest > STOPPING[outcome.node] + HORIZON_S + BRAKE_S
        if late or record.rested_at > record.commands[-1].end + 0.02:
            outcome.problems.append(f"rests late, after {rest:.2f} s")
    except AssertionError as error:
        outcome.problems.append(f"limits: {error}")


def used(record: Record) -> str:
    """Largest speed and acceleration as fractions of their limits."""
    _, limits = two_links()
    speed = (abs(record.velocity) / limits.velocity).max()
    return f"{speed:.2f}, {(abs(record.acceleration) / limits.acceleration).max():.2f}"


def trial(flow: Calibration, node: str, stage: str) -> Outcome:
    """Kill one node at one stage."""
    outcome = Outcome(node, stage)
    flow.until(stage)
    moment, begin = time.monotonic(), len(flow.excitation)
    flow.nodes[node].kill()
    was_over = flow.flow_ended and node != "calibrate"
    if node in STOPPING:
        check_rest(outcome, flow.robot, flow.ros, moment)
    flow.ros.until(lambda: flow.flow_ended, "end of the flow", LONGEST_S)
    if node not in STOPPING:
        check_rest(outcome, flow.robot, flow.ros, moment)
    flow.ros.spin(LEASE_S + 0.5)  # a lease runs out
    status = flow.nodes["calibrate"].process.wait()
    judge_end(outcome, flow, status, begin, was_over)
    again(outcome, flow)
    flow.robot.record().check_limits()
    check_files(outcome, flow)
    return outcome


def again(outcome: Outcome, flow: Calibration) -> None:
    """Start the killed node and calibrate: to the end, or after most stages until the robot moves again."""
    flow.parameters.clear()
    for name in {outcome.node, "calibrate"}:
        flow.start(name)
    whole = outcome.stage in WHOLE
    if not whole:
        flow.ros.until(lambda: flow.flow_ended or flow.reached("moving"), "second motion", LONGEST_S)
        flow.nodes["calibrate"].signal(signal.SIGINT)
    flow.ros.until(lambda: flow.flow_ended, "end of the second flow", 2 * LONGEST_S)
    status = flow.nodes["calibrate"].process.wait()
    outcome.restarted = f"calibrated, {status}" if whole else f"moved, {status}"
    if status not in (WELL if whole else (130,)) or whole and not flow.reached("publishing"):
        said = errors(flow.nodes["calibrate"].log())
        outcome.problems.append(f"after the restart: status {status}, {'; '.join(said)}")


def judge_end(outcome: Outcome, flow: Calibration, status: int, begin: int, was_over: bool) -> None:
    """Check that one line names the lost node, if another process depends on it."""
    node, said = outcome.node, flow.said(begin)
    told = "; ".join(line.partition("; warning")[0] for line in said)
    outcome.said = told.replace("|", "/") or "-"
    outcome.ended = "killed" if node == "calibrate" else str(status)
    if was_over or status in WELL:
        return
    in_motion = outcome.stage in ("approaching", "moving")
    if node == "calibrate":
        if in_motion and not any("lease" in line for line in said):
            outcome.problems.append("the lease is not reported")
    elif status == 130:
        if errors(flow.nodes["calibrate"].log()):
            outcome.problems.append("errors after an interruption")
    elif status != 2 or len(said) != 1 or not any(name in said[0] for name in NAMES[node]):
        outcome.problems.append("messages do not name the node")


def check_files(outcome: Outcome, flow: Calibration) -> None:
    """Check that new recordings are readable and logs are without tracebacks."""
    for path in flow.new_files("recordings/*"):
        outcome.recordings += 1
        try:
            load_recording(path)
        except InertidError as error:
            outcome.problems.append(f"{path.name}: {error}")
    for path in flow.ros.folder.glob("*.log"):
        if "Traceback" in path.read_text(errors="replace"):
            outcome.problems.append(f"traceback in {path.name}")


def published() -> dict[tuple[str, str], list[str]]:
    """Rows of the page."""
    section = PAGE.read_text(encoding="utf-8").partition("<!-- killed-nodes -->")[2].partition("<!-- /killed")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {(row[0], row[1]): row for row in rows if row[0] in NODES}


def run(node: str, stages: list[str], rows: dict[tuple[str, str], list[str]], keep: Path | None) -> None:
    """Kill a node at stages and remove them from the list; after a problem, the caller starts new nodes."""
    with tempfile.TemporaryDirectory(prefix="killed_nodes_") as folder:
        with calibration(Path(folder)) as flow:
            while stages:
                stage = stages[0]
                try:
                    outcome = trial(flow, node, stage)
                except NotReachedError as error:
                    print(f"{node}, {stage}: {error}; restarted", flush=True)
                    break
                except AssertionError as error:
                    outcome = Outcome(node, stage, problems=[str(error).splitlines()[0]])
                rows[node, stages.pop(0)] = [*map(str, outcome.cells)]
                print(*map(str, outcome.cells), f"load {os.getloadavg()[0]:.1f}", sep=" | ", flush=True)
                if outcome.problems:
                    break
                if stages:
                    flow.renew()
        if keep:
            shutil.copytree(folder, keep / f"{node}_{time.monotonic():.0f}")


def main() -> None:
    """Kill the nodes, and publish the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    kept = "only these trials; other rows of the page are kept"
    parser.add_argument("--only", nargs="+", default=[], metavar="NODE:STAGE", help=kept)
    parser.add_argument("--keep", type=Path, help="folder for the output of all nodes")
    options = parser.parse_args()
    every = [f"{node}:{stage}" for node in NODES for stage in STAGES]
    pairs = [(node, stage) for node, _, stage in (name.partition(":") for name in options.only or every)]
    rows = published() if options.only else {}
    for node in NODES:
        stages = [stage for name, stage in pairs if name == node]
        while stages:
            run(node, stages, rows, options.keep)
    shown = [rows[pair] for node in NODES for stage in STAGES if (pair := (node, stage)) in rows]
    bad = sum(row[-1] != "none" for row in shown)
    publish("killed-nodes", f"""{table(HEADER, shown)}

{len(shown)} trials, {bad} with problems. Measured on {machine()}.""", PAGE)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
