"""The inertid command on good input, run as a user runs it or in this process."""

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from support.recordings.synthetic_calibration import held_recording, synthetic_case

from inertid_ros.cli import main as cli
from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.data.files.bag_backends import write_bag
from inertid_ros.data.files.bag_reading import read_bag
from inertid_ros.data.files.loading import read_npz, write_npz
from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import load_model

RESULT_FILES = [".inertid.json", "calibrated.urdf", "curves.npz", "information.npz", "parameters.yaml", "report.html",
    "report.json"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Folder with given.urdf, truth.urdf, a.npz, b.npz and b_bag."""
    folder = tmp_path_factory.mktemp("files")
    case = synthetic_case(3)
    (folder / "given.urdf").write_text(case.given.urdf)
    (folder / "truth.urdf").write_text(case.truth.urdf)
    for name, recording in zip("ab", case.recordings, strict=True):
        write_npz(recording, folder / f"{name}.npz")
    write_bag(case.recordings[1], folder / "b_bag")
    return folder


@pytest.fixture(scope="module")
def result(files, tmp_path_factory):
    """A result directory; not to be changed."""
    path = tmp_path_factory.mktemp("result") / "out"
    command = ["identify", str(files / "a.npz"), "--urdf", str(files / "given.urdf"), "--output", str(path)]
    assert cli.main([*command, "--validate", str(files / "b_bag"), "--quiet"]) == 0
    return path


def _run(*arguments, capsys):
    capsys.readouterr()
    status = cli.main([str(argument) for argument in arguments])
    return status, *capsys.readouterr()


def _start(*arguments, **keywords):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-m", "inertid_ros.cli.main", *map(str, arguments)], **pipes, **keywords)


def test_identify_writes_a_result_and_prints_one_json_object(files, tmp_path, capsys):
    status, out, err = _run("identify", files / "a.npz", "--urdf", files / "given.urdf", "--validate", files / "b_bag",
        "--output", tmp_path / "out", "--json", capsys=capsys)
    printed = json.loads(out)
    assert status == 0
    assert sorted(os.listdir(tmp_path / "out")) == RESULT_FILES and os.listdir(tmp_path) == ["out"]
    assert printed.pop("result_directory") == str(tmp_path / "out")
    assert printed == json.loads((tmp_path / "out" / "report.json").read_text())
    assert printed["validation"]["relative_error"] < 0.2 * printed["prior"]["relative_error"]
    assert {"reading", "preparing", "identifying", "validating", "total"} <= set(printed["timing"])
    assert all(line.startswith("inertid: ") for line in err.splitlines())
    assert is_consistent(load_model(tmp_path / "out" / "calibrated.urdf").body_prior).all()


def test_the_recorded_arm_meets_its_figure(datasets, tmp_path, capsys):
    data = datasets / "kuka_lwr4"
    status, out, _ = _run("identify", data / "run1_bag", "--urdf", data / "kuka_lwr4.urdf", "--validate",
        data / "run2_bag", "--output", tmp_path / "result", "--json", capsys=capsys)
    assert status == 0
    report = json.loads(out)
    assert report["verdict"] == "use with care", report["reasons"]  # of one motion; test_identify.py fits two for "use"
    errors = {band["cutoff_hz"]: band["calibrated"]["relative_error"] for band in report["bands"]}
    assert list(errors) == [2.0, 5.0, 10.0] and errors[5.0] <= 0.023
    assert all(link["min_pseudo_inertia_eigenvalue"] > 0 for link in report["links"])


def test_tables_name_every_joint_and_link(result, files, capsys):
    status, out, _ = _run("report", result, capsys=capsys)
    model = load_model(files / "given.urdf")
    assert status == 0
    assert all(name in out for name in (*model.joint_names, *model.link_names, "accepted: ", "[kg]"))


def test_report_prints_json_and_writes_a_page(result, tmp_path, capsys):
    status, out, _ = _run("report", result, "--json", "--html", tmp_path / "page.html", capsys=capsys)
    assert status == 0 and json.loads(out) == json.loads((result / "report.json").read_text())
    assert "<!DOCTYPE html>" in (tmp_path / "page.html").read_text()
    assert _run("report", result, "--html", tmp_path / "page.html", capsys=capsys)[0] == 2
    assert _run("report", result, "--html", tmp_path / "page.html", "--force", capsys=capsys)[0] == 0


def test_validate_judges_results_and_urdfs(result, files, capsys):
    status, out, _ = _run("validate", result, files / "b_bag", "--json", capsys=capsys)
    validated = json.loads(out)
    stored = json.loads((result / "report.json").read_text())
    assert status == 0 and validated["passed"]
    assert validated["validation"]["relative_error"] == pytest.approx(stored["validation"]["relative_error"])
    assert validated["prior"]["relative_error"] == pytest.approx(stored["prior"]["relative_error"])
    cutoff = f"prepare.cutoff_hz={stored['provenance']['cutoff_hz']}"  # of a URDF, none is stored
    command = ("validate", files / "given.urdf", files / "b.npz", "--json", "--set", cutoff)
    status, out, _ = _run(*command, capsys=capsys)
    given = json.loads(out)
    assert status == 0 and "prior" not in given
    assert given["validation"]["relative_error"] == pytest.approx(stored["prior"]["relative_error"])
    assert given["verdict"] == "use with care" and given["reasons"][0]["cause"] == "above_noise"
    status, out, _ = _run("validate", files / "truth.urdf", files / "b.npz", "--json", capsys=capsys)
    assert status == 0 and json.loads(out)["verdict"] == "use"
    better = ("validate", files / "truth.urdf", files / "a.npz", files / "b.npz", "--urdf", files / "given.urdf")
    assert _run(*better, capsys=capsys)[0] == 0


def test_a_subject_worse_than_the_given_urdf_exits_with_three(files, capsys):
    command = ("validate", files / "given.urdf", files / "b.npz", "--urdf", files / "truth.urdf")
    status, out, _ = _run(*command, capsys=capsys)
    assert status == 3 and "rejected" in out
    status, out, _ = _run(*command, "--json", capsys=capsys)
    assert status == 3 and json.loads(out)["passed"] is False


def test_validate_rejects_what_explains_nothing_of_a_torque(result, files, tmp_path, capsys):
    """And screening refuses what is certainly in another unit."""
    recording = read_npz(files / "b.npz")
    write_npz(replace(recording, effort=1e-3 * recording.effort), tmp_path / "kilo.npz")
    status, _, err = _run("validate", result, tmp_path / "kilo.npz", capsys=capsys)
    assert status == 2 and "robot.effort_scale" in err
    write_npz(replace(recording, effort=recording.effort[::-1]), tmp_path / "reversed.npz")
    status, out, _ = _run("validate", result, tmp_path / "reversed.npz", "--json", capsys=capsys)
    content = json.loads(out)
    assert status == 3 and content["verdict"] == "do not use" and not content["passed"]
    assert content["reasons"][0]["cause"] == "above_noise" and content["reasons"][0]["subjects"] == ["joint0"]


def test_validate_tells_recordings_that_were_fitted(result, files, capsys):
    status, out, err = _run("validate", result, files / "a.npz", "--json", capsys=capsys)
    content = json.loads(out)
    assert status == 0 and content["verdict"] == "use with care" and content["passed"]
    assert [reason["cause"] for reason in content["reasons"]] == ["held_out_not_new"]
    assert "warning: use with care: " in err


def test_the_bytes_of_a_fitted_recording_cannot_validate(files, tmp_path, capsys):
    copy = shutil.copy(files / "a.npz", tmp_path / "other_name.npz")
    status, _, err = _run("identify", files / "a.npz", "--urdf", files / "given.urdf", "--validate", copy, "--output",
        tmp_path / "out", capsys=capsys)
    assert status == 2 and "other_name.npz: holds the samples of" in err and "another motion" in err
    assert not (tmp_path / "out").exists()


def test_without_validation_the_result_is_used_with_care(files, tmp_path, capsys):
    command = ("identify", files / "a.npz", "--urdf", files / "given.urdf", "--output", tmp_path / "out")
    status, out, err = _run(*command, capsys=capsys)
    assert status == 0 and "warning: use with care: the verdict above lists the reasons" in err
    assert "Verdict: use with care, because\n- the result was not tested on a recording of another motion" in out
    assert "on blocks of the data fitted, each held out in turn" in out
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["blocks"]["count"] >= 4 and report["prior"]["blocks"]["relative_error"] > 0
    assert "use with care" in (tmp_path / "out" / "report.html").read_text()


def test_a_rejected_result_exits_with_three_and_is_still_written(files, tmp_path, capsys):
    recording = read_npz(files / "b.npz")
    rng = np.random.default_rng(0)
    write_npz(replace(recording, effort=50 * rng.normal(size=recording.effort.shape)), tmp_path / "noise.npz")
    status, out, _ = _run("identify", tmp_path / "noise.npz", "--urdf", files / "truth.urdf", "--validate",
        files / "b.npz", "--output", tmp_path / "out", "--json", capsys=capsys)
    assert status == 3
    assert json.loads(out)["status"] == "rejected"
    assert sorted(os.listdir(tmp_path / "out")) == RESULT_FILES


@pytest.mark.parametrize("name", ["c.npz", "c.mcap", "c.db3", "c"])
def test_convert_between_all_formats(name, files, tmp_path, capsys):
    status, out, _ = _run("convert", files / "b_bag", tmp_path / name, "--json", capsys=capsys)
    assert status == 0 and json.loads(out)["samples"] == 1500
    back = read_npz(tmp_path / name) if name.endswith("npz") else read_bag(tmp_path / name)
    original = read_bag(files / "b_bag")
    assert np.array_equal(back.time, original.time) and np.array_equal(back.effort, original.effort)
    assert os.listdir(tmp_path) == [name]
    assert _run("convert", files / "b_bag", tmp_path / name, capsys=capsys)[0] == 2
    assert _run("convert", files / "b_bag", tmp_path / name, "--force", capsys=capsys)[0] == 0
    assert os.listdir(tmp_path) == [name]


def test_convert_makes_no_bag_of_another_format(files, tmp_path, capsys):
    status, _, err = _run("convert", files / "b.npz", tmp_path / "b.h5", capsys=capsys)
    assert status == 2 and "b.h5: recordings are not written as .h5; give NAME.npz" in err
    assert _run("convert", files / "b.npz", tmp_path / "run_2026.01.31", capsys=capsys)[0] == 0
    assert os.listdir(tmp_path) == ["run_2026.01.31"]


def test_convert_says_what_a_bag_does_not_hold(files, tmp_path, capsys):
    recording = read_npz(files / "a.npz")
    write_npz(replace(recording, acceleration=recording.velocity), tmp_path / "a.npz")
    _, out, _ = _run("convert", tmp_path / "a.npz", tmp_path / "bag", "--storage", "sqlite3", capsys=capsys)
    assert "without acceleration" in out and (tmp_path / "bag" / "bag.db3").exists()


def test_info_knows_recordings_urdfs_and_results(files, result, capsys):
    for subject, kind in (("a.npz", "recording"), ("b_bag", "recording"), ("given.urdf", "urdf")):
        status, out, _ = _run("info", files / subject, "--json", capsys=capsys)
        content = json.loads(out)
        assert status == 0 and content["kind"] == kind
        assert len(content["joints"]) == 3
        assert _run("info", files / subject, capsys=capsys)[0] == 0
    assert content["model_hash"] == load_model(files / "given.urdf").hash
    status, out, _ = _run("info", result, "--json", capsys=capsys)
    assert status == 0 and json.loads(out)["kind"] == "result"
    _, out, _ = _run("info", files / "b_bag", "--json", capsys=capsys)
    recording = json.loads(out)
    assert recording["topics"] == [{"name": "/joint_states", "type": "sensor_msgs/msg/JointState", "messages": 1500}]
    assert recording["rate_hz"] == pytest.approx(100.0) and recording["gaps"] == 0


def test_info_of_a_bag_without_joint_states_names_its_topics(files, tmp_path, capsys):
    (tmp_path / "c.yaml").write_text("topics: {joint_states: /arm/joint_states}")
    status, out, _ = _run("info", files / "b_bag", "--config", tmp_path / "c.yaml", "--json", capsys=capsys)
    content = json.loads(out)
    assert status == 0 and content["topics"][0]["name"] == "/joint_states"
    assert "has no topic /arm/joint_states; it has /joint_states" in content["problem"]


def test_perturb_writes_a_wrong_urdf_by_seed(files, tmp_path, capsys):
    for name, seed in (("x", 1), ("y", 1), ("z", 2)):
        command = ("perturb", files / "truth.urdf", "--seed", seed, "--output", tmp_path / name, "--json")
        assert _run(*command, capsys=capsys)[0] == 0
    x, y, z = ((tmp_path / name).read_text() for name in "xyz")
    assert x == y != z and load_model(x).hash == load_model(files / "truth.urdf").hash
    assert _run(*command, "--mass-uncertainty", "2", capsys=capsys)[0] == 2


def test_configuration_comes_from_file_then_set_then_lock(files, tmp_path, capsys):
    (tmp_path / "c.yaml").write_text(
        "prepare: {cutoff_hz: 3, filter_order: 2}\nrobot: {locked_joints: {joint2: 0.5}}\n")
    # Of a robot whose locked link is as the URDF says, for nothing else could make up for it.
    held = write_npz(held_recording(load_model(files / "given.urdf"), {"joint2": 0.25}), tmp_path / "held.npz")
    status, out, _ = _run("identify", held, "--urdf", files / "given.urdf", "--output", tmp_path / "out", "--json",
        "--config", tmp_path / "c.yaml", "--set", "prepare.filter_order=6", "--lock", "joint2=0.25", capsys=capsys)
    configuration = json.loads(out)["provenance"]["configuration"]
    assert status == 0
    assert configuration["prepare"]["cutoff_hz"] == 3.0 and configuration["prepare"]["filter_order"] == 6
    assert configuration["robot"]["locked_joints"] == {"joint2": 0.25}
    assert json.loads(out)["joint_names"] == ["joint0", "joint1"]


def test_help_and_version_answer():
    for argument in ("--help", "--version"):
        process = _start(argument)
        out, _ = process.communicate()
        assert process.returncode == 0 and "inertid" in out


def test_examples_of_the_help_are_commands():
    for name, lines in cli.EXAMPLES.items():
        for line in lines:
            assert cli.command_parser().parse_args(shlex.split(line)[1:]).command == name


def test_a_mistyped_command_is_named(capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["identfy", "run1_bag"])
    assert "did you mean identify?" in capsys.readouterr().err


def test_the_demonstration_calibrates_an_arm_once(tmp_path, capsys):
    status, out, _ = _run("demo", "--output", tmp_path / "demo", capsys=capsys)
    assert status == 0 and out.count("$ inertid ") == 4 and "accepted: held-out torque error" in out
    assert (tmp_path / "demo" / "result" / "report.html").exists()
    status, _, err = _run("demo", "--output", tmp_path / "demo", capsys=capsys)
    assert status == 2 and err.count("\n") == 1


def test_help_imports_no_numerics():
    code = "import sys; from inertid_ros.cli.main import command_parser; command_parser();"
    code += " print({'numpy', 'yaml', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_nothing_and_no_traceback(number, status, files, tmp_path):
    stamps = np.arange(0.0, 400.0, 0.002)
    motion = np.sin(stamps[:, None] * np.array([1.0, 1.3, 1.7, 0.0]))
    write_npz(Recording(("joint0", "joint1", "joint2", "gripper"), stamps, motion, motion), tmp_path / "long.npz")
    process = _start("identify", tmp_path / "long.npz", "--urdf", files / "given.urdf", "--output", tmp_path / "out",
        "--set", "prepare.rate_hz=500")
    assert "gripper" in process.stderr.readline(), "it has begun"
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert process.returncode == status
    assert "Traceback" not in err and len([line for line in err.splitlines() if "error" in line]) <= 1
    assert os.listdir(tmp_path) == ["long.npz"]
