"""What a goal of the identifier asks for: sources of recordings, and where the result is written."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2 (rclpy)")

from support.nodes.two_links import two_links  # noqa: E402

from inertid_ros.action import Identify  # noqa: E402
from inertid_ros.calibration.calibrate import IdentificationJob  # noqa: E402
from inertid_ros.config.configuration import Configuration  # noqa: E402
from inertid_ros.core.errors import InertidError, OutputError  # noqa: E402
from inertid_ros.data.assembly import Block  # noqa: E402
from inertid_ros.data.long_recording import ReceivedRecordings  # noqa: E402
from inertid_ros.data.recording import Recording  # noqa: E402
from inertid_ros.nodes.identifier import identification_job  # noqa: E402

MODEL = two_links()[0]


@pytest.fixture
def recordings() -> ReceivedRecordings:
    """Two complete recordings and one that is still being made."""
    received = ReceivedRecordings()
    values = np.arange(40.0).reshape(20, 2)
    channels = dict.fromkeys(("position", "effort", "velocity"), values)
    block = Block(("shoulder", "elbow"), np.arange(1, 21) * 5_000_000, channels)
    for name, last in (("recording_001", True), ("recording_002", True), ("recording_003", False)):
        received.add(name, 0, last, block)
    return received


def job(recordings: ReceivedRecordings, default_output: str = "", **fields: object) -> IdentificationJob:
    return identification_job(Identify.Goal(**fields), MODEL, Configuration(), recordings, default_output)


def test_without_names_every_complete_recording_is_fitted(recordings: ReceivedRecordings) -> None:
    wanted = job(recordings)
    names = [source.name for source in wanted.train if isinstance(source, Recording)]
    assert names == ["recording_001", "recording_002"]
    assert wanted.held_out == () and wanted.output is None and wanted.rounds.rounds == 1


def test_meshes_are_looked_for_near_the_file_of_the_urdf(recordings: ReceivedRecordings, tmp_path: Path) -> None:
    model = replace(MODEL, folder=tmp_path)
    assert identification_job(Identify.Goal(), model, Configuration(), recordings, "").folder == tmp_path


def test_names_are_received_recordings_or_paths(recordings: ReceivedRecordings, tmp_path: Path) -> None:
    (tmp_path / "bag").mkdir()
    wanted = job(recordings, train=["recording_001"], validation=[str(tmp_path / "bag")])
    assert isinstance(wanted.train[0], Recording)
    assert wanted.held_out == (str(tmp_path / "bag"),)


def test_results_are_numbered_below_the_default_output(recordings: ReceivedRecordings, tmp_path: Path) -> None:
    assert job(recordings, str(tmp_path)).output == tmp_path / "identification_001"
    (tmp_path / "identification_001").mkdir()
    assert job(recordings, str(tmp_path)).output == tmp_path / "identification_002"
    assert job(recordings, str(tmp_path), output_directory=str(tmp_path / "own")).output == tmp_path / "own"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"train": ["recording_003"]}, "still being recorded"),
        ({"train": ["recording_004"]}, "was not received"),
        ({"train": ["missing/bag"]}, "missing/bag: there is no such recording"),
        ({"train": ["~no_such_user/bag"]}, "~no_such_user/bag: there is no such recording"),
        ({"train": [f"missing/{'x' * 300}"]}, "x: there is no such recording"),
    ],
)
def test_unusable_sources_are_refused(recordings: ReceivedRecordings, fields: dict, message: str) -> None:
    with pytest.raises(InertidError, match=message):
        job(recordings, **fields)


def test_nothing_to_fit_is_refused() -> None:
    with pytest.raises(InertidError, match="there is no recording yet"):
        job(ReceivedRecordings())


def test_an_output_that_cannot_be_written_is_refused_before_the_work(
    recordings: ReceivedRecordings, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("x")
    for wanted, reason in (
        ("file", "is a file"), ("link", "is a link"), ("full", "exists and is not empty; choose another path$"),
        ("file/out", "file is not a directory"), ("x" * 256, "File name too long"),
    ):  # fmt: skip
        with pytest.raises(OutputError, match=reason):
            job(recordings, output_directory=str(tmp_path / wanted))
    with pytest.raises(OutputError, match="file is not a directory"):
        job(recordings, str(tmp_path / "file"))
    (tmp_path / "identification_001").symlink_to("nowhere")
    assert job(recordings, str(tmp_path)).output == tmp_path / "identification_002"
