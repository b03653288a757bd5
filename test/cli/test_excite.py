"""Planning a motion from the command line."""

import html
import json
import os
import signal
from contextlib import contextmanager
from xml.etree import ElementTree

import numpy as np
import pytest
from support.quick_outputs import drawn
from support.recordings.synthetic_calibration import synthetic_case
from support.robots.free_base import free_urdf

from inertid_ros.calibration import planning
from inertid_ros.cli import excite, main as cli
from inertid_ros.core.errors import log_once
from inertid_ros.data.files.loading import write_npz
from inertid_ros.excitation.plan import load_motion
from inertid_ros.robot.model import load_model

FILES = [".inertid.json", "excitation.html", "excitation.json", "joint_trajectory.yaml", "motion.svg", "plan.yaml",
    "spectrum.svg", "validation_plan.yaml"]
QUICK = ("--set", "excitation.starts=4", "--set", "excitation.improved=0", "--set", "excitation.duration_s=10")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "robot.urdf").write_text(synthetic_case(7, recordings=0).given.urdf)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _excite(capsys, *more, output="out", quick=QUICK):
    capsys.readouterr()
    status = cli.main(["excite", "--urdf", "robot.urdf", "--output", output, *quick, *more])
    return status, *capsys.readouterr()


def test_a_plan_within_the_limits_is_written(folder, capsys):
    status, out, _ = _excite(capsys, "--json")
    summary, plan, model = json.loads(out), load_motion("out/plan.yaml"), load_model(folder / "robot.urdf")
    assert status == 0 and sorted(os.listdir("out")) == FILES
    assert sorted(os.listdir()) == ["out", "robot.urdf"]
    assert plan.joint_names == model.joint_names and plan.model_hash == model.hash
    assert plan.duration == pytest.approx(10.0) and np.isfinite(summary["condition_number"])
    assert (np.abs(plan.velocity) <= model.limits.velocity).all()
    for joint in summary["joints"]:
        assert max(joint[f"{name}_used"] for name in ("range", "velocity", "acceleration", "effort")) <= 1 + 1e-9
    assert summary["plan_file"] == "out/plan.yaml"
    told = any(finding["message"].startswith("condition number") for finding in summary["findings"])
    assert told == (summary["condition_number"] > 100)
    assert not plan.velocity[0].any() and not plan.velocity[-1].any()
    assert cli.main(["info", "out"]) == cli.main(["info", "out/plan.yaml"]) == 0
    assert capsys.readouterr().out.count("fourier motion of 10 s") == 2


def test_progress_is_of_planning_from_the_first_line_on(folder, capsys, monkeypatch):
    """It read "reading" while the search went on."""
    stages = []

    @contextmanager
    def watched(options, stage):
        stages.append(stage)
        yield lambda stage, fraction: stages.append(stage)

    monkeypatch.setattr(excite, "progress_bar", watched)
    assert _excite(capsys)[0] == 0
    assert all(stage.startswith("planning") for stage in stages[:-1]) and stages[-1] == "checking"


def test_ctrl_c_writes_the_best_motion_so_far(folder, capsys, monkeypatch):
    shown = []

    def interrupt(value):
        shown.append(value)
        if len(shown) == 3:
            signal.raise_signal(signal.SIGINT)
        return str(value)

    monkeypatch.setattr(excite, "number", interrupt)  # of the progress that is shown
    settings = ("starts=4", "improved=1", "iterations=100000", "duration_s=10")
    endless = [f"--set=excitation.{setting}" for setting in settings]
    status, _, err = _excite(capsys, *endless, quick=())
    assert "interrupted; going on with the best motion so far" in err and status == 0, err
    assert sorted(os.listdir("out")) == FILES


def test_ctrl_c_before_there_is_a_motion_writes_nothing(folder, capsys, monkeypatch):
    monkeypatch.setattr(planning.planner, "plan_excitation", lambda *_: signal.raise_signal(signal.SIGINT))
    status, _, err = _excite(capsys)
    assert status == 130 and err == "inertid: error: interrupted\n"
    assert os.listdir() == ["robot.urdf"]


def test_what_a_motion_does_not_excite_is_told_on_all_ways(folder, capsys):
    narrow = ["--set", "limits.position.joint1=[0.1, 0.11]"]
    status, out, err = _excite(capsys, "--json", *narrow)
    floor, message = [finding["message"] for finding in json.loads(out)["findings"]]
    assert status == 0 and f"inertid: warning: {message}" in err and message.startswith("condition number")
    assert floor.startswith("the floor is not checked, as link ") and f"inertid: warning: {floor}" in err
    assert json.loads(out)["surroundings"][1] == "obstacles: none configured"
    told = json.loads((folder / "out/excitation.json").read_text())["constraints"]
    assert [each["words"].split(" of ")[0] for each in told] == ["effort"], "nothing can meet, so there is no distance"
    assert "<li>obstacles: none configured</li>" in (folder / "out/excitation.html").read_text()
    assert html.escape(message, quote=False)[:40] in (folder / "out/excitation.html").read_text()


def test_start_and_kind_are_chosen(folder, capsys):
    assert _excite(capsys, "--start", "joint1=0.5", "--set", "excitation.kind=cycloidal")[0] == 0
    plan = load_motion("out/plan.yaml")
    assert plan.motion_type == "cycloidal"
    assert plan.position[0] == pytest.approx([0, 0.5, 0]) and plan.position[-1] == pytest.approx([0, 0.5, 0])


def test_criterion_and_scaling_are_chosen(folder, capsys):
    chosen = ("--set", "excitation.criterion=e", "--set", "excitation.scaling=metric")
    assert _excite(capsys, *chosen)[0] == 0
    summary = json.loads((folder / "out/excitation.json").read_text())["criterion"]
    assert (summary["kind"], summary["scaling"]) == ("e", "metric") and summary["value"] > 0
    status, out, _ = _excite(capsys, *chosen, "--set", "excitation.kept_parameters=5", output="fewer")
    assert status == 0 and "criterion 'e' in the scaling 'metric'" in out and "5 combinations" in out
    fewer = json.loads((folder / "fewer/excitation.json").read_text())["criterion"]
    assert fewer["parameters"] == 5 and fewer["value"] < summary["value"]


def test_a_parameter_file_of_the_nodes_is_understood(folder, capsys):
    text = "/**/excitation: {ros__parameters: {excitation: {harmonics: 3, seed: 9}, tick_s: 1}}"
    (folder / "node.yaml").write_text(text)
    status, out, _ = _excite(capsys, "--config", "node.yaml", "--json")
    options = json.loads(out)["configuration"]["excitation"]
    assert status == 0 and (options["harmonics"], options["seed"], options["starts"]) == (3, 9, 4)


def test_a_result_is_the_prior_of_the_next_plan(folder, capsys):
    case = synthetic_case(7, recordings=1, duration=8.0)
    write_npz(case.recordings[0], folder / "a.npz")
    assert cli.main(["identify", "a.npz", "--urdf", "robot.urdf", "--output", "result", "--quiet"]) == 0
    status, out, _ = _excite(capsys, "--prior", "result", "--json")
    values = json.loads(out)["singular_values"]
    assert status == 0 and len(values["before"]) == len(values["after"])
    assert all(before <= after * (1 + 1e-9) for before, after in zip(values["before"], values["after"], strict=True))
    (folder / "result/information.npz").unlink()
    status, _, err = _excite(capsys, "--prior", "result", output="other")
    assert status == 2 and "information.npz: no such file" in err and "identify again" in err
    (folder / "robot.urdf").write_text(synthetic_case(8, recordings=0).given.urdf)
    status, _, err = _excite(capsys, "--prior", "result", output="other")
    assert status == 2 and "result: belongs to another robot" in err


@pytest.mark.parametrize(
    "more, message",
    [
        (("--start", "ghost=1"), "--start ghost=1: the robot has no such joint; it has joint0, joint1, joint2"),
        (("--start", "joint0"), "--start: 'joint0' is not JOINT=POSITION"),
        (("--start", "joint0=9"), "joint 'joint0': the start pose 9 is outside its range"),
        (("--set", "excitation.kind=circle"), "command line: excitation.kind is 'circle'; choose from fourier"),
        (("--set", "limits.acceleration.joint0=-1"), "command line: limits.acceleration.joint0 is -1.0; it must lie"),
        (("--set", "limits.acceleration=[joint0=1]"),
            "command line: limits.acceleration is ['joint0=1'], expected a mapping of names, each with its value"),
        (("--set", "prepare.cutoff_hz=3"), "command line: prepare.cutoff_hz is not an option"),
        (("--prior", "absent"), "absent: no such result directory"),
        (("--output", "robot.urdf"), "robot.urdf: is a file"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(more, message, folder, capsys):
    status, out, err = _excite(capsys, *more)
    assert status == 2 and out == "" and os.listdir() == ["robot.urdf"]
    assert err.splitlines()[-1].startswith(f"inertid: error: {message}")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a robot and its plan, and what was said of it; for tests that change neither."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "robot.urdf").write_text(synthetic_case(7, recordings=0).given.urdf)
    urdf, output = str(folder / "robot.urdf"), str(folder / "out")
    with drawn():
        assert cli.main(["excite", "--urdf", urdf, "--output", output, "--quiet", *QUICK]) == 0
    return folder, json.loads((folder / "out/excitation.json").read_text())


def test_quiet_leaves_nothing_on_stderr(made, capfd):
    check = ["excite", "--urdf", str(made[0] / "robot.urdf"), "--check", str(made[0] / "out/plan.yaml")]
    for more in ((), ("--quiet",)):
        log_once.cache_clear()
        capfd.readouterr()
        assert cli.main([*check, *more]) == 0
        err = capfd.readouterr().err
        assert (err == "") == bool(more) and ("the floor is not checked" in err) != bool(more)


@pytest.mark.parametrize("file", ["plan.yaml", "joint_trajectory.yaml"])
def test_a_plan_is_looked_at_again(made, tmp_path, capsys, file):
    folder, first = made
    check = ["excite", "--urdf", str(folder / "robot.urdf"), "--check", str(folder / "out" / file)]
    assert cli.main([*check, "--json", "--output", str(tmp_path / "again")]) == 0
    seen = json.loads(capsys.readouterr().out)
    for joint, before in zip(seen["joints"], first["joints"], strict=True):
        assert joint.pop("name") == before["name"]
        assert joint == pytest.approx({key: before[key] for key in joint}, rel=1e-6)
    assert seen["singular_values"]["after"] == pytest.approx(first["singular_values"]["after"], rel=1e-6)
    assert seen["condition_number"] == pytest.approx(first["condition_number"], rel=1e-6)
    assert sorted(os.listdir(tmp_path / "again")) == [name for name in FILES if name != "validation_plan.yaml"]
    again, plan = load_motion(tmp_path / "again/plan.yaml"), load_motion(folder / "out/plan.yaml")
    for channel in ("time", "position", "velocity", "acceleration"):
        np.testing.assert_allclose(getattr(again, channel), getattr(plan, channel), rtol=0, atol=1e-9)


def test_a_plan_that_breaks_a_limit_is_refused_by_name(made, capsys):
    check = ["excite", "--urdf", str(made[0] / "robot.urdf"), "--check", str(made[0] / "out/plan.yaml")]
    assert cli.main([*check, "--set", "limits.velocity={joint1: 0.1}"]) == 2
    error = capsys.readouterr().err
    assert "joint 'joint1': velocity" in error and len(error.splitlines()) == 1
    assert cli.main([*check, "--set", "limits.effort={joint0: 0.01}"]) == 2
    assert "effort limit" in capsys.readouterr().err
    assert cli.main(check) == 0
    out = capsys.readouterr().out
    assert "effort used" in out and "at rest within" in out and "keeps every limit" in out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("velocities", "speeds", "velocities"),
        ("joint1", "elbow", "joints"),
        ("time_from_start", "when", "time_from_start"),
        ("points:", "points: 3", "points"),
        ("positions: [", "positions: [.nan, ", "positions"),
    ],
)
def test_a_damaged_joint_trajectory_is_refused_in_one_line(made, tmp_path, capsys, old, new, message):
    head, _, points = (made[0] / "out/joint_trajectory.yaml").read_text().partition("points:")
    text = head + new if old == "points:" else f"{head}points:{points}".replace(old, new, 1)
    (tmp_path / "damaged.yaml").write_text(text)
    check = ["excite", "--urdf", str(made[0] / "robot.urdf"), "--check", str(tmp_path / "damaged.yaml")]
    assert cli.main(check) == 2
    error = capsys.readouterr().err
    assert message in error and len(error.splitlines()) == 1


def test_the_page_shows_the_motion_against_its_limits(made):
    page = (made[0] / "out/excitation.html").read_text()
    summary = json.loads((made[0] / "out/excitation.json").read_text())
    joints = [joint["name"] for joint in summary["joints"]]
    assert page.count("<svg") == 2 * (1 + len(joints))  # for both plans the spectrum, and the motion of every joint
    assert page.count("<path") > 2 * page.count("<svg")
    assert summary["held_out"]["seed"] == summary["seed"] + 1 and "motion of random to validate" in page
    assert all(f"Motion of {name} against its limits" in page for name in joints)
    weakest = summary["singular_directions"][-1]
    assert weakest and ", ".join(weakest) in page  # parameters are named under the singular values
    for plot in ("motion", "spectrum"):
        ElementTree.parse(made[0] / f"out/{plot}.svg")


def test_an_output_or_a_plan_is_needed(folder, capsys):
    assert cli.main(["excite", "--urdf", "robot.urdf"]) == 2
    assert "--output is missing" in capsys.readouterr().err


def test_a_motion_of_a_free_base_is_not_promised(tmp_path, capsys):
    urdf = tmp_path / "robot.urdf"
    urdf.write_text(free_urdf(2, 3))
    command = ["excite", "--urdf", str(urdf), "--set", "robot.base=free", "--output", str(tmp_path / "out")]
    assert cli.main(command) == 2
    assert "its base is free" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
