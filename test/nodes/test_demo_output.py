"""The demo replaces nothing but what an earlier demo wrote."""

from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

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
