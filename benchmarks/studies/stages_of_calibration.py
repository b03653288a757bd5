"""A calibration with nodes that can be killed at any stage: robot, driver and nodes, each in a separate process."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from studies.own_domain import own_domain
from support.nodes.fake_robot import FakeRobot
from support.nodes.processes import NodeProcess
from support.nodes.quick_parameters import MANY_NODES
from support.nodes.relay_driver import ROBOT_SIDE
from support.nodes.ros_client import RosClient, ros_client_in
from support.paths import SUPPORT

from inertid_ros.msg import ExcitationStatus, IdentifierStatus, InertialParameters, RecorderStatus

NODES = ("excitation", "recorder", "identifier", "calibrate", "driver")
STAGES = (
    "waiting", "planning", "approaching", "moving", "stopping", "recording finished", "identifying", "publishing",
)  # fmt: skip
FASTER = {"approaching": 0.1, "moving": 0.5}  # minimum speed of the robot when a node is killed [rad/s]
HORIZON_S, BRAKE_S = 0.4, 0.6  # horizon of a motion, and its longest brake
LEASE_S = 2.0
EXCITATION = {
    **MANY_NODES,
    "require_recorder": True,
    "start": [0.5, -0.4],
    "tick_s": 0.005,
    "execution.approach_speed": 0.25,
    "execution.max_start_error": 3.0,
    "execution.horizon_s": HORIZON_S,
    "execution.period_s": 0.05,
    "monitor.state_timeout_s": 0.8,
    "monitor.lease_timeout_s": LEASE_S,
}
WAIT_S = 7.0  # waiting time of a flow for missing nodes
LONGEST_S = 120.0  # for a stage, the end of a flow, and a whole calibration


class NotReachedError(Exception):
    """The flow ended before the stage, for example on a busy machine with late states; all nodes still run."""


class Calibration:
    """Robot and nodes; ``start`` and ``flow`` restart killed and ended processes."""

    def __init__(self, ros: RosClient, robot: FakeRobot) -> None:
        self.ros, self.robot = ros, robot
        self.excitation = ros.listen(ExcitationStatus, "excitation/status")
        self.recorder = ros.listen(RecorderStatus, "recorder/status")
        self.identifier = ros.listen(IdentifierStatus, "identifier/status")
        self.parameters = ros.listen(InertialParameters, "identifier/parameters")
        self.nodes: dict[str, NodeProcess] = {}
        self.files: set[Path] = set()
        for name in NODES:
            self.start(name)

    def renew(self) -> None:
        """Begin another flow without its history; the nodes keep running."""
        for messages in (self.excitation, self.recorder, self.identifier, self.parameters):
            messages.clear()
        self.robot.reset()
        self.start("calibrate")

    def new_files(self, pattern: str) -> list[Path]:
        """Files that were written since the last call."""
        found = sorted(set(self.ros.folder.glob(pattern)) - self.files)
        self.files.update(found)
        return found

    def start(self, name: str) -> None:
        """Start a node as at the beginning."""
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
        """Whether the flow has ended."""
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

        try:
            found = self.ros.until(seen, stage, LONGEST_S)
        except AssertionError as error:
            raise NotReachedError(str(error).splitlines()[0]) from None
        if found == "end":
            raise NotReachedError(f"the flow ended before {stage}: {self.said(0)}")

    def said(self, begin: int) -> list[str]:
        """Errors of the flow, or else of the excitation node since its status number ``begin``."""
        lines = errors(self.nodes["calibrate"].log())
        if not lines:
            latched = (ExcitationStatus.LATCHED, ExcitationStatus.STOPPING)
            lines = [status.message for status in self.excitation[begin:] if status.state in latched][-1:]
        return lines


def errors(log: str) -> list[str]:
    """Messages of the errors in a log."""
    return [line.partition("]: ")[2] for line in log.splitlines() if line.startswith("[ERROR]")]


@contextmanager
def calibration(folder: Path) -> Iterator[Calibration]:
    """All nodes and the robot, in a separate domain."""
    with own_domain(), FakeRobot(remaps=ROBOT_SIDE) as robot, ros_client_in(folder) as ros:
        yield Calibration(ros, robot)
