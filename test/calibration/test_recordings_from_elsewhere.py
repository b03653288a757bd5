"""Bags that somebody else recorded, whole: each gives the result of the same motion recorded as it should be."""

from dataclasses import replace

import numpy as np
import pytest
from support.recordings.message_bag import MessageBag
from support.recordings.synthetic_calibration import synthetic_case

from inertid_ros.calibration.calibrate import calibrate
from inertid_ros.config.configuration import Configuration
from inertid_ros.config.recordings import PrepareOptions, RecordingTopics
from inertid_ros.data.files.loading import load_recording
from inertid_ros.robot.recorded_joints import RecordedJoints

START, MS = 10**18, 10**6
CONFIGURATION = Configuration(prepare=PrepareOptions(cutoff_hz=5.0))  # the same band for all errors


@pytest.fixture(scope="module")
def case():
    """A robot of four joints, two motions, and the error on the second of a fit to the first."""
    case = synthetic_case(5, joints=4, recordings=2, duration=12.0)
    return case, _error(case, case.recordings[0])


def _error(case, recording):
    outcome = calibrate(case.given, [recording], [case.recordings[1]], CONFIGURATION)
    return outcome.validation.calibrated.relative_error


def _stamps(recording):
    return START + np.round(recording.time * 1e9).astype(np.int64)


def _write(path, recording, stamps, publishers=((slice(None), "/joint_states"),), arrivals=None):
    """Messages of a recording as a bag, of the instants of their stamps where these are near; with joints and topic of
    each publisher, of which each further one is 4 ms later."""
    own = _stamps(recording)
    arrivals = own if arrivals is None else arrivals
    instants = (np.where(np.abs(stamps - own) < 50 * MS, stamps, own) - START) * 1e-9
    with MessageBag(path) as bag:
        for index, (columns, topic) in enumerate(publishers):
            late = index * 4 * MS
            time = instants + late * 1e-9
            channels = (recording.position[:, columns], recording.velocity[:, columns], recording.effort[:, columns])
            values = [np.column_stack([np.interp(time, recording.time, row) for row in rows.T]) for rows in channels]
            for k, (stamp, arrival) in enumerate(zip(stamps.tolist(), arrivals.tolist(), strict=True)):
                rows = [rows[k] for rows in values]
                bag.joint_state(stamp + late, recording.joint_names[columns], *rows, topic, arrival + late)
    return path


def test_stamps_that_cross_repeat_and_lie_elsewhere(case, tmp_path):
    case, clean = case
    stamps = _stamps(case.recordings[0])
    stamps[[150, 151]] = stamps[150] - np.array([0, 3]) * MS // 10  # before the one that came before it, by 0.3 ms
    crossed = np.arange(200, 1000, 50)
    stamps[crossed], stamps[crossed + 1] = stamps[crossed + 1], stamps[crossed].copy()
    stamps[[20, 77]] = stamps[[19, 76]]
    stamps[[33, 1100]] = 7, 2 * 10**18
    bag = _write(tmp_path / "bag", case.recordings[0], stamps)
    recording = load_recording(bag, joints=case.given.recorded_joints)
    assert (recording.repairs.late, recording.repairs.repeated, recording.repairs.elsewhere) == (17, 2, 2)
    assert _error(case, recording) < 1.05 * clean


@pytest.mark.parametrize("topics", [("/joint_states",) * 2, ("/joint_states", "/right/joint_states")])
def test_two_publishers(case, tmp_path, topics):
    case, clean = case
    publishers = zip((slice(0, 2), slice(2, 4)), topics, strict=True)
    bag = _write(tmp_path / "bag", case.recordings[0], _stamps(case.recordings[0]), tuple(publishers))
    wanted = RecordingTopics(further_joint_states=topics[1:] if topics[1] != topics[0] else ())
    recording = load_recording(bag, wanted, case.given.recorded_joints)
    assert recording.joint_names == case.given.joint_names
    assert _error(case, recording) < 1.05 * clean


def test_empty_headers(case, tmp_path):
    """Messages arrive up to a tenth of the period late."""
    case, clean = case
    stamps = _stamps(case.recordings[0])
    arrivals = stamps + np.random.default_rng(0).integers(0, MS, len(stamps))
    bag = _write(tmp_path / "bag", case.recordings[0], 0 * stamps, arrivals=arrivals)
    recording = load_recording(bag, joints=case.given.recorded_joints, stamps="arrival")
    # Late arrivals are an error of their own, half as large as that of the clean recording.
    assert _error(case, recording) < np.hypot(1.0, 0.5) * clean


def test_other_names(case, tmp_path):
    case, clean = case
    recording = case.recordings[0]
    renamed = replace(recording, joint_names=tuple(f"other_{name}" for name in recording.joint_names))
    bag = _write(tmp_path / "bag", renamed, _stamps(recording))
    joints = RecordedJoints(case.given.joint_names, {"other_*": "*"})
    assert _error(case, load_recording(bag, joints=joints)) == pytest.approx(clean, rel=1e-6)
