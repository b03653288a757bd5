"""A bag whose joints have other names than the URDF: the error proposes them, and the command takes them."""

import json

import numpy as np
import pytest
from support.recordings.synthetic_calibration import synthetic_case
from support.without_blocks import without_blocks  # noqa: F401 - for all tests of this module

from inertid_ros.cli import main as cli
from inertid_ros.data.files.bag_backends import write_bag
from inertid_ros.data.files.loading import read_npz, write_npz
from inertid_ros.data.recording import Recording


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """good.urdf, own.npz, and the same recording with other names, and a finger more, as a bag and as npz."""
    folder = tmp_path_factory.mktemp("names")
    case = synthetic_case(5, recordings=2, duration=8.0)
    (folder / "good.urdf").write_text(case.given.urdf)
    for name, run in zip(("own", "held"), case.recordings, strict=True):
        write_npz(run, folder / f"{name}.npz")
        others = (*(f"other_{joint}" for joint in run.joint_names), "other_finger")
        wider = (np.column_stack([values, 0.01 * values[:, :1]]) for values in (run.position, run.effort, run.velocity))
        position, effort, velocity = wider
        renamed = Recording(others, run.time, position, effort, velocity)
        write_bag(renamed, folder / f"{name}_bag")
        write_npz(renamed, folder / f"{name}_other.npz")
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)

    def run(*arguments):
        capsys.readouterr()
        status = cli.main(list(arguments))
        return status, *capsys.readouterr()

    return run


def test_a_bag_with_other_names_to_a_result(run, folder, tmp_path):
    status, _, err = run("identify", "own_bag", "--urdf", "good.urdf", "--output", str(tmp_path / "refused"))
    assert status == 2
    assert "if the recorded names mean these joints, set robot.joint_names: {other_*: '*'}; else record" in err
    names = ("--set", "robot.joint_names={other_*: '*'}", "--quiet")
    results = {}
    for recording, options in (("own.npz", ()), ("own_bag", names), ("own_other.npz", names)):
        output = tmp_path / recording
        status, _, err = run("identify", recording, "--urdf", "good.urdf", "--output", str(output), "--json", *options)
        assert status == 0, err
        results[recording] = json.loads((output / "report.json").read_text())["links"]
    assert results["own_other.npz"] == results["own.npz"]
    for one, two in zip(results["own_bag"], results["own.npz"], strict=True):
        np.testing.assert_allclose(one["mass"], two["mass"], rtol=1e-6)  # stamps of bags are whole nanoseconds
    # The result remembers the names.
    assert run("validate", str(tmp_path / "own_bag"), "held_bag", "--quiet")[0] == 0


def test_a_recording_of_two_robots_is_used_for_either(run, folder, tmp_path):
    own = read_npz(folder / "own.npz")
    names = tuple(f"{side}_{joint}" for side in ("left", "right") for joint in own.joint_names)
    both = (np.hstack([values, values]) for values in (own.position, own.effort))
    write_npz(Recording(names, own.time, *both), tmp_path / "both.npz")
    command = ("identify", str(tmp_path / "both.npz"), "--urdf", "good.urdf", "--output", str(tmp_path / "result"))
    status, _, err = run(*command)
    assert status == 2 and "set robot.joint_names: {left_*: '*'}" in err
    for side in ("left", "right"):
        status, _, err = run(*command, "--force", "--set", f"robot.joint_names={{{side}_*: '*'}}")
        assert status == 0, err


def test_info_tells_the_names(run):
    names = ("--set", "robot.joint_names={other_*: '*'}")
    _, out, _ = run("info", "own_bag", *names)
    assert "other_joint0 is joint0" in out.replace("\n", " "), out
    _, out, _ = run("info", "good.urdf", *names)
    assert "names in recordings: other_joint0 is joint0" in out, out
    _, out, _ = run("info", "good.urdf", "--json", *names)
    assert json.loads(out)["joints"][0]["recorded_as"] == "other_joint0"
