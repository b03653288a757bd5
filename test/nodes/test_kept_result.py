"""The identifier's last accepted result stays: over a restart, and where a solver is killed or too slow."""

import json
import os
import signal
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from builtin_interfaces.msg import Time  # noqa: E402
from diagnostic_msgs.msg import DiagnosticArray  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from support.nodes.ros_client import ros_client_in  # noqa: E402
from support.recordings.synthetic_calibration import synthetic_case  # noqa: E402

from inertid_ros.action import Identify  # noqa: E402
from inertid_ros.config.robot import DRIVE_TERMS  # noqa: E402
from inertid_ros.core.errors import OutputError, RecordingError  # noqa: E402
from inertid_ros.data.files.loading import write_npz  # noqa: E402
from inertid_ros.msg import IdentificationReport, IdentifierStatus, InertialParameters  # noqa: E402
from inertid_ros.ros.parameter_messages import known_parameters  # noqa: E402
from inertid_ros.ros.result_publication import KeptResult, kept_file, load, save  # noqa: E402
from inertid_ros.ros.topics import LATCHED  # noqa: E402

CASE = synthetic_case(joints=2, duration=10.0)


def kept_result(sequence: int = 7) -> KeptResult:
    """Of the robot as described, made an hour after the epoch."""
    drives = {term: np.zeros(CASE.given.joints) for term in DRIVE_TERMS}
    parameters = known_parameters(CASE.given, CASE.given.body_prior, drives, Time(sec=3600))
    parameters.sequence, parameters.verdict = sequence, InertialParameters.USE
    return KeptResult(parameters, IdentificationReport(message="kept", sequence=sequence), CASE.given.urdf)


def test_what_is_loaded_is_what_was_saved(tmp_path: Path) -> None:
    file = kept_file(str(tmp_path / "state"), "/left/identifier")
    assert file == tmp_path / "state" / "left.identifier.json" and load(file) is None
    save(kept_result(), file)
    save(kept_result(8), file)
    loaded = load(file)
    assert loaded is not None and loaded.description == CASE.given.urdf and loaded.report.message == "kept"
    assert str(loaded.parameters) == str(kept_result(8).parameters)  # by text, as NaN is in it
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("cut", "invalid JSON"), ("changed", "is damaged"), ("version", "another version"), ("missing", "is damaged"),
        ("binary", "is not text"), ("folder", "cannot be read"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, damage: str, message: str) -> None:
    file = tmp_path / "identifier.json"
    save(kept_result(), file)
    content = json.loads(file.read_text())
    if damage == "cut":
        file.write_text(file.read_text()[:-20])
    elif damage == "changed":
        cdr = content["parameters"]["cdr"]
        content["parameters"]["cdr"] = cdr[:200] + ("A" if cdr[200] != "A" else "B") + cdr[201:]
        file.write_text(json.dumps(content))
    elif damage == "version":
        file.write_text(json.dumps({**content, "definitions": "0"}))
    elif damage == "missing":
        file.write_text(json.dumps({name: content[name] for name in ("definitions", "parameters")}))
    elif damage == "binary":
        file.write_bytes(b"\xff\xfe\x00")
    else:
        file.unlink()
        file.mkdir()
    with pytest.raises(RecordingError, match=message):
        load(file)


def test_a_directory_that_cannot_be_written_is_named_and_the_last_result_stays(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="not saved for a restart.*in state_directory"):
        save(kept_result(), kept_file(str(tmp_path / "file" / "below"), "identifier"))


def test_last_result_stays_over_restart_timeout_and_kill(tmp_path: Path) -> None:
    """What was kept is published, and nothing else."""
    save(kept_result(), kept_file(str(tmp_path / "state"), "identifier"))
    write_npz(CASE.recordings[0], tmp_path / "train.npz")
    request = Identify.Goal(train=[str(tmp_path / "train.npz")])
    with ros_client_in(tmp_path) as ros:
        description = ros.node.create_publisher(String, "robot_description", LATCHED)
        description.publish(String(data=CASE.given.urdf))
        options = {"state_directory": str(tmp_path / "state"), "output_directory": "", "timeout_s": 5.0}
        node = ros.start("identifier", options)
        received = ros.listen(InertialParameters, "identifier/parameters")
        status = ros.listen(IdentifierStatus, "identifier/status")
        diagnostics = ros.listen(DiagnosticArray, "/diagnostics", 10)
        ros.until(lambda: received and status, "parameters of before the restart")
        assert received[0].sequence == 7 and received[0].header.stamp.sec == 3600
        # A solver that is stopped never ends by itself; one that is killed ends before its time is over. The goal may
        # take a new process in place of one that was killed while it waited for work: all of them are hit.
        for number, message in ((signal.SIGSTOP, "took longer than 5 s"), (signal.SIGKILL, "SIGKILL")):
            ended = ros.send_goal(Identify, "identifier/identify", request).get_result_async()
            while not ended.done():
                ros.spin(0.05)
                for child in solvers_of(node.process.pid):
                    with suppress(ProcessLookupError):
                        os.kill(child, number)
            answer = ended.result().result
            assert not answer.success and message in answer.message
        ros.until(lambda: status[-1].state == IdentifierStatus.FAILED, "failure")
        again = ros.listen(InertialParameters, "identifier/parameters")
        ros.until(lambda: again, "parameters for a late controller")
        assert [message.sequence for message in received + again] == [7, 7]

        def age() -> float:
            statuses = {each.name: each for array in diagnostics for each in array.status}
            values = statuses["identifier: result"].values if "identifier: result" in statuses else []
            return next((float(value.value) for value in values if value.key == "Age (s)" and value.value), 0.0)

        ros.until(lambda: age() > 40 * 365 * 86400, "age")


def solvers_of(process: int) -> list[int]:
    """Processes that a process has started and that run the solver by now; before, they would keep it waiting."""
    tasks = Path(f"/proc/{process}/task").iterdir()
    children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return [child for child in children if b"core.worker" in command_line(child)]


def command_line(process: int) -> bytes:
    with suppress(OSError):  # it may end meanwhile
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""
