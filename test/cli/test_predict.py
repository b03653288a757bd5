"""Torque along a motion and trajectories with it as feed-forward; torque of a recording by cause."""

import json

import numpy as np
import pinocchio as pin
import pytest
import yaml
from support.recordings.synthetic_calibration import calibrated_case

from inertid_ros.cli import main as cli
from inertid_ros.data.files.loading import write_npz
from inertid_ros.excitation.motion_limits import motion_limits
from inertid_ros.excitation.plan import Plan, joint_trajectory_text, plan_text
from inertid_ros.report.results import Result


@pytest.fixture(scope="module")
def result(tmp_path_factory) -> Result:
    _, outcome = calibrated_case()
    directory = tmp_path_factory.mktemp("predict") / "result"
    outcome.save(directory)
    return Result.load(directory)


@pytest.fixture
def motion(result, tmp_path):
    """Files of one slow motion: a plan, and a message."""
    plan = _slow_motion(result.model)
    (tmp_path / "plan.yaml").write_text(plan_text(plan))
    (tmp_path / "trajectory.yaml").write_text(joint_trajectory_text(plan))
    return plan


def _slow_motion(model) -> Plan:
    time = np.linspace(0.0, 10.0, 201)
    share, amplitude = time[:, None] / 10.0, np.full(model.joints, 0.3)
    position = amplitude * (10 * share**3 - 15 * share**4 + 6 * share**5)
    velocity = amplitude * (30 * share**2 - 60 * share**3 + 30 * share**4) / 10.0
    acceleration = amplitude * (60 * share - 180 * share**2 + 120 * share**3) / 10.0**2
    limits = motion_limits(model)
    return Plan(model.joint_names, time, position, velocity, acceleration, limits, "fourier", model.hash)


@pytest.mark.parametrize("name", ["plan.yaml", "trajectory.yaml"])
def test_the_effort_is_the_torque_of_the_identified_robot(result, motion, tmp_path, capsys, name):
    filled = tmp_path / "filled.yaml"
    arguments = ("predict", str(result.directory), str(tmp_path / name), "--fill", str(filled), "--json")
    assert cli.main([*arguments]) == 0
    content = json.loads(capsys.readouterr().out)
    model, layout = result.model, result.model.layout
    tree = model.with_bodies(layout.bodies(result.parameters))
    data = tree.createData()
    drives = {term: result.parameters[layout.drive(term)] for term in layout.drive_terms}
    message = yaml.safe_load(filled.read_text())
    assert message["joint_names"] == list(model.joint_names) and len(message["points"]) == len(motion.time)
    for row in range(0, len(motion.time), 20):
        q, v, a = motion.position[row], motion.velocity[row], motion.acceleration[row]
        direction = np.tanh(v / layout.transition_speed[: model.joints])
        expected = pin.rnea(tree, data, q, v, a) + drives["rotor_inertia"] * a + drives["viscous"] * v
        expected = expected + drives["coulomb"] * direction + drives["stiffness"] * q
        expected = expected + drives["stribeck"] * np.exp(-np.abs(v) / layout.stribeck_speed) * direction
        np.testing.assert_allclose(message["points"][row]["effort"], expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(content["torque"][row], expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(message["points"][row]["positions"], q)
    assert np.all(np.array(content["standard_deviation"]) >= 0) and np.any(np.array(content["standard_deviation"]) > 0)


def test_the_table_names_every_joint(result, motion, tmp_path, capsys):
    assert cli.main(["predict", str(result.directory), str(tmp_path / "plan.yaml")]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in result.model.joint_names) and "standard deviation" in shown


@pytest.mark.parametrize("spoilt", ["joints", "hash", "missing"])
def test_other_motions_are_refused(result, motion, tmp_path, capsys, spoilt):
    path = tmp_path / "plan.yaml"
    text = path.read_text()
    if spoilt == "joints":
        path.write_text(text.replace(result.model.joint_names[0], "elbow"))
    elif spoilt == "hash":
        path.write_text(text.replace(result.model.hash, "0" * 64))
    else:
        path.unlink()
    assert cli.main(["predict", str(result.directory), str(path), "--fill", str(tmp_path / "filled.yaml")]) == 2
    assert "inertid: error: " in capsys.readouterr().err and not (tmp_path / "filled.yaml").exists()


def test_torque_beyond_the_limit_of_the_urdf_is_refused(result, motion, tmp_path, capsys):
    plan = tmp_path / "plan.yaml"
    content = yaml.safe_load(plan.read_text())
    joints = result.model.joints
    large = [1e5] * joints
    content["points"][1:-1] = [[*row[: 1 + 2 * joints], *large] for row in content["points"][1:-1]]
    plan.write_text(yaml.safe_dump(content))
    assert cli.main(["predict", str(result.directory), str(plan)]) == 2
    assert "move slower" in capsys.readouterr().err


def test_the_torque_of_a_recording_is_told_by_cause(result, tmp_path, capsys):
    """The error is that of `validate`; friction and bodies are those of the robot that was recorded."""
    recording, table = tmp_path / "held.npz", tmp_path / "causes.csv"
    write_npz(calibrated_case()[0].recordings[1], recording)
    command = ["predict", str(result.directory), str(recording), "--table", str(table), "--json", "--quiet"]
    assert cli.main(command) == 0
    content = json.loads(capsys.readouterr().out)
    assert cli.main(["validate", str(result.directory), str(recording), "--json", "--quiet"]) == 0
    validated = json.loads(capsys.readouterr().out)["validation"]
    np.testing.assert_allclose(content["rms"]["error"], validated["rms_error"], rtol=1e-6)
    causes = {name: np.array(values) for name, values in content["causes"].items()}
    np.testing.assert_allclose(sum(causes.values()), content["predicted"], atol=1e-12)
    coulomb = result.parameters[result.model.layout.drive("coulomb")]
    assert (np.abs(causes["friction"]).max(axis=0) > coulomb).all() and causes.keys() >= {"bodies", "friction"}
    rows = np.genfromtxt(table, delimiter=",", names=True, deletechars="")
    name = result.model.joint_names[0]
    np.testing.assert_allclose(rows[f"{name}.friction"], causes["friction"][:, 0])
    np.testing.assert_allclose(rows["time"], content["time"])


def test_options_without_effect_are_refused(result, motion, tmp_path, capsys):
    plan, other = str(tmp_path / "plan.yaml"), tmp_path / "held.npz"
    write_npz(calibrated_case()[0].recordings[1], other)
    for arguments, message in (
        ([plan, "--table", str(tmp_path / "a.csv")], "--table needs a recording"),
        ([str(other), "--fill", str(tmp_path / "a.yaml")], "--fill needs a motion in YAML"),
        ([plan, "--set", "prepare.cutoff_hz=5"], "--config, --set and --lock have no effect on a motion"),
    ):
        assert cli.main(["predict", str(result.directory), *arguments]) == 2
        assert message in capsys.readouterr().err
