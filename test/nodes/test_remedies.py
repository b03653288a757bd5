"""Every remedy that a message of the calibration flow names helps: the robot then moves."""

import re
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.nodes.fake_robot import FakeRobot
from support.nodes.processes import NodeProcess
from support.nodes.quick_parameters import SHORT_MOTION
from support.nodes.ros_client import FLOWS, RosClient, ros_client_in
from support.nodes.two_links import write_plan
from trajectory_msgs.msg import JointTrajectory

pytestmark = FLOWS
TOPIC = "arm/joint_trajectory"
OTHER_NAMES = {"robot.joint_names.shoulder": "right_shoulder", "robot.joint_names.elbow": "right_elbow"}


class Cell:
    """A robot whose controller is `arm`, and the nodes that calibrate it."""

    def __init__(self, ros: RosClient, robot: FakeRobot, folder: Path) -> None:
        self.ros, self.robot, self.folder = ros, robot, folder
        self.running: dict[str, NodeProcess] = {}
        self.plan = write_plan(folder / "plan.yaml", 4.0)
        self.start("identifier", {"output_directory": ""})
        self.usual()

    def start(self, name: str, parameters: Mapping[str, Any]) -> None:
        """A node in place of the one of that name."""
        self.end(name)
        self.running[name] = self.ros.start(name, parameters)

    def end(self, name: str) -> None:
        if name in self.running:
            self.running.pop(name).stop()

    def usual(self, **parameters: Any) -> None:
        """Excitation and recorder with parameters beside those that are right, and a robot without faults."""
        self.robot.reset()
        given = {key.replace("__", "."): value for key, value in parameters.items()}
        self.start("excitation", {**SHORT_MOTION, "controller": "arm", **given})
        self.recorder()

    def recorder(self, **parameters: Any) -> None:
        self.start("recorder", {"directory": str(self.folder / "recordings"), "min_free_mb": 1, **parameters})

    def calibrate(self, **parameters: Any) -> str:
        """The error of a flow, or nothing if it moves the robot and then ends by Ctrl-C."""
        given = {"wait_s": 20.0, "plan": str(self.folder / "plan.yaml"), **parameters}
        flow = self.ros.start("calibrate", given)
        self.ros.until(lambda: flow.ended or self.robot.speed > 0.1, "an error, or a motion", 40.0)
        if not flow.ended:
            flow.signal(signal.SIGINT)
            self.ros.until(lambda: flow.ended, "end of the flow")
            assert "interrupted; the robot is at rest" in flow.log()
            return ""
        assert flow.process.returncode == 2 and "Traceback" not in flow.log(), flow.log()
        return "; ".join(re.findall(r"\[ERROR\].*?\]: (.*)", flow.log()))


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cell]:
    folder = tmp_path_factory.mktemp("cell")
    with FakeRobot(remaps={"joint_trajectory": TOPIC}) as robot, ros_client_in(folder) as ros:
        yield Cell(ros, robot, folder)


Step = Callable[[Cell], None]
SHORTLY = {"wait_s": 6.0}  # of a flow that repeats a step in vain


class Case(NamedTuple):
    """What is wrong, what the message says, and parameters of the flow that fails."""

    wrong: Step
    message: str
    parameters: Mapping[str, Any] = {}


class Remedy(NamedTuple):
    """What messages of several cases name, in full."""

    follow: Step
    cases: Mapping[str, Case]


def command_too(cell: Cell) -> None:
    cell.other = cell.ros.node.create_publisher(JointTrajectory, TOPIC, 1)


REMEDIES = {
    "start the excitation node as it should be": Remedy(lambda cell: cell.usual(), {
        "no excitation node": Case(lambda cell: cell.end("excitation"), "start /excitation", {"wait_s": 1.0}),
        "another controller": Case(
            lambda cell: cell.usual(controller=""), "set the parameter controller to its name"
        ),
        "no such URDF": Case(
            lambda cell: cell.usual(urdf="nothing.urdf"), "nothing.urdf: no such URDF file; check the path",
            {"wait_s": 3.0},
        ),
        "other names of joints": Case(
            lambda cell: cell.usual(**{key.replace(".", "__"): name for key, name in OTHER_NAMES.items()}),
            "leave out robot.joint_names",
        ),
    }),
    "start the recorder as it should be": Remedy(lambda cell: cell.recorder(), {
        "no recorder": Case(lambda cell: cell.end("recorder"), "start /recorder", {"wait_s": 3.0}),
        "no place for recordings": Case(
            lambda cell: cell.recorder(directory="/proc"), "choose another path", {"wait_s": 3.0}
        ),
    }),
    "mend the driver": Remedy(lambda cell: cell.robot.set_faults(), {
        "no states": Case(lambda cell: cell.robot.set_faults(silent=True), "no samples arrive; check the driver",
                     SHORTLY),
        "states without numbers": Case(lambda cell: cell.robot.set_faults(not_finite=True), "check the driver",
                     SHORTLY),
        "another clock": Case(lambda cell: cell.robot.set_faults(stamp_offset_s=-100.0), "check the clocks",
                     SHORTLY),
    }),
    "stop the other commander": Remedy(lambda cell: cell.ros.node.destroy_publisher(cell.other), {
        "somebody else commands": Case(command_too, f"also commands the robot on /{TOPIC}; stop it"),
    }),
    "give the path of a plan": Remedy(lambda cell: None, {
        "no such plan": Case(
            lambda cell: None, "no such plan file; check the path", {"plan": "/nothing/plan.yaml"}
        ),
    }),
}  # fmt: skip


@pytest.mark.timeout(200)  # up to five flows
@pytest.mark.parametrize("name", REMEDIES)
def test_the_remedy_that_a_message_names_helps(cell: Cell, name: str) -> None:
    remedy = REMEDIES[name]
    cell.robot.reset()
    for case in remedy.cases.values():
        case.wrong(cell)
        message = cell.calibrate(**case.parameters)
        assert case.message in message, message
        remedy.follow(cell)
    assert not cell.calibrate()
