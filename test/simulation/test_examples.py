"""Files to try the guides with: as the truth predicts them, and never over files that are there."""

import json
import sys
from pathlib import Path

import pytest

from inertid_ros.cli import main as cli
from inertid_ros.data.files.bag_reading import read_bag
from inertid_ros.robot.model import load_model
from inertid_ros.simulation import examples


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("arm")
    examples.arm(path, 5.0)
    return path


def test_the_truth_predicts_the_recordings_and_the_urdf_does_not(folder: Path, capsys: pytest.CaptureFixture) -> None:
    command = ["validate", str(folder / "truth.urdf"), str(folder / "run1_bag"), "--quiet"]
    assert cli.main([*command, "--urdf", str(folder / "robot.urdf"), "--json"]) == 0
    truth, given = load_model(folder / "truth.urdf"), load_model(folder / "robot.urdf")
    assert abs(truth.body_prior[:, 0].sum() - 9.0) < 1e-9 < abs(given.body_prior[:, 0].sum() - 9.0)
    assert json.loads(capsys.readouterr().out)["validation"]["relative_error"] < 0.02
    assert not given.drive_prior["coulomb"].any()


def test_motions_differ_and_stay_within_the_limits(folder: Path) -> None:
    truth = load_model(folder / "truth.urdf")
    runs = [read_bag(folder / name) for name in ("run1_bag", "run2_bag", "box_bag")]
    assert abs(runs[0].position - runs[1].position).max() > 0.3
    for run in runs:
        assert (run.position > truth.limits.lower).all() and (run.position < truth.limits.upper).all()
        assert (abs(run.velocity) < truth.limits.velocity).all() and (abs(run.effort) < truth.limits.effort).all()


def test_files_that_are_there_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "robot.urdf").write_text("mine", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["examples", "arm", "--folder", str(tmp_path)])
    assert examples.main() == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and "robot.urdf: exists already; choose another path" in error
    assert [path.name for path in tmp_path.iterdir()] == ["robot.urdf"]
    assert (tmp_path / "robot.urdf").read_text(encoding="utf-8") == "mine"
