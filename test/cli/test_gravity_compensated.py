"""Robots whose driver reports efforts without gravity, by the command line."""

import json

import numpy as np
import pytest
from support.recordings.simulated_arms import simulated_case
from support.recordings.spoiling import without_gravity

from inertid_ros.cli import main as cli
from inertid_ros.data.files.loading import write_npz
from inertid_ros.report.results import Result

DECLARED = ["--set", "robot.effort=gravity_compensated"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """URDF and two recordings, with gravity and without the gravity of a model that is a fifth too heavy."""
    folder, case = tmp_path_factory.mktemp("gravity"), simulated_case("ur10")
    (folder / "arm.urdf").write_text(case.given.urdf)
    for name, recording in zip(("train", "held"), (*case.train, *case.held_out), strict=True):
        write_npz(recording, folder / f"{name}.npz")
        write_npz(without_gravity(case.given, 1.2 * case.bodies, recording), folder / f"{name}_compensated.npz")
    return folder


def identify(folder, kind, *options):
    train, held = (str(folder / f"{name}{kind}.npz") for name in ("train", "held"))
    result = ["--urdf", str(folder / "arm.urdf"), "--output", str(folder / "result"), "--force"]
    return cli.main(["identify", train, "--validate", held, *result, *options])


def test_the_torque_is_found_with_gravity(folder, capsys):
    assert identify(folder, "_compensated", *DECLARED) == 0
    result = Result.load(folder / "result")
    assert result.model.layout.compensation and len(result.report["compensation"]) == result.model.joints
    assert cli.main(["validate", str(folder / "result"), str(folder / "held_compensated.npz")]) == 0
    capsys.readouterr()
    assert cli.main(["predict", str(folder / "result"), str(folder / "held_compensated.npz"), "--json"]) == 0
    causes = json.loads(capsys.readouterr().out)
    assert "gravity compensation" in json.dumps(causes)
    case = simulated_case("ur10")
    masses = result.model.layout.bodies(result.parameters)[:, 0]
    assert np.abs(masses - case.bodies[:, 0]).sum() < np.abs(case.given.body_prior[:, 0] - case.bodies[:, 0]).sum()


@pytest.mark.parametrize(
    ("kind", "options", "line"),
    [
        ("_compensated", [], "efforts lack the torque of gravity"),
        ("", DECLARED, "efforts contain the torque of gravity"),
    ],
)
def test_a_wrong_declaration_is_refused(folder, capsys, kind, options, line):
    assert identify(folder, kind, *options) in (2, 3)
    output = capsys.readouterr()
    assert line in output.out + output.err


def test_init_declares_it(folder, capsys):
    path = folder / "arm.yaml"
    arguments = ["--output", str(path), "--effort", "gravity_compensated"]
    assert cli.main(["init", str(folder / "arm.urdf"), *arguments]) == 0
    assert "effort: gravity_compensated" in path.read_text()
    assert "masses follow from accelerations alone" in capsys.readouterr().out


def test_a_free_base_is_refused(folder, capsys):
    assert identify(folder, "_compensated", *DECLARED, "--set", "robot.base=free") == 2
    assert "effort is gravity_compensated, which needs base fixed" in capsys.readouterr().err
