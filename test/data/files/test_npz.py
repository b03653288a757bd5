"""Recordings in npz files."""

import os
import zipfile

import numpy as np
import pytest

from inertid_ros.core.errors import OutputError, RecordingError
from inertid_ros.data.files.loading import read_npz, write_npz
from inertid_ros.data.recording import Recording


@pytest.fixture
def recording():
    rng = np.random.default_rng(0)
    channels = {key: rng.normal(size=(50, 3)) for key in ("position", "effort", "velocity", "acceleration")}
    return Recording(("j1", "j2", "gelenk_ü"), np.cumsum(rng.uniform(0.001, 0.01, 50)), **channels,
        wrenches={"tool": rng.normal(size=(50, 6)), "left/sole": rng.normal(size=(50, 6))},
        base_pose=rng.normal(size=(50, 7)), base_twist=rng.normal(size=(50, 6)),
        base_acceleration=rng.normal(size=(50, 6)))


@pytest.mark.parametrize("other", [0.0, 1e9])
def test_a_few_stamps_of_another_clock_are_left_out_and_counted(tmp_path, other):
    time = 0.01 * np.arange(1000)
    time[[0, 300, 301, 999]] = other + 1e-6 * np.arange(4)
    values = np.arange(1000.0)[:, None]
    np.savez(tmp_path / "r.npz", joint_names=np.array(["a"]), time=time, position=values, effort=values)
    recording = read_npz(tmp_path / "r.npz")
    assert 996 <= len(recording) <= 997 and recording.duration < 10.0
    assert 3 <= recording.repairs.elsewhere <= 4 and recording.repairs.total == 1000


def test_every_channel_comes_back_bit_for_bit(recording, tmp_path):
    back = read_npz(write_npz(recording, tmp_path / "new folder" / "a.npz"))
    assert back.joint_names == recording.joint_names
    for channel in ("time", "position", "effort", "velocity", "acceleration", "base_pose", "base_twist"):
        assert np.array_equal(getattr(back, channel), getattr(recording, channel))
    assert set(back.wrenches) == {"tool", "left/sole"}
    assert np.array_equal(back.wrenches["left/sole"], recording.wrenches["left/sole"])
    assert back.name.endswith("a.npz")


def test_unknown_keys_and_other_number_types_are_taken(recording, tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, joint_names=np.array([b"a", b"b"]), time=np.arange(10), position=np.zeros((10, 2), dtype=np.float32),
        effort=np.zeros((10, 2), dtype=int), notes=np.array([{"a": 1}], dtype=object), motor_position=np.zeros(3))
    back = read_npz(path)
    assert back.joint_names == ("a", "b")
    assert back.effort.dtype == float


@pytest.mark.parametrize(
    "changes, message",
    [({"effort": None}, "lacks effort .*it has joint_names, position, time.*; a recording holds"),
        ({"joint_names": None, "time": None}, "lacks joint_names, time"),
        ({"joint_names": np.array([1, 2])}, "joint_names is not a list of names"),
        ({"joint_names": np.array([["a", "b"]])}, "joint_names is not a list of names"),
        ({"position": np.array([["x", "y"]] * 10)}, "position holds <U1, not numbers"),
        ({"position": np.zeros((10, 2), dtype=complex)}, "position holds complex128, not numbers"),
        ({"effort": np.array([[None, None]] * 10, dtype=object)}, "effort cannot be read")],
)
def test_bad_content_is_one_line(changes, message, tmp_path):
    content = {"joint_names": np.array(["a", "b"]), "time": np.arange(10.0)}
    content |= {"position": np.zeros((10, 2)), "effort": np.zeros((10, 2))}
    content = {key: value for key, value in (content | changes).items() if value is not None}
    np.savez(tmp_path / "bad.npz", **content)
    with pytest.raises(RecordingError, match=message) as caught:
        read_npz(tmp_path / "bad.npz")
    assert str(caught.value).startswith(str(tmp_path / "bad.npz")) and "\n" not in str(caught.value)


def test_a_file_cut_anywhere_is_a_clean_error(recording, tmp_path):
    whole = write_npz(recording, tmp_path / "a.npz").read_bytes()
    cut = tmp_path / "cut.npz"
    for length in range(0, len(whole), max(1, len(whole) // 60)):
        cut.write_bytes(whole[:length])
        with pytest.raises(RecordingError, match="cut.npz: "):
            read_npz(cut)


def test_a_damaged_file_is_read_or_refused_but_never_breaks(recording, tmp_path):
    whole = bytearray(write_npz(recording, tmp_path / "a.npz").read_bytes())
    rng = np.random.default_rng(1)
    path = tmp_path / "damaged.npz"
    for _ in range(100):
        damaged = whole.copy()
        damaged[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            back = read_npz(path)
        except RecordingError as error:
            assert "\n" not in str(error)
        else:
            np.testing.assert_array_equal(back.position, recording.position)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text.npz").write_text("hello")
    np.save(tmp_path / "plain.npy", np.zeros(3))
    with zipfile.ZipFile(tmp_path / "zip.npz", "w") as archive:
        archive.writestr("a.txt", "hello")
    for name in ("text.npz", "plain.npy", "zip.npz", "absent.npz"):
        with pytest.raises(RecordingError, match=name):
            read_npz(tmp_path / name)
    with pytest.raises(RecordingError):
        read_npz(tmp_path)


def test_objects_in_arrays_are_refused_and_never_made(recording, tmp_path):
    made = tmp_path / "made"

    class Hostile:
        def __reduce__(self):
            return os.mkdir, (str(made),)

    path = tmp_path / "hostile.npz"
    np.savez(path, time=recording.time, position=np.array([Hostile()], dtype=object))
    with pytest.raises(RecordingError):
        read_npz(path)
    assert not made.exists()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(recording, tmp_path, monkeypatch):
    path = write_npz(recording, tmp_path / "a.npz")
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match=r"a.npz: cannot be written \(No space left on device\)"):
        write_npz(recording, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.npz"]
