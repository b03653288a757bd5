"""The online node beside a simulated arm: a payload grasped in motion is told and identified; bad input is named."""

import json
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="needs MuJoCo (pip install mujoco)")

from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from geometry_msgs.msg import InertiaStamped  # noqa: E402
from rcl_interfaces.msg import Parameter, ParameterValue  # noqa: E402
from rcl_interfaces.srv import SetParameters  # noqa: E402
from rclpy.action import ActionClient  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from support.latencies import Latencies  # noqa: E402
from support.nodes.ros_client import FLOWS, RosClient, ros_client_in  # noqa: E402
from support.recordings.simulated_arms import simulated_case  # noqa: E402
from support.recordings.synthetic_calibration import synthetic_case  # noqa: E402
from support.robots.quick_plans import FINGERS, PANDA_START  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from inertid_ros.action import IdentifyPayload  # noqa: E402
from inertid_ros.calibration.calibrate import calibrate  # noqa: E402
from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.data.files.loading import write_npz  # noqa: E402
from inertid_ros.monitoring.streams import StreamFault  # noqa: E402
from inertid_ros.msg import IdentificationReport, InertialParameters, RobotChange  # noqa: E402
from inertid_ros.nodes.tools.payload_demo import attached, movements  # noqa: E402
from inertid_ros.report.results import Result  # noqa: E402
from inertid_ros.ros.conversions import NANOSECONDS, to_joint_trajectory, to_nanoseconds  # noqa: E402
from inertid_ros.ros.received_parameters import from_inertial_parameters  # noqa: E402
from inertid_ros.ros.topics import COMMAND, LATCHED, STATE  # noqa: E402
from inertid_ros.simulation.simulated_robot import homogeneous_box  # noqa: E402

pytestmark = FLOWS
LINK, MASS, BLOCK_S = "panda_link8", 2.0, 0.125


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Result directory of the simulated Panda, calibrated by the tool itself, and the recording it was fitted to."""
    folder, case = tmp_path_factory.mktemp("calibration"), simulated_case("panda")
    recording = folder / "train.npz"
    write_npz(case.train[0], recording)
    outcome = calibrate(case.given, list(case.train), list(case.held_out))
    return outcome.save(folder / "result"), recording


@pytest.fixture
def ros(tmp_path: Path) -> Iterator[RosClient]:
    with ros_client_in(tmp_path) as ros:
        yield ros


def set_fault(ros: RosClient, name: str, value: bool | float) -> None:
    content = {"type": 1, "bool_value": value} if isinstance(value, bool) else {"type": 3, "double_value": value}
    request = SetParameters.Request(parameters=[Parameter(name=f"fault.{name}", value=ParameterValue(**content))])
    answer = ros.call(SetParameters, "simulator/set_parameters", request)
    assert answer.results[0].successful, answer.results[0].reason


def statuses(ros: RosClient) -> dict[str, list[tuple[str, dict[str, str]]]]:
    """Messages and values by the name of their status, as they come; the last is empty before the first."""
    found = defaultdict(lambda: [("", defaultdict(str))])

    def take(array: DiagnosticArray) -> None:
        for status in array.status:
            values = {each.key: each.value for each in status.values}
            found[status.name].append((status.message, values))

    ros.node.create_subscription(DiagnosticArray, "/diagnostics", take, 10)
    return found


@pytest.mark.timeout(180)
def test_a_payload_grasped_in_motion_is_told_and_identified(
    ros: RosClient, calibration: tuple[Path, Path], latencies: Latencies
) -> None:
    result, recording = calibration
    case = simulated_case("panda")
    ros.start("simulator", {"start": tuple(PANDA_START.tolist()), **{
        f"robot.locked_joints.{joint}": position for joint, position in FINGERS.items()
    }})  # fmt: skip
    ros.start("online", {"result": str(result), "recordings": (str(recording),)})
    parameters = ros.listen(InertialParameters, "online/parameters")
    changes = ros.listen(RobotChange, "online/change")
    truth = ros.listen(InertialParameters, "simulator/true_parameters")
    payloads, status = ros.listen(InertiaStamped, "online/payload"), statuses(ros)
    joint_states = ros.listen(JointState, "joint_states", STATE)
    commands = ros.node.create_publisher(JointTrajectory, "joint_trajectory", COMMAND)
    attach = ros.node.create_publisher(InertiaStamped, "simulator/attach", COMMAND)
    ros.until(lambda: joint_states and truth and commands.get_subscription_count(), "simulator")
    rng = np.random.default_rng(4)
    commands.publish(to_joint_trajectory(case.given.joint_names, movements(case.given, PANDA_START, rng, 120.0)))
    ros.until(lambda: len(parameters) > 3 and changes, "parameters")
    assert changes[-1].cause == RobotChange.AS_CALIBRATED and len(changes) == 1
    received = from_inertial_parameters(parameters[-1])
    assert is_consistent(received.bodies).all() and received.message.model_hash == case.given.hash
    assert received.message.verdict == InertialParameters.USE_WITH_CARE
    assert len(parameters[-1].covariance) == len(parameters[-1].parameter_names) ** 2

    box, known = homogeneous_box(rng, MASS), len(truth)
    ros.until(lambda: status["online: joint states"][-1][1].get("Filter restarts"), "status")
    before = int(status["online: joint states"][-1][1]["Filter restarts"])
    began = time.monotonic()
    attach.publish(attached(box, LINK, ros.node.get_clock().now().to_msg()))
    ros.until(lambda: len(changes) > 1, "change")
    latencies.add("payload told after it was attached", time.monotonic() - began)
    ros.until(lambda: len(truth) > known, "truth with the payload")
    ros.until(lambda: changes[-1].settled, "settled change")
    assert changes[-1].cause == RobotChange.PAYLOAD, changes[-1].message
    # By stamps: how late a busy machine hands messages on does not count. Where it holds the simulator up, joint states
    # have a gap, after which the filter has to fill anew, and a block to be completed.
    seen = status["online: joint states"]
    count = len(seen)
    ros.until(lambda: len(seen) > count, "status after the change")
    delay = float(seen[-1][1]["Filter delay (s)"])
    restarts = int(seen[-1][1]["Filter restarts"]) - before
    shown = (to_nanoseconds(changes[-1].since) - to_nanoseconds(truth[known].header.stamp)) / NANOSECONDS
    assert shown + delay < 0.5 + restarts * (2 * delay + BLOCK_S)

    client = ActionClient(ros.node, IdentifyPayload, "online/identify_payload")
    ros.until(client.server_is_ready, "action")
    feedback: list = []
    sent = client.send_goal_async(IdentifyPayload.Goal(frame=LINK), feedback_callback=feedback.append)
    ros.until(sent.done, "goal")
    answer = ros.result(sent.result()).result
    assert answer.success, answer.message
    assert answer.payload.inertia.m == pytest.approx(MASS, rel=0.01)
    com = answer.payload.inertia.com
    np.testing.assert_allclose([com.x, com.y, com.z], box.com, atol=5e-3)
    assert answer.payload.header.frame_id == LINK and answer.lower[0] < answer.payload.inertia.m < answer.upper[0]
    assert answer.set_target_payload.startswith("set_target_payload(") and answer.set_load.startswith("setLoad(")
    assert json.loads(answer.payload_json)["frame"] == LINK
    assert {each.feedback.stage for each in feedback} & {"preparing", "measuring", "solving"}  # it may be short
    ros.until(lambda: payloads and payloads[-1] == answer.payload, "payload for late subscribers")

    sent = [client.send_goal_async(IdentifyPayload.Goal(duration=seconds)) for seconds in (60.0, 5.0)]
    ros.until(lambda: all(each.done() for each in sent), "goals")
    assert [each.result().accepted for each in sent] == [True, False]
    set_fault(ros, "silent", True)
    stopped = ros.result(sent[0].result()).result
    assert not stopped.success and "payload: no joint states for 5." in stopped.message
    count = len(parameters)
    ros.until(lambda: status["online: joint states"][-1][0].startswith("no joint states"), "status of a silent stream")
    assert len(parameters) == count
    told = lambda kind: kind in status["online: joint states"][-1][1]["Fault counts"]  # noqa: E731
    for fault, value, kind in (
        ("frozen", True, StreamFault.STUCK),
        ("not_finite", True, StreamFault.NOT_FINITE),
        ("stamp_offset_s", -20.0, StreamFault.CLOCK),
    ):
        assert not told(kind.value)
        set_fault(ros, fault, value)
        set_fault(ros, "silent", False)
        ros.until(lambda kind=kind: told(kind.value), f"status of {fault}")
        set_fault(ros, fault, False if value is True else 0.0)
    count = len(parameters)
    ros.until(lambda: len(parameters) > count + 1, "parameters after the faults")


@pytest.fixture(scope="module")
def small_result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Result directory of a robot of two joints, whose recording is not kept."""
    case = synthetic_case(joints=2, duration=10.0)
    outcome = calibrate(case.given, case.recordings[:1], case.recordings[1:])
    return outcome.save(tmp_path_factory.mktemp("small") / "result")


def test_a_robot_is_followed_once_its_calibration_is_known(ros: RosClient, small_result: Path) -> None:
    wrong = ros.start("online", {"result": "/nowhere"})
    ros.until(lambda: wrong.process.poll() is not None, "end of a node without result")
    assert wrong.process.returncode == 2
    assert wrong.log().strip() == "error: /nowhere: no such result directory; check the path"
    ros.start("online")
    status = statuses(ros)
    goal = ros.send_goal(IdentifyPayload, "online/identify_payload", IdentifyPayload.Goal())
    assert "no calibrated robot; set the parameter result" in ros.result(goal).result.message
    ros.until(lambda: "no calibrated robot" in status["online: parameters"][-1][0], "status without a result")
    reports = ros.node.create_publisher(IdentificationReport, "identifier/report", LATCHED)
    care = InertialParameters.USE_WITH_CARE
    reports.publish(IdentificationReport(result_directory=str(small_result), verdict=care))
    ros.until(lambda: status["online: parameters"][-1][1]["Result"] == str(small_result), "result of the identifier")
    states = ros.node.create_publisher(JointState, "joint_states", 10)
    names = list(Result.load(small_result).model.joint_names)
    message = JointState(name=names[:1], position=[0.0], velocity=[0.0], effort=[0.0])

    def told(text: str) -> bool:
        states.publish(message)
        return text in status["online: joint states"][-1][0]

    ros.until(lambda: told(f"joints ['{names[1]}'] are missing"), "status of a joint that is missing")
    message.name = ["wheel"]
    ros.until(lambda: told("but the joints of the robot are"), "status of another robot")
    message = JointState(name=names, position=[0.0] * 2, velocity=[0.0] * 2, effort=[0.0] * 2)
    ros.until(lambda: told("correct the driver's stamps"), "status of joint states without stamps")
    goal = ros.send_goal(IdentifyPayload, "online/identify_payload", IdentifyPayload.Goal())
    assert "correct the driver's stamps" in ros.result(goal).result.message
