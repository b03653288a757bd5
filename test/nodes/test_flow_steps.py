"""Steps of the calibration flow whose nodes have gone, or were left at work by a flow that was killed; no processes."""

from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from std_srvs.srv import Trigger  # noqa: E402

from inertid_ros.action import Excite  # noqa: E402
from inertid_ros.config.nodes import CalibrateOptions  # noqa: E402
from inertid_ros.msg import IdentifierStatus, RecorderStatus  # noqa: E402
from inertid_ros.nodes.calibrate import CalibrationFlow  # noqa: E402
from inertid_ros.nodes.flow_client import FlowError, ReceivedMessages  # noqa: E402

NAME = "recording_001"


class Client:
    """Answers every request at once, and keeps what was asked and told."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.told: list[str] = []
        self.show = self.show_error = self.told.append

    def received(self, *_arguments: object) -> ReceivedMessages:
        return ReceivedMessages()

    serving_node = received

    def until(self, condition, otherwise, _timeout_s: float) -> None:
        if not condition():
            raise FlowError(otherwise if isinstance(otherwise, str) else otherwise())

    def with_retries(self, step, _timeout_s: float):
        return step()

    def attempt_all(self, steps) -> None:
        for step in steps:
            step()

    def wait_for_service(self, *_arguments: object) -> None: ...

    wait_for_action = wait_for_service

    def trigger(self, name: str) -> Trigger.Response:
        self.asked.append(name)
        return Trigger.Response(success=True, message=NAME)


@pytest.fixture
def flow() -> CalibrationFlow:
    """A flow whose robot moves at once, and whose nodes have all told their status."""
    flow = CalibrationFlow(Client(), CalibrateOptions())
    flow.mover = SimpleNamespace(
        name="excitation", wait=lambda _s: None, move=lambda *_a: None,
        disarm=lambda: flow.client.asked.append("disarm"),
    )  # fmt: skip
    flow.recorder.take(RecorderStatus())
    flow.identifier.take(IdentifierStatus(state=IdentifierStatus.READY, recordings=[NAME]))
    return flow


def test_a_recording_that_a_killed_flow_left_is_ended(flow: CalibrationFlow) -> None:
    flow.recorder.take(RecorderStatus(name=NAME, recording=True))
    flow._wait_for_nodes()
    assert flow.client.asked == ["recorder/stop"]
    assert f"{NAME} was still being recorded: ended" in flow.client.told


def test_an_idle_recorder_is_left_alone(flow: CalibrationFlow) -> None:
    flow._wait_for_nodes()
    assert not flow.client.asked


def test_a_recording_arrives(flow: CalibrationFlow) -> None:
    assert flow._record("training", Excite.Goal()) == NAME


def test_what_was_armed_and_recording_is_left_neither(flow: CalibrationFlow) -> None:
    flow.is_recording = True
    flow.leave()
    assert flow.client.asked == ["disarm", "recorder/stop"]


def test_the_identifier_needs_neither_motion_nor_recorder(flow: CalibrationFlow) -> None:
    flow.recorder.needed = True
    flow._end_motions()
    assert flow.client.asked == ["disarm"] and not flow.recorder.needed
