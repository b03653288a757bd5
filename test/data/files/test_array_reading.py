"""Recordings of other tools: Parquet, LeRobot, MATLAB, arrays with other names; and back to them."""

import json
import subprocess
from pathlib import Path

import numpy as np
import pyarrow
import pytest
import scipy
from pyarrow import parquet

from inertid_ros.cli import main as cli
from inertid_ros.core.errors import RecordingError
from inertid_ros.data.files.loading import load_recording, write_npz
from inertid_ros.data.recording import Recording

TIME = 0.01 * np.arange(40)
POSITION = np.random.default_rng(0).normal(size=(40, 3))
VELOCITY, EFFORT = 2 * POSITION, 10 * POSITION


def _npz(path: Path) -> None:
    np.savez(path, positions=POSITION, positions_raw=0 * POSITION, velocities=VELOCITY, torques=EFFORT, times=TIME,
        base_velocity=np.zeros((40, 6)))


def _mat(path: Path) -> None:
    scipy.io.savemat(path, {"q": POSITION.T, "qd": VELOCITY.T, "tau": EFFORT.T, "t": TIME[:, None], "fs": 100.0},
        do_compression=True)


def _mat_struct(path: Path) -> None:
    names = np.array(["joint1", "joint2", "joint3"], dtype=object)
    data = {"position": POSITION, "velocity": VELOCITY, "effort": EFFORT, "time": TIME, "joint_names": names}
    scipy.io.savemat(path, {"data": data})


def _parquet(path: Path) -> None:
    columns = {"time": TIME, "q": list(POSITION), "dq": list(VELOCITY), "tau": list(EFFORT), "mode": ["auto"] * 40}
    parquet.write_table(pyarrow.table(columns), path)


def _parquet_columns(path: Path) -> None:
    columns = {"timestamp": pyarrow.array((1_700_000_000 * 10**9 + 1e9 * TIME).astype("datetime64[ns]"))}
    for joint in range(3):
        columns |= {f"q{joint}": POSITION[:, joint], f"dq{joint}": VELOCITY[:, joint]}
        columns |= {f"tau{joint + 1}": EFFORT[:, joint]}
    parquet.write_table(pyarrow.table(columns), path)


FORMS = {"a.npz": _npz, "a.mat": _mat, "b.mat": _mat_struct, "a.parquet": _parquet, "b.parquet": _parquet_columns}


@pytest.mark.parametrize("name", FORMS)
def test_forms(tmp_path, name):
    FORMS[name](tmp_path / name)
    recording = load_recording(tmp_path / name)
    first = 0 if name == "b.parquet" else 1  # there, positions count from 0 and efforts from 1
    assert recording.joint_names == tuple(f"joint{k}" for k in range(first, first + 3))
    np.testing.assert_allclose(recording.time - recording.time[0], TIME, atol=1e-6)
    np.testing.assert_array_equal(recording.position, POSITION)
    np.testing.assert_array_equal(recording.velocity, VELOCITY)
    np.testing.assert_array_equal(recording.effort, EFFORT)


def _lerobot(folder: Path, **features: object) -> Path:
    (folder / "meta").mkdir(parents=True)
    (folder / "data" / "chunk-000").mkdir(parents=True)
    names = ["shoulder.pos", "elbow.pos", "wrist.pos"]
    given = {"observation.state": {"names": names}, "action": {"names": names}, **features}
    (folder / "meta" / "info.json").write_text(json.dumps({"codebase_version": "v3.0", "features": given}))
    columns = {
        "observation.state": list(POSITION), "observation.effort": list(EFFORT),
        "timestamp": np.tile(TIME[:20], 2).astype("f4"), "episode_index": np.repeat([0, 1], 20)}
    parquet.write_table(pyarrow.table(columns), folder / "data" / "chunk-000" / "file-000.parquet")
    return folder


def test_episodes_of_lerobot_follow_one_another(tmp_path, capsys):
    folder = _lerobot(tmp_path / "set", **{"observation.effort": {"names": {"motors": ["a", "b", "c"]}}})
    recording = load_recording(folder)
    assert recording.joint_names == ("shoulder", "elbow", "wrist")
    np.testing.assert_array_equal(recording.effort, EFFORT)
    steps = np.diff(recording.time)
    assert np.argmax(steps) == 19 and np.isclose(steps[19], 1.0) and np.isclose(np.delete(steps, 19), 0.01).all()
    assert cli.main(["info", str(folder)]) == 0 and "shoulder" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".mat", ".npz"])
def test_there_and_back(tmp_path, capsys, suffix):
    """Names and numbers come back; what a table cannot hold is told."""
    names = ("x", "shoulder pan, left", "joint_2")
    wrench = {"foot": np.ones((40, 6))}
    given = Recording(names, TIME, POSITION, EFFORT, velocity=VELOCITY, wrenches=wrench)
    write_npz(given, tmp_path / "given.npz")
    out = tmp_path / f"out{suffix}"
    assert cli.main(["convert", str(tmp_path / "given.npz"), str(out)]) == 0
    told = capsys.readouterr().out
    assert ("without wrench/foot, which tables cannot store" in told) == (suffix != ".npz")
    back = load_recording(out)
    assert back.joint_names == names
    for channel in ("time", "position", "velocity", "effort"):
        np.testing.assert_array_equal(getattr(back, channel), getattr(given, channel))
    assert cli.main(["convert", str(tmp_path / "given.npz"), str(out)]) == 2
    assert "exists" in capsys.readouterr().err


def _without_times(path: Path) -> None:
    scipy.io.savemat(path, {"q": POSITION, "tau": EFFORT})


def _of_two_runs(path: Path) -> None:
    scipy.io.savemat(path, {"q": POSITION, "tau": EFFORT[:-1], "t": TIME})


def _cut(path: Path) -> None:
    FORMS["a" + path.suffix](path)
    path.write_bytes(path.read_bytes()[:300])


def _bomb(path: Path) -> None:
    scipy.io.savemat(path, {"t": np.zeros(20_000_000)}, do_compression=True)


def _hdf5(path: Path) -> None:
    path.write_bytes(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\0\2IM" + b"\x89HDF\r\n\x1a\n")


@pytest.mark.parametrize(
    "spoil, name, message",
    [
        (_without_times, "run.mat", "without a column of time"),
        (_of_two_runs, "run.mat", "different lengths .*tau.* 39.*; export the arrays of one run"),
        (_cut, "run.mat", "cannot be read as MATLAB file .*; save it again"),
        (_cut, "run.parquet", "is damaged .*; export it again"),
        (_bomb, "run.mat", "expands to more than 100 times its size at its variables, unlike any recording; save"),
        (_hdf5, "run.mat", r"a MATLAB file of version 7.3; save it with save\(file, '-v7'\)"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path, spoil, name, message):
    spoil(tmp_path / name)
    with pytest.raises(RecordingError, match=message):
        load_recording(tmp_path / name)


def test_a_lerobot_set_without_efforts_is_refused(tmp_path):
    with pytest.raises(RecordingError, match=r"has no feature observation.effort, .* record the efforts or currents"):
        load_recording(_lerobot(tmp_path / "set"))
    (tmp_path / "set" / "meta" / "info.json").write_text('{"features": []}')
    with pytest.raises(RecordingError, match="info.json: does not describe joints .*; download it again"):
        load_recording(tmp_path / "set")


def test_positions_whose_efforts_stand_beside_them_are_joined_by_the_remedy(tmp_path):
    for quantity, values in (("position", POSITION), ("effort", EFFORT)):
        header = ",".join(["t", *(f"- {joint}_joint_{quantity}" for joint in ("a", "b", "c"))])
        rows = (",".join(map(repr, row)) for row in np.column_stack([TIME, values]).tolist())
        (tmp_path / f"arm_{quantity}.csv").write_text("\r\n".join([header, *rows]) + "\r\n")
    with pytest.raises(RecordingError, match="no efforts, which seem to be in arm_effort.csv; join both") as told:
        load_recording(tmp_path / "arm_position.csv")
    command = str(told.value).partition("together: ")[2].replace("> run", f"> {tmp_path}/run")
    subprocess.run(command, shell=True, check=True)
    recording = load_recording(tmp_path / "run.csv")
    assert recording.joint_names == ("a_joint", "b_joint", "c_joint")
    np.testing.assert_array_equal(recording.effort, EFFORT)


def test_the_remedy_for_missing_times_helps(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("q0,q1,tau1,tau2\n" + "0.1,0.2,3,4\n" * 5)
    with pytest.raises(RecordingError, match="without a column of time") as told:
        load_recording(path)
    command = str(told.value).partition("at 100 Hz: ")[2].replace("> timed", f"> {tmp_path}/timed")
    subprocess.run(command, shell=True, check=True)
    recording = load_recording(tmp_path / "timed.csv")
    np.testing.assert_allclose(recording.time, TIME[:5])
    np.testing.assert_array_equal(recording.effort, np.tile([3.0, 4.0], (5, 1)))
