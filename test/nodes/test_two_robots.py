"""Two robots calibrate side by side, each in its namespace, and receive nothing of each other."""

import json
from pathlib import Path

import pytest
from support.nodes.processes import raise_priority
from support.nodes.quick_parameters import MANY_NODES, STATE_HZ
from support.nodes.ros_client import ros_client_in
from support.nodes.two_links import URDF

from inertid_ros.msg import IdentificationReport


@pytest.mark.timeout(200)  # a minute alone on two slow cores, and other tests run beside it
def test_two_robots_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "robot.urdf").write_text(URDF)
    flows = {}
    with ros_client_in(tmp_path) as ros:
        reports = {}
        for index, namespace in enumerate(("/left", "/right")):
            folder = tmp_path / namespace.strip("/")
            robot = {"urdf": str(tmp_path / "robot.urdf"), "perturb": True, "perturbation_seed": 4 * (index + 1)}
            robot |= {"state_hz": STATE_HZ, "perturbation.mass_uncertainty": 0.8}  # seed 1 is the truth but for 0.7 %
            ros.start("simulator", {**robot, "simulation.seed": index}, namespace=namespace)
            ros.start("excitation", MANY_NODES, namespace=namespace)
            ros.start("recorder", {"directory": str(folder), "min_free_mb": 1}, namespace=namespace)
            ros.start("identifier", {"output_directory": str(folder / "results")}, namespace=namespace)
            reports[namespace] = ros.listen(IdentificationReport, f"{namespace}/identifier/report")
        for namespace in reports:
            flows[namespace] = ros.start("calibrate", {"wait_s": 40.0}, namespace=namespace)
            raise_priority(flows[namespace].process.pid)
        ros.until(lambda: all(flow.ended for flow in flows.values()), "both calibrations", 150.0)
        for namespace, flow in flows.items():
            assert flow.process.returncode == 0, flow.log()
            ros.until(lambda received=reports[namespace]: received, "report")
    masses = []
    for namespace, received in reports.items():
        report = json.loads(received[-1].report_json)
        assert report["status"] == "passed"
        assert report["validation"]["relative_error"] < 0.6 * report["prior"]["relative_error"]
        assert namespace.strip("/") in received[-1].result_directory
        masses.append([link["mass"] for link in report["links"]])
    assert masses[0] != masses[1]
