"""The demo replaces nothing but what an earlier demo wrote, and receives what the simulator publishes."""

from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from support.nodes.ros_client import ros_client_in  # noqa: E402
from support.package_parameters import parameters_in  # noqa: E402
from support.paths import CONFIG  # noqa: E402

from inertid_ros.config.yaml_files import load_configuration  # noqa: E402
from inertid_ros.core.outputs import write_directory  # noqa: E402
from inertid_ros.nodes.tools import demo  # noqa: E402


@pytest.mark.parametrize("place", ["result", "result_failed"])
def test_what_is_no_result_of_the_demo_stays(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "_run", lambda *_: pytest.fail("started"))
    write_directory(tmp_path / place, demo.DEMO, {"comparison.json": b"{}", "report.json": b"{}"})
    (tmp_path / place / "thesis.txt").write_text("years of work")
    assert demo.main(["--output", str(tmp_path / "result")]) == 2
    assert "thesis.txt, which inertid did not write" in capsys.readouterr().err
    assert (tmp_path / place / "thesis.txt").read_text() == "years of work"


def test_a_result_of_the_demo_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_options: object, work: Path) -> int:
        (work / "logs").mkdir()
        (work / "logs" / "simulator.log").write_text("new")
        (work / "comparison.json").write_text("{}")
        return 0

    monkeypatch.setattr(demo, "_run", run)
    for _ in range(2):
        assert demo.main(["--output", str(tmp_path / "result")]) == 0
    assert sorted(path.name for path in (tmp_path / "result").iterdir()) == [".inertid.json", "comparison.json", "logs"]
    assert [path.name for path in tmp_path.iterdir()] == ["result"]


def test_the_truth_of_the_simulator_is_received(tmp_path: Path) -> None:
    pytest.importorskip("mujoco", reason="needs MuJoCo (pip install mujoco)")
    with ros_client_in(tmp_path) as ros:
        ros.start("simulator", parameters_in("space", "simulator"))
        given, truth = demo.receive_truth(load_configuration(CONFIG / "space.yaml").robot)
    assert given.free and truth.shape == given.body_prior.shape == (7, 10)
    assert abs(given.body_prior - truth).max() > 1.0  # the published description is wrong
