"""What the identifier logs and answers, called in the process of the test."""

from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from rclpy.logging import get_logger  # noqa: E402
from support.nodes.local_nodes import local_nodes  # noqa: E402
from support.recordings.synthetic_calibration import calibrated_case  # noqa: E402

from inertid_ros.action import Identify  # noqa: E402
from inertid_ros.calibration.calibrate import IdentificationResult  # noqa: E402
from inertid_ros.identification.assessment.gate import Verdict  # noqa: E402
from inertid_ros.msg import IdentifierStatus, InertialParameters  # noqa: E402
from inertid_ros.nodes import identifier as node  # noqa: E402
from inertid_ros.ros.received_parameters import ReceivedParameters  # noqa: E402


def test_verdicts_of_one_node_may_differ() -> None:
    for verdict in (Verdict.CARE, Verdict.USE, Verdict.CARE):
        node.log_accepted(get_logger("identifier"), verdict, "accepted")


def test_a_result_that_no_controller_can_use_is_answered_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReceivedParameters, "objection", lambda *_: "made impossible")
    _, outcome = calibrated_case()
    result = IdentificationResult(
        outcome.estimate, outcome.validation, outcome.gate, outcome.report, outcome.urdf, None)
    assert result.gate.verdict is not Verdict.REJECT
    with local_nodes(tmp_path, {"identifier": {}}) as nodes:
        identifier = nodes["identifier"]
        answer = identifier.conclude(SimpleNamespace(result=lambda: result))
        assert (answer.verdict, answer.message) == (InertialParameters.DO_NOT_USE, "made impossible")
        assert identifier.publication.accepted is None


def test_an_internal_error_is_answered_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> None:
        raise ValueError("made to fail")

    monkeypatch.setattr(node, "identification_job", fail)
    with local_nodes(tmp_path, {"identifier": {}}) as nodes:
        identifier = nodes["identifier"]
        with pytest.raises(StopIteration) as ended:
            identifier.serve(Identify.Goal()).send(None)
        answer = ended.value.value
        assert not answer.success and answer.message == "internal error: ValueError: made to fail"
        assert identifier.state == IdentifierStatus.FAILED and identifier.last_fault == answer.message
        assert not identifier.is_serving, "the next goal would be refused"
