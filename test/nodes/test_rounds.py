"""Two simulated robots, each in its namespace: one is calibrated in rounds, the other gets nothing of it.

Every motion of a round asks for what the data so far left open.
"""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from support.nodes.processes import raise_priority
from support.nodes.quick_parameters import MANY_NODES, STATE_HZ
from support.nodes.ros_client import FLOWS, ros_client_in
from support.nodes.two_links import URDF
from support.paths import SUPPORT

from inertid_ros.config.recordings import RecordingTopics
from inertid_ros.data.files.loading import load_recording
from inertid_ros.msg import ExcitationStatus, IdentifierStatus, InertialParameters
from inertid_ros.nodes.tools.access_policy import FLOW_REQUESTS

pytestmark = FLOWS
ROUNDS = 2


@pytest.mark.timeout(200)  # three motions and two fits on two slow cores, and other tests run beside it
def test_every_round_adds_to_what_is_known_and_a_robot_beside_gets_nothing_of_it(tmp_path: Path) -> None:
    (tmp_path / "robot.urdf").write_text(URDF)
    robot = {"urdf": str(tmp_path / "robot.urdf"), "perturb": True, "perturbation.mass_uncertainty": 0.8}
    output = tmp_path / "results"
    with ros_client_in(tmp_path) as ros:
        for index, namespace in enumerate(("/left", "/right")):
            own = {"perturbation_seed": 4 * (index + 1), "simulation.seed": index, "state_hz": STATE_HZ}
            ros.start("simulator", {**robot, **own}, namespace=namespace)
            ros.start("excitation", MANY_NODES, namespace=namespace)
            ros.start("recorder", {"directory": str(tmp_path / namespace[1:]), "min_free_mb": 1}, namespace=namespace)
            ros.start("identifier", {"output_directory": str(output)}, namespace=namespace)
        armed = ros.listen(ExcitationStatus, "/right/excitation/status")
        received = ros.listen(IdentifierStatus, "/right/identifier/status")
        parameters = ros.listen(InertialParameters, "/right/identifier/parameters")
        ros.until(lambda: ros.trigger("/right/recorder/start").success, "recording of the robot beside")
        wanted = {"rounds": ROUNDS, "least_gain": 0.0, "output_directory": str(output), "wait_s": 40.0}
        log = tmp_path / "requests.txt"
        script = (str(SUPPORT / "nodes" / "logged_flow.py"), str(log))
        flow = ros.start("calibrate", wanted, namespace="/left", script=script)
        raise_priority(flow.process.pid)
        ros.until(lambda: flow.ended, "end of the flow", 170.0)
        assert ros.trigger("/right/recorder/stop").success
        ros.until(lambda: received and received[-1].recordings, "recording at the identifier beside")
    said = flow.log()
    assert flow.process.returncode == 0, said
    assert len(re.findall(r"round \d: torque uncertainty [\d.e-]+ %", said)) == ROUNDS, said
    known_to = r"(?:torque uncertainty [\d.e+]+ % \(|\w+ is undetermined)"
    assert len(re.findall(rf"(?:training|held-out|round 2) motion: recording_\d+; {known_to}", said)) == 3, said
    # A motion of three seconds need not lower the deviation: its noise is estimated anew, on a busy machine.
    assert re.search(r"rounds ended: (?:all rounds are done|no further gain)", said), said
    reports = [list((output / f"round_{number}").rglob("report.json")) for number in range(1, ROUNDS + 1)]
    assert list(map(len, reports)) == [1] * ROUNDS, list(output.rglob("*"))
    report = json.loads(reports[-1][0].read_text())
    assert [len(entry["recordings"]) for entry in report["rounds"]["done"]] == [1, 2], report["rounds"]
    assert report["status"] == "passed"
    assert report["validation"]["relative_error"] < 0.6 * report["prior"]["relative_error"]
    # What the SROS 2 policy allows the flow is what it asked for.
    asked = {tuple(line.split()) for line in log.read_text().splitlines()}
    requests = FLOW_REQUESTS["calibrate"].items()
    allowed = {(element, f"/left/{name}") for (element, _), names in requests for name in names}
    assert asked == allowed
    # The robot beside was recorded at rest, and nobody moved or identified it.
    assert len(received[-1].recordings) == 1 and not parameters
    assert {status.state for status in armed} <= {ExcitationStatus.UNARMED}
    topics = RecordingTopics(joint_states="/right/joint_states")
    beside = load_recording(tmp_path / "right" / received[-1].recordings[0], topics)
    assert beside.duration > 5.0 and np.ptp(beside.position, axis=0).max() < 0.05
