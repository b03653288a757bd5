"""Kill each node at each stage of a calibration: does the robot rest, who says so, and does a restart go on?

    PYTHONPATH=benchmarks:test python benchmarks/killed_nodes.py
    PYTHONPATH=benchmarks:test python benchmarks/killed_nodes.py --only recorder:moving --keep /tmp/logs

The flow of `calibrate` runs with a robot of two joints, each node in a process of its own, the robot's driver as well;
the robot, in one more process, judges all that it is sent. A node gets SIGKILL at a stage. The robot has to rest by the
end of the last command that it had, within its limits; what still runs has to say in one line who is gone, and to end;
after the node is started again, a calibration has to end well, and every recording has to be readable.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from support.nodes.calibration_flow import MANY_NODES
from support.nodes.fake_robot import FakeRobot, Record
from support.nodes.processes import NodeProcess
from support.nodes.relay_driver import ROBOT_SIDE
from support.nodes.ros_client import RosClient, ros_client_in
from support.nodes.two_links import two_links
from support.paths import SUPPORT
from tables import ROOT, machine, publish, table

from inertid_ros.core.errors import InertidError
from inertid_ros.data.files.loading import load_recording
from inertid_ros.msg import ExcitationStatus, IdentifierStatus, InertialParameters, RecorderStatus
from inertid_ros.nodes.demo.domain import claim_domain

PAGE = ROOT / "docs" / "faults.md"
NODES = ("excitation", "recorder", "identifier", "calibrate", "driver")
STAGES = (
    "waiting", "planning", "approaching", "moving", "stopping", "recording finished", "identifying", "publishing",
)  # fmt: skip
FASTER = {"approaching": 0.1, "moving": 0.5}  # than this is the robot when a node is killed [rad/s]
HORIZON_S, BRAKE_S = 0.4, 0.6  # of a motion, and the longest brake along it
EXCITATION = {
    **MANY_NODES,
    "require_recorder": True,
    "tick_s": 0.005,
    "execution.approach_speed": 0.25,
    "execution.horizon_s": HORIZON_S,
    "execution.period_s": 0.05,
    "monitor.state_timeout_s": 0.5,
    "monitor.lease_timeout_s": 1.0,
}
# How long after the end of a node the last horizon is sent. Without recorder or identifier a motion may go on.
STOPPING = {
    "excitation": 0.0,
    "calibrate": EXCITATION["monitor.lease_timeout_s"],
    "driver": 0.0,  # which hands it on
}
WAIT_S = 10.0  # of a flow for nodes that are not there
LONGEST_S = 60.0  # that a stage, the end of a flow, and a whole calibration may take
WELL = (0, 3)  # statuses of a calibration that came to its end, be its result good or not
# What a line has to hold, so that a reader knows who is gone.
NAMES = {name: (name,) for name in NODES} | {"calibrate": ("lease",), "driver": ("joint state", "samples")}


class NotReachedError(Exception):
    """The flow ended before the stage, as where a busy machine held the robot's states up; nobody was killed yet."""


@dataclass
class Outcome:
    """What came of one trial."""

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
        """Of a row of the table."""
        problems = "; ".join(self.problems) or "none"
        return [
            self.node, self.stage, self.rest, self.limits, self.said, self.ended, self.restarted, self.recordings,
            problems,
        ]  # fmt: skip


class Calibration:
    """Robot and nodes; ``start`` and ``flow`` start what was killed or has ended again."""

    def __init__(self, ros: RosClient, robot: FakeRobot) -> None:
        self.ros, self.robot = ros, robot
        self.excitation = ros.listen(ExcitationStatus, "excitation/status")
        self.recorder = ros.listen(RecorderStatus, "recorder/status")
        self.identifier = ros.listen(IdentifierStatus, "identifier/status")
        self.parameters = ros.listen(InertialParameters, "identifier/parameters")
        self.nodes: dict[str, NodeProcess] = {}
        for name in NODES:
            self.start(name)

    def start(self, name: str) -> None:
        """A node, as at first."""
        folder = self.ros.folder
        own: dict[str, dict[str, object]] = {
            "excitation": {**EXCITATION},
            "recorder": {"directory": str(folder / "recordings"), "min_free_mb": 1},
            "identifier": {"output_directory": str(folder / "results"), "state_directory": str(folder / "state")},
            "calibrate": {"wait_s": WAIT_S, "tables": False},
        }
        script = (str(SUPPORT / "nodes" / "relay_driver.py"),) if name == "driver" else ()
        self.nodes[name] = self.ros.start(name, own.get(name), script=script)

    @property
    def flow_ended(self) -> bool:
        """Whether the flow has."""
        return self.nodes["calibrate"].process.poll() is not None

    def reached(self, stage: str) -> bool:
        """Whether the flow is at a stage."""
        state = self.excitation[-1].state if self.excitation else None
        if stage == "waiting":
            return "waiting for" in self.nodes["calibrate"].log()
        if stage in FASTER:
            return state == getattr(ExcitationStatus, stage.upper()) and self.robot.speed > FASTER[stage]
        if stage == "recording finished":
            pairs = zip(self.recorder, self.recorder[1:], strict=False)
            return any(after.name == "" and before.recording for before, after in pairs)
        if stage == "identifying":
            return bool(self.identifier) and self.identifier[-1].state == IdentifierStatus.SOLVING
        if stage == "publishing":
            return bool(self.parameters)
        return state == getattr(ExcitationStatus, stage.upper())

    def until(self, stage: str) -> None:
        """Run the flow up to a stage."""
        if stage == "stopping":
            self.until("moving")
            self.nodes["calibrate"].signal(signal.SIGINT)

        def seen() -> str:
            ended = self.flow_ended and stage != "stopping"
            return "stage" if self.reached(stage) else "end" if ended else ""

        if self.ros.until(seen, stage, LONGEST_S) == "end":
            raise NotReachedError(f"the flow ended before {stage}: {self.said(0)}")

    def said(self, begin: int) -> list[str]:
        """Errors of the flow, and of the excitation node since a status of it."""
        lines = [line for line in self.nodes["calibrate"].log().splitlines() if line.startswith("error: ")]
        if not lines:
            latched = (ExcitationStatus.LATCHED, ExcitationStatus.STOPPING)
            lines = [status.message for status in self.excitation[begin:] if status.state in latched][-1:]
        return lines


@contextmanager
def calibration(folder: Path) -> Iterator[Calibration]:
    """All nodes and the robot, in a domain of their own."""
    with claim_domain() as domain:
        os.environ.update(ROS_DOMAIN_ID=str(domain), ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST")
        with FakeRobot(remaps=ROBOT_SIDE) as robot, ros_client_in(folder) as ros:
            yield Calibration(ros, robot)


def check_rest(outcome: Outcome, robot: FakeRobot, ros: RosClient, moment: float) -> None:
    """The robot rests by the end of what it was sent last, within its limits."""
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


def trial(node: str, stage: str, folder: Path) -> Outcome:
    """One node, killed at one stage."""
    outcome = Outcome(node, stage)
    with calibration(folder) as flow:
        flow.until(stage)
        moment, begin = time.monotonic(), len(flow.excitation)
        flow.nodes[node].kill()
        check_rest(outcome, flow.robot, flow.ros, moment)
        was_over = flow.flow_ended and node != "calibrate"
        flow.ros.until(lambda: flow.flow_ended, "end of the flow", LONGEST_S)
        flow.ros.spin(1.5)  # a lease runs out
        status = flow.nodes["calibrate"].process.returncode
        judge_end(outcome, flow, status, begin, was_over)
        flow.parameters.clear()
        flow.start(node)
        if node != "calibrate":
            flow.start("calibrate")
        flow.ros.until(lambda: flow.flow_ended, "second flow", 2 * LONGEST_S)
        again = flow.nodes["calibrate"].process.returncode
        outcome.restarted = f"{again}"
        if again not in WELL or not flow.reached("publishing"):
            said = [line for line in flow.nodes["calibrate"].log().splitlines() if line.startswith("error: ")]
            outcome.problems.append(f"after the restart: status {again}, {'; '.join(said)}")
        flow.robot.record().check_limits()
    outcome.recordings = check_recordings(outcome, folder / "recordings")
    tracebacks = [log.name for log in folder.glob("*.log") if "Traceback" in log.read_text(errors="replace")]
    outcome.problems += [f"traceback in {name}" for name in tracebacks]
    return outcome


def judge_end(outcome: Outcome, flow: Calibration, status: int, begin: int, was_over: bool) -> None:
    """One line tells who is gone, where somebody was left to miss the node."""
    node, said = outcome.node, flow.said(begin)
    told = "; ".join(line.partition("; warning")[0] for line in said)
    outcome.said = told.replace("error: ", "").replace("|", "/") or "-"
    outcome.ended = "killed" if node == "calibrate" else str(status)
    if was_over or status in WELL:
        return
    in_motion = outcome.stage in ("approaching", "moving")
    if node == "calibrate":
        if in_motion and not any("lease" in line for line in said):
            outcome.problems.append("the lease is not told")
    elif status == 130:
        if len(said) != 1:
            outcome.problems.append("not one line")
    elif status != 2 or len(said) != 1 or not any(name in said[0] for name in NAMES[node]):
        outcome.problems.append("not one line that names the node")


def check_recordings(outcome: Outcome, folder: Path) -> int:
    """How many recordings there are; each is readable."""
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    for path in found:
        try:
            load_recording(path)
        except InertidError as error:
            outcome.problems.append(f"{path.name}: {error}")
    return len(found)


def main() -> None:
    """Kill, and publish the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="NODE:STAGE", help="these trials alone, unpublished")
    parser.add_argument("--keep", type=Path, help="folder for all that the nodes wrote")
    options = parser.parse_args()
    pairs = [tuple(pair.split(":")) for pair in options.only] or [(node, stage) for node in NODES for stage in STAGES]
    outcomes, repeated = [], 0
    while pairs:
        node, stage = pairs.pop(0)
        folder = Path(tempfile.mkdtemp(prefix="killed_nodes_"))
        try:
            outcomes.append(trial(node, stage, folder))
        except NotReachedError as error:
            print(f"{node}, {stage}: {error}; begun again", flush=True)
            repeated, pairs[:0] = repeated + 1, [(node, stage)]
            continue
        except AssertionError as error:
            outcomes.append(Outcome(node, stage, problems=[str(error).splitlines()[0]]))
        print(*outcomes[-1].cells, f"load {os.getloadavg()[0]:.1f}", sep=" | ", flush=True)
        if options.keep:
            shutil.copytree(folder, options.keep / f"{node}_{stage.replace(' ', '_')}", dirs_exist_ok=True)
        shutil.rmtree(folder)
    bad = sum(bool(outcome.problems) for outcome in outcomes)
    if not options.only:
        header = (
            "killed", "while", "robot", "speed, acc.", "what is told", "status of the flow", "again", "recordings",
            "problems",
        )  # fmt: skip
        publish("killed-nodes", f"""## Killed nodes

{table(header, [outcome.cells for outcome in outcomes])}

{len(outcomes)} trials, {bad} with problems; {repeated} flows ended before the stage and were begun again. On
{machine()}.""", PAGE)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
