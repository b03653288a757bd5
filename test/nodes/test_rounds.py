"""Calibration in rounds on a simulated robot: every motion asks for what the data so far left open."""

import json
import re
from pathlib import Path

import pytest
from support.nodes.processes import raise_priority
from support.nodes.quick_parameters import MANY_NODES, STATE_HZ
from support.nodes.ros_client import ros_client_in
from support.nodes.two_links import URDF
from support.paths import SUPPORT

from inertid_ros.nodes.tools.access_policy import FLOW_REQUESTS

ROUNDS = 2


@pytest.mark.timeout(200)  # as for two robots at once
def test_every_round_adds_to_what_is_known(tmp_path: Path) -> None:
    (tmp_path / "robot.urdf").write_text(URDF)
    robot = {"urdf": str(tmp_path / "robot.urdf"), "perturb": True, "perturbation.mass_uncertainty": 0.8}
    output = tmp_path / "results"
    with ros_client_in(tmp_path) as ros:
        ros.start("simulator", {**robot, "perturbation_seed": 4, "state_hz": STATE_HZ})
        ros.start("excitation", MANY_NODES)
        ros.start("recorder", {"directory": str(tmp_path / "recordings"), "min_free_mb": 1})
        ros.start("identifier", {"output_directory": str(output)})
        wanted = {"rounds": ROUNDS, "least_gain": 0.0, "output_directory": str(output), "wait_s": 40.0}
        log = tmp_path / "requests.txt"
        flow = ros.start("calibrate", wanted, script=(str(SUPPORT / "nodes" / "logged_flow.py"), str(log)))
        raise_priority(flow.process.pid)
        ros.until(lambda: flow.ended, "end of the flow", 170.0)
    said = flow.log()
    assert flow.process.returncode == 0, said
    assert len(re.findall(r"round \d: torque known to [\d.e-]+ %", said)) == ROUNDS, said
    known_to = r"(?:torque known to [\d.e+]+ % \(|\w+ is not known yet)"
    assert len(re.findall(rf"(?:training|held-out|round 2) motion: recording_\d+; {known_to}", said)) == 3, said
    # A motion of three seconds need not lower the deviation: its noise is estimated anew, on a busy machine.
    assert re.search(r"rounds ended: (?:all rounds are done|nothing more is gained)", said), said
    reports = [list((output / f"round_{number}").rglob("report.json")) for number in range(1, ROUNDS + 1)]
    assert list(map(len, reports)) == [1] * ROUNDS, list(output.rglob("*"))
    done = json.loads(reports[-1][0].read_text())["rounds"]["done"]
    assert [len(entry["recordings"]) for entry in done] == [1, 2], done
    # What the SROS 2 policy allows the flow is what it asked for.
    asked = {tuple(line.split()) for line in log.read_text().splitlines()}
    allowed = {(element, f"/{name}") for (element, _), names in FLOW_REQUESTS["calibrate"].items() for name in names}
    assert asked == allowed
