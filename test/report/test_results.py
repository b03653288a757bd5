"""The result directory: complete, self-contained, read back as written, atomic."""

import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import attrs
import numpy as np
import pytest
import yaml
from support.recordings.synthetic_calibration import COULOMB, calibrated_case, held_recording, synthetic_case

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.calibration.earlier_result import earlier_fit
from inertid_ros.cli import main as cli
from inertid_ros.cli.printing import print_report
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.robot import CouplingOptions, RobotOptions, RotorOptions
from inertid_ros.core.errors import InertidError, OutputError
from inertid_ros.core.findings import Finding, Severity
from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.identification.assessment.gate import GateDecision
from inertid_ros.report import results
from inertid_ros.report.pages import render_page
from inertid_ros.report.report_content import report_content
from inertid_ros.report.results import Result, ResultError
from inertid_ros.robot.model import load_model

FILES = [".inertid.json", "calibrated.urdf", "curves.npz", "information.npz", "parameters.yaml", "report.html",
    "report.json"]


@pytest.fixture(scope="module")
def case():
    return calibrated_case()[0]


@pytest.fixture(scope="module")
def outcome():
    return calibrated_case()[1]


@pytest.fixture(scope="module")
def written(outcome, tmp_path_factory):
    return outcome.save(tmp_path_factory.mktemp("results") / "out")


@pytest.fixture
def directory(written, tmp_path):
    """A result directory that a test may spoil."""
    return Path(shutil.copytree(written, tmp_path / "out"))


def test_calibration_finds_what_the_recordings_were_made_with(outcome, case):
    assert outcome.passed and outcome.estimate.consistent
    assert outcome.validation.calibrated.relative_error < 0.2 * outcome.validation.prior.relative_error
    assert np.allclose(outcome.estimate.drive("coulomb"), COULOMB, atol=0.1)


def test_the_urdf_has_the_friction_that_was_found(outcome, written):
    drives = load_model(written / "calibrated.urdf").drive_prior
    for term in ("viscous", "coulomb"):
        np.testing.assert_allclose(drives[term], outcome.estimate.drive(term), rtol=1e-12)
    assert Result.load(written).model.layout.transition_speed == pytest.approx(outcome.estimate.layout.transition_speed)


def test_the_report_holds_what_it_promises(outcome, case):
    report, n = report_content(outcome), case.given.joints
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    sections = [report["train"], report["validation"], report["prior"], report["prior"]["train"]]
    for section in [*sections, report["prior"]["validation"]]:
        assert section["relative_error"] > 0
        assert len(section["rms_torque"]) == len(section["rms_error"]) == n
        sliding, resting = (section[f"rms_error_{which}"] for which in ("sliding", "resting"))
        assert all(np.array(sliding) > 0) and len(resting) == n
    assert report["prior"]["relative_error"] == report["prior"]["validation"]["relative_error"]
    assert report["joint_names"] == list(case.given.joint_names)
    for link, name in zip(report["links"], case.given.link_names, strict=True):
        assert link["name"] == name and link["mass"] > 0 and len(link["com"]) == 3
        assert np.array(link["inertia"]).shape == (3, 3)
        assert link["min_pseudo_inertia_eigenvalue"] > 0 and link["geodesic_distance_to_prior"] >= 0
        assert len(link["standard_deviation"]) == 10 and min(link["standard_deviation"]) >= 0
    for joint in report["joints"]:
        assert {"viscous", "coulomb", "rotor_inertia", "offset"} <= set(joint) & set(joint["standard_deviation"])
        assert joint["transition_speed"] > 0
    assert report["base_parameters"]["count"] == len(report["base_parameters"]["names"]) > 0
    assert report["base_parameters"]["condition_number"] > 1
    known = {verdict["parameter"]: verdict for verdict in report["statements"]}
    assert set(known) == set(outcome.estimate.layout.names)
    assert known[f"{case.given.joint_names[0]}.viscous"]["verdict"] == "identified"
    assert known[f"{case.given.link_names[0]}.m"]["verdict"] == "left at the prior"  # its weight moves nothing
    assert {"name", "status", "iterations", "seconds"} <= set(report["solver"])
    assert report["solver"]["status"] == "optimal"
    assert report["peak_memory_mb"] > 10 and all(seconds >= 0 for seconds in report["timing"].values())
    assert report["status"] == "passed" and report["verdict"] == "use" and report["reasons"] == []


def test_provenance_names_robot_recordings_configuration_and_versions(outcome, case):
    where = report_content(outcome)["provenance"]
    assert where["model_hash"] == case.given.hash
    assert [(source["name"], source["role"]) for source in where["recordings"]] == [
        ("recording 0", "train"),
        ("recording 1", "validation"),
    ]
    checksums = {source["sha256"] for source in where["recordings"]}
    assert len(checksums) == 2 and all(re.fullmatch("[0-9a-f]{64}", checksum) for checksum in checksums)
    assert where["configuration"]["prepare"] == json.loads(json.dumps(attrs.asdict(Configuration())["prepare"]))
    assert {"inertid_ros", "numpy", "python"} <= set(where["versions"])


def test_a_result_reads_back_as_it_was(outcome, written):
    assert sorted(os.listdir(written)) == FILES and os.listdir(written.parent) == ["out"]
    stored = Result.load(written)
    assert np.array_equal(stored.parameters, outcome.estimate.parameters)
    assert np.array_equal(stored.prior, outcome.estimate.prior)
    assert np.allclose(stored.covariance, outcome.estimate.covariance, rtol=1e-8)
    assert stored.report == report_content(outcome)
    assert stored.model.hash == outcome.estimate.model.hash
    for channel, other in zip(stored.information.channels, outcome.estimate.information.channels, strict=True):
        assert np.array_equal(channel.r_factor, other.r_factor)
    assert np.allclose(stored.model.body_prior, outcome.estimate.bodies, rtol=1e-12, atol=1e-15)


def test_parameters_yaml_is_plain_yaml_with_names(written):
    text = (written / "parameters.yaml").read_text()
    content = yaml.safe_load(text)
    names = content["parameter_names"]
    assert len(names) == len(content["parameters"]) == len(content["covariance"])
    link = content["links"][0]
    start = names.index(f"{link['name']}.m")
    assert content["parameters"][start : start + 10] == link["parameters"]
    joint = content["joints"][0]
    assert content["parameters"][names.index(f"{joint['name']}.viscous")] == joint["viscous"]
    assert "&id" not in text


def test_the_page_needs_nothing_else_and_shows_everything(case, written):
    page = (written / "report.html").read_text()
    assert not re.findall(r"""(?:src|href)=["'](?!#)""", page), "only references within the page"
    assert "@import" not in page and "url(" not in page
    others = ("recording 0", "recording 1", "passed", "only in combination")
    for name in (*case.given.joint_names, *case.given.link_names, *others):
        assert name in page


def test_names_in_the_page_are_escaped(outcome):
    report = report_content(outcome) | {"robot": "<script>alert(1)</script>"}
    assert "<script>alert" not in render_page(report)


def test_without_held_out_data_the_result_is_not_validated(case, tmp_path):
    outcome = calibrate(case.given, case.recordings)
    report = report_content(outcome)
    assert "validation" not in report and report["status"] == "not validated" and outcome.passed
    assert report["verdict"] == "use with care" and report["reasons"][-1]["cause"] == "not_validated"
    assert report["prior"]["relative_error"] == report["prior"]["train"]["relative_error"]
    stored = Result.load(outcome.save(tmp_path / "out"))
    assert stored.report["train"]["recordings"] == ["recording 0", "recording 1"]


def test_a_rejected_result_says_so(outcome):
    worse = Finding("worse_than_urdf", Severity.REJECT, "joint0: error 2 against 1", "record again", ("joint0",))
    assessment = replace(outcome.assessment, gate=GateDecision.from_findings([worse]))
    rejected = replace(outcome, assessment=assessment)
    report = report_content(rejected)
    assert not rejected.passed and report["status"] == "rejected" and report["verdict"] == "do not use"
    assert [reason["cause"] for reason in report["reasons"]] == ["worse_than_urdf"]
    assert "joint0: error 2 against 1" in report["message"]
    assert 'class="verdict rejected"' in render_page(report_content(rejected))


def test_locked_joints_and_terms_come_back(case, tmp_path):
    options = RobotOptions(locked_joints={"joint2": 0.3}, drive_terms=("viscous",), gravity=(0.0, 0.0, -9.8))
    given = load_model(case.given.urdf, options)
    recording = held_recording(case.truth, {"joint2": 0.3})
    outcome = calibrate(given, [recording])
    stored = Result.load(outcome.save(tmp_path / "out"))
    assert stored.model.joint_names == ("joint0", "joint1")
    assert stored.model.options == given.options
    assert stored.model.layout.transition_speeds == outcome.estimate.layout.transition_speeds
    assert is_consistent(stored.model.body_prior).all()


def test_couplings_and_rotors_come_back(case, tmp_path):
    wrist = CouplingOptions(("joint1", "joint2"), (1.0, -1.0))
    motor = RotorOptions("joint0", "base", 50.0, 0.2, 0.02, 0.05)
    given = load_model(case.given.urdf, RobotOptions(couplings={"wrist": wrist}, rotors={"motor": motor}))
    outcome = calibrate(given, case.recordings[:1])
    stored = Result.load(outcome.save(tmp_path / "out"))
    assert stored.model.layout == given.layout and np.array_equal(stored.parameters, outcome.estimate.parameters)
    assert stored.report["couplings"][0]["name"] == "wrist" and stored.report["rotors"][0]["name"] == "motor"
    assert "wrist" in (tmp_path / "out" / "report.html").read_text()


def test_an_existing_result_is_kept_unless_told_otherwise(outcome, directory, tmp_path):
    with pytest.raises(OutputError, match="out: exists and is not empty; choose another path$"):
        outcome.save(directory)
    before = (directory / "report.html").stat().st_ino
    outcome.save(directory, force=True)
    assert (directory / "report.html").stat().st_ino != before and os.listdir(tmp_path) == ["out"]


def test_a_failure_in_between_leaves_nothing(outcome, tmp_path, monkeypatch):
    def fail(report, curves):
        raise RuntimeError("no page")

    monkeypatch.setattr(results, "render_page", fail)
    with pytest.raises(RuntimeError):
        outcome.save(tmp_path / "out")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["parameters.yaml", "report.json", "calibrated.urdf"])
@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "other", "binary"])
def test_a_damaged_result_is_one_line(name, damage, directory):
    path = directory / name
    other = b"[1, 2]" if name != "calibrated.urdf" else b"<robot name='r'><link name='l'/></robot>"
    content = {"empty": b"", "cut": path.read_bytes()[:700], "other": other, "binary": b"\xff\xfe\x00"}
    path.unlink()
    if damage != "missing":
        path.write_bytes(content[damage])
    with pytest.raises(InertidError) as caught:
        Result.load(directory)
    assert str(directory) in str(caught.value) and "\n" not in str(caught.value)


def test_files_of_two_results_are_not_mixed(directory):
    other = synthetic_case(4).given
    (directory / "calibrated.urdf").write_text(other.urdf)
    with pytest.raises(ResultError, match="does not match calibrated.urdf in its folder"):
        Result.load(directory)


@pytest.mark.parametrize(
    ("file", "changes"),
    [
        ("parameters.yaml", {"robot": "text"}),
        ("parameters.yaml", {"robot": {"locked_joints": "text"}}),
        ("report.json", {"provenance": "text"}),
        ("report.json", {"provenance": None}),
        ("report.json", {"residual_deviation": [[], []]}),
        ("report.json", {"solver": {}}),
    ],
)
def test_content_of_another_form_is_one_line(directory, case, file, changes):
    """Fuzzing found that such files ended in errors of Python."""
    content = yaml.safe_load((directory / file).read_text())
    if file == "parameters.yaml" and isinstance(changes["robot"], dict):
        changes = {"robot": content["robot"] | changes["robot"]}
    (directory / file).write_text(json.dumps(content | changes))
    with pytest.raises(ResultError, match=f"{file}: is damaged"):
        earlier_fit(directory, case.given, ())


def test_a_report_of_another_form_is_not_printed(directory, capsys):
    content = json.loads((directory / "report.json").read_text())
    (directory / "report.json").write_text(json.dumps(content | {"links": ["text"]}))
    for command in ("report", "info"):
        assert cli.main([command, str(directory)]) == 2
        assert "report.json: is damaged" in capsys.readouterr().err


def test_a_report_without_errors_is_told_as_damaged():
    with pytest.raises(InertidError, match="is damaged"), results.as_written(Path("report.json")):
        print_report({"a": {"b": {}}})
