"""Results as files for simulators, tables and samples; bad input in one line."""

import csv
import json
import shutil

import numpy as np
import pytest
from support.recordings.synthetic_calibration import calibrated_case

from inertid_ros.cli import main as cli
from inertid_ros.core.inertial_parameters import is_consistent
from inertid_ros.report.results import Result


@pytest.fixture(scope="module")
def result(tmp_path_factory) -> Result:
    directory = tmp_path_factory.mktemp("export") / "result"
    calibrated_case()[1].save(directory)
    return Result.load(directory)


def test_the_mjcf_is_updated_in_place(result, tmp_path, capsys):
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is not installed: pip install mujoco")
    command = ["export", str(result.directory), "--to", "mjcf", "--output", str(tmp_path / "robot.xml")]
    assert cli.main(command) == 0
    assert "all together" in capsys.readouterr().out
    made = mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml"))
    damping = result.parameters[result.model.layout.drive("viscous")]
    np.testing.assert_array_equal(made.dof_damping, damping)
    given = tmp_path / "given.xml"
    given.write_text((tmp_path / "robot.xml").read_text().replace('damping="', 'damping="9'))
    updated = [*command[:-1], str(tmp_path / "updated.xml"), "--onto", str(given), "--json"]
    assert cli.main(updated) == 0
    content = json.loads(capsys.readouterr().out)
    np.testing.assert_array_equal(mujoco.MjModel.from_xml_path(str(tmp_path / "updated.xml")).dof_damping, damping)
    assert content["joint_names"] == list(result.model.joint_names) and content["output"] == updated[-4]
    assert 0 < max(content["error"]) < 0.01 * max(content["torque"]) and len(content["lost"]) == 1
    assert cli.main(updated) == 2
    assert "--force" in capsys.readouterr().err


def test_the_table_has_the_intervals_of_the_report(result, tmp_path, capsys):
    assert cli.main(["export", str(result.directory), "--to", "csv", "--output", str(tmp_path / "a.csv")]) == 0
    with open(tmp_path / "a.csv", newline="") as file:
        rows = {row["parameter"]: row for row in csv.DictReader(file)}
    estimate = calibrated_case()[1].estimate
    assert tuple(rows) == estimate.layout.names
    for name, value, interval in zip(rows, estimate.parameters, estimate.interval, strict=True):
        np.testing.assert_allclose([float(rows[name][key]) for key in ("value", "lower", "upper")], [value, *interval])


def test_samples_are_consistent(result, tmp_path, capsys):
    command = ["export", str(result.directory), "--samples", "20", "--output", str(tmp_path / "a.csv")]
    assert cli.main(command) == 0
    with open(tmp_path / "a.csv", newline="") as file:
        names, *rows = csv.reader(file)
    samples = np.array(rows, dtype=float)
    assert tuple(names) == result.model.layout.names and samples.shape == (20, len(names))
    assert is_consistent(samples[:, : result.model.layout.inertial_size].reshape(20, -1, 10)).all()


@pytest.mark.parametrize(("arguments", "message"), [
    (["missing", "--to", "csv"], "no such result directory; check the path"),
    (["empty", "--to", "csv"], "has no parameters.yaml and is not a result directory"),
    (["damaged", "--to", "csv"], "parameters.yaml: is damaged"),
    (["result", "--to", "csv", "--onto", "a.xml"], "--onto works only with --to mjcf; leave --onto out, or"),
    (["result", "--to", "mjcf", "--onto", "a.xml"], "a.xml: No such file or directory; correct the path"),
    (["result", "--to", "mjcf", "--onto", "result/calibrated.urdf"], "is a <robot>; give the <mujoco> file"),
    (["result", "--to", "mjcf", "--onto", "result/parameters.yaml"], "is not XML"),
    (["result", "--to", "csv", "--output", "none/below/a.csv"], ""),
    (["result", "--samples", "0"], "0 is not between 1 and 10000"),
    (["result"], "one of the arguments --to --samples is required"),
])
def test_bad_input_is_one_line(result, tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(result.directory, "result")
    shutil.copytree(result.directory, "damaged")
    (tmp_path / "damaged" / "parameters.yaml").write_text("{")
    (tmp_path / "empty").mkdir()
    (tmp_path / "none").write_text("a file")
    output = [] if "--output" in arguments else ["--output", "out"]
    try:
        status = cli.main(["export", *arguments, *output])
    except SystemExit as end:
        status = end.code
    error = capsys.readouterr().err
    assert status == 2 and error.startswith("inertid: error: ") and error.count("\n") == 1 and message in error
    assert not (tmp_path / "out").exists()
