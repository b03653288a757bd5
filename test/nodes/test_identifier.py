"""The identifier: parameters that pass arrive at late controllers, parameters that do not are kept from them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from std_msgs.msg import String
from support.nodes.processes import NodeProcess
from support.nodes.ros_client import RosClient, ros_client_in
from support.recordings.synthetic import inverse_dynamics, random_motion
from support.recordings.synthetic_calibration import synthetic_case
from visualization_msgs.msg import MarkerArray

from inertid_ros.action import Identify
from inertid_ros.config.robot import DRIVE_TERMS
from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.data.files.loading import write_npz
from inertid_ros.data.recording import Recording
from inertid_ros.msg import IdentificationReport, IdentifierStatus, InertialParameters
from inertid_ros.robot.model import load_model
from inertid_ros.ros import ParameterSubscriber
from inertid_ros.ros.parameter_messages import known_parameters
from inertid_ros.ros.received_parameters import from_inertial_parameters
from inertid_ros.ros.topics import LATCHED

CASE = synthetic_case(joints=2, duration=10.0)


@pytest.fixture
def ros(tmp_path: Path) -> Iterator[RosClient]:
    with ros_client_in(tmp_path) as ros:
        yield ros


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Training and held-out recording."""
    paths = [tmp_path / "train.npz", tmp_path / "held_out.npz"]
    for recording, path in zip(CASE.recordings, paths, strict=True):
        write_npz(recording, path)
    return str(paths[0]), str(paths[1])


def start(ros: RosClient, **keywords) -> NodeProcess:
    """Identifier with the given robot's description on a topic."""
    description = ros.node.create_publisher(String, keywords.get("namespace", "") + "/robot_description", LATCHED)
    description.publish(String(data=CASE.given.urdf))
    options = {"output_directory": str(ros.folder / "results"), "state_directory": str(ros.folder / "state")}
    return ros.start("identifier", options, **keywords)


def identify(ros: RosClient, train: str, held_out: str = "", action: str = "identifier/identify") -> Identify.Result:
    goal = Identify.Goal(train=[train], validation=[held_out] if held_out else [])
    return ros.result(ros.send_goal(Identify, action, goal)).result


def test_late_controller_receives_the_parameters(ros: RosClient, files: tuple[str, str]) -> None:
    start(ros)
    status = ros.listen(IdentifierStatus, "identifier/status")
    ros.until(lambda: status and status[-1].state == IdentifierStatus.READY, "ready")
    answer = identify(ros, *files)
    assert answer.success and answer.validation_status == InertialParameters.PASSED, answer.message
    assert answer.verdict == InertialParameters.USE and not answer.reasons
    assert answer.validation_relative_error < 0.5 * answer.prior_relative_error
    # Everything below subscribes only now.
    controller = ParameterSubscriber(ros.node, CASE.given)
    reports = ros.listen(IdentificationReport, "identifier/report")
    descriptions = ros.listen(String, "identifier/robot_description")
    markers = ros.listen(MarkerArray, "identifier/markers")
    ros.until(lambda: controller.waiting and reports and descriptions and markers, "latched topics")
    before = controller.model.inertias[1].toDynamicParameters()
    assert controller.update() and not controller.update()
    received = load_model(descriptions[0].data)
    for index in range(CASE.given.joints):
        in_use = controller.model.inertias[index + 1].toDynamicParameters()
        np.testing.assert_allclose(in_use, received.body_prior[index], rtol=1e-9, atol=1e-12)
    assert np.abs(controller.model.inertias[1].toDynamicParameters() - before).max() > 1e-6
    assert is_consistent(received.body_prior).all()
    assert Path(reports[0].result_directory, "calibrated.urdf").read_text() == descriptions[0].data
    assert len(markers[0].markers) == 2 * CASE.given.joints
    parameters = ros.listen(InertialParameters, "identifier/parameters")
    ros.until(lambda: parameters, "parameters")
    known = dict(zip(parameters[0].parameter_names, parameters[0].knowledge, strict=True))
    assert known[f"{CASE.given.joint_names[0]}.viscous"] == InertialParameters.IDENTIFIED
    assert known[f"{CASE.given.link_names[0]}.m"] < InertialParameters.IDENTIFIED


def test_rejected_result_is_written_but_not_published(ros: RosClient, files: tuple[str, str], tmp_path: Path) -> None:
    start(ros)
    parameters = ros.listen(InertialParameters, "identifier/parameters")
    reports = ros.listen(IdentificationReport, "identifier/report")
    # Data of a robot that is just as its URDF says: nothing that was fitted to another one can do better.
    time = np.arange(0.0, 8.0, 0.01)
    q, v, a = random_motion(np.random.default_rng(3), CASE.given.joints).sample(time)
    exact = Recording(CASE.given.joint_names, time, q, inverse_dynamics(CASE.given, q, v, a), velocity=v)
    write_npz(exact, tmp_path / "exact.npz")
    status = ros.listen(IdentifierStatus, "identifier/status")
    ros.until(lambda: status and status[-1].state == IdentifierStatus.READY, "ready")
    answer = identify(ros, files[0], str(tmp_path / "exact.npz"))
    assert answer.success and answer.validation_status == InertialParameters.REJECTED, answer.message
    ros.until(lambda: reports, "report")
    assert reports[-1].validation_status == InertialParameters.REJECTED
    assert reports[-1].verdict == answer.verdict == InertialParameters.DO_NOT_USE
    assert "of the URDF as given" in reports[-1].reasons[0]
    assert Path(answer.result_directory, "report.json").exists()
    ros.spin(0.5)
    assert not parameters


def test_what_cannot_be_used_is_answered_with_a_reason(ros: RosClient, tmp_path: Path) -> None:
    ros.start("identifier", {"output_directory": ""})
    status = ros.listen(IdentifierStatus, "identifier/status")
    ros.until(lambda: status, "status")
    answer = identify(ros, str(tmp_path / "none.npz"))
    assert not answer.success and "robot description" in answer.message


def test_namespaces_and_remaps(ros: RosClient, files: tuple[str, str]) -> None:
    names: dict[str, Any] = {"namespace": "/left/arm", "remaps": {"identifier/parameters": "dynamics"}}
    node = start(ros, **names)
    parameters = ros.listen(InertialParameters, "/left/arm/dynamics")
    status = ros.listen(IdentifierStatus, "/left/arm/identifier/status")
    ros.until(lambda: status and status[-1].state == IdentifierStatus.READY, "ready")
    answer = identify(ros, files[0], action="/left/arm/identifier/identify")
    assert answer.success and answer.validation_status == InertialParameters.NOT_VALIDATED
    assert answer.verdict == InertialParameters.USE_WITH_CARE
    ros.until(lambda: parameters, "parameters")
    assert parameters[0].verdict == InertialParameters.USE_WITH_CARE
    assert "not tested on a recording" in parameters[0].reasons[-1]
    assert parameters[0].sequence == 1 and len(parameters[0].covariance) == len(parameters[0].parameter_names) ** 2
    own, other = (ParameterSubscriber(ros.node, CASE.given, f"/{robot}/dynamics") for robot in ("left/arm", "right"))
    ros.until(lambda: own.waiting, "parameters under their new name")
    assert not other.waiting
    assert "/left/arm/identifier/parameters" not in dict(ros.node.get_topic_names_and_types())
    node.kill()
    start(ros, **names)
    restored = ros.listen(InertialParameters, "/left/arm/dynamics")
    ros.until(lambda: len(restored) and len(parameters) > 1, "parameters of before the restart")
    assert str(restored[-1]) == str(parameters[1]) == str(parameters[0])  # by text, as NaN is in it


def broken(message: InertialParameters, damage: str) -> InertialParameters:
    if damage == "another robot":
        message.model_hash = "0" * 64
    elif damage == "rejected":
        message.validation_status = InertialParameters.REJECTED
    elif damage == "not to be used":
        message.verdict = InertialParameters.DO_NOT_USE
    elif damage == "impossible inertia":
        message.links[0].inertia[0] = -1.0
    elif damage == "not finite":
        message.links[0].mass = float("nan")
    elif damage == "friction not finite":
        message.joints[0].coulomb = float("nan")
    elif damage == "fewer links":
        message.links = message.links[1:]
    return message


DAMAGES = (
    "another robot", "rejected", "not to be used", "impossible inertia", "not finite", "friction not finite",
    "fewer links",
)  # fmt: skip


def test_subscriber_refuses_what_a_controller_must_not_use(ros: RosClient) -> None:
    zeros = {term: np.zeros(CASE.given.joints) for term in DRIVE_TERMS}
    stamp = ros.node.get_clock().now().to_msg()
    good = known_parameters(CASE.given, CASE.given.body_prior * 1.1, zeros, stamp)
    received = from_inertial_parameters(good)
    np.testing.assert_allclose(received.bodies, CASE.given.body_prior * 1.1, rtol=1e-12, atol=1e-15)
    controller = ParameterSubscriber(ros.node, CASE.given, "parameters")
    publisher = ros.node.create_publisher(InertialParameters, "parameters", LATCHED)
    for count, damage in enumerate(DAMAGES, 1):
        publisher.publish(broken(known_parameters(CASE.given, CASE.given.body_prior * 1.1, zeros, stamp), damage))
        ros.until(lambda count=count: controller.refused == count, damage, 5.0)
        assert not controller.waiting and not controller.update()
    np.testing.assert_array_equal(
        controller.model.inertias[1].toDynamicParameters(), CASE.given.pinocchio.inertias[1].toDynamicParameters()
    )
    publisher.publish(good)
    ros.until(lambda: controller.waiting, "good parameters", 5.0)
    assert controller.update()


def test_subscriber_may_take_only_what_is_to_be_used_without_care(ros: RosClient) -> None:
    zeros = {term: np.zeros(CASE.given.joints) for term in DRIVE_TERMS}
    stamp = ros.node.get_clock().now().to_msg()
    message = known_parameters(CASE.given, CASE.given.body_prior * 1.1, zeros, stamp)
    publisher = ros.node.create_publisher(InertialParameters, "parameters", LATCHED)
    careful = ParameterSubscriber(ros.node, CASE.given, "parameters", only_use=True)
    other = ParameterSubscriber(ros.node, CASE.given, "parameters")
    message.verdict = InertialParameters.USE_WITH_CARE
    publisher.publish(message)
    ros.until(lambda: careful.refused == 1 and other.waiting, "one refusal", 5.0)
    assert not careful.waiting
    message.verdict = InertialParameters.USE
    publisher.publish(message)
    ros.until(lambda: careful.waiting, "parameters to be used", 5.0)
