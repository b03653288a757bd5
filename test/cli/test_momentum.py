"""The command line on a robot that floats: identify, then validate."""

import json
import re

import numpy as np
import pytest
from support.quick_outputs import drawn
from support.robots.floating_robots import motion, satellite, wheel_urdf, with_prior

from inertid_ros.cli import main as cli
from inertid_ros.config.identification import EQUATION_TYPES
from inertid_ros.config.robot import RobotOptions, WheelOptions
from inertid_ros.data.files.loading import write_npz
from inertid_ros.excitation.plan import load_motion
from inertid_ros.robot.body_changes import write_urdf
from inertid_ros.robot.model import load_model
from inertid_ros.simulation.free_floating import float_freely, measured

WHEELS = {f"wheel_{axis}": {"inertia": 0.1, "link": "L0", "axis": [float(axis == other) for other in "xyz"]}
    for axis in "xyz"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Folder with given.urdf, a.npz, b.npz and config.yaml."""
    folder = tmp_path_factory.mktemp("floating")
    model = satellite(np.random.default_rng(0), 3)
    given = write_urdf(model, with_prior(model, np.random.default_rng(1)).body_prior)
    # The motion goes beyond half a turn.
    (folder / "given.urdf").write_text(re.sub('lower="[^"]*" upper="[^"]*"', 'lower="-6.3" upper="6.3"', given))
    for seed, name in enumerate("ab"):
        found = float_freely(model, model.body_prior, motion(model, 24, seed).trajectory, 50.0)
        recording = measured(model, found, (1e-4, 1e-4, 1e-4), np.random.default_rng(seed), name)
        write_npz(recording, folder / f"{name}.npz")
    robot = f"robot:\n  base: free\n  wheels: {json.dumps(WHEELS)}\n"
    (folder / "config.yaml").write_text(robot)
    named = f"robot:\n  base: free\n  wheels: {json.dumps(dict.fromkeys(WHEELS, {}))}\n"
    quick = "excitation:\n  kind: combinations\n  validation_kind: combinations\n"
    quick += "  combinations: {orders: 1, starts: 3, iterations: 2, most: 20}\n"
    (folder / "excite.yaml").write_text(named + quick)
    wheels = [wheel_urdf(name, "L0", " ".join(map(str, wheel["axis"])), 0.1) for name, wheel in WHEELS.items()]
    commanded = (folder / "given.urdf").read_text().replace("</robot>", f"{''.join(wheels)}</robot>")
    (folder / "commanded.urdf").write_text(commanded)
    return folder


def test_identify_and_validate(files, tmp_path, capsys):
    output = str(tmp_path / "result")
    command = ["identify", str(files / "a.npz"), "--urdf", str(files / "given.urdf"), "--model", "momentum"]
    command += ["--config", str(files / "config.yaml"), "--validate", str(files / "b.npz"), "--output", output]
    assert cli.main([*command, "--json", "--quiet"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["channels"][0] == "momentum.linear_x"
    assert report["validation"]["relative_error"] < 0.05 < report["prior"]["relative_error"]
    assert [link["name"] for link in report["links"]] == ["L0", "L1", "L2", "L3"]
    check = ["validate", output, str(files / "b.npz"), "--json", "--quiet"]
    assert cli.main(check) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["validation"]["relative_error"] == pytest.approx(report["validation"]["relative_error"])


def test_a_urdf_is_validated_by_momentum(files, capsys):
    command = ["validate", str(files / "given.urdf"), str(files / "b.npz"), "--config", str(files / "config.yaml")]
    assert cli.main([*command, "--set", "identify.equations=momentum", "--json", "--quiet"]) in (0, 3)
    assert json.loads(capsys.readouterr().out)["validation"]["relative_error"] > 0.05


def test_robot_with_friction_to_identify(files, tmp_path):
    """Drive terms, which the robot has by default, are in no equation of momentum; they stay as they are."""
    command = ["identify", str(files / "a.npz"), "--urdf", str(files / "given.urdf"), "--model", "momentum", "--quiet"]
    settings = ["--set", f"robot.wheels={json.dumps(WHEELS)}"]
    assert cli.main([*command, *settings, "--output", str(tmp_path / "result")]) == 0


def test_missing_inertia_is_bad_input(files, tmp_path, capsys):
    command = ["identify", str(files / "a.npz"), "--urdf", str(files / "given.urdf"), "--model", "momentum", "--quiet"]
    settings = ["--set", "robot.wheels={wheel_x: {link: L0, axis: [1, 0, 0]}}"]
    assert cli.main([*command, *settings, "--output", str(tmp_path / "result")]) == 2
    assert "wheel 'wheel_x': its inertia is missing, so that its momentum is unknown" in capsys.readouterr().err


def test_command_line_knows_every_kind(capsys):
    with pytest.raises(SystemExit):
        cli.main(["identify", "--help"])
    assert f"{{{','.join(EQUATION_TYPES)}}}" in capsys.readouterr().out.replace("\n", "")


def test_excite_plans_joints_and_wheels(files, tmp_path, capsys):
    output = tmp_path / "motion"
    command = ["excite", "--urdf", str(files / "commanded.urdf"), "--config", str(files / "excite.yaml"), "--quiet"]
    assert cli.main([*command, "--output", str(output), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert len(summary["singular_values"]["after"]) == len(summary["singular_directions"]) > 20
    plan, held_out = (load_motion(output / f"{name}.yaml") for name in ("plan", "validation_plan"))
    assert plan.joint_names == ("J1", "J2", "J3", "wheel_x", "wheel_y", "wheel_z")
    np.testing.assert_allclose(plan.position[0], 0.0, atol=1e-9)
    assert np.abs(plan.position[-1] - held_out.position[-1]).max() > 0.1
    options = RobotOptions(base="free", wheels=dict.fromkeys(WHEELS, WheelOptions()))
    model = load_model(files / "commanded.urdf", options)
    found = float_freely(model, model.body_prior, plan.ordered(model.joint_names + model.wheels.names), 50.0)
    assert np.abs(found.momentum).max() < 1e-9
    assert cli.main([*command, "--check", str(output / "plan.yaml")]) == 0
    assert "keeps every limit" in capsys.readouterr().out
    assert cli.main([*command, "--output", str(tmp_path / "b"), "--set", "excitation.kind=fourier"]) == 2
    assert "set excitation.kind and excitation.validation_kind to combinations" in capsys.readouterr().err
    command[2] = str(files / "given.urdf")
    assert cli.main([*command, "--output", str(tmp_path / "b")]) == 2
    assert "wheel 'wheel_x': its inertia is missing" in capsys.readouterr().err


@pytest.fixture(scope="module")
def without_effort(files, tmp_path_factory):
    """Folder with a.npz and b.npz, of which nothing measured effort."""
    folder = tmp_path_factory.mktemp("without_effort")
    for name in "ab":
        with np.load(files / f"{name}.npz") as archive:
            np.savez(folder / f"{name}.npz", **{key: archive[key] for key in archive.files if key != "effort"})
    return folder


def test_momentum_needs_no_effort_and_reports_name_momentum(files, without_effort, capsys):
    """Also: wheels are used and not told as ignored, and no friction is printed, of which nothing was measured."""
    output = without_effort / "result"
    command = ["identify", str(without_effort / "a.npz"), "--urdf", str(files / "given.urdf"), "--model", "momentum"]
    command += ["--config", str(files / "config.yaml"), "--validate", str(without_effort / "b.npz")]
    with drawn():
        assert cli.main([*command, "--output", str(output)]) == 0
    printed = capsys.readouterr()
    assert cli.main(["report", str(output), "--html", str(output / "page.html")]) == 0
    check = ["validate", str(output), str(without_effort / "b.npz")]
    assert cli.main(check) == 0
    again = capsys.readouterr().out
    for out in (printed.out, again):
        assert "Momentum error" in out and "N s or N m s" in out and "held-out momentum error" in out
    texts = [printed.out, again, (output / "report.html").read_text(), (output / "page.html").read_text()]
    for text in texts:
        assert not re.search("torque|viscous|coulomb|joint 0", text, re.IGNORECASE)
    assert "wheel" not in printed.err and "ignor" not in printed.err
    friction = json.loads((output / "report.json").read_text())["joints"][0]
    assert not {"viscous", "coulomb", "rotor_inertia"} & friction.keys()


def test_info_of_a_recording_without_effort(without_effort, capsys):
    assert cli.main(["info", str(without_effort / "a.npz")]) == 0
    out = capsys.readouterr().out
    assert "channels: position, velocity" in out and "nan" not in out
