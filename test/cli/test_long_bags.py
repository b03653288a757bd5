"""Bags that are read in parts, as `info` and `validate` and a job of a fleet look at them."""

import json

import numpy as np
import pytest
from support.recordings.synthetic_calibration import Case, synthetic_case

from inertid_ros.cli import main as cli
from inertid_ros.config.configuration import Configuration
from inertid_ros.data.files import loading
from inertid_ros.data.files.bag_backends import write_bag
from inertid_ros.data.files.bag_reading import bag_parts
from inertid_ros.fleet.jobs import bag_job
from inertid_ros.identification.information.information_file import information_from_bytes


@pytest.fixture(scope="module")
def case() -> Case:
    return synthetic_case(3, recordings=1, duration=150.0)


@pytest.fixture(scope="module")
def folder(case, tmp_path_factory):
    folder = tmp_path_factory.mktemp("long")
    write_bag(case.recordings[0], folder / "bag")
    (folder / "robot.urdf").write_text(case.given.urdf)
    return folder


def in_parts(monkeypatch) -> None:
    monkeypatch.setattr(loading, "MAX_SAMPLES_AT_ONCE", 100)
    monkeypatch.setattr(loading, "bag_parts", lambda *given: bag_parts(*given, size=500))


def printed(capsys, *arguments) -> dict:
    capsys.readouterr()
    assert cli.main([str(each) for each in arguments]) in (0, 3)
    return json.loads(capsys.readouterr().out)


def test_info_is_of_all_parts(folder, monkeypatch, capsys):
    whole = printed(capsys, "info", folder / "bag", "--json")
    in_parts(monkeypatch)
    parts = printed(capsys, "info", folder / "bag", "--json")
    joints, whole_joints = parts.pop("joints"), whole.pop("joints")
    effort, whole_effort = ([joint.pop("rms_effort") for joint in each] for each in (joints, whole_joints))
    assert effort == pytest.approx(whole_effort, rel=1e-12) and joints == whole_joints
    assert parts.pop("rate_hz") == pytest.approx(whole.pop("rate_hz"), rel=1e-9)
    assert parts == whole


def test_validate_tells_that_errors_are_of_some_parts(folder, monkeypatch, capsys):
    command = ("validate", folder / "robot.urdf", folder / "bag", "--json", "--quiet")
    whole = printed(capsys, *command)
    in_parts(monkeypatch)
    parts = printed(capsys, *command)
    (notice,) = parts["in_parts"]
    assert "in_parts" not in whole and "parts; figures that depend on every sample cover 5 of them" in notice
    assert parts["validation"]["relative_error"] == pytest.approx(whole["validation"]["relative_error"], rel=0.1)


def test_a_job_of_a_fleet_has_the_information_of_all_parts(case, folder, monkeypatch):
    job = (str(folder / "bag"), case.given.urdf, Configuration())
    whole = bag_job(*job)
    in_parts(monkeypatch)
    parts = bag_job(*job)
    assert parts.summary["sha256"] == whole.summary["sha256"]
    one, other = (information_from_bytes(each.information, "") for each in (parts, whole))
    assert list(one.counts) == pytest.approx(list(other.counts), rel=0.02)
    for key in ("duration_s", "samples", "verdict"):
        assert parts.summary[key] == whole.summary[key]
    deviation = np.array(whole.summary["deviation"])
    np.testing.assert_allclose(parts.summary["deviation"], deviation, rtol=0.1)
