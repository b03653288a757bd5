"""Files of motion capture: C3D and OpenSim's become recordings of segments."""

import sys

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.recordings.motion_capture import write_c3d, write_mot, write_sto, write_trc

from inertid_ros.config.robot import MarkerOptions
from inertid_ros.core.errors import RecordingError
from inertid_ros.data.files.loading import load_recording
from inertid_ros.robot.recorded_joints import POSE, RecordedJoints

LINKS, RATE_HZ, PLATE_HZ = ("pelvis", "foot"), 100.0, 1000.0
PLACES = {link: np.random.default_rng(k).uniform(-0.1, 0.1, (4, 3)) for k, link in enumerate(LINKS)}
MARKERS = {
    f"{link}_{k}": MarkerOptions(link, tuple(place))
    for link, places in PLACES.items()
    for k, place in enumerate(places)
}
JOINTS = RecordedJoints(tuple(f"{link}.{part}" for link in LINKS for part in POSE), markers=MARKERS)
FAST = np.arange(2000) / PLATE_HZ


def motion(count=200):
    """Times, poses of each link, and force, its point and free torque on the person, at ``RATE_HZ``."""
    rng, time = np.random.default_rng(5), np.arange(count) / RATE_HZ
    poses = {}
    for link in LINKS:
        swing = np.sin(np.outer(time, rng.uniform(2, 5, 6)) + rng.uniform(0, 6, 6))
        poses[link] = 0.2 * swing[:, :3] + [0.0, 0.0, 1.0], Rotation.from_rotvec(0.5 * swing[:, 3:])
    return time, poses


def loads(time):
    force = np.stack([20 * np.sin(4 * time), 10 * np.cos(3 * time), 700 + 50 * np.sin(5 * time)], axis=1)
    point = np.stack([0.2 + 0.05 * np.sin(time), 0.3 + 0.05 * np.cos(2 * time), 0 * time], axis=1)
    free = np.stack([0 * time, 0 * time, 3 * np.sin(2 * time)], axis=1)
    return force, point, free


def seen(poses):
    """Places of all markers ``(N, 3)`` by their names."""
    return {name: poses[marker.link][0] + poses[marker.link][1].apply(marker.xyz) for name, marker in MARKERS.items()}


def check(recording, time, poses, wrench, atol=2e-6):
    np.testing.assert_allclose(recording.time - recording.time[0], time, atol=1e-6)
    assert recording.joint_names == tuple(f"{link}.{part}" for link in LINKS for part in POSE)
    for columns, (place, turn) in zip(np.split(recording.position, len(LINKS), axis=1), poses.values(), strict=True):
        np.testing.assert_allclose(columns[:, :3], place, atol=atol)
        assert (Rotation.from_quat(columns[:, 3:]) * turn.inv()).magnitude().max() < 20 * atol
    force, point, free = loads(time)
    expected = np.hstack([force, free + np.cross(point, force)])
    inside = slice(20, -20)  # the low-pass of forces has ends
    np.testing.assert_allclose(recording.wrenches[wrench][inside], expected[inside], rtol=1e-3, atol=0.05)


@pytest.mark.parametrize("suffix", ["trc", "c3d"])
def test_markers_become_poses_and_forces_wrenches(tmp_path, suffix):
    time, poses = motion()
    if suffix == "trc":
        write_trc(tmp_path / "walk.trc", time, seen(poses))
        write_mot(tmp_path / "walk_grf.mot", FAST, {"1": loads(FAST)})
    else:
        write_c3d(tmp_path / "walk.c3d", time, seen(poses), FAST, loads(FAST))
    check(load_recording(tmp_path / f"walk.{suffix}", joints=JOINTS), time, poses,
        "1_ground_force" if suffix == "trc" else "plate1")
    plain = load_recording(tmp_path / f"walk.{suffix}")
    assert plain.joint_names[:3] == ("pelvis_0.x", "pelvis_0.y", "pelvis_0.z")
    np.testing.assert_allclose(plain.position[:, :3], seen(poses)["pelvis_0"], atol=2e-6)


def test_poses_of_body_kinematics(tmp_path):
    time, poses = motion()
    names, columns = ["time"], [time[:, None]]
    for link, (place, turn) in poses.items():
        names += [f"{link}_{axis}" for axis in ("X", "Y", "Z", "Ox", "Oy", "Oz")]
        columns += [place, turn.as_euler("XYZ", degrees=True)]
    path = tmp_path / "walk_BodyKinematics_pos_global.sto"
    write_sto(path, names, np.hstack(columns))
    write_mot(tmp_path / "walk_grf.mot", FAST, {"1": loads(FAST)})
    check(load_recording(path), time, poses, "1_ground_force")


def test_a_pose_needs_three_visible_markers(tmp_path):
    time, poses = motion()
    markers = {name: places.copy() for name, places in seen(poses).items()}
    markers["foot_0"][50:60] = np.nan
    markers["foot_1"][55:60] = np.nan
    write_trc(tmp_path / "walk.trc", time, markers)
    position = load_recording(tmp_path / "walk.trc", joints=JOINTS).position
    lost = np.isnan(position).any(axis=1)
    assert np.flatnonzero(lost).tolist() == list(range(55, 60)) and not np.isnan(position[:, :7]).any()
    np.testing.assert_allclose(position[50:55, 7:10], poses["foot"][0][50:55], atol=2e-6)


def test_files_that_cannot_be_used_are_refused_in_one_line(tmp_path, monkeypatch):
    time, poses = motion(20)
    path = tmp_path / "walk.trc"
    write_trc(path, time, seen(poses))
    other = RecordedJoints(markers={"LASI": MarkerOptions("pelvis", (0.0, 0.0, 0.0)), **MARKERS})
    with pytest.raises(RecordingError, match=r"lacks LASI of robot.markers \(it has pelvis_0"):
        load_recording(path, joints=other)
    whole = path.read_text()
    for text, message in (
        (whole.replace("\tmm\t", "\tinch\t"), "unit is not m, cm or mm"),
        (whole.replace("\t", " "), "cannot be read as a file of OpenSim"),
        (whole[: len(whole) // 20], "cannot be read as a file of OpenSim"),
        ("walk\nversion=1\nendheader\ntime\tankle\n0.0\t1.0\n", "holds no poses of bodies"),
        ("walk\nversion=1\nendheader\ntime\tfoot_Ox\n0.0\t1.0\n", "lacks the column"),
    ):  # fmt: skip
        path.write_text(text)
        with pytest.raises(RecordingError, match=message) as refused:
            load_recording(path)
        assert "\n" not in str(refused.value)
    write_trc(path, time, seen(poses))
    write_sto(tmp_path / "walk.mot", ["time", "ground_force_vx"], np.ones((9, 2)))
    with pytest.raises(RecordingError, match="lacks the column 'ground_force_vy'"):
        load_recording(path)
    (tmp_path / "walk.c3d").write_bytes(b"\x02P" + bytes(2000))
    with pytest.raises(RecordingError, match=r"walk.c3d: (cannot be read as C3D|C3D needs the Python package ezc3d)"):
        load_recording(tmp_path / "walk.c3d")
    monkeypatch.setitem(sys.modules, "ezc3d", None)
    with pytest.raises(RecordingError, match="C3D needs the Python package ezc3d; pip install ezc3d"):
        load_recording(tmp_path / "walk.c3d")


@pytest.mark.parametrize("suffix", ["trc", "sto", "mot"])
def test_changed_files_are_read_or_refused_in_one_line(tmp_path, suffix):
    rng, (time, poses) = np.random.default_rng(7), motion(20)
    write_trc(tmp_path / "walk.trc", time, seen(poses))
    names = ["time", *(f"foot_{axis}" for axis in ("X", "Y", "Z", "Ox", "Oy", "Oz"))]
    write_sto(tmp_path / "walk.sto", names, np.column_stack([time, rng.normal(size=(20, 6))]))
    write_mot(tmp_path / "walk_grf.mot", FAST[:100], {"1": loads(FAST[:100])})
    changed = tmp_path / ("walk_grf.mot" if suffix == "mot" else f"walk.{suffix}")
    whole, read = changed.read_bytes(), tmp_path / ("walk.trc" if suffix == "mot" else f"walk.{suffix}")
    for _ in range(100):
        text = bytearray(whole)
        for place in rng.integers(len(text), size=rng.integers(1, 6)):
            pieces = b"", b"\t", b"\n", b"nan", b"1e999", b"-", b"\x00", b"\t1" * 3000, text[: place // 2]
            text[place : place + int(rng.integers(0, 40))] = pieces[rng.integers(len(pieces))]
        changed.write_bytes(bytes(text))
        try:
            load_recording(read, joints=JOINTS if suffix == "trc" else RecordedJoints())
        except RecordingError as error:
            assert "\n" not in str(error)
