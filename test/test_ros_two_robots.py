"""Two robots calibrate side by side, each in its namespace, without hearing one another."""

from pathlib import Path

import pytest
from ros_bench import bench_in

from inertid_ros.msg import IdentificationReport, InertialParameters

LOCKED = {"robot.locked_joints": ["panda_finger_joint1=0.0"]}
MOTION = {  # short, planned in no time, and patient with a busy machine
    "excitation.duration_s": 6.0,
    "excitation.base_frequency_hz": 0.3333333333333333,
    "excitation.iterations": 0,
    "excitation.starts": 8,
    "monitor.state_timeout_s": 0.5,
    "monitor.max_age_s": 0.8,
    "monitor.min_rate_hz": 10.0,
    "monitor.tracking_tolerance": 0.5,
    "execution.horizon_s": 0.4,
}


@pytest.mark.timeout(240)
def test_two_robots_calibrate_side_by_side(tmp_path: Path) -> None:
    names = ("/left", "/right")
    with bench_in(tmp_path) as bench:
        parameters = {name: bench.listen(InertialParameters, f"{name}/identifier/parameters") for name in names}
        reports = {name: bench.listen(IdentificationReport, f"{name}/identifier/report") for name in names}
        flows = []
        for seed, name in enumerate(names):
            folder = tmp_path / name.strip("/")
            folder.mkdir()
            common = {"namespace": name}
            bench.start(
                "simulator", {**LOCKED, "perturb": True, "perturbation_seed": seed, "state_hz": 100.0}, **common
            )
            bench.start("excitation", {**LOCKED, **MOTION}, **common)
            bench.start("recorder", {"directory": str(folder / "recordings")}, **common)
            bench.start("identifier", {**LOCKED, "output_directory": str(folder / "result")}, **common)
            flows.append(bench.start("calibrate", {"wait_s": 60.0}, **common))
        bench.until(lambda: all(flow.process.poll() is not None for flow in flows), "end of both flows", 200.0)
        for flow in flows:
            assert flow.process.returncode == 0, flow.log()
        bench.until(lambda: all(parameters.values()) and all(reports.values()), "parameters of both")
    masses = [[link.mass for link in parameters[name][-1].links] for name in names]
    assert masses[0] != masses[1], "each has its own robot"
    for name in names:
        report = reports[name][-1]
        assert report.validation_relative_error < report.prior_relative_error
        assert min(report.min_pseudo_inertia_eigenvalue) > 0
        assert len(list((tmp_path / name.strip("/") / "result").glob("*/calibrated.urdf"))) == 1
