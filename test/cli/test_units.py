"""URDFs in other units, and hostile meshes: refused or told by every command, with the factor or the file."""

import os

import numpy as np
import pytest
from support.recordings.synthetic import random_motion, record
from support.robots.example_robots import ARMS
from support.robots.mesh_texts import HOSTILE, bare_robot
from support.robots.other_units import in_degrees, in_length, in_mass

from inertid_ros.cli import main as cli
from inertid_ros.core.errors import log_once
from inertid_ros.data.files.loading import write_npz
from inertid_ros.data.recording import Recording
from inertid_ros.robot.model import load_model

COMMANDS = ("init", "excite", "identify")
QUICK = ("excitation.duration_s=5", "excitation.starts=1", "excitation.improved=0", "excitation.criterion_samples=20",
    "excitation.constraint_samples=20")
ALONE = (*QUICK, "excitation.mounting=none", "excitation.collision.self_collision=false")


def arguments(command, urdf, output, settings=ALONE):
    quick = [argument for setting in settings for argument in ("--set", setting)]
    return {
        "init": ["init", urdf, "--output", f"{output}/robot.yaml"],
        "excite": ["excite", "--urdf", urdf, "--output", f"{output}/motion", *quick],
        "identify": ["identify", "run.npz", "--urdf", urdf, "--output", f"{output}/result", "--set",
                     "identify.estimator=ols"],
        "info": ["info", urdf],
    }[command]


@pytest.fixture(scope="module")
def folder(robots, tmp_path_factory):
    """An arm's URDF in several units, and a recording of it that is faster than it may be."""
    folder, text = tmp_path_factory.mktemp("units"), (robots / ARMS[5]).read_text()
    urdfs = {"right": text, "degrees": in_degrees(text), "some": in_degrees(text, ("elbow_joint", "wrist_2_joint")),
        "speeds": in_degrees(text, keys=("velocity",)), "millimetres": in_length(text, 1e3),
        "grams": in_mass(text, 1e3)}
    for name, content in urdfs.items():
        (folder / f"{name}.urdf").write_text(content)
    model = load_model(text)
    run = record(model, random_motion(np.random.default_rng(0), 6, base_hz=0.3), np.arange(0.0, 8.0, 0.01))
    write_npz(run, folder / "run.npz")
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(folder)

    def run(command, urdf):
        log_once.cache_clear()
        capsys.readouterr()
        status = cli.main(arguments(command, f"{urdf}.urdf", tmp_path))
        return status, " ".join(capsys.readouterr())

    return run


REFUSED = {("degrees", "init"), ("degrees", "excite"), ("some", "init"), ("some", "excite"),
    *(("millimetres", command) for command in COMMANDS)}
TOLD = {
    "degrees": ("looks like degrees (and 5 more)", "0.0174533", "limits.position: {shoulder_pan_joint: [-"),
    "some": ("looks like degrees (and 1 more)", "0.0174533", "limits.position: {elbow_joint: [-3.142, 3"),
    "speeds": ("looks like degrees per second", "0.0174533", "limits.velocity: {shoulder_pan_joint: 3.15"),
    "millimetres": ("lengths seem to be in millimetres", "by 0.001", "multiply xyz of every <origin>"),
    "grams": ("masses are in grams", "by 1e-3", "multiply masses and inertias"),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("unit", TOLD)
def test_other_units_are_refused_or_told(run, tmp_path, unit, command):
    status, output = run(command, unit)
    for words in TOLD[unit]:
        assert words in output, output
    if (unit, command) in REFUSED:
        assert status == 2 and not os.listdir(tmp_path), output
    elif command == "identify":
        assert os.listdir(tmp_path) == (["result"] if status in (0, 3) else [])


def test_joints_faster_than_the_urdf_allows_are_noticed(run):
    status, output = run("identify", "right")
    assert status in (0, 3)
    assert "times the URDF's velocity limit of 3.15" in output and "looks like" not in output


@pytest.mark.parametrize("mesh", ["itself.dae", "nan.stl", "far.stl"])
def test_a_hostile_mesh_is_one_line_of_every_command(tmp_path, monkeypatch, capsys, mesh):
    urdf = bare_robot(tmp_path, {mesh: HOSTILE[mesh][0]})
    instants = np.arange(0.0, 4.0, 0.02)
    position = np.sin(np.outer(instants, [1.0, 2.0, 3.0]))
    write_npz(Recording(load_model(urdf).joint_names, instants, position, 3.0 * position), tmp_path / "run.npz")
    monkeypatch.chdir(tmp_path)
    for command in ("info", "identify", "init", "excite"):
        log_once.cache_clear()
        capsys.readouterr()
        assert cli.main(arguments(command, str(urdf), tmp_path, QUICK)) in (0, 2, 3)
        told = [line for line in capsys.readouterr().err.splitlines() if "cannot read mesh" in line]
        assert told and all(f"{mesh}' (" in line and "); " in line for line in told)
