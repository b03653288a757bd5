"""Recording refuses what cannot be a measurement, in one line that names file, field and remedy."""

import numpy as np
import pytest

from inertid_ros.core.errors import RecordingError
from inertid_ros.data.recording import Recording


def _recording(**changes):
    content = {"joint_names": ("a", "b"), "time": 0.1 * np.arange(5), "position": np.zeros((5, 2)),
        "effort": np.ones((5, 2)), "name": "file.npz"}
    return Recording(**(content | changes))


def test_a_good_recording_keeps_its_channels_read_only():
    recording = _recording(velocity=np.ones((5, 2)), wrenches={"tool": np.zeros((5, 6))})
    assert len(recording) == 5
    assert recording.duration == pytest.approx(0.4)
    for channel in (recording.time, recording.position, recording.velocity, recording.wrenches["tool"]):
        with pytest.raises(ValueError):
            channel[0] = 1.0


def _with(value, row, column):
    array = np.zeros((5, 2))
    array[row, column] = value
    return array


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"position": None}, "file.npz: position is missing; record"),
        ({"effort": None}, "file.npz: effort is missing; record"),
        ({"velocity": np.zeros((4, 2))}, r"file.npz: velocity has shape \(4, 2\), expected \(5, 2\)"),
        ({"velocity": np.zeros(5)}, "file.npz: velocity has shape"),
        ({"time": np.zeros((5, 2))}, "file.npz: time has shape"),
        ({"time": 0.0}, "file.npz: time has shape"),
        ({"time": np.array(["x"] * 5)}, "file.npz: time does not hold numbers"),
        ({"time": np.array([0, 0.1, 0.2, 0.2, 0.3])}, "file.npz: time goes back or repeats at sample 3 .*; check"),
        ({"time": np.array([0, 0.1, 0.2, 0.1, 0.3])}, "file.npz: time goes back or repeats at sample 3"),
        ({"time": np.array([0, 0.1, np.nan, 0.3, 0.4])}, "file.npz: time is nan at sample 2; cut"),
        ({"joint_names": ()}, "file.npz: joint_names is empty"),
        ({"joint_names": ("a", "a")}, r"file.npz: joint_names lists \['a'\] twice"),
        ({"wrenches": {"tool": np.zeros((5, 3))}}, "file.npz: wrench/tool has shape"),
        ({"base_pose": np.zeros((5, 6))}, "file.npz: base_pose has shape"),
        ({"time": np.zeros(1), "position": np.zeros((1, 2)), "effort": np.zeros((1, 2))},
            "file.npz: holds 1 samples; record at least"),
    ],
)
def test_bad_content_is_one_line_with_file_field_and_remedy(changes, message):
    with pytest.raises(RecordingError, match="^" + message) as caught:
        _recording(**changes)
    assert "\n" not in str(caught.value)


def test_lost_values_are_kept_as_they_are():
    recording = _recording(position=_with(np.nan, 3, 1), effort=_with(np.inf, 0, 0))
    assert np.isnan(recording.position[3, 1]) and np.isinf(recording.effort[0, 0])


def test_the_caller_keeps_its_own_arrays():
    position = np.zeros((5, 2))
    recording = _recording(position=position)
    position[0, 0] = 7.0
    assert recording.position[0, 0] == 0.0
