"""Load and bias of a force-torque sensor, against Pinocchio's inverse dynamics of a free body."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.tool_on_sensor import Tool, identified

from inertid_ros.cli import main as cli
from inertid_ros.core.errors import RecordingError
from inertid_ros.data.files.loading import write_npz


@pytest.mark.parametrize(("rate_hz", "seconds", "base_hz"), [(10.0, 90.0, 0.02), (100.0, 12.0, 0.3)])
def test_the_truth_is_within_the_intervals(rate_hz: float, seconds: float, base_hz: float):
    inside, errors = [], []
    for seed in range(6):
        tool = Tool(seed)
        load = identified(tool.record(rate_hz, seconds, base_hz))
        for name, value in (("mass", tool.mass), ("com", tool.com), ("bias", tool.bias), ("tilt", tool.tilt)):
            error = np.atleast_1d(getattr(load, name) - value)
            inside.extend(np.abs(error) < 1.96 * np.atleast_1d(load.deviations[name]))
        errors.append(abs(load.mass / tool.mass - 1))
        if load.inertia is not None:
            assert (np.abs(load.inertia - tool.inertia) < 4 * load.deviations["inertia"]).all()
    assert np.mean(inside) > 0.85, np.mean(inside)  # of 78, 95 % expected
    assert max(errors) < 0.01


@pytest.mark.parametrize("seed", range(4))
def test_pauses_and_impossible_values_do_not_change_the_result(seed: int):
    """Pauses from half a second to a year, anywhere; they were filled, in any memory that this takes."""
    rng, tool = np.random.default_rng(seed), Tool(seed)
    recording = tool.record(100.0, 14.0, 0.3)
    time, wrench = recording.time + rng.uniform(-3e-3, 3e-3, len(recording)), dict(recording.wrenches)
    for row in rng.integers(200, len(time) - 200, 2):
        time[row:] += 10 ** rng.uniform(-0.3, 7.5)
    wrench["ft"] = wrench["ft"].copy()
    wrench["ft"][rng.integers(len(time), size=3), rng.integers(6, size=3)] = rng.choice([1e308, -1e9, np.inf, np.nan])
    load = identified(replace(recording, time=time, wrenches=wrench))
    assert load.mass == pytest.approx(tool.mass, rel=0.02)
    assert (np.abs(load.com - tool.com) < np.maximum(4 * load.deviations["com"], 0.005)).all()


def test_pieces_that_are_too_short_are_refused():
    recording = Tool(0).record(100.0, 3.0, 0.3)
    with pytest.raises(RecordingError, match=r"turned: lasts 0\.29 s without a gap, too short .* at least 1 s"):
        identified(replace(recording, time=recording.time + np.arange(len(recording)) // 30))


def test_a_sensor_of_the_opposite_sign_is_told():
    tool = Tool(0)
    load = identified(tool.record(10.0, 60.0, 0.03, sign=-1.0))
    assert load.reversed and load.mass == pytest.approx(tool.mass, rel=0.01) and "sign" in load.notices[0]
    np.testing.assert_allclose(load.bias, tool.bias, atol=0.1)


def test_a_sensor_that_was_not_turned_is_refused():
    recording = Tool(0).record(10.0, 30.0, 1e-5)
    with pytest.raises(RecordingError, match="does not separate load and bias"):
        identified(recording)


def test_the_command_writes_what_controllers_take(tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tool = Tool(1)
    write_npz(tool.record(10.0, 60.0, 0.03), Path("turned.npz"))
    assert cli.main(["force-sensor", "turned.npz", "--output", "sensor.yaml", "--json"]) == 0
    shown, written = json.loads(capsys.readouterr().out), yaml.safe_load(Path("sensor.yaml").read_text())
    assert shown["mass"] == pytest.approx(tool.mass, rel=0.01) == written["load"]["mass"]
    offset = written["force_torque_sensor_broadcaster"]["ros__parameters"]["offset"]["force"]
    np.testing.assert_allclose([-offset[axis] for axis in "xyz"], shown["bias"][:3])
    assert "admittance_controller" not in written, "it needs a sensor that reads the weight downwards"
    down = tool.record(10.0, 60.0, 0.03)
    write_npz(replace(down, wrenches={name: -wrench for name, wrench in down.wrenches.items()}), Path("down.npz"))
    assert cli.main(["force-sensor", "down.npz", "--output", "down.yaml"]) == 0
    written = yaml.safe_load(Path("down.yaml").read_text())
    weight = written["admittance_controller"]["ros__parameters"]["gravity_compensation"]["CoG"]["force"]
    assert weight == pytest.approx(9.81 * shown["mass"], rel=0.01)
    assert cli.main(["force-sensor", "turned.npz", "--sensor", "wrist"]) == 2
    assert "(recorded: ft); choose one with --sensor" in capsys.readouterr().err


@pytest.mark.parametrize("header", [
    "time,fx,fy,fz,tx,ty,tz,x,y,z,qx,qy,qz,qw",
    "t [s];/ft/wrench/force/x;/ft/wrench/force/y;/ft/wrench/force/z;/ft/wrench/torque/x;/ft/wrench/torque/y;"
    "/ft/wrench/torque/z;position.x;position.y;position.z;orientation.x;orientation.y;orientation.z;orientation.w",
    "timestamp,force_x,force_y,force_z,moment_x,moment_y,moment_z,qx,qy,qz,qw"])
def test_tables_of_a_sensor_without_joints(tmp_path: Path, capsys, header: str):
    tool = Tool(3)
    recording = tool.record(10.0, 60.0, 0.01)
    pose = recording.base_pose[:, 3:] if "orientation" not in header and ",x," not in header else recording.base_pose
    separator = max(";,", key=header.count)
    np.savetxt(tmp_path / "log.csv", np.column_stack([recording.time, recording.wrenches["ft"], pose]), header=header,
        delimiter=separator, comments="")
    assert cli.main(["force-sensor", str(tmp_path / "log.csv"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert abs(shown["mass"] - tool.mass) < 4 * shown["deviations"]["mass"] < 0.03 * tool.mass
    assert (np.abs(shown["com"] - tool.com) < 4 * np.array(shown["deviations"]["com"])).all()


def test_a_file_of_a_sensor_alone(tmp_path: Path, capsys):
    tool = Tool(4)
    recording = tool.record(100.0, 12.0, 0.3)
    np.savez(tmp_path / "log.npz", time=recording.time, base_pose=recording.base_pose,
        **{"wrench/ft": recording.wrenches["ft"]})
    assert cli.main(["force-sensor", str(tmp_path / "log.npz"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mass"] == pytest.approx(tool.mass, rel=0.01)
    assert cli.main(["info", str(tmp_path / "log.npz")]) == 0
    assert "wrench/ft" in (shown := capsys.readouterr().out) and "Joints" not in shown
    assert cli.main(["convert", str(tmp_path / "log.npz"), str(tmp_path / "log.csv")]) == 2
    assert "has no joints" in capsys.readouterr().err
