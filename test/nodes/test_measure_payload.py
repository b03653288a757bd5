"""The payload flow: the excitation node moves the arm along a short motion, the online node tells what it holds."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("mujoco", reason="needs MuJoCo (pip install mujoco)")

from geometry_msgs.msg import InertiaStamped  # noqa: E402
from support.nodes.processes import raise_priority  # noqa: E402
from support.nodes.quick_parameters import MANY_NODES  # noqa: E402
from support.nodes.ros_client import FLOWS, ros_client_in  # noqa: E402
from support.nodes.two_links import TRUE_URDF, two_links, write_plan  # noqa: E402

from inertid_ros.calibration.calibrate import calibrate  # noqa: E402
from inertid_ros.config.simulation import SimulationOptions  # noqa: E402
from inertid_ros.data.files.loading import write_npz  # noqa: E402
from inertid_ros.msg import ExcitationStatus, InertialParameters  # noqa: E402
from inertid_ros.robot.model import load_model  # noqa: E402
from inertid_ros.ros.topics import COMMAND  # noqa: E402
from inertid_ros.simulation.simulated_robot import (
    SimulatedRobot,  # noqa: E402
    simulate,  # noqa: E402
)

pytestmark = FLOWS
MASS, FORWARD = 1.0, 0.25  # kg, m
RATE = 100.0  # Hz


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Result directory of the simulated two links, and the recording that they were fitted to."""
    folder = tmp_path_factory.mktemp("calibration")
    robot = SimulatedRobot(load_model(TRUE_URDF), SimulationOptions(), start=None)
    recordings = []
    for seconds in (8.0, 11.0):
        robot.reset()
        recordings.append(simulate(robot, write_plan(folder / "plan.yaml", seconds), state_hz=RATE, name=f"{seconds}"))
    path = folder / "train.npz"
    write_npz(recordings[0], path)
    outcome = calibrate(two_links()[0], [replace(recordings[0], name=str(path))], recordings[1:])
    return outcome.save(folder / "result"), path


def test_missing_nodes_are_named(tmp_path: Path) -> None:
    with ros_client_in(tmp_path) as ros:
        # In a namespace of its own: a node that a test before has killed may still be in the graph.
        flow = ros.start("measure_payload", {"wait_s": 1.0}, namespace="/alone")
        ros.until(lambda: flow.ended, "end of the flow")
    said = flow.log()
    assert flow.process.returncode == 2, said
    assert "/alone/excitation/get_state is not there; start /alone/excitation" in said, said


@pytest.mark.timeout(150)
def test_a_motion_is_planned_and_the_payload_identified_meanwhile(
    tmp_path: Path, calibration: tuple[Path, Path]
) -> None:
    result, recording = calibration
    (tmp_path / "robot.urdf").write_text(TRUE_URDF)
    with ros_client_in(tmp_path) as ros:
        ros.start("simulator", {"urdf": str(tmp_path / "robot.urdf"), "state_hz": RATE})
        ros.start("excitation", {**MANY_NODES, "require_recorder": False})
        ros.start("online", {"result": str(result), "recordings": (str(recording),)})
        truth = ros.listen(InertialParameters, "simulator/true_parameters")
        status = ros.listen(ExcitationStatus, "excitation/status")
        attach = ros.node.create_publisher(InertiaStamped, "simulator/attach", COMMAND)
        ros.until(lambda: truth and attach.get_subscription_count(), "simulator")
        held, known = InertiaStamped(), len(truth)
        held.header.frame_id, held.inertia.m, held.inertia.com.x = "lower", MASS, FORWARD
        attach.publish(held)
        ros.until(lambda: len(truth) > known, "payload")
        flow = ros.start("measure_payload", {"wait_s": 30.0, "duration_s": 12.0, "frame": "lower"})
        raise_priority(flow.process.pid)
        payloads = ros.listen(InertiaStamped, "online/payload")
        ros.until(lambda: flow.ended, "end of the flow", 100.0)
        said = flow.log()
        assert flow.process.returncode == 0, said
        ros.until(lambda: payloads, "payload")
        # A busy machine loses samples. The interval is then wide, and the node refuses one wider than half of the mass.
        found = re.search(r"payload: ([\d.]+) kg \(([\d.]+) to ([\d.]+)\)", said)
        assert found, said
        mass, low, high = map(float, found.groups())
        assert payloads[-1].inertia.m == pytest.approx(mass, abs=1e-3), said
        assert abs(mass - MASS) < high - low, said  # four standard deviations
        assert payloads[-1].inertia.com.x == pytest.approx(FORWARD, abs=0.05), said
        assert "URScript: set_target_payload(" in said and "libfranka: setLoad(" in said
        ros.until(lambda: status[-1].state == ExcitationStatus.UNARMED, "disarmed")
